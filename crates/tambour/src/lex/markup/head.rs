//! Tolerant recogniser of one tag of a known name, character by character.
//!
//! The tag is on one line, with `<` or `＜`, `/` or `／`, `>` or `＞`, blanks between them, and a name in any
//! letter case. An opening tag may have attributes with values, whose names may be in any script; words
//! without a value are prose. The tag contains no second `<` or `＜`.
//!
//! Its closing bracket may be missing if a line break or the next `<` or `＜` follows the name, the attributes
//! or the slash, with or without blanks between: always in a closing tag, in an opening one only if nothing
//! but blanks and tags precedes it on its line. So prose that names a tag contains none.

use super::names::{Fit, Names, is_name_char, starts_name};
use super::slip::{Slip, Slips};

/// State of the tag read so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    part: Part,
    /// True if it is a closing tag.
    pub(super) close: bool,
    pub(super) slips: Slips,
    /// True if nothing but blanks and tags precedes it on its line.
    leads: bool,
    /// True if an attribute has a value.
    valued: bool,
    fit: Fit,
}

/// Position of the last character in the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Bracket,
    Slash,
    Name,
    /// Behind the name or an attribute value, and blanks.
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
pub(super) enum Next {
    Go,
    /// Ends the tag and belongs to it.
    End,
    /// Ends the tag, whose closing bracket is missing.
    Missing,
    /// Does not fit: the characters before it are text.
    Text,
}

impl Names {
    /// Returns whether a token that is unfinished at the end of a reply is the beginning of a tag of one of
    /// those names: a bracket followed by at least a slash or a letter of the name. Words without a value
    /// behind the name are prose.
    #[must_use]
    pub fn begin(&self, carry: &str) -> bool {
        let mut chars = carry.chars();
        let Some(bracket) = chars.next().filter(|c| matches!(c, '<' | '＜')) else { return false };
        let mut head = Head::new(bracket, false, self);
        chars.all(|c| head.step(c, self) == Next::Go) && head.is_half()
    }
}

impl Head {
    /// Starts behind the first bracket.
    pub(super) fn new(bracket: char, leads: bool, names: &Names) -> Head {
        let head = Head {
            part: Part::Bracket,
            close: false,
            slips: Slips::NONE,
            leads,
            valued: false,
            fit: names.fit(),
        };
        head.wide(bracket)
    }

    /// Reads the next character.
    pub(super) fn step(&mut self, c: char, names: &Names) -> Next {
        let space = matches!(c, ' ' | '\t');
        match self.part {
            Part::Bracket | Part::Slash if space => {
                self.slips = self.slips.with(Slip::Blanks);
                Next::Go
            }
            Part::Bracket if is_slash(c) => {
                self.close = true;
                self.go(Part::Slash, c)
            }
            Part::Bracket | Part::Slash => self.name(c, names),
            Part::Name if is_name_char(c) => self.name(c, names),
            Part::Name if !names.is_whole(self.fit) => Next::Text,
            Part::Name | Part::Space => match c {
                '/' | '／' if !self.close => self.go(Part::SelfSlash, c),
                c if starts_name(c) && !self.close => self.go(Part::Attribute, c),
                _ if space => self.go(Part::Space, c),
                _ => self.end(c),
            },
            Part::Attribute if is_name_char(c) => Next::Go,
            Part::Attribute | Part::AfterAttribute => match c {
                '=' => self.go(Part::Equals, c),
                _ if space => self.go(Part::AfterAttribute, c),
                _ => Next::Text,
            },
            Part::Equals => match c {
                '"' | '\'' => self.go(Part::Quoted(c), c),
                '>' | '＞' | '<' | '＜' | '=' | '`' | '\n' | '\r' => Next::Text,
                _ if space => Next::Go,
                _ => self.go(Part::Unquoted, ' '),
            },
            Part::Quoted(quote) => match c {
                c if c == quote => self.go(Part::Space, c),
                '<' | '＜' | '\n' | '\r' => Next::Text,
                _ => Next::Go,
            },
            Part::Unquoted => match c {
                '"' | '\'' | '=' | '`' => Next::Text,
                '>' | '＞' | '<' | '＜' | '\n' | '\r' => self.end(c),
                _ if space => self.go(Part::Space, c),
                _ => Next::Go,
            },
            Part::SelfSlash if space => {
                self.slips = self.slips.with(Slip::Blanks);
                Next::Go
            }
            Part::SelfSlash => self.end(c),
        }
    }

    /// Length of the name in bytes.
    pub(super) fn name_len(&self) -> usize {
        self.fit.len()
    }

    fn is_half(&self) -> bool {
        match self.part {
            Part::Bracket => false,
            Part::Attribute | Part::AfterAttribute => self.valued,
            _ => true,
        }
    }

    fn go(&mut self, part: Part, c: char) -> Next {
        *self = Head { part, valued: self.valued || part == Part::Equals, ..self.wide(c) };
        Next::Go
    }

    fn name(&mut self, c: char, names: &Names) -> Next {
        match names.go_on(self.fit, c) {
            Some(fit) => {
                (self.part, self.fit) = (Part::Name, fit);
                Next::Go
            }
            None => Next::Text,
        }
    }

    fn end(&mut self, c: char) -> Next {
        match c {
            '>' | '＞' => {
                *self = self.wide(c);
                Next::End
            }
            '\n' | '\r' | '<' | '＜' if self.close || self.leads => {
                self.slips = self.slips.with(Slip::MissingBracket);
                Next::Missing
            }
            _ => Next::Text,
        }
    }

    fn wide(self, c: char) -> Head {
        let wide = matches!(c, '＜' | '＞' | '／');
        Head { slips: if wide { self.slips.with(Slip::FullWidth) } else { self.slips }, ..self }
    }
}

fn is_slash(c: char) -> bool {
    matches!(c, '/' | '／')
}
