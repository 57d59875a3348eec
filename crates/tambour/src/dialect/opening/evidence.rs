//! Evidence that a tag begins a structure and is not only mentioned in a text.
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
    /// Offset after the tag, in bytes.
    pub(super) end: usize,
    /// Set if the element holds the answer or must precede all text.
    pub(super) is_leading: bool,
    /// Set if the element is read whole before any of its text is emitted.
    pub(super) is_block: bool,
    /// Set if prose precedes the tag.
    pub(super) has_prose_before: bool,
    /// Set if an element of the structure precedes the tag.
    pub(super) follows_structure: bool,
    /// The fence around the tag; the flag is set if the language of the fence has the same tags with another
    /// meaning.
    pub(super) fence: Option<(Fence, bool)>,
}

/// Current evidence about a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TagEvidence {
    /// The tag begins a structure.
    Structure,
    /// More text decides.
    NeedsMore,
    /// The tag is part of a text.
    Text,
}

impl TagCandidate {
    /// Evaluates the text before and after the tag, as far as it was received.
    pub(super) fn evidence(&self, text: &str, extent: PrefixExtent) -> TagEvidence {
        let is_whole = extent == PrefixExtent::All;
        let undecided = if is_whole { TagEvidence::Text } else { TagEvidence::NeedsMore };
        let content = &text[self.end..];
        let trimmed = content.trim_start();
        let is_partial_tag =
            trimmed.starts_with('<') && !trimmed.contains('>') && trimmed.len() < MAX_TAG_BYTES;
        if trimmed.is_empty() || is_partial_tag && !is_whole {
            return undecided;
        }
        let close = find_close(content, self.name);
        if close.is_some_and(|(at, _)| content[..at].trim().is_empty()) {
            // The element is empty.
            return TagEvidence::Text;
        }
        // Prose before a fence, or a language with the same tags, makes the content of the fence an example.
        let is_example = self.fence.is_some_and(|(_, is_foreign)| self.has_prose_before || is_foreign);
        // Prose before a leading element makes the element an example, unless the structure began before it.
        let is_too_late = self.is_leading && self.has_prose_before && !self.follows_structure;
        if is_example || is_too_late {
            let is_complete =
                is_whole && (self.follows_structure || !is_example) && self.is_complete_reply(content);
            return if is_complete { TagEvidence::Structure } else { undecided };
        }
        let Some(is_sentence) = tag_sentence::continues_sentence(content, is_whole) else { return undecided };
        let starts_with_dots = ["…", "...", "..…"].iter().any(|dots| trimmed.starts_with(dots));
        let Some(is_reference) = tag_sentence::refers_to_tag(trimmed, is_whole) else { return undecided };
        let is_about_tag = is_sentence
            || starts_with_dots
            || tag_sentence::starts_lowercase(content)
            || close.is_none() && is_reference;
        // For a block, the text after its element decides; while the element is unclosed, the rest of the
        // tag's line does.
        let after = close.map_or("", |(_, end)| content[end..].trim_matches([' ', '\t']));
        let is_line_open = close.map_or(!content.contains('\n'), |_| after.is_empty());
        if self.is_block && extent == PrefixExtent::Part && is_line_open {
            return TagEvidence::NeedsMore;
        }
        if self.is_block
            && !is_about_tag
            && close.is_some_and(|(_, end)| tag_sentence::is_within_sentence(&content[end..]))
        {
            return TagEvidence::Text;
        }
        // Text on the line of the tag makes a structure doubtful until its element is closed, unless the
        // structure began before it, or the window is full and a decision is due.
        let shares_line = content.starts_with([' ', '\t'])
            && !content.trim_start_matches([' ', '\t']).starts_with(['\n', '\r']);
        if !is_about_tag && (!shares_line || self.follows_structure || extent == PrefixExtent::Window) {
            return TagEvidence::Structure;
        }
        match close {
            Some((_, end)) => match continues_line(&content[end..], is_whole) {
                Some(false) => TagEvidence::Structure,
                Some(true) => TagEvidence::Text,
                None => undecided,
            },
            None => undecided,
        }
    }

    /// Returns whether the element is closed, holds more than other elements, and belongs to a structure that
    /// nothing follows.
    fn is_complete_reply(&self, content: &str) -> bool {
        let Some((at, _)) = find_close(content, self.name) else { return false };
        let element_text = content[..at].trim();
        let holds_only_elements =
            element_text.starts_with('<') && element_text.ends_with('>') && !element_text.starts_with("<!--");
        if holds_only_elements {
            return false;
        }
        let Some((fence, _)) = self.fence else { return ends_with_close(content) };
        let mut line_start = 0;
        for line in content.split_inclusive('\n') {
            if fence.is_closed_by_line(line) {
                return ends_with_close(&content[..line_start])
                    && content[line_start + line.len()..].trim().is_empty();
            }
            line_start += line.len();
        }
        ends_with_close(content)
    }
}

/// Maximum length in bytes of a tag whose end is awaited.
const MAX_TAG_BYTES: usize = 1 << 10;

/// Returns whether a text ends with a closing tag or a comment.
fn ends_with_close(text: &str) -> bool {
    let text = text.trim_end();
    text.ends_with("-->")
        || text.ends_with('>') && text.rfind('<').is_some_and(|at| text[at..].starts_with("</"))
}

/// Finds the first closing tag of this name, in any letter case: its start and end.
fn find_close(text: &str, name: &str) -> Option<(usize, usize)> {
    text.match_indices("</").find_map(|(at, _)| {
        let name_start = at + "</".len();
        let found_name = text.get(name_start..name_start + name.len())?;
        if !found_name.eq_ignore_ascii_case(name) {
            return None;
        }
        let after_name = &text[name_start + name.len()..];
        let end = after_name.find('>').filter(|&end| after_name[..end].trim().is_empty())?;
        Some((at, text.len() - after_name.len() + end + 1))
    })
}

/// Returns whether text follows an element on the same line; `None` if more text must arrive first.
fn continues_line(text_after: &str, is_whole: bool) -> Option<bool> {
    let text = text_after.trim_start_matches([' ', '\t']);
    let Some(first) = text.chars().next() else { return is_whole.then_some(false) };
    Some(!matches!(first, '\n' | '\r' | '<'))
}
