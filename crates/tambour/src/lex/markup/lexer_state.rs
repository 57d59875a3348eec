//! Transitions within an unfinished token, byte by byte.

use super::token::{is_attribute_name_byte, is_attribute_start};
use crate::lex::marks::{LiteralMatcher, MarkMatch, ReasoningMark, is_name_byte};

/// Position inside an unfinished token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LexerState {
    /// Outside of any token but text.
    Text,
    /// After `<`.
    Lt,
    /// After `<!` and this many dashes, 0 or 1.
    Bang(u8),
    /// After this many bytes of the literal mark that the caller chose.
    Mark(usize),
    /// In a reasoning mark that is not a tag.
    ReasoningMark(LiteralMatcher),
    /// After `</`.
    Slash,
    /// In the name of a tag.
    Name,
    /// In white space after the name or an attribute value.
    Space,
    /// In the name of an attribute.
    AttributeName,
    /// In white space after the name of an attribute.
    AfterAttributeName,
    /// After `=` and white space.
    Equals,
    /// In an attribute value in these quotes.
    Quoted(u8),
    /// In an attribute value without quotes.
    Unquoted,
    /// After the `/` of a self-closing tag.
    SelfSlash,
    /// After this many dashes in a comment, 1 or 2; more count as 2.
    Dashes(u8),
    /// After `--!` in a comment.
    DashesBang,
    /// Directly after `<!--`, or after one dash there.
    CommentStart { has_dash: bool },
}

/// Effect of a byte on an unfinished token.
pub(super) enum LexerStep {
    /// The byte belongs to the token, which continues in this state.
    Continue(LexerState),
    // With each of the next steps the byte ends a token of this kind and belongs to it.
    Tag,
    CommentOpen,
    CommentClose,
    /// An end of a comment other than `-->`, as HTML allows it.
    HtmlCommentClose,
    Mark,
    Reasoning(ReasoningMark),
    /// The byte does not fit: the bytes before it are text.
    Mismatch,
}

/// Settings of the syntax, and whether a comment is open: some marks mean nothing inside one.
#[derive(Clone, Debug)]
pub(super) struct MarkupSyntax {
    /// A literal mark that begins with `<<`, such as `<<ParsingError>>`, or empty.
    pub(super) mark: &'static str,
    /// Maximum length of a tag in bytes.
    pub(super) limit: usize,
    /// True if reasoning marks that are not tags are tokens.
    pub(super) reads_reasoning: bool,
    /// True inside a comment.
    pub(super) is_in_comment: bool,
    /// True if comments end as in HTML.
    pub(super) has_html_comments: bool,
}

