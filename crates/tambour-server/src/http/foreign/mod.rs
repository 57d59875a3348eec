//! Routes of other protocols: those of OpenAI and Anthropic, of the AI SDK and AG-UI. A request becomes an
//! ordinary message; an encoder writes the message's log as the response.

pub(super) mod ag_ui;
pub(super) mod ai_sdk;
pub(super) mod anthropic;
pub(super) mod chat;
mod chat_messages;
pub(super) mod forms;
pub(super) mod models;
pub(super) mod responses;
mod threads;

pub(crate) use threads::RunningThreads;

use std::sync::Arc;
use std::time::Instant;

use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tambour::dialect;
use tambour::encode::{Encoder, EncoderEntry, EncoderEntryKind, FoldedMessage, StreamContext};
use tambour::event::Failure;

use super::events::{self, EventReader};
use super::keys::Caller;
use super::new_message::{ForeignSettings, NewMessage};
use super::record;
use super::tools::ToolChoice;
use crate::base::problem::Problem;
use crate::config::{AliasConfig, FALLBACK_FIELDS};
use crate::http::app::App;
use crate::record::READ_BYTES;
use crate::run::live_run::ReaderGuard;
use crate::run::message_start::{self, StartedMessage};
use crate::store::MessageRow;
use crate::tools::MAX_DESCRIPTION_BYTES;

/// Request of another protocol that is being converted to a message.
pub(super) struct ForeignRequest {
    /// Model as named by the client.
    model: String,
    /// Fields of `POST /api/v1/messages` by name.
    fields: Map<String, Value>,
    /// Fallbacks in the order in which they are tried, each with its upstream, model, dialect and contract.
    fallbacks: Vec<Map<String, Value>>,
    /// Names of the fields that the alias sets; empty if `model` is not an alias.
    alias_field_names: Vec<String>,
    /// Settings that are not fields of `POST /api/v1/messages`.
    settings: ForeignSettings,
}

/// Alias for clients that name no model.
const DEFAULT_ALIAS: &str = "default";

/// Field of the system prompt.
const SYSTEM_FIELD: &str = "system_prompt";

/// Dialect of replies whose tool calls are written as text.
const CALLS_DIALECT: &str = "toolcall";

/// Dialect of replies that are one JSON value.
pub(in crate::http) const JSON_DIALECT: &str = "json_value";

/// Fields of a message that the object `tambour` cannot have: the protocol has its own fields for them, or
/// the conversion sets them.
const PROTOCOL_FIELDS: [&str; 10] = [
    "messages",
    "text",
    "stream",
    "wait",
    "conversation_id",
    "output_protocol",
    "if_busy",
    "named_model",
    "as_response",
    "in_place_of",
];

impl ForeignRequest {
    /// Begins the conversion: takes `model` from the body and resolves it. `model` is an alias, otherwise an
    /// upstream (`UPSTREAM`) or one of its models (`UPSTREAM/MODEL`).
    pub(super) fn for_model(app: &App, body: &mut Map<String, Value>) -> Result<ForeignRequest, Problem> {
        let model = match body.remove("model") {
            Some(Value::String(model)) if !model.trim().is_empty() => model,
            Some(Value::Null) | None => {
                return Err(Problem::invalid("missing_field", "missing field `model`").with("field", "model"));
            }
            Some(_) => {
                return Err(
                    Problem::invalid("invalid_field", "`model` must be a name").with("field", "model")
                );
            }
        };
        let loaded_config = app.loaded_config();
        let (mut fields, mut fallbacks, mut alias_field_names) = (Map::new(), Vec::new(), Vec::new());
        if let Some(alias) = loaded_config.config.aliases.get(&model) {
            fields = alias.message_fields();
            // The first alias of the chain is asked first. Because of weights or failing upstreams it may be
            // a fallback, whose fields then replace those of `model`.
            let chain = loaded_config.fallback_chain(&model, Instant::now());
            fallbacks.extend(chain.iter().map(|name| fallback_fields(&loaded_config.config.aliases[*name])));
            if !fallbacks.is_empty() {
                replace_fallback_fields(&mut fields, fallbacks.remove(0));
            }
            if let Some(skein) = loaded_config.skeins.get(&model) {
                fields.insert("skein".to_owned(), skein.clone());
            }
            alias_field_names.extend(fields.keys().cloned());
        } else {
            let (upstream, upstream_model) = model.split_once('/').unwrap_or((&model, ""));
            if !loaded_config.upstreams.contains_key(upstream) {
                let detail = format!(
                    "there is no model `{model}`: give an alias of the configuration, or UPSTREAM/MODEL with a configured upstream"
                );
                return Err(
                    Problem::new(StatusCode::NOT_FOUND, "model_not_found", detail).with("field", "model")
                );
            }
            fields.insert("upstream".to_owned(), upstream.into());
            if !upstream_model.is_empty() {
                fields.insert("model".to_owned(), upstream_model.into());
            }
        }
        Ok(ForeignRequest {
            model,
            fields,
            fallbacks,
            alias_field_names,
            settings: ForeignSettings::default(),
        })
    }

