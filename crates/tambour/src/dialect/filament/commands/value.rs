//! A value of a command.

use serde_json::Value;

use super::sum::sum;
use crate::lex::space::trim;
use crate::limits::Limits;
use crate::repair::json;

/// A text without the quotes around it.
pub(super) fn unquoted(text: &str) -> &str {
    let text = trim(text);
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"' | '`'));
    let inner = quote.and_then(|quote| text[1..].strip_suffix(quote));
    inner.unwrap_or(text)
}

/// The value that a text means: a word of JavaScript, JSON, an object or list of JavaScript, a sum; else the text itself.
pub(super) fn read(text: &str, limits: &Limits) -> Value {
    match text {
        "true" => return Value::Bool(true),
        "false" => return Value::Bool(false),
        "null" | "undefined" => return Value::Null,
        _ => {}
    }
    if let Ok(value) = serde_json::from_str(text) {
        return value;
    }
    if text.starts_with(['\'', '`', '"']) {
        return Value::String(unescaped(unquoted(text)));
    }
    if text.starts_with(['[', '{']) {
        let found = json::find(text, limits);
        if let Some(value) = found.value.filter(|value| value.is_array() || value.is_object()) {
            return value;
        }
    }
    sum(text).map_or_else(|| Value::from(text), Value::Number)
}

/// A text whose quotes and line breaks are escaped.
fn unescaped(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            result.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => result.push('\n'),
            Some('t') => result.push('\t'),
            Some(c @ ('\'' | '"' | '`' | '\\')) => result.push(c),
            Some(c) => result.extend(['\\', c]),
            None => result.push('\\'),
        }
    }
    result
}
