//! JSON Schemas of responses and events, for the OpenAPI description.

mod events;

use serde_json::{Value, json};

use self::events::{events, metadata};
use crate::app::{SETTINGS, VERSION};

/// Returns the schema of an object; fields whose names end with `?` are optional.
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

/// Returns the schemas of responses by name.
pub(super) fn answers() -> Vec<(&'static str, Value)> {
    let (text, number, flag) =
        (json!({"type": "string"}), json!({"type": "integer"}), json!({"type": "boolean"}));
    let any = json!({"type": "object"});
    let state =
        json!({"type": "string", "enum": ["running", "completed", "failed", "cancelled", "superseded"]});
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
        ("current", flag.clone()),
        ("in_place_of?", text.clone()),
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
        ("found?", found(&text)),
    ];
    let key = [
        ("id", text.clone()),
        ("owner", text.clone()),
        ("name", text.clone()),
        ("rights", json!({"type": "string", "enum": ["admin", "plain"]})),
        ("created", text.clone()),
        ("requests_per_minute?", number.clone()),
        ("tokens_per_day?", number.clone()),
        ("aliases?", list(&text)),
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
    let decoded = [
        ("dialect", text.clone()),
        ("events", list(&named("Event"))),
        ("findings", list(&named("Finding"))),
        (
            "repaired?",
            json!({
                "type": ["string", "null"],
                "description": "the reply as it should have been written, where it was asked for; `null` where nothing of it can be used",
            }),
        ),
    ];
    let checked = [
        ("contract", text.clone()),
        ("verdict", json!({"type": "string", "enum": ["pass", "fail"]})),
        ("findings", list(&named("Finding"))),
    ];
    let rule = [
        ("code", text.clone()),
        ("rows", list(&text)),
        ("level", json!({"type": "string", "enum": ["must", "should", "info"]})),
        ("owner", text.clone()),
        ("title", text.clone()),
    ];
    let examples = [("with", list(&text)), ("broken", text.clone()), ("correct", text.clone())];
    let explained_rule = [rule.as_slice(), examples.as_slice()].concat();
    vec![
        ("Object", any.clone()),
        ("Accepted", ids),
        ("Record", object(&message)),
        ("Cancelled", object(&[("message_id", text.clone()), ("status", text.clone())])),
        ("CancelledTurn", object(&[("dialogue_id", text.clone()), ("status", text.clone())])),
        ("Decoded", object(&decoded)),
        ("Checked", object(&checked)),
        ("Rules", object(&[("data", list(&object(&rule)))])),
        ("ExplainedRules", object(&[("data", list(&object(&explained_rule)))])),
        ("Settings", shown_settings(&text, &number)),
        ("SettingsChange", settings()),
        ("Upstreams", upstreams(&text, &flag)),
        ("UpstreamTest", service_test(&[("name", text.clone())], &number, &flag)),
        ("AliasTest", service_test(&[("name", text.clone()), ("upstream", text.clone())], &number, &flag)),
        ("McpServers", object(&[("data", list(&mcp_server(&text)))])),
        (
            "Conversations",
            object(&[
                ("data", list(&named("Conversation"))),
                ("has_more", flag.clone()),
                (
                    "next?",
                    json!({"type": ["string", "null"], "description": "with `q`: the `after` of the next request"}),
                ),
            ]),
        ),
        ("Conversation", object(&conversation)),
        (
            "State",
            object(&[("conversation_id", text.clone()), ("state", json!({})), ("schema", schema_of_state())]),
        ),
        (
            "StateHistory",
            object(&[
                ("data", list(&update(&text, &number, &flag))),
                ("has_more", flag.clone()),
                ("diff?", list(&any)),
            ]),
        ),
        ("StateSchema", object(&[("schema", schema_of_state()), ("mismatches", list(&any))])),
        (
            "StateUpdate",
            object(&[
                ("update_id", json!({"type": ["string", "null"]})),
                ("results", list(&any)),
                (
                    "counts",
                    object(
                        &["operations", "applied", "refused", "left_out"].map(|name| (name, number.clone())),
                    ),
                ),
                ("notices", list(&notice(&text))),
                ("state", json!({})),
            ]),
        ),
        ("RolledBack", object(&[("taken_back", number.clone()), ("state", json!({}))])),
        ("Tools", object(&[("data", list(&named("Tool"))), ("has_more", flag.clone())])),
        ("Tool", object(&tool)),
        ("ToolCallResult", tool_call_result(&text, &number, &flag)),
        ("StreamToken", object(&[("token", text.clone()), ("expires_in", number.clone())])),
        ("Taken", object(&taken)),
        ("Scripts", page("Script")),
        ("Templates", page("Template")),
        ("Versions", page("Object")),
        ("Dialogues", page("Dialogue")),
        ("Trace", page("Object")),
        ("Script", document("script_id", "yaml", &text, &number)),
        ("Template", document("template_id", "text", &text, &number)),
        ("StoredScript", stored("script_id", &text, &number)),
        ("StoredTemplate", stored("template_id", &text, &number)),
        ("Validated", validated(&text, &number, &flag)),
        (
            "Diff",
            object(&[
                ("script_id?", text.clone()),
                ("template_id?", text.clone()),
                ("from", number.clone()),
                ("to", number.clone()),
                ("diff", text.clone()),
            ]),
        ),
        ("Dialogue", dialogue(&text, &number)),
        ("Turn", turn_of_dialogue(&text, &flag)),
        ("DialogueTurns", page("DialogueTurn")),
        ("DialogueTurn", recorded_turn(&text)),
        ("Coverage", coverage(&text, &number)),
        ("Played", played(&text, &number)),
        ("Replayed", replayed(&text, &number, &flag)),
        ("Imports", imports(&text, &number)),
        ("Cards", page("Card")),
        ("Card", imported("card_id", &text, &number)),
        ("Lorebooks", page("Lorebook")),
        ("Lorebook", imported("lorebook_id", &text, &number)),
        ("RenderedPrompt", rendered(&text, &number, &flag)),
        ("MigratedMacros", object(&[("text", text.clone()), ("warnings", list(&any)), ("report", any)])),
        ("Keys", object(&[("data", list(&named("Key"))), ("has_more", flag.clone())])),
        ("Key", object(&key)),
        ("Figures", figures(&text, &number)),
        ("Usage", object(&[("data", list(&usage_of_key(&text, &number))), ("has_more", flag.clone())])),
        ("Finding", object(&finding)),
        ("Metadata", metadata(&text, &number, &flag)),
        ("Problem", object(&problem)),
        ("Event", events(&text, &number, &flag)),
    ]
}

