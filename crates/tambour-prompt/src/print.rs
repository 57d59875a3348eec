//! Printed form of values in prompts (S-041, F-026), the same for all templates.

use std::borrow::Cow;
use std::fmt::Write;

use serde_json::{Number, Value};

/// 2^53: doubles represent every integer up to this one exactly.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// Returns `value` as text: strings unchanged, `null` as an empty text, `true` and `false` by name, numbers
/// in their shortest form (`80`, not `80.0`), lists and maps as compact JSON with keys in their order.
#[must_use]
pub(crate) fn print(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => Cow::Borrowed(""),
        Value::Bool(true) => Cow::Borrowed("true"),
        Value::Bool(false) => Cow::Borrowed("false"),
        Value::String(text) => Cow::Borrowed(text),
        Value::Number(number) => Cow::Owned(self::format_number(number)),
        Value::Array(_) | Value::Object(_) => {
            let mut out = String::new();
            write_json(value, &mut out);
            Cow::Owned(out)
        }
    }
}

/// Returns a number in its shortest form.
#[must_use]
pub(crate) fn format_number(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => self::format_float(float),
        _ => number.to_string(),
    }
}

/// Returns a double in its shortest form; `NaN` and infinities, which JSON lacks, by name.
#[must_use]
pub(crate) fn format_float(float: f64) -> String {
    if float.fract() == 0.0 && float.abs() < MAX_EXACT_INTEGER {
        // Prints -0.0 as 0.
        return (float as i64).to_string();
    }
    match Number::from_f64(float) {
        Some(number) => number.to_string(),
        None => float.to_string(),
    }
}

/// Appends `value` to `out` as compact JSON with numbers in their shortest form.
pub(crate) fn write_json(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Number(number) => out.push_str(&self::format_number(number)),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (index, (key, field)) in fields.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json_string(key, out);
                out.push(':');
                write_json(field, out);
            }
            out.push('}');
        }
        Value::String(text) => write_json_string(text, out),
        Value::Bool(_) => out.push_str(&print(value)),
    }
}

/// Appends `text` to `out` as a JSON string.
pub(crate) fn write_json_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
