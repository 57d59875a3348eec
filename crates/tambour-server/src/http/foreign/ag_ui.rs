//! AG-UI 1.0: `POST /ag-ui`.

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
use tambour::encode::ag_ui::{AgUi, Run};
use tambour::state::{self, Applied, Op, OpResult, Operation, Path, Step};

use super::{Wanted, stream, threads};
use crate::app::App;
use crate::http::keys::Caller;
use crate::http::problem::{Problem, body, in_place_if_long};
use crate::http::request::RequestId;
use crate::states::{self, Changed};

/// Kind of this protocol's conversations.
const KIND: &str = "thread";
/// Field with the client's state.
const STATE: &str = "state";

/// `POST /ag-ui`
pub(in crate::http) async fn run(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Extension(RequestId(request)): Extension<RequestId>,
    bytes: Bytes,
) -> Result<Response, Problem> {
    let mut body = request_of(&bytes)?;
    let mut id = |name: &'static str| match body.remove(name) {
        Some(Value::String(id)) if !id.is_empty() => Ok(id),
        _ => {
            let detail = format!("missing field `{name}`");
            Err(Problem::invalid("missing_field", detail).with("field", name))
        }
    };
    let (thread, run) = (id("threadId")?, id("runId")?);
    let mut forwarded = match body.remove("forwardedProps") {
        Some(Value::Object(forwarded)) => forwarded,
        _ => Map::new(),
    };
    let mut wanted = Wanted::of_model_or_default(&app, &mut forwarded)?;
    let conversation = threads::conversation(&app, &caller, KIND, &thread).await?;
    wanted.set("conversation_id", conversation.as_str());
    let Some(Value::Array(messages)) = body.remove("messages") else {
        let detail = "`messages` is a list of messages";
        return Err(Problem::invalid("missing_field", detail).with("field", "messages"));
    };
    let mut said: Vec<Value> =
        context(&body).into_iter().chain(messages.iter().filter_map(message)).collect();
    said.extend(body.get("resume").and_then(Value::as_array).into_iter().flatten().filter_map(answer));
    wanted.set("messages", said);
    if let Some(tools) = body.get("tools").and_then(Value::as_array) {
        wanted.tools(tools.iter().map(|tool| (tool, "parameters")))?;
    }
    let more = forwarded.remove("tambour");
    if more.as_ref().is_none_or(|more| more.get("dialect").is_none()) {
        wanted.reads_calls();
    }
    let new = wanted.message(more, true)?;
    let (mut state, mut refused) = (states::before(&app, &conversation).await?, Vec::new());
    if state.is_none()
        && let Some(Value::Object(given)) = body.remove(STATE)
        && !given.is_empty()
    {
        let begun = begun(&app, &caller, &conversation, given).await?;
        refused = told(&begun.applied);
        state = Some(begun.state);
    }
    let run = Run { thread, run, state, refused };
    let encoder = move |about| Box::new(AgUi::new(about, run)) as Box<dyn Encoder>;
    stream(app, &caller, request, new, encoder).await
}

/// Parses the fields of a request. A number of the state beyond a double's range affects only its member
///
fn request_of(bytes: &Bytes) -> Result<Map<String, Value>, Problem> {
    body(bytes).or_else(|problem| in_place_if_long(bytes, || with_vast_numbers(bytes)).ok_or(problem))
}

/// Parses the fields with numbers of the state brought into range; `None` if there is no such number, or
/// another error.
fn with_vast_numbers(bytes: &[u8]) -> Option<Map<String, Value>> {
    let fields: BTreeMap<String, &RawValue> = serde_json::from_slice(bytes).ok()?;
    let Cow::Owned(state) = state::bounded(fields.get(STATE)?.get()) else { return None };
    let read = |(name, raw): (String, &RawValue)| {
        let text = if name == STATE { &state } else { raw.get() };
        Some((name, serde_json::from_str(text).ok()?))
    };
    fields.into_iter().map(read).collect()
}

/// Returns refused members with path and reason.
fn told(applied: &Applied) -> Vec<Value> {
    let refused = applied.results.iter().filter(|result| !result.ok);
    let told = |result: &OpResult| {
        let path = applied.operations.get(result.index).map(Operation::path);
        json!({"path": path, "ok": false, "reason": result.reason, "message": result.message})
    };
    refused.map(told).collect()
}

/// Initializes the state of a thread with the client's; afterwards the server's state applies.
async fn begun(
    app: &Arc<App>,
    caller: &Caller,
    conversation: &str,
    given: Map<String, Value>,
) -> Result<Changed, Problem> {
    let set = |(key, value)| Some(Operation::new(Op::Set, Path::new(vec![Step::Key(key)])?, Some(value)));
    let operations = given.into_iter().filter_map(set).collect();
    states::change(app, (&caller.owner, conversation), operations, String::new(), false, None).await
}

/// Converts the client's context to a system message.
fn context(body: &Map<String, Value>) -> Option<Value> {
    let items = body.get("context")?.as_array()?;
    let line = |item: &Value| Some(format!("{}: {}", item["description"].as_str()?, item["value"].as_str()?));
    let lines: Vec<String> = items.iter().filter_map(line).collect();
    (!lines.is_empty()).then(|| json!({"role": "system", "content": lines.join("\n")}))
}

/// Converts a message to one of the chat completions interface.
fn message(message: &Value) -> Option<Value> {
    match message["role"].as_str()? {
        "assistant" => {
            let mut said = json!({"role": "assistant", "content": message["content"]});
            match &message["toolCalls"] {
                Value::Array(calls) if !calls.is_empty() => said["tool_calls"] = calls.clone().into(),
                _ if said["content"].is_null() => said["content"] = "".into(),
                _ => {}
            }
            Some(said)
        }
        "tool" => {
            let id = &message["toolCallId"];
            Some(json!({"role": "tool", "tool_call_id": id, "content": message["content"]}))
        }
        // Reasoning and activities are not sent to the model.
        role @ ("developer" | "system" | "user") => {
            Some(json!({"role": role, "content": parts(&message["content"])}))
        }
        _ => None,
    }
}

fn parts(content: &Value) -> Value {
    let Value::Array(parts) = content else { return content.clone() };
    let part = |part: &Value| match part["type"].as_str() {
        Some("image") => {
            let source = &part["source"];
            let kind = source["mimeType"].as_str().unwrap_or("image/png");
            let data = source["value"].as_str().unwrap_or_default();
            let url =
                if source["type"] == "url" { data.to_owned() } else { format!("data:{kind};base64,{data}") };
            json!({"type": "image_url", "image_url": {"url": url}})
        }
        _ => part.clone(),
    };
    parts.iter().map(part).collect()
}

/// Converts the answer to an earlier run's question to a user message.
fn answer(resume: &Value) -> Option<Value> {
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
