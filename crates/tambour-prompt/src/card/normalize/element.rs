//! Splits a text into its top-level elements.

use std::collections::HashSet;

use super::super::super::name;

/// Maximum number of different names of unclosed tags. The search for elements stops at the next tag with
/// another name.
const MAX_UNCLOSED_NAMES: usize = 64;

/// Maximum number of attributes of an element; a tag with more is text.
const MAX_ATTRIBUTES: usize = 32;

/// Attribute names and values.
type ElementAttributes = Vec<(String, String)>;

/// A part of a text.
#[derive(Debug)]
pub(super) enum EntryPart<'a> {
    /// An element with opening and closing tag.
    Element {
        name: &'a str,
        attributes: ElementAttributes,
        /// Content between the tags.
        body: &'a str,
        /// The element including its tags.
        source: &'a str,
    },
    /// Any other text.
    Text(&'a str),
}

/// Splits a text into elements that begin at the start of a line, and the text between them.
pub(super) fn split_elements<'a>(text: &'a str, warnings: &mut Vec<String>) -> Vec<EntryPart<'a>> {
    let mut parts = Vec::new();
    let (mut parts_end, mut search_start, mut unclosed_names) = (0, 0, HashSet::new());
    while let Some(at) = text[search_start..].find('<').map(|at| search_start + at) {
        search_start = at + 1;
        let line_start = text[..at].rfind('\n').map_or(0, |end| end + 1).max(parts_end);
        // Only an element that begins its line is split off.
        if !text[line_start..at].trim().is_empty() {
            continue;
        }
        let Some((name, attributes, opening_len)) = parse_opening_tag(&text[at..]) else { continue };
        // Skipping names of unclosed tags, and limiting their number, keeps the work linear.
        if unclosed_names.contains(name) {
            continue;
        }
        if unclosed_names.len() == MAX_UNCLOSED_NAMES {
            break;
        }
        let Some((body_len, closing_end)) = find_closing_tag(&text[at + opening_len..], name) else {
            if parts.is_empty() && text[..at].trim().is_empty() {
                warnings.push(format!("`<{name}>` is not closed, so the text stays as it was"));
            }
            unclosed_names.insert(name);
            continue;
        };
        if parts_end < at {
            parts.push(EntryPart::Text(&text[parts_end..at]));
        }
        parts_end = at + opening_len + closing_end;
        search_start = parts_end;
        let body = &text[at + opening_len..at + opening_len + body_len];
        parts.push(EntryPart::Element { name, attributes, body, source: &text[at..parts_end] });
    }
    if parts_end < text.len() {
        parts.push(EntryPart::Text(&text[parts_end..]));
    }
    parts
}

/// Parses the opening tag at the beginning of a text; returns its name, attributes and byte length, or `None`
/// if it is not a valid tag.
fn parse_opening_tag(text: &str) -> Option<(&str, ElementAttributes, usize)> {
    let name = name::leading_name(&text[1..])?;
    let mut remaining = &text[1 + name.len()..];
    let mut attributes = ElementAttributes::new();
    loop {
        let trimmed = remaining.trim_start();
        if let Some(remainder) = trimmed.strip_prefix('>') {
            return Some((name, attributes, text.len() - remainder.len()));
        }
        // White space must precede an attribute.
        if trimmed.len() == remaining.len() {
            return None;
        }
        let key = name::leading_name(trimmed)?;
        let value = trimmed[key.len()..].trim_start().strip_prefix('=')?.trim_start();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (value, remainder) = value[1..].split_once(quote)?;
        if value.contains('<')
            || attributes.iter().any(|(other, _)| other == key)
            || attributes.len() == MAX_ATTRIBUTES
        {
            return None;
        }
        let value =
            value.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
        attributes.push((key.to_owned(), value));
        remaining = remainder;
    }
}

/// Finds the closing tag of `name`, counting nested elements of the same name. Returns the byte offsets at
/// which the body and the closing tag end; `None` if the element is not closed.
fn find_closing_tag(text: &str, name: &str) -> Option<(usize, usize)> {
    let mut depth = 1_usize;
    let mut search_start = 0;
    while let Some(at) = text[search_start..].find('<').map(|at| search_start + at) {
        search_start = at + 1;
        let (is_closing, tag_text) = text[search_start..]
            .strip_prefix('/')
            .map_or((false, &text[search_start..]), |tag_text| (true, tag_text));
        let Some(after_name) = tag_text.strip_prefix(name) else { continue };
        if is_closing {
            let Some(after_name) = after_name.trim_start().strip_prefix('>') else { continue };
            depth -= 1;
            if depth == 0 {
                return Some((at, text.len() - after_name.len()));
            }
        } else if after_name.starts_with('>') || after_name.starts_with(char::is_whitespace) {
            depth += 1;
        }
    }
    None
}
