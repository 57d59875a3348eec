//! Conjunction of schemas: two schemas as one that both allow, as far as keywords can be joined.

use serde_json::{Map, Value};

/// Joins two schemas into one for values that satisfy both. Keywords of `second` that cannot be joined with
/// those of `first` are returned.
pub(super) fn merge(first: &Value, second: &Value) -> (Value, Vec<String>) {
    let (first, second) = match (first, second) {
        (Value::Bool(true), other) | (other, Value::Bool(true)) => return (other.clone(), Vec::new()),
        (Value::Object(first), Value::Object(second)) => (first, second),
        _ => return (Value::Bool(false), Vec::new()),
    };
    let mut merged = first.clone();
    let mut lost = Vec::new();
    for (key, value) in second {
        let Some(current) = merged.get(key).cloned() else {
            merged.insert(key.clone(), value.clone());
            continue;
        };
        if let Some(joined) = join(key, &current, value, &mut merged) {
            merged.insert(key.clone(), joined);
        } else if current != *value {
            lost.push(key.clone());
        }
    }
    (Value::Object(merged), lost)
}

/// Value of a keyword that both schemas have; `None` keeps the first.
fn join(key: &str, first: &Value, second: &Value, merged: &mut Map<String, Value>) -> Option<Value> {
    match key {
        "properties" | "$defs" | "definitions" => {
            let (Value::Object(first), Value::Object(second)) = (first, second) else { return None };
            let mut joined = first.clone();
            for (name, schema) in second {
                let both = joined.get(name).map(|current| merge(current, schema).0);
                joined.insert(name.clone(), both.unwrap_or_else(|| schema.clone()));
            }
            Some(Value::Object(joined))
        }
        "required" | "allOf" => {
            let mut joined = first.as_array()?.clone();
            joined.extend(
                second.as_array()?.iter().filter(|item| !joined.contains(item)).cloned().collect::<Vec<_>>(),
            );
            Some(Value::Array(joined))
        }
        "type" => Some(Value::Array(common_types(first, second))),
        "enum" => {
            let (first, second) = (first.as_array()?, second.as_array()?);
            Some(first.iter().filter(|value| second.contains(value)).cloned().collect())
        }
        "minLength" | "minItems" | "minimum" | "minProperties" => {
            Some(if first.as_f64()? < second.as_f64()? { second.clone() } else { first.clone() })
        }
        "maxLength" | "maxItems" | "maximum" | "maxProperties" => {
            Some(if first.as_f64()? > second.as_f64()? { second.clone() } else { first.clone() })
        }
        "items" | "additionalProperties" => Some(merge(first, second).0),
        "anyOf" | "oneOf" | "$ref" | "const" => {
            // Both hold: the second becomes a schema of its own.
            let wrapped = Value::Object(Map::from_iter([(key.to_owned(), second.clone())]));
            let list = merged.entry("allOf").or_insert_with(|| Value::Array(Vec::new()));
            list.as_array_mut()?.push(wrapped);
            Some(first.clone())
        }
        "title" | "description" | "$comment" | "examples" | "default" => Some(second.clone()),
        _ => None,
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
