//! Scanner that splits a template into texts and variables.

use std::ops::Range;

use super::Layer;

/// Piece of a template, as byte ranges of its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TemplatePiece {
    /// Literal text.
    Text { range: Range<usize> },
    /// Variable whose marker, braces included, has the range `start..end`.
    Variable { layer: Layer, name: Range<usize>, start: usize, end: usize },
}

/// Splits `source` into pieces, in order. Linear: the search for the end of a marker or of Jinja braces stops
/// at the next brace.
pub(super) fn split_template(source: &str) -> Vec<TemplatePiece> {
    let mut pieces = Vec::new();
    // Start of the text that is in no piece yet.
    let mut text_start = 0;
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'{', &source.as_bytes()[at..]) {
        let brace = at + found;
        // Backslashes before `at` have been consumed.
        let backslashes = source[at..brace].bytes().rev().take_while(|byte| *byte == b'\\').count();
        if backslashes > 0 {
            // Each pair is one literal backslash; an odd one escapes the brace.
            push_text(&mut pieces, text_start..brace - backslashes + backslashes / 2);
            text_start = brace;
        }
        if backslashes % 2 == 1 {
            at = brace + 1;
        } else if source[brace..].starts_with("{{") {
            at = skip_jinja_braces(source, brace);
        } else if let Some((layer, name, end)) = parse_variable(source, brace) {
            push_text(&mut pieces, text_start..brace);
            pieces.push(TemplatePiece::Variable { layer, name, start: brace, end });
            (text_start, at) = (end, end);
        } else {
            at = brace + 1;
        }
    }
    push_text(&mut pieces, text_start..source.len());
    pieces
}

/// Adds a text, unless it is empty.
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
    let content = &source.as_bytes()[content_start..];
    let stop = memchr::memchr3(b'\n', b'{', b'}', content).map_or(source.len(), |at| content_start + at);
    if source[stop..].starts_with("}}") { stop + 2 } else { content_start }
}

/// Parses the variable whose marker opens at `brace`; returns layer, range of the name and end of the marker.
/// `None` if no variable opens there.
fn parse_variable(source: &str, brace: usize) -> Option<(Layer, Range<usize>, usize)> {
    let content = &source[brace + 1..];
    let (layer, opening_len, close) = match content.strip_prefix('%') {
        Some(_) => (Layer::System, 1, "%}"),
        None => (Layer::Script, 0, "}"),
    };
    let content = &content[opening_len..];
    let name_len = content.find(|c: char| !is_name_char(c)).unwrap_or(content.len());
    let has_word_char = content[..name_len].contains(char::is_alphanumeric);
    let start = brace + 1 + opening_len;
    (has_word_char && content[name_len..].starts_with(close))
        .then(|| (layer, start..start + name_len, start + name_len + close.len()))
}

/// Returns true if a variable name may contain `c` (S-040): letters with their marks, digits, and `_`, `-`,
/// `.`.
pub(super) fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.') || unicode_ident::is_xid_continue(c)
}
