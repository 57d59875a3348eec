//! What goes back to the model in a conversation: each reply in its repaired form without drafts, so that the model sees how
//! it should have written; of one of which nothing was used, what the user saw, or nothing.

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

/// Reads the replies of a message again, to write them as they should have been.
pub(crate) struct Again {
    dialect: String,
    options: Options,
    /// Whether a tool loop ran their calls.
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

    /// What stands for a reply that made these calls; `None` when nothing of it was used. `cut`: it did not end by itself.
    pub(crate) fn reply(&self, raw: &str, calls: &[ToolCall], cut: bool) -> Option<String> {
        let mut options = self.options.clone();
        options.tools = Some(accepted(calls));
        let pipeline = Pipeline::new(&self.dialect, &options).or_else(|_| Pipeline::new("plain", &options));
        let mut pipeline = pipeline.ok()?.with_extensions(true);
        let mut read = Read::default();
        // The text that came with the limit is on the log whole.
        let raw = &raw[..raw.floor_char_boundary(self.options.limits.input)];
        pipeline.push_str(raw, &mut read);
        let reason = if cut { FinishReason::Length } else { FinishReason::Stop };
        pipeline.finish(&End::Finished(reason), &mut read);
        let metadata = &pipeline.outcome().metadata;
        if metadata.fallback_reason.is_some() {
            return None;
        }
        // Prose goes back as it is, not in the form of what it is not; of plain text the answer alone, since its reasoning
        // is nothing but a draft.
        if metadata.unused_reason.is_some() || metadata.dialect == "plain" {
            return Some(answer(&read.events));
        }
        // Word for word where nothing is to be mended: a model that has read it before need not do so again.
        if metadata.repairs == 0 && metadata.warnings == 0 && !read.draft {
            return Some(raw.to_owned());
        }
        Some(pipeline.written(&read.events).unwrap_or_else(|| raw.to_owned()))
    }
}

/// Tools that take the calls that were made, and nothing else: what was accepted then is accepted again, whatever has
/// become of the tools since.
fn accepted(calls: &[ToolCall]) -> Tools {
    let mut by_name: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for call in calls {
        by_name.entry(&call.name).or_default().push(&call.args);
    }
    Tools::new(by_name.into_iter().map(|(name, args)| {
        // Each call is compared with all of them.
        let schema = if args.len() > EXACT { json!({}) } else { json!({ "enum": args }) };
        let mut tool = Tool::trusted(name, schema);
        tool.read_only = true;
        tool
    }))
}

/// Calls of one tool that are told from those that were refused.
const EXACT: usize = 128;

/// The answer among the events of a reply.
fn answer(events: &[Event<'_>]) -> String {
    let text = |event: &Event<'_>| match event {
        Event::FinalDelta { text } => Some(text.to_string()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

/// Events without drafts, neighbouring deltas joined.
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

/// The replies of a message as its record has them, and between those of a tool loop what the model was told.
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

/// What a message adds to its conversation.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Said {
    /// The user's words.
    #[serde(default)]
    text: Option<String>,
    /// The whole prompt: what was said before is what it says.
    #[serde(default)]
    messages: Option<Vec<Message>>,
    /// What stands for the replies.
    #[serde(default)]
    replies: Vec<Message>,
}

impl Said {
    /// What a request said, and the replies of its record.
    pub(crate) fn new(request: &str, record: &Value) -> Said {
        let mut said: Said = serde_json::from_str(request).unwrap_or_default();
        if said.text.is_none() && said.messages.is_none() {
            said.text = last(request);
        }
        Said { replies: replies(record), ..said }
    }
}

/// A prompt as it was sent. Earlier messages are named, not repeated: what is deleted is gone from here too.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sent {
    /// What went before everything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) system: Option<String>,
    /// Earlier messages of the conversation, oldest first, by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) before: Vec<String>,
    /// The user's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    /// The whole prompt by role, in the place of both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) messages: Option<Vec<Message>>,
}

/// The user's words at the end of the history of a prompt of blocks, which a later message is to know.
fn last(request: &str) -> Option<String> {
    let request: Value = serde_json::from_str(request).ok()?;
    let lines = request["context"]["history"].as_array()?;
    lines.iter().rev().find(|line| line["role"] == "user")?["content"].as_str().map(str::to_owned)
}

impl Sent {
    /// The messages of the prompt, as far as they are still there.
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

    /// The messages of the prompt, with what the earlier ones add.
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

/// Puts what was said before the message in its conversation in front of a prompt, as far as there is room for it.
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
        // Who asks again after a failure asks the same; what cannot be answered must not be asked for ever.
        if status == "running" || (status == "failed" && turn.replies.is_empty()) {
            continue;
        }
        // It is the whole prompt: what was said before is what it says.
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

/// How a message ended, and what it adds.
async fn turn(app: &App, kept: Turn) -> Result<Option<(String, Said)>, StoreError> {
    let Turn { id, status, turn, made_from } = kept;
    if let Some(turn) = turn {
        return Ok(serde_json::from_str(&turn).ok().map(|said| (status, said)));
    }
    let Some((request, summary)) = made_from else { return Ok(None) };
    if let Some(summary) = summary {
        return Ok(Some((status, Said::new(&request, &serde_json::from_str(&summary).unwrap_or_default()))));
    }
    // Its end may be on the log already, and the record not yet made.
    let fold = record::fold(&*app.store, &id).await?;
    let (status, record) = fold.into_record(Timings::default(), &request, &app.own());
    Ok(Some((status.to_owned(), Said::new(&request, &record))))
}

/// Adds words of the user. Those that have not been answered and those that follow them are one message, since not every model takes
/// two in a row.
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
