//! Builds the history that a model receives in a conversation. Each reply is in its repaired form
//! without drafts, so that the model sees the correct format; a reply of which nothing was used is replaced
//! by the text that the user saw, or omitted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tambour::event::{FinishReason, ToolCall};
use tambour::tool::{RegisteredTool, ToolRegistry};
use tambour::{Event, InputEnd, Options, Pipeline, Profile, Sink};

use super::Timings;
use crate::config::reading_defaults::ReadingDefaults;
use crate::store::{MessageRow, Store, StoreError, TurnHistory};
use crate::upstream::{Content, Message};

/// Rewrites the replies of a message in the correct form of their dialect.
pub(crate) struct HistoryWriter {
    dialect: String,
    /// Options that read as much of a reply as possible.
    options: Options,
    /// True if a tool loop runs the calls of the replies.
    pub(crate) has_tool_loop: bool,
}

impl HistoryWriter {
    /// Creates a writer for replies that were read with this dialect and these options.
    pub(crate) fn new(dialect: &str, options: &Options) -> HistoryWriter {
        let mut options = options.clone();
        options.profile = Profile::Lenient;
        options.first_only = false;
        let has_tool_loop = std::mem::take(&mut options.tool_loop);
        HistoryWriter { dialect: dialect.to_owned(), options, has_tool_loop }
    }

    /// Returns the text that later prompts show for a reply, which made `calls`; `None` if nothing of the
    /// reply was used. With `is_truncated`, the reply breaks off.
    pub(crate) fn render_reply(&self, raw: &str, calls: &[ToolCall], is_truncated: bool) -> Option<String> {
        let mut options = self.options.clone();
        options.tools = Some(tools_accepting(calls));
        let pipeline = Pipeline::new(&self.dialect, &options).or_else(|_| Pipeline::new("plain", &options));
        let mut pipeline = pipeline.ok()?.with_extensions(true);
        let mut sink = HistorySink::default();
        // The reply was read up to this limit. The log may contain more: the whole chunk that exceeded the
        // limit.
        let raw = &raw[..raw.floor_char_boundary(self.options.limits.input)];
        pipeline.push_str(raw, &mut sink);
        let finish_reason = if is_truncated { FinishReason::Length } else { FinishReason::Stop };
        pipeline.finish(&InputEnd::Finished(finish_reason), &mut sink);
        let metadata = &pipeline.outcome().metadata;
        if metadata.fallback_reason.is_some() {
            return None;
        }
        // A reply that was taken as prose, not in the form of its dialect, stays prose. Plain text is
        // reduced to its answer, since its reasoning is a draft.
        if metadata.unused_reason.is_some() || metadata.dialect == "plain" {
            return Some(collect_answer(&sink.events));
        }
        // A correct reply is returned verbatim, which keeps the prompt cache of the model valid.
        if metadata.repairs == 0 && metadata.warnings == 0 && !sink.has_draft {
            return Some(raw.to_owned());
        }
        Some(pipeline.rewrite(&sink.events).unwrap_or_else(|| raw.to_owned()))
    }
}

/// Returns tools that accept exactly the calls that were made, so that these calls are accepted again even if
/// the tools of the server have changed since.
fn tools_accepting(calls: &[ToolCall]) -> ToolRegistry {
    let mut args_by_tool: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for call in calls {
        args_by_tool.entry(&call.name).or_default().push(&call.args);
    }
    ToolRegistry::new(args_by_tool.into_iter().map(|(name, args)| {
        // The schema compares each call with every listed value, which is quadratic, so many calls get no
        // list.
        let schema = if args.len() > MAX_EXACT_CALLS { json!({}) } else { json!({ "enum": args }) };
        let mut tool = RegisteredTool::from_trusted(name, schema);
        tool.read_only = true;
        tool
    }))
}

/// Maximum number of calls of one tool that are matched exactly; beyond that all arguments are accepted.
const MAX_EXACT_CALLS: usize = 128;

