//! Routes of other protocols: a request becomes a message like any other, and an encoder writes its log.

pub(super) mod ag_ui;
pub(super) mod ai_sdk;
pub(super) mod anthropic;
pub(super) mod chat;
pub(super) mod forms;
pub(super) mod models;
pub(super) mod responses;
mod said;
mod threads;

pub(crate) use threads::Threads;

use std::sync::Arc;
use std::time::Instant;

use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tambour::dialect;
use tambour::encode::{About, Encoder, Entry, EntryKind, Whole};
use tambour::event::Failure;

use super::events::{self, Reader};
use super::keys::Caller;
use super::new_message::{Foreign, NewMessage};
use super::problem::Problem;
use super::record;
use super::tools::ToolChoice;
use crate::app::App;
use crate::ask::{self, Started};
use crate::config::{AliasConfig, CHOICE};
use crate::live::Reading;
use crate::store::MessageRow;

/// A request on its way to a message.
pub(super) struct Wanted {
    /// The model as the client named it.
    model: String,
    /// Fields of `POST /api/v1/messages` by their names.
    fields: Map<String, Value>,
    /// Who is asked, and how that one writes, where nothing that can be used comes: fields in the place of those above.
    others: Vec<Map<String, Value>>,
    /// Fields that the alias fixes; none for a model without one.
    fixed: Vec<String>,
    foreign: Foreign,
}

/// The alias of clients that name no model.
const DEFAULT: &str = "default";

/// The field with what goes before the messages.
const SYSTEM: &str = "system_prompt";

/// The dialect of calls that are written as text.
const CALLS: &str = "toolcall";

/// The dialect of replies that are one JSON value.
pub(in crate::http) const JSON: &str = "json_value";