    /// Like `for_model`, for clients that need not name a model: without one the alias `default` is used,
    /// otherwise the default upstream.
    pub(super) fn for_model_or_default(
        app: &App,
        body: &mut Map<String, Value>,
    ) -> Result<ForeignRequest, Problem> {
        let names_model = body.get("model").is_some_and(|model| !model.is_null());
        let loaded_config = app.loaded_config();
        if !names_model && let Some(upstream) = loaded_config.config.default_upstream() {
            let has_default_alias = loaded_config.config.aliases.contains_key(DEFAULT_ALIAS);
            let model = if has_default_alias { DEFAULT_ALIAS } else { upstream };
            body.insert("model".to_owned(), model.into());
        }
        ForeignRequest::for_model(app, body)
    }

    /// Sets the system prompt. A system prompt of the alias is kept before it.
    pub(super) fn set_system(&mut self, text: &str) {
        let alias_prompt = self
            .fields
            .get(SYSTEM_FIELD)
            .and_then(Value::as_str)
            .filter(|_| self.alias_field_names.iter().any(|name| name == SYSTEM_FIELD));
        let text = alias_prompt.map_or_else(|| text.to_owned(), |prompt| format!("{prompt}\n\n{text}"));
        self.set(SYSTEM_FIELD, text);
    }

