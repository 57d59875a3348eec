//! Cases whose expectations were written from the specification and the description of the formats, before the code ran on them.

use serde_json::{Value, json};
use tambour_prompt::card::normalize::{EntryBody, NormalizedEntry, normalize_entry};

use super::read;

/// Lists the paths at which `whole` lacks a part of `part`: fields of objects, lists item by item.
fn differs(whole: &Value, part: &Value, path: &str, wrong: &mut Vec<String>) {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            for (key, value) in part {
                let found = whole.get(key).unwrap_or(&Value::Null);
                differs(found, value, &format!("{path}.{key}"), wrong);
            }
        }
        (Value::Array(whole), Value::Array(part)) if whole.len() == part.len() => {
            for (at, (whole, part)) in whole.iter().zip(part).enumerate() {
                differs(whole, part, &format!("{path}[{at}]"), wrong);
            }
        }
        (whole, part) if whole.as_f64().is_some() && whole.as_f64() == part.as_f64() => {}
        (whole, part) if whole == part => {}
        _ => wrong.push(format!("{path}: {whole}, expected {part}")),
    }
}

fn imported(case: &Value) -> Vec<String> {
    let text = case.get("text").and_then(Value::as_str).map(str::to_owned);
    let result = read(text.unwrap_or_else(|| case["file"].to_string()).as_bytes());
    let mut wrong = Vec::new();
    match (result, case.get("error")) {
        (Ok(_), Some(words)) => wrong.push(format!("it is read; expected an error with {words}")),
        (Err(error), None) => wrong.push(error),
        (Err(error), Some(words)) => {
            for word in words.as_array().into_iter().flatten().filter_map(Value::as_str) {
                if !error.contains(word) {
                    wrong.push(format!("`{error}` has no `{word}`"));
                }
            }
        }
        (Ok(imported), None) => {
            let is = serde_json::to_value(&imported).expect("it is data");
            let mut expect = case["expect"].clone();
            let warned = expect.as_object_mut().and_then(|expect| expect.remove("warnings_contain"));
            differs(&is, &expect, "", &mut wrong);
            for word in
                warned.as_ref().and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
            {
                if !imported.warnings.iter().any(|warning| warning.contains(word)) {
                    wrong.push(format!("no warning has `{word}`: {:?}", imported.warnings));
                }
            }
        }
    }
    wrong
}

/// Words of an entry: tag, attributes and body.
fn text_of(normal: &NormalizedEntry) -> String {
    fn of(value: &Value, out: &mut String) {
        match value {
            Value::Object(map) => map.iter().for_each(|(key, value)| {
                *out += &format!("{key} ");
                of(value, out);
            }),
            Value::Array(items) => items.iter().for_each(|item| of(item, out)),
            Value::String(text) => *out += &format!("{text} "),
            other => *out += &format!("{other} "),
        }
    }
    let mut out = format!("{} {:?} ", normal.tag, normal.attributes);
    match &normal.body {
        EntryBody::Data(value) => of(value, &mut out),
        EntryBody::Text(text) => out += text,
    }
    out
}

fn body(case: &Value) -> Vec<String> {
    let text = |key: &str| case[key].as_str().expect("text");
    let (normal, expect) = (normalize_entry(text("title"), text("content")), &case["expect"]);
    let mut wrong = Vec::new();
    let mut same = |what: &str, is: Value| {
        if let Some(should) = expect.get(what)
            && is != *should
        {
            wrong.push(format!("{what}: {is}, expected {should}"));
        }
    };
    same("tag", json!(normal.tag));
    same("format", json!(if matches!(normal.body, EntryBody::Data(_)) { "yaml" } else { "text" }));
    same("text", json!(normal.render()));
    same("warning", json!(!normal.warnings.is_empty()));
    same("value", if let EntryBody::Data(value) = &normal.body { value.clone() } else { Value::Null });
    let all = text_of(&normal);
    for word in expect.get("words").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    {
        if !all.contains(word) {
            wrong.push(format!("`{word}` is lost in {all}"));
        }
    }
    wrong
}

#[test]
fn independent_cases_hold() {
    let cases = include_str!("../../../../../fixtures/import/independent.jsonl");
    let cases: Vec<Value> = cases.lines().map(|line| serde_json::from_str(line).expect("a case")).collect();
    let mut wrong = Vec::new();
    let mut failed = 0;
    for case in &cases {
        let complaints = match case["do"].as_str() {
            Some("import") => imported(case),
            Some("body") => body(case),
            Some("activate") => crate::lore::run(case),
            other => panic!("no such case: {other:?}"),
        };
        failed += usize::from(!complaints.is_empty());
        wrong.extend(complaints.iter().map(|what| format!("{}: {what}", case["id"])));
    }
    // F-010, F-011, F-012, F-013
    assert!(wrong.is_empty(), "{failed} of {} cases:\n{}", cases.len(), wrong.join("\n"));
}
