//! Checks answers of `ai_ask` against the question's requirements: converts their value to the type of the
//! question, and describes the type to the model.

use serde_json::{Value, json};

use crate::jinja::parse_number;
use crate::script::{AnswerForm, AnswerKind, parse_date};
use tambour::dialect;
use tambour::texts::{Language, bilingual};

/// Returns the value of an answer in the required type, or `None` if it does not fit. Neither a placeholder
/// nor a repetition of one of `model_texts`, such as the question, is an answer.
pub(super) fn fit_answer(form: &AnswerForm, value: &Value, model_texts: &[&str]) -> Option<Value> {
    let value = unwrap_single(value);
    if let Value::String(text) = value
        && (is_placeholder(text) || model_texts.iter().any(|model_text| is_same_text(text, model_text)))
    {
        return None;
    }
    match form.kind {
        AnswerKind::Text => to_text(value).map(Value::String),
        AnswerKind::Number => {
            let number = match value {
                Value::Number(number) => number.clone(),
                Value::String(text) => parse_number(text)?,
                _ => return None,
            };
            let float = number.as_f64()?;
            let bound_of = |bound: &Option<Value>| bound.as_ref().and_then(Value::as_f64);
            let is_within = bound_of(&form.min).is_none_or(|min| float >= min)
                && bound_of(&form.max).is_none_or(|max| float <= max);
            is_within.then_some(Value::Number(to_integer(number)))
        }
        AnswerKind::Boolean => dialect::parse_flag(value).map(|(flag, _)| flag.into()),
        AnswerKind::Choice => form.options.iter().find(|option| matches_option(value, option)).cloned(),
        AnswerKind::Date => {
            let day = parse_date(value.as_str()?)?;
            let bound_of = |bound: &Option<Value>| bound.as_ref().and_then(Value::as_str).map(str::to_owned);
            let is_within = bound_of(&form.min).is_none_or(|min| day >= min)
                && bound_of(&form.max).is_none_or(|max| day <= max);
            is_within.then_some(Value::String(day))
        }
    }
}

/// Returns true for a placeholder, which answers no question.
pub(super) fn is_placeholder_value(value: &Value) -> bool {
    value.as_str().is_some_and(is_placeholder)
}

/// Unwraps lists and objects with a single member, however deeply they are nested.
fn unwrap_single(value: &Value) -> &Value {
    match value {
        Value::Array(items) if items.len() == 1 => unwrap_single(&items[0]),
        Value::Object(fields) if fields.len() == 1 => fields.values().next().map_or(value, unwrap_single),
        _ => value,
    }
}

/// Returns a value as text; items of a list are joined. `None` for null, for empty texts and lists, and for
/// lists with an item that has no text.
fn to_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Array(items) => {
            let texts: Option<Vec<String>> = items.iter().map(to_text).collect();
            texts.filter(|texts| !texts.is_empty()).map(|texts| texts.join(", "))
        }
        Value::Object(_) => Some(value.to_string()),
        Value::Null => None,
    }
}

/// Converts a double without a fraction to an integer, if the integer is exact.
fn to_integer(number: serde_json::Number) -> serde_json::Number {
    // 2^53: doubles represent every integer up to this one exactly.
    const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() <= MAX_EXACT_INTEGER => {
            (float as i64).into()
        }
        _ => number,
    }
}

/// Returns true if a value is the option, as a number or as a text in any letter case.
fn matches_option(value: &Value, option: &Value) -> bool {
    match (value, option) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::String(text), Value::Number(b)) => {
            parse_number(text).is_some_and(|a| a.as_f64() == b.as_f64())
        }
        (_, Value::String(option)) => {
            to_text(value).is_some_and(|text| fold_text(&text) == fold_text(option))
        }
        _ => false,
    }
}

/// Returns a text in lower case, trimmed, with full-width letters, digits and signs replaced by their ASCII
/// forms.
fn fold_text(text: &str) -> String {
    let to_half_width = |c: char| match c {
        // The full-width forms have the same order as ASCII, 0xFEE0 code points later.
        '！'..='～' => char::from_u32(c as u32 - 0xFEE0).unwrap_or(c),
        _ => c,
    };
    text.trim().chars().map(to_half_width).flat_map(char::to_lowercase).collect()
}

/// Returns true if two texts consist of the same letters and digits, at least one, in any letter case; signs
/// and white space do not count.
fn is_same_text(a: &str, b: &str) -> bool {
    let letters =
        |text: &str| -> String { fold_text(text).chars().filter(|c| c.is_alphanumeric()).collect() };
    let a = letters(a);
    !a.is_empty() && a == letters(b)
}

