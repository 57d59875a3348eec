//! Cases whose expectations were written from the specification and the description of the formats, before the code ran on them.

use serde_json::{Value, json};
use tambour_prompt::card::normalize::{EntryBody, NormalizedEntry, normalize_entry};

use super::read_bytes;

/// Lists the paths at which `whole` lacks a part of `part`: fields of objects, lists item by item.
fn collect_differences(whole: &Value, part: &Value, path: &str, differences: &mut Vec<String>) {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            for (key, value) in part {
                let found = whole.get(key).unwrap_or(&Value::Null);
                collect_differences(found, value, &format!("{path}.{key}"), differences);
            }
        }
        (Value::Array(whole), Value::Array(part)) if whole.len() == part.len() => {
            for (at, (whole, part)) in whole.iter().zip(part).enumerate() {
                collect_differences(whole, part, &format!("{path}[{at}]"), differences);
            }
        }
        (whole, part) if whole.as_f64().is_some() && whole.as_f64() == part.as_f64() => {}
        (whole, part) if whole == part => {}
        _ => differences.push(format!("{path}: {whole}, expected {part}")),
    }
}

fn check_import(case: &Value) -> Vec<String> {
    let text = case.get("text").and_then(Value::as_str).map(str::to_owned);
    let result = read_bytes(text.unwrap_or_else(|| case["file"].to_string()).as_bytes());
    let mut differences = Vec::new();
    match (result, case.get("error")) {
        (Ok(_), Some(words)) => differences.push(format!("it is read; expected an error with {words}")),
        (Err(error), None) => differences.push(error),
        (Err(error), Some(words)) => {
            for word in words.as_array().into_iter().flatten().filter_map(Value::as_str) {
                if !error.contains(word) {
                    differences.push(format!("`{error}` has no `{word}`"));
                }
            }
        }
        (Ok(imported), None) => {
            let actual = serde_json::to_value(&imported).expect("it is data");
            let mut expect = case["expect"].clone();
            let warning_words = expect.as_object_mut().and_then(|expect| expect.remove("warnings_contain"));
            collect_differences(&actual, &expect, "", &mut differences);
            for word in warning_words
                .as_ref()
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
            {
                if !imported.warnings.iter().any(|warning| warning.contains(word)) {
                    differences.push(format!("no warning has `{word}`: {:?}", imported.warnings));
                }
            }
        }
    }
    differences
}

/// Words of an entry: tag, attributes and body.
fn entry_words(normal: &NormalizedEntry) -> String {
    fn push_words(value: &Value, out: &mut String) {
        match value {
            Value::Object(map) => map.iter().for_each(|(key, value)| {
                *out += &format!("{key} ");
                push_words(value, out);
            }),
            Value::Array(items) => items.iter().for_each(|item| push_words(item, out)),
            Value::String(text) => *out += &format!("{text} "),
            other => *out += &format!("{other} "),
        }
    }
    let mut out = format!("{} {:?} ", normal.tag, normal.attributes);
    match &normal.body {
        EntryBody::Data(value) => push_words(value, &mut out),
        EntryBody::Text(text) => out += text,
    }
    out
}

fn check_body(case: &Value) -> Vec<String> {
    let text = |key: &str| case[key].as_str().expect("text");
    let (normal, expect) = (normalize_entry(text("title"), text("content")), &case["expect"]);
    let mut differences = Vec::new();
    let mut compare = |field: &str, actual: Value| {
        if let Some(expected) = expect.get(field)
            && actual != *expected
        {
            differences.push(format!("{field}: {actual}, expected {expected}"));
        }
    };
    compare("tag", json!(normal.tag));
    compare("format", json!(if matches!(normal.body, EntryBody::Data(_)) { "yaml" } else { "text" }));
    compare("text", json!(normal.render()));
    compare("warning", json!(!normal.warnings.is_empty()));
    compare("value", if let EntryBody::Data(value) = &normal.body { value.clone() } else { Value::Null });
    let words = entry_words(&normal);
    for word in expect.get("words").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    {
        if !words.contains(word) {
            differences.push(format!("`{word}` is lost in {words}"));
        }
    }
    differences
}

#[test]
fn independent_cases_hold() {
    let cases = include_str!("../../../../../fixtures/import/independent.jsonl");
    let cases: Vec<Value> = cases.lines().map(|line| serde_json::from_str(line).expect("a case")).collect();
    let mut differences = Vec::new();
    let mut failed_count = 0;
    for case in &cases {
        let complaints = match case["do"].as_str() {
            Some("import") => check_import(case),
            Some("body") => check_body(case),
            Some("activate") => crate::lore::run_case(case),
            other => panic!("no such case: {other:?}"),
        };
        failed_count += usize::from(!complaints.is_empty());
        differences.extend(complaints.iter().map(|complaint| format!("{}: {complaint}", case["id"])));
    }
    // F-010, F-011, F-012, F-013
    assert!(differences.is_empty(), "{failed_count} of {} cases:\n{}", cases.len(), differences.join("\n"));
}
