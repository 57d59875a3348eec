//! Shapes of answers and of events, for the description of the interface.

use serde_json::{Value, json};
use tambour::event::Extension;

use crate::app::SETTINGS;

/// A shape of an object: its fields, of which those that end with `?` may be absent.
fn object(fields: &[(&str, Value)]) -> Value {
    let required: Vec<&str> =
        fields.iter().map(|(name, _)| *name).filter(|name| !name.ends_with('?')).collect();
    let properties: serde_json::Map<String, Value> =
        fields.iter().map(|(name, shape)| (name.trim_end_matches('?').to_owned(), shape.clone())).collect();
    json!({"type": "object", "required": required, "properties": properties})
}

fn list(of: &Value) -> Value {
    json!({"type": "array", "items": of})
}

fn named(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

/// Schemas of answers, by name.
pub(super) fn answers() -> Vec<(&'static str, Value)> {
    let (text, number, flag) =
        (json!({"type": "string"}), json!({"type": "integer"}), json!({"type": "boolean"}));
    let any = json!({"type": "object"});
    let state = json!({"type": "string", "enum": ["running", "completed", "failed", "cancelled"]});
    let history = json!({
        "type": ["string", "null"],
        "description": "what stands for the reply in its conversation, where it is not the reply itself",
    });
    let turn = object(&[("reply", text.clone()), ("history?", history.clone()), ("told?", text.clone())]);
    let attempt = object(&[
        ("raw", text.clone()),
        ("findings", list(&named("Finding"))),
        ("finish_reason", text.clone()),
    ]);
    let message = [
        ("message_id", text.clone()),
        ("conversation_id", text.clone()),
        ("request_id", text.clone()),
        ("created", text.clone()),
        ("status", state),
        ("request", any.clone()),
        ("reply?", text.clone()),
        ("answer?", text.clone()),
        ("history?", history),
        ("reasoning?", text.clone()),
        ("prompt?", list(&named("Message"))),
        ("events?", list(&named("Event"))),
        ("findings?", list(&named("Finding"))),
        ("turns?", list(&turn)),
        ("attempts?", list(&attempt)),
        ("usage?", json!({})),
        ("finish_reason?", text.clone()),
        ("metadata?", named("Metadata")),
        ("error?", any.clone()),
        ("timings?", any.clone()),
    ];
    let conversation = [
        ("conversation_id", text.clone()),
        ("created", text.clone()),
        ("title", json!({"type": ["string", "null"]})),
        ("metadata", json!({"type": ["object", "null"]})),
        ("messages?", list(&named("Record"))),
        ("has_more?", flag.clone()),
    ];
    let key = [
        ("id", text.clone()),
        ("owner", text.clone()),
        ("name", text.clone()),
        ("rights", json!({"type": "string", "enum": ["admin", "plain"]})),
        ("created", text.clone()),
        ("key?", text.clone()),
    ];
    let tool = [
        ("name", text.clone()),
        ("description?", text.clone()),
        ("schema", any.clone()),
        ("callers?", list(&text)),
        ("read_only?", flag.clone()),
        ("confirm", flag.clone()),
        ("executor", any.clone()),
        ("signed", flag.clone()),
        ("created", text.clone()),
        ("changed", text.clone()),
    ];
    let taken = [("message_id", text.clone()), ("accepted", list(&text))];
    let finding = [
        ("rule", text.clone()),
        ("code", text.clone()),
        ("severity", json!({"type": "string", "enum": ["error", "warning", "info"]})),
        ("span", object(&[("start", number.clone()), ("end", number.clone())])),
        ("line", number.clone()),
        ("column", number.clone()),
        ("message", text.clone()),
        ("repair", json!({"type": ["string", "null"]})),
    ];
    let problem = [
        ("type", text.clone()),
        ("title", text.clone()),
        ("status", number.clone()),
        ("code", json!({"type": "string", "description": "stable"})),
        ("detail", text.clone()),
        ("field?", json!({"type": "string", "description": "the field it is about"})),
        ("call_id?", json!({"type": "string", "description": "the call it is about"})),
        ("pointer?", json!({"type": "string", "description": "JSON Pointer to the place in a schema"})),
        ("close?", list(&text)),
    ];
    let ids = object(&[
        ("message_id", text.clone()),
        ("conversation_id", text.clone()),
        ("request_id", text.clone()),
    ]);
    let decoded =
        [("dialect", text.clone()), ("events", list(&named("Event"))), ("findings", list(&named("Finding")))];
    let checked = [
        ("contract", text.clone()),
        ("verdict", json!({"type": "string", "enum": ["pass", "fail"]})),
        ("findings", list(&named("Finding"))),
    ];
    vec![
        ("Object", any.clone()),
        ("Accepted", ids),
        ("Record", object(&message)),
        ("Cancelled", object(&[("message_id", text.clone()), ("status", text.clone())])),
        ("Decoded", object(&decoded)),
        ("Checked", object(&checked)),
        ("Settings", any),
        ("SettingsChange", settings()),
        ("Conversations", object(&[("data", list(&named("Conversation"))), ("has_more", flag.clone())])),
        ("Conversation", object(&conversation)),
        ("Tools", object(&[("data", list(&named("Tool"))), ("has_more", flag.clone())])),
        ("Tool", object(&tool)),
        ("StreamToken", object(&[("token", text.clone()), ("expires_in", number.clone())])),
        ("Taken", object(&taken)),
        ("Keys", object(&[("data", list(&named("Key"))), ("has_more", flag.clone())])),
        ("Key", object(&key)),
        ("Finding", object(&finding)),
        ("Metadata", metadata(&text, &number, &flag)),
        ("Problem", object(&problem)),
        ("Event", events(&text, &number, &flag)),
    ]
}

/// What can be changed, with dotted names or as nested objects.
fn settings() -> Value {
    let mut properties = serde_json::Map::new();
    for (name, _) in SETTINGS {
        properties.insert((*name).to_owned(), json!({"type": "string"}));
        if let Some((group, field)) = name.split_once('.') {
            let group = properties.entry(group).or_insert_with(
                || json!({"type": "object", "additionalProperties": false, "properties": {}}),
            );
            group["properties"][field] = json!({"type": "string"});
        }
    }
    json!({"type": "object", "additionalProperties": false, "properties": properties})
}

/// What happened on the way to the end of a message.
fn metadata(text: &Value, number: &Value, flag: &Value) -> Value {
    let why = |description: &str| json!({"type": "string", "description": description});
    let notice = object(&[("code", text.clone()), ("message", text.clone()), ("ref?", text.clone())]);
    object(&[
        ("dialect", text.clone()),
        ("repairs", number.clone()),
        ("warnings", number.clone()),
        ("reasks", number.clone()),
        ("fallback_reason?", why("why the answer was replaced by the fallback text")),
        ("unused_reason?", why("why a reply whose text was kept could not be read as asked")),
        ("truncated", flag.clone()),
        ("notices", list(&notice)),
        ("exit_decision?", json!({"type": "object", "description": "data of the event of that name"})),
    ])
}

/// One event: its name and its data. Extension events come only when they are asked for.
fn events(text: &Value, number: &Value, flag: &Value) -> Value {
    let texts = || ("text", text.clone());
    let contract = [
        ("serp_summary", vec![texts()]),
        ("thinking_start", vec![]),
        ("phase_start", vec![("id", number.clone()), ("title", text.clone())]),
        ("phase_delta", vec![("id", number.clone()), texts()]),
        ("thinking_end", vec![]),
        ("final_delta", vec![texts()]),
        ("serp_queries", vec![("queries", list(text))]),
        ("final_end", vec![]),
    ];
    let system = [
        (
            "status",
            vec![
                ("state", text.clone()),
                ("calls?", list(&object(&[("call_id", text.clone()), ("name", text.clone())]))),
                ("timeout_ms?", number.clone()),
            ],
        ),
        ("heartbeat", vec![("ts", text.clone())]),
        ("content_delta", vec![("seq", number.clone()), ("delta", text.clone())]),
        ("error", vec![("code", text.clone()), ("message", text.clone()), ("retryable", flag.clone())]),
        (
            "completed",
            vec![
                ("usage", json!({})),
                ("finish_reason", text.clone()),
                ("metadata", named("Metadata")),
                ("reply?", text.clone()),
            ],
        ),
    ];
    let extension = [
        ("draft_delta", vec![texts()]),
        ("aside", vec![("kind", json!({"type": "string", "enum": ["comment", "thought"]})), texts()]),
        ("finding", vec![("code", text.clone()), ("message", text.clone())]),
    ];
    let kinds = [("contract", &contract[..]), ("system", &system[..]), ("extension", &extension[..])];
    let one = kinds.into_iter().flat_map(|(kind, events)| {
        events.iter().map(move |(name, fields)| {
            let mut shape = object(&[("event", json!({"const": name})), ("data", object(fields))]);
            shape["description"] = Value::from(format!("{name} ({kind})"));
            shape
        })
    });
    let whole = Extension::schema()["oneOf"].as_array().cloned().unwrap_or_default();
    json!({"oneOf": one.chain(whole).collect::<Vec<Value>>()})
}
