//! Elements at the top level of a text.

use std::collections::HashSet;

use super::super::super::name;

/// Names of tags that are not closed in a text, at most; what stands behind is text.
const UNCLOSED: usize = 64;

/// Names and values.
type Attributes = Vec<(String, String)>;

/// A piece of a text.
#[derive(Debug)]
pub(super) enum Part<'a> {
    /// An element that is closed.
    Element {
        name: &'a str,
        attributes: Attributes,
        /// Between its tags.
        body: &'a str,
        /// With its tags.
        source: &'a str,
    },
    /// Anything else.
    Text(&'a str),
}

/// The elements of a text that begin on a line of their own or at its beginning, and what is between.
pub(super) fn parts<'a>(text: &'a str, warnings: &mut Vec<String>) -> Vec<Part<'a>> {
    let mut parts = Vec::new();
    let (mut kept, mut from, mut unclosed) = (0, 0, HashSet::new());
    while let Some(at) = text[from..].find('<').map(|at| from + at) {
        from = at + 1;
        let line = text[..at].rfind('\n').map_or(0, |end| end + 1).max(kept);
        if !text[line..at].trim().is_empty() {
            continue;
        }
        let Some((name, attributes, open)) = opening(&text[at..]) else { continue };
        // A tag that is not closed is not looked for again, and few are, so that the work stays linear.
        if unclosed.contains(name) {
            continue;
        }
        if unclosed.len() == UNCLOSED {
            break;
        }
        let Some((body, end)) = closing(&text[at + open..], name) else {
            if parts.is_empty() && text[..at].trim().is_empty() {
                warnings.push(format!("`<{name}>` is not closed, so that the text stays as it was"));
            }
            unclosed.insert(name);
            continue;
        };
        if kept < at {
            parts.push(Part::Text(&text[kept..at]));
        }
        kept = at + open + end;
        from = kept;
        let body = &text[at + open..at + open + body];
        parts.push(Part::Element { name, attributes, body, source: &text[at..kept] });
    }
    if kept < text.len() {
        parts.push(Part::Text(&text[kept..]));
    }
    parts
}

/// Name and attributes of the opening tag that a text begins with, and its bytes.
fn opening(text: &str) -> Option<(&str, Attributes, usize)> {
    let name = name::first(&text[1..])?;
    let mut rest = &text[1 + name.len()..];
    let mut attributes = Attributes::new();
    loop {
        let inner = rest.trim_start();
        if let Some(behind) = inner.strip_prefix('>') {
            return Some((name, attributes, text.len() - behind.len()));
        }
        if inner.len() == rest.len() {
            return None;
        }
        let key = name::first(inner)?;
        let value = inner[key.len()..].trim_start().strip_prefix('=')?.trim_start();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (value, behind) = value[1..].split_once(quote)?;
        if value.contains('<') || attributes.iter().any(|(other, _)| other == key) || attributes.len() == 32 {
            return None;
        }
        let value =
            value.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
        attributes.push((key.to_owned(), value));
        rest = behind;
    }
}

/// Where the body ends, and the closing tag of `name`; elements of the same name within count.
fn closing(text: &str, name: &str) -> Option<(usize, usize)> {
    let mut depth = 1_usize;
    let mut from = 0;
    while let Some(at) = text[from..].find('<').map(|at| from + at) {
        from = at + 1;
        let (closes, inner) =
            text[from..].strip_prefix('/').map_or((false, &text[from..]), |inner| (true, inner));
        let Some(behind) = inner.strip_prefix(name) else { continue };
        if closes {
            let Some(behind) = behind.trim_start().strip_prefix('>') else { continue };
            depth -= 1;
            if depth == 0 {
                return Some((at, text.len() - behind.len()));
            }
        } else if behind.starts_with('>') || behind.starts_with(char::is_whitespace) {
            depth += 1;
        }
    }
    None
}
