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

/// Prefix of the id of a response; the id of its message follows.
const RESPONSE_PREFIX: &str = "resp_";

/// `POST /v1/responses`: runs a message; responds with its events, with the whole response, or at once if it
/// runs in the background.
pub(in crate::http) async fn create(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Extension(RequestId(request_id)): Extension<RequestId>,
    bytes: Bytes,
) -> Result<Response, Problem> {
    let (mut new_message, wants_stream) = parse_request(&app, &caller, parse_body(&bytes)?).await?;
    if wants_stream {
        // The stream begins with the first event.
        let seen_count = 0;
        let encoder =
            |context| Box::new(responses::ResponsesEncoder::new(context, seen_count)) as Box<dyn Encoder>;
        return stream_message(app, &caller, request_id, new_message, encoder).await;
    }
    if new_message.as_response.as_ref().is_some_and(|response_fields| response_fields.background) {
        new_message.wait = false;
        new_message.check(&app)?;
        let start_request = new_message.to_start_request(&app, &caller, request_id, None).await?;
        let StartedMessage { row, .. } = message_start::start_message(&app, start_request).await?;
        return Ok(Json(responses::response_from_log(
            &describe_message(&row),
            &fold_message(&app, &row.id).await?,
        ))
        .into_response());
    }
    let (context, folded) = run_message(&app, &caller, request_id, new_message).await?;
    let response = responses::response_from_log(&context, &folded);
    match &folded.failure {
        Some(failure) => Ok(failure_response(failure, &tambour::encode::chat::error_body(failure))),
        None => Ok(Json(response).into_response()),
    }
}

/// Query of a response.
#[derive(Debug, Deserialize)]
pub(in crate::http) struct ResponseQuery {
    /// Responds with the events instead of the current state.
    #[serde(default)]
    stream: bool,
    /// Number of the last event that the client has seen; events are numbered from 0.
    #[serde(default)]
    starting_after: Option<u64>,
}

/// `GET /v1/responses/{id}`: the current state of a response, or its events after a number.
pub(in crate::http) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    QueryParams(ResponseQuery { stream, starting_after }): QueryParams<ResponseQuery>,
) -> Result<Response, Problem> {
    // The live run is looked up before the row: if the message ends in between, its whole log is in the
    // store.
    let live_run = app.running.get(message_id(&id));
    let row = find_response(&app, &caller, &id).await?;
    let context = describe_message(&row);
    if !stream {
        return Ok(
            Json(responses::response_from_log(&context, &fold_message(&app, &row.id).await?)).into_response()
        );
    }
    let event_stream = events::open_stream(&app, &caller)?;
    let seen_count = starting_after.map_or(0, |number| number.saturating_add(1));
    let reader_guard = live_run.map(|live_run| live_run.add_reader());
    // The encoder numbers the events of this protocol itself, so the log is read from its beginning.
    let encoder = Box::new(responses::ResponsesEncoder::new(context, seen_count));
    Ok(events::stream_response(app, EventReader::new(&row.id, encoder, reader_guard, 0), event_stream))
}

/// `POST /v1/responses/{id}/cancel`: cancels a running response; responds with its state at the end.
pub(in crate::http) async fn cancel(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let row = find_response(&app, &caller, &id).await?;
    if let Some(live_run) = app.running.get(&row.id) {
        live_run.cancel.cancel();
        live_run.wait_over().await;
    }
    Ok(Json(responses::response_from_log(&describe_message(&row), &fold_message(&app, &row.id).await?)))
}

/// `DELETE /v1/responses/{id}`: deletes a response; a running one is cancelled first.
pub(in crate::http) async fn remove(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let row = find_response(&app, &caller, &id).await?;
    record::delete(&app, row.id).await?;
    Ok(Json(json!({"id": id, "object": "response", "deleted": true})))
}

/// Query of the input items of a response.
#[derive(Debug, Deserialize)]
pub(in crate::http) struct ItemQuery {
    /// Maximum number of items of the page, 1 to 100; 20 when absent.
    #[serde(default)]
    limit: Option<usize>,
    /// `desc` (newest first, default) or `asc`.
    #[serde(default)]
    order: Option<String>,
    /// Id of the last item of the previous page.
    #[serde(default)]
    after: Option<String>,
}

/// `GET /v1/responses/{id}/input_items`: messages sent to the model, without the instructions.
pub(in crate::http) async fn input_items(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    QueryParams(ItemQuery { limit, order, after }): QueryParams<ItemQuery>,
) -> Result<Json<Value>, Problem> {
    let new_problem =
        |field: &'static str, detail: &str| Problem::invalid("invalid_field", detail).with("field", field);
    let row = find_response(&app, &caller, &id).await?;
    let limit = limit.unwrap_or(20);
    if !(1..=100).contains(&limit) {
        return Err(new_problem("limit", "`limit` must be 1 to 100"));
    }
    let mut items = items::messages_to_items(&continuation::prompt_messages(&app, &row).await?, &row.id);
    match order.as_deref() {
        None | Some("desc") => items.reverse(),
        Some("asc") => {}
        Some(_) => return Err(new_problem("order", "`order` must be `asc` or `desc`")),
    }
    let start_index = match after {
        None => 0,
        Some(after) => match items.iter().position(|item| item["id"] == *after) {
            Some(index) => index + 1,
            None => return Err(new_problem("after", "no item of the response has this id")),
        },
    };
    let has_more = items.len() > start_index + limit;
    let page: Vec<Value> = items.into_iter().skip(start_index).take(limit).collect();
    let item_id = |item: Option<&Value>| item.map(|item| item["id"].clone());
    Ok(Json(json!({
        "object": "list",
        "first_id": item_id(page.first()),
        "last_id": item_id(page.last()),
        "has_more": has_more,
        "data": page,
    })))
}

