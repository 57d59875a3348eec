//! Protects macros from other parsers, and checks that no word of a text is lost.

use std::collections::HashMap;

use serde_json::Value;

/// Character before the number of a macro in a protected text: a private-use character, which texts rarely
/// contain.
pub(super) const MACRO_OPEN: char = '\u{e000}';
/// Character after the number of a macro.
pub(super) const MACRO_CLOSE: char = '\u{e001}';

/// A text with its macros, `{{…}}`, replaced by their numbers between [`MACRO_OPEN`] and [`MACRO_CLOSE`].
pub(super) struct ProtectedText<'a> {
    /// Text with the numbers.
    pub(super) text: String,
    /// Source of the macros, by number.
    macros: Vec<&'a str>,
}

impl<'a> ProtectedText<'a> {
    /// Replaces the outermost macros; returns `None` if the text contains the marker characters already.
    pub(super) fn new(text: &'a str) -> Option<ProtectedText<'a>> {
        if text.contains([MACRO_OPEN, MACRO_CLOSE]) {
            return None;
        }
        let mut protected = ProtectedText { text: String::with_capacity(text.len()), macros: Vec::new() };
        let (mut depth, mut macro_start, mut copied_end) = (0_usize, 0, 0);
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            match &bytes[at..] {
                [b'{', b'{', ..] => {
                    if depth == 0 {
                        macro_start = at;
                    }
                    depth += 1;
                    at += 2;
                }
                [b'}', b'}', ..] if depth > 0 => {
                    depth -= 1;
                    at += 2;
                    if depth == 0 {
                        protected.text += &text[copied_end..macro_start];
                        protected.text += &format!("{MACRO_OPEN}{}{MACRO_CLOSE}", protected.macros.len());
                        protected.macros.push(&text[macro_start..at]);
                        copied_end = at;
                    }
                }
                _ => at += 1,
            }
        }
        protected.text += &text[copied_end..];
        Some(protected)
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

    /// Returns a text with the macros put back.
    fn restore_text(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut remaining = text;
        while let Some((before, remainder)) = remaining.split_once(MACRO_OPEN) {
            out += before;
            let (number, remainder) = remainder.split_once(MACRO_CLOSE).unwrap_or((remainder, ""));
            let source = number.parse::<usize>().ok().and_then(|number| self.macros.get(number));
            out += source.copied().unwrap_or_default();
            remaining = remainder;
        }
        out + remaining
    }
}

/// Returns true if each word of `source` occurs at least as often in the keys and values of `value` and in
/// `dropped_item_numbers` together. The latter are the list item numbers that the conversion has left out.
pub(super) fn contains_words(value: &Value, dropped_item_numbers: &[usize], source: &str) -> bool {
    let mut word_counts: HashMap<String, isize> = HashMap::new();
    for number in dropped_item_numbers {
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

/// Calls `visit` with each key and each printed value.
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

/// Returns the words of a text in lower case. A word consists of letters, digits and protected macros, and of
/// dots between them.
fn split_words(text: &str) -> impl Iterator<Item = String> {
    let is_word_char = |c: char| c.is_alphanumeric() || c == MACRO_OPEN || c == MACRO_CLOSE;
    text.split(move |c: char| !is_word_char(c) && c != '.')
        .map(move |word| word.trim_matches(|c| !is_word_char(c)))
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

/// Removes the parts of lines that YAML may read as comments: from a `#` at the beginning of a line or after
/// white space.
pub(super) fn remove_comments(text: &str) -> String {
    let code_len = |line: &str| {
        let mut search_start = 0;
        while let Some(at) = line[search_start..].find('#').map(|at| search_start + at) {
            if at == 0 || line[..at].ends_with([' ', '\t']) {
                return at;
            }
            search_start = at + 1;
        }
        line.len()
    };
    text.lines().map(|line| &line[..code_len(line)]).collect::<Vec<_>>().join("\n")
}

/// Decodes the numeric escapes of YAML double-quoted strings (`\x`, `\u`, `\U`) and replaces all others by a
/// space, because the result is only split into words.
pub(super) fn decode_escapes_for_words(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut remaining = text;
    while let Some((before, after_backslash)) = remaining.split_once('\\') {
        out += before;
        let digits = match after_backslash.bytes().next() {
            Some(b'x') => 2,
            Some(b'u') => 4,
            Some(b'U') => 8,
            _ => 0,
        };
        let code_point = after_backslash.get(1..=digits).filter(|_| digits > 0);
        let c = code_point
            .and_then(|code_point| u32::from_str_radix(code_point, 16).ok())
            .and_then(char::from_u32);
        remaining = match c {
            Some(c) => {
                out.push(c);
                &after_backslash[1 + digits..]
            }
            None => {
                // The other escapes stand for no letters or digits, so they separate words.
                out.push(' ');
                let skipped_char =
                    after_backslash.chars().next().filter(|c| c.is_ascii_alphanumeric() || *c == '\\');
                &after_backslash[skipped_char.map_or(0, char::len_utf8)..]
            }
        };
    }
    out + remaining
}
