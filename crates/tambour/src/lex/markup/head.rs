//! Tolerant recogniser of one tag of a known name, character by character.
//!
//! The tag is on one line, with `<` or `＜`, `/` or `／`, `>` or `＞`, blanks between them, and a name in any
//! letter case. An opening tag may have attributes with values, whose names may be in any script; words
//! without a value are prose. The tag contains no second `<` or `＜`.
//!
//! Its closing bracket may be missing if a line break or the next `<` or `＜` follows the name, the attributes
//! or the slash, with or without blanks between: always in a closing tag, in an opening one only if nothing
//! but blanks and tags precedes it on its line. So prose that names a tag contains none.

use super::names::{NamePrefix, TagNames, is_name_char, starts_name};
use super::token::{TagFault, TagFaults};

/// State of the tag read so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct TagHead {
    part: HeadPart,
    /// True if it is a closing tag.
    pub(super) is_closing: bool,
    pub(super) faults: TagFaults,
    /// True if nothing but blanks and tags precedes it on its line.
    is_first_on_line: bool,
    /// True if an attribute has a value.
    has_value: bool,
    name: NamePrefix,
}

/// Position of the last character in the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeadPart {
    Bracket,
    Slash,
    Name,
    /// After the name or an attribute value, and blanks.
    Space,
    Attribute,
    AfterAttribute,
    Equals,
    Quoted(char),
    Unquoted,
    SelfSlash,
}

/// Effect of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeadStep {
    Continue,
    /// Ends the tag and belongs to it.
    End,
    /// Ends the tag, whose closing bracket is missing.
    MissingBracket,
    /// Does not fit: the characters before it are text.
    Mismatch,
}

impl TagNames {
    /// Returns whether a token that is unfinished at the end of a reply is the beginning of a tag of one of
    /// those names: a bracket followed by at least a slash or a letter of the name. Words without a value
    /// behind the name are prose.
    #[must_use]
    pub fn starts_tag(&self, carry: &str) -> bool {
        let mut chars = carry.chars();
        let Some(bracket) = chars.next().filter(|c| matches!(c, '<' | '＜')) else { return false };
        let mut head = TagHead::new(bracket, false, self);
        chars.all(|c| head.step(c, self) == HeadStep::Continue) && head.is_unfinished_tag()
    }
}

impl TagHead {
    /// Starts behind the first bracket.
    pub(super) fn new(bracket: char, is_first_on_line: bool, names: &TagNames) -> TagHead {
        let head = TagHead {
            part: HeadPart::Bracket,
            is_closing: false,
            faults: TagFaults::NONE,
            is_first_on_line,
            has_value: false,
            name: names.empty_prefix(),
        };
        head.note_full_width(bracket)
    }

    /// Reads the next character.
    pub(super) fn step(&mut self, c: char, names: &TagNames) -> HeadStep {
        let space = matches!(c, ' ' | '\t');
        match self.part {
            HeadPart::Bracket | HeadPart::Slash if space => {
                self.faults = self.faults.with_fault(TagFault::Blanks);
                HeadStep::Continue
            }
            HeadPart::Bracket if is_slash(c) => {
                self.is_closing = true;
                self.enter(HeadPart::Slash, c)
            }
            HeadPart::Bracket | HeadPart::Slash => self.read_name(c, names),
            HeadPart::Name if is_name_char(c) => self.read_name(c, names),
            HeadPart::Name if !names.is_complete(self.name) => HeadStep::Mismatch,
            HeadPart::Name | HeadPart::Space => match c {
                '/' | '／' if !self.is_closing => self.enter(HeadPart::SelfSlash, c),
                c if starts_name(c) && !self.is_closing => self.enter(HeadPart::Attribute, c),
                _ if space => self.enter(HeadPart::Space, c),
                _ => self.end_tag(c),
            },
            HeadPart::Attribute if is_name_char(c) => HeadStep::Continue,
            HeadPart::Attribute | HeadPart::AfterAttribute => match c {
                '=' => self.enter(HeadPart::Equals, c),
                _ if space => self.enter(HeadPart::AfterAttribute, c),
                _ => HeadStep::Mismatch,
            },
            HeadPart::Equals => match c {
                '"' | '\'' => self.enter(HeadPart::Quoted(c), c),
                '>' | '＞' | '<' | '＜' | '=' | '`' | '\n' | '\r' => HeadStep::Mismatch,
                _ if space => HeadStep::Continue,
                _ => self.enter(HeadPart::Unquoted, ' '),
            },
            HeadPart::Quoted(quote) => match c {
                c if c == quote => self.enter(HeadPart::Space, c),
                '<' | '＜' | '\n' | '\r' => HeadStep::Mismatch,
                _ => HeadStep::Continue,
            },
            HeadPart::Unquoted => match c {
                '"' | '\'' | '=' | '`' => HeadStep::Mismatch,
                '>' | '＞' | '<' | '＜' | '\n' | '\r' => self.end_tag(c),
                _ if space => self.enter(HeadPart::Space, c),
                _ => HeadStep::Continue,
            },
            HeadPart::SelfSlash if space => {
                self.faults = self.faults.with_fault(TagFault::Blanks);
                HeadStep::Continue
            }
            HeadPart::SelfSlash => self.end_tag(c),
        }
    }

    /// Length of the name in bytes.
    pub(super) fn name_len(&self) -> usize {
        self.name.len()
    }

    fn is_unfinished_tag(&self) -> bool {
        match self.part {
            HeadPart::Bracket => false,
            HeadPart::Attribute | HeadPart::AfterAttribute => self.has_value,
            _ => true,
        }
    }

    fn enter(&mut self, part: HeadPart, c: char) -> HeadStep {
        *self = TagHead {
            part,
            has_value: self.has_value || part == HeadPart::Equals,
            ..self.note_full_width(c)
        };
        HeadStep::Continue
    }

    fn read_name(&mut self, c: char, names: &TagNames) -> HeadStep {
        match names.extend_prefix(self.name, c) {
            Some(prefix) => {
                (self.part, self.name) = (HeadPart::Name, prefix);
                HeadStep::Continue
            }
            None => HeadStep::Mismatch,
        }
    }

    fn end_tag(&mut self, c: char) -> HeadStep {
        match c {
            '>' | '＞' => {
                *self = self.note_full_width(c);
                HeadStep::End
            }
            '\n' | '\r' | '<' | '＜' if self.is_closing || self.is_first_on_line => {
                self.faults = self.faults.with_fault(TagFault::MissingBracket);
                HeadStep::MissingBracket
            }
            _ => HeadStep::Mismatch,
        }
    }

    fn note_full_width(self, c: char) -> TagHead {
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
