//! Evidence that a tag begins a structure and is not a word of a text about it.
//!
//! A tag with nothing before it, and with its text right after it or on the next line, begins a structure,
//! and its text streams. Text that reads as a sentence about the tag, prose before it, or a fence with prose
//! before it make it an example, unless the whole reply has the shape of the structure.

use super::PrefixExtent;
use crate::lex::fence::Fence;
use crate::lex::tag_sentence;

/// A tag that may decide the dialect.
#[derive(Clone, Copy, Debug)]
pub(super) struct TagCandidate {
    pub(super) dialect: &'static str,
    pub(super) name: &'static str,
    /// Offset after the tag.
    pub(super) end: usize,
    /// Set if the tag holds the answer or precedes all of it.
    pub(super) is_leading: bool,
    /// Set if the element is read whole, so that its text does not stream.
    pub(super) is_block: bool,
    /// Set if prose precedes the tag.
    pub(super) has_prose_before: bool,
    /// Set if an element of the structure precedes the tag.
    pub(super) follows_structure: bool,
    /// The fence around the tag, and whether that fence is also used for another vocabulary.
    pub(super) fence: Option<(Fence, bool)>,
}

/// Current evidence about a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TagEvidence {
    Structure,
    NeedsMore,
    Text,
}

impl TagCandidate {
    /// Evaluates the text so far.
    pub(super) fn evidence(&self, text: &str, extent: PrefixExtent) -> TagEvidence {
        let whole = extent == PrefixExtent::All;
        let waits = if whole { TagEvidence::Text } else { TagEvidence::NeedsMore };
        let inside = &text[self.end..];
        let start = inside.trim_start();
        let part = start.starts_with('<') && !start.contains('>') && start.len() < MAX_TAG_BYTES;
        if start.is_empty() || part && !whole {
            return waits;
        }
        let close = find_close(inside, self.name);
        if close.is_some_and(|(at, _)| inside[..at].trim().is_empty()) {
            // The element is empty.
            return TagEvidence::Text;
        }
        let example = self.fence.is_some_and(|(_, foreign)| self.has_prose_before || foreign);
        if example || self.is_leading && self.has_prose_before && !self.follows_structure {
            let complete = whole && (self.follows_structure || !example) && self.is_complete_reply(inside);
            return if complete { TagEvidence::Structure } else { waits };
        }
        let Some(speaks) = tag_sentence::continues_sentence(inside, whole) else { return waits };
        let dots = ["…", "...", "..…"].iter().any(|dots| start.starts_with(dots));
        let Some(points) = tag_sentence::refers_to_tag(start, whole) else { return waits };
        let about = speaks || dots || tag_sentence::starts_lowercase(inside) || close.is_none() && points;
        // The text after the element decides, or the end of its line.
        let behind = close.map_or("", |(_, end)| inside[end..].trim_matches([' ', '\t']));
        let open = close.map_or(!inside.contains('\n'), |_| behind.is_empty());
        if self.is_block && extent == PrefixExtent::Part && open {
            return TagEvidence::NeedsMore;
        }
        if self.is_block
            && !about
            && close.is_some_and(|(_, end)| tag_sentence::is_within_sentence(&inside[end..]))
        {
            return TagEvidence::Text;
        }
        let beside = inside.starts_with([' ', '\t'])
            && !inside.trim_start_matches([' ', '\t']).starts_with(['\n', '\r']);
        if !about && (!beside || self.follows_structure || extent == PrefixExtent::Window) {
            return TagEvidence::Structure;
        }
        match close {
            Some((_, end)) => match continues_sentence(&inside[end..], whole) {
                Some(false) => TagEvidence::Structure,
                Some(true) => TagEvidence::Text,
                None => waits,
            },
            None => waits,
        }
    }

    /// Returns whether the element closes, holds more than data in other elements, and nothing follows the
    /// structure.
    fn is_complete_reply(&self, inside: &str) -> bool {
        let Some((at, _)) = find_close(inside, self.name) else { return false };
        let held = inside[..at].trim();
        let data = held.starts_with('<') && held.ends_with('>') && !held.starts_with("<!--");
        let Some((fence, _)) = self.fence else { return !data && ends_with_close(inside) };
        let mut place = 0;
        for line in inside.split_inclusive('\n') {
            if fence.is_closed_by_line(line) {
                return !data
                    && ends_with_close(&inside[..place])
                    && inside[place + line.len()..].trim().is_empty();
            }
            place += line.len();
        }
        !data && ends_with_close(inside)
    }
}

/// Longest tag, in bytes.
const MAX_TAG_BYTES: usize = 1 << 10;

/// Returns whether a text ends with a closing tag or a comment.
fn ends_with_close(text: &str) -> bool {
    let text = text.trim_end();
    text.ends_with("-->")
        || text.ends_with('>') && text.rfind('<').is_some_and(|at| text[at..].starts_with("</"))
}

/// Finds the first closing tag of this name: its start and end.
fn find_close(text: &str, name: &str) -> Option<(usize, usize)> {
    text.match_indices("</").find_map(|(at, _)| {
        let rest = text.get(at + 2..at + 2 + name.len()).filter(|found| found.eq_ignore_ascii_case(name));
        let behind = &text[at + 2 + rest?.len()..];
        let end = behind.find('>').filter(|&end| behind[..end].trim().is_empty())?;
        Some((at, text.len() - behind.len() + end + 1))
    })
}

/// Returns whether a sentence continues after an element; `None` if more text must arrive first.
fn continues_sentence(behind: &str, whole: bool) -> Option<bool> {
    let text = behind.trim_start_matches([' ', '\t']);
    let Some(next) = text.chars().next() else { return whole.then_some(false) };
    Some(!matches!(next, '\n' | '\r' | '<'))
}