/// Returns the text of the answer, from the events of a reply.
fn collect_answer(events: &[Event<'_>]) -> String {
    let text = |event: &Event<'_>| match event {
        Event::FinalDelta { text } => Some(text.to_string()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

/// Collects events without drafts and asides; adjacent deltas are merged.
#[derive(Default)]
struct HistorySink {
    events: Vec<Event<'static>>,
    /// Set when a draft or aside was left out.
    has_draft: bool,
}

impl Sink for HistorySink {
    fn event(&mut self, event: Event<'_>) {
        match (self.events.last_mut(), event) {
            (_, Event::DraftDelta { .. } | Event::Aside { .. }) => self.has_draft = true,
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

/// Returns the replies of a record as messages of a prompt, with the tool results that the model was sent
/// between them.
pub(crate) fn reply_messages(record: &Value) -> Vec<Message> {
    let reply_message = |reply: &Value| {
        let text = reply.get("history").unwrap_or(&reply["reply"]).as_str()?;
        (!text.is_empty()).then(|| Message::new("assistant", text))
    };
    // A record with several replies, the rounds of a tool loop, has them in `turns`; `told` is the text of
    // the tool results sent after a reply.
    let Some(reply_records) = record["turns"].as_array() else {
        return reply_message(record).into_iter().collect();
    };
    let round_messages = |reply_record: &Value| {
        let results = reply_record["told"].as_str().map(|results| Message::new("user", results));
        [reply_message(reply_record), results]
    };
    reply_records.iter().flat_map(round_messages).flatten().collect()
}

/// Messages that one turn (a message of the user with its replies) adds to its conversation.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct TurnMessages {
    /// Text of the user.
    #[serde(default)]
    text: Option<String>,
    /// Complete prompt of the request; replaces all earlier messages of the conversation.
    #[serde(default)]
    messages: Option<Vec<Message>>,
    /// Replies as later prompts show them, with tool results between them.
    #[serde(default)]
    replies: Vec<Message>,
}

impl TurnMessages {
    /// Combines the user's text or prompt of a request with the replies of the record.
    pub(crate) fn new(request: &str, record: &Value) -> TurnMessages {
        let mut messages: TurnMessages = serde_json::from_str(request).unwrap_or_default();
        if messages.text.is_none() && messages.messages.is_none() {
            messages.text = last_user_text(request);
        }
        TurnMessages { replies: reply_messages(record), ..messages }
    }
}

/// Beginning of a prompt, which differs between the upstreams of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PromptOpening {
    /// System prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) system: Option<String>,
    /// Request and reply of the example of the format instructions, a turn before the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) example: Option<(String, String)>,
}

impl PromptOpening {
    /// Inserts the opening: the system prompt first, the example behind all system prompts.
    pub(crate) fn insert_into(&self, messages: &mut Vec<Message>) {
        if let Some((request, reply)) = &self.example {
            let place = count_system_messages(messages);
            let example = [("user", request), ("assistant", reply)];
            messages.splice(place..place, example.map(|(role, text)| Message::new(role, text.as_str())));
        }
        messages.splice(0..0, self.system.iter().map(|text| Message::new("system", text)));
    }

    /// Removes the opening that [`PromptOpening::insert_into`] has inserted.
    pub(crate) fn remove_from(&self, messages: &mut Vec<Message>) {
        if self.example.is_some() {
            let place = count_system_messages(messages);
            messages.drain(place..messages.len().min(place + 2));
        }
        messages.drain(..messages.len().min(usize::from(self.system.is_some())));
    }
}

/// Number of system prompts at the beginning.
fn count_system_messages(messages: &[Message]) -> usize {
    messages.iter().take_while(|message| matches!(&*message.role, "system" | "developer")).count()
}

/// Prompt as sent. Earlier messages are referenced by id, so that deleted ones are not kept here.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PromptRecord {
    /// Messages before all others.
    #[serde(flatten)]
    pub(crate) opening: PromptOpening,
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

/// Returns the last user text in the history of a request for a Skein prompt. The prompts of later messages
/// show it as the text of the user.
fn last_user_text(request: &str) -> Option<String> {
    let request: Value = serde_json::from_str(request).ok()?;
    let messages = request["context"]["history"].as_array()?;
    messages.iter().rev().find(|message| message["role"] == "user")?["content"].as_str().map(str::to_owned)
}

impl PromptRecord {
    /// Returns the messages of the prompt; deleted earlier messages are omitted.
    pub(crate) async fn load_messages(
        self,
        store: &dyn Store,
        defaults: &ReadingDefaults,
    ) -> Result<Vec<Message>, StoreError> {
        let mut turns = Vec::new();
        for id in &self.before {
            if let Some(stored_turn) = store.turn_history(id).await?
                && let Some((_, turn)) = load_turn(store, defaults, stored_turn).await?
            {
                turns.push(turn);
            }
        }
        Ok(self.with_history(turns))
    }

    /// Returns the messages of the prompt, with those of the earlier turns, oldest first.
    fn with_history(self, earlier_turns: Vec<TurnMessages>) -> Vec<Message> {
        let mut history = Vec::new();
        for turn in earlier_turns {
            match (turn.text, turn.messages) {
                (Some(text), _) => push_user_text(&mut history, text),
                (None, Some(messages)) => {
                    history = messages.into_iter().filter(|message| message.role != "system").collect();
                }
                (None, None) => {}
            }
            history.extend(turn.replies);
        }
        match (self.messages, self.text) {
            (Some(messages), _) => history = messages,
            (None, Some(text)) => push_user_text(&mut history, text),
            (None, None) => {}
        }
        self.opening.insert_into(&mut history);
        history
    }
}

/// Prepends the earlier messages of the conversation to the prompt of `message`, up to about `max_history`
/// bytes of them. Returns the prompt, which names them by id, and its messages.
pub(crate) async fn build_prompt(
    store: &dyn Store,
    defaults: &ReadingDefaults,
    max_history: usize,
    message: &MessageRow,
    mut prompt: PromptRecord,
) -> Result<(PromptRecord, Vec<Message>), StoreError> {
    let mut turns = Vec::new();
    // The newest comes first.
    for stored_turn in store.history_before(message, max_history).await? {
        let id = stored_turn.id.clone();
        let Some((status, turn)) = load_turn(store, defaults, stored_turn).await? else { continue };
        // A failed message without a reply is skipped: the client asks its question again, and a question
        // that cannot be answered must not be in every later prompt.
        if status == "running" || (status == "failed" && turn.replies.is_empty()) {
            continue;
        }
        // A turn with a complete prompt needs nothing before it.
        let is_complete = turn.messages.is_some();
        turns.push(turn);
        prompt.before.push(id);
        if is_complete {
            break;
        }
    }
    turns.reverse();
    prompt.before.reverse();
    let messages = prompt.clone().with_history(turns);
    Ok((prompt, messages))
}

/// Returns the status of a message and the messages that it adds to its conversation; `None` if neither a
/// history nor a request is stored, or the stored history is unreadable.
async fn load_turn(
    store: &dyn Store,
    defaults: &ReadingDefaults,
    stored_turn: TurnHistory,
) -> Result<Option<(String, TurnMessages)>, StoreError> {
    let TurnHistory { id, status, history, source } = stored_turn;
    if let Some(turn) = history {
        return Ok(serde_json::from_str(&turn).ok().map(|messages| (status, messages)));
    }
    // No history was stored, so it is rebuilt from the request and the summary of the record.
    let Some((request, summary)) = source else { return Ok(None) };
    if let Some(summary) = summary {
        return Ok(Some((
            status,
            TurnMessages::new(&request, &serde_json::from_str(&summary).unwrap_or_default()),
        )));
    }
    // Without a summary the record is not stored yet, but the log may already have the end.
    let fold = super::fold_log(store, &id).await?;
    let (status, record) = fold.into_record(Timings::default(), &request, defaults);
    Ok(Some((status.to_owned(), TurnMessages::new(&request, &record))))
}

/// Adds a text of the user. Merges it with an unanswered text before it, since not every model accepts two
/// user messages in a row; a repetition of the same text is left out.
fn push_user_text(messages: &mut Vec<Message>, text: String) {
    match messages.last_mut() {
        Some(Message { role, content: Some(Content::Text(last_text)), .. }) if role == "user" => {
            if *last_text != text {
                last_text.push_str("\n\n");
                last_text.push_str(&text);
            }
        }
        _ => messages.push(Message::new("user", text)),
    }
}
