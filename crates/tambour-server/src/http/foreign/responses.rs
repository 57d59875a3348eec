//! OpenAI Responses: `POST /v1/responses`, and reading one again.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tambour::encode::{Encoder, responses};

use super::{Wanted, about, failed, fold, stream, whole};
use crate::app::App;
use crate::http::events::{self, Reader};
use crate::http::keys::Caller;
use crate::http::messages::owned;
use crate::http::new_message::NewMessage;
use crate::http::page::Params;
use crate::http::problem::{Problem, body};
use crate::http::request::RequestId;
use crate::store::MessageRow;

/// What stands before the id of a message in that of a response.
const PREFIX: &str = "resp_";

/// `POST /v1/responses`
pub(in crate::http) async fn create(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Extension(RequestId(request)): Extension<RequestId>,
    bytes: Bytes,
) -> Result<Response, Problem> {
    let (wanted, streams) = read(&app, &caller, body(&bytes)?).await?;
    if streams {
        let encoder = |about| Box::new(responses::Responses::new(about, 0)) as Box<dyn Encoder>;
        return stream(app, &caller, request, wanted, encoder).await;
    }
    let (about, whole) = whole(&app, &caller, request, wanted).await?;
    let response = responses::whole(&about, &whole);
    match &whole.failure {
        Some(failure) => Ok(failed(failure, &tambour::encode::chat::error(failure))),
        None => Ok(Json(response).into_response()),
    }
}

#[derive(Debug, Deserialize)]
pub(in crate::http) struct Again {
    #[serde(default)]
    stream: bool,
    #[serde(default)]
    starting_after: Option<u64>,
}

/// `GET /v1/responses/{id}`: as it stands, or its events from behind a number on.
pub(in crate::http) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Params(Again { stream, starting_after }): Params<Again>,
) -> Result<Response, Problem> {
    let live = app.live.get(message(&id));
    let row = response_of(&app, &caller, &id).await?;
    let about = about(&row);
    if !stream {
        return Ok(Json(responses::whole(&about, &fold(&app, &row.id).await?)).into_response());
    }
    let opened = events::open(&app, &caller)?;
    let seen = starting_after.map_or(0, |number| number.saturating_add(1));
    let reading = live.map(|live| live.read());
    let encoder = Box::new(responses::Responses::new(about, seen));
    Ok(events::response(app, Reader::new(&row.id, encoder, reading, 0), opened))
}

/// `POST /v1/responses/{id}/cancel`
pub(in crate::http) async fn cancel(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let row = response_of(&app, &caller, &id).await?;
    if let Some(live) = app.live.get(&row.id) {
        live.cancel.cancel();
        live.ended().await;
    }
    Ok(Json(responses::whole(&about(&row), &fold(&app, &row.id).await?)))
}

fn message(id: &str) -> &str {
    id.strip_prefix(PREFIX).unwrap_or(id)
}

async fn response_of(app: &App, caller: &Caller, id: &str) -> Result<MessageRow, Problem> {
    let row = owned(app, caller, message(id)).await;
    row.map_err(|_| Problem::not_found(format!("there is no response `{id}`")))
}

