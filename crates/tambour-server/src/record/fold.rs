//! Folds the log of a message, entry by entry, into its record. The log may still grow: a message that runs
//! has a record too. In a tool loop, a round is a reply that called tools, with their results; the record
//! lists rounds as `turns`.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tambour::Options;
use tambour::event::{ToolCall, ToolResult};

use super::{
    ATTEMPT_ENTRY, PROMPT_ENTRY, READ_BYTES, STATE_ENTRY, StateEntry, TOOL_RESULTS_ENTRY, Timings,
    ToolResultsEntry, UPSTREAM_ENTRY,
};
use crate::config::reading_defaults::ReadingDefaults;
use crate::record::history::HistoryWriter;
use crate::store::batch::LOST_ENTRY;
use crate::store::{Batch, Lease, LogEntryKind, Store, StoreError, StoredUpdate};

/// Content collected from the log entries read so far.
#[derive(Debug, Default)]
pub(crate) struct LogFold {
    /// Replies as the model wrote them, one after another.
    pub(crate) reply: String,
    /// Reasoning that the upstream sent apart from the reply.
    reasoning: String,
    /// Events as `{event, data}`, with adjacent deltas merged.
    pub(super) events: Vec<Value>,
    findings: Vec<Value>,
    /// Entries of discarded replies.
    discarded_replies: Vec<Value>,
    /// Replies of a tool loop that called tools.
    rounds: Vec<FoldedRound>,
    /// Calls of the last reply.
    pub(super) calls: Vec<ToolCall>,
    /// Name and data of `completed` or `error`, once read.
    pub(super) end_event: Option<(String, Value)>,
    /// Number of the last entry read.
    pub(super) last_entry: u64,
    /// Prompt as sent.
    prompt: Value,
    /// Fields of the request that a fallback upstream overrides, with its values; empty without a fallback.
    fallback_fields: Map<String, Value>,
    /// Updates of the conversation's state.
    pub(super) updates: Vec<StoredUpdate>,
    /// Bytes of the log.
    pub(super) size: usize,
}

/// Text of an entry of the reply or reasoning: its JSON is a string.
#[derive(Default, Deserialize)]
struct EntryText<'a>(#[serde(borrow)] Cow<'a, str>);

/// Data of an event with a piece of text: a delta or an aside.
#[derive(Deserialize)]
struct TextPiece<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
    /// Id of the phase that the text belongs to.
    #[serde(default)]
    id: Option<u64>,
    /// Kind of an aside, such as `thought`.
    #[serde(borrow, default)]
    kind: Option<Cow<'a, str>>,
}

/// Reply that called tools.
#[derive(Debug)]
struct FoldedRound {
    /// Byte offset of its end in `LogFold::reply`.
    end: usize,
    /// Tool results sent to the model.
    tool_results: String,
    /// Text that later prompts show for the reply, if it differs from the reply.
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
    /// Adds the entries of the next batch.
    pub(super) fn add(&mut self, batch: &Batch) {
        for entry in batch.entries() {
            let text = || serde_json::from_str::<EntryText<'_>>(entry.json).unwrap_or_default().0;
            match entry.kind {
                LogEntryKind::Raw(_) => self.reply.push_str(&text()),
                LogEntryKind::Reasoning => self.reasoning.push_str(&text()),
                LogEntryKind::Event(name) if self.append_to_last(name, entry.json) => {}
                LogEntryKind::Event(name) => self.add_event(name, entry.json),
            }
        }
        self.last_entry = batch.last();
        self.size += batch.body().len();
    }

    /// Appends a piece of text to the last event if it continues that event; otherwise returns `false`. Most
    /// entries of a log are such pieces, so no JSON tree is built for them.
    fn append_to_last(&mut self, name: &str, json: &str) -> bool {
        if !matches!(name, "final_delta" | "phase_delta" | "draft_delta" | "aside") {
            return false;
        }
        let Some(Value::Object(last)) = self.events.last_mut() else { return false };
        if last.get("event").and_then(Value::as_str) != Some(name) {
            return false;
        }
        let Some(last_data) = last.get_mut("data") else { return false };
        let Ok(piece) = serde_json::from_str::<TextPiece<'_>>(json) else { return false };
        // Only thoughts come in pieces; every other aside is complete.
        if name == "aside" && piece.kind.as_deref() != Some("thought") {
            return false;
        }
        let continues_last =
            last_data["id"].as_u64() == piece.id && last_data["kind"].as_str() == piece.kind.as_deref();
        match last_data.get_mut("text") {
            Some(Value::String(last_text)) if continues_last => {
                last_text.push_str(&piece.text);
                true
            }
            _ => false,
        }
    }

