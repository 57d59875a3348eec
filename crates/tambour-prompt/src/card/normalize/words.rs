//! Protects macros from other parsers, and checks that no word of a text is lost.

use std::collections::HashMap;

use serde_json::Value;

/// Begins the number of a macro in a protected text; a private-use character.
pub(super) const MACRO_OPEN: char = '\u{e000}';
/// Ends the number of a macro.
pub(super) const MACRO_CLOSE: char = '\u{e001}';

/// A text with its macros, `{{…}}`, replaced by numbers.
pub(super) struct ProtectedText<'a> {
    pub(super) text: String,
    macros: Vec<&'a str>,
}

impl<'a> ProtectedText<'a> {
    /// Replaces the macros; returns `None` if the text contains the marker characters.
    pub(super) fn new(text: &'a str) -> Option<ProtectedText<'a>> {
        if text.contains([MACRO_OPEN, MACRO_CLOSE]) {
            return None;
        }
        let mut out = ProtectedText { text: String::with_capacity(text.len()), macros: Vec::new() };
        let (mut depth, mut start, mut copied_end) = (0_usize, 0, 0);
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            match &bytes[at..] {
                [b'{', b'{', ..] => {
                    if depth == 0 {
                        start = at;
                    }
                    depth += 1;
                    at += 2;
                }
                [b'}', b'}', ..] if depth > 0 => {
                    depth -= 1;
                    at += 2;
                    if depth == 0 {
                        out.text += &text[copied_end..start];
                        out.text += &format!("{MACRO_OPEN}{}{MACRO_CLOSE}", out.macros.len());
                        out.macros.push(&text[start..at]);
                        copied_end = at;
                    }
                }
                _ => at += 1,
            }
        }
        out.text += &text[copied_end..];
        Some(out)
    }

    /// Returns `value` with the macros put back.
    pub(super) fn restore(&self, value: Value) -> Value {
        match value {
            Value::String(text) => self.restore_text(&text).into(),
            Value::Array(items) => items.into_iter().map(|item| self.restore(item)).collect(),
            Value::Object(map) => {
                map.into_iter().map(|(key, value)| (self.restore_text(&key), self.restore(value))).collect()
            }
            other => other,
        }
    }

    fn restore_text(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, remainder)) = rest.split_once(MACRO_OPEN) {
            out += before;
            let (number, remainder) = remainder.split_once(MACRO_CLOSE).unwrap_or((remainder, ""));
            let found = number.parse::<usize>().ok().and_then(|number| self.macros.get(number));
            out += found.copied().unwrap_or_default();
            rest = remainder;
        }
        out + rest
    }
}

/// Returns true if each word of `source` occurs in `value` or `numbers` at least as often.
pub(super) fn contains_words(value: &Value, numbers: &[usize], source: &str) -> bool {
    let mut word_counts: HashMap<String, isize> = HashMap::new();
    for number in numbers {
        *word_counts.entry(number.to_string()).or_default() += 1;
    }
    visit_texts(value, &mut |text| {
        for word in split_words(text) {
            *word_counts.entry(word).or_default() += 1;
        }
    });
    for word in split_words(source) {
        let count = word_counts.entry(word).or_default();
        *count -= 1;
        if *count < 0 {
            return false;
        }
    }
    true
}

fn visit_texts(value: &Value, visit: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Null => visit("null"),
        Value::Bool(_) | Value::Number(_) => visit(&value.to_string()),
        Value::Array(items) => items.iter().for_each(|item| visit_texts(item, visit)),
        Value::Object(map) => {
            for (key, value) in map {
                visit(key);
                visit_texts(value, visit);
            }
        }
    }
}

/// Returns the words of a text in lower case: letters, digits and the points within numbers.
fn split_words(text: &str) -> impl Iterator<Item = String> {
    let inner = |c: char| c.is_alphanumeric() || c == MACRO_OPEN || c == MACRO_CLOSE;
    text.split(move |c: char| !inner(c) && c != '.')
        .map(move |word| word.trim_matches(|c| !inner(c)))
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

/// Removes what YAML may read as comments.
pub(super) fn remove_comments(text: &str) -> String {
    let code = |line: &str| {
        let mut from = 0;
        while let Some(at) = line[from..].find('#').map(|at| from + at) {
            if at == 0 || line[..at].ends_with([' ', '\t']) {
                return at;
            }
            from = at + 1;
        }
        line.len()
    };
    text.lines().map(|line| &line[..code(line)]).collect::<Vec<_>>().join("\n")
}

/// Replaces the escapes of YAML double-quoted strings by the characters they stand for.
pub(super) fn decode_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after_backslash)) = rest.split_once('\\') {
        out += before;
        let digits = match after_backslash.bytes().next() {
            Some(b'x') => 2,
            Some(b'u') => 4,
            Some(b'U') => 8,
            _ => 0,
        };
        let number = after_backslash.get(1..=digits).filter(|_| digits > 0);
        let c = number.and_then(|number| u32::from_str_radix(number, 16).ok()).and_then(char::from_u32);
        rest = match c {
            Some(c) => {
                out.push(c);
                &after_backslash[1 + digits..]
            }
            None => {
                // All other escapes stand for non-letters.
                out.push(' ');
                let letter =
                    after_backslash.chars().next().filter(|c| c.is_ascii_alphanumeric() || *c == '\\');
                &after_backslash[letter.map_or(0, char::len_utf8)..]
            }
        };
    }
    out + rest
}
