//! OpenAI Responses: `POST /v1/responses`, and reading, listing, cancelling and deleting stored responses.

mod continuation;
mod items;

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tambour::encode::{Encoder, responses};

use self::items::items_to_messages;
use super::{ForeignRequest, describe_message, failure_response, fold_message, run_message, stream_message};
use crate::base::problem::{Problem, parse_body};
use crate::http::app::App;
use crate::http::events::{self, EventReader};
use crate::http::keys::Caller;
use crate::http::messages::find_owned;
use crate::http::new_message::NewMessage;
use crate::http::page::QueryParams;
use crate::http::record;
use crate::http::request::RequestId;
use crate::run::message_start::{self, StartedMessage};
use crate::store::MessageRow;

/// Prefix of a response's id before that of its message.
const RESPONSE_PREFIX: &str = "resp_";

/// `POST /v1/responses`
pub(in crate::http) async fn create(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Extension(RequestId(request)): Extension<RequestId>,
    bytes: Bytes,
) -> Result<Response, Problem> {
    let (mut wanted, streams) = parse_request(&app, &caller, parse_body(&bytes)?).await?;
    if streams {
        let encoder = |about| Box::new(responses::ResponsesEncoder::new(about, 0)) as Box<dyn Encoder>;
        return stream_message(app, &caller, request, wanted, encoder).await;
    }
    if wanted.as_response.as_ref().is_some_and(|of| of.background) {
        wanted.wait = false;
        wanted.check(&app)?;
        let asked = wanted.to_start_request(&app, &caller, request, None).await?;
        let StartedMessage { row, .. } = message_start::start_message(&app, asked).await?;
        return Ok(Json(responses::response_from_log(
            &describe_message(&row),
            &fold_message(&app, &row.id).await?,
        ))
        .into_response());
    }
    let (about, whole) = run_message(&app, &caller, request, wanted).await?;
    let response = responses::response_from_log(&about, &whole);
    match &whole.failure {
        Some(failure) => Ok(failure_response(failure, &tambour::encode::chat::error_body(failure))),
        None => Ok(Json(response).into_response()),
    }
}

#[derive(Debug, Deserialize)]
pub(in crate::http) struct ResponseQuery {
    #[serde(default)]
    stream: bool,
    #[serde(default)]
    starting_after: Option<u64>,
}

/// `GET /v1/responses/{id}`: its current state, or its events after a number.
pub(in crate::http) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    QueryParams(ResponseQuery { stream, starting_after }): QueryParams<ResponseQuery>,
) -> Result<Response, Problem> {
    let live = app.running.get(message_id(&id));
    let row = find_response(&app, &caller, &id).await?;
    let about = describe_message(&row);
    if !stream {
        return Ok(
            Json(responses::response_from_log(&about, &fold_message(&app, &row.id).await?)).into_response()
        );
    }
    let opened = events::open_stream(&app, &caller)?;
    let seen = starting_after.map_or(0, |number| number.saturating_add(1));
    let reading = live.map(|live| live.add_reader());
    let encoder = Box::new(responses::ResponsesEncoder::new(about, seen));
    Ok(events::stream_response(app, EventReader::new(&row.id, encoder, reading, 0), opened))
}

/// `POST /v1/responses/{id}/cancel`
pub(in crate::http) async fn cancel(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let row = find_response(&app, &caller, &id).await?;
    if let Some(live) = app.running.get(&row.id) {
        live.cancel.cancel();
        live.wait_over().await;
    }
    Ok(Json(responses::response_from_log(&describe_message(&row), &fold_message(&app, &row.id).await?)))
}

/// `DELETE /v1/responses/{id}`: deletes it; a running one is cancelled first.
pub(in crate::http) async fn remove(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let row = find_response(&app, &caller, &id).await?;
    record::delete(&app, row.id).await?;
    Ok(Json(json!({"id": id, "object": "response", "deleted": true})))
}

#[derive(Debug, Deserialize)]
pub(in crate::http) struct ItemQuery {
    #[serde(default)]
    limit: Option<usize>,
    #[serde(default)]
    order: Option<String>,
    #[serde(default)]
    after: Option<String>,
}

