//! Evidence that a tag begins a structure and is not a word of a text about it.
//!
//! A tag with nothing before it, and with its text right after it or on the next line, begins a structure,
//! and its text streams. Text that reads as a sentence about the tag, prose before it, or a fence with prose
//! before it make it an example, unless the whole reply has the shape of the structure.

use super::Extent;
use crate::lex::about;
use crate::lex::fence::Fence;

/// A tag that may decide the dialect.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) dialect: &'static str,
    pub(super) name: &'static str,
    /// Offset after the tag.
    pub(super) behind: usize,
    /// Set if the tag holds the answer or precedes all of it.
    pub(super) first: bool,
    /// Set if the element is read whole, so that its text does not stream.
    pub(super) whole: bool,
    /// Set if prose precedes the tag.
    pub(super) prose: bool,
    /// Set if an element of the structure precedes the tag.
    pub(super) follows: bool,
    /// The fence around the tag, and whether that fence is also used for another vocabulary.
    pub(super) fence: Option<(Fence, bool)>,
}

/// Current evidence about a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evidence {
    Structure,
    Waits,
    Text,
}

impl Candidate {
    /// Evaluates the text so far.
    pub(super) fn evidence(&self, text: &str, extent: Extent) -> Evidence {
        let whole = extent == Extent::All;
        let waits = if whole { Evidence::Text } else { Evidence::Waits };
        let inside = &text[self.behind..];
        let start = inside.trim_start();
        let part = start.starts_with('<') && !start.contains('>') && start.len() < TAG;
        if start.is_empty() || part && !whole {
            return waits;
        }
        let close = close_of(inside, self.name);
        if close.is_some_and(|(at, _)| inside[..at].trim().is_empty()) {
            // The element is empty.
            return Evidence::Text;
        }
        let example = self.fence.is_some_and(|(_, foreign)| self.prose || foreign);
        if example || self.first && self.prose && !self.follows {
            let complete = whole && (self.follows || !example) && self.is_whole(inside);
            return if complete { Evidence::Structure } else { waits };
        }
        let Some(speaks) = about::speaks(inside, whole) else { return waits };
        let dots = ["…", "...", "..…"].iter().any(|dots| start.starts_with(dots));
        let Some(points) = about::points(start, whole) else { return waits };
        let about = speaks || dots || about::goes_on(inside) || close.is_none() && points;
        // The text after the element decides, or the end of its line.
        let behind = close.map_or("", |(_, end)| inside[end..].trim_matches([' ', '\t']));
        let open = close.map_or(!inside.contains('\n'), |_| behind.is_empty());
        if self.whole && extent == Extent::Part && open {
            return Evidence::Waits;
        }
        if self.whole && !about && close.is_some_and(|(_, end)| about::within(&inside[end..])) {
            return Evidence::Text;
        }
        let beside = inside.starts_with([' ', '\t'])
            && !inside.trim_start_matches([' ', '\t']).starts_with(['\n', '\r']);
        if !about && (!beside || self.follows || extent == Extent::Window) {
            return Evidence::Structure;
        }
        match close {
            Some((_, end)) => match goes_on(&inside[end..], whole) {
                Some(false) => Evidence::Structure,
                Some(true) => Evidence::Text,
                None => waits,
            },
            None => waits,
        }
    }

    /// Returns whether the element closes, holds more than data in other elements, and nothing follows the
    /// structure.
    fn is_whole(&self, inside: &str) -> bool {
        let Some((at, _)) = close_of(inside, self.name) else { return false };
        let held = inside[..at].trim();
        let data = held.starts_with('<') && held.ends_with('>') && !held.starts_with("<!--");
        let Some((fence, _)) = self.fence else { return !data && closes(inside) };
        let mut place = 0;
        for line in inside.split_inclusive('\n') {
            if fence.is_closed_by_line(line) {
                return !data && closes(&inside[..place]) && inside[place + line.len()..].trim().is_empty();
            }
            place += line.len();
        }
        !data && closes(inside)
    }
}

/// Longest tag, in bytes.
const TAG: usize = 1 << 10;

/// Returns whether a text ends with a closing tag or a comment.
fn closes(text: &str) -> bool {
    let text = text.trim_end();
    text.ends_with("-->")
        || text.ends_with('>') && text.rfind('<').is_some_and(|at| text[at..].starts_with("</"))
}

/// Finds the first closing tag of this name: its start and end.
fn close_of(text: &str, name: &str) -> Option<(usize, usize)> {
    text.match_indices("</").find_map(|(at, _)| {
        let rest = text.get(at + 2..at + 2 + name.len()).filter(|found| found.eq_ignore_ascii_case(name));
        let behind = &text[at + 2 + rest?.len()..];
        let end = behind.find('>').filter(|&end| behind[..end].trim().is_empty())?;
        Some((at, text.len() - behind.len() + end + 1))
    })
}

/// Returns whether a sentence continues after an element; `None` if more text must arrive first.
fn goes_on(behind: &str, whole: bool) -> Option<bool> {
    let text = behind.trim_start_matches([' ', '\t']);
    let Some(next) = text.chars().next() else { return whole.then_some(false) };
    Some(!matches!(next, '\n' | '\r' | '<'))
}