/// Fields that the object `tambour` cannot have: the protocol has its own for them.
const NOT_HERE: [&str; 10] = [
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

impl Wanted {
    /// What the name of a model stands for: an alias, else an upstream with one of its models.
    pub(super) fn of_model(app: &App, body: &mut Map<String, Value>) -> Result<Wanted, Problem> {
        let model = match body.remove("model") {
            Some(Value::String(model)) if !model.trim().is_empty() => model,
            Some(Value::Null) | None => {
                return Err(Problem::invalid("missing_field", "missing field `model`").with("field", "model"));
            }
            Some(_) => {
                return Err(Problem::invalid("invalid_field", "`model` is a name").with("field", "model"));
            }
        };
        let loaded = app.loaded();
        let (mut fields, mut others, mut fixed) = (Map::new(), Vec::new(), Vec::new());
        if let Some(alias) = loaded.config.aliases.get(&model) {
            fields = alias.fields();
            let order = loaded.order(&model, Instant::now());
            others.extend(order.iter().map(|name| choice(&loaded.config.aliases[*name])));
            if !others.is_empty() {
                choose(&mut fields, others.remove(0));
            }
            if let Some(skein) = loaded.skeins.get(&model) {
                fields.insert("skein".to_owned(), skein.clone());
            }
            fixed.extend(fields.keys().cloned());
        } else {
            let (upstream, name) = model.split_once('/').unwrap_or((&model, ""));
            if !loaded.upstreams.contains_key(upstream) {
                let detail = format!(
                    "there is no model `{model}`: it is an alias of the configuration, or UPSTREAM/MODEL with a configured upstream"
                );
                return Err(
                    Problem::new(StatusCode::NOT_FOUND, "model_not_found", detail).with("field", "model")
                );
            }
            fields.insert("upstream".to_owned(), upstream.into());
            if !name.is_empty() {
                fields.insert("model".to_owned(), name.into());
            }
        }
        Ok(Wanted { model, fields, others, fixed, foreign: Foreign::default() })
    }

    /// The same where a model need not be named: the alias `default`, else the default upstream.
    pub(super) fn of_model_or_default(app: &App, body: &mut Map<String, Value>) -> Result<Wanted, Problem> {
        let named = body.get("model").is_some_and(|model| !model.is_null());
        let loaded = app.loaded();
        if !named && let Some(name) = loaded.config.default_upstream() {
            let alias = loaded.config.aliases.contains_key(DEFAULT);
            body.insert("model".to_owned(), if alias { DEFAULT } else { name }.into());
        }
        Wanted::of_model(app, body)
    }

    /// Sets what goes before the messages. That of an alias stays, and goes before this.
    pub(super) fn set_system(&mut self, text: &str) {
        let before = self
            .fields
            .get(SYSTEM)
            .and_then(Value::as_str)
            .filter(|_| self.fixed.iter().any(|name| name == SYSTEM));
        let text = before.map_or_else(|| text.to_owned(), |before| format!("{before}\n\n{text}"));
        self.set(SYSTEM, text);
    }

    pub(super) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.fields.insert(name.to_owned(), value.into());
    }

    /// Takes a field of the request to one of ours, if it is there.
    pub(super) fn take(&mut self, body: &mut Map<String, Value>, name: &str, ours: &str) {
        if let Some(value) = body.remove(name).filter(|value| !value.is_null()) {
            self.set(ours, value);
        }
    }

    /// Takes the functions that the client runs, each an object with a name, a description and a schema in `schema`.
    pub(super) fn tools<'a>(
        &mut self,
        functions: impl Iterator<Item = (&'a Value, &'a str)>,
    ) -> Result<(), Problem> {
        for (function, schema) in functions {
            let Some(name) = function["name"].as_str() else {
                return Err(Problem::invalid("invalid_field", "a tool has a `name`").with("field", "tools"));
            };
            let description = function["description"].as_str().map(|text| {
                let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
                line[..line.floor_char_boundary(2000)].to_owned()
            });
            let parameters = function.get(schema).filter(|schema| schema.is_object());
            let parameters = parameters.cloned().unwrap_or_else(|| json!({"type": "object"}));
            let mut tool = json!({"name": name, "schema": parameters});
            if let Some(description) = description {
                tool["description"] = description.into();
            }
            let tool: ToolChoice = serde_json::from_value(tool).map_err(|error| {
                Problem::invalid("invalid_field", error.to_string()).with("field", "tools")
            })?;
            self.foreign.tools.push(tool);
        }
        Ok(())
    }

    /// Reads the reply as JSON where the client asks for a `response_format` and nothing, neither alias nor `tambour`, says how the model
    /// writes: it is told the schema, may be asked once more, and what comes out satisfies it.
    pub(super) fn reads_json(&mut self, more: Option<&Value>) -> Result<(), Problem> {
        let wrong =
            |detail: &str| Err(Problem::invalid("invalid_field", detail).with("field", "response_format"));
        let Some(format) = self.fields.get("response_format") else { return Ok(()) };
        let schema = match format["type"].as_str() {
            Some("text") => return Ok(()),
            Some("json_object") => None,
            Some("json_schema") => match &format["json_schema"]["schema"] {
                Value::Null => return wrong("`json_schema` has a `schema`"),
                schema => Some(schema.clone()),
            },
            _ => return wrong("`type` is `text`, `json_object` or `json_schema`"),
        };
        if more.is_some_and(|more| !more["dialect"].is_null()) {
            return Ok(());
        }
        if !self.fields.contains_key("dialect") {
            self.fields.entry("instructions").or_insert(true.into());
            self.fields.entry("max_reasks").or_insert(1.into());
        }
        for fields in self.others.iter_mut().chain([&mut self.fields]) {
            if fields.contains_key("dialect") {
                continue;
            }
            fields.insert("dialect".to_owned(), JSON.into());
            if let Some(schema) = &schema {
                let contract = fields.entry("contract").or_insert_with(|| json!({}));
                if contract["options"]["json_value.schema"].is_null() {
                    contract["options"]["json_value.schema"] = schema.clone();
                }
            }
        }
        Ok(())
    }

    /// Reads calls that the model writes as text, where nothing says how it writes and there is something to call: what stands
    /// in front of a model that hands them on as they are needs not know its form.
    pub(super) fn reads_calls(&mut self) {
        if self.foreign.tools.is_empty() {
            return;
        }
        for fields in self.others.iter_mut().chain([&mut self.fields]) {
            fields.entry("dialect").or_insert_with(|| CALLS.into());
        }
    }

    /// The message that is asked for. What the object `tambour` of the body says goes before what the protocol says.
    pub(super) fn message(mut self, more: Option<Value>, stream: bool) -> Result<NewMessage, Problem> {
        let more = match more {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(more)) => {
                if let Some(name) = NOT_HERE.iter().find(|name| more.contains_key(**name)) {
                    let detail = format!("`tambour.{name}` is said by fields of the protocol itself");
                    return Err(Problem::invalid("unknown_field", detail).with("field", *name));
                }
                more
            }
            Some(_) => {
                let detail = "`tambour` is an object with fields of POST /api/v1/messages";
                return Err(Problem::invalid("invalid_field", detail).with("field", "tambour"));
            }
        };
        if more.contains_key("upstream") || more.contains_key("model") {
            // Who says who is asked wants nobody else.
            self.others.clear();
            self.foreign.elsewhere = true;
        }
        self.foreign.overrides = self.fixed.iter().filter(|name| more.contains_key(*name)).cloned().collect();
        // Extensions are on the log anyway; what of them a client sees is the protocol's matter.
        self.set("output_protocol", "jsonseq_v1");
        self.set("named_model", self.model.clone());
        self.set(if stream { "stream" } else { "wait" }, true);
        let read = |mut fields: Map<String, Value>| -> Result<NewMessage, Problem> {
            fields.extend(more.clone());
            let mut new: NewMessage = super::problem::body(&Value::Object(fields).to_string().into())?;
            new.foreign = Some(self.foreign.clone());
            Ok(new)
        };
        let other = |other: Map<String, Value>| {
            let mut fields = self.fields.clone();
            choose(&mut fields, other);
            let mut new = read(fields)?;
            // Not every dialect has any; who is asked first has.
            new.instructions &= dialect::entry(&new.dialect).is_ok_and(|entry| entry.prompt.is_some());
            Ok::<_, Problem>(new)
        };
        let others = self.others.iter().cloned().map(other).collect::<Result<_, _>>()?;
        let mut new = read(self.fields.clone())?;
        new.others = others;
        Ok(new)
    }
}

