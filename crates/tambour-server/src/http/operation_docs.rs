//! Parts of the OpenAPI description that are not in the table of operations (`routes`): tags, problems,
//! examples.

use std::sync::LazyLock;

use serde_json::Value;

use super::routes::ApiOperation;

/// Tags with their descriptions.
pub(super) const TAGS: [(&str, &str); 13] = [
    ("messages", "Requests to a model and their records"),
    ("conversations", "Sequences of messages"),
    ("replies", "Decoding and checking of a single reply, and contracts of replies"),
    ("tools", "Tools that replies may call"),
    ("scripts", "Versioned dialogue scripts and prompt templates"),
    ("dialogues", "Running scripts"),
    ("prompts", "Cards, lorebooks, and prompts made of them"),
    ("settings", "Settings that change while the server runs"),
    ("keys", "Keys of callers and their limits"),
    ("openai", "For clients of OpenAI"),
    ("anthropic", "For clients of Anthropic"),
    ("agents", "For the AI SDK and AG-UI"),
    ("server", "The server itself"),
];

/// Problem codes with status and meaning. `problems` relies on the order: ascending by status.
pub(super) const PROBLEM_CODES: &[(&str, u16, &str)] = &[
    ("malformed_request", 400, "path, query or body cannot be read, or the body broke off"),
    ("malformed_json", 400, "the body is not JSON"),
    (
        "malformed_cursor",
        400,
        "the cursor is not the number of an event, or the offset is not one of the stream",
    ),
    ("unknown_cursor", 400, "nothing in the list has the id that `after` names"),
    ("unauthorized", 401, "the key is missing or not valid"),
    ("model_forbidden", 403, "the key may not use this model, or not through this route"),
    (
        "field_forbidden",
        403,
        "the key is limited to aliases, and this field could choose another model; `field` names it",
    ),
    ("forbidden", 403, "the route needs a key with the `admin` right"),
    ("behind_proxy", 403, "no key exists, and the request came through a proxy"),
    (
        "foreign_origin",
        403,
        "no key exists, and the request came from a page of another site, or names another host",
    ),
    ("not_found", 404, "the owner has no such object"),
    ("template_not_found", 404, "there is no such template; the known ones are listed"),
    ("model_not_found", 404, "there is no such alias or upstream"),
    ("method_not_allowed", 405, "the route does not support this method"),
    ("slow_body", 408, "the body did not arrive in time"),
    ("request_under_way", 409, "a request with this `Idempotency-Key` is under way"),
    (
        "secret_not_stored",
        409,
        "a request with this `Idempotency-Key` succeeded on another server, which alone has the response with \
         its secret; `ids` names what it created",
    ),
    (
        "conversation_busy",
        409,
        "another message of the conversation is running, and this request does not wait for its end",
    ),
    (
        "state_gone",
        409,
        "the state at that point is gone, because a message was deleted or too many changes followed",
    ),
    ("message_ended", 409, "the message has ended and no longer waits for results or confirmations"),
    ("already_answered", 409, "the call has been answered or has timed out"),
    ("not_waiting", 409, "the call does not wait for an answer of this kind"),
    ("answer_expected", 409, "the dialogue waits for the answer to a request; `call_id` names it"),
    ("no_turns", 409, "the dialogue has no turn yet"),
    ("not_published", 409, "no version of the script is published"),
    ("confirmation_required", 409, "the tool runs only after a person has agreed to the call"),
    (
        "tool_of_server",
        409,
        "the tool belongs to an MCP server of the configuration, which no key can change",
    ),
    ("own_key", 409, "a key cannot remove itself"),
    (
        "settings_changed",
        409,
        "the settings have changed since `version`; `version` of the response is the current one",
    ),
    (
        "changed_meanwhile",
        412,
        "`If-Match` does not name the last version; `present` is what is stored, `sent` what was sent, if anything",
    ),
    ("too_large", 413, "the body is too long"),
    (
        "too_many_values",
        413,
        "the values of the body take more memory than allowed; `line` and `column` say where most of them are",
    ),
    ("unknown_field", 422, "a field is unknown; `field` names it"),
    ("missing_field", 422, "a required field is missing; `field` names it"),
    ("invalid_field", 422, "the value of a field is not allowed"),
    ("invalid_option", 422, "an option of `contract` is unknown, or its value is not allowed"),
    ("invalid_script", 422, "the script cannot run; `errors` lists the faults with their places"),
    ("unknown_session", 422, "the script has no such session"),
    ("unknown_start", 422, "the session has no step or action at this path; the known ones are listed"),
    ("invalid_test", 422, "the test cannot be read, or begins at a place that the script does not have"),
    ("too_many", 422, "the owner has reached the limit for objects of this kind"),
    ("invalid_schema", 422, "the JSON Schema cannot be used"),
    ("schema_limit", 422, "the JSON Schema is too large"),
    ("schema_too_complex", 422, "checking a value against the JSON Schema takes more steps than allowed"),
    ("grammar_impossible", 422, "a grammar cannot follow a schema, or would be too large"),
    ("unknown_dialect", 422, "there is no such dialect"),
    ("unknown_contract", 422, "there is no such contract"),
    ("unknown_protocol", 422, "there is no such output protocol"),
    ("unknown_upstream", 422, "there is no such upstream; `close` has similar ones"),
    ("unknown_alias", 422, "the configuration has no such alias; `close` has similar ones"),
    ("unknown_tool", 422, "there is no tool of that name; `close` has similar ones"),
    ("unknown_call", 422, "the message has no such call"),
    ("tool_of_client", 422, "the tool is run by the client that offers it to a model"),
    ("webhook_not_allowed", 422, "webhooks may not call this address"),
    ("too_many_tools", 422, "the owner has reached the limit of tools"),
    ("broken_file", 422, "a file cannot be imported; `errors` names each, and nothing is imported"),
    ("too_many_imports", 422, "the owner has reached the limit of cards and books"),
    (
        "invalid_skein",
        422,
        "the prompt is not a valid Skein; `line` and `column` give the place, if it is known",
    ),
    ("prompt_not_rendered", 422, "the context has the wrong form, or a template cannot be rendered"),
    ("first_key_admin", 422, "the first key needs the `admin` right"),
    ("invalid_idempotency_key", 422, "`Idempotency-Key` is empty, too long or not ASCII"),
    ("idempotency_key_reused", 422, "this `Idempotency-Key` was sent with another request"),
    (
        "too_many_running",
        429,
        "the owner has reached the limit of running messages, or of long-running requests that wait",
    ),
    ("rate_limited", 429, "the key has sent more requests than allowed in a minute"),
    ("tokens_used_up", 429, "the key has used up its tokens for the day"),
    ("too_many_streams", 429, "the owner has reached the limit of open event streams"),
    ("internal_error", 500, "the server failed"),
    ("damaged", 500, "stored data cannot be read"),
    ("store_unavailable", 503, "nothing can be stored, or the database does not answer in time"),
    ("overloaded", 503, "other requests are using the memory that this one needs"),
    ("server_full", 503, "the server has reached its limit of open event streams"),
    ("closing", 503, "the server is stopping"),
    (
        "owner_unreachable",
        503,
        "the server that runs the message does not answer; another one will take it over",
    ),
    (
        "tool_unavailable",
        503,
        "the MCP server of a tool cannot be reached, and has not been connected before",
    ),
];

