//! Names of the tags that a tolerant lexer looks for, and the characters of such names.

use std::sync::Arc;

use super::token::{TagFault, TagFaults};
use crate::lex::marks;

/// Set of tag names, such as those of an expected structure.
#[derive(Clone, Debug)]
pub struct TagNames(Arc<[TagName]>);

/// A name in lower case, which is the sort key, and as spelled.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TagName {
    lowercase: Box<str>,
    spelling: Box<str>,
}

/// Prefix of a name, as the range of names in a [`TagNames`] that begin with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamePrefix {
    /// Index of the first name.
    first: usize,
    /// Index after the last name.
    end: usize,
    /// Length of the prefix in bytes.
    len: usize,
}

impl NamePrefix {
    /// Length of the prefix in bytes.
    pub(super) fn len(self) -> usize {
        self.len
    }
}

impl TagNames {
    /// Creates a set of `names`, without those that no tag can have.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> TagNames {
        let tag_name =
            |name: &str| TagName { lowercase: name.to_ascii_lowercase().into(), spelling: name.into() };
        let mut names: Vec<TagName> = names.into_iter().filter(|name| is_name(name)).map(tag_name).collect();
        names.sort();
        TagNames(names.into())
    }

    /// Faults of a name: [`TagFault::Case`] if it matches one of the set only in another letter case.
    pub(super) fn case_faults(&self, name: &str) -> TagFaults {
        let is_known = self.0.iter().any(|tag_name| tag_name.lowercase.eq_ignore_ascii_case(name));
        let is_as_spelled = self.0.iter().any(|tag_name| *tag_name.spelling == *name);
        if is_known && !is_as_spelled { TagFaults::NONE.with_fault(TagFault::Case) } else { TagFaults::NONE }
    }

    /// The empty prefix, with which all names begin.
    pub(super) fn empty_prefix(&self) -> NamePrefix {
        NamePrefix { first: 0, end: self.0.len(), len: 0 }
    }

    /// Appends `c`, in any letter case, to `prefix`; `None` if no name begins so.
    pub(super) fn extend_prefix(&self, prefix: NamePrefix, c: char) -> Option<NamePrefix> {
        let lowercase = c.to_ascii_lowercase();
        let NamePrefix { mut first, mut end, len } = prefix;
        // Names are sorted, so the matching ones are adjacent. Each other name is skipped once per tag.
        let next_char = |name: usize| self.0[name].lowercase.get(len..).and_then(|rest| rest.chars().next());
        while first < end && next_char(first) < Some(lowercase) {
            first += 1;
        }
        while first < end && next_char(end - 1) > Some(lowercase) {
            end -= 1;
        }
        (first < end).then_some(NamePrefix { first, end, len: len + c.len_utf8() })
    }

    /// Returns whether the prefix is a complete name. The shortest name sorts first.
    pub(super) fn is_complete(&self, prefix: NamePrefix) -> bool {
        prefix.len > 0 && self.0[prefix.first].lowercase.len() == prefix.len
    }
}

/// Returns whether a tag can have this name: an XML name in any script, without the ASCII or full-width
/// characters that delimit tags.
#[must_use]
pub fn is_name(name: &str) -> bool {
    name.starts_with(starts_name) && name.chars().all(is_name_char)
}

/// Returns whether a character may begin a name.
pub(super) fn starts_name(c: char) -> bool {
    match u8::try_from(c).ok().filter(u8::is_ascii) {
        Some(byte) => byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':'),
        None => is_letter(c),
    }
}

/// Returns whether a character may occur in a name.
pub(super) fn is_name_char(c: char) -> bool {
    match u8::try_from(c).ok().filter(u8::is_ascii) {
        Some(byte) => marks::is_name_byte(byte),
        None => is_letter(c) || matches!(c, '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}' | '\u{2040}'),
    }
}

/// Returns whether a character beyond ASCII may begin an XML name and is neither ideographic punctuation nor
/// a full-width sign.
fn is_letter(c: char) -> bool {
    let is_listed = matches!(c,
        '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}' | '\u{370}'..='\u{37D}'
        | '\u{37F}'..='\u{1FFF}' | '\u{200C}' | '\u{200D}' | '\u{2070}'..='\u{218F}'
        | '\u{2C00}'..='\u{2FEF}' | '\u{3001}'..='\u{D7FF}' | '\u{F900}'..='\u{FDCF}'
        | '\u{FDF0}'..='\u{FFFD}' | '\u{10000}'..='\u{EFFFF}');
    let is_sign = matches!(c,
        '\u{3001}'..='\u{3004}' | '\u{3008}'..='\u{3020}' | '\u{3030}' | '\u{FEFF}' | '\u{FF01}'..='\u{FF0F}'
        | '\u{FF1A}'..='\u{FF20}' | '\u{FF3B}'..='\u{FF40}' | '\u{FF5B}'..='\u{FF65}' | '\u{FFE0}'..='\u{FFFD}');
    is_listed && !is_sign
}
