//! Parameters of operations for the OpenAPI description. A row of the table in `routes` names the function
//! that builds its query parameters; the other parameters follow from the rest of the row.

use serde_json::{Value, json};
use tambour::verdict::ContractForm;

use super::idempotency::ResponseStorage;
use super::routes::ApiOperation;

/// Function that builds the query parameters of an operation, as named in its row.
pub(super) type RowParameters = fn() -> Vec<Value>;

/// Name, JSON type and description of a query parameter.
type TypedParameter = (&'static str, &'static str, &'static str);

const LIMIT: TypedParameter = ("limit", "integer", "rows of the page, 1 to 200; 50 if absent");
const AFTER: TypedParameter = ("after", "string", "id of the last row of the previous page");

/// Returns all parameters of an operation: those of its path, those that its row names, and the headers that
/// it accepts.
pub(super) fn list_parameters(operation: &ApiOperation) -> Vec<Value> {
    let mut parameters = Vec::new();
    for name in ["id", "name", "turn"] {
        if ["{", "{*"].iter().any(|opening| operation.path.contains(&format!("{opening}{name}}}"))) {
            parameters
                .push(json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}));
        }
    }
    if let Some(row_parameters) = operation.parameters {
        parameters.extend(row_parameters());
    }
    if operation.takes_if_match() {
        let description = "the `ETag` that the change is based on: the change is refused unless it names the \
                           last version";
        parameters.push(header_parameter("If-Match", description));
    }
    if operation.stored_response.is_some() || operation.handles_idempotency() {
        let period = match operation.stored_response {
            Some(ResponseStorage::Secret(lifetime) | ResponseStorage::Token(lifetime)) => {
                format!("for {} s, as long as the server runs", lifetime.as_secs())
            }
            _ => "for a day".to_owned(),
        };
        let description = format!(
            "a key chosen by the client: a repeated request with the same key gets the same response {period}"
        );
        parameters.push(header_parameter("Idempotency-Key", &description));
    }
    parameters
}

/// Parameters of a listing: its page.
pub(super) fn page() -> Vec<Value> {
    [LIMIT, AFTER].map(typed_parameter).to_vec()
}

/// Parameters of the listing of conversations: its page, and a search.
pub(super) fn conversations() -> Vec<Value> {
    let after = "id of the last row of the previous page; with `q`, `next` of the previous response";
    let search = "only those with this text in their title or in a message, ignoring case";
    [LIMIT, ("after", "string", after), ("q", "string", search)].map(filter_parameter).to_vec()
}

/// Parameters of the listing of dialogues: its page, and filters.
pub(super) fn dialogues() -> Vec<Value> {
    let filters = [
        LIMIT,
        AFTER,
        ("script_id", "string", "only those that run this script"),
        ("session", "string", "only those that run a session of this name"),
        ("status", "string", "only those with this status, such as `awaiting_answer`"),
    ];
    filters.map(filter_parameter).to_vec()
}

/// Parameters of the reply figures: the period in days, and the length of one step of it.
pub(super) fn figures() -> Vec<Value> {
    let day = json!({"type": "string", "format": "date"});
    let steps = json!({"type": "string", "enum": ["hour", "day"]});
    let steps_description =
        "length of a step, `day` if absent; the period is at most 366 days with `day`, 31 with `hour`";
    vec![
        query_parameter("from", &day, "first day in UTC; six days before the last one if absent"),
        query_parameter("to", &day, "last day; today if absent"),
        query_parameter("by", &steps, steps_description),
    ]
}

/// Parameters of the input items of a response: the page of OpenAI's protocol.
pub(super) fn input_items() -> Vec<Value> {
    let page = [
        ("limit", "integer", "items, 1 to 100; 20 if absent"),
        ("order", "string", "`desc`, the newest first, or `asc`"),
        ("after", "string", "id of the last item of the previous page"),
    ];
    page.map(typed_parameter).to_vec()
}

/// Parameter of a card or lorebook: the format of the response.
pub(super) fn file_format() -> Vec<Value> {
    let formats = json!({"type": "string", "enum": ["read", "v3", "original"]});
    let description = "`v3`: V3 JSON with everything in the file; `original`: the file as it was imported";
    vec![query_parameter("format", &formats, description)]
}

/// Parameter of a contract: the form in which it is written.
pub(super) fn contract_form() -> Vec<Value> {
    let forms = json!({"type": "string", "enum": ContractForm::ALL.map(ContractForm::name)});
    vec![query_parameter("format", &forms, "`prompt`, the format instructions, if absent")]
}

/// Parameter of a script or template: one of its versions.
pub(super) fn version() -> Vec<Value> {
    vec![typed_parameter(("version", "integer", "a version instead of the published one"))]
}

/// Parameters of a write of a script or template.
pub(super) fn draft() -> Vec<Value> {
    let flags = [
        ("draft", "boolean", "stores the version without publishing it"),
        ("autosave", "boolean", "with `draft` and `If-Match`: replaces the previous autosave"),
    ];
    flags.map(typed_parameter).to_vec()
}

/// Parameters of an event stream: the event after which it begins, as a header or in the query.
pub(super) fn cursor() -> Vec<Value> {
    let description = "number of the last event received";
    vec![
        header_parameter("Last-Event-ID", description),
        query_parameter("after", &json!({"type": "string"}), description),
    ]
}

/// Parameters of a Durable Stream.
pub(super) fn durable_stream() -> Vec<Value> {
    let modes = json!({"type": "string", "enum": ["long-poll", "sse"]});
    let views = json!({"type": "string", "enum": ["events", "text"]});
    let text = json!({"type": "string"});
    let offset = "`Stream-Next-Offset` of the previous response, `-1` for the beginning, `now` for the tail; the \
                  beginning if absent, required with `live`";
    vec![
        query_parameter("offset", &text, offset),
        query_parameter(
            "live",
            &modes,
            "waits for messages that are not written yet; if absent, responds at once with those that are",
        ),
        query_parameter("cursor", &text, "`Stream-Cursor` of the previous response"),
        query_parameter("view", &views, "`events` if absent; `text`: the raw text of the reply"),
        header_parameter("If-None-Match", "`ETag` of an earlier read at the same offset"),
    ]
}

/// Describes a query parameter.
fn query_parameter(name: &str, schema: &Value, description: &str) -> Value {
    json!({"name": name, "in": "query", "schema": schema, "description": description})
}

/// Describes a query parameter of a JSON type.
fn typed_parameter((name, kind, description): TypedParameter) -> Value {
    query_parameter(name, &json!({"type": kind}), description)
}

/// Describes a query parameter of a listing with filters. Differs from `typed_parameter` only in the order of
/// the fields, which the published description keeps.
fn filter_parameter((name, kind, description): TypedParameter) -> Value {
    json!({"name": name, "in": "query", "description": description, "schema": {"type": kind}})
}

/// Describes a request header.
fn header_parameter(name: &str, description: &str) -> Value {
    json!({"name": name, "in": "header", "schema": {"type": "string"}, "description": description})
}