/// Group of problem codes that all operations of one kind have.
pub(super) type Codes = &'static [&'static str];

/// For operations that need a key.
const KEY_CODES: Codes =
    &["unauthorized", "behind_proxy", "foreign_origin", "internal_error", "store_unavailable"];
/// For operations that may have a body.
const BODY_CODES: Codes = &["malformed_request", "slow_body", "too_large", "too_many_values", "overloaded"];
/// For operations with a JSON body.
const JSON_CODES: Codes = &["malformed_json", "unknown_field", "missing_field", "invalid_field"];
/// For operations that accept `Idempotency-Key`.
pub(super) const IDEMPOTENCY_CODES: Codes =
    &["invalid_idempotency_key", "idempotency_key_reused", "request_under_way"];
/// For operations that read a query.
pub(super) const QUERY_CODES: Codes = &["unknown_field", "invalid_field"];
pub(super) const LISTING_CODES: Codes = &["unknown_field", "invalid_field", "unknown_cursor"];
/// For operations with a parameter in the path, and those whose body names an object.
pub(super) const PATH_CODES: Codes = &["not_found"];
pub(super) const ADMIN_CODES: Codes = &["forbidden"];
pub(super) const STREAM_CODES: Codes = &["too_many_streams", "server_full", "damaged"];
/// For reads of Durable Streams, whose unknown fields are ignored.
pub(super) const STREAM_QUERY_CODES: Codes = &["malformed_cursor", "malformed_request"];
pub(super) const SCHEMA_CODES: Codes = &["invalid_schema", "schema_limit", "schema_too_complex"];
/// For operations whose work may take long and waits for the CPU pool.
pub(super) const POOL_CODES: Codes = &["too_many_running"];
/// For operations that start a message.
pub(super) const MESSAGE_CODES: Codes = &[
    "closing",
    "conversation_busy",
    "damaged",
    "field_forbidden",
    "forbidden",
    "grammar_impossible",
    "invalid_option",
    "invalid_skein",
    "model_forbidden",
    "not_found",
    "prompt_not_rendered",
    "rate_limited",
    "tokens_used_up",
    "tool_unavailable",
    "too_many_running",
    "unknown_dialect",
    "unknown_protocol",
    "unknown_tool",
    "unknown_upstream",
];
/// For paths with a parameter where a fixed path such as `/scripts/validate` has other methods.
pub(super) const FIXED_PATH_CODES: Codes = &["method_not_allowed"];
/// For writes that accept `If-Match`.
pub(super) const IF_MATCH_CODES: Codes = &["changed_meanwhile", "malformed_request"];
pub(super) const TEMPLATE_CODES: Codes = &["template_not_found"];
pub(super) const SCRIPT_CODES: Codes = &["invalid_script", "too_many"];
pub(super) const RENDER_CODES: Codes = &["damaged", "invalid_skein", "prompt_not_rendered"];
pub(super) const STATE_CODES: Codes = &["state_gone"];
/// For commands to a running message or turn, which another server may run.
pub(super) const COMMAND_CODES: Codes = &["owner_unreachable"];
pub(super) const BUSY_CODES: Codes = &["conversation_busy"];
pub(super) const MODEL_CODES: Codes = &["model_not_found"];
pub(super) const ANSWER_CODES: Codes = &["already_answered", "message_ended", "not_waiting", "unknown_call"];