/// Returns true for texts that stand for a missing value: blank texts, signs such as dots and dashes, a field
/// to fill in such as `<name>` or `{name}`, words such as `null`, and example values from the default
/// templates.
fn is_placeholder(text: &str) -> bool {
    const WORDS: [&str; 6] = ["null", "undefined", "value", "answer", "答案", "简短的答案"];
    let text = text.trim();
    let is_enclosed = |open: char, close: char| text.starts_with(open) && text.ends_with(close);
    text.is_empty()
        || text.chars().all(|c| matches!(c, '.' | '…' | '。' | '_' | '-' | '—' | '?' | '？' | '*' | ' '))
        || is_enclosed('<', '>')
        || is_enclosed('{', '}')
        || WORDS.contains(&text)
}

/// Describes the required answer to the model; `None` for a text.
pub(super) fn describe_form(form: &AnswerForm, language: Language) -> Option<String> {
    // `quantity` is `number` or `date`.
    let describe_range = |quantity: &str| match (&form.min, &form.max) {
        (None, None) => String::new(),
        (Some(min), None) => {
            bilingual!(
                language,
                "，不{}于 {}",
                ", {1} or {0}",
                lower_bound_word(quantity, language),
                format_bound(min)
            )
        }
        (None, Some(max)) => {
            bilingual!(
                language,
                "，不{}于 {}",
                ", {1} or {0}",
                upper_bound_word(quantity, language),
                format_bound(max)
            )
        }
        (Some(min), Some(max)) => {
            bilingual!(
                language,
                "，在 {} 到 {} 之间",
                ", from {} to {}",
                format_bound(min),
                format_bound(max)
            )
        }
    };
    let expectation = match form.kind {
        AnswerKind::Text => return None,
        AnswerKind::Number => {
            bilingual!(
                language,
                "一个 JSON 数字（不加引号）{}",
                "a JSON number without quotes{}",
                describe_range("number")
            )
        }
        AnswerKind::Boolean => bilingual!(language, "true 或 false", "true or false"),
        AnswerKind::Choice => {
            let options: Vec<String> = form.options.iter().map(Value::to_string).collect();
            let options = options.join(", ");
            bilingual!(language, "以下选项之一，一字不差：{}", "one of these, word for word: {}", options)
        }
        AnswerKind::Date => {
            bilingual!(
                language,
                "形如 \"2026-03-14\" 的日期{}",
                "a date such as \"2026-03-14\"{}",
                describe_range("date")
            )
        }
    };
    Some(bilingual!(
        language,
        "\n\n【答案的要求】\nvalue 必须是{}。用户的回答不能这样写时，usable 为 false，value 为 null，并在 response 里请对方按要求回答。\n",
        "\n\n[Required answer]\nvalue must be {}. If the user's answer cannot be written like this, set usable to false and value to null, and ask for such an answer in the response.\n",
        expectation
    ))
}

/// Returns the word that describes a lower bound, as in "不早于" and "or later".
fn lower_bound_word(quantity: &str, language: Language) -> &'static str {
    match (quantity, language) {
        ("date", Language::Zh) => "早",
        (_, Language::Zh) => "小",
        ("date", Language::En) => "later",
        (_, Language::En) => "more",
    }
}

/// Returns the word that describes an upper bound, as in "不晚于" and "or earlier".
fn upper_bound_word(quantity: &str, language: Language) -> &'static str {
    match (quantity, language) {
        ("date", Language::Zh) => "晚",
        (_, Language::Zh) => "大",
        ("date", Language::En) => "earlier",
        (_, Language::En) => "less",
    }
}

fn format_bound(bound: &Value) -> String {
    bound.as_str().map_or_else(|| bound.to_string(), str::to_owned)
}

/// Returns the JSON Schema of the reply to a question; the key of its message is `role`.
pub(super) fn reply_schema(form: &AnswerForm, role: &str) -> Value {
    let mut value = match form.kind {
        AnswerKind::Text => json!({ "type": ["string", "null"] }),
        AnswerKind::Number => json!({ "type": ["number", "null"] }),
        AnswerKind::Boolean => json!({ "type": ["boolean", "null"] }),
        AnswerKind::Choice => {
            let options: Vec<Value> = form.options.iter().cloned().chain([Value::Null]).collect();
            json!({ "enum": options })
        }
        AnswerKind::Date => json!({ "type": ["string", "null"], "format": "date" }),
    };
    // JSON Schema has no bounds for dates.
    if form.kind == AnswerKind::Number {
        for (name, bound) in [("minimum", &form.min), ("maximum", &form.max)] {
            if let Some(bound) = bound {
                value[name] = bound.clone();
            }
        }
    }
    json!({
        "type": "object",
        "properties": {
            "value": value,
            "usable": { "type": "boolean" },
            "response": {
                "type": "object",
                "properties": { (role): { "type": "string" } },
                "required": [role],
                "additionalProperties": false,
            },
        },
        "required": ["value", "usable", "response"],
        "additionalProperties": false,
    })
}
