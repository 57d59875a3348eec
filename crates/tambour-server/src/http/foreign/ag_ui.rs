//! AG-UI 1.0 (protocol between agents and user interfaces): `POST /ag-ui`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tambour::encode::Encoder;
use tambour::encode::ag_ui::{AgUiEncoder, RunContext};
use tambour::state::{self, AppliedBlock, Op, OpResult, Operation, StatePath, StateStep};

use super::chat_messages::{data_url, image_part, tool_result};
use super::{ForeignRequest, stream_message, threads};
use crate::base::problem::{Problem, parse_body, run_in_place_if_long};
use crate::http::app::App;
use crate::http::keys::Caller;
use crate::http::request::RequestId;
use crate::run::states::{self, ChangedState};

/// Word of this protocol for a conversation.
const THREAD_KIND: &str = "thread";
/// Field with the client's state.
const STATE_FIELD: &str = "state";

/// `POST /ag-ui`: runs a message in the client's thread and streams its events.
pub(in crate::http) async fn run_agent(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Extension(RequestId(request_id)): Extension<RequestId>,
    bytes: Bytes,
) -> Result<Response, Problem> {
    let mut body = parse_request(&bytes)?;
    let mut take_id = |name: &'static str| match body.remove(name) {
        Some(Value::String(id)) if !id.is_empty() => Ok(id),
        _ => {
            let detail = format!("missing field `{name}`");
            Err(Problem::invalid("missing_field", detail).with("field", name))
        }
    };
    let (thread_id, run_id) = (take_id("threadId")?, take_id("runId")?);
    let mut forwarded_fields = match body.remove("forwardedProps") {
        Some(Value::Object(forwarded_fields)) => forwarded_fields,
        _ => Map::new(),
    };
    let mut foreign_request = ForeignRequest::for_model_or_default(&app, &mut forwarded_fields)?;
    let conversation = threads::find_or_create(&app, &caller, THREAD_KIND, &thread_id).await?;
    foreign_request.set("conversation_id", conversation.as_str());
    let Some(Value::Array(messages)) = body.remove("messages") else {
        let detail = "`messages` must be a list of messages";
        return Err(Problem::invalid("missing_field", detail).with("field", "messages"));
    };
    let mut chat_messages: Vec<Value> =
        context_message(&body).into_iter().chain(messages.iter().filter_map(chat_message)).collect();
    chat_messages.extend(
        body.get("resume").and_then(Value::as_array).into_iter().flatten().filter_map(resume_message),
    );
    foreign_request.set("messages", chat_messages);
    if let Some(tools) = body.get("tools").and_then(Value::as_array) {
        foreign_request.add_tools(tools.iter().map(|tool| (tool, "parameters")))?;
    }
    let tambour_fields = forwarded_fields.remove("tambour");
    if tambour_fields.as_ref().is_none_or(|tambour_fields| tambour_fields.get("dialect").is_none()) {
        foreign_request.enable_calls();
    }
    let new_message = foreign_request.into_message(tambour_fields, true)?;
    // The client's state is used only while the server has no state of the thread.
    let (mut state, mut refusals) = (states::state_before(&app, &conversation).await?, Vec::new());
    if state.is_none()
        && let Some(Value::Object(client_state)) = body.remove(STATE_FIELD)
        && !client_state.is_empty()
    {
        let initial_state = init_state(&app, &caller, &conversation, client_state).await?;
        refusals = refused_members(&initial_state.applied);
        state = Some(initial_state.state);
    }
    let run_context = RunContext { thread_id, run_id, state, refusals };
    let encoder = move |context| Box::new(AgUiEncoder::new(context, run_context)) as Box<dyn Encoder>;
    stream_message(app, &caller, request_id, new_message, encoder).await
}

/// Parses the fields of a request. A number in the state that exceeds the range of a double makes only its
/// member of the state invalid, not the request.
fn parse_request(bytes: &Bytes) -> Result<Map<String, Value>, Problem> {
    parse_body(bytes).or_else(|problem| run_in_place_if_long(bytes, || parse_bounded(bytes)).ok_or(problem))
}

