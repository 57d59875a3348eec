//! Dry runs: dialogues that play by themselves, with answers from the request or from a model in the role of
//! the user.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use tambour::event::{Event, EventCollector, Failure};
use tambour::options::Language;
use tambour::{InputEnd, Pipeline};
use tambour_prompt::dialogue::{DialogueStatus, DialogueTurn, HistoryMessage};

use super::dialogue_turns::coverage_of;
use super::dialogues::{find_owned, run_turn};
use super::keys::Caller;
use super::request::RequestId;
use crate::base::problem::{Problem, parse_body};
use crate::http::app::App;
use crate::record::figures::{self, ReplyEnd};
use crate::record::spending::UpstreamSpending;
use crate::run::dialogues::{self, TurnInput, TurnQuota};
use crate::upstream::{Message, ModelRequest, ReplyItem, new_failure};

/// Value of `max_turns` when the request has none.
const DEFAULT_TURNS: u32 = 30;
/// Highest value of `max_turns`.
const MAX_TURNS: u32 = 100;
/// Maximum length in bytes of the role (description of the user), and of all answers together (as JSON).
const MAX_TEXT_BYTES: usize = 64 << 10;
/// Maximum number of tokens of an answer that a model invents.
const ANSWER_TOKENS: u32 = 400;

/// Body of `POST /api/v1/dialogues/{id}/play`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewPlay {
    /// Answers of the user, in order; for a `form`, `picture` or `skill` each is the value of the answer.
    #[serde(default)]
    answers: Vec<Value>,
    /// Description of the person whom a model plays when no given answer is left.
    #[serde(default)]
    role: Option<String>,
    /// Maximum number of turns, 1 to 100; 30 when absent.
    #[serde(default)]
    max_turns: Option<u32>,
}

/// Reason for the end of a dry run.
enum PlayEnd {
    /// The dialogue is completed or has failed.
    Ended,
    /// No answer is left, and no model plays the user.
    AnswersUsedUp,
    /// `max_turns` turns were played.
    MaxTurns,
    /// A turn, or the model that plays the user, failed.
    Failed,
}

impl PlayEnd {
    /// Returns the public name.
    fn name(&self) -> &'static str {
        match self {
            PlayEnd::Ended => "ended",
            PlayEnd::AnswersUsedUp => "answers_used_up",
            PlayEnd::MaxTurns => "max_turns",
            PlayEnd::Failed => "failed",
        }
    }
}

/// `POST /api/v1/dialogues/{id}/play`. If the client disconnects, the current turn runs to its end and none
/// follows.
pub(super) async fn play(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Extension(RequestId(request_id)): Extension<RequestId>,
    Path(id): Path<String>,
    bytes: Bytes,
) -> Result<Json<Value>, Problem> {
    let new_play: NewPlay = parse_body(&bytes)?;
    let refuse = |field: &'static str, detail: String| {
        Err(Problem::invalid("invalid_field", detail).with("field", field))
    };
    let max_turns = new_play.max_turns.unwrap_or(DEFAULT_TURNS);
    if !(1..=MAX_TURNS).contains(&max_turns) {
        return refuse("max_turns", format!("`max_turns` must be from 1 to {MAX_TURNS}"));
    }
    if json!(new_play.answers).to_string().len() > MAX_TEXT_BYTES {
        return refuse("answers", format!("`answers` must have at most {MAX_TEXT_BYTES} bytes"));
    }
    if new_play.role.as_ref().is_some_and(|role| role.len() > MAX_TEXT_BYTES) {
        return refuse("role", format!("`role` must have at most {MAX_TEXT_BYTES} bytes"));
    }
    // Keys that are limited to aliases may not run turns.
    caller.limits.check_alias(None)?;
    find_owned(&app, &caller, &id).await?;
    let mut answers = new_play.answers.into_iter();
    let (mut turns, mut error) = (0, None);
    let stop_reason = loop {
        let row = find_owned(&app, &caller, &id).await?;
        let (script, dialogue) = dialogues::load_machine(&app, &row)?;
        let pending_turn = dialogue.turn(&script);
        if matches!(pending_turn.status, DialogueStatus::Completed | DialogueStatus::Failed) {
            break PlayEnd::Ended;
        }
        if turns == max_turns {
            break PlayEnd::MaxTurns;
        }
        let input = if pending_turn.continues {
            TurnInput::Text(None)
        } else {
            let answer = match (answers.next(), &new_play.role) {
                (Some(answer), _) => answer,
                (None, Some(persona)) => {
                    match invent_answer(&app, &caller, persona, dialogue.history(), &pending_turn).await? {
                        Ok(text) => text.into(),
                        Err(failure) => {
                            error = Some(failure);
                            break PlayEnd::Failed;
                        }
                    }
                }
                (None, None) => break PlayEnd::AnswersUsedUp,
            };
            input_of_answer(answer, &pending_turn)
        };
        let turn = run_turn(&app, &caller, &id, input, &request_id).await?;
        turns += 1;
        if let Some(failure) = turn.error {
            error = Some(failure);
            break PlayEnd::Failed;
        }
    };
    let row = find_owned(&app, &caller, &id).await?;
    let coverage = coverage_of(&app, &row).await?;
    Ok(Json(json!({
        "dialogue_id": id,
        "status": row.status,
        "stopped": stop_reason.name(),
        "turns": turns,
        "error": error,
        "coverage": coverage,
    })))
}

