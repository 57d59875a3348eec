//! Values of arguments written as bare text: typed by the tool's schema, else JSON if valid, else text.

use serde_json::Value;

use super::python;
use crate::dialect::MAX_EXCERPT_CHARS;
use crate::finding::{Doubt, clip};
use crate::grammar::reference_target;
use crate::limits::Limits;
use crate::repair::json::{self, FoundValue, ValueDoubt};
use crate::span::Place;
use crate::tool::ToolRegistry;

/// Returns the JSON Schema types that the tool's schema allows for an argument; empty if it names none.
fn argument_types<'a>(tools: Option<&'a ToolRegistry>, tool: &str, key: &str) -> Vec<&'a str> {
    let Some(root) = tools.and_then(|tools| tools.get(tool)).map(|tool| tool.schema()) else {
        return Vec::new();
    };
    let mut types: Option<Vec<&str>> = None;
    // The schemas that the root is a conjunction of.
    let mut open = vec![root];
    for _ in 0..MAX_ROOT_SCHEMAS {
        let Some(schema) = open.pop() else { break };
        let reference = schema.get("$ref").and_then(Value::as_str);
        open.extend(reference.and_then(|reference| reference_target(root, reference)));
        let branches = schema.get("allOf").and_then(Value::as_array);
        open.extend(branches.into_iter().flatten().take(MAX_ROOT_SCHEMAS));
        let Some(property) = schema.get("properties").and_then(|properties| properties.get(key)) else {
            continue;
        };
        let mut own = Vec::new();
        collect_types(property, MAX_ALTERNATIVE_LEVELS, &mut own);
        types = match types {
            Some(known) if !known.is_empty() && !own.is_empty() => {
                Some(known.into_iter().filter(|kind| own.contains(kind)).collect())
            }
            Some(known) if !known.is_empty() => Some(known),
            _ => Some(own),
        };
    }
    types.unwrap_or_default()
}

/// Maximum number of schemas that are searched for an argument, through `$ref` and `allOf` of the root.
const MAX_ROOT_SCHEMAS: usize = 256;

/// Maximum number of levels of nested alternatives in a schema that are searched for types.
const MAX_ALTERNATIVE_LEVELS: usize = 4;

/// Collects the types of a schema and of its alternatives, nested up to `levels` deep.
fn collect_types<'a>(schema: &'a Value, levels: usize, types: &mut Vec<&'a str>) {
    match schema.get("type") {
        Some(Value::String(name)) => types.push(name),
        Some(Value::Array(names)) => types.extend(names.iter().filter_map(Value::as_str)),
        _ => {}
    }
    if types.is_empty()
        && let Some(values) = schema.get("enum").and_then(Value::as_array)
    {
        values.iter().for_each(|value| types.push(value_type(value)));
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        let alternatives = schema.get(key).and_then(Value::as_array).filter(|_| levels > 0);
        alternatives.into_iter().flatten().for_each(|branch| collect_types(branch, levels - 1, types));
    }
}

/// Returns the JSON Schema type of a value.
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
    /// Bare text; its type follows from the schema, or else from the text.
    Bare,
    /// JSON, as the mark of the argument declares.
    Json,
}

/// Parses `text` as the value of the argument `key` of `tool`, and returns it with a doubt about it, if any.
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
    // The empty path denotes the whole value.
    let doubt = found.as_ref().and_then(|found| found.doubts.find_within(&[]).cloned());
    let is_bare = notation == ArgumentNotation::Bare;
    if is_bare && types.is_empty() && doubt.is_some() && found.as_ref().is_some_and(is_number) {
        // A number that no double holds exactly stays text, which keeps its digits.
        return (Value::from(text), None);
    }
    let (parsed_value, doubt) =
        match found.and_then(|found| found.value).or_else(|| parse_keyword(trimmed, &types)) {
            Some(value) => (Some(value), doubt),
            None => {
                // Only containers are read as Python literals: other text that looks like one stays text.
                let wants_container = types.iter().any(|kind| matches!(*kind, "array" | "object"));
                let literal = (wants_container || trimmed.starts_with(['[', '{', '(']))
                    .then(|| python::parse_literal(trimmed, limits));
                literal.flatten().map_or((None, None), |(value, doubt)| (Some(value), doubt))
            }
        };
    let Some(parsed_value) = parsed_value else {
        // The mark declares JSON, the text is not JSON, and no schema allows a text: the value is a guess
        //
        let is_guess = !is_bare && types.is_empty();
        let message = || format!("`{}` is declared as JSON, but is not JSON", clip(key, MAX_EXCERPT_CHARS));
        let doubt = is_guess.then(|| ValueDoubt::guess(Place::START, text.len(), message()));
        return (Value::from(text), doubt);
    };
    (fit_value(parsed_value, text, &types), doubt)
}

/// Reads a number that no double holds exactly, if the schema allows a number.
fn parse_large_number(text: &str, types: &[&str], limits: &Limits) -> Option<FoundValue> {
    let wants_number = types.iter().any(|kind| matches!(*kind, "number" | "integer"));
    let found = wants_number.then(|| json::find(text, limits))?;
    found.doubts.find_within(&[]).is_some_and(|doubt| doubt.doubt == Doubt::InexactNumber).then_some(found)
}

fn is_number(found: &FoundValue) -> bool {
    found.value.as_ref().is_some_and(Value::is_number)
}

/// Returns the value read from `text` if it has one of the types or can be converted to an allowed integer;
/// otherwise the text.
fn fit_value(value: Value, text: &str, types: &[&str]) -> Value {
    let kind = value_type(&value);
    let is_fitting =
        types.is_empty() || types.contains(&kind) || kind == "integer" && types.contains(&"number");
    match value {
        // Quotes tell a text from the other types that the schema allows; without a text among them they stay.
        Value::String(_) if !types.is_empty() && !types.contains(&"string") => Value::from(text),
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

/// Converts a number such as `3.0` to an integer where the schema allows one. A double holds every integer up
/// to 9e15 exactly.
fn to_integer(value: &Value, types: &[&str]) -> Option<Value> {
    let number = value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 9e15)?;
    types.contains(&"integer").then(|| Value::from(number as i64))
}
