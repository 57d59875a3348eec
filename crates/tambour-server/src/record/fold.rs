//! Folds the log of a message, entry by entry, into its record.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tambour::Options;
use tambour::event::{ToolCall, ToolResult};

use super::{
    ATTEMPT_ENTRY, PROMPT_ENTRY, ROUND_ENTRY, STATE_ENTRY, StateEntry, Timings, ToolResultsEntry,
    UPSTREAM_ENTRY,
};
use crate::config::reading_defaults::ReadingDefaults;
use crate::record::history::HistoryWriter;
use crate::store::batch::LOST_ENTRY;
use crate::store::{Batch, Lease, LogEntryKind, Store, StoreError, StoredUpdate};

/// Bytes of a log read at once.
const READ_BYTES: usize = 1 << 20;

/// Folded log.
#[derive(Debug, Default)]
pub(crate) struct LogFold {
    pub(crate) reply: String,
    reasoning: String,
    /// Events as `{event, data}`, with adjacent deltas merged.
    pub(super) events: Vec<Value>,
    findings: Vec<Value>,
    /// Discarded replies.
    discarded: Vec<Value>,
    /// Replies of a tool loop that called tools.
    rounds: Vec<FoldedRound>,
    /// Calls of the last reply.
    pub(super) calls: Vec<ToolCall>,
    /// `completed` or `error`, once read.
    pub(super) end_event: Option<(String, Value)>,
    pub(super) last_entry: u64,
    seq: u64,
    /// Prompt as sent.
    prompt: Value,
    /// Fields of the fallback that was used, if any.
    chosen_fields: Map<String, Value>,
    /// Updates of the conversation's state.
    pub(super) updates: Vec<StoredUpdate>,
    /// Bytes of the log.
    pub(super) size: usize,
}

/// Text of an entry.
#[derive(Default, Deserialize)]
struct EntryText<'a>(#[serde(borrow)] Cow<'a, str>);

/// Data of an event that carries a piece of text.
#[derive(Deserialize)]
struct TextPiece<'a> {
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
struct FoldedRound {
    /// End offset of the reply in the whole text.
    end: usize,
    /// Tool results sent to the model.
    tool_results: String,
    /// History text, where it differs from the reply.
    history: Option<String>,
}

/// Reads and folds the whole log of a message.
pub(crate) async fn fold_log(store: &dyn Store, id: &str) -> Result<LogFold, StoreError> {
    let mut fold = LogFold::default();
    loop {
        let (batches, _) = store.read(id, fold.last_entry, READ_BYTES).await?;
        if batches.is_empty() {
            return Ok(fold);
        }
        for batch in &batches {
            fold.add(batch);
        }
    }
}

/// Reads and folds the whole log of a run, including entries not yet visible to readers.
pub(crate) async fn fold_run_log(lease: &dyn Lease) -> Result<LogFold, StoreError> {
    let mut fold = LogFold::default();
    loop {
        let batches = lease.read(fold.last_entry, READ_BYTES).await?;
        if batches.is_empty() {
            return Ok(fold);
        }
        for batch in &batches {
            fold.add(batch);
        }
    }
}

impl LogFold {
    pub(super) fn add(&mut self, batch: &Batch) {
        for entry in batch.entries() {
            let text = || serde_json::from_str::<EntryText<'_>>(entry.json).unwrap_or_default().0;
            match entry.kind {
                LogEntryKind::Raw(seq) => {
                    self.seq = seq;
                    self.reply.push_str(&text());
                }
                LogEntryKind::Reasoning => self.reasoning.push_str(&text()),
                LogEntryKind::Event(name) if self.append_to_last(name, entry.json) => {}
                LogEntryKind::Event(name) => self.add_event(name, entry.json),
            }
        }
        self.last_entry = batch.last();
        self.size += batch.body().len();
    }

    /// Appends a piece of text to the last event if it continues that. Most of a log is such pieces, so no
    /// JSON tree is built for them.
    fn append_to_last(&mut self, name: &str, json: &str) -> bool {
        if !matches!(name, "final_delta" | "phase_delta" | "draft_delta" | "aside") {
            return false;
        }
        let Some(Value::Object(last)) = self.events.last_mut() else { return false };
        if last.get("event").and_then(Value::as_str) != Some(name) {
            return false;
        }
        let Some(before) = last.get_mut("data") else { return false };
        let Ok(piece) = serde_json::from_str::<TextPiece<'_>>(json) else { return false };
        // Thoughts stream; comments are whole.
        if name == "aside" && piece.kind.as_deref() != Some("thought") {
            return false;
        }
        let is_same = before["id"].as_u64() == piece.id && before["kind"].as_str() == piece.kind.as_deref();
        match before.get_mut("text") {
            Some(Value::String(before)) if is_same => {
                before.push_str(&piece.text);
                true
            }
            _ => false,
        }
    }

    fn add_event(&mut self, name: &str, json: &str) {
        if name == STATE_ENTRY {
            let Ok(StateEntry { start, applied }) = serde_json::from_str(json) else { return };
            let position = start + i64::try_from(self.updates.len()).unwrap_or(i64::MAX);
            return self.updates.push(StoredUpdate { position, applied: applied.get().to_owned() });
        }
        let data: Value = serde_json::from_str(json).unwrap_or_default();
        match name {
            "finding" => return self.findings.push(data),
            PROMPT_ENTRY => return self.prompt = data,
            UPSTREAM_ENTRY => return self.chosen_fields = serde_json::from_value(data).unwrap_or_default(),
            ATTEMPT_ENTRY => return self.discarded.push(data),
            ROUND_ENTRY => {
                let Ok(ToolResultsEntry { told: tool_results, history }) = serde_json::from_value(data)
                else {
                    return;
                };
                self.calls.clear();
                return self.rounds.push(FoldedRound { end: self.reply.len(), tool_results, history });
            }
            "tool_call" => self.calls.extend(serde_json::from_value::<ToolCall>(data.clone())),
            // Transient status, and placeholders of lost entries.
            "status" | LOST_ENTRY => return,
            "completed" | "error" => {
                self.end_event = Some((name.to_owned(), data));
                return;
            }
            _ => {}
        }
        self.events.push(json!({"event": name, "data": data}));
    }

