//! `POST /messages` and `POST /messages/{id}/cancel`.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tambour::encode::Protocol;
use tambour::{Options, dialect};

use super::events::{self, Reader};
use super::idempotency::{claim, key as idempotency};
use super::keys::Caller;
use super::problem::{Problem, body};
use super::record;
use super::request::RequestId;
use super::tools::{ToolChoice, offered};
use crate::app::{App, Opened};
use crate::ask::{self, Asked, Started};
use crate::drive::Offer;
use crate::history::Sent;
use crate::reading::Contract;
use crate::store::live::Reading;
use crate::store::{Log as _, MessageRow};
use crate::tools;
use crate::upstream::{Ask, Message};

/// What is asked of `POST /api/v1/messages`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMessage {
    /// A conversation of the same key; a new one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    conversation_id: Option<String>,
    /// The whole prompt by role; what was said before is what it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    messages: Option<Vec<Message>>,
    /// The user's words; earlier messages of the conversation go before them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
    /// Goes before everything else. It is of this message alone: the next one does not repeat it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    system_prompt: Option<String>,
    /// The model; the upstream's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// Name of a configured upstream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    upstream: Option<String>,
    /// How the model is expected to write; `auto` finds out.
    #[serde(default = "auto")]
    dialect: String,
    /// What the reply is held to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    contract: Option<Contract>,
    /// `legacy` or `jsonseq_v1`; the setting `llm_app_settings.app_output_protocol` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) output_protocol: Option<String>,
    /// Whether extension events are sent.
    #[serde(default)]
    pub(super) extensions: bool,
    /// Whether findings are sent.
    #[serde(default)]
    pub(super) findings: bool,
    /// Sampling temperature; 0.7 for `ai_say` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    /// Most tokens of the reply; 1000 for `ai_say` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    /// Nucleus sampling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    /// Where the model stops: a text or a list of texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    stop: Option<Value>,
    /// Fixes the model's chance, where it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    /// What the upstream holds the reply to by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    response_format: Option<Value>,
    /// Further fields of the upstream's request, as they are.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    upstream_fields: Map<String, Value>,
    /// Whether the server adds the dialect's format instructions to the system prompt.
    #[serde(default)]
    instructions: bool,
    /// What happens while another message of the conversation runs.
    #[serde(default)]
    if_busy: IfBusy,
    /// Tools that replies may call: names of registered ones, or whole ones that the caller runs. Their calls run, and the
    /// model is told the results. Without the field nothing runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<ToolChoice>>,
    /// Who calls tools; a tool may be limited to callers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    caller: Option<String>,
    /// How often a reply that cannot be used may be asked for again.
    /// 0 when absent, 1 for `ai_say`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_reasks: Option<u32>,
    /// Whether the answer is the event stream itself.
    #[serde(default)]
    stream: bool,
    /// Whether the answer is the record, when the reply has ended.
    #[serde(default)]
    wait: bool,
}

/// What happens while another message of the conversation runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum IfBusy {
    /// The message waits for its turn.
    #[default]
    Wait,
    /// It is refused.
    Refuse,
}

impl NewMessage {
    /// How the model is asked, without the prompt.
    fn ask(&self) -> Ask {
        Ask {
            messages: Vec::new(),
            model: self.model.clone(),
            dialect: self.dialect.clone(),
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            top_p: self.top_p,
            stop: self.stop.clone(),
            seed: self.seed,
            response_format: self.response_format.clone(),
            more: self.upstream_fields.clone(),
        }
    }
}

/// Dialects whose replies may call tools.
const CALLING: [&str; 2] = ["aiplan", "auto"];

/// The dialect of dialogue rounds, whose calls have parameters of their own (S-050, S-054).
const ROUND: &str = "ai_say";

/// Most re-asks of one message.
const MOST_REASKS: u32 = 5;

fn auto() -> String {
    "auto".to_owned()
}

/// The options of a request: what the server brings, then the contract.
pub(super) fn options(app: &App, contract: Option<&Contract>) -> Result<Options, Problem> {
    app.own().with(contract).map_err(|error| Problem::invalid("invalid_option", error))
}