fn schema_of_state() -> Value {
    json!({"type": ["object", "boolean", "null"], "description": "JSON Schema of the state"})
}

/// Update of a state.
fn update(text: &Value, number: &Value, flag: &Value) -> Value {
    object(&[
        ("position", number.clone()),
        ("message_id", json!({"type": ["string", "null"]})),
        ("update_id?", text.clone()),
        ("created", text.clone()),
        ("analysis?", text.clone()),
        ("operations", list(&json!({"type": "object"}))),
        ("results", list(&json!({"type": "object"}))),
        ("reversible", flag.clone()),
    ])
}

fn notice(text: &Value) -> Value {
    object(&[("code", text.clone()), ("message", text.clone()), ("ref?", text.clone())])
}

/// Match of a text search.
fn found(text: &Value) -> Value {
    object(&[
        ("in", json!({"type": "string", "enum": ["id", "title", "request", "answer"]})),
        ("message_id?", text.clone()),
        ("excerpt", text.clone()),
    ])
}

/// Configured upstreams and aliases.
fn upstreams(text: &Value, flag: &Value) -> Value {
    let some = json!({"type": ["string", "null"]});
    let number = json!({"type": "number"});
    let price = object(&[("input", number.clone()), ("output", number.clone()), ("cached_input?", number)]);
    let prices = json!({
        "type": "object", "additionalProperties": price, "description": "of a million tokens, by model; `*` is for all others",
    });
    let upstream = object(&[
        ("name", text.clone()),
        ("kind", text.clone()),
        ("url", text.clone()),
        ("model", some.clone()),
        ("key", json!({"type": ["string", "null"], "description": "`***` where there is one"})),
        ("key_env", some.clone()),
        ("key_file", some.clone()),
        ("default", flag.clone()),
        ("resting", flag.clone()),
        ("aliases", list(text)),
        ("prices", prices),
    ]);
    let alias = object(&[
        ("name", text.clone()),
        ("upstream", some),
        ("model?", text.clone()),
        ("dialect?", text.clone()),
        ("contract?", json!({"type": "object"})),
        ("instructions?", flag.clone()),
        ("max_reasks?", json!({"type": "integer"})),
        ("tools?", list(text)),
        ("fallback", list(text)),
        ("weight", json!({"type": ["integer", "null"]})),
        ("has_prompt", flag.clone()),
    ]);
    object(&[("currency", text.clone()), ("data", list(&upstream)), ("aliases", list(&alias))])
}