async fn read(
    app: &App,
    caller: &Caller,
    mut body: Map<String, Value>,
) -> Result<(NewMessage, bool), Problem> {
    let wrong =
        |field: &'static str, detail: &str| Problem::invalid("invalid_field", detail).with("field", field);
    let mut wanted = Wanted::of_model(app, &mut body)?;
    let streams = body.remove("stream") == Some(Value::Bool(true));
    let input = body.remove("input").unwrap_or_default();
    match body.remove("previous_response_id").filter(|id| !id.is_null()) {
        None => wanted.set("messages", messages(input)?),
        Some(id) => {
            let row = response_of(app, caller, id.as_str().unwrap_or_default()).await?;
            wanted.set("conversation_id", row.conversation_id);
            let said = messages(input)?;
            let of_user = said.as_array().is_some_and(|said| said.iter().all(|one| one["role"] == "user"));
            if !of_user {
                let detail = "with `previous_response_id` the input is words of the user; send the whole input without it";
                return Err(wrong("input", detail));
            }
            let texts = said.as_array().into_iter().flatten().map(|one| text(&one["content"]));
            wanted.set("text", texts.collect::<Vec<String>>().join("\n\n"));
        }
    }
    match body.remove("instructions") {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => wanted.set_system(&text),
        Some(_) => return Err(wrong("instructions", "`instructions` is a text")),
    }
    wanted.take(&mut body, "temperature", "temperature");
    wanted.take(&mut body, "top_p", "top_p");
    wanted.take(&mut body, "max_output_tokens", "max_tokens");
    match body.remove("text").map(|mut text| text["format"].take()) {
        None | Some(Value::Null) => {}
        Some(format) => match format["type"].as_str() {
            Some("json_schema") => {
                let schema =
                    json!({"name": format["name"], "schema": format["schema"], "strict": format["strict"]});
                wanted.set("response_format", json!({"type": "json_schema", "json_schema": schema}));
            }
            Some("json_object") => wanted.set("response_format", json!({"type": "json_object"})),
            _ => {}
        },
    }
    if let Some(tools) = body.remove("tools").filter(|tools| !tools.is_null()) {
        let tools = tools.as_array().ok_or_else(|| wrong("tools", "`tools` is a list"))?;
        if let Some(tool) = tools.iter().find(|tool| tool["type"] != "function") {
            return Err(wrong("tools", &format!("only functions can be offered, not {}", tool["type"])));
        }
        wanted.tools(tools.iter().map(|tool| (tool, "parameters")))?;
    }
    match body.remove("tool_choice") {
        None | Some(Value::Null) => {}
        Some(Value::String(word)) if word == "none" => wanted.foreign.tools.clear(),
        Some(Value::Object(choice)) if choice.contains_key("name") => {
            let choice = json!({"type": "function", "function": {"name": choice["name"]}});
            wanted.foreign.tool_choice = Some(choice);
        }
        Some(word) => wanted.foreign.tool_choice = Some(word),
    }
    let more = body.remove("tambour");
    wanted.reads_json(more.as_ref())?;
    wanted.reads_calls();
    Ok((wanted.message(more, streams)?, streams))
}

/// The items of an input as messages of the chat completions interface.
fn messages(input: Value) -> Result<Value, Problem> {
    let wrong = |detail: String| Problem::invalid("invalid_field", detail).with("field", "input");
    let items = match input {
        Value::String(text) => return Ok(json!([{"role": "user", "content": text}])),
        Value::Array(items) => items,
        _ => return Err(wrong("`input` is a text or a list of items".to_owned())),
    };
    let mut messages: Vec<Value> = Vec::new();
    for (at, item) in items.into_iter().enumerate() {
        match item["type"].as_str().unwrap_or("message") {
            "message" => messages.push(json!({"role": item["role"], "content": content(&item["content"])})),
            "function_call" => {
                let function = json!({"name": item["name"], "arguments": item["arguments"]});
                let call = json!({"id": item["call_id"], "type": "function", "function": function});
                match messages.last_mut() {
                    // Calls of one reply are one message.
                    Some(last) if last["tool_calls"].is_array() => {
                        last["tool_calls"]
                            .as_array_mut()
                            .into_iter()
                            .for_each(|calls| calls.push(call.clone()));
                    }
                    _ => messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]})),
                }
            }
            "function_call_output" => {
                let output = match &item["output"] {
                    Value::String(text) => text.clone(),
                    other => text(&content(other)),
                };
                messages.push(json!({"role": "tool", "tool_call_id": item["call_id"], "content": output}));
            }
            // Reasoning does not go back.
            "reasoning" => {}
            other => {
                return Err(wrong(format!("`input[{at}]` is of the type `{other}`, which is not taken")));
            }
        }
    }
    Ok(messages.into())
}

/// Parts of a message under the names of the chat completions interface.
fn content(content: &Value) -> Value {
    let Value::Array(parts) = content else { return content.clone() };
    let part = |part: &Value| match part["type"].as_str() {
        Some("input_text" | "output_text" | "text") => json!({"type": "text", "text": part["text"]}),
        Some("refusal") => json!({"type": "text", "text": part["refusal"]}),
        Some("input_image") => json!({"type": "image_url", "image_url": {"url": part["image_url"]}}),
        _ => part.clone(),
    };
    parts.iter().map(part).collect()
}

fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}