    /// Sets a field of the message.
    pub(super) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.fields.insert(name.to_owned(), value.into());
    }

    /// Moves the field `name` of the request, unless it is absent or null, to `message_field` of the message.
    pub(super) fn move_field(&mut self, body: &mut Map<String, Value>, name: &str, message_field: &str) {
        if let Some(value) = body.remove(name).filter(|value| !value.is_null()) {
            self.set(message_field, value);
        }
    }

    /// Adds tools that the client runs. Each is an object with `name` and `description`, paired with the name
    /// of the field that has the schema of its arguments.
    pub(super) fn add_tools<'a>(
        &mut self,
        functions: impl Iterator<Item = (&'a Value, &'a str)>,
    ) -> Result<(), Problem> {
        for (function, schema_field) in functions {
            let Some(name) = function["name"].as_str() else {
                return Err(Problem::invalid("invalid_field", "a tool needs a `name`").with("field", "tools"));
            };
            // One short line, like the description of a registered tool.
            let description = function["description"].as_str().map(|text| {
                let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
                line[..line.floor_char_boundary(MAX_DESCRIPTION_BYTES)].to_owned()
            });
            let parameters = function.get(schema_field).filter(|schema| schema.is_object());
            let parameters = parameters.cloned().unwrap_or_else(|| json!({"type": "object"}));
            let mut tool = json!({"name": name, "schema": parameters});
            if let Some(description) = description {
                tool["description"] = description.into();
            }
            let tool: ToolChoice = serde_json::from_value(tool).map_err(|error| {
                Problem::invalid("invalid_field", error.to_string()).with("field", "tools")
            })?;
            self.settings.tools.push(tool);
        }
        Ok(())
    }

    /// Selects the JSON dialect if the client sets a `response_format` and neither alias nor `tambour` names
    /// a dialect. The model is sent the schema and may be re-asked once; the result satisfies the schema.
    pub(super) fn enable_json(&mut self, tambour_fields: Option<&Value>) -> Result<(), Problem> {
        let refuse =
            |detail: &str| Err(Problem::invalid("invalid_field", detail).with("field", "response_format"));
        let Some(format) = self.fields.get("response_format") else { return Ok(()) };
        let schema = match format["type"].as_str() {
            Some("text") => return Ok(()),
            Some("json_object") => None,
            Some("json_schema") => match &format["json_schema"]["schema"] {
                Value::Null => return refuse("`json_schema` needs a `schema`"),
                schema => Some(schema.clone()),
            },
            _ => return refuse("`type` must be `text`, `json_object` or `json_schema`"),
        };
        if tambour_fields.is_some_and(|tambour_fields| !tambour_fields["dialect"].is_null()) {
            return Ok(());
        }
        if !self.fields.contains_key("dialect") {
            self.fields.entry("instructions").or_insert(true.into());
            self.fields.entry("max_reasks").or_insert(1.into());
        }
        for fields in self.fallbacks.iter_mut().chain([&mut self.fields]) {
            if fields.contains_key("dialect") {
                continue;
            }
            fields.insert("dialect".to_owned(), JSON_DIALECT.into());
            if let Some(schema) = &schema {
                let contract = fields.entry("contract").or_insert_with(|| json!({}));
                if contract["options"]["json_value.schema"].is_null() {
                    contract["options"]["json_value.schema"] = schema.clone();
                }
            }
        }
        Ok(())
    }

    /// Selects the dialect that reads tool calls written as text, if there are tools and no dialect is named.
    /// A model server that leaves calls in the text of its replies then works without configuration.
    pub(super) fn enable_calls(&mut self) {
        if self.settings.tools.is_empty() {
            return;
        }
        for fields in self.fallbacks.iter_mut().chain([&mut self.fields]) {
            fields.entry("dialect").or_insert_with(|| CALLS_DIALECT.into());
        }
    }

    /// Builds the message, with its fallbacks. Fields of the object `tambour` take precedence over fields of
    /// the protocol.
    pub(super) fn into_message(
        mut self,
        tambour_fields: Option<Value>,
        wants_stream: bool,
    ) -> Result<NewMessage, Problem> {
        let tambour_fields = match tambour_fields {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(tambour_fields)) => {
                if let Some(name) = PROTOCOL_FIELDS.iter().find(|name| tambour_fields.contains_key(**name)) {
                    let detail = format!("`tambour.{name}` is not allowed: use the protocol's own fields");
                    return Err(Problem::invalid("unknown_field", detail).with("field", *name));
                }
                tambour_fields
            }
            Some(_) => {
                let detail = "`tambour` must be an object with fields of POST /api/v1/messages";
                return Err(Problem::invalid("invalid_field", detail).with("field", "tambour"));
            }
        };
        if tambour_fields.contains_key("upstream") || tambour_fields.contains_key("model") {
            // A request that selects the upstream itself has no fallbacks.
            self.fallbacks.clear();
            self.settings.selects_upstream = true;
        }
        self.settings.overrides = self
            .alias_field_names
            .iter()
            .filter(|name| tambour_fields.contains_key(*name))
            .cloned()
            .collect();
        // The protocol `legacy` of the settings must not apply, since an encoder reads the events of the log.
        // The log has extension events in any case; the encoder decides which of them the client sees.
        self.set("output_protocol", "jsonseq_v1");
        self.set("named_model", self.model.clone());
        self.set(if wants_stream { "stream" } else { "wait" }, true);
        let build_message = |mut fields: Map<String, Value>| -> Result<NewMessage, Problem> {
            fields.extend(tambour_fields.clone());
            let mut new_message: NewMessage =
                crate::base::problem::parse_body(&Value::Object(fields).to_string().into())?;
            new_message.foreign_settings = Some(self.settings.clone());
            Ok(new_message)
        };
        let build_fallback = |fallback: Map<String, Value>| {
            let mut fields = self.fields.clone();
            replace_fallback_fields(&mut fields, fallback);
            let mut new_message = build_message(fields)?;
            // Not every dialect has instructions. A fallback is then asked without them; for the model asked
            // first, their absence is an error.
            new_message.instructions &=
                dialect::find_dialect(&new_message.dialect).is_ok_and(|entry| entry.prompt.is_some());
            Ok::<_, Problem>(new_message)
        };
        let fallbacks = self.fallbacks.iter().cloned().map(build_fallback).collect::<Result<_, _>>()?;
        let mut new_message = build_message(self.fields.clone())?;
        new_message.fallbacks = fallbacks;
        Ok(new_message)
    }
}

/// Returns the fields that an alias sets when it serves as a fallback: upstream, model, dialect and contract.
fn fallback_fields(alias: &AliasConfig) -> Map<String, Value> {
    let mut fields = alias.message_fields();
    fields.retain(|name, _| FALLBACK_FIELDS.contains(&name.as_str()));
    fields
}

/// Replaces upstream, model, dialect and contract by those of `fallback`.
fn replace_fallback_fields(fields: &mut Map<String, Value>, fallback: Map<String, Value>) {
    fields.retain(|name, _| !FALLBACK_FIELDS.contains(&name.as_str()));
    fields.extend(fallback);
}

/// Starts a message and streams its log through the encoder that `create_encoder` builds.
pub(super) async fn stream_message(
    app: Arc<App>,
    caller: &Caller,
    request_id: String,
    mut new_message: NewMessage,
    create_encoder: impl FnOnce(StreamContext) -> Box<dyn Encoder>,
) -> Result<Response, Problem> {
    new_message.check(&app)?;
    let event_stream = events::open_stream(&app, caller)?;
    let start_request = new_message.to_start_request(&app, caller, request_id, None).await?;
    let StartedMessage { row, reader: reader_guard, .. } =
        message_start::start_message(&app, start_request).await?;
    schedule_deletion(&app, &new_message, reader_guard.as_ref());
    let encoder = create_encoder(describe_message(&row));
    Ok(events::stream_response(app, EventReader::new(&row.id, encoder, reader_guard, 0), event_stream))
}

