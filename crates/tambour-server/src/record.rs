//! What came of a message, made from its log and its request alone; making it again gives the same.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tambour::event::{Failure, ToolCall, ToolResult};
use tambour::options::Language;
use tambour::sequence::Sequencer;
use tambour::{Event, Options};

use crate::drive::interrupted;
use crate::history::{Again, Said, Sent};
use crate::reading::Own;
use crate::store::{Batch, Kind, MessageRow, Outcome, Store, StoreError, Update};
use crate::tools::{self, Trouble};

/// How long things took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Timings {
    /// From the request to the first item of the upstream.
    pub first_byte_ms: Option<u64>,
    /// From the request to the end.
    pub total_ms: u64,
}

/// Name of the log's entries that keep an attempt that was thrown away (P-034). No client is sent them.
pub(crate) const ATTEMPT: &str = "attempt";

/// Name of the log's entries between two replies of a tool loop. No client is sent them either.
pub(crate) const TURN: &str = "turn";

/// Name of the log's entries that keep what was applied to the state of the conversation, right behind its event. No client
/// is sent them.
pub(crate) const STATE: &str = "state";

/// Name of the log's entry of who is asked now, and how that one writes, since nothing that can be used came before. No client is
/// sent it.
const CHOICE: &str = "upstream";

/// Name of the log's entry that keeps the prompt as it was sent. No client is sent it.
const PROMPT: &str = "prompt";

/// The entry of a prompt.
pub(crate) fn prompt(number: u64, sent: &Sent) -> Batch {
    let mut batch = Batch::new(number);
    batch.event(PROMPT, |out| out.extend_from_slice(json!(sent).to_string().as_bytes()));
    batch
}

/// Puts down who is asked now, and how that one writes: fields of the request in the place of what it says.
pub(crate) fn choice(chosen: &Value, batch: &mut Batch) {
    batch.event(CHOICE, |out| out.extend_from_slice(chosen.to_string().as_bytes()));
}

/// A log folded.
#[derive(Debug, Default)]
pub(crate) struct Fold {
    pub(crate) reply: String,
    reasoning: String,
    /// Events with neighbouring deltas joined, as `{event, data}`.
    events: Vec<Value>,
    findings: Vec<Value>,
    /// Replies that were thrown away.
    attempts: Vec<Value>,
    /// Replies of a tool loop that called tools.
    turns: Vec<Turn>,
    /// Calls of the reply after them, or of the one that there is.
    calls: Vec<ToolCall>,
    /// `completed` or `error`, when it has come.
    end: Option<(String, Value)>,
    last: u64,
    seq: u64,
    /// The prompt as it was sent.
    prompt: Value,
    /// Who was asked in the end, where it was not who was to be asked first.
    choice: Map<String, Value>,
    /// What was applied to the state of the conversation.
    updates: Vec<Update>,
    /// Bytes of the log.
    size: usize,
}

/// Text of an entry.
#[derive(Default, Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The data of an event that is a piece of a longer text.
#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
    /// Of its phase.
    #[serde(default)]
    id: Option<u64>,
    /// Of an aside.
    #[serde(borrow, default)]
    kind: Option<Cow<'a, str>>,
}

/// The data of an entry of an update of the state.
#[derive(Serialize, Deserialize)]
struct Applied<'a> {
    /// Position of the first update of the message within its conversation.
    start: i64,
    #[serde(borrow)]
    applied: &'a RawValue,
}

/// The entry of an update of the state.
pub(crate) fn applied(start: i64, applied: &tambour::state::Applied, batch: &mut Batch) {
    batch.event(STATE, |out| {
        out.extend_from_slice(json!({"start": start, "applied": applied}).to_string().as_bytes())
    });
}

/// A reply that called tools.
#[derive(Debug)]
struct Turn {
    /// Where it ends.
    end: usize,
    /// What the model was told after it.
    told: String,
    /// What stands for it in a conversation, where it is not the reply itself.
    history: Option<String>,
}

/// The data of an entry between two replies.
#[derive(Serialize, Deserialize)]
pub(crate) struct Between {
    /// What the model is told.
    pub(crate) told: String,
    /// What stands for the reply before in a conversation, where it is not the reply itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) history: Option<String>,
}

/// Bytes of a log read at once.
const PIECE: usize = 1 << 20;

