//! Folds the log of a message, entry by entry, into its record.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tambour::Options;
use tambour::event::{ToolCall, ToolResult};

use super::{ATTEMPT, Applied, Between, CHOICE, PROMPT, STATE, TURN, Timings};
use crate::history::Again;
use crate::reading::Own;
use crate::store::batch::LOST;
use crate::store::{Batch, Kind, Lease, Store, StoreError, Update};

/// Bytes of a log read at once.
const PIECE: usize = 1 << 20;

/// Folded log.
#[derive(Debug, Default)]
pub(crate) struct Fold {
    pub(crate) reply: String,
    reasoning: String,
    /// Events as `{event, data}`, with adjacent deltas merged.
    pub(super) events: Vec<Value>,
    findings: Vec<Value>,
    /// Discarded replies.
    attempts: Vec<Value>,
    /// Replies of a tool loop that called tools.
    turns: Vec<Turn>,
    /// Calls of the last reply.
    pub(super) calls: Vec<ToolCall>,
    /// `completed` or `error`, once read.
    pub(super) end: Option<(String, Value)>,
    pub(super) last: u64,
    seq: u64,
    /// Prompt as sent.
    prompt: Value,
    /// Fields of the fallback that was used, if any.
    choice: Map<String, Value>,
    /// Updates of the conversation's state.
    pub(super) updates: Vec<Update>,
    /// Bytes of the log.
    pub(super) size: usize,
}

/// Text of an entry.
#[derive(Default, Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Data of an event that carries a piece of text.
#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
    /// Id of its phase.
    #[serde(default)]
    id: Option<u64>,
    /// Kind of an aside.
    #[serde(borrow, default)]
    kind: Option<Cow<'a, str>>,
}

/// Reply that called tools.
#[derive(Debug)]
struct Turn {
    /// End offset of the reply in the whole text.
    end: usize,
    /// Tool results sent to the model.
    told: String,
    /// History text, where it differs from the reply.
    history: Option<String>,
}

/// Reads and folds the whole log of a message.
pub(crate) async fn fold(store: &dyn Store, id: &str) -> Result<Fold, StoreError> {
    let mut fold = Fold::default();
    loop {
        let (batches, _) = store.read(id, fold.last, PIECE).await?;
        if batches.is_empty() {
            return Ok(fold);
        }
        for batch in &batches {
            fold.add(batch);
        }
    }
}

/// Reads and folds the whole log of a run, including entries not yet visible to readers.
pub(crate) async fn fold_own(lease: &dyn Lease) -> Result<Fold, StoreError> {
    let mut fold = Fold::default();
    loop {
        let batches = lease.read(fold.last, PIECE).await?;
        if batches.is_empty() {
            return Ok(fold);
        }
        for batch in &batches {
            fold.add(batch);
        }
    }
}

impl Fold {
    pub(super) fn add(&mut self, batch: &Batch) {
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

    /// Appends a piece of text to the last event if it continues that. Most of a log is such pieces, so no
    /// JSON tree is built for them.
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
        // Thoughts stream; comments are whole.
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
            // Transient status, and placeholders of lost entries.
            "status" | LOST => return,
            "completed" | "error" => {
                self.end = Some((name.to_owned(), data));
                return;
            }
            _ => {}
        }
        self.events.push(json!({"event": name, "data": data}));
    }

    /// Returns the writer for the history of the final reply.
    pub(super) fn again(&self, request: &str, own: &Own) -> Again {
        let (dialect, options) = self.reading(request, own);
        Again::new(&dialect, &options)
    }

    /// Returns dialect and options of the final reply.
    pub(super) fn reading(&self, request: &str, own: &Own) -> (String, Options) {
        if self.choice.is_empty() {
            return own.of_request(request);
        }
        let mut request: Map<String, Value> = serde_json::from_str(request).unwrap_or_default();
        request.extend(self.choice.clone());
        own.of_request(&Value::Object(request).to_string())
    }

    /// Returns the status of the message.
    fn status(&self) -> &'static str {
        match &self.end {
            None => "running",
            Some((name, _)) if name == "error" => "failed",
            Some((_, data)) if data["finish_reason"] == "cancelled" => "cancelled",
            Some(_) => "completed",
        }
    }

    /// Returns the number of the entry that ended the message, if it is an `error`.
    pub(crate) fn error_number(&self) -> Option<u64> {
        self.end.as_ref().filter(|(name, _)| name == "error").map(|_| self.last)
    }

    /// Returns `true` if the message has ended.
    pub(crate) fn ended(&self) -> bool {
        self.end.is_some()
    }

    /// Returns the replies of a tool loop, each with the tool results sent after it and its history text
    /// where that differs from the reply.
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

    /// Returns the text of the answer.
    fn answer(&self) -> String {
        let deltas = self.events.iter().filter(|event| event["event"] == "final_delta");
        deltas.filter_map(|event| event["data"]["text"].as_str()).collect()
    }

    /// Returns the last reply.
    pub(super) fn last(&self) -> &str {
        &self.reply[self.turns.last().map_or(0, |turn| turn.end)..]
    }

    /// Returns the history text of the last reply: `None` if it equals the reply, `null` if the model
    /// is shown nothing of it.
    fn history(&self, again: &Again) -> Option<Value> {
        let reason = match &self.end {
            Some((name, end)) if name == "completed" => end["finish_reason"].as_str().unwrap_or_default(),
            _ => "",
        };
        let truncated = self.end.as_ref().is_some_and(|(_, end)| end["metadata"]["truncated"] == true);
        let cut = truncated || !matches!(reason, "stop" | "tool_calls");
        // Calls without results sent to the model cannot be continued.
        let untold = again.looping && !self.calls.is_empty();
        let reply = if untold { None } else { again.reply(self.last(), &self.calls, cut) };
        match reply {
            Some(text) if text == self.last() => None,
            Some(text) => Some(text.into()),
            // Nothing of it was used. Known tool results still need a closing reply.
            None if !matches!(reason, "" | "cancelled") || !self.turns.is_empty() => {
                let seen = self.answer();
                Some(if seen.is_empty() { Value::Null } else { seen.into() })
            }
            None => Some(Value::Null),
        }
    }

    /// Returns the result of a call; without one, whether the call has begun.
    pub(super) fn result(&self, call_id: &str) -> Result<ToolResult, bool> {
        let mut of_call = self.events.iter().filter(|event| event["data"]["call_id"] == call_id);
        let found = of_call.clone().find(|event| event["event"] == "tool_result");
        let result = found.and_then(|event| serde_json::from_value(event["data"].clone()).ok());
        result.ok_or_else(|| of_call.any(|event| event["event"] == "tool_start"))
    }

    /// Builds the record of a message with this `request`, without the fields of its row.
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
