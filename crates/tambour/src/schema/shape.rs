//! Compact forms of schemas for models: a signature such as `(text: string, strict?: boolean)`, and sample
//! arguments.

use serde_json::{Map, Value};

/// Maximum nesting depth that signatures and samples spell out.
const MAX_NESTING: usize = 4;

/// Returns the arguments of a schema as a signature without a name.
pub(super) fn format_signature(schema: &Value) -> String {
    format!("({})", format_fields(schema, 0).join(", "))
}

fn format_fields(schema: &Value, depth: usize) -> Vec<String> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Vec::new() };
    let field = |(name, value): (&String, &Value)| {
        let mark = if is_required(schema, name) { "" } else { "?" };
        format!("{name}{mark}: {}", format_type(value, depth + 1))
    };
    properties.iter().map(field).collect()
}

fn is_required(schema: &Value, name: &str) -> bool {
    let names = schema.get("required").and_then(Value::as_array);
    names.is_some_and(|names| names.iter().any(|required_name| required_name == name))
}

fn format_type(schema: &Value, depth: usize) -> String {
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        return choices.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    match schema.get("type") {
        Some(Value::String(name)) => match name.as_str() {
            "array" if depth < MAX_NESTING => match schema.get("items") {
                Some(items) => format!("{}[]", format_type(items, depth + 1)),
                None => "array".to_owned(),
            },
            "object" if depth < MAX_NESTING => match format_fields(schema, depth) {
                fields if fields.is_empty() => "object".to_owned(),
                fields => format!("{{{}}}", fields.join(", ")),
            },
            name => name.to_owned(),
        },
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" | "),
        _ => "any".to_owned(),
    }
}

/// Generates arguments with only the required fields. They may not satisfy the schema; the caller must check.
pub(super) fn generate_sample(schema: &Value) -> Value {
    generate_value(schema, "value", 0)
}

/// Generates a value; a string without a default is the description of its field, or `name`, the field's
/// name.
fn generate_value(schema: &Value, name: &str, depth: usize) -> Value {
    let first_of =
        |key: &str| schema.get(key).and_then(Value::as_array).and_then(|list| list.first()).cloned();
    let constant = schema.get("const").or_else(|| schema.get("default")).cloned();
    if let Some(constant) = constant.or_else(|| first_of("examples")).or_else(|| first_of("enum")) {
        return constant;
    }
    let kind = match schema.get("type") {
        Some(Value::Array(names)) => names.first().and_then(Value::as_str).unwrap_or("string"),
        Some(Value::String(name)) => name.as_str(),
        _ => "string",
    };
    match kind {
        "object" | "array" if depth >= MAX_NESTING => Value::Null,
        "object" => {
            let mut fields = Map::new();
            if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
                for (name, field) in properties.iter().filter(|(name, _)| is_required(schema, name)) {
                    fields.insert(name.clone(), generate_value(field, name, depth + 1));
                }
            }
            Value::Object(fields)
        }
        "array" => match (schema.get("items"), schema.get("minItems").and_then(Value::as_u64)) {
            (Some(items), Some(1..)) => Value::from(vec![generate_value(items, name, depth + 1)]),
            _ => Value::Array(Vec::new()),
        },
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or(Value::from(1)),
        "boolean" => Value::Bool(true),
        "null" => Value::Null,
        _ => schema.get("description").cloned().unwrap_or_else(|| Value::from(name)),
    }
}