/// Reads and folds the whole log of a message.
pub(crate) async fn fold(store: &dyn Store, id: &str) -> Result<Fold, StoreError> {
    let mut fold = Fold::default();
    loop {
        let batches = store.read(id, fold.last, PIECE).await?;
        if batches.is_empty() {
            return Ok(fold);
        }
        for batch in &batches {
            fold.add(batch);
        }
    }
}

impl Fold {
    fn add(&mut self, batch: &Batch) {
        for entry in batch.entries() {
            let text = || serde_json::from_str::<Text<'_>>(entry.json).unwrap_or_default().0;
            match entry.kind {
                Kind::Raw(seq) => {
                    self.seq = seq;
                    self.reply.push_str(&text());
                }
                Kind::Reasoning => self.reasoning.push_str(&text()),
                Kind::Event(name) if self.joins(name, entry.json) => {}
                Kind::Event(name) => self.event(name, entry.json),
            }
        }
        self.last = batch.last();
        self.size += batch.body().len();
    }

    /// Adds a piece of text to the one before it, if it goes on with that. Most of a log is such pieces: no tree is made of them.
    fn joins(&mut self, name: &str, json: &str) -> bool {
        if !matches!(name, "final_delta" | "phase_delta" | "draft_delta" | "aside") {
            return false;
        }
        let Some(Value::Object(last)) = self.events.last_mut() else { return false };
        if last.get("event").and_then(Value::as_str) != Some(name) {
            return false;
        }
        let Some(before) = last.get_mut("data") else { return false };
        let Ok(piece) = serde_json::from_str::<Piece<'_>>(json) else { return false };
        // Thoughts stream; comments come whole.
        if name == "aside" && piece.kind.as_deref() != Some("thought") {
            return false;
        }
        let same = before["id"].as_u64() == piece.id && before["kind"].as_str() == piece.kind.as_deref();
        match before.get_mut("text") {
            Some(Value::String(before)) if same => {
                before.push_str(&piece.text);
                true
            }
            _ => false,
        }
    }

    fn event(&mut self, name: &str, json: &str) {
        if name == STATE {
            let Ok(Applied { start, applied }) = serde_json::from_str(json) else { return };
            let position = start + i64::try_from(self.updates.len()).unwrap_or(i64::MAX);
            return self.updates.push(Update { position, applied: applied.get().to_owned() });
        }
        let data: Value = serde_json::from_str(json).unwrap_or_default();
        match name {
            "finding" => return self.findings.push(data),
            PROMPT => return self.prompt = data,
            CHOICE => return self.choice = serde_json::from_value(data).unwrap_or_default(),
            ATTEMPT => return self.attempts.push(data),
            TURN => {
                let Ok(Between { told, history }) = serde_json::from_value(data) else { return };
                self.calls.clear();
                return self.turns.push(Turn { end: self.reply.len(), told, history });
            }
            "tool_call" => self.calls.extend(serde_json::from_value::<ToolCall>(data.clone())),
            // A word for those who read at that moment.
            "status" => return,
            "completed" | "error" => {
                self.end = Some((name.to_owned(), data));
                return;
            }
            _ => {}
        }
        self.events.push(json!({"event": name, "data": data}));
    }

    /// How the reply is written again that came in the end.
    fn again(&self, request: &str, own: &Own) -> Again {
        let (dialect, options) = self.reading(request, own);
        Again::new(&dialect, &options)
    }

    /// Dialect and options of the reply that came in the end.
    fn reading(&self, request: &str, own: &Own) -> (String, Options) {
        if self.choice.is_empty() {
            return own.of_request(request);
        }
        let mut request: Map<String, Value> = serde_json::from_str(request).unwrap_or_default();
        request.extend(self.choice.clone());
        own.of_request(&Value::Object(request).to_string())
    }

