//! Tolerant recogniser of one tag of a known name, character by character.
//!
//! The tag is on one line, with `<` or `＜`, `/` or `／`, `>` or `＞`, blanks between them, and a name in any
//! letter case. An opening tag may have attributes with values, whose names may be in any script. If a word
//! without a value follows the name, the text is prose and no tag. The tag contains no second `<` or `＜`.
//!
//! The closing bracket may be missing if a line break or the next `<` or `＜` follows the name, the attributes
//! or the slash, with or without blanks between. An opening tag may lack it only if, besides, nothing but
//! blanks and tags precedes the tag on its line. So the name of a tag in a sentence is not read as a tag.

use super::names::{NamePrefix, TagNames, is_name_char, starts_name};
use super::token::{TagFault, TagFaults};

/// Head of a tag: its state as far as it has been read, from the opening bracket on.
#[derive(Clone, Copy, Debug)]
pub(super) struct TagHead {
    /// Position reached.
    position: HeadPosition,
    /// True if it is a closing tag.
    pub(super) is_closing: bool,
    /// Faults so far, except for the letter case of the name.
    pub(super) faults: TagFaults,
    /// True if nothing but blanks and tags precedes it on its line.
    is_first_on_line: bool,
    /// True if an attribute has a value, or at least its `=`.
    has_value: bool,
    /// Name as far as it is read.
    name: NamePrefix,
}

/// Position of the last character in the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeadPosition {
    /// After the opening bracket and blanks.
    Bracket,
    /// After the slash of a closing tag and blanks.
    Slash,
    /// In the name.
    Name,
    /// After the name or an attribute value, and blanks.
    Space,
    /// In an attribute name.
    Attribute,
    /// After an attribute name and blanks.
    AfterAttribute,
    /// After `=` and blanks.
    Equals,
    /// In an attribute value in these quotes.
    Quoted(char),
    /// In an attribute value without quotes.
    Unquoted,
    /// After the slash of a self-closing tag and blanks.
    SelfSlash,
}

/// Effect of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeadStep {
    /// Belongs to the tag, which continues.
    Continue,
    /// Ends the tag and belongs to it.
    End,
    /// Ends the tag, whose closing bracket is missing, and does not belong to it.
    MissingBracket,
    /// Does not fit: the characters before it are text.
    Mismatch,
}

impl TagNames {
    /// Returns whether a token that is unfinished at the end of a reply is the beginning of a tag of one of
    /// these names: a bracket followed by at least a slash or a letter of the name. If words without a
    /// value follow the name, it is prose.
    #[must_use]
    pub fn starts_tag(&self, carry: &str) -> bool {
        let mut chars = carry.chars();
        let Some(bracket) = chars.next().filter(|c| matches!(c, '<' | '＜')) else { return false };
        // Matters only where a tag ends, and this one has not ended.
        let is_first_on_line = false;
        let mut head = TagHead::new(bracket, is_first_on_line, self);
        chars.all(|c| head.step(c, self) == HeadStep::Continue) && head.is_unfinished_tag()
    }
}

impl TagHead {
    /// Starts a tag after its opening bracket.
    pub(super) fn new(bracket: char, is_first_on_line: bool, names: &TagNames) -> TagHead {
        let head = TagHead {
            position: HeadPosition::Bracket,
            is_closing: false,
            faults: TagFaults::NONE,
            is_first_on_line,
            has_value: false,
            name: names.empty_prefix(),
        };
        head.with_width_fault(bracket)
    }