/// `GET /v1/responses/{id}/input_items`: messages sent to the model, without the instructions; newest first.
pub(in crate::http) async fn input_items(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    QueryParams(ItemQuery { limit, order, after }): QueryParams<ItemQuery>,
) -> Result<Json<Value>, Problem> {
    let wrong =
        |field: &'static str, detail: &str| Problem::invalid("invalid_field", detail).with("field", field);
    let row = find_response(&app, &caller, &id).await?;
    let limit = limit.unwrap_or(20);
    if !(1..=100).contains(&limit) {
        return Err(wrong("limit", "`limit` is 1 to 100"));
    }
    let mut items = items::messages_to_items(&continuation::prompt_messages(&app, &row).await?, &row.id);
    match order.as_deref() {
        None | Some("desc") => items.reverse(),
        Some("asc") => {}
        Some(_) => return Err(wrong("order", "`order` is `asc` or `desc`")),
    }
    let from = match after {
        None => 0,
        Some(after) => match items.iter().position(|item| item["id"] == *after) {
            Some(at) => at + 1,
            None => return Err(wrong("after", "no item of the response has this id")),
        },
    };
    let more = items.len() > from + limit;
    let page: Vec<Value> = items.into_iter().skip(from).take(limit).collect();
    let end = |item: Option<&Value>| item.map(|item| item["id"].clone());
    Ok(Json(json!({
        "object": "list", "first_id": end(page.first()), "last_id": end(page.last()), "has_more": more, "data": page,
    })))
}

fn message_id(id: &str) -> &str {
    id.strip_prefix(RESPONSE_PREFIX).unwrap_or(id)
}

async fn find_response(app: &App, caller: &Caller, id: &str) -> Result<MessageRow, Problem> {
    let row = find_owned(app, caller, message_id(id)).await;
    row.map_err(|_| Problem::not_found(format!("there is no response `{id}`")))
}

async fn parse_request(
    app: &App,
    caller: &Caller,
    mut body: Map<String, Value>,
) -> Result<(NewMessage, bool), Problem> {
    let wrong =
        |field: &'static str, detail: &str| Problem::invalid("invalid_field", detail).with("field", field);
    let mut wanted = ForeignRequest::for_model(app, &mut body)?;
    let streams = body.remove("stream") == Some(Value::Bool(true));
    let input = body.remove("input").unwrap_or_default();
    let flag = |body: &mut Map<String, Value>, name: &'static str, usual: bool| match body.remove(name) {
        None | Some(Value::Null) => Ok(usual),
        Some(Value::Bool(on)) => Ok(on),
        Some(_) => Err(wrong(name, &format!("`{name}` is true or false"))),
    };
    let (background, store) = (flag(&mut body, "background", false)?, flag(&mut body, "store", true)?);
    if background && !store {
        return Err(wrong("store", "a response that runs in the background is stored, to be fetched"));
    }
    let previous = match body.remove("previous_response_id") {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) => Some(id),
        Some(_) => return Err(wrong("previous_response_id", "`previous_response_id` is an id")),
    };
    match &previous {
        None => wanted.set("messages", items_to_messages(input)?),
        Some(id) => {
            let row = find_response(app, caller, id).await?;
            continuation::continue_response(app, &row, items_to_messages(input)?, &mut wanted).await?;
        }
    }
    wanted.set("as_response", json!({"background": background, "store": store, "previous": previous}));
    wanted.foreign.is_background = background;
    match body.remove("instructions") {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => wanted.set_system(&text),
        Some(_) => return Err(wrong("instructions", "`instructions` is a text")),
    }
    wanted.move_field(&mut body, "temperature", "temperature");
    wanted.move_field(&mut body, "top_p", "top_p");
    wanted.move_field(&mut body, "max_output_tokens", "max_tokens");
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
        wanted.add_tools(tools.iter().map(|tool| (tool, "parameters")))?;
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
    wanted.enable_json(more.as_ref())?;
    wanted.enable_calls();
    Ok((wanted.into_message(more, streams)?, streams))
}