    /// How the message ended.
    fn status(&self) -> &'static str {
        match &self.end {
            None => "running",
            Some((name, _)) if name == "error" => "failed",
            Some((_, data)) if data["finish_reason"] == "cancelled" => "cancelled",
            Some(_) => "completed",
        }
    }

    /// Whether the message has ended.
    pub(crate) fn ended(&self) -> bool {
        self.end.is_some()
    }

    /// The replies of a tool loop, each with what the model was told after it, and with what stands for it in a
    /// conversation, where it is not the reply itself.
    fn said(&self, last: Option<Value>) -> Vec<Value> {
        let mut from = 0;
        let mut said: Vec<Value> = self
            .turns
            .iter()
            .map(|turn| {
                let reply = self.reply[from..turn.end].trim_end_matches('\n');
                from = turn.end;
                let mut said = json!({"reply": reply, "told": turn.told});
                if let Some(history) = &turn.history {
                    said["history"] = history.as_str().into();
                }
                said
            })
            .collect();
        let mut end = json!({"reply": self.reply[from..]});
        if let Some(history) = last {
            end["history"] = history;
        }
        said.push(end);
        said
    }

    /// The text of the answer.
    fn answer(&self) -> String {
        let deltas = self.events.iter().filter(|event| event["event"] == "final_delta");
        deltas.filter_map(|event| event["data"]["text"].as_str()).collect()
    }

    /// The last reply.
    fn last(&self) -> &str {
        &self.reply[self.turns.last().map_or(0, |turn| turn.end)..]
    }

    /// What stands for the last reply in a conversation: nothing where it is the reply itself, `null` when the model is
    /// told nothing of it.
    fn history(&self, again: &Again) -> Option<Value> {
        let reason = match &self.end {
            Some((name, end)) if name == "completed" => end["finish_reason"].as_str().unwrap_or_default(),
            _ => "",
        };
        let cut = !matches!(reason, "stop" | "tool_calls");
        // Calls that the model was not told of are nothing to go on with.
        let untold = again.looping && !self.calls.is_empty();
        let reply = if untold { None } else { again.reply(self.last(), &self.calls, cut) };
        match reply {
            Some(text) if text == self.last() => None,
            Some(text) => Some(text.into()),
            // Nothing of it was used. What calls came to is known, and needs a last word.
            None if !matches!(reason, "" | "cancelled") || !self.turns.is_empty() => {
                let seen = self.answer();
                Some(if seen.is_empty() { Value::Null } else { seen.into() })
            }
            None => Some(Value::Null),
        }
    }

    /// The result of a call; or whether it has begun, when there is none.
    fn result(&self, call_id: &str) -> Result<ToolResult, bool> {
        let mut of_call = self.events.iter().filter(|event| event["data"]["call_id"] == call_id);
        let found = of_call.clone().find(|event| event["event"] == "tool_result");
        let result = found.and_then(|event| serde_json::from_value(event["data"].clone()).ok());
        result.ok_or_else(|| of_call.any(|event| event["event"] == "tool_start"))
    }

    /// The record of what was asked for by `request`, without what the row has.
    pub(crate) fn into_record(self, timings: Timings, request: &str, own: &Own) -> (&'static str, Value) {
        let status = self.status();
        let history = if self.ended() { self.history(&self.again(request, own)) } else { None };
        let (said, history) =
            if self.turns.is_empty() { (Vec::new(), history) } else { (self.said(history), None) };
        let answer = self.answer();
        let mut record = Map::new();
        record.insert("reply".into(), self.reply.into());
        record.insert("answer".into(), answer.into());
        if let Some(history) = history {
            record.insert("history".into(), history);
        }
        if !self.reasoning.is_empty() {
            record.insert("reasoning".into(), self.reasoning.into());
        }
        for (name, list) in [("turns", said), ("attempts", self.attempts)] {
            if !list.is_empty() {
                record.insert(name.into(), list.into());
            }
        }
        if !self.prompt.is_null() {
            record.insert("prompt".into(), self.prompt);
        }
        record.insert("events".into(), self.events.into());
        record.insert("findings".into(), self.findings.into());
        match self.end {
            Some((name, data)) if name == "error" => {
                record.insert("error".into(), data);
            }
            Some((_, mut data)) => {
                for field in ["usage", "finish_reason", "metadata"] {
                    record.insert(field.into(), data[field].take());
                }
            }
            None => {}
        }
        record.insert("timings".into(), json!(timings));
        (status, record.into())
    }
}

/// Stores the record of a message whose log has ended.
pub(crate) async fn materialise(
    store: &dyn Store,
    row: &MessageRow,
    timings: Timings,
    own: &Own,
) -> Result<&'static str, StoreError> {
    let mut fold = fold(store, &row.id).await?;
    let size = fold.size;
    let updates = std::mem::take(&mut fold.updates);
    let (status, record) = fold.into_record(timings, &row.request, own);
    // A log without an end is closed at the next start.
    if status != "running" {
        let mut outcome = outcome(row, record, size);
        // Who asks again after a failure would have them twice.
        if status != "failed" {
            outcome.size += updates.iter().map(|update| update.applied.len() as u64).sum::<u64>();
            outcome.updates = updates;
        }
        store.finish_message(row, status, outcome)?;
    }
    Ok(status)
}

