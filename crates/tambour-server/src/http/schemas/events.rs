//! Schemas of events, and of the metadata of the last event of a message.

use serde_json::{Value, json};
use tambour::event::Extension;

use super::{list_schema, notice_schema, object_schema, schema_ref};

/// Returns the schema of the metadata of a completed message.
pub(super) fn metadata_schema(text: &Value, number: &Value, flag: &Value) -> Value {
    let reason_schema = |description: &str| json!({"type": "string", "description": description});
    let notice = notice_schema(text);
    object_schema(&[
        ("dialect", text.clone()),
        ("repairs", number.clone()),
        ("warnings", number.clone()),
        ("reasks", number.clone()),
        (
            "yield?",
            json!({
                "type": "string", "enum": ["constrained", "plain", "repaired", "reasked", "fallback"],
                "description": "the step that gave the answer",
            }),
        ),
        ("fallback_reason?", reason_schema("why the answer was replaced by the fallback text")),
        (
            "unused_reason?",
            reason_schema("why a reply kept as text could not be read in the requested format"),
        ),
        ("truncated", flag.clone()),
        ("notices", list_schema(&notice)),
        ("exit_decision?", json!({"type": "object", "description": "data of the event of that name"})),
    ])
}

/// Returns the schema of an event, with name and data. Extension events are sent on request only.
pub(super) fn events_schema(text: &Value, number: &Value, flag: &Value) -> Value {
    let text_field = || ("text", text.clone());
    let contract = [
        ("serp_summary", vec![text_field()]),
        ("thinking_start", vec![]),
        ("phase_start", vec![("id", number.clone()), ("title", text.clone())]),
        ("phase_delta", vec![("id", number.clone()), text_field()]),
        ("thinking_end", vec![]),
        ("final_delta", vec![text_field()]),
        ("serp_queries", vec![("queries", list_schema(text))]),
        ("final_end", vec![]),
    ];
    let system = [
        (
            "status",
            vec![
                ("state", text.clone()),
                ("calls?", list_schema(&object_schema(&[("call_id", text.clone()), ("name", text.clone())]))),
                ("timeout_ms?", number.clone()),
            ],
        ),
        ("heartbeat", vec![("ts", text.clone())]),
        ("content_delta", vec![("seq", number.clone()), ("delta", text.clone())]),
        (
            "error",
            vec![
                ("code", text.clone()),
                ("message", text.clone()),
                ("retryable", flag.clone()),
                ("upstream?", object_schema(&[("status", number.clone()), ("code?", text.clone())])),
            ],
        ),
        (
            "completed",
            vec![
                ("usage", json!({})),
                ("finish_reason", text.clone()),
                ("metadata", schema_ref("Metadata")),
                ("reply?", text.clone()),
            ],
        ),
    ];
    // The other extension events are described by `Extension::schema`.
    let extension = [
        ("draft_delta", vec![text_field()]),
        ("aside", vec![("kind", json!({"type": "string", "enum": ["comment", "thought"]})), text_field()]),
        ("finding", vec![("code", text.clone()), ("message", text.clone())]),
    ];
    let kinds = [("contract", &contract[..]), ("system", &system[..]), ("extension", &extension[..])];
    let event_schemas = kinds.into_iter().flat_map(|(kind, events)| {
        events.iter().map(move |(name, fields)| {
            let mut schema =
                object_schema(&[("event", json!({"const": name})), ("data", object_schema(fields))]);
            schema["description"] = Value::from(format!("{name} ({kind})"));
            schema
        })
    });
    let extension_schemas = Extension::schema()["oneOf"].as_array().cloned().unwrap_or_default();
    json!({"oneOf": event_schemas.chain(extension_schemas).collect::<Vec<Value>>()})
}