/// Parses the fields of a request whose state has numbers out of range; they are brought into range. `None`
/// if the state has no such number, or the request cannot be parsed for another reason.
fn parse_bounded(bytes: &[u8]) -> Option<Map<String, Value>> {
    let fields: BTreeMap<String, &RawValue> = serde_json::from_slice(bytes).ok()?;
    let Cow::Owned(state) = state::bound_numbers(fields.get(STATE_FIELD)?.get()) else { return None };
    let parse_member = |(name, raw): (String, &RawValue)| {
        let text = if name == STATE_FIELD { &state } else { raw.get() };
        Some((name, serde_json::from_str(text).ok()?))
    };
    fields.into_iter().map(parse_member).collect()
}

/// Returns the members of the client's state that were refused, with path and reason.
fn refused_members(block: &AppliedBlock) -> Vec<Value> {
    let refusals = block.results.iter().filter(|result| !result.ok);
    let refusal_json = |result: &OpResult| {
        let path = block.operations.get(result.index).map(Operation::path);
        json!({"path": path, "ok": false, "reason": result.reason, "message": result.message})
    };
    refusals.map(refusal_json).collect()
}

/// Initializes the state of a thread with the client's state; afterwards the server's state applies.
async fn init_state(
    app: &Arc<App>,
    caller: &Caller,
    conversation: &str,
    state: Map<String, Value>,
) -> Result<ChangedState, Problem> {
    let set_operation =
        |(key, value)| Some(Operation::new(Op::Set, StatePath::new(vec![StateStep::Key(key)])?, Some(value)));
    let operations = state.into_iter().filter_map(set_operation).collect();
    // The change carries no note, applies each member even if others are refused, and does not depend on the
    // version of the state.
    let (analysis, is_atomic, base_version) = (String::new(), false, None);
    states::change_state(app, (&caller.owner, conversation), operations, analysis, is_atomic, base_version)
        .await
}

/// Converts the client's context to a system message; `None` if it has no usable item.
fn context_message(body: &Map<String, Value>) -> Option<Value> {
    let items = body.get("context")?.as_array()?;
    let line = |item: &Value| Some(format!("{}: {}", item["description"].as_str()?, item["value"].as_str()?));
    let lines: Vec<String> = items.iter().filter_map(line).collect();
    (!lines.is_empty()).then(|| json!({"role": "system", "content": lines.join("\n")}))
}

/// Converts a message to a message of the chat completions interface; `None` if the model does not get it.
fn chat_message(message: &Value) -> Option<Value> {
    match message["role"].as_str()? {
        "assistant" => {
            let mut converted_message = json!({"role": "assistant", "content": message["content"]});
            match &message["toolCalls"] {
                Value::Array(calls) if !calls.is_empty() => {
                    converted_message["tool_calls"] = calls.clone().into()
                }
                _ if converted_message["content"].is_null() => converted_message["content"] = "".into(),
                _ => {}
            }
            Some(converted_message)
        }
        "tool" => Some(tool_result(&message["toolCallId"], &message["content"])),
        role @ ("developer" | "system" | "user") => {
            Some(json!({"role": role, "content": content_parts(&message["content"])}))
        }
        // Reasoning and activities are not sent to the model.
        _ => None,
    }
}

/// Converts the content of a message. Only images are written differently in chat completions.
fn content_parts(content: &Value) -> Value {
    let Value::Array(parts) = content else { return content.clone() };
    let convert_part = |part: &Value| match part["type"].as_str() {
        Some("image") => {
            let source = &part["source"];
            if source["type"] == "url" {
                image_part(source["value"].as_str().unwrap_or_default())
            } else {
                image_part(&data_url(&source["mimeType"], &source["value"]))
            }
        }
        _ => part.clone(),
    };
    parts.iter().map(convert_part).collect()
}

/// Converts the answer to a question of an earlier run to a user message; `None` if it was not answered.
fn resume_message(resume: &Value) -> Option<Value> {
    if resume["status"] != "resolved" {
        return None;
    }
    let text = match &resume["payload"] {
        Value::String(text) => text.clone(),
        Value::Null => return None,
        other => other.to_string(),
    };
    Some(json!({"role": "user", "content": text}))
}