/// What is kept of a record: what listings show, and what they do not.
fn outcome(row: &MessageRow, mut record: Value, size: usize) -> Outcome {
    let turn = json!(Said::new(&row.request, &record));
    let mut details = Map::new();
    for name in ["prompt", "events", "findings"] {
        if let Some(part) = record.as_object_mut().and_then(|record| record.remove(name)) {
            details.insert(name.to_owned(), part);
        }
    }
    let (turn, summary, details) = (turn.to_string(), record.to_string(), Value::Object(details).to_string());
    let size = size + row.request.len() + turn.len() + summary.len() + details.len();
    Outcome { size: size as u64, turn: Some(turn), summary, details: Some(details), updates: Vec::new() }
}

/// Closes the messages that were running when the server stopped: the events that are missing, then one `error`.
pub(crate) async fn recover(store: &dyn Store, own: &Own) -> Result<usize, StoreError> {
    let rows = store.running().await?;
    let count = rows.len();
    for row in rows {
        close(store, &row, interrupted(), own).await?;
        materialise(store, &row, Timings::default(), own).await?;
    }
    Ok(count)
}

/// Ends a log that has no end: the events that are missing, then `error`.
pub(crate) async fn close(
    store: &dyn Store,
    row: &MessageRow,
    failure: Failure,
    own: &Own,
) -> Result<(), StoreError> {
    let folded = fold(store, &row.id).await?;
    if folded.end.is_some() {
        return Ok(());
    }
    let epoch = store.own().epoch;
    store.append(&row.id, epoch, closing(folded, row, own, failure)).await
}

/// The events that close a stream that was cut off, in the language of its request.
fn closing(mut folded: Fold, row: &MessageRow, own: &Own, failure: Failure) -> Batch {
    let mut batch = Batch::new(folded.last + 1);
    let (_, options) = folded.reading(&row.request, own);
    let mut sequencer = Sequencer::new(&options);
    for event in &folded.events {
        let name = event["event"].as_str().unwrap_or("");
        if let Some(event) = Event::parse(name, &event["data"]) {
            sequencer.observe(&event);
        }
    }
    // Without a tool loop nobody runs calls, and they have no results.
    if options.tool_loop && !folded.calls.is_empty() {
        let mut done = Vec::new();
        for call in std::mem::take(&mut folded.calls) {
            let result = folded.result(&call.call_id).unwrap_or_else(|begun| {
                let result = unanswered(&call.call_id, begun, options.texts.language);
                let event = Event::from(result.clone());
                batch.event(event.name(), |out| tambour::encode::data(&event, out));
                result
            });
            done.push((call, result));
        }
        // The next message of the conversation is told what is known of the calls.
        let calls: Vec<ToolCall> = done.iter().map(|(call, _)| call.clone()).collect();
        let told = tools::told(options.texts.language, &done, own.max_shown);
        between(folded.last(), &calls, &told, &folded.again(&row.request, own), &mut batch);
    }
    let mut send = |event: Event<'_>| batch.event(event.name(), |out| tambour::encode::data(&event, out));
    if sequencer.begun() {
        sequencer.finish(&mut send);
    }
    send(Event::Error(failure));
    batch
}

/// The result of a call that was open when the server stopped. It is never run again.
fn unanswered(call_id: &str, begun: bool, language: Language) -> ToolResult {
    let trouble = if begun { Trouble::Unknown } else { Trouble::ServerStopped };
    let error = Some(trouble.error(language));
    ToolResult { call_id: call_id.to_owned(), ok: false, result: None, error, elapsed_ms: 0 }
}

/// Puts what the model is told of the calls of a reply behind that reply, and gives what stands for the reply.
pub(crate) fn between(raw: &str, calls: &[ToolCall], told: &str, again: &Again, batch: &mut Batch) -> String {
    let raw = raw.trim_end_matches('\n');
    let history = again.reply(raw, calls, false).filter(|text| text != raw);
    let between = Between { told: told.to_owned(), history };
    batch.event(TURN, |out| out.extend_from_slice(json!(between).to_string().as_bytes()));
    between.history.unwrap_or_else(|| raw.to_owned())
}

#[cfg(test)]
mod tests;
