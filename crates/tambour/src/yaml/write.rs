//! Writes values as YAML text.

use serde_json::Value;

/// Prints `value` as YAML: block style, two spaces per level, also for lists under a key, keys in their
/// order, literal blocks for multi-line text, and quotes where a YAML 1.1 or 1.2 reader would otherwise read
/// another value. The result ends with a line break and parses back to the same value (F-004).
#[must_use]
pub fn print(value: &Value) -> String {
    let options = serde_saphyr::ser_options! {
        compact_list_indent: false,
        // Disables folding.
        folded_wrap_chars: usize::MAX,
    };
    let marked_value = mark_letters(value);
    let yaml = serde_saphyr::to_string_with_options(marked_value.as_ref().unwrap_or(value), options);
    match yaml {
        Ok(yaml) if marked_value.is_some() => yaml.replace(UNQUOTED_MARK, ""),
        Ok(yaml) => yaml,
        // Fails only for a broken writer or a non-scalar key. JSON is valid YAML as well.
        Err(_) => format!("{value}\n"),
    }
}

/// Appended to a text while it is written; a private-use character.
const UNQUOTED_MARK: char = '\u{e002}';

/// Marks the texts `y` and `n`, so that the writer does not quote them: they name coordinates, and readers of
/// both versions take them as text. Returns `None` if there are none, or the mark is in use.
fn mark_letters(value: &Value) -> Option<Value> {
    fn any(value: &Value, is_match: &impl Fn(&str) -> bool) -> bool {
        match value {
            Value::String(text) => is_match(text),
            Value::Array(items) => items.iter().any(|item| any(item, is_match)),
            Value::Object(map) => map.iter().any(|(key, value)| is_match(key) || any(value, is_match)),
            _ => false,
        }
    }
    fn mark_values(value: &Value) -> Value {
        let text =
            |text: &str| if is_letter(text) { format!("{text}{UNQUOTED_MARK}") } else { text.to_owned() };
        match value {
            Value::String(string) => text(string).into(),
            Value::Array(items) => items.iter().map(mark_values).collect(),
            Value::Object(map) => map.iter().map(|(key, value)| (text(key), mark_values(value))).collect(),
            other => other.clone(),
        }
    }
    fn is_letter(text: &str) -> bool {
        matches!(text, "y" | "n" | "Y" | "N")
    }
    (any(value, &is_letter) && !any(value, &|text: &str| text.contains(UNQUOTED_MARK)))
        .then(|| mark_values(value))
}

/// Indents each non-empty line of `text` by `width` spaces. YAML of a mapping or list keeps its value; a literal
/// block by itself may not.
#[must_use]
pub fn indent_lines(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len() + width * 16);
    for line in text.split_inclusive('\n') {
        if !line.trim_end_matches(['\n', '\r']).is_empty() {
            out.extend(std::iter::repeat_n(' ', width));
        }
        out += line;
    }
    out
}