/// `POST /api/v1/messages`
pub(super) async fn create(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Extension(RequestId(request_id)): Extension<RequestId>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Result<Response, Problem> {
    if app.closing.is_cancelled() {
        let closing = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "closing", "the server is stopping");
        return Err(closing.retry_after(5));
    }
    let mut new: NewMessage = body(&bytes)?;
    if new.wait && new.stream {
        let detail = "`stream` gives events, `wait` the record: not both";
        return Err(Problem::invalid("invalid_field", detail).with("field", "wait"));
    }
    let protocol = protocol(&app, &new)?;
    new.output_protocol = Some(protocol.name().to_owned());
    dialect::entry(&new.dialect)
        .map_err(|error| Problem::invalid("unknown_dialect", error.to_string()).with("field", "dialect"))?;
    if let Some(reasks) = new.max_reasks.filter(|&reasks| reasks > MOST_REASKS) {
        let detail = format!("`max_reasks` is at most {MOST_REASKS}, not {reasks}");
        return Err(Problem::invalid("invalid_field", detail).with("field", "max_reasks"));
    }
    if new.dialect == ROUND {
        new.temperature.get_or_insert(0.7);
        new.max_tokens.get_or_insert(1000);
        new.max_reasks.get_or_insert(1);
    }
    let repeat = idempotency(&headers)?;
    let _claim = repeat.as_deref().map(|repeat| claim(&app, &caller, repeat)).transpose()?;
    if let Some(repeat) = &repeat
        && let Some(row) = repeated(&app, &caller, &new, repeat).await?
    {
        let opened = new.stream.then(|| events::open(&app, &caller)).transpose()?;
        let live = app.live.get(&row.id).filter(|_| new.stream || new.wait);
        let reading = live.map(|live| app.store.follow(&live));
        return answer(app, row, &new, reading, opened).await;
    }
    let mut options = options(&app, new.contract.as_ref())?;
    options.caller.clone_from(&new.caller);
    let offer = offer(&app, &caller, &new).await?;
    if let Some(offer) = &offer {
        options.tools = Some(tools::registry(&offer.tools));
        options.tool_loop = true;
    }
    let loaded = app.loaded();
    let upstream = loaded.upstream(new.upstream.as_deref()).ok_or_else(|| {
        let name = new.upstream.as_deref().unwrap_or("any");
        Problem::invalid("unknown_upstream", format!("there is no upstream `{name}`"))
            .with("field", "upstream")
    })?;
    let prompt = Sent { system: system(&new, &mut options)?, ..said(&new)? };
    let opened = new.stream.then(|| events::open(&app, &caller)).transpose()?;
    let asked = Asked {
        caller: caller.clone(),
        request_id,
        conversation_id: new.conversation_id.clone(),
        prompt,
        upstream,
        ask: new.ask(),
        options,
        offer,
        legacy: protocol == Protocol::Legacy,
        max_reasks: new.max_reasks.unwrap_or(0),
        waits: new.if_busy != IfBusy::Refuse,
        request: json!(new).to_string(),
        repeat,
        read: new.stream || new.wait,
    };
    let Started { row, reading } = ask::start(&app, asked).await?;
    answer(app, row, &new, reading, opened).await
}

/// The message that the same request made before, within a day; the word of another request is refused.
async fn repeated(
    app: &App,
    caller: &Caller,
    new: &NewMessage,
    repeat: &str,
) -> Result<Option<MessageRow>, Problem> {
    let day = SignedDuration::from_hours(24);
    let since = Timestamp::now().checked_sub(day).map(|time| format!("{time:.3}")).unwrap_or_default();
    let Some(row) = app.store.repeated(&caller.owner, repeat, &since).await? else { return Ok(None) };
    let (before, now): (Value, Value) = (serde_json::from_str(&row.request).unwrap_or_default(), json!(new));
    if before != now {
        let detail = "this `Idempotency-Key` was sent with another request";
        return Err(Problem::invalid("idempotency_key_reused", detail));
    }
    Ok(Some(row))
}

/// What the caller is told of a message: its events, its record, or its id.
async fn answer(
    app: Arc<App>,
    row: MessageRow,
    new: &NewMessage,
    reading: Option<Reading>,
    opened: Option<Opened>,
) -> Result<Response, Problem> {
    if let Some(opened) = opened {
        return Ok(events::response(app, Reader::new(&row, new, reading, 0), opened));
    }
    if new.wait {
        if let Some(mut reading) = reading {
            reading.ended().await;
        }
        let row = app.store.message(&row.id).await?.unwrap_or(row);
        return Ok(Json(record::of(&app, &row).await?).into_response());
    }
    let answer = json!({
        "message_id": row.id,
        "conversation_id": row.conversation_id,
        "request_id": row.request_id,
    });
    let place = format!("/api/v1/messages/{}/events", row.id);
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, place)], Json(answer)).into_response())
}