/// Who an alias asks, and how that one writes.
fn choice(alias: &AliasConfig) -> Map<String, Value> {
    let mut fields = alias.fields();
    fields.retain(|name, _| CHOICE.contains(&name.as_str()));
    fields
}

/// Puts a choice in the place of the one that is in the fields.
fn choose(fields: &mut Map<String, Value>, choice: Map<String, Value>) {
    fields.retain(|name, _| !CHOICE.contains(&name.as_str()));
    fields.extend(choice);
}

/// Begins a message and streams what an encoder makes of it.
pub(super) async fn stream(
    app: Arc<App>,
    caller: &Caller,
    request: String,
    mut new: NewMessage,
    encoder: impl FnOnce(About) -> Box<dyn Encoder>,
) -> Result<Response, Problem> {
    new.settle(&app)?;
    let opened = events::open(&app, caller)?;
    let asked = new.asked(&app, caller, request, None).await?;
    let Started { row, reading, .. } = ask::start(&app, asked).await?;
    keep_or_not(&app, &new, reading.as_ref());
    let encoder = encoder(about(&row));
    Ok(events::response(app, Reader::new(&row.id, encoder, reading, 0), opened))
}

/// Begins a message, waits for its end, and gives the whole of it.
pub(super) async fn whole(
    app: &Arc<App>,
    caller: &Caller,
    request: String,
    mut new: NewMessage,
) -> Result<(About, Whole), Problem> {
    new.settle(app)?;
    let asked = new.asked(app, caller, request, None).await?;
    let Started { row, reading, .. } = ask::start(app, asked).await?;
    keep_or_not(app, &new, reading.as_ref());
    if let Some(reading) = &reading {
        // Who goes away meanwhile takes the reading along, which ends the message.
        reading.live().ended().await;
    }
    let whole = fold(app, &row.id).await?;
    drop(reading);
    Ok((about(&row), whole))
}