    /// Returns the writer for the history of the final reply.
    pub(super) fn history_writer(&self, request: &str, defaults: &ReadingDefaults) -> HistoryWriter {
        let (dialect, options) = self.reply_options(request, defaults);
        HistoryWriter::new(&dialect, &options)
    }

    /// Returns dialect and options of the final reply.
    pub(super) fn reply_options(&self, request: &str, defaults: &ReadingDefaults) -> (String, Options) {
        if self.chosen_fields.is_empty() {
            return defaults.stored_options(request);
        }
        let mut request: Map<String, Value> = serde_json::from_str(request).unwrap_or_default();
        request.extend(self.chosen_fields.clone());
        defaults.stored_options(&Value::Object(request).to_string())
    }

    /// Returns the status of the message.
    fn status(&self) -> &'static str {
        match &self.end_event {
            None => "running",
            Some((name, _)) if name == "error" => "failed",
            Some((_, data)) if data["finish_reason"] == "cancelled" => "cancelled",
            Some(_) => "completed",
        }
    }

    /// Returns the number of the entry that ended the message, if it is an `error`.
    pub(crate) fn error_number(&self) -> Option<u64> {
        self.end_event.as_ref().filter(|(name, _)| name == "error").map(|_| self.last_entry)
    }

    /// Returns `true` if the message has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.end_event.is_some()
    }

    /// Returns the replies of a tool loop, each with the tool results sent after it and its history text
    /// where that differs from the reply.
    fn round_records(&self, last: Option<Value>) -> Vec<Value> {
        let mut from = 0;
        let mut records: Vec<Value> = self
            .rounds
            .iter()
            .map(|turn| {
                let reply = self.reply[from..turn.end].trim_end_matches('\n');
                from = turn.end;
                let mut records = json!({"reply": reply, "told": turn.tool_results});
                if let Some(history) = &turn.history {
                    records["history"] = history.as_str().into();
                }
                records
            })
            .collect();
        let mut end = json!({"reply": self.reply[from..]});
        if let Some(history) = last {
            end["history"] = history;
        }
        records.push(end);
        records
    }

    /// Returns the text of the answer.
    fn answer(&self) -> String {
        let deltas = self.events.iter().filter(|event| event["event"] == "final_delta");
        deltas.filter_map(|event| event["data"]["text"].as_str()).collect()
    }

    /// Returns the last reply.
    pub(super) fn last_reply(&self) -> &str {
        &self.reply[self.rounds.last().map_or(0, |turn| turn.end)..]
    }

    /// Returns the history text of the last reply: `None` if it equals the reply, `null` if the model
    /// is shown nothing of it.
    fn history_text(&self, history: &HistoryWriter) -> Option<Value> {
        let reason = match &self.end_event {
            Some((name, end)) if name == "completed" => end["finish_reason"].as_str().unwrap_or_default(),
            _ => "",
        };
        let is_truncated =
            self.end_event.as_ref().is_some_and(|(_, end)| end["metadata"]["truncated"] == true);
        let cut = is_truncated || !matches!(reason, "stop" | "tool_calls");
        // Calls without results sent to the model cannot be continued.
        let has_unreported_calls = history.has_tool_loop && !self.calls.is_empty();
        let reply = if has_unreported_calls {
            None
        } else {
            history.render_reply(self.last_reply(), &self.calls, cut)
        };
        match reply {
            Some(text) if text == self.last_reply() => None,
            Some(text) => Some(text.into()),
            // Nothing of it was used. Known tool results still need a closing reply.
            None if !matches!(reason, "" | "cancelled") || !self.rounds.is_empty() => {
                let answer_text = self.answer();
                Some(if answer_text.is_empty() { Value::Null } else { answer_text.into() })
            }
            None => Some(Value::Null),
        }
    }

    /// Returns the result of a call; without one, whether the call has begun.
    pub(super) fn result_of_call(&self, call_id: &str) -> Result<ToolResult, bool> {
        let mut call_events = self.events.iter().filter(|event| event["data"]["call_id"] == call_id);
        let found = call_events.clone().find(|event| event["event"] == "tool_result");
        let result = found.and_then(|event| serde_json::from_value(event["data"].clone()).ok());
        result.ok_or_else(|| call_events.any(|event| event["event"] == "tool_start"))
    }

    /// Builds the record of a message with this `request`, without the fields of its row.
    pub(crate) fn into_record(
        self,
        timings: Timings,
        request: &str,
        defaults: &ReadingDefaults,
    ) -> (&'static str, Value) {
        let status = self.status();
        let history =
            if self.has_ended() { self.history_text(&self.history_writer(request, defaults)) } else { None };
        let (reply, history) =
            if self.rounds.is_empty() { (Vec::new(), history) } else { (self.round_records(history), None) };
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
        for (name, list) in [("turns", reply), ("attempts", self.discarded)] {
            if !list.is_empty() {
                record.insert(name.into(), list.into());
            }
        }
        if !self.prompt.is_null() {
            record.insert("prompt".into(), self.prompt);
        }
        record.insert("events".into(), self.events.into());
        record.insert("findings".into(), self.findings.into());
        match self.end_event {
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
