//! What came of a message, made from its log alone; making it again gives the same.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tambour::event::{Failure, ToolResult};
use tambour::options::Texts;
use tambour::sequence::Sequencer;
use tambour::{Event, Options};

use crate::drive::interrupted;
use crate::store::{Batch, Kind, Live, Log, MessageRow, Store, StoreError};
use crate::tools;

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
    /// Where each reply of a tool loop ends that was followed by another, and what the model was told after it.
    turns: Vec<(usize, String)>,
    /// `completed` or `error`, when it has come.
    end: Option<(String, Value)>,
    last: u64,
    seq: u64,
}

/// Bytes of a log read at once.
const PIECE: usize = 1 << 20;

/// Reads and folds the whole log of a message.
pub(crate) async fn fold(store: &Store, id: &str) -> Result<Fold, StoreError> {
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
            let text = || serde_json::from_str::<String>(entry.json).unwrap_or_default();
            match entry.kind {
                Kind::Raw(seq) => {
                    self.seq = seq;
                    self.reply.push_str(&text());
                }
                Kind::Reasoning => self.reasoning.push_str(&text()),
                Kind::Event(name) => self.event(name, entry.json),
            }
        }
        self.last = batch.last();
    }

    fn event(&mut self, name: &str, json: &str) {
        let data: Value = serde_json::from_str(json).unwrap_or_default();
        match name {
            "finding" => return self.findings.push(data),
            ATTEMPT => return self.attempts.push(data),
            TURN => {
                let told = data["told"].as_str().unwrap_or_default().to_owned();
                return self.turns.push((self.reply.len(), told));
            }
            // A word for those who read at that moment.
            "status" => return,
            "completed" | "error" => {
                self.end = Some((name.to_owned(), data));
                return;
            }
            _ => {}
        }
        let joins = matches!(name, "final_delta" | "phase_delta" | "draft_delta");
        if joins
            && let Some(last) = self.events.last_mut()
            && last["event"] == name
            && last["data"]["id"] == data["id"]
            && let (Some(Value::String(before)), Some(more)) =
                (last["data"].get_mut("text"), data["text"].as_str())
        {
            before.push_str(more);
            return;
        }
        self.events.push(json!({"event": name, "data": data}));
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

    /// The replies of a tool loop, each with what the model was told after it.
    fn said(&self) -> Vec<Value> {
        let mut from = 0;
        let mut said: Vec<Value> = self
            .turns
            .iter()
            .map(|(to, told)| {
                let reply = self.reply[from..*to].trim_end_matches('\n');
                from = *to;
                json!({"reply": reply, "told": told})
            })
            .collect();
        if !said.is_empty() {
            said.push(json!({"reply": self.reply[from..]}));
        }
        said
    }

    /// Calls that have no result: whether each one has begun.
    fn unanswered(&self) -> Vec<(String, bool)> {
        let mut open: Vec<(String, bool)> = Vec::new();
        for event in &self.events {
            let Some(id) = event["data"]["call_id"].as_str() else { continue };
            match event["event"].as_str() {
                Some("tool_call") => open.push((id.to_owned(), false)),
                Some("tool_start") => {
                    open.iter_mut().filter(|(call, _)| call == id).for_each(|(_, begun)| *begun = true)
                }
                Some("tool_result") => open.retain(|(call, _)| call != id),
                _ => {}
            }
        }
        open
    }

    /// The record, without what the row has.
    pub(crate) fn into_record(self, timings: Timings) -> (&'static str, Value) {
        let (status, said) = (self.status(), self.said());
        let mut record = Map::new();
        record.insert("reply".into(), self.reply.into());
        if !self.reasoning.is_empty() {
            record.insert("reasoning".into(), self.reasoning.into());
        }
        for (name, list) in [("turns", said), ("attempts", self.attempts)] {
            if !list.is_empty() {
                record.insert(name.into(), list.into());
            }
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
    store: &Store,
    row: &MessageRow,
    timings: Timings,
) -> Result<&'static str, StoreError> {
    let (status, record) = fold(store, &row.id).await?.into_record(timings);
    store.finish_message(&row.id, status, &record).await?;
    Ok(status)
}

/// Closes the messages that were running when the server stopped: the events that are missing, then one `error`.
pub(crate) async fn recover(store: &Store, texts: &Texts) -> Result<usize, StoreError> {
    let rows = store.running().await?;
    let count = rows.len();
    for row in rows {
        close(store, &row, &Live::new(row.id.clone()), interrupted(), texts).await?;
        materialise(store, &row, Timings::default()).await?;
    }
    Ok(count)
}

/// Ends a log that has no end: the events that are missing, then `error`.
pub(crate) async fn close(
    store: &Store,
    row: &MessageRow,
    live: &Arc<Live>,
    failure: Failure,
    texts: &Texts,
) -> Result<(), StoreError> {
    let folded = fold(store, &live.id).await?;
    if folded.end.is_some() {
        return Ok(());
    }
    let mut options = Options::default();
    options.texts = texts.clone();
    // Without a tool loop nobody runs calls, and they have no results.
    let request: Value = serde_json::from_str(&row.request).unwrap_or_default();
    let unanswered = if request["tools"].is_array() { folded.unanswered() } else { Vec::new() };
    store.append(live, closing(&folded, unanswered, &options, failure)).await?;
    store.settle(live).await
}

/// The events that close a stream that was cut off.
fn closing(folded: &Fold, calls: Vec<(String, bool)>, options: &Options, failure: Failure) -> Batch {
    let mut batch = Batch::new(folded.last + 1);
    let mut sequencer = Sequencer::new(options);
    for event in &folded.events {
        let name = event["event"].as_str().unwrap_or("");
        if let Some(event) = Event::parse(name, &event["data"]) {
            sequencer.observe(&event);
        }
    }
    let calls: Vec<ToolResult> = calls.into_iter().map(unanswered).collect();
    let mut send = |event: Event<'_>| batch.event(event.name(), |out| tambour::encode::data(&event, out));
    for call in calls {
        send(Event::ToolResult(Box::new(call)));
    }
    if sequencer.begun() {
        sequencer.finish(&mut send);
    }
    send(Event::Error(failure));
    batch
}

/// The result of a call that was open when the server stopped. It is never run again.
fn unanswered((call_id, begun): (String, bool)) -> ToolResult {
    let error = if begun { tools::unknown() } else { tools::not_run("the server stopped before it") };
    ToolResult { call_id, ok: false, result: None, error: Some(error), elapsed_ms: 0 }
}
