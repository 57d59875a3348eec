//! `POST /messages` and `POST /messages/{id}/cancel`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tambour::encode::Protocol;
use tambour::{Options, dialect};

use super::events::{self, Reader};
use super::keys::Caller;
use super::problem::{Problem, body};
use super::request::RequestId;
use super::tools::{ToolChoice, offered};
use crate::app::App;
use crate::drive::{self, Offer, Run};
use crate::history::{self, Again};
use crate::ids;
use crate::metrics::Metrics;
use crate::reading::Contract;
use crate::record::{Timings, fold};
use crate::store::{Live, Log, MessageRow};
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
    bytes: Bytes,
) -> Result<Response, Problem> {
    if app.closing.is_cancelled() {
        let closing = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "closing", "the server is stopping");
        return Err(closing.retry_after(5));
    }
    let mut new: NewMessage = body(&bytes)?;
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
    let messages = prompt(&app, &caller, &new).await?;
    let row = MessageRow {
        id: ids::new("msg"),
        conversation_id: new.conversation_id.clone().unwrap_or_else(|| ids::new("conv")),
        request_id,
        owner: caller.owner.clone(),
        created: ids::now(),
        status: "running".to_owned(),
        request: json!(new).to_string(),
        record: None,
    };
    let opened = new.stream.then(|| events::open(&app, &caller)).transpose()?;
    if loaded.config.log_content {
        tracing::info!(message = row.id, request = row.request_id, prompt = %json!(messages), "message");
    } else {
        tracing::info!(message = row.id, request = row.request_id, dialect = new.dialect, "message");
    }
    let live = Live::new(row.id.clone());
    // The first reader is there before the run begins, so that its going away is noticed.
    let reading = new.stream.then(|| app.store.follow(&live));
    let run = Run {
        row: row.clone(),
        live,
        upstream,
        ask: Ask {
            messages,
            model: new.model.clone(),
            dialect: new.dialect.clone(),
            temperature: new.temperature,
            max_tokens: new.max_tokens,
        },
        options,
        offer,
        legacy: protocol == Protocol::Legacy,
        max_reasks: new.max_reasks.unwrap_or(0),
        grace: Duration::from_millis(loaded.config.grace_ms),
    };
    app.undisturbed(begin(app.clone(), run, loaded.config.max_running)).await?;
    if let Some(opened) = opened {
        return Ok(events::response(app, Reader::new(&row, &new, reading, 0), opened));
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

/// Stores a message and runs it. From here on it ends by itself, whatever becomes of the client.
async fn begin(app: Arc<App>, run: Run, most: usize) -> Result<(), Problem> {
    if !app.live.add(&run.row.owner, run.live.clone(), most) {
        Metrics::count(&app.metrics.limited);
        let detail = format!("{most} messages of this key are running; wait until one has ended");
        let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_running", detail);
        return Err(problem.retry_after(1));
    }
    // The model is asked meanwhile; nothing of its answer is written before the row.
    let (written, started) = (app.store.insert_message(&run.row), Instant::now());
    let live = run.live.clone();
    app.runs.spawn(drive::run(app.clone(), run));
    if let Err(error) = written.await {
        live.cancel.cancel();
        return Err(error.into());
    }
    app.metrics.committed("message", started.elapsed());
    Metrics::count(&app.metrics.messages);
    Ok(())
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

/// The messages for the model.
async fn prompt(app: &App, caller: &Caller, new: &NewMessage) -> Result<Vec<Message>, Problem> {
    let mut prompt = Vec::new();
    if let Some(system) = &new.system_prompt {
        prompt.push(Message { role: "system".into(), content: system.clone() });
    }
    if let Some(id) = &new.conversation_id {
        let known = app.store.conversation(id).await?;
        if known.is_none_or(|(owner, _)| owner != caller.owner) {
            return Err(Problem::not_found(format!("there is no conversation `{id}`")));
        }
    }
    match (&new.messages, &new.text) {
        (Some(_), Some(_)) => {
            return Err(Problem::invalid("invalid_field", "give `messages` or `text`, not both")
                .with("field", "text"));
        }
        (None, None) => {
            return Err(Problem::invalid("missing_field", "give `messages` or `text`").with("field", "text"));
        }
        (Some(messages), None) if messages.is_empty() => {
            return Err(Problem::invalid("invalid_field", "`messages` is empty").with("field", "messages"));
        }
        (Some(messages), None) => {
            let role = |message: &&Message| !matches!(message.role.as_str(), "system" | "user" | "assistant");
            if let Some(message) = messages.iter().find(role) {
                let detail = format!("a role is system, user or assistant, not `{}`", message.role);
                return Err(Problem::invalid("invalid_field", detail).with("field", "messages"));
            }
            prompt.extend(messages.iter().cloned());
        }
        (None, Some(text)) => {
            let mut said = match &new.conversation_id {
                Some(id) => said_before(app, id).await?,
                None => Vec::new(),
            };
            history::ask(&mut said, text.clone());
            prompt.extend(said);
        }
    }
    Ok(prompt)
}

/// What was said before in a conversation: the user's words, and of each reply what stands for it.
async fn said_before(app: &App, id: &str) -> Result<Vec<Message>, Problem> {
    let (mut said, own) = (Vec::new(), app.own());
    for row in app.store.messages_of(id).await? {
        let Ok(asked) = serde_json::from_str::<NewMessage>(&row.request) else { continue };
        let (status, record) = match row.record.as_deref().map(serde_json::from_str) {
            Some(record) => (row.status.clone(), record.unwrap_or_default()),
            // Its end may be on the log already, and the record not yet made.
            None => {
                let fold = fold(&app.store, &row.id).await?;
                let (status, record) = fold.into_record(Timings::default(), &Again::of(&row, &own));
                (status.to_owned(), record)
            }
        };
        let replies = history::replies(&record);
        // Who asks again after a failure asks the same; what cannot be answered must not be asked for ever.
        if status == "running" || (status == "failed" && replies.is_empty()) {
            continue;
        }
        match (asked.text, asked.messages) {
            (Some(text), _) => history::ask(&mut said, text),
            // It is the whole prompt: what was said before is what it says.
            (None, Some(messages)) => {
                said = messages.into_iter().filter(|message| message.role != "system").collect();
            }
            (None, None) => {}
        }
        said.extend(replies);
    }
    Ok(said)
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