    /// Adds an event, or another named entry, by its name and the JSON of its data.
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
            UPSTREAM_ENTRY => return self.fallback_fields = serde_json::from_value(data).unwrap_or_default(),
            ATTEMPT_ENTRY => return self.discarded_replies.push(data),
            TOOL_RESULTS_ENTRY => {
                let Ok(ToolResultsEntry { told: tool_results, history }) = serde_json::from_value(data)
                else {
                    return;
                };
                self.calls.clear();
                return self.rounds.push(FoldedRound { end: self.reply.len(), tool_results, history });
            }
            "tool_call" => self.calls.extend(serde_json::from_value::<ToolCall>(data.clone())),
            // A status is only of use while the message runs; a lost entry has no content.
            "status" | LOST_ENTRY => return,
            "completed" | "error" => {
                self.end_event = Some((name.to_owned(), data));
                return;
            }
            _ => {}
        }
        self.events.push(json!({"event": name, "data": data}));
    }

    /// Returns a writer of the history text, for the dialect and options of the final reply.
    pub(super) fn history_writer(&self, request: &str, defaults: &ReadingDefaults) -> HistoryWriter {
        let (dialect, options) = self.reply_options(request, defaults);
        HistoryWriter::new(&dialect, &options)
    }

    /// Returns dialect and options of the final reply: those of the request, unless a fallback overrides
    /// them.
    pub(super) fn reply_options(&self, request: &str, defaults: &ReadingDefaults) -> (String, Options) {
        if self.fallback_fields.is_empty() {
            return defaults.stored_options(request);
        }
        let mut request: Map<String, Value> = serde_json::from_str(request).unwrap_or_default();
        request.extend(self.fallback_fields.clone());
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

    /// Returns the number of the last entry if the message ended with an `error`.
    pub(crate) fn error_entry_number(&self) -> Option<u64> {
        self.end_event.as_ref().filter(|(name, _)| name == "error").map(|_| self.last_entry)
    }

    /// Returns `true` if the message has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.end_event.is_some()
    }

    /// Returns the replies of a tool loop, each with its history text if that differs from the reply, and all
    /// but the last with the tool results sent after them. `last_history` is the history text of the last
    /// reply.
    fn round_records(&self, last_history: Option<Value>) -> Vec<Value> {
        let mut start = 0;
        let mut records: Vec<Value> = self
            .rounds
            .iter()
            .map(|round| {
                let reply = self.reply[start..round.end].trim_end_matches('\n');
                start = round.end;
                let mut record = json!({"reply": reply, "told": round.tool_results});
                if let Some(history) = &round.history {
                    record["history"] = history.as_str().into();
                }
                record
            })
            .collect();
        let mut last_record = json!({"reply": self.reply[start..]});
        if let Some(history) = last_history {
            last_record["history"] = history;
        }
        records.push(last_record);
        records
    }

    /// Returns the text of the answer.
    fn answer(&self) -> String {
        let deltas = self.events.iter().filter(|event| event["event"] == "final_delta");
        deltas.filter_map(|event| event["data"]["text"].as_str()).collect()
    }

    /// Returns the last reply.
    pub(super) fn last_reply(&self) -> &str {
        &self.reply[self.rounds.last().map_or(0, |round| round.end)..]
    }

    /// Returns the text that later prompts show for the last reply: `None` if it is the reply itself,
    /// JSON `null` if they show nothing.
    fn history_text(&self, writer: &HistoryWriter) -> Option<Value> {
        let finish_reason = match &self.end_event {
            Some((name, end)) if name == "completed" => end["finish_reason"].as_str().unwrap_or_default(),
            _ => "",
        };
        let is_marked_truncated =
            self.end_event.as_ref().is_some_and(|(_, end)| end["metadata"]["truncated"] == true);
        let is_truncated = is_marked_truncated || !matches!(finish_reason, "stop" | "tool_calls");
        // A reply with calls whose results were never sent to the model cannot be continued, so it is not
        // shown.
        let has_unreported_calls = writer.has_tool_loop && !self.calls.is_empty();
        let text = if has_unreported_calls {
            None
        } else {
            writer.render_reply(self.last_reply(), &self.calls, is_truncated)
        };
        match text {
            Some(text) if text == self.last_reply() => None,
            Some(text) => Some(text.into()),
            // Nothing of the reply was used: prompts show the answer that the user saw instead. After a failure
            // or cancellation they show it only if there are earlier tool results, because a reply must follow
            // those.
            None if !matches!(finish_reason, "" | "cancelled") || !self.rounds.is_empty() => {
                let answer_text = self.answer();
                Some(if answer_text.is_empty() { Value::Null } else { answer_text.into() })
            }
            None => Some(Value::Null),
        }
    }

    /// Returns the result of a call, or `Err` if it has none: `Err(true)` if the call has begun.
    pub(super) fn result_of_call(&self, call_id: &str) -> Result<ToolResult, bool> {
        let mut call_events = self.events.iter().filter(|event| event["data"]["call_id"] == call_id);
        let result_event = call_events.clone().find(|event| event["event"] == "tool_result");
        let result = result_event.and_then(|event| serde_json::from_value(event["data"].clone()).ok());
        result.ok_or_else(|| call_events.any(|event| event["event"] == "tool_start"))
    }

    /// Returns the status of the message and its record, without the fields that its row in the store has.
    /// `request` is the stored request as JSON.
    pub(crate) fn into_record(
        self,
        timings: Timings,
        request: &str,
        defaults: &ReadingDefaults,
    ) -> (&'static str, Value) {
        let status = self.status();
        let history =
            if self.has_ended() { self.history_text(&self.history_writer(request, defaults)) } else { None };
        // With several replies, each has its own history text in `turns`.
        let (rounds, history) =
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
        for (name, list) in [("turns", rounds), ("attempts", self.discarded_replies)] {
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