/// Examples of requests and responses by operation id.
static EXAMPLES: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("examples.json")).unwrap_or_default());

/// Returns the example of an operation's request (`part` is `request`) or response (`answer`).
pub(super) fn example(operation: &ApiOperation, part: &str) -> Option<&'static Value> {
    EXAMPLES.get(operation.id)?.get(part)
}

/// Returns the problems of an operation by status, each with code and meaning.
pub(super) fn problems(operation: &ApiOperation) -> Vec<(u16, Vec<(&'static str, &'static str)>)> {
    let mut codes: Vec<&str> = operation.own_codes.concat();
    if operation.needs_key() {
        codes.extend(KEY_CODES);
        if !matches!(operation.method, "get" | "delete") {
            codes.extend(BODY_CODES);
        }
        if operation.path.contains('{') {
            codes.extend(PATH_CODES);
        }
    }
    if operation.request.is_some() {
        codes.extend(JSON_CODES);
    }
    if operation.stored_response.is_some() {
        codes.extend(IDEMPOTENCY_CODES);
    }
    let mut problems: Vec<(u16, Vec<(&str, &str)>)> = Vec::new();
    for (code, status, meaning) in PROBLEM_CODES.iter().filter(|(code, ..)| codes.contains(code)) {
        match problems.last_mut() {
            Some((last_status, status_codes)) if last_status == status => status_codes.push((code, meaning)),
            _ => problems.push((*status, vec![(code, meaning)])),
        }
    }
    problems
}
