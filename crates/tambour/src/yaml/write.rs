//! Values to YAML text.

use serde_json::Value;

/// `value` as YAML: block style, two spaces a level, also for lists under a key, keys in their order, a literal block for text
/// of several lines, quotes where a reader of YAML 1.1 or 1.2 would read something else without. It ends with a line break and
/// reads back to the same value (F-004).
#[must_use]
pub fn print(value: &Value) -> String {
    let options = serde_saphyr::ser_options! {
        compact_list_indent: false,
        // No line of text is folded.
        folded_wrap_chars: usize::MAX,
    };
    let marked = marked(value);
    let printed = serde_saphyr::to_string_with_options(marked.as_ref().unwrap_or(value), options);
    match printed {
        Ok(printed) if marked.is_some() => printed.replace(MARK, ""),
        Ok(printed) => printed,
        // Only a writer that fails, or a key that is no scalar, could be in the way. JSON text is YAML as well.
        Err(_) => format!("{value}\n"),
    }
}

/// Stands behind a text while it is written: a character for private use.
const MARK: char = '\u{e002}';

/// `value` with its texts `y` and `n` marked, so that they are not quoted: readers of either version take them for text, and
/// they name coordinates. Nothing if there are none, or the mark is in use.
fn marked(value: &Value) -> Option<Value> {
    fn any(value: &Value, is: &impl Fn(&str) -> bool) -> bool {
        match value {
            Value::String(text) => is(text),
            Value::Array(items) => items.iter().any(|item| any(item, is)),
            Value::Object(map) => map.iter().any(|(key, value)| is(key) || any(value, is)),
            _ => false,
        }
    }
    fn put(value: &Value) -> Value {
        let text = |text: &str| if is_letter(text) { format!("{text}{MARK}") } else { text.to_owned() };
        match value {
            Value::String(own) => text(own).into(),
            Value::Array(items) => items.iter().map(put).collect(),
            Value::Object(map) => map.iter().map(|(key, value)| (text(key), put(value))).collect(),
            other => other.clone(),
        }
    }
    fn is_letter(text: &str) -> bool {
        matches!(text, "y" | "n" | "Y" | "N")
    }
    (any(value, &is_letter) && !any(value, &|text: &str| text.contains(MARK))).then(|| put(value))
}

/// `text` with `by` spaces before each of its lines that is not empty. YAML of a mapping or a list stays the same value; a
/// literal block alone need not.
#[must_use]
pub fn indented(text: &str, by: usize) -> String {
    let mut out = String::with_capacity(text.len() + by * 16);
    for line in text.split_inclusive('\n') {
        if !line.trim_end_matches(['\n', '\r']).is_empty() {
            out.extend(std::iter::repeat_n(' ', by));
        }
        out += line;
    }
    out
}
