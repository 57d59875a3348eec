//! Scanner that splits a template into texts and variables.

use std::ops::Range;

use super::Layer;

/// A part of a template, as byte ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TemplatePiece {
    Text { range: Range<usize> },
    Variable { layer: Layer, name: Range<usize>, start: usize, end: usize },
}

/// Splits `source` into parts, in order. Linear: names contain no braces, and a line is searched for `}}`
/// once.
pub(super) fn split_template(source: &str) -> Vec<TemplatePiece> {
    let mut pieces = Vec::new();
    // Start of the pending text.
    let mut text = 0;
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'{', &source.as_bytes()[at..]) {
        let brace = at + found;
        // Backslashes before `at` have been consumed.
        let backslashes = source[at..brace].bytes().rev().take_while(|byte| *byte == b'\\').count();
        if backslashes > 0 {
            // Each pair is one literal backslash; an odd one escapes the brace.
            push_text(&mut pieces, text..brace - backslashes + backslashes / 2);
            text = brace;
        }
        if backslashes % 2 == 1 {
            at = brace + 1;
        } else if source[brace..].starts_with("{{") {
            at = skip_jinja_braces(source, brace);
        } else if let Some((layer, name, end)) = parse_variable(source, brace) {
            push_text(&mut pieces, text..brace);
            pieces.push(TemplatePiece::Variable { layer, name, start: brace, end });
            (text, at) = (end, end);
        } else {
            at = brace + 1;
        }
    }
    push_text(&mut pieces, text..source.len());
    pieces
}

fn push_text(pieces: &mut Vec<TemplatePiece>, range: Range<usize>) {
    if !range.is_empty() {
        pieces.push(TemplatePiece::Text { range });
    }
}

/// Returns the end of Jinja braces that open at `start`: after the `}}` if it follows on the same line before
/// other braces, else after the opening braces.
fn skip_jinja_braces(source: &str, start: usize) -> usize {
    let braces = source[start..].bytes().take_while(|byte| *byte == b'{').count();
    let content_start = start + braces;
    let rest = &source.as_bytes()[content_start..];
    let stop = memchr::memchr3(b'\n', b'{', b'}', rest).map_or(source.len(), |at| content_start + at);
    match &source[stop..] {
        rest if rest.starts_with("}}") => stop + 2,
        _ => content_start,
    }
}

/// Parses the variable whose marker opens at `brace`; returns layer, range of the name and end of the marker.
fn parse_variable(source: &str, brace: usize) -> Option<(Layer, Range<usize>, usize)> {
    let content = &source[brace + 1..];
    let (layer, opening_len, close) = match content.strip_prefix('%') {
        Some(_) => (Layer::System, 1, "%}"),
        None => (Layer::Script, 0, "}"),
    };
    let content = &content[opening_len..];
    let length = content.find(|c: char| !is_name_char(c)).unwrap_or(content.len());
    let has_word_char = content[..length].contains(char::is_alphanumeric);
    let start = brace + 1 + opening_len;
    (has_word_char && content[length..].starts_with(close))
        .then(|| (layer, start..start + length, start + length + close.len()))
}

/// Returns true if a variable name may contain `c` (S-040): letters with their marks, digits, and `_`, `-`,
/// `.`.
pub(super) fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.') || unicode_ident::is_xid_continue(c)
}