impl LexerState {
    /// Applies the next byte to an unfinished token, which has `len` bytes before it.
    #[inline]
    pub(super) fn step(&self, byte: u8, len: usize, syntax: &MarkupSyntax) -> LexerStep {
        // A token is not cut inside a character.
        let is_inside_character = (0x80..0xC0).contains(&byte);
        if len >= syntax.limit && !is_inside_character {
            return LexerStep::Mismatch;
        }
        let is_space = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        match *self {
            LexerState::Text => LexerStep::Mismatch,
            LexerState::Lt => match byte {
                b'/' => LexerStep::Continue(LexerState::Slash),
                b'!' => LexerStep::Continue(LexerState::Bang(0)),
                b'<' if !syntax.mark.is_empty() => LexerStep::Continue(LexerState::Mark(2)),
                b'|' if syntax.reads_reasoning && !syntax.is_in_comment => LexerStep::Continue(
                    LexerState::ReasoningMark(LiteralMatcher::default().with_byte(b'<').with_byte(b'|')),
                ),
                // Not `is_name_byte`: a name begins with a letter (T-028).
                b if b.is_ascii_alphabetic() => LexerStep::Continue(LexerState::Name),
                _ => LexerStep::Mismatch,
            },
            LexerState::Bang(dashes) => match (byte, dashes) {
                (b'-', 0) => LexerStep::Continue(LexerState::Bang(1)),
                (b'-', _) => LexerStep::CommentOpen,
                _ => LexerStep::Mismatch,
            },
            LexerState::Mark(matched_len) => {
                if syntax.mark.as_bytes().get(matched_len) != Some(&byte) {
                    LexerStep::Mismatch
                } else if matched_len + 1 == syntax.mark.len() {
                    LexerStep::Mark
                } else {
                    LexerStep::Continue(LexerState::Mark(matched_len + 1))
                }
            }
            LexerState::ReasoningMark(mut matcher) => match matcher.push(byte) {
                MarkMatch::Mismatch => LexerStep::Mismatch,
                MarkMatch::Prefix => LexerStep::Continue(LexerState::ReasoningMark(matcher)),
                MarkMatch::Mark(mark, _) => LexerStep::Reasoning(mark),
            },
            LexerState::Slash if byte.is_ascii_alphabetic() => LexerStep::Continue(LexerState::Name),
            LexerState::Slash => LexerStep::Mismatch,
            LexerState::Name => match byte {
                b'>' => LexerStep::Tag,
                b'/' => LexerStep::Continue(LexerState::SelfSlash),
                // `-->` ends a comment even directly after a name.
                b'-' if syntax.is_in_comment => LexerStep::Mismatch,
                b if is_name_byte(b) => LexerStep::Continue(LexerState::Name),
                _ if is_space => LexerStep::Continue(LexerState::Space),
                _ => LexerStep::Mismatch,
            },
            LexerState::Space | LexerState::AfterAttributeName => match byte {
                b'>' => LexerStep::Tag,
                b'/' => LexerStep::Continue(LexerState::SelfSlash),
                b'=' if *self == LexerState::AfterAttributeName => LexerStep::Continue(LexerState::Equals),
                b if is_attribute_start(b) => LexerStep::Continue(LexerState::AttributeName),
                _ if is_space => LexerStep::Continue(*self),
                _ => LexerStep::Mismatch,
            },
            LexerState::AttributeName => match byte {
                b'>' => LexerStep::Tag,
                b'/' => LexerStep::Continue(LexerState::SelfSlash),
                b'=' => LexerStep::Continue(LexerState::Equals),
                b'-' if syntax.is_in_comment => LexerStep::Mismatch,
                b if is_attribute_name_byte(b) => LexerStep::Continue(LexerState::AttributeName),
                _ if is_space => LexerStep::Continue(LexerState::AfterAttributeName),
                _ => LexerStep::Mismatch,
            },
            LexerState::Equals => match byte {
                b'"' | b'\'' => LexerStep::Continue(LexerState::Quoted(byte)),
                b'<' | b'>' | b'=' | b'`' => LexerStep::Mismatch,
                _ if is_space => LexerStep::Continue(LexerState::Equals),
                _ => LexerStep::Continue(LexerState::Unquoted),
            },
            LexerState::Quoted(quote) => match byte {
                b if b == quote => LexerStep::Continue(LexerState::Space),
                b'<' => LexerStep::Mismatch,
                _ => LexerStep::Continue(*self),
            },
            LexerState::Unquoted => match byte {
                b'>' => LexerStep::Tag,
                b'<' | b'"' | b'\'' | b'=' | b'`' => LexerStep::Mismatch,
                _ if is_space => LexerStep::Continue(LexerState::Space),
                _ => LexerStep::Continue(LexerState::Unquoted),
            },
            LexerState::SelfSlash if byte == b'>' => LexerStep::Tag,
            LexerState::SelfSlash => LexerStep::Mismatch,
            LexerState::Dashes(count) => match byte {
                b'-' => LexerStep::Continue(LexerState::Dashes(2)),
                b'>' if count == 2 => LexerStep::CommentClose,
                b'!' if count == 2 && syntax.has_html_comments => LexerStep::Continue(LexerState::DashesBang),
                _ => LexerStep::Mismatch,
            },
            LexerState::DashesBang => match byte {
                b'>' => LexerStep::HtmlCommentClose,
                b'-' => LexerStep::Continue(LexerState::Dashes(1)),
                _ => LexerStep::Mismatch,
            },
            LexerState::CommentStart { has_dash } => match byte {
                b'>' => LexerStep::HtmlCommentClose,
                b'-' if has_dash => LexerStep::Continue(LexerState::Dashes(2)),
                b'-' => LexerStep::Continue(LexerState::CommentStart { has_dash: true }),
                _ => LexerStep::Mismatch,
            },
        }
    }
}
