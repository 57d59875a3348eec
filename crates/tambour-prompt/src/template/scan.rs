//! One scan of a template into texts and variables.

use std::ops::Range;

use super::Layer;

/// A part of a template, by places in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text { range: Range<usize> },
    Variable { layer: Layer, name: Range<usize>, start: usize, end: usize },
}

/// The pieces of `source`, in order; linear, since names hold no braces and a line is searched for `}}` once.
pub(super) fn pieces(source: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    // Where the text began that is not told yet.
    let mut text = 0;
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'{', &source.as_bytes()[at..]) {
        let brace = at + found;
        // No backslash before `at` is free any more.
        let backslashes = source[at..brace].bytes().rev().take_while(|byte| *byte == b'\\').count();
        if backslashes > 0 {
            // Pairs come to one each; an odd one takes the meaning of the brace.
            push(&mut pieces, text..brace - backslashes + backslashes / 2);
            text = brace;
        }
        if backslashes % 2 == 1 {
            at = brace + 1;
        } else if source[brace..].starts_with("{{") {
            at = reserved(source, brace);
        } else if let Some((layer, name, end)) = variable(source, brace) {
            push(&mut pieces, text..brace);
            pieces.push(Piece::Variable { layer, name, start: brace, end });
            (text, at) = (end, end);
        } else {
            at = brace + 1;
        }
    }
    push(&mut pieces, text..source.len());
    pieces
}

fn push(pieces: &mut Vec<Piece>, range: Range<usize>) {
    if !range.is_empty() {
        pieces.push(Piece::Text { range });
    }
}

/// Where the braces of Jinja end that open at `start`: after their `}}`, if it stands on the line before other opening ones;
/// else after the opening ones.
fn reserved(source: &str, start: usize) -> usize {
    let braces = source[start..].bytes().take_while(|byte| *byte == b'{').count();
    let inside = start + braces;
    let rest = &source.as_bytes()[inside..];
    let stop = memchr::memchr3(b'\n', b'{', b'}', rest).map_or(source.len(), |at| inside + at);
    match &source[stop..] {
        rest if rest.starts_with("}}") => stop + 2,
        _ => inside,
    }
}

/// The variable whose marker opens at `brace`: layer, place of its name, end of the marker.
fn variable(source: &str, brace: usize) -> Option<(Layer, Range<usize>, usize)> {
    let inside = &source[brace + 1..];
    let (layer, skipped, close) = match inside.strip_prefix('%') {
        Some(_) => (Layer::System, 1, "%}"),
        None => (Layer::Script, 0, "}"),
    };
    let inside = &inside[skipped..];
    let length = inside.find(|c: char| !is_name(c)).unwrap_or(inside.len());
    let named = inside[..length].contains(char::is_alphanumeric);
    let start = brace + 1 + skipped;
    (named && inside[length..].starts_with(close))
        .then(|| (layer, start..start + length, start + length + close.len()))
}

/// Whether a name may hold `c` (S-040): letters with the marks that belong to them, digits and three signs.
pub(super) fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.') || unicode_ident::is_xid_continue(c)
}
