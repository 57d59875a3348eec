//! Values that a reply contains literally: quoted texts, texts between tags, numbers.

use std::collections::HashSet;

use serde_json::Value;

/// Literals of a reply. Every quote counts as the beginning of a text, so there are more literals than the
/// reply has values.
pub(super) struct Literals {
    /// Quoted texts, with their escapes decoded.
    texts: HashSet<String>,
    /// Numbers, including those within quoted texts.
    numbers: Vec<f64>,
}

/// Quotes that begin a text, each with the quotes that may end it.
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

/// Depth to which texts within texts are searched, since arguments may be JSON in a string.
const MAX_NESTING: usize = 3;

impl Literals {
    pub(super) fn from_text(text: &str) -> Literals {
        let mut literals = Literals { texts: HashSet::new(), numbers: parse_numbers(text) };
        literals.collect(text, 0);
        literals
    }

    /// Adds the texts that begin at any quote of `text`, and the literals within them.
    fn collect(&mut self, text: &str, depth: usize) {
        if depth == MAX_NESTING {
            return;
        }
        for (at, c) in text.char_indices() {
            if let Some((_, closing_quotes)) = QUOTES.iter().find(|(open, _)| *open == c)
                // Keyword arguments of Python calls are written `name="value"`.
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

    /// Finds the first text or number of `value` that is not a literal of the reply. If the reply is given as
    /// `tagged_reply`, a text between two of its tags counts as a literal too.
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
                (!self.numbers.iter().any(|literal| Some(*literal) == value)).then(|| number.to_string())
            }
            Value::Null | Value::Bool(_) => None,
        }
    }
}

/// Returns `true` if a text is between two tags of the reply, apart from white space. The tag before it may
/// also end with `]` or `|`; an empty text always counts.
fn is_between_tags(reply: &str, text: &str) -> bool {
    let text = text.trim();
    let is_space = |c: char| c.is_whitespace();
    text.is_empty()
        || reply.match_indices(text).any(|(at, _)| {
            let (before, after) = (reply[..at].trim_end_matches(is_space), &reply[at + text.len()..]);
            before.ends_with(['>', ']', '|']) && after.trim_start_matches(is_space).starts_with('<')
        })
}

/// Decodes the text up to one of the closing quotes, escapes included; `None` without a closing quote. If
/// `is_python` is true, a backslash that begins no escape is kept, as in Python.
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
                let mut remaining = chars.as_str();
                let first_unit = parse_hex(remaining);
                let unit = first_unit.unwrap_or(0xFFFD);
                if first_unit.is_some() {
                    remaining = &remaining[4..];
                }
                let is_high_surrogate = (0xD800..0xDC00).contains(&unit);
                let low_surrogate =
                    remaining.strip_prefix("\\u").and_then(parse_hex).filter(|_| is_high_surrogate);
                if let Some(low_surrogate) =
                    low_surrogate.filter(|low_surrogate| (0xDC00..0xE000).contains(low_surrogate))
                {
                    remaining = &remaining[6..];
                    let code = 0x10000 + ((unit - 0xD800) << 10) + (low_surrogate - 0xDC00);
                    out.push(char::from_u32(code).unwrap_or('\u{FFFD}'));
                } else {
                    out.push(char::from_u32(unit).unwrap_or('\u{FFFD}'));
                }
                chars = remaining.chars();
            }
            other if is_python && !matches!(other, '"' | '\'' | '\\') => out.extend(['\\', other]),
            other => out.push(other),
        }
    }
    None
}

/// Parses four hexadecimal digits at the beginning of `text`.
fn parse_hex(text: &str) -> Option<u32> {
    u32::from_str_radix(text.get(..4)?, 16).ok()
}

/// Parses every word of `text` that is a number.
fn parse_numbers(text: &str) -> Vec<f64> {
    let tokens = text.split(|c: char| !(c.is_ascii_alphanumeric() || "+-._".contains(c)));
    tokens.filter_map(|token| token.trim_end_matches('.').parse().ok()).collect()
}
