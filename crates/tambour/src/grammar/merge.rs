//! Conjunction of schemas: two schemas as one that both allow, as far as keywords can be joined.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Maximum number of branches of two choices that are joined.
const MAX_BRANCHES: usize = 256;

/// Keywords that cannot be joined, by their paths from the schema.
type Lost = Vec<String>;

/// Joins two schemas into one for values that satisfy both. Keywords of `second` that cannot be joined with
/// those of `first` are returned.
pub(super) fn merge(first: &Value, second: &Value) -> (Value, Lost) {
    let (first, second) = match (first, second) {
        (Value::Bool(true), other) | (other, Value::Bool(true)) => return (other.clone(), Vec::new()),
        (Value::Object(first), Value::Object(second)) => (first, second),
        _ => return (Value::Bool(false), Vec::new()),
    };
    let mut merged = first.clone();
    let mut lost = Vec::new();
    for (key, value) in second {
        let Some(current) = first.get(key) else {
            // A reference that could not be joined is in `allOf` already.
            match (key.as_str(), merged.get_mut(key).and_then(Value::as_array_mut), value) {
                ("allOf", Some(list), Value::Array(more)) => list.extend(more.iter().cloned()),
                _ => {
                    merged.insert(key.clone(), value.clone());
                }
            }
            continue;
        };
        if key == "properties" || current == value && key != "allOf" {
            continue;
        }
        match join(key, current, value, &mut merged, &mut lost) {
            Some(Value::Bool(false)) if key == "const" => return (Value::Bool(false), Vec::new()),
            Some(joined) => {
                merged.insert(key.clone(), joined);
            }
            None => lost.push(key.clone()),
        }
    }
    if let Some(properties) = join_properties(first, second, &mut lost) {
        merged.insert("properties".to_owned(), properties);
    }
    (Value::Object(merged), lost)
}

/// Joins two schemas within a keyword, and adds what is lost under `path`.
fn merge_at(path: &str, first: &Value, second: &Value, lost: &mut Lost) -> Value {
    let (merged, inner) = merge(first, second);
    lost.extend(inner.into_iter().map(|key| format!("{path}/{key}")));
    merged
}

/// Properties of both schemas. One that only one schema lists satisfies `additionalProperties` of the other.
fn join_properties(
    first: &Map<String, Value>,
    second: &Map<String, Value>,
    lost: &mut Lost,
) -> Option<Value> {
    let list = |schema: &Map<String, Value>| schema.get("properties").and_then(Value::as_object).cloned();
    let (one, other) = (list(first), list(second));
    if one.is_none() && other.is_none() {
        return None;
    }
    let (one, other) = (one.unwrap_or_default(), other.unwrap_or_default());
    let mut joined = one.clone();
    if let Some(additional) = second.get("additionalProperties") {
        for (name, schema) in &mut joined {
            if !other.contains_key(name) {
                *schema = merge_at(&format!("properties/{name}"), schema, additional, lost);
            }
        }
    }
    for (name, schema) in other {
        let current = one.get(&name).or_else(|| first.get("additionalProperties"));
        let both = match current {
            Some(current) => merge_at(&format!("properties/{name}"), current, &schema, lost),
            None => schema,
        };
        joined.insert(name, both);
    }
    Some(Value::Object(joined))
}

/// Value of a keyword that both schemas have, with different values; `None` keeps the first.
fn join(
    key: &str,
    first: &Value,
    second: &Value,
    merged: &mut Map<String, Value>,
    lost: &mut Lost,
) -> Option<Value> {
    match key {
        "$defs" | "definitions" => {
            let (Value::Object(first), Value::Object(second)) = (first, second) else { return None };
            let mut joined = first.clone();
            joined.extend(second.iter().map(|(name, schema)| (name.clone(), schema.clone())));
            Some(Value::Object(joined))
        }
        "required" | "allOf" => {
            let mut known = BTreeSet::new();
            let items = first.as_array()?.iter().chain(second.as_array()?);
            Some(items.filter(|item| known.insert(item.to_string())).cloned().collect())
        }
        "type" => Some(Value::Array(common_types(first, second))),
        "enum" => {
            let known: BTreeSet<String> = second.as_array()?.iter().map(spelling).collect();
            Some(first.as_array()?.iter().filter(|value| known.contains(&spelling(value))).cloned().collect())
        }
        "const" if spelling(first) == spelling(second) => Some(first.clone()),
        "const" => Some(Value::Bool(false)),
        "minLength" | "minItems" | "minimum" | "minProperties" | "exclusiveMinimum" => {
            Some(if first.as_f64()? < second.as_f64()? { second.clone() } else { first.clone() })
        }
        "maxLength" | "maxItems" | "maximum" | "maxProperties" | "exclusiveMaximum" => {
            Some(if first.as_f64()? > second.as_f64()? { second.clone() } else { first.clone() })
        }
        "items" | "additionalProperties" => Some(merge_at(key, first, second, lost)),
        // A value that satisfies one branch of each satisfies one of the pairs.
        "anyOf" | "oneOf" => {
            let (first, second) = (first.as_array()?, second.as_array()?);
            if first.len().saturating_mul(second.len()) > MAX_BRANCHES {
                return None;
            }
            let pairs = first.iter().flat_map(|one| second.iter().map(move |other| (one, other)));
            Some(pairs.map(|(one, other)| merge_at(key, one, other, lost)).collect())
        }
        "$ref" => {
            // Both hold: the second becomes a schema of its own.
            let list = merged.entry("allOf").or_insert_with(|| Value::Array(Vec::new()));
            list.as_array_mut()?.push(serde_json::json!({ "$ref": second }));
            Some(first.clone())
        }
        "title" | "description" | "$comment" | "examples" | "default" => Some(second.clone()),
        _ => None,
    }
}

/// Text of a value by which equal ones are found, whatever the spelling of a number.
fn spelling(value: &Value) -> String {
    match value.as_f64() {
        Some(number) if value.as_i64().is_none() && number.fract() == 0.0 => format!("{number:.0}"),
        _ => value.to_string(),
    }
}

/// Types that both lists allow; an integer is a number.
fn common_types(first: &Value, second: &Value) -> Vec<Value> {
    let names = |value: &Value| -> Vec<String> {
        let list = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
        list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let (first, second) = (names(first), names(second));
    let allows = |list: &[String], name: &str| {
        list.iter().any(|other| other == name || other == "number" && name == "integer")
    };
    let common = first.iter().filter(|name| allows(&second, name));
    let more = second.iter().filter(|name| allows(&first, name) && !first.contains(name));
    common.chain(more).map(|name| Value::from(name.as_str())).collect()
}
