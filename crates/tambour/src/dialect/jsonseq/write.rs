//! Canonical form of a reply: events written as JSON Lines, and the JSON Schema of one line.

use serde_json::{Value, json};

use crate::dialect::value_text::{self, TextPieces};
use crate::event::{Event, EventKind};
use crate::limits::{MAX_QUERIES, MAX_QUERY_CHARS};
use crate::options::Options;

/// Writes the contract events of one reply, one per line; adjacent deltas are joined.
#[must_use]
pub(super) fn write(events: &[Event<'_>]) -> String {
    let events: Vec<&Event<'_>> = events.iter().filter(|event| event.kind() == EventKind::Contract).collect();
    let mut out = Vec::with_capacity(events.iter().map(|event| delta_text(event).len() + 64).sum());
    // The deltas that are pieces of one text share a line.
    for line in events.chunk_by(|before, event| is_same_text(before, event)) {
        let Some((event, _)) = line.split_first() else { continue };
        out.extend_from_slice(b"{\"event\":\"");
        out.extend_from_slice(event.name().as_bytes());
        out.extend_from_slice(b"\",\"data\":");
        match event {
            Event::FinalDelta { .. } => out.extend_from_slice(b"{\"text\":"),
            Event::PhaseDelta { id, .. } => {
                out.extend_from_slice(format!("{{\"id\":{id},\"text\":").as_bytes())
            }
            _ => {
                out.extend_from_slice(event.data().to_string().as_bytes());
                out.extend_from_slice(b"}\n");
                continue;
            }
        }
        TextPieces(line.iter().map(|event| delta_text(event))).write(&mut out);
        out.extend_from_slice(b"}}\n");
    }
    value_text::utf8_string(out)
}

/// Returns true if two deltas are pieces of one text.
fn is_same_text(before: &Event<'_>, event: &Event<'_>) -> bool {
    match (before, event) {
        (Event::FinalDelta { .. }, Event::FinalDelta { .. }) => true,
        (Event::PhaseDelta { id: a, .. }, Event::PhaseDelta { id: b, .. }) => a == b,
        _ => false,
    }
}

/// Returns the text of a delta; other events have none.
fn delta_text<'a>(event: &'a Event<'_>) -> &'a str {
    match event {
        Event::FinalDelta { text } | Event::PhaseDelta { text, .. } => text,
        _ => "",
    }
}

/// Returns the JSON Schema (draft 2020-12) of one event, for constrained decoding and editors. It is the same
/// under all options, and cannot express the order of lines.
pub(super) fn schema(_options: &Options) -> Value {
    let text = || json!({ "type": "string", "minLength": 1 });
    let id = || json!({ "type": "integer", "minimum": 1 });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "JSONSeq event",
        "description": "One line of a reply.",
        "oneOf": [
            event_schema("serp_summary", "What the user wants, in one or two plain sentences.", &json!({
                "text": { "type": "string", "pattern": "\\S" },
            })),
            event_schema("thinking_start", "Thinking begins.", &json!({})),
            event_schema("phase_start", "The next phase begins; ids are 1, 2, 3 and so on.", &json!({
                "id": id(),
                "title": { "type": "string", "pattern": "\\S" },
            })),
            event_schema("phase_delta", "Plain text of the phase that was started last.", &json!({
                "id": id(),
                "text": text(),
            })),
            event_schema("thinking_end", "Thinking is over.", &json!({})),
            event_schema("final_delta", "A piece of the answer in Markdown.", &json!({ "text": text() })),
            event_schema("serp_queries", "Search queries, usually one to three.", &json!({
                "queries": {
                    "type": "array",
                    "maxItems": MAX_QUERIES,
                    "uniqueItems": true,
                    "items": { "type": "string", "pattern": "\\S", "maxLength": MAX_QUERY_CHARS },
                },
            })),
            event_schema("final_end", "The reply is complete.", &json!({})),
        ],
    })
}

/// Returns the schema of an event whose data has exactly these fields, all required.
fn event_schema(name: &str, description: &str, fields: &Value) -> Value {
    let required: Vec<&String> = fields.as_object().into_iter().flat_map(|fields| fields.keys()).collect();
    json!({
        "description": description,
        "type": "object",
        "properties": {
            "event": { "const": name },
            "data": {
                "type": "object",
                "properties": fields,
                "required": required,
                "additionalProperties": false,
            },
        },
        "required": ["event", "data"],
        "additionalProperties": false,
    })
}