    /// Reads the next character. Must not be called again once the tag has ended or failed.
    pub(super) fn step(&mut self, c: char, names: &TagNames) -> HeadStep {
        let is_blank = matches!(c, ' ' | '\t');
        match self.position {
            HeadPosition::Bracket | HeadPosition::Slash if is_blank => {
                self.faults = self.faults.with_fault(TagFault::Blanks);
                HeadStep::Continue
            }
            HeadPosition::Bracket if is_slash(c) => {
                self.is_closing = true;
                self.enter(HeadPosition::Slash, c)
            }
            HeadPosition::Bracket | HeadPosition::Slash => self.read_name(c, names),
            HeadPosition::Name if is_name_char(c) => self.read_name(c, names),
            HeadPosition::Name if !names.is_complete(self.name) => HeadStep::Mismatch,
            HeadPosition::Name | HeadPosition::Space => match c {
                '/' | '／' if !self.is_closing => self.enter(HeadPosition::SelfSlash, c),
                c if starts_name(c) && !self.is_closing => self.enter(HeadPosition::Attribute, c),
                _ if is_blank => self.enter(HeadPosition::Space, c),
                _ => self.end_tag(c),
            },
            HeadPosition::Attribute if is_name_char(c) => HeadStep::Continue,
            HeadPosition::Attribute | HeadPosition::AfterAttribute => match c {
                '=' => self.enter(HeadPosition::Equals, c),
                _ if is_blank => self.enter(HeadPosition::AfterAttribute, c),
                _ => HeadStep::Mismatch,
            },
            HeadPosition::Equals => match c {
                '"' | '\'' => self.enter(HeadPosition::Quoted(c), c),
                '>' | '＞' | '<' | '＜' | '=' | '`' | '\n' | '\r' => HeadStep::Mismatch,
                _ if is_blank => HeadStep::Continue,
                // A full-width character in a value is no fault, so a blank is passed in its place.
                _ => self.enter(HeadPosition::Unquoted, ' '),
            },
            HeadPosition::Quoted(quote) => match c {
                c if c == quote => self.enter(HeadPosition::Space, c),
                '<' | '＜' | '\n' | '\r' => HeadStep::Mismatch,
                _ => HeadStep::Continue,
            },
            HeadPosition::Unquoted => match c {
                '"' | '\'' | '=' | '`' => HeadStep::Mismatch,
                '>' | '＞' | '<' | '＜' | '\n' | '\r' => self.end_tag(c),
                _ if is_blank => self.enter(HeadPosition::Space, c),
                _ => HeadStep::Continue,
            },
            HeadPosition::SelfSlash if is_blank => {
                self.faults = self.faults.with_fault(TagFault::Blanks);
                HeadStep::Continue
            }
            HeadPosition::SelfSlash => self.end_tag(c),
        }
    }

    /// Length of the name in bytes.
    pub(super) fn name_len(&self) -> usize {
        self.name.len()
    }

    /// Returns whether the text read so far, which ends here, is a tag rather than prose.
    fn is_unfinished_tag(&self) -> bool {
        match self.position {
            HeadPosition::Bracket => false,
            HeadPosition::Attribute | HeadPosition::AfterAttribute => self.has_value,
            _ => true,
        }
    }

    /// Moves to `position` with the character `c`.
    fn enter(&mut self, position: HeadPosition, c: char) -> HeadStep {
        *self = TagHead {
            position,
            has_value: self.has_value || position == HeadPosition::Equals,
            ..self.with_width_fault(c)
        };
        HeadStep::Continue
    }

    /// Reads a character of the name.
    fn read_name(&mut self, c: char, names: &TagNames) -> HeadStep {
        match names.extend_prefix(self.name, c) {
            Some(prefix) => {
                (self.position, self.name) = (HeadPosition::Name, prefix);
                HeadStep::Continue
            }
            None => HeadStep::Mismatch,
        }
    }

    /// Reads a character with which the tag must end.
    fn end_tag(&mut self, c: char) -> HeadStep {
        match c {
            '>' | '＞' => {
                *self = self.with_width_fault(c);
                HeadStep::End
            }
            '\n' | '\r' | '<' | '＜' if self.is_closing || self.is_first_on_line => {
                self.faults = self.faults.with_fault(TagFault::MissingBracket);
                HeadStep::MissingBracket
            }
            _ => HeadStep::Mismatch,
        }
    }

    /// This state with [`TagFault::FullWidth`] added if `c` is a full-width bracket or slash.
    fn with_width_fault(self, c: char) -> TagHead {
        let is_wide = matches!(c, '＜' | '＞' | '／');
        TagHead {
            faults: if is_wide { self.faults.with_fault(TagFault::FullWidth) } else { self.faults },
            ..self
        }
    }
}

fn is_slash(c: char) -> bool {
    matches!(c, '/' | '／')
}