/// Has a message go when it has been read, where the client wants it not to be kept.
fn keep_or_not(app: &Arc<App>, new: &NewMessage, reading: Option<&Reading>) {
    let kept = new.as_response.as_ref().is_none_or(|of| of.store);
    if let Some(reading) = reading.filter(|_| !kept) {
        record::delete_when_read(app, reading.live().clone());
    }
}

/// The log of a message that has ended, folded.
pub(super) async fn fold(app: &App, message: &str) -> Result<Whole, Problem> {
    let (mut whole, mut after) = (Whole::default(), 0);
    loop {
        let (batches, _) = app.store.read(message, after, 1 << 20).await?;
        if batches.is_empty() {
            return Ok(whole);
        }
        for batch in &batches {
            for entry in batch.entries().filter(|entry| entry.number > after) {
                let kind = EntryKind::from(entry.kind);
                whole.add(&Entry { number: entry.number, kind, json: entry.json, reply: None });
            }
            after = after.max(batch.last());
        }
    }
}

/// What the stream of a stored message is about.
pub(super) fn about(row: &MessageRow) -> About {
    let request: Value = serde_json::from_str(&row.request).unwrap_or_default();
    let created = row.created.parse::<Timestamp>().map_or(0, Timestamp::as_second);
    let model = request["named_model"].as_str().unwrap_or_default().to_owned();
    let whole = request["dialect"] == JSON;
    let of = &request["as_response"];
    About {
        message: row.id.clone(),
        request: row.request_id.clone(),
        created,
        model,
        whole,
        previous: of["previous"].as_str().map(str::to_owned),
        background: of["background"] == true,
        unstored: of["store"] == false,
    }
}

/// The answer when a message failed before anybody saw anything of it. Clients repeat by themselves what may be repeated; what a
/// model has been paid for may not.
pub(super) fn failed(failure: &Failure, body: &Value) -> Response {
    // What the service says is wrong with the request is the client's to mend, but for the operator's key and account.
    let refused = failure.upstream.as_ref().map(|refusal| refusal.status);
    let refused = refused.filter(|status| matches!(status, 400 | 404 | 409 | 410 | 413..=415 | 422));
    let own = match &*failure.code {
        "upstream_rate_limited" => StatusCode::TOO_MANY_REQUESTS,
        "upstream_timeout" => StatusCode::GATEWAY_TIMEOUT,
        "interrupted" => StatusCode::SERVICE_UNAVAILABLE,
        // The schema of the request is at fault, which cannot be held against this reply in time.
        "schema_too_complex" => StatusCode::UNPROCESSABLE_ENTITY,
        // What the model wrote is not what was asked for.
        code if code.starts_with("json_") => StatusCode::BAD_GATEWAY,
        code if code.starts_with("upstream") || code == "recording_not_found" => StatusCode::BAD_GATEWAY,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let status = refused.and_then(|status| StatusCode::from_u16(status).ok()).unwrap_or(own);
    let again = failure.retryable
        && matches!(&*failure.code, "upstream_rate_limited" | "upstream_unreachable" | "interrupted");
    let retry = HeaderValue::from_static(if again { "true" } else { "false" });
    (status, [(HeaderName::from_static("x-should-retry"), retry)], axum::Json(body)).into_response()
}
