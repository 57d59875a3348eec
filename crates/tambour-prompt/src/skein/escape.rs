//! Prevents data from forging the boundary of a block (F-005): in a body, the `<` of each tag with a meaning
//! in this prompt is escaped; if that `<` is already escaped, its `&` is escaped instead.
//! [`BoundaryTags::unescape`] undoes this. Also escapes attributes.

use std::borrow::Cow;
use std::collections::HashSet;

use super::super::name::{self, META_TAGS, TOP_LEVEL_TAGS};

/// Names of the tags that are escaped in bodies, in lower case.
#[derive(Clone, Debug)]
pub struct BoundaryTags(HashSet<String>);

impl BoundaryTags {
    /// Creates the set from the predefined tags of all prompts and from `tags`, the tags of this prompt's
    /// blocks.
    #[must_use]
    pub fn new<'a>(tags: impl IntoIterator<Item = &'a str>) -> BoundaryTags {
        let names = tags.into_iter().chain(TOP_LEVEL_TAGS).chain(META_TAGS);
        BoundaryTags(names.map(str::to_lowercase).collect())
    }

    /// Escapes the `<` of these tags in `body`. An escaped tag is escaped again, so that unescaping restores
    /// the original.
    #[must_use]
    pub fn escape<'a>(&self, body: &'a str) -> Cow<'a, str> {
        let mut out = String::new();
        let mut copied_end = 0;
        for (at, _) in body.match_indices(['<', '&']) {
            let (is_entity, after_bracket) = read_bracket(&body[at..]);
            if after_bracket.is_some_and(|after_bracket| self.is_tag(after_bracket)) {
                out += &body[copied_end..at];
                out += if is_entity { "&amp;" } else { "&lt;" };
                copied_end = at + 1;
            }
        }
        if copied_end == 0 { Cow::Borrowed(body) } else { Cow::Owned(out + &body[copied_end..]) }
    }

    /// Reverses [`BoundaryTags::escape`].
    #[must_use]
    pub fn unescape<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut out = String::new();
        let mut copied_end = 0;
        for (at, _) in text.match_indices('&') {
            let (_, after_bracket) = read_bracket(&text[at..]);
            if at < copied_end || !after_bracket.is_some_and(|after_bracket| self.is_tag(after_bracket)) {
                continue;
            }
            out += &text[copied_end..at];
            // Removes one level of escaping.
            let (character, escape_len) = if text[at..].starts_with("&lt;") { ("<", 4) } else { ("&", 5) };
            out += character;
            copied_end = at + escape_len;
        }
        if copied_end == 0 { Cow::Borrowed(text) } else { Cow::Owned(out + &text[copied_end..]) }
    }

    /// Returns true if a text after `<` begins with one of the names, optionally after `/`.
    fn is_tag(&self, after_bracket: &str) -> bool {
        let closing_name = after_bracket.strip_prefix('/').map(str::trim_start);
        name::leading_name(closing_name.unwrap_or(after_bracket))
            .is_some_and(|name| self.0.contains(&name.to_lowercase()))
    }
}

/// Reads the `<` at the beginning of a text, written as it is or as an entity: `&lt;`, `&amp;lt;`, … Returns
/// true for an entity, and the text after the `<`; `None` if there is no `<`.
fn read_bracket(text: &str) -> (bool, Option<&str>) {
    if let Some(after_bracket) = text.strip_prefix('<') {
        return (false, Some(after_bracket));
    }
    let mut remaining = text.strip_prefix('&').unwrap_or_default();
    while let Some(after_amp) = remaining.strip_prefix("amp;") {
        remaining = after_amp;
    }
    (true, remaining.strip_prefix("lt;"))
}

/// Escapes a text as the value of an attribute in double quotes.
#[must_use]
pub fn escape_attribute(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&apos;",
            '\n' => out += "&#10;",
            '\r' => out += "&#13;",
            '\t' => out += "&#9;",
            c => out.push(c),
        }
    }
    out
}