/// The tools that replies of the message may call.
async fn offer(app: &App, caller: &Caller, new: &NewMessage) -> Result<Option<Offer>, Problem> {
    let name = new.caller.as_deref();
    if name.is_some_and(|name| name.trim().is_empty() || name.len() > 200) {
        let detail = "`caller` is a name of at most 200 bytes";
        return Err(Problem::invalid("invalid_field", detail).with("field", "caller"));
    }
    let Some(choices) = &new.tools else { return Ok(None) };
    if !CALLING.contains(&new.dialect.as_str()) {
        let detail = format!("replies of the dialect `{}` call no tools; `aiplan` does", new.dialect);
        return Err(Problem::invalid("invalid_field", detail).with("field", "tools"));
    }
    let tools = offered(app, caller, choices).await?;
    Ok(Some(Offer { tools, caller: new.caller.clone() }))
}

/// The protocol of a new message, fixed here (J-033).
fn protocol(app: &App, new: &NewMessage) -> Result<Protocol, Problem> {
    let Some(name) = &new.output_protocol else { return Ok(app.settings().protocol()) };
    Protocol::named(name).ok_or_else(|| {
        let known: Vec<&str> = Protocol::ALL.iter().map(|protocol| protocol.name()).collect();
        let detail = format!("`{name}` is no output protocol; known: {}", known.join(", "));
        Problem::invalid("unknown_protocol", detail).with("field", "output_protocol")
    })
}

/// What the user said.
fn said(new: &NewMessage) -> Result<Sent, Problem> {
    let wrong = |code, detail: &str, field: &'static str| Problem::invalid(code, detail).with("field", field);
    match (&new.messages, &new.text) {
        (Some(_), Some(_)) => Err(wrong("invalid_field", "give `messages` or `text`, not both", "text")),
        (None, None) => Err(wrong("missing_field", "give `messages` or `text`", "text")),
        (Some(messages), None) if messages.is_empty() => {
            Err(wrong("invalid_field", "`messages` is empty", "messages"))
        }
        (Some(messages), None) => {
            let role = |message: &&Message| !matches!(message.role.as_str(), "system" | "user" | "assistant");
            if let Some(message) = messages.iter().find(role) {
                let detail = format!("a role is system, user or assistant, not `{}`", message.role);
                return Err(wrong("invalid_field", &detail, "messages"));
            }
            Ok(Sent { messages: Some(messages.clone()), ..Sent::default() })
        }
        (None, Some(text)) => Ok(Sent { text: Some(text.clone()), ..Sent::default() }),
    }
}

/// What goes before everything else: the caller's words, then the format that the dialect asks for.
fn system(new: &NewMessage, options: &mut Options) -> Result<Option<String>, Problem> {
    if !new.instructions {
        return Ok(new.system_prompt.clone());
    }
    let prompt = dialect::entry(&new.dialect).ok().and_then(|entry| entry.prompt);
    let Some(prompt) = prompt else {
        let detail = format!("the dialect `{}` has no instructions; name one that has", new.dialect);
        return Err(Problem::invalid("invalid_field", detail).with("field", "instructions"));
    };
    // A model that repeats the example has not answered.
    options.own_examples = true;
    let instructions = prompt(options).text();
    let before = new.system_prompt.iter().map(String::as_str);
    Ok(Some(before.chain([instructions.as_str()]).collect::<Vec<&str>>().join("\n\n")))
}

/// `POST /api/v1/messages/{id}/cancel`: the upstream call stops too. Cancelling what has ended changes nothing.
pub(super) async fn cancel(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let row = owned(&app, &caller, &id).await?;
    let Some(live) = app.live.get(&id).filter(|_| row.status == "running") else {
        // It has ended since, if it was running a moment ago.
        let status =
            if row.status == "running" { owned(&app, &caller, &id).await?.status } else { row.status };
        return Ok((StatusCode::OK, Json(json!({"message_id": id, "status": status}))));
    };
    live.cancel.cancel();
    Ok((StatusCode::ACCEPTED, Json(json!({"message_id": id, "status": "cancelling"}))))
}

/// The message of that id, if it is the caller's.
pub(super) async fn owned(app: &App, caller: &Caller, id: &str) -> Result<MessageRow, Problem> {
    let row = app.store.message(id).await?;
    row.filter(|row| row.owner == caller.owner)
        .ok_or_else(|| Problem::not_found(format!("there is no message `{id}`")))
}