/// Starts a message, waits for its end, and returns its folded log.
pub(super) async fn run_message(
    app: &Arc<App>,
    caller: &Caller,
    request_id: String,
    mut new_message: NewMessage,
) -> Result<(StreamContext, FoldedMessage), Problem> {
    new_message.check(app)?;
    let start_request = new_message.to_start_request(app, caller, request_id, None).await?;
    let StartedMessage { row, reader: reader_guard, .. } =
        message_start::start_message(app, start_request).await?;
    schedule_deletion(app, &new_message, reader_guard.as_ref());
    if let Some(reader_guard) = &reader_guard {
        // If the client disconnects meanwhile, the guard is dropped. Without a reader the message ends, at
        // once (`ends_with_client`) or after `grace_ms`.
        reader_guard.live_run().wait_over().await;
    }
    let folded = fold_message(app, &row.id).await?;
    // Dropped only now: a message that is not stored is deleted when it has no reader.
    drop(reader_guard);
    Ok((describe_message(&row), folded))
}

/// Schedules the deletion of a message once it has been read, if the client does not want it stored.
fn schedule_deletion(app: &Arc<App>, new_message: &NewMessage, reader_guard: Option<&ReaderGuard>) {
    let is_stored = new_message.as_response.as_ref().is_none_or(|response_fields| response_fields.store);
    if let Some(reader_guard) = reader_guard.filter(|_| !is_stored) {
        record::delete_when_read(app, reader_guard.live_run().clone());
    }
}

/// Folds the log of a message, as far as it is written: combines its entries into one description.
pub(super) async fn fold_message(app: &App, message_id: &str) -> Result<FoldedMessage, Problem> {
    let (mut folded, mut after) = (FoldedMessage::default(), 0);
    loop {
        let (batches, _) = app.store.read(message_id, after, READ_BYTES).await?;
        if batches.is_empty() {
            return Ok(folded);
        }
        for batch in &batches {
            for entry in batch.entries().filter(|entry| entry.number > after) {
                let kind = EncoderEntryKind::from(entry.kind);
                folded.push_entry(&EncoderEntry {
                    number: entry.number,
                    kind,
                    json: entry.json,
                    reply: None,
                });
            }
            after = after.max(batch.last());
        }
    }
}

/// Describes a stored message for an encoder.
pub(super) fn describe_message(row: &MessageRow) -> StreamContext {
    let request: Value = serde_json::from_str(&row.request).unwrap_or_default();
    let created_at = row.created.parse::<Timestamp>().map_or(0, Timestamp::as_second);
    let model = request["named_model"].as_str().unwrap_or_default().to_owned();
    let sends_whole_answer = request["dialect"] == JSON_DIALECT;
    let response_fields = &request["as_response"];
    StreamContext {
        message_id: row.id.clone(),
        request_id: row.request_id.clone(),
        created_at,
        model,
        sends_whole_answer,
        previous_response: response_fields["previous"].as_str().map(str::to_owned),
        is_background: response_fields["background"] == true,
        is_unstored: response_fields["store"] == false,
    }
}

/// Builds the response of a message that failed, for a client that waited for the whole reply. Clients repeat
/// a request by themselves if its failure is marked as retryable. Only rate limits, unreachable services and
/// interruptions are marked, since other failures may follow a whole reply that was paid for.
pub(super) fn failure_response(failure: &Failure, body: &Value) -> Response {
    // A status of the model service is passed on if it blames the request. Others, such as those about the
    // service's key or account, concern the operator.
    let request_status = failure.upstream.as_ref().map(|upstream_error| upstream_error.status);
    let request_status =
        request_status.filter(|status| matches!(status, 400 | 404 | 409 | 410 | 413..=415 | 422));
    let default_status = match &*failure.code {
        "upstream_rate_limited" => StatusCode::TOO_MANY_REQUESTS,
        "upstream_timeout" => StatusCode::GATEWAY_TIMEOUT,
        "interrupted" => StatusCode::SERVICE_UNAVAILABLE,
        // The schema of the request is at fault: the reply could not be checked against it in time.
        "schema_too_complex" => StatusCode::UNPROCESSABLE_ENTITY,
        // The model did not write what was requested.
        code if code.starts_with("json_") => StatusCode::BAD_GATEWAY,
        code if code.starts_with("upstream") || code == "recording_not_found" => StatusCode::BAD_GATEWAY,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let status =
        request_status.and_then(|status| StatusCode::from_u16(status).ok()).unwrap_or(default_status);
    let is_retryable = failure.retryable
        && matches!(&*failure.code, "upstream_rate_limited" | "upstream_unreachable" | "interrupted");
    let retry_header = HeaderValue::from_static(if is_retryable { "true" } else { "false" });
    (status, [(HeaderName::from_static("x-should-retry"), retry_header)], axum::Json(body)).into_response()
}