/// Converts an answer to the input that the pending turn expects.
fn input_of_answer(answer: Value, pending_turn: &DialogueTurn) -> TurnInput {
    match (&pending_turn.request, answer) {
        (Some(request), value) => TurnInput::Answer { call_id: request.data.call_id.clone(), value },
        (None, Value::String(text)) => TurnInput::Text(Some(text)),
        (None, Value::Null) => TurnInput::Text(None),
        (None, value) => TurnInput::Text(Some(value.to_string())),
    }
}

/// Asks a model for an answer in the role of the user; `persona` describes the person that it plays. The
/// inner error is a failure of the model.
async fn invent_answer(
    app: &Arc<App>,
    caller: &Caller,
    persona: &str,
    history: &[HistoryMessage],
    pending_turn: &DialogueTurn,
) -> Result<Result<String, Failure>, Problem> {
    let quota = TurnQuota::reserve(app, caller).await?;
    let loaded_config = app.loaded_config();
    let upstream = loaded_config
        .upstream(None)
        .ok_or_else(|| Problem::invalid("unknown_upstream", "no upstream is configured"))?;
    let request = ModelRequest {
        messages: role_messages(persona, history, pending_turn, app.settings().texts().language),
        dialect: "plain".to_owned(),
        temperature: Some(0.9),
        max_tokens: Some(ANSWER_TOKENS),
        ..ModelRequest::default()
    };
    quota.spend().await;
    let mut reply = match upstream.open(&request).await {
        Ok(reply) => reply,
        Err(failure) => return Ok(Err(failure)),
    };
    let options = app.reading_defaults().options.clone();
    let mut pipeline = Pipeline::new("plain", &options).map_err(|_| Problem::internal())?;
    let (mut events, mut items, mut usage) = (EventCollector::default(), Vec::new(), Value::Null);
    let end = 'reply: loop {
        tokio::select! {
            biased;
            () = caller.removal.cancelled() => return Err(super::keys::invalid_key()),
            () = app.run_abort.cancelled() => break 'reply InputEnd::WithoutReason,
            () = reply.next(&mut items) => {}
        }
        for item in items.drain(..) {
            match item {
                ReplyItem::Text(text) => pipeline.push_str(&text, &mut events),
                ReplyItem::Reasoning(text) => pipeline.push_reasoning(&text, &mut events),
                ReplyItem::Usage(call_usage) => usage = call_usage,
                // The model was offered no tools.
                ReplyItem::Call(_) => {}
                ReplyItem::End(end) => break 'reply end,
            }
        }
    };
    pipeline.finish(&end, &mut events);
    // Charges 0 requests, since `spend` has counted this one, and the tokens in `usage`.
    app.charge_key(&caller.key, &caller.owner, 0, &usage).await;
    let spending = UpstreamSpending::from_call(&upstream, &request, &usage);
    let reply_end = ReplyEnd {
        status: if matches!(end, InputEnd::Failed(_)) { "failed" } else { "completed" },
        ..ReplyEnd::default()
    };
    app.add_figures(&figures::reply_figures(
        &figures::current_hour(),
        &caller.owner,
        &reply_end,
        &[spending],
    ))
    .await;
    if let InputEnd::Failed(failure) = end {
        return Ok(Err(failure));
    }
    let text: String = events
        .events
        .iter()
        .filter_map(|event| match event {
            Event::FinalDelta { text } => Some(text.as_ref()),
            _ => None,
        })
        .collect();
    let text = text.trim();
    if text.is_empty() {
        return Ok(Err(new_failure("message_missing", "the model that plays the user gave no text", true)));
    }
    Ok(Ok(text.to_owned()))
}

/// Builds the messages for the model that plays the user. Roles are exchanged: the assistant of the dialogue
/// is the user of this model.
fn role_messages(
    persona: &str,
    history: &[HistoryMessage],
    pending_turn: &DialogueTurn,
    language: Language,
) -> Vec<Message> {
    let task = match language {
        Language::Zh => {
            "你在一段对话里扮演下面这个人，对方是一位助手。只说这个人接下来会说的话：不要旁白，不要引号，不要解释，一到三句。"
        }
        Language::En => {
            "You play the person below in a conversation with an assistant. Say only what this person says next: no narration, no \
             quotes, no explanation, one to three sentences."
        }
    };
    let mut messages = vec![Message::new("system", format!("{task}\n\n{persona}"))];
    for message in history {
        let role = if message.role == "user" { "assistant" } else { "user" };
        messages.push(Message::new(role, message.content.clone()));
    }
    if let Some(request) = &pending_turn.request {
        let question = json!(request.data).to_string();
        let text = match language {
            Language::Zh => format!("请填写（只给出值）：{question}"),
            Language::En => format!("Fill this in (give the value only): {question}"),
        };
        messages.push(Message::new("user", text));
    }
    messages
}