/// Test of something that is named.
fn service_test(named: &[(&'static str, Value)], number: &Value, flag: &Value) -> Value {
    let text = json!({"type": "string"});
    let error = object(&[("code", text.clone()), ("message", text), ("retryable", flag.clone())]);
    let came = [
        ("ok", flag.clone()),
        ("model", json!({"type": ["string", "null"]})),
        ("elapsed_ms", number.clone()),
        ("error?", error),
    ];
    object(&[named, came.as_slice()].concat())
}

fn mcp_server(text: &Value) -> Value {
    object(&[
        ("name", text.clone()),
        ("kind", json!({"type": "string", "enum": ["http", "program"]})),
        ("state", json!({"type": "string", "enum": ["connected", "connecting", "failed"]})),
        ("error", json!({"type": ["string", "null"]})),
        ("tools", list(text)),
    ])
}

/// Page of a listing.
fn page(of: &str) -> Value {
    object(&[("data", list(&named(of))), ("has_more", json!({"type": "boolean"}))])
}

/// Result of an import.
fn imports(text: &Value, number: &Value) -> Value {
    let one = object(&[
        ("kind", json!({"type": "string", "enum": ["card", "lorebook", "preset"]})),
        ("card_id?", text.clone()),
        ("lorebook_id?", text.clone()),
        ("skein?", json!({"type": "object", "description": "what a preset becomes; it is not kept"})),
        ("name", text.clone()),
        ("file", text.clone()),
        ("version", text.clone()),
        ("entry_count", number.clone()),
        ("warnings", list(text)),
    ]);
    object(&[("data", list(&one))])
}

/// Card or lorebook; its content only when requested alone.
fn imported(id: &str, text: &Value, number: &Value) -> Value {
    let any = json!({"type": "object"});
    object(&[
        (id, text.clone()),
        ("name", text.clone()),
        ("file", text.clone()),
        ("version", text.clone()),
        ("entry_count", number.clone()),
        ("created", text.clone()),
        ("size", number.clone()),
        ("card?", any.clone()),
        ("book?", any.clone()),
        ("entries?", list(&any)),
        ("warnings?", list(text)),
        ("skein?", any),
    ])
}

fn rendered(text: &Value, number: &Value, flag: &Value) -> Value {
    let any = json!({"type": "object"});
    let warning = object(&[
        ("message", text.clone()),
        ("code?", text.clone()),
        ("template?", text.clone()),
        ("line?", json!({"type": ["integer", "null"]})),
        ("column?", json!({"type": ["integer", "null"]})),
    ]);
    let part = object(&[
        ("kind", json!({"type": "string", "enum": ["block", "lore", "message", "protocols", "note"]})),
        ("number?", number.clone()),
        ("tag?", text.clone()),
        ("title?", text.clone()),
        ("index?", number.clone()),
        ("role?", text.clone()),
        ("priority", text.clone()),
        ("tokens", number.clone()),
        ("dropped", flag.clone()),
    ]);
    let woken = object(&[
        ("number", number.clone()),
        ("title", text.clone()),
        ("by", json!({"type": "string", "enum": ["constant", "sticky", "forced", "key"]})),
        ("key?", text.clone()),
        ("found_in?", json!({"type": "string", "enum": ["messages", "persons", "others", "entries"]})),
    ]);
    let unused = object(&[
        ("number", number.clone()),
        ("title", text.clone()),
        ("why", json!({"type": "string", "enum": ["probability", "group", "budget"]})),
    ]);
    object(&[
        ("text", text.clone()),
        ("messages", list(&named("Message"))),
        ("tokens", number.clone()),
        ("dropped", list(&any)),
        ("over", flag.clone()),
        ("parts", list(&part)),
        ("lore", list(text)),
        ("lore_woken", list(&woken)),
        ("lore_dropped", list(&unused)),
        ("timed", any.clone()),
        ("expected_structure", json!({"type": ["object", "null"]})),
        ("warnings", list(&warning)),
        ("effects", list(&any)),
    ])
}

/// Text with versions.
fn document(id: &str, content: &str, text: &Value, number: &Value) -> Value {
    let content = format!("{content}?");
    object(&[
        (id, text.clone()),
        ("name?", text.clone()),
        ("source?", json!({"type": "string", "enum": ["stored", "file", "builtin"]})),
        ("created?", text.clone()),
        ("changed?", text.clone()),
        ("published?", json!({"type": ["integer", "null"]})),
        ("latest?", number.clone()),
        ("version?", number.clone()),
        ("hash?", text.clone()),
        (&content, text.clone()),
        ("variables?", json!({"type": "object"})),
    ])
}

fn stored(id: &str, text: &Value, number: &Value) -> Value {
    object(&[
        (id, text.clone()),
        ("version", number.clone()),
        ("hash?", text.clone()),
        ("warnings?", list(&fault(text, number))),
        ("variables?", json!({"type": "object"})),
    ])
}

/// Fault at one place of a script.
fn fault(text: &Value, number: &Value) -> Value {
    object(&[
        ("path", text.clone()),
        ("line", number.clone()),
        ("column", number.clone()),
        ("code", text.clone()),
        ("rule", text.clone()),
        ("message", text.clone()),
    ])
}

fn validated(text: &Value, number: &Value, flag: &Value) -> Value {
    let faults = list(&fault(text, number));
    object(&[("valid", flag.clone()), ("errors", faults.clone()), ("warnings", faults)])
}

fn dialogue(text: &Value, number: &Value) -> Value {
    object(&[
        ("dialogue_id", text.clone()),
        ("script_id", text.clone()),
        ("version", number.clone()),
        ("session?", text.clone()),
        ("status", status_of_dialogue()),
        ("created?", text.clone()),
        ("changed?", text.clone()),
        ("position?", json!({"type": ["object", "null"]})),
        ("variables?", json!({"type": "object"})),
        ("current_round?", number.clone()),
        ("history?", list(&named("Message"))),
        ("turn?", named("Turn")),
        ("start?", nullable("string")),
        (
            "forked_from?",
            json!({"oneOf": [object(&[("dialogue_id", text.clone()), ("turn", text.clone())]), {"type": "null"}]}),
        ),
    ])
}

fn nullable(kind: &str) -> Value {
    json!({ "type": [kind, "null"] })
}

fn recorded_turn(text: &Value) -> Value {
    object(&[
        ("turn", text.clone()),
        ("created", text.clone()),
        ("ended", nullable("string")),
        ("text", nullable("string")),
        ("answer", nullable("object")),
        ("result", json!({"oneOf": [named("Turn"), {"type": "null"}]})),
    ])
}

fn coverage(text: &Value, number: &Value) -> Value {
    let action = object(&[
        ("path", text.clone()),
        ("phase", text.clone()),
        ("topic", text.clone()),
        ("action_type", text.clone()),
        ("action_id", nullable("string")),
        ("condition", nullable("string")),
        ("reached", number.clone()),
        ("left_out", number.clone()),
        ("rounds", number.clone()),
        ("max_rounds", nullable("integer")),
        ("understanding_threshold", nullable("number")),
        ("exits", list(&object(&[("exit", text.clone()), ("count", number.clone())]))),
    ]);
    object(&[("session", text.clone()), ("actions", list(&action))])
}

fn played(text: &Value, number: &Value) -> Value {
    let stops = ["ended", "answers_used_up", "max_turns", "failed"];
    object(&[
        ("dialogue_id", text.clone()),
        ("status", status_of_dialogue()),
        ("stopped", json!({"type": "string", "enum": stops})),
        ("turns", number.clone()),
        ("error", nullable("object")),
        ("coverage", named("Coverage")),
    ])
}

fn replayed(text: &Value, number: &Value, flag: &Value) -> Value {
    let difference = object(&[
        ("turn", number.clone()),
        ("field", text.clone()),
        ("expected", json!({})),
        ("found", json!({})),
    ]);
    object(&[
        ("version", number.clone()),
        ("turns", number.clone()),
        ("passed", flag.clone()),
        ("differences", list(&difference)),
    ])
}

fn status_of_dialogue() -> Value {
    json!({"type": "string", "enum": ["active", "awaiting_ack", "awaiting_answer", "completed", "failed"]})
}

fn turn_of_dialogue(text: &Value, flag: &Value) -> Value {
    let notice = notice(text);
    object(&[
        ("success", flag.clone()),
        ("completed", flag.clone()),
        ("ai_message", json!({"type": ["string", "null"]})),
        ("status", status_of_dialogue()),
        ("position", json!({"type": ["object", "null"]})),
        ("metadata", json!({"type": ["object", "null"]})),
        ("continues", flag.clone()),
        ("error", json!({"type": ["object", "null"]})),
        ("notices", list(&notice)),
        ("request", json!({"type": ["object", "null"]})),
    ])
}

/// Settings that can be changed, with dotted names or as nested objects.
fn settings() -> Value {
    let mut properties = serde_json::Map::new();
    properties.insert(VERSION.to_owned(), json!({"type": ["integer", "null"], "minimum": 0}));
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

/// Settings as shown, with related values of the configuration.
fn shown_settings(text: &Value, number: &Value) -> Value {
    let one_of = |values: &[&str]| json!({"type": "string", "enum": values});
    let name = json!({"type": ["string", "null"]});
    let upstream = object(&[("name", text.clone()), ("kind", text.clone()), ("model", name.clone())]);
    let texts = object(&[("fallback", text.clone()), ("phase_title", text.clone())]);
    object(&[
        (VERSION, number.clone()),
        ("llm_app_settings", object(&[("app_output_protocol", text.clone())])),
        ("text_language", one_of(&["zh", "en"])),
        ("thought_display", one_of(&["collapsed", "hidden", "shown"])),
        ("texts", texts),
        ("upstreams", list(&upstream)),
        ("default_upstream", name),
        ("limits", json!({"type": "object", "additionalProperties": {"type": "integer"}})),
        ("tools", object(&[("max_iterations", number.clone())])),
    ])
}

/// Result of a tool call.
fn tool_call_result(text: &Value, number: &Value, flag: &Value) -> Value {
    object(&[
        ("call_id", text.clone()),
        ("ok", flag.clone()),
        ("result?", json!({"description": "what the tool gave"})),
        ("error?", object(&[("code", text.clone()), ("message", text.clone())])),
        ("elapsed_ms", number.clone()),
    ])
}

/// Figures of replies over time.
fn figures(text: &Value, number: &Value) -> Value {
    let described = |kind: Value, what: &str| json!({"type": kind, "description": what});
    let counts = [
        ("completed", "replies that came to their end"),
        ("failed", "replies that ended with an error"),
        ("cancelled", "replies that were cancelled"),
        ("repaired", "completed replies that were repaired, and are used"),
        ("replaced", "completed replies in whose place another text is shown, or which are kept as prose"),
        ("input_tokens", "tokens of prompts"),
        ("output_tokens", "tokens of replies"),
        ("unpriced_tokens", "tokens among them for which no price is configured"),
    ];
    let mut fields: Vec<_> = counts.map(|(name, what)| (name, described("integer".into(), what))).to_vec();
    fields.push(("cost", json!({"type": "number", "description": "in units of `currency`"})));
    let nullable = json!(["integer", "null"]);
    fields.push((
        "first_text_ms",
        described(nullable.clone(), "median milliseconds to the first text, within a tenth"),
    ));
    fields.push((
        "first_text_p95_ms",
        described(nullable, "milliseconds that nineteen of twenty do not exceed"),
    ));
    let of = |names: &[(&'static str, Value)]| object(&[names, fields.as_slice()].concat());
    let time = ("time", described("string".into(), "a day, or the RFC 3339 time at which an hour begins"));
    let upstream = (
        "upstream",
        described(json!(["string", "null"]), "`null` where nobody knows any more who was asked"),
    );
    let rule = object(&[("rule", text.clone()), ("code", text.clone()), ("count", number.clone())]);
    object(&[
        ("from", text.clone()),
        ("to", text.clone()),
        ("by", json!({"type": "string", "enum": ["hour", "day"]})),
        ("currency", text.clone()),
        ("total", of(&[])),
        ("times", list(&of(&[time.clone(), ("repairs", list(&rule))]))),
        ("upstreams", list(&of(std::slice::from_ref(&upstream)))),
        ("data", list(&of(&[time, upstream]))),
        ("repairs", list(&rule)),
    ])
}

/// Usage of one key on one day.
fn usage_of_key(text: &Value, number: &Value) -> Value {
    let texts = ["id", "day", "key_id", "name", "owner"].map(|name| (name, text.clone()));
    let numbers =
        ["requests", "input_tokens", "output_tokens", "total_tokens"].map(|name| (name, number.clone()));
    object(&[texts.as_slice(), numbers.as_slice()].concat())
}
