//! Builds the history that a model receives in a conversation. Each reply is in its repaired form
//! without drafts, so that the model sees the correct format; an unused reply is replaced by the text the
//! user saw, or omitted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tambour::event::{FinishReason, ToolCall};
use tambour::tool::{Tool, Tools};
use tambour::{End, Event, Options, Pipeline, Profile, Sink};

use crate::app::App;
use crate::record::{self, Timings};
use crate::store::{MessageRow, StoreError, Turn};
use crate::upstream::{Content, Message};

/// Rewrites the replies of a message in their correct form.
pub(crate) struct Again {
    dialect: String,
    options: Options,
    /// True if a tool loop runs the calls of the replies.
    pub(crate) looping: bool,
}

impl Again {
    pub(crate) fn new(dialect: &str, options: &Options) -> Again {
        let mut options = options.clone();
        options.profile = Profile::Lenient;
        options.first_only = false;
        let looping = std::mem::take(&mut options.tool_loop);
        Again { dialect: dialect.to_owned(), options, looping }
    }

    /// Returns the history text of a reply that made `calls`; `None` if nothing of the reply was used. `cut`:
    /// it was truncated.
    pub(crate) fn reply(&self, raw: &str, calls: &[ToolCall], cut: bool) -> Option<String> {
        let mut options = self.options.clone();
        options.tools = Some(accepted(calls));
        let pipeline = Pipeline::new(&self.dialect, &options).or_else(|_| Pipeline::new("plain", &options));
        let mut pipeline = pipeline.ok()?.with_extensions(true);
        let mut read = Read::default();
        // The log holds the whole chunk that exceeded the limit.
        let raw = &raw[..raw.floor_char_boundary(self.options.limits.input)];
        pipeline.push_str(raw, &mut read);
        let reason = if cut { FinishReason::Length } else { FinishReason::Stop };
        pipeline.finish(&End::Finished(reason), &mut read);
        let metadata = &pipeline.outcome().metadata;
        if metadata.fallback_reason.is_some() {
            return None;
        }
        // Unused prose is returned as prose, not in the form of its dialect. Plain text is reduced to
        // its answer, since its reasoning is a draft.
        if metadata.unused_reason.is_some() || metadata.dialect == "plain" {
            return Some(answer(&read.events));
        }
        // A correct reply is returned verbatim, which keeps the model's prompt cache valid.
        if metadata.repairs == 0 && metadata.warnings == 0 && !read.draft {
            return Some(raw.to_owned());
        }
        Some(pipeline.written(&read.events).unwrap_or_else(|| raw.to_owned()))
    }
}

/// Returns tools that accept exactly the calls that were made, so that calls accepted then are accepted again
/// even if the tools have changed since.
fn accepted(calls: &[ToolCall]) -> Tools {
    let mut by_name: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for call in calls {
        by_name.entry(&call.name).or_default().push(&call.args);
    }
    Tools::new(by_name.into_iter().map(|(name, args)| {
        // Every call is compared with all of them.
        let schema = if args.len() > EXACT { json!({}) } else { json!({ "enum": args }) };
        let mut tool = Tool::trusted(name, schema);
        tool.read_only = true;
        tool
    }))
}

/// Most calls of one tool that are matched exactly; beyond that all arguments are accepted.
const EXACT: usize = 128;

