//! JSON Schemas of responses and events, for the OpenAPI description. Parameters `text`, `number` and `flag`
//! are the schemas of any string, integer and boolean.

mod events;

use serde_json::{Value, json};

use self::events::{events_schema, metadata_schema};
use crate::base::settings::{SETTINGS, VERSION_NAME};

/// Returns the schema of an object; fields whose names end with `?` are optional.
fn object_schema(fields: &[(&str, Value)]) -> Value {
    let required_names: Vec<&str> =
        fields.iter().map(|(name, _)| *name).filter(|name| !name.ends_with('?')).collect();
    let properties: serde_json::Map<String, Value> =
        fields.iter().map(|(name, schema)| (name.trim_end_matches('?').to_owned(), schema.clone())).collect();
    json!({"type": "object", "required": required_names, "properties": properties})
}

/// Returns the schema of a list.
fn list_schema(item: &Value) -> Value {
    json!({"type": "array", "items": item})
}

/// Returns a reference to the named schema.
fn schema_ref(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

/// Returns the schemas of responses by name.
pub(super) fn response_schemas() -> Vec<(&'static str, Value)> {
    let (text, number, flag) =
        (json!({"type": "string"}), json!({"type": "integer"}), json!({"type": "boolean"}));
    let any_object = json!({"type": "object"});
    let message_status =
        json!({"type": "string", "enum": ["running", "completed", "failed", "cancelled", "superseded"]});
    let history = json!({
        "type": ["string", "null"],
        "description": "text that stands for the reply in its conversation, if that is not the reply itself",
    });
    // One of several replies of a message whose tool calls the server runs. `told` is the text of the tool
    // results sent after it.
    let tool_round =
        object_schema(&[("reply", text.clone()), ("history?", history.clone()), ("told?", text.clone())]);
    let attempt = object_schema(&[
        ("raw", text.clone()),
        ("findings", list_schema(&schema_ref("Finding"))),
        ("finish_reason", text.clone()),
    ]);
    let record = [
        ("message_id", text.clone()),
        ("conversation_id", text.clone()),
        ("request_id", text.clone()),
        ("created", text.clone()),
        ("status", message_status),
        ("current", flag.clone()),
        ("in_place_of?", text.clone()),
        ("request", any_object.clone()),
        ("reply?", text.clone()),
        ("answer?", text.clone()),
        ("history?", history),
        ("reasoning?", text.clone()),
        ("prompt?", list_schema(&schema_ref("Message"))),
        ("events?", list_schema(&schema_ref("Event"))),
        ("findings?", list_schema(&schema_ref("Finding"))),
        ("turns?", list_schema(&tool_round)),
        ("attempts?", list_schema(&attempt)),
        ("usage?", json!({})),
        ("finish_reason?", text.clone()),
        ("metadata?", schema_ref("Metadata")),
        ("error?", any_object.clone()),
        ("timings?", any_object.clone()),
    ];
    let conversation = [
        ("conversation_id", text.clone()),
        ("created", text.clone()),
        ("title", json!({"type": ["string", "null"]})),
        ("metadata", json!({"type": ["object", "null"]})),
        ("messages?", list_schema(&schema_ref("Record"))),
        ("has_more?", flag.clone()),
        ("found?", match_schema(&text)),
    ];
    let key = [
        ("id", text.clone()),
        ("owner", text.clone()),
        ("name", text.clone()),
        ("rights", json!({"type": "string", "enum": ["admin", "plain"]})),
        ("created", text.clone()),
        ("requests_per_minute?", number.clone()),
        ("tokens_per_day?", number.clone()),
        ("aliases?", list_schema(&text)),
        ("key?", text.clone()),
    ];
    let tool = [
        ("name", text.clone()),
        ("description?", text.clone()),
        ("schema", any_object.clone()),
        ("callers?", list_schema(&text)),
        ("read_only?", flag.clone()),
        ("confirm", flag.clone()),
        ("executor", any_object.clone()),
        ("signed", flag.clone()),
        ("created", text.clone()),
        ("changed", text.clone()),
    ];
    let accepted_answers = [("message_id", text.clone()), ("accepted", list_schema(&text))];
    let finding = [
        ("rule", text.clone()),
        ("code", text.clone()),
        ("severity", json!({"type": "string", "enum": ["error", "warning", "info"]})),
        ("span", object_schema(&[("start", number.clone()), ("end", number.clone())])),
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
        ("close?", list_schema(&text)),
    ];
    let accepted_message = object_schema(&[
        ("message_id", text.clone()),
        ("conversation_id", text.clone()),
        ("request_id", text.clone()),
    ]);
    let decode_fields = [
        ("dialect", text.clone()),
        ("events", list_schema(&schema_ref("Event"))),
        ("findings", list_schema(&schema_ref("Finding"))),
        (
            "repaired?",
            json!({
                "type": ["string", "null"],
                "description": "the reply as it should have been written, if requested; `null` if nothing of it can be used",
            }),
        ),
    ];
    let check_fields = [
        ("contract", text.clone()),
        ("verdict", json!({"type": "string", "enum": ["pass", "fail"]})),
        ("findings", list_schema(&schema_ref("Finding"))),
    ];
    let rule = [
        ("code", text.clone()),
        ("rows", list_schema(&text)),
        ("level", json!({"type": "string", "enum": ["must", "should", "info"]})),
        ("owner", text.clone()),
        ("title", text.clone()),
    ];
    let examples = [("with", list_schema(&text)), ("broken", text.clone()), ("correct", text.clone())];
    let explained_rule = [rule.as_slice(), examples.as_slice()].concat();
    vec![
        ("Object", any_object.clone()),
        ("Accepted", accepted_message),
        ("Record", object_schema(&record)),
        ("Cancelled", object_schema(&[("message_id", text.clone()), ("status", text.clone())])),
        ("CancelledTurn", object_schema(&[("dialogue_id", text.clone()), ("status", text.clone())])),
        ("Decoded", object_schema(&decode_fields)),
        ("Checked", object_schema(&check_fields)),
        ("Rules", object_schema(&[("data", list_schema(&object_schema(&rule)))])),
        ("ExplainedRules", object_schema(&[("data", list_schema(&object_schema(&explained_rule)))])),
        ("Settings", shown_settings_schema(&text, &number)),
        ("SettingsChange", settings_change_schema()),
        ("Upstreams", upstreams_schema(&text, &flag)),
        ("UpstreamTest", service_test_schema(&[("name", text.clone())], &number, &flag)),
        (
            "AliasTest",
            service_test_schema(&[("name", text.clone()), ("upstream", text.clone())], &number, &flag),
        ),
        ("McpServers", object_schema(&[("data", list_schema(&mcp_server_schema(&text)))])),
        (
            "Conversations",
            object_schema(&[
                ("data", list_schema(&schema_ref("Conversation"))),
                ("has_more", flag.clone()),
                (
                    "next?",
                    json!({"type": ["string", "null"], "description": "with `q`: `after` for the next request"}),
                ),
            ]),
        ),
        ("Conversation", object_schema(&conversation)),
        (
            "State",
            object_schema(&[
                ("conversation_id", text.clone()),
                ("state", json!({})),
                ("schema", state_schema()),
            ]),
        ),
        (
            "StateHistory",
            object_schema(&[
                ("data", list_schema(&update_schema(&text, &number, &flag))),
                ("has_more", flag.clone()),
                ("diff?", list_schema(&any_object)),
            ]),
        ),
        (
            "StateSchema",
            object_schema(&[("schema", state_schema()), ("mismatches", list_schema(&any_object))]),
        ),
        (
            "StateUpdate",
            object_schema(&[
                ("update_id", json!({"type": ["string", "null"]})),
                ("results", list_schema(&any_object)),
                (
                    "counts",
                    object_schema(
                        &["operations", "applied", "refused", "left_out"].map(|name| (name, number.clone())),
                    ),
                ),
                ("notices", list_schema(&notice_schema(&text))),
                ("state", json!({})),
            ]),
        ),
        ("RolledBack", object_schema(&[("taken_back", number.clone()), ("state", json!({}))])),
        ("Tools", object_schema(&[("data", list_schema(&schema_ref("Tool"))), ("has_more", flag.clone())])),
        ("Tool", object_schema(&tool)),
        ("ToolCallResult", tool_call_result_schema(&text, &number, &flag)),
        ("StreamToken", object_schema(&[("token", text.clone()), ("expires_in", number.clone())])),
        ("Taken", object_schema(&accepted_answers)),
        ("Scripts", page_schema("Script")),
        ("Templates", page_schema("Template")),
        ("Versions", page_schema("Object")),
        ("Dialogues", page_schema("Dialogue")),
        ("Trace", page_schema("Object")),
        ("Script", document_schema("script_id", "yaml", &text, &number)),
        ("Template", document_schema("template_id", "text", &text, &number)),
        ("StoredScript", stored_schema("script_id", &text, &number)),
        ("StoredTemplate", stored_schema("template_id", &text, &number)),
        ("Validated", validation_schema(&text, &number, &flag)),
        (
            "Diff",
            object_schema(&[
                ("script_id?", text.clone()),
                ("template_id?", text.clone()),
                ("from", number.clone()),
                ("to", number.clone()),
                ("diff", text.clone()),
            ]),
        ),
        ("Dialogue", dialogue_schema(&text, &number)),
        ("Turn", turn_schema(&text, &flag)),
        ("DialogueTurns", page_schema("DialogueTurn")),
        ("DialogueTurn", recorded_turn_schema(&text)),
        ("Coverage", coverage_schema(&text, &number)),
        ("Played", play_schema(&text, &number)),
        ("Replayed", replay_schema(&text, &number, &flag)),
        ("Imports", imports_schema(&text, &number)),
        ("Cards", page_schema("Card")),
        ("Card", import_schema("card_id", &text, &number)),
        ("Lorebooks", page_schema("Lorebook")),
        ("Lorebook", import_schema("lorebook_id", &text, &number)),
        ("RenderedPrompt", rendered_schema(&text, &number, &flag)),
        (
            "MigratedMacros",
            object_schema(&[
                ("text", text.clone()),
                ("warnings", list_schema(&any_object)),
                ("report", any_object),
            ]),
        ),
        ("Keys", object_schema(&[("data", list_schema(&schema_ref("Key"))), ("has_more", flag.clone())])),
        ("Key", object_schema(&key)),
        ("Figures", figures_schema(&text, &number)),
        (
            "Usage",
            object_schema(&[
                ("data", list_schema(&key_usage_schema(&text, &number))),
                ("has_more", flag.clone()),
            ]),
        ),
        ("Finding", object_schema(&finding)),
        ("Metadata", metadata_schema(&text, &number, &flag)),
        ("Problem", object_schema(&problem)),
        ("Event", events_schema(&text, &number, &flag)),
        ("StreamMessages", stream_messages_schema(&number)),
    ]
}

fn state_schema() -> Value {
    json!({"type": ["object", "boolean", "null"], "description": "JSON Schema of the state"})
}

/// Returns the schema of an update in the history of a state.
fn update_schema(text: &Value, number: &Value, flag: &Value) -> Value {
    object_schema(&[
        ("position", number.clone()),
        ("message_id", json!({"type": ["string", "null"]})),
        ("update_id?", text.clone()),
        ("created", text.clone()),
        ("analysis?", text.clone()),
        ("operations", list_schema(&json!({"type": "object"}))),
        ("results", list_schema(&json!({"type": "object"}))),
        ("reversible", flag.clone()),
    ])
}

fn notice_schema(text: &Value) -> Value {
    object_schema(&[("code", text.clone()), ("message", text.clone()), ("ref?", text.clone())])
}

/// Returns the schema of the messages of a Durable Stream: events, each with its number if it has one.
fn stream_messages_schema(number: &Value) -> Value {
    list_schema(&json!({"allOf": [schema_ref("Event"), {"properties": {"id": number}}]}))
}

/// Returns the schema of a match in the text search of conversations.
fn match_schema(text: &Value) -> Value {
    object_schema(&[
        ("in", json!({"type": "string", "enum": ["id", "title", "request", "answer"]})),
        ("message_id?", text.clone()),
        ("excerpt", text.clone()),
    ])
}

/// Returns the schema of the configured upstreams and aliases.
fn upstreams_schema(text: &Value, flag: &Value) -> Value {
    let optional_text = json!({"type": ["string", "null"]});
    let amount = json!({"type": "number"});
    let price =
        object_schema(&[("input", amount.clone()), ("output", amount.clone()), ("cached_input?", amount)]);
    let prices = json!({
        "type": "object", "additionalProperties": price, "description": "prices of a million tokens, by model; `*` applies to all others",
    });
    let upstream = object_schema(&[
        ("name", text.clone()),
        ("kind", text.clone()),
        ("url", text.clone()),
        ("model", optional_text.clone()),
        ("key", json!({"type": ["string", "null"], "description": "`***` if there is a key"})),
        ("key_env", optional_text.clone()),
        ("key_file", optional_text.clone()),
        ("server", optional_text.clone()),
        ("constrain", constrain_schema()),
        ("default", flag.clone()),
        ("resting", flag.clone()),
        ("aliases", list_schema(text)),
        ("prices", prices),
    ]);
    let alias = object_schema(&[
        ("name", text.clone()),
        ("upstream", optional_text),
        ("model?", text.clone()),
        ("dialect?", text.clone()),
        ("contract?", json!({"type": "object"})),
        ("instructions?", flag.clone()),
        ("max_reasks?", json!({"type": "integer"})),
        ("constrain?", constrain_schema()),
        ("tools?", list_schema(text)),
        ("fallback", list_schema(text)),
        ("weight", json!({"type": ["integer", "null"]})),
        ("has_prompt", flag.clone()),
    ]);
    object_schema(&[
        ("currency", text.clone()),
        ("data", list_schema(&upstream)),
        ("aliases", list_schema(&alias)),
    ])
}

/// Returns the schema of the result of testing an upstream or alias; `name_fields` name what was tested.
fn service_test_schema(name_fields: &[(&'static str, Value)], number: &Value, flag: &Value) -> Value {
    let text = json!({"type": "string"});
    let error = object_schema(&[("code", text.clone()), ("message", text), ("retryable", flag.clone())]);
    let result_fields = [
        ("ok", flag.clone()),
        ("model", json!({"type": ["string", "null"]})),
        ("elapsed_ms", number.clone()),
        ("error?", error),
    ];
    object_schema(&[name_fields, result_fields.as_slice()].concat())
}

fn mcp_server_schema(text: &Value) -> Value {
    object_schema(&[
        ("name", text.clone()),
        ("kind", json!({"type": "string", "enum": ["http", "program"]})),
        ("state", json!({"type": "string", "enum": ["connected", "connecting", "failed"]})),
        ("error", json!({"type": ["string", "null"]})),
        ("tools", list_schema(text)),
    ])
}

/// Returns the schema of a page of a listing; `item` names the schema of a row.
fn page_schema(item: &str) -> Value {
    object_schema(&[("data", list_schema(&schema_ref(item))), ("has_more", json!({"type": "boolean"}))])
}

/// Returns the schema of the result of an import.
fn imports_schema(text: &Value, number: &Value) -> Value {
    let import = object_schema(&[
        ("kind", json!({"type": "string", "enum": ["card", "lorebook", "preset"]})),
        ("card_id?", text.clone()),
        ("lorebook_id?", text.clone()),
        (
            "skein?",
            json!({"type": "object", "description": "the Skein made from a preset; it is not stored"}),
        ),
        ("name", text.clone()),
        ("file", text.clone()),
        ("version", text.clone()),
        ("entry_count", number.clone()),
        ("warnings", list_schema(text)),
    ]);
    object_schema(&[("data", list_schema(&import))])
}

/// Returns the schema of an imported card or lorebook, whose content is not in listings.
fn import_schema(id: &str, text: &Value, number: &Value) -> Value {
    let any_object = json!({"type": "object"});
    object_schema(&[
        (id, text.clone()),
        ("name", text.clone()),
        ("file", text.clone()),
        ("version", text.clone()),
        ("entry_count", number.clone()),
        ("created", text.clone()),
        ("size", number.clone()),
        ("card?", any_object.clone()),
        ("book?", any_object.clone()),
        ("entries?", list_schema(&any_object)),
        ("warnings?", list_schema(text)),
        ("skein?", any_object),
    ])
}

fn rendered_schema(text: &Value, number: &Value, flag: &Value) -> Value {
    let any_object = json!({"type": "object"});
    let warning = object_schema(&[
        ("message", text.clone()),
        ("code?", text.clone()),
        ("template?", text.clone()),
        ("line?", json!({"type": ["integer", "null"]})),
        ("column?", json!({"type": ["integer", "null"]})),
    ]);
    let part = object_schema(&[
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
    let woken_entry = object_schema(&[
        ("number", number.clone()),
        ("title", text.clone()),
        ("by", json!({"type": "string", "enum": ["constant", "sticky", "forced", "key"]})),
        ("key?", text.clone()),
        ("found_in?", json!({"type": "string", "enum": ["messages", "persons", "others", "entries"]})),
    ]);
    let unused_entry = object_schema(&[
        ("number", number.clone()),
        ("title", text.clone()),
        ("why", json!({"type": "string", "enum": ["probability", "group", "budget"]})),
    ]);
    object_schema(&[
        ("text", text.clone()),
        ("messages", list_schema(&schema_ref("Message"))),
        ("tokens", number.clone()),
        ("dropped", list_schema(&any_object)),
        ("over", flag.clone()),
        ("parts", list_schema(&part)),
        ("lore", list_schema(text)),
        ("lore_woken", list_schema(&woken_entry)),
        ("lore_dropped", list_schema(&unused_entry)),
        ("timed", any_object.clone()),
        ("expected_structure", json!({"type": ["object", "null"]})),
        ("warnings", list_schema(&warning)),
        ("effects", list_schema(&any_object)),
    ])
}

/// Returns the schema of a script or template; `content` is the name of the field with its text.
fn document_schema(id: &str, content: &str, text: &Value, number: &Value) -> Value {
    let content = format!("{content}?");
    object_schema(&[
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

fn stored_schema(id: &str, text: &Value, number: &Value) -> Value {
    object_schema(&[
        (id, text.clone()),
        ("version", number.clone()),
        ("hash?", text.clone()),
        ("warnings?", list_schema(&fault_schema(text, number))),
        ("variables?", json!({"type": "object"})),
    ])
}

/// Returns the schema of a fault at one place of a script.
fn fault_schema(text: &Value, number: &Value) -> Value {
    object_schema(&[
        ("path", text.clone()),
        ("line", number.clone()),
        ("column", number.clone()),
        ("code", text.clone()),
        ("rule", text.clone()),
        ("message", text.clone()),
    ])
}

fn validation_schema(text: &Value, number: &Value, flag: &Value) -> Value {
    let faults = list_schema(&fault_schema(text, number));
    object_schema(&[("valid", flag.clone()), ("errors", faults.clone()), ("warnings", faults)])
}

fn dialogue_schema(text: &Value, number: &Value) -> Value {
    object_schema(&[
        ("dialogue_id", text.clone()),
        ("script_id", text.clone()),
        ("version", number.clone()),
        ("session?", text.clone()),
        ("status", dialogue_status_schema()),
        ("created?", text.clone()),
        ("changed?", text.clone()),
        ("position?", json!({"type": ["object", "null"]})),
        ("variables?", json!({"type": "object"})),
        ("current_round?", number.clone()),
        ("history?", list_schema(&schema_ref("Message"))),
        ("turn?", schema_ref("Turn")),
        ("start?", nullable("string")),
        (
            "forked_from?",
            json!({"oneOf": [object_schema(&[("dialogue_id", text.clone()), ("turn", text.clone())]), {"type": "null"}]}),
        ),
    ])
}

/// Returns the schema of a value of the type `kind` or `null`.
fn nullable(kind: &str) -> Value {
    json!({ "type": [kind, "null"] })
}

fn recorded_turn_schema(text: &Value) -> Value {
    object_schema(&[
        ("turn", text.clone()),
        ("created", text.clone()),
        ("ended", nullable("string")),
        ("text", nullable("string")),
        ("answer", nullable("object")),
        ("result", json!({"oneOf": [schema_ref("Turn"), {"type": "null"}]})),
    ])
}

fn coverage_schema(text: &Value, number: &Value) -> Value {
    let action = object_schema(&[
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
        ("exits", list_schema(&object_schema(&[("exit", text.clone()), ("count", number.clone())]))),
    ]);
    object_schema(&[("session", text.clone()), ("actions", list_schema(&action))])
}

fn play_schema(text: &Value, number: &Value) -> Value {
    let stop_reasons = ["ended", "answers_used_up", "max_turns", "failed"];
    object_schema(&[
        ("dialogue_id", text.clone()),
        ("status", dialogue_status_schema()),
        ("stopped", json!({"type": "string", "enum": stop_reasons})),
        ("turns", number.clone()),
        ("error", nullable("object")),
        ("coverage", schema_ref("Coverage")),
    ])
}

fn replay_schema(text: &Value, number: &Value, flag: &Value) -> Value {
    let difference = object_schema(&[
        ("turn", number.clone()),
        ("field", text.clone()),
        ("expected", json!({})),
        ("found", json!({})),
    ]);
    object_schema(&[
        ("version", number.clone()),
        ("turns", number.clone()),
        ("passed", flag.clone()),
        ("differences", list_schema(&difference)),
    ])
}

fn dialogue_status_schema() -> Value {
    json!({"type": "string", "enum": ["active", "awaiting_ack", "awaiting_answer", "completed", "failed"]})
}

fn turn_schema(text: &Value, flag: &Value) -> Value {
    let notice = notice_schema(text);
    object_schema(&[
        ("success", flag.clone()),
        ("completed", flag.clone()),
        ("ai_message", json!({"type": ["string", "null"]})),
        ("status", dialogue_status_schema()),
        ("position", json!({"type": ["object", "null"]})),
        ("metadata", json!({"type": ["object", "null"]})),
        ("continues", flag.clone()),
        ("error", json!({"type": ["object", "null"]})),
        ("notices", list_schema(&notice)),
        ("request", json!({"type": ["object", "null"]})),
    ])
}

/// Returns the schema of a change of settings, with dotted names or nested objects.
fn settings_change_schema() -> Value {
    let mut properties = serde_json::Map::new();
    properties.insert(VERSION_NAME.to_owned(), json!({"type": ["integer", "null"], "minimum": 0}));
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

/// Returns the schema of the settings as shown, with related values of the configuration.
fn shown_settings_schema(text: &Value, number: &Value) -> Value {
    let enum_schema = |values: &[&str]| json!({"type": "string", "enum": values});
    let name = json!({"type": ["string", "null"]});
    let form = object_schema(&[
        ("form", enum_schema(&["gbnf", "lark", "structural-tag", "json-schema"])),
        ("state", enum_schema(&["obeyed", "ignored", "refused", "unknown"])),
    ]);
    let probe = object_schema(&[
        ("model", name.clone()),
        ("server", name.clone()),
        ("complete", json!({"type": "boolean"})),
        ("age_ms", number.clone()),
        ("forms", list_schema(&form)),
    ]);
    let upstream = object_schema(&[
        ("name", text.clone()),
        ("kind", text.clone()),
        ("model", name.clone()),
        ("constrain", constrain_schema()),
        ("probes", list_schema(&probe)),
    ]);
    let texts = object_schema(&[("fallback", text.clone()), ("phase_title", text.clone())]);
    object_schema(&[
        (VERSION_NAME, number.clone()),
        ("llm_app_settings", object_schema(&[("app_output_protocol", text.clone())])),
        ("text_language", enum_schema(&["zh", "en"])),
        ("thought_display", enum_schema(&["collapsed", "hidden", "shown"])),
        ("texts", texts),
        ("upstreams", list_schema(&upstream)),
        ("default_upstream", name),
        ("limits", json!({"type": "object", "additionalProperties": {"type": "integer"}})),
        ("tools", object_schema(&[("max_iterations", number.clone())])),
    ])
}

/// Returns the schema of the setting that sends contracts along.
fn constrain_schema() -> Value {
    schema_ref("Constrain")
}

/// Returns the schema of the result of a tool call.
fn tool_call_result_schema(text: &Value, number: &Value, flag: &Value) -> Value {
    object_schema(&[
        ("call_id", text.clone()),
        ("ok", flag.clone()),
        ("result?", json!({"description": "result of the tool"})),
        ("error?", object_schema(&[("code", text.clone()), ("message", text.clone())])),
        ("elapsed_ms", number.clone()),
    ])
}

/// Returns the schema of the figures of replies over time.
fn figures_schema(text: &Value, number: &Value) -> Value {
    let described_schema = |kind: Value, description: &str| json!({"type": kind, "description": description});
    let counts = [
        ("completed", "replies that were completed"),
        ("failed", "replies that ended with an error"),
        ("cancelled", "replies that were cancelled"),
        ("repaired", "completed replies that were repaired and used"),
        ("replaced", "completed replies that were replaced by another text or kept as prose"),
        ("input_tokens", "tokens of prompts"),
        ("output_tokens", "tokens of replies"),
        ("unpriced_tokens", "tokens without a configured price"),
    ];
    let mut fields: Vec<_> =
        counts.map(|(name, description)| (name, described_schema("integer".into(), description))).to_vec();
    fields.push(("cost", json!({"type": "number", "description": "in units of `currency`"})));
    let nullable_integer = json!(["integer", "null"]);
    fields.push((
        "first_text_ms",
        described_schema(nullable_integer.clone(), "median milliseconds to the first text, within a tenth"),
    ));
    fields.push((
        "first_text_p95_ms",
        described_schema(nullable_integer, "95th percentile of the milliseconds to the first text"),
    ));
    let with_figures = |names: &[(&'static str, Value)]| object_schema(&[names, fields.as_slice()].concat());
    let time =
        ("time", described_schema("string".into(), "a day, or the RFC 3339 time at which an hour begins"));
    let upstream = (
        "upstream",
        described_schema(json!(["string", "null"]), "`null` if the upstream is no longer known"),
    );
    let rule = object_schema(&[("rule", text.clone()), ("code", text.clone()), ("count", number.clone())]);
    object_schema(&[
        ("from", text.clone()),
        ("to", text.clone()),
        ("by", json!({"type": "string", "enum": ["hour", "day"]})),
        ("currency", text.clone()),
        ("total", with_figures(&[])),
        ("times", list_schema(&with_figures(&[time.clone(), ("repairs", list_schema(&rule))]))),
        ("upstreams", list_schema(&with_figures(std::slice::from_ref(&upstream)))),
        ("data", list_schema(&with_figures(&[time, upstream]))),
        ("repairs", list_schema(&rule)),
    ])
}

/// Returns the schema of the usage of one key on one day.
fn key_usage_schema(text: &Value, number: &Value) -> Value {
    let texts = ["id", "day", "key_id", "name", "owner"].map(|name| (name, text.clone()));
    let numbers =
        ["requests", "input_tokens", "output_tokens", "total_tokens"].map(|name| (name, number.clone()));
    object_schema(&[texts.as_slice(), numbers.as_slice()].concat())
}
