//! Descriptions of state values (F-029), given in the context or in the state's JSON Schema.

use serde_json::Value;

/// Schema keyword that marks a pair of a value and its description, `[value, "what it means"]`. Unmarked
/// arrays are never treated as pairs.
pub const DESCRIPTION_PAIR: &str = "x-value-with-description";

/// Maximum number of local references followed from one place in a schema.
const MAX_REFERENCES: usize = 16;

/// Maximum nesting depth of the state that is searched for descriptions.
const MAX_STATE_DEPTH: usize = 128;

/// Looks up the description of a path, either in nested maps and lists or under a key that is the whole path,
/// such as `mood.value`.
pub(super) fn find_description(descriptions: &Value, path: &[String]) -> Option<String> {
    let nested = path.iter().try_fold(descriptions, |value, key| child(value, key));
    let text = |value: &Value| value.as_str().map(str::to_owned);
    nested.and_then(text).or_else(|| descriptions.get(path.join(".")).and_then(text))
}

/// Looks up the description of a path in a schema.
pub(super) fn find_schema_description(schema: &Value, path: &[String]) -> Option<String> {
    let subschema = path
        .iter()
        .try_fold(resolve_reference(schema, schema)?, |parent, key| child_schema(schema, parent, key))?;
    subschema.get("description")?.as_str().map(str::to_owned)
}

/// Splits marked pairs into the state with bare values and the map of descriptions.
pub(super) fn split_descriptions(state: Value, schema: &Value) -> (Value, Value) {
    match resolve_reference(schema, schema) {
        Some(subschema) => split_pair(schema, subschema, state, MAX_STATE_DEPTH),
        None => (state, Value::Null),
    }
}

/// Splits the pairs in a value whose schema is `subschema`, down to `depth` levels of nesting. Returns the
/// value without descriptions, and the descriptions, which are null if there are none.
fn split_pair(schema: &Value, subschema: &Value, value: Value, depth: usize) -> (Value, Value) {
    let Some(depth) = depth.checked_sub(1) else { return (value, Value::Null) };
    if subschema.get(DESCRIPTION_PAIR) == Some(&Value::Bool(true)) {
        return match value {
            Value::Array(pair) if pair.len() == 2 && pair[1].is_string() => {
                let mut pair = pair.into_iter();
                (pair.next().unwrap_or_default(), pair.next().unwrap_or_default())
            }
            other => (other, Value::Null),
        };
    }
    match value {
        Value::Object(fields) => {
            let mut descriptions = serde_json::Map::new();
            let fields = fields.into_iter().map(|(key, field)| {
                let Some(subschema) = child_schema(schema, subschema, &key) else { return (key, field) };
                let (field, description) = split_pair(schema, subschema, field, depth);
                if !description.is_null() {
                    descriptions.insert(key.clone(), description);
                }
                (key, field)
            });
            let fields = fields.collect();
            let descriptions =
                if descriptions.is_empty() { Value::Null } else { Value::Object(descriptions) };
            (Value::Object(fields), descriptions)
        }
        Value::Array(items) => {
            let items: Vec<(Value, Value)> = items
                .into_iter()
                .enumerate()
                .map(|(at, item)| match child_schema(schema, subschema, &at.to_string()) {
                    Some(subschema) => split_pair(schema, subschema, item, depth),
                    None => (item, Value::Null),
                })
                .collect();
            let (items, descriptions): (Vec<Value>, Vec<Value>) = items.into_iter().unzip();
            let descriptions = if descriptions.iter().all(Value::is_null) {
                Value::Null
            } else {
                Value::Array(descriptions)
            };
            (Value::Array(items), descriptions)
        }
        other => (other, Value::Null),
    }
}

/// Returns a field of a map, or an item of a list by its index.
fn child<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    match value {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        value => value.get(key),
    }
}

/// Returns the schema of a field or an item, with its references followed.
fn child_schema<'s>(schema: &'s Value, subschema: &'s Value, key: &str) -> Option<&'s Value> {
    let index = key.parse::<usize>().ok();
    let property = subschema.get("properties").and_then(|fields| fields.get(key));
    let subschema = property
        .or_else(|| subschema.get("prefixItems")?.get(index?))
        .or_else(|| subschema.get("items").filter(|items| index.is_some() && items.is_object()))
        .or_else(|| subschema.get("additionalProperties").filter(|additional| additional.is_object()))?;
    resolve_reference(schema, subschema)
}

/// Follows the local references (`#/…`) of a part of a schema; `None` if a reference is not local or leads
/// nowhere, or if there are too many.
fn resolve_reference<'s>(schema: &'s Value, mut subschema: &'s Value) -> Option<&'s Value> {
    for _ in 0..MAX_REFERENCES {
        let Some(reference) = subschema.get("$ref").and_then(Value::as_str) else { return Some(subschema) };
        // A description next to a reference takes precedence over the description of the target.
        if subschema.get("description").is_some() {
            return Some(subschema);
        }
        subschema = schema.pointer(reference.strip_prefix('#')?)?;
    }
    None
}
