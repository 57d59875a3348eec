//! Tests of logs that name a fallback upstream.

use serde_json::{Value, json};
use tambour::limits::Limits;

use super::*;
use crate::base::settings::Settings;
use crate::tools::ToolLimits;

fn reading_defaults() -> ReadingDefaults {
    ReadingDefaults::new(&Limits::default(), &ToolLimits::default(), &Settings::default())
}

fn fold_log(fallback_fields: Option<Value>, entries: impl FnOnce(&mut Batch)) -> LogFold {
    let mut batch = Batch::new(1);
    if let Some(fallback_fields) = fallback_fields {
        add_fallback_entry(&fallback_fields, &mut batch);
    }
    entries(&mut batch);
    let mut fold = LogFold::default();
    fold.add(&batch);
    fold
}

#[test]
fn history_has_the_reply_in_the_dialect_of_the_fallback() {
    let request = json!({"dialect": "jsonseq"}).to_string();
    let reply = "<thinking><phase id=\"1\"><title>T</title>t</phase></thinking>\n<final>Four.";
    let history = |fallback_fields: Option<Value>| {
        let fold = fold_log(fallback_fields, |batch| {
            batch.push_raw(1, reply);
            push_json(batch, "completed", &json!({"finish_reason": "stop"}));
        });
        fold.into_record(Timings::default(), &request, &reading_defaults()).1["history"].clone()
    };
    let rewritten = history(Some(json!({"upstream": "two", "dialect": "thinkingml", "contract": null})));
    assert!(rewritten.as_str().is_some_and(|text| text.contains("</final>")), "{rewritten}");
    // In the dialect of the request, the same reply gives another text.
    assert_ne!(history(None), rewritten);
}

#[test]
fn closing_events_are_in_the_language_of_the_fallback() {
    let row = MessageRow { request: json!({"tools": ["lint"]}).to_string(), ..MessageRow::default() };
    let closing_text = |fallback_fields: Option<Value>| {
        let call = json!({"id": 1, "call_id": "a", "name": "lint", "args": {}});
        let mut fold = fold_log(fallback_fields, |batch| push_json(batch, "tool_call", &call));
        let batch = closing_events(&mut fold, &row, &reading_defaults(), interrupted_failure());
        batch.entries().map(|entry| entry.json.to_owned()).collect::<String>()
    };
    let english = closing_text(Some(json!({"contract": {"options": {"text_language": "en"}}})));
    assert!(english.contains("\"call_id\":\"a\"") && english.contains("interrupted"), "{english}");
    assert!(english.is_ascii() && !closing_text(None).is_ascii(), "{english}");
}
