//! Values of arguments written as bare text: typed by the tool's schema, else JSON if valid, else text.

use serde_json::Value;

use super::python;
use crate::finding::{Doubt, clip};
use crate::limits::Limits;
use crate::repair::json::{self, FoundValue, ValueDoubt};
use crate::span::Place;
use crate::tool::ToolRegistry;

/// Returns the types that the tool's schema allows for an argument; empty if it does not say.
fn argument_types<'a>(tools: Option<&'a ToolRegistry>, tool: &str, key: &str) -> Vec<&'a str> {
    let schema = tools.and_then(|tools| tools.get(tool)).map(|tool| tool.schema());
    let mut found = Vec::new();
    if let Some(schema) = schema.and_then(|schema| schema.get("properties")?.get(key)) {
        collect_types(schema, 4, &mut found);
    }
    found
}

/// Collects the types of a schema and of its alternatives.
fn collect_types<'a>(schema: &'a Value, depth: usize, found: &mut Vec<&'a str>) {
    match schema.get("type") {
        Some(Value::String(name)) => found.push(name),
        Some(Value::Array(names)) => found.extend(names.iter().filter_map(Value::as_str)),
        _ => {}
    }
    if found.is_empty()
        && let Some(values) = schema.get("enum").and_then(Value::as_array)
    {
        values.iter().for_each(|value| found.push(value_type(value)));
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        let alternatives = schema.get(key).and_then(Value::as_array).filter(|_| depth > 0);
        alternatives.into_iter().flatten().for_each(|branch| collect_types(branch, depth - 1, found));
    }
}

fn value_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Notation of an argument's value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ArgumentNotation {
    /// As bare text, whatever it means.
    Bare,
    /// As JSON, as the argument itself says.
    Json,
}

/// The value of `text` for the argument `key` of `tool`, and what is doubtful in it.
pub(super) fn parse_value(
    text: &str,
    notation: ArgumentNotation,
    tools: Option<&ToolRegistry>,
    tool: &str,
    key: &str,
    limits: &Limits,
) -> (Value, Option<ValueDoubt>) {
    let types = argument_types(tools, tool, key);
    if types.iter().all(|kind| *kind == "string") && !types.is_empty() {
        return (Value::from(text), None);
    }
    let trimmed = text.trim();
    let found = json::parse_strict_with_doubts(trimmed, limits)
        .ok()
        .or_else(|| parse_large_number(trimmed, &types, limits));
    let doubt = found.as_ref().and_then(|found| found.doubts.find_within(&[]).cloned());
    let is_bare = notation == ArgumentNotation::Bare;
    if is_bare && types.is_empty() && doubt.is_some() && found.as_ref().is_some_and(is_number) {
        // Digits are kept unless the type is a number.
        return (Value::from(text), None);
    }
    let (parsed_value, doubt) =
        match found.and_then(|found| found.value).or_else(|| parse_keyword(trimmed, &types)) {
            Some(value) => (Some(value), doubt),
            None => {
                // A text that only looks like a Python literal stays text unless a type requires a literal.
                let wants_container = types.iter().any(|kind| matches!(*kind, "array" | "object"));
                let literal = (wants_container || trimmed.starts_with(['[', '{', '(']))
                    .then(|| python::parse_literal(trimmed, limits));
                literal.flatten().map_or((None, None), |(value, doubt)| (Some(value), doubt))
            }
        };
    let Some(parsed_value) = parsed_value else {
        // A text that is said to be none, where no schema says otherwise, is a guess.
        let is_guess = !is_bare && types.is_empty();
        let message = || format!("`{}` is declared as JSON, but is not JSON", clip(key, 60));
        let doubt = is_guess.then(|| ValueDoubt::guess(Place::START, text.len(), message()));
        return (Value::from(text), doubt);
    };
    (fit_value(parsed_value, text, &types), doubt)
}

/// Reads a number that no double holds exactly, if a number is required.
fn parse_large_number(text: &str, types: &[&str], limits: &Limits) -> Option<FoundValue> {
    let wants_number = types.iter().any(|kind| matches!(*kind, "number" | "integer"));
    let found = wants_number.then(|| json::find(text, limits))?;
    found.doubts.find_within(&[]).is_some_and(|doubt| doubt.doubt == Doubt::InexactNumber).then_some(found)
}

fn is_number(found: &FoundValue) -> bool {
    found.value.as_ref().is_some_and(Value::is_number)
}

/// Returns the value read from `text` if it has one of the types, else the text.
fn fit_value(value: Value, text: &str, types: &[&str]) -> Value {
    let kind = value_type(&value);
    let is_fitting =
        types.is_empty() || types.contains(&kind) || kind == "integer" && types.contains(&"number");
    match value {
        // A quoted text is kept with its quotes unless the schema declares a string.
        Value::String(_) if !types.is_empty() => Value::from(text),
        value if is_fitting => value,
        value => to_integer(&value, types).unwrap_or_else(|| Value::from(text)),
    }
}

/// Reads a Python keyword, or a JSON keyword in another case, if the schema allows its value.
fn parse_keyword(text: &str, types: &[&str]) -> Option<Value> {
    let is_word = |word: &str| text.eq_ignore_ascii_case(word);
    match () {
        () if (is_word("true") || is_word("false")) && types.contains(&"boolean") => {
            Some(Value::Bool(is_word("true")))
        }
        () if (is_word("null") || is_word("none")) && types.contains(&"null") => Some(Value::Null),
        () => None,
    }
}

/// Reads a number such as `3.0` where an integer is required.
fn to_integer(value: &Value, types: &[&str]) -> Option<Value> {
    let number = value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 9e15)?;
    types.contains(&"integer").then(|| Value::from(number as i64))
}
