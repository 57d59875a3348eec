//! Transitions within an unfinished token, byte by byte.

use super::token::{is_attribute_name, is_attribute_start};
use crate::lex::marks::{Mark, Seen, Word, is_name};

/// Position inside an unfinished token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Text,
    Lt,
    Bang(u8),
    Mark(usize),
    Word(Word),
    Slash,
    Name,
    Space,
    AttributeName,
    AfterAttributeName,
    Equals,
    Quoted(u8),
    Unquoted,
    SelfSlash,
    Dashes(u8),
    /// `--!` in a comment.
    DashesBang,
    /// Directly behind `<!--`; `true` after one dash there.
    Opened(bool),
}

pub(super) enum Step {
    Go(State),
    /// The byte ends the token and belongs to it.
    Tag,
    CommentOpen,
    CommentClose,
    /// An end of a comment that only HTML knows.
    CommentEnd,
    Mark,
    Reasoning(Mark),
    /// The byte does not fit: the bytes before it are text.
    Text,
}

/// Settings of the syntax.
#[derive(Clone, Debug)]
pub(super) struct Syntax {
    /// A literal that begins with `<<`, or empty.
    pub(super) mark: &'static str,
    /// Most bytes of a tag.
    pub(super) limit: usize,
    /// True if reasoning marks that are not tags are tokens.
    pub(super) reasoning: bool,
    pub(super) in_comment: bool,
    /// True if comments end as in HTML.
    pub(super) html: bool,
}

impl State {
    /// Applies one byte to an unfinished token of `len` bytes.
    #[inline]
    pub(super) fn step(&self, byte: u8, len: usize, syntax: &Syntax) -> Step {
        let inside_character = (0x80..0xC0).contains(&byte);
        if len >= syntax.limit && !inside_character {
            return Step::Text;
        }
        let space = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        match *self {
            State::Text => Step::Text,
            State::Lt => match byte {
                b'/' => Step::Go(State::Slash),
                b'!' => Step::Go(State::Bang(0)),
                b'<' if !syntax.mark.is_empty() => Step::Go(State::Mark(2)),
                b'|' if syntax.reasoning && !syntax.in_comment => {
                    Step::Go(State::Word(Word::default().after(b'<').after(b'|')))
                }
                b if b.is_ascii_alphabetic() => Step::Go(State::Name),
                _ => Step::Text,
            },
            State::Bang(dashes) => match (byte, dashes) {
                (b'-', 0) => Step::Go(State::Bang(1)),
                (b'-', _) => Step::CommentOpen,
                _ => Step::Text,
            },
            State::Mark(matched) => {
                if syntax.mark.as_bytes().get(matched) != Some(&byte) {
                    Step::Text
                } else if matched + 1 == syntax.mark.len() {
                    Step::Mark
                } else {
                    Step::Go(State::Mark(matched + 1))
                }
            }
            State::Word(mut word) => match word.byte(byte) {
                Seen::No => Step::Text,
                Seen::Part => Step::Go(State::Word(word)),
                Seen::Mark(mark, _) => Step::Reasoning(mark),
            },
            State::Slash if byte.is_ascii_alphabetic() => Step::Go(State::Name),
            State::Slash => Step::Text,
            State::Name => match byte {
                b'>' => Step::Tag,
                b'/' => Step::Go(State::SelfSlash),
                // `-->` ends a comment even directly behind a name.
                b'-' if syntax.in_comment => Step::Text,
                b if is_name(b) => Step::Go(State::Name),
                _ if space => Step::Go(State::Space),
                _ => Step::Text,
            },
            State::Space | State::AfterAttributeName => match byte {
                b'>' => Step::Tag,
                b'/' => Step::Go(State::SelfSlash),
                b'=' if *self == State::AfterAttributeName => Step::Go(State::Equals),
                b if is_attribute_start(b) => Step::Go(State::AttributeName),
                _ if space => Step::Go(*self),
                _ => Step::Text,
            },
            State::AttributeName => match byte {
                b'>' => Step::Tag,
                b'/' => Step::Go(State::SelfSlash),
                b'=' => Step::Go(State::Equals),
                b'-' if syntax.in_comment => Step::Text,
                b if is_attribute_name(b) => Step::Go(State::AttributeName),
                _ if space => Step::Go(State::AfterAttributeName),
                _ => Step::Text,
            },
            State::Equals => match byte {
                b'"' | b'\'' => Step::Go(State::Quoted(byte)),
                b'<' | b'>' | b'=' | b'`' => Step::Text,
                _ if space => Step::Go(State::Equals),
                _ => Step::Go(State::Unquoted),
            },
            State::Quoted(quote) => match byte {
                b if b == quote => Step::Go(State::Space),
                b'<' => Step::Text,
                _ => Step::Go(*self),
            },
            State::Unquoted => match byte {
                b'>' => Step::Tag,
                b'<' | b'"' | b'\'' | b'=' | b'`' => Step::Text,
                _ if space => Step::Go(State::Space),
                _ => Step::Go(State::Unquoted),
            },
            State::SelfSlash if byte == b'>' => Step::Tag,
            State::SelfSlash => Step::Text,
            State::Dashes(seen) => match byte {
                b'-' => Step::Go(State::Dashes(2)),
                b'>' if seen == 2 => Step::CommentClose,
                b'!' if seen == 2 && syntax.html => Step::Go(State::DashesBang),
                _ => Step::Text,
            },
            State::DashesBang => match byte {
                b'>' => Step::CommentEnd,
                b'-' => Step::Go(State::Dashes(1)),
                _ => Step::Text,
            },
            State::Opened(dash) => match byte {
                b'>' => Step::CommentEnd,
                b'-' if dash => Step::Go(State::Dashes(2)),
                b'-' => Step::Go(State::Opened(true)),
                _ => Step::Text,
            },
        }
    }
}
