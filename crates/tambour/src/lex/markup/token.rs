//! Tokens of the markup lexers, and faults in the spelling of a tag that is recognised all the same.

use super::names::is_name_char;
use crate::lex::marks::{ReasoningMark, is_name_byte};
use crate::lex::space::is_space;

pub(super) const COMMENT_OPEN: &str = "<!--";
pub(super) const COMMENT_CLOSE: &str = "-->";
/// Another way to end a comment in HTML.
pub(super) const COMMENT_BANG: &str = "--!>";

/// One token, borrowed from the chunk or from the lexer's small buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkupToken<'a> {
    /// A run of text; adjacent runs belong together.
    Text(&'a str),
    /// A complete tag.
    Tag(MarkupTag<'a>),
    /// `<!--`
    CommentOpen,
    /// `-->` inside a comment.
    CommentClose,
    /// Another end of an HTML comment: `--!>`, or `>` or `->` directly after `<!--`.
    HtmlCommentClose(&'a str),
    /// The literal mark that the lexer was created with.
    Mark(&'a str),
    /// A reasoning mark that is not a tag, outside of comments.
    Reasoning(&'a str, ReasoningMark),
}

impl<'a> MarkupToken<'a> {
    /// Source text of the token.
    #[must_use]
    pub fn raw(&self) -> &'a str {
        match self {
            MarkupToken::Text(text)
            | MarkupToken::Mark(text)
            | MarkupToken::Reasoning(text, _)
            | MarkupToken::HtmlCommentClose(text) => text,
            MarkupToken::Tag(tag) => tag.raw,
            MarkupToken::CommentOpen => COMMENT_OPEN,
            MarkupToken::CommentClose => COMMENT_CLOSE,
        }
    }
}

/// A complete tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkupTag<'a> {
    /// Source text, from bracket to bracket; a missing closing bracket is not added.
    pub raw: &'a str,
    /// Name as written.
    pub name: &'a str,
    /// Kind of tag.
    pub kind: TagKind,
    /// Faults in its spelling; set by a tolerant lexer only.
    pub faults: TagFaults,
}

/// Kind of tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagKind {
    /// `<name ...>`
    Open,
    /// `</name>`
    Close,
    /// `<name ... />`
    SelfClosing,
}

/// One attribute of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagAttribute<'a> {
    /// Name of the attribute.
    pub name: &'a str,
    /// Value without quotes; `None` for a bare name.
    pub value: Option<&'a str>,
    /// Quote around the value, if any.
    pub quote: Option<char>,
}

impl<'a> MarkupTag<'a> {
    /// Parses text that is known to be exactly one tag.
    pub(super) fn parse(raw: &'a str) -> MarkupTag<'a> {
        let is_closing = raw.as_bytes()[1] == b'/';
        let start = 1 + usize::from(is_closing);
        let len = raw[start..].bytes().take_while(|&b| is_name_byte(b)).count();
        let kind = if is_closing {
            TagKind::Close
        } else if raw.ends_with("/>") {
            TagKind::SelfClosing
        } else {
            TagKind::Open
        };
        MarkupTag { raw, name: &raw[start..start + len], kind, faults: TagFaults::NONE }
    }

    /// Parses text that is known to be exactly one tag, possibly misspelled, whose name has `name_len` bytes.
    /// The caller sets the faults.
    pub(super) fn parse_tolerant(raw: &'a str, is_closing: bool, name_len: usize) -> MarkupTag<'a> {
        let precedes_name = |c: char| matches!(c, '<' | '＜' | '/' | '／' | ' ' | '\t');
        let start = raw.find(|c: char| !precedes_name(c)).unwrap_or_default();
        let inner = raw.strip_suffix(['>', '＞']).unwrap_or(raw).trim_end_matches(is_space);
        let kind = match is_closing {
            true => TagKind::Close,
            false if inner.ends_with(['/', '／']) => TagKind::SelfClosing,
            false => TagKind::Open,
        };
        MarkupTag { raw, name: &raw[start..start + name_len], kind, faults: TagFaults::NONE }
    }

    /// Source text between the name and the `>` or `/>` of the tag.
    #[must_use]
    pub fn attribute_text(&self) -> &'a str {
        let start = self.raw.find(self.name).map_or(0, |at| at + self.name.len());
        let rest = &self.raw[start..];
        let rest = rest.strip_suffix(['>', '＞']).unwrap_or(rest);
        if self.kind != TagKind::SelfClosing {
            return rest;
        }
        let inner = rest.trim_end_matches(is_space);
        inner.strip_suffix(['/', '／']).unwrap_or(inner)
    }

    /// Attributes in order.
    pub fn attributes(&self) -> impl Iterator<Item = TagAttribute<'a>> {
        let mut unread = self.attribute_text();
        std::iter::from_fn(move || {
            unread = unread.trim_start_matches(is_space);
            let len = unread.find(|c| !is_name_char(c)).unwrap_or(unread.len());
            if len == 0 {
                return None;
            }
            let name = &unread[..len];
            unread = unread[len..].trim_start_matches(is_space);
            let Some(after_equals) = unread.strip_prefix('=') else {
                return Some(TagAttribute { name, value: None, quote: None });
            };
            let from_value = after_equals.trim_start_matches(is_space);
            let quote = from_value.chars().next().filter(|c| matches!(c, '"' | '\''));
            let value;
            (value, unread) = match quote {
                Some(quote) => {
                    let end = from_value[1..].find(quote).map_or(from_value.len(), |at| at + 1);
                    (&from_value[1..end], from_value.get(end + 1..).unwrap_or(""))
                }
                None => from_value.split_at(from_value.find(is_space).unwrap_or(from_value.len())),
            };
            Some(TagAttribute { name, value: Some(value), quote })
        })
    }
}

/// Returns whether an attribute name may begin with this byte.
pub(super) fn is_attribute_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':')
}

/// Returns whether this byte may occur in an attribute name.
pub(super) fn is_attribute_name_byte(byte: u8) -> bool {
    is_name_byte(byte)
}

/// One fault in the spelling of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TagFault {
    /// Blanks after the opening bracket or around the slash: `< / name>`. Blanks before the closing bracket
    /// are no fault.
    Blanks,
    /// Name in another letter case.
    Case,
    /// A full-width bracket or slash: `＜`, `／`, `＞`.
    FullWidth,
    /// Missing closing bracket.
    MissingBracket,
}

/// A set of faults: bit `1 << fault as u8` of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TagFaults(u8);

impl TagFaults {
    /// No fault.
    pub const NONE: TagFaults = TagFaults(0);

    const ALL: [TagFault; 4] =
        [TagFault::Blanks, TagFault::Case, TagFault::FullWidth, TagFault::MissingBracket];

    /// Set with `fault` added.
    #[must_use]
    pub fn with_fault(self, fault: TagFault) -> TagFaults {
        TagFaults(self.0 | 1 << fault as u8)
    }

    /// Union of both sets.
    #[must_use]
    pub fn union(self, other: TagFaults) -> TagFaults {
        TagFaults(self.0 | other.0)
    }

    /// Returns whether the set contains `fault`.
    #[must_use]
    pub fn contains(self, fault: TagFault) -> bool {
        self.0 & 1 << fault as u8 != 0
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == TagFaults::NONE
    }

    /// Faults of the set.
    pub fn iter(self) -> impl Iterator<Item = TagFault> {
        TagFaults::ALL.into_iter().filter(move |fault| self.contains(*fault))
    }
}
