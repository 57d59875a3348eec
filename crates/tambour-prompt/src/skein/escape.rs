//! No data forges the boundary of a block (F-005): in a body the `<` of a tag is escaped whose name means something in this
//! prompt, and nothing else is. Reading undoes it.

use std::borrow::Cow;
use std::collections::HashSet;

use super::super::name::{self, META, TAGS};

/// The names whose tags are escaped in bodies.
#[derive(Clone, Debug)]
pub struct Boundaries(HashSet<String>);

impl Boundaries {
    /// The tags of every prompt, and those of the blocks of this one.
    #[must_use]
    pub fn new<'a>(tags: impl IntoIterator<Item = &'a str>) -> Boundaries {
        let own = tags.into_iter().chain(TAGS).chain(META);
        Boundaries(own.map(str::to_lowercase).collect())
    }

    /// `body` with the `<` of the tags escaped. What looks like an escaped one already is escaped again, so that reading it gives
    /// what it was.
    #[must_use]
    pub fn escape<'a>(&self, body: &'a str) -> Cow<'a, str> {
        let mut out = String::new();
        let mut kept = 0;
        for (at, _) in body.match_indices(['<', '&']) {
            let (entity, mark) = mark(&body[at..]);
            if mark.is_some_and(|behind| self.is_tag(behind)) {
                out += &body[kept..at];
                out += if entity { "&amp;" } else { "&lt;" };
                kept = at + 1;
            }
        }
        if kept == 0 { Cow::Borrowed(body) } else { Cow::Owned(out + &body[kept..]) }
    }

    /// What [`Boundaries::escape`] was given.
    #[must_use]
    pub fn unescape<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut out = String::new();
        let mut kept = 0;
        for (at, _) in text.match_indices('&') {
            if at < kept || !mark(&text[at..]).1.is_some_and(|behind| self.is_tag(behind)) {
                continue;
            }
            out += &text[kept..at];
            // One level of escaping goes.
            let (plain, end) = if text[at..].starts_with("&lt;") { ("<", 4) } else { ("&", 5) };
            out += plain;
            kept = at + end;
        }
        if kept == 0 { Cow::Borrowed(text) } else { Cow::Owned(out + &text[kept..]) }
    }

    /// Whether a text behind `<` is the name of a tag, or `/` and one.
    fn is_tag(&self, behind: &str) -> bool {
        let closes = behind.strip_prefix('/').map(str::trim_start);
        name::first(closes.unwrap_or(behind)).is_some_and(|name| self.0.contains(&name.to_lowercase()))
    }
}

/// What is behind the `<` that a text begins with, and whether it is written as an entity: `&lt;`, `&amp;lt;`, …
fn mark(text: &str) -> (bool, Option<&str>) {
    if let Some(behind) = text.strip_prefix('<') {
        return (false, Some(behind));
    }
    let mut rest = text.strip_prefix('&').unwrap_or_default();
    while let Some(behind) = rest.strip_prefix("amp;") {
        rest = behind;
    }
    (true, rest.strip_prefix("lt;"))
}

/// A value of an attribute between double quotes.
#[must_use]
pub fn attribute(value: &str) -> String {
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
