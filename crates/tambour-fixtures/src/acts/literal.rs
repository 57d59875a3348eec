//! Values that stand in a reply literally: quoted texts, texts between tags, numbers.

use std::collections::HashSet;

use serde_json::Value;

/// The literals of a reply. There are more of them than its values: every quote is taken for the beginning of one.
pub(super) struct Literals {
    texts: HashSet<String>,
    numbers: Vec<f64>,
}

/// Quotes that begin a text, with those that end it.
const QUOTES: &[(char, &[char])] = &[
    ('"', &['"']),
    ('\'', &['\'']),
    ('`', &['`']),
    ('“', &['”', '“', '"']),
    ('”', &['”', '“', '"']),
    ('＂', &['＂', '"']),
    ('‘', &['’', '‘', '\'']),
    ('’', &['’', '‘', '\'']),
];

/// Depth to which texts in texts are looked into: arguments may be JSON in a string.
const DEPTH: usize = 3;

impl Literals {
    pub(super) fn from_text(text: &str) -> Literals {
        let mut found = Literals { texts: HashSet::new(), numbers: parse_numbers(text) };
        found.collect(text, 0);
        found
    }

    fn collect(&mut self, text: &str, depth: usize) {
        if depth == DEPTH {
            return;
        }
        for (at, c) in text.char_indices() {
            if let Some((_, closing_quotes)) = QUOTES.iter().find(|(open, _)| *open == c)
                && let Some(inner) =
                    decode_text(&text[at + c.len_utf8()..], closing_quotes, text[..at].ends_with('='))
            {
                if inner.contains(['"', '\'']) && !self.texts.contains(&inner) {
                    self.numbers.extend(parse_numbers(&inner));
                    self.collect(&inner, depth + 1);
                }
                self.texts.insert(inner);
            }
        }
    }

    /// Parts of a value that do not stand there; `tagged_reply`: texts may stand between tags of this reply too.
    pub(super) fn find_missing(&self, value: &Value, tagged_reply: Option<&str>) -> Option<String> {
        match value {
            Value::Array(items) => items.iter().find_map(|item| self.find_missing(item, tagged_reply)),
            Value::Object(fields) => fields.values().find_map(|field| self.find_missing(field, tagged_reply)),
            Value::String(text) => {
                let is_present = self.texts.contains(text)
                    || tagged_reply.is_some_and(|reply| is_between_tags(reply, text));
                (!is_present).then(|| format!("{text:?}"))
            }
            Value::Number(number) => {
                let value = number.as_f64();
                (!self.numbers.iter().any(|number_value| Some(*number_value) == value))
                    .then(|| number.to_string())
            }
            Value::Null | Value::Bool(_) => None,
        }
    }
}

/// Returns whether a text stands between the end of one tag and the beginning of another.
fn is_between_tags(reply: &str, text: &str) -> bool {
    let text = text.trim();
    let space = |c: char| c.is_whitespace();
    text.is_empty()
        || reply.match_indices(text).any(|(at, _)| {
            let (before, after) = (reply[..at].trim_end_matches(space), &reply[at + text.len()..]);
            before.ends_with(['>', ']', '|']) && after.trim_start_matches(space).starts_with('<')
        })
}

/// The text up to one of these quotes, without its escapes. `is_python`: a backslash stays before what is no escape, as in
/// Python.
fn decode_text(text: &str, closing_quotes: &[char], is_python: bool) -> Option<String> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if closing_quotes.contains(&c) {
            return Some(out);
        }
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next()? {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'u' => {
                let mut rest = chars.as_str();
                let first = parse_hex(rest);
                let unit = first.unwrap_or(0xFFFD);
                if first.is_some() {
                    rest = &rest[4..];
                }
                let is_high_surrogate = (0xD800..0xDC00).contains(&unit);
                let low_surrogate =
                    rest.strip_prefix("\\u").and_then(parse_hex).filter(|_| is_high_surrogate);
                if let Some(low_surrogate) =
                    low_surrogate.filter(|low_surrogate| (0xDC00..0xE000).contains(low_surrogate))
                {
                    rest = &rest[6..];
                    let code = 0x10000 + ((unit - 0xD800) << 10) + (low_surrogate - 0xDC00);
                    out.push(char::from_u32(code).unwrap_or('\u{FFFD}'));
                } else {
                    out.push(char::from_u32(unit).unwrap_or('\u{FFFD}'));
                }
                chars = rest.chars();
            }
            other if is_python && !matches!(other, '"' | '\'' | '\\') => out.extend(['\\', other]),
            other => out.push(other),
        }
    }
    None
}

fn parse_hex(text: &str) -> Option<u32> {
    u32::from_str_radix(text.get(..4)?, 16).ok()
}

fn parse_numbers(text: &str) -> Vec<f64> {
    let parts = text.split(|c: char| !(c.is_ascii_alphanumeric() || "+-._".contains(c)));
    parts.filter_map(|part| part.trim_end_matches('.').parse().ok()).collect()
}