/// Returns the answer among the events of a reply.
fn answer(events: &[Event<'_>]) -> String {
    let text = |event: &Event<'_>| match event {
        Event::FinalDelta { text } => Some(text.to_string()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

/// Collects events without drafts; adjacent deltas are merged.
#[derive(Default)]
struct Read {
    events: Vec<Event<'static>>,
    draft: bool,
}

impl Sink for Read {
    fn event(&mut self, event: Event<'_>) {
        match (self.events.last_mut(), event) {
            (_, Event::DraftDelta { .. } | Event::Aside { .. }) => self.draft = true,
            (Some(Event::FinalDelta { text: before }), Event::FinalDelta { text }) => {
                before.to_mut().push_str(&text);
            }
            (Some(Event::PhaseDelta { text: before, .. }), Event::PhaseDelta { text, .. }) => {
                before.to_mut().push_str(&text);
            }
            (_, event) => self.events.push(event.into_owned()),
        }
    }
}

/// Returns the replies of a record as history messages, with the tool results that the model was sent between
/// them.
pub(crate) fn replies(record: &Value) -> Vec<Message> {
    let one = |reply: &Value| {
        let text = reply.get("history").unwrap_or(&reply["reply"]).as_str()?;
        (!text.is_empty()).then(|| Message::new("assistant", text))
    };
    let Some(turns) = record["turns"].as_array() else { return one(record).into_iter().collect() };
    let both = |turn: &Value| {
        let told = turn["told"].as_str().map(|told| Message::new("user", told));
        [one(turn), told]
    };
    turns.iter().flat_map(both).flatten().collect()
}

/// Messages that one turn adds to its conversation.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Said {
    /// Text of the user.
    #[serde(default)]
    text: Option<String>,
    /// Complete prompt; replaces all earlier messages.
    #[serde(default)]
    messages: Option<Vec<Message>>,
    /// History text of the replies.
    #[serde(default)]
    replies: Vec<Message>,
}

impl Said {
    /// Combines the user's text of a request with the replies of its record.
    pub(crate) fn new(request: &str, record: &Value) -> Said {
        let mut said: Said = serde_json::from_str(request).unwrap_or_default();
        if said.text.is_none() && said.messages.is_none() {
            said.text = last(request);
        }
        Said { replies: replies(record), ..said }
    }
}

/// Prompt as sent. Earlier messages are referenced by id, so that deleted ones are not kept here.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sent {
    /// System prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) system: Option<String>,
    /// Ids of the earlier messages of the conversation, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) before: Vec<String>,
    /// Text of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    /// Complete prompt by role; replaces `before` and `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) messages: Option<Vec<Message>>,
}

/// Returns the user's last line in the history of a Skein prompt, which later messages of the conversation
/// include.
fn last(request: &str) -> Option<String> {
    let request: Value = serde_json::from_str(request).ok()?;
    let lines = request["context"]["history"].as_array()?;
    lines.iter().rev().find(|line| line["role"] == "user")?["content"].as_str().map(str::to_owned)
}

impl Sent {
    /// Returns the messages of the prompt; deleted earlier messages are omitted.
    pub(crate) async fn messages(self, app: &App) -> Result<Vec<Message>, StoreError> {
        let mut turns = Vec::new();
        for id in &self.before {
            if let Some(kept) = app.store.turn(id).await?
                && let Some((_, said)) = turn(app, kept).await?
            {
                turns.push(said);
            }
        }
        Ok(self.with(turns))
    }

    /// Combines the prompt with the earlier turns.
    fn with(self, before: Vec<Said>) -> Vec<Message> {
        let system = self.system.map(|text| Message::new("system", text));
        let mut said = Vec::new();
        for turn in before {
            match (turn.text, turn.messages) {
                (Some(text), _) => ask(&mut said, text),
                (None, Some(messages)) => {
                    said = messages.into_iter().filter(|message| message.role != "system").collect();
                }
                (None, None) => {}
            }
            said.extend(turn.replies);
        }
        match (self.messages, self.text) {
            (Some(messages), _) => said = messages,
            (None, Some(text)) => ask(&mut said, text),
            (None, None) => {}
        }
        system.into_iter().chain(said).collect()
    }
}

/// Prepends the earlier messages of the conversation to a prompt, within `max_history`.
pub(crate) async fn prompt(
    app: &App,
    message: &MessageRow,
    mut sent: Sent,
) -> Result<(Sent, Vec<Message>), StoreError> {
    let most = app.loaded().config.max_history;
    let mut turns = Vec::new();
    for kept in app.store.turns_before(message, most).await? {
        let id = kept.id.clone();
        let Some((status, turn)) = turn(app, kept).await? else { continue };
        // A failed message without a reply is skipped: the client repeats its question, and one that cannot
        // be answered must not be repeated for ever.
        if status == "running" || (status == "failed" && turn.replies.is_empty()) {
            continue;
        }
        // It contains the complete prompt, so nothing before it is needed.
        let whole = turn.messages.is_some();
        turns.push(turn);
        sent.before.push(id);
        if whole {
            break;
        }
    }
    turns.reverse();
    sent.before.reverse();
    let messages = sent.clone().with(turns);
    Ok((sent, messages))
}

/// Returns the status of a message and what it adds to its conversation.
async fn turn(app: &App, kept: Turn) -> Result<Option<(String, Said)>, StoreError> {
    let Turn { id, status, turn, made_from } = kept;
    if let Some(turn) = turn {
        return Ok(serde_json::from_str(&turn).ok().map(|said| (status, said)));
    }
    let Some((request, summary)) = made_from else { return Ok(None) };
    if let Some(summary) = summary {
        return Ok(Some((status, Said::new(&request, &serde_json::from_str(&summary).unwrap_or_default()))));
    }
    // The end may be in the log already while the record is not built yet.
    let fold = record::fold(&*app.store, &id).await?;
    let (status, record) = fold.into_record(Timings::default(), &request, &app.own());
    Ok(Some((status.to_owned(), Said::new(&request, &record))))
}

/// Adds a text of the user. It is merged with an unanswered one before it, since not every model accepts two
/// user messages in a row.
fn ask(said: &mut Vec<Message>, text: String) {
    match said.last_mut() {
        Some(Message { role, content: Some(Content::Text(last)), .. }) if role == "user" => {
            if *last != text {
                last.push_str("\n\n");
                last.push_str(&text);
            }
        }
        _ => said.push(Message::new("user", text)),
    }
}