/// Returns the id of the message of the response `id`.
fn message_id(id: &str) -> &str {
    id.strip_prefix(RESPONSE_PREFIX).unwrap_or(id)
}

/// Returns the message of a response if it is the caller's.
async fn find_response(app: &App, caller: &Caller, id: &str) -> Result<MessageRow, Problem> {
    let row = find_owned(app, caller, message_id(id)).await;
    row.map_err(|_| Problem::not_found(format!("there is no response `{id}`")))
}

/// Converts a request to a message. Also returns whether the client wants a stream.
async fn parse_request(
    app: &App,
    caller: &Caller,
    mut body: Map<String, Value>,
) -> Result<(NewMessage, bool), Problem> {
    let new_problem =
        |field: &'static str, detail: &str| Problem::invalid("invalid_field", detail).with("field", field);
    let mut foreign_request = ForeignRequest::for_model(app, &mut body)?;
    let wants_stream = body.remove("stream") == Some(Value::Bool(true));
    let input = body.remove("input").unwrap_or_default();
    let take_flag = |body: &mut Map<String, Value>, name: &'static str, default: bool| match body.remove(name)
    {
        None | Some(Value::Null) => Ok(default),
        Some(Value::Bool(flag)) => Ok(flag),
        Some(_) => Err(new_problem(name, &format!("`{name}` must be true or false"))),
    };
    let (in_background, store) =
        (take_flag(&mut body, "background", false)?, take_flag(&mut body, "store", true)?);
    if in_background && !store {
        return Err(new_problem(
            "store",
            "a response that runs in the background must be stored, so that it can be fetched",
        ));
    }
    let previous = match body.remove("previous_response_id") {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) => Some(id),
        Some(_) => return Err(new_problem("previous_response_id", "`previous_response_id` must be an id")),
    };
    match &previous {
        None => foreign_request.set("messages", items_to_messages(input)?),
        Some(id) => {
            let row = find_response(app, caller, id).await?;
            continuation::continue_response(app, &row, items_to_messages(input)?, &mut foreign_request)
                .await?;
        }
    }
    foreign_request
        .set("as_response", json!({"background": in_background, "store": store, "previous": previous}));
    foreign_request.settings.is_background = in_background;
    match body.remove("instructions") {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => foreign_request.set_system(&text),
        Some(_) => return Err(new_problem("instructions", "`instructions` must be a text")),
    }
    foreign_request.move_field(&mut body, "temperature", "temperature");
    foreign_request.move_field(&mut body, "top_p", "top_p");
    foreign_request.move_field(&mut body, "max_output_tokens", "max_tokens");
    match body.remove("text").map(|mut text| text["format"].take()) {
        None | Some(Value::Null) => {}
        Some(format) => match format["type"].as_str() {
            Some("json_schema") => {
                let schema =
                    json!({"name": format["name"], "schema": format["schema"], "strict": format["strict"]});
                foreign_request.set("response_format", json!({"type": "json_schema", "json_schema": schema}));
            }
            Some("json_object") => foreign_request.set("response_format", json!({"type": "json_object"})),
            _ => {}
        },
    }
    if let Some(tools) = body.remove("tools").filter(|tools| !tools.is_null()) {
        let tools = tools.as_array().ok_or_else(|| new_problem("tools", "`tools` must be a list"))?;
        if let Some(tool) = tools.iter().find(|tool| tool["type"] != "function") {
            return Err(new_problem(
                "tools",
                &format!("only functions can be offered, not {}", tool["type"]),
            ));
        }
        foreign_request.add_tools(tools.iter().map(|tool| (tool, "parameters")))?;
    }
    match body.remove("tool_choice") {
        None | Some(Value::Null) => {}
        Some(Value::String(mode)) if mode == "none" => foreign_request.settings.tools.clear(),
        Some(Value::Object(choice)) if choice.contains_key("name") => {
            let choice = json!({"type": "function", "function": {"name": choice["name"]}});
            foreign_request.settings.tool_choice = Some(choice);
        }
        Some(mode) => foreign_request.settings.tool_choice = Some(mode),
    }
    let tambour_fields = body.remove("tambour");
    foreign_request.enable_json(tambour_fields.as_ref())?;
    foreign_request.enable_calls();
    Ok((foreign_request.into_message(tambour_fields, wants_stream)?, wants_stream))
}
