//! Builds the record of a message from its log and its request alone; building it again gives the same
//! record.

mod fold;

pub(crate) use fold::{Fold, fold, fold_own};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tambour::Event;
use tambour::event::{Failure, ToolCall, ToolResult};
use tambour::options::Language;
use tambour::sequence::Sequencer;

use crate::dialogues;
use crate::drive::{UpstreamSpending, interrupted};
use crate::figures;
use crate::history::{Again, Said, Sent};
use crate::reading::Own;
use crate::store::{Batch, Lease, MessageRow, Outcome, RunEnd, RunKind, Store, StoreError, Usage, Written};
use crate::tools::{self, Trouble};

/// Durations of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Timings {
    /// Milliseconds from the request to the first item of the upstream.
    pub first_byte_ms: Option<u64>,
    /// Milliseconds from the request to the end.
    pub total_ms: u64,
}

/// Name of log entries for discarded attempts (P-034). Never sent to clients.
pub(crate) const ATTEMPT: &str = "attempt";

/// Name of log entries between two replies of a tool loop. Never sent to clients.
pub(crate) const TURN: &str = "turn";

/// Name of log entries for updates applied to the conversation's state, right after their event. Never sent
/// to clients.
pub(crate) const STATE: &str = "state";

/// Log entry that names the fallback upstream and its dialect, after the ones before gave no usable reply.
/// Never sent to clients.
const CHOICE: &str = "upstream";

/// Name of the log entry that holds the prompt as sent. Never sent to clients.
const PROMPT: &str = "prompt";

/// Builds the log entry of a prompt.
pub(crate) fn prompt(number: u64, sent: &Sent) -> Batch {
    let mut batch = Batch::new(number);
    batch.event(PROMPT, |out| out.extend_from_slice(json!(sent).to_string().as_bytes()));
    batch
}

/// Adds the entry of a chosen fallback: fields that override those of the request.
pub(crate) fn choice(chosen: &Value, batch: &mut Batch) {
    batch.event(CHOICE, |out| out.extend_from_slice(chosen.to_string().as_bytes()));
}

/// Data of a state entry.
#[derive(Serialize, Deserialize)]
struct Applied<'a> {
    /// Position of the message's first update within its conversation.
    start: i64,
    #[serde(borrow)]
    applied: &'a RawValue,
}

/// Adds the entry of a state update.
pub(crate) fn applied(start: i64, applied: &tambour::state::Applied, batch: &mut Batch) {
    batch.event(STATE, |out| {
        out.extend_from_slice(json!({"start": start, "applied": applied}).to_string().as_bytes())
    });
}

/// Data of the entry between two replies.
#[derive(Serialize, Deserialize)]
pub(crate) struct Between {
    /// Tool results as sent to the model.
    pub(crate) told: String,
    /// History text of the reply before, where it differs from the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) history: Option<String>,
}

/// Reason why a message could not be finished.
#[derive(Debug)]
pub(crate) enum Unfinished {
    /// Its log could not be read.
    Unread(StoreError),
    /// Its end was not written, or the outcome of the write is unknown.
    Unwritten(Written),
}

impl From<StoreError> for Unfinished {
    fn from(error: StoreError) -> Unfinished {
        Unfinished::Unread(error)
    }
}

/// Measurements of a run, written with its last entries.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) timings: Timings,
    /// Usage to add to its key.
    pub(crate) usage: Option<Usage>,
    /// Calls by upstream; the last one produced the reply.
    pub(crate) calls: Vec<UpstreamSpending>,
}

/// Finishes a message whose log ends with `last`: the last entries and the record are written in one step.
/// Returns its status.
pub(crate) async fn finish(
    lease: &mut dyn Lease,
    last: Batch,
    counts: Counts,
    own: &Own,
) -> Result<&'static str, Unfinished> {
    let mut fold = fold_own(lease).await?;
    fold.add(&last);
    finish_folded(lease, fold, last, counts, own).await
}

async fn finish_folded(
    lease: &mut dyn Lease,
    mut fold: Fold,
    last: Batch,
    Counts { timings, usage, calls }: Counts,
    own: &Own,
) -> Result<&'static str, Unfinished> {
    let row = lease.row().clone();
    let size = fold.size;
    let updates = std::mem::take(&mut fold.updates);
    let (status, record) = fold.into_record(timings, &row.request, own);
    let figures = figures::of_message(&row, status, &record, timings.first_byte_ms, &calls);
    let mut outcome = outcome(&row, record, size);
    outcome.figures = figures;
    outcome.usage = usage;
    // A repeated request after a failure would apply them twice.
    if status != "failed" {
        outcome.size += updates.iter().map(|update| update.applied.len() as u64).sum::<u64>();
        outcome.updates = updates;
    }
    match lease.finish(RunEnd { last, status: status.to_owned(), outcome }).await {
        Written::Stored => Ok(status),
        written => Err(Unfinished::Unwritten(written)),
    }
}

/// Splits a record into the stored parts: a summary that listings show, and details that they do not.
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
    Outcome { size: size as u64, turn: Some(turn), summary, details: Some(details), ..Outcome::default() }
}

/// Closes messages that were running when the server stopped: adds the missing events and one `error`.
/// Returns their number.
pub(crate) async fn recover(store: &dyn Store, own: &Own) -> Result<usize, StoreError> {
    let rows = store.abandoned().await?;
    let count = rows.len();
    let not_kept = |row: &&MessageRow| {
        let request: Value = serde_json::from_str(&row.request).unwrap_or_default();
        request["as_response"]["store"] == false
    };
    let forgotten: Vec<String> = rows.iter().filter(not_kept).map(|row| row.id.clone()).collect();
    for row in rows {
        let Some(mut lease) = store.claim(&row.id).await? else { continue };
        match close(&mut *lease, interrupted(), Counts::default(), own).await {
            Ok(_) => {}
            Err(Unfinished::Unread(error)) => return Err(error),
            Err(Unfinished::Unwritten(written)) => {
                tracing::error!(
                    message_id = row.id,
                    ?written,
                    "a message that was running could not be closed"
                );
                return Err(StoreError::Closed);
            }
        }
    }
    if !forgotten.is_empty() {
        store.delete_messages(&forgotten).await?;
    }
    Ok(count)
}

/// Ends a message or turn whose log breaks off: adds the missing events and an `error`, or nothing if the log
/// has its end. Returns its status.
pub(crate) async fn close(
    lease: &mut dyn Lease,
    failure: Failure,
    counts: Counts,
    own: &Own,
) -> Result<&'static str, Unfinished> {
    if lease.row().kind == RunKind::Turn {
        return dialogues::close(lease, &failure, &own.options).await;
    }
    let mut folded = fold_own(lease).await?;
    let last = if folded.end.is_some() {
        Batch::new(folded.last + 1)
    } else {
        closing(&mut folded, lease.row(), own, failure)
    };
    folded.add(&last);
    finish_folded(lease, folded, last, counts, own).await
}

/// Builds the events that close an interrupted stream, in the language of its request.
fn closing(folded: &mut Fold, row: &MessageRow, own: &Own, failure: Failure) -> Batch {
    let mut batch = Batch::new(folded.last + 1);
    let (_, options) = folded.reading(&row.request, own);
    let mut sequencer = Sequencer::new(&options);
    for event in &folded.events {
        let name = event["event"].as_str().unwrap_or("");
        if let Some(event) = Event::parse(name, &event["data"]) {
            sequencer.observe(&event);
        }
    }
    // Without a tool loop calls are not run, so they have no results.
    if options.tool_loop && !folded.calls.is_empty() {
        let mut done = Vec::new();
        for call in folded.calls.clone() {
            let result = folded.result(&call.call_id).unwrap_or_else(|begun| {
                let result = unanswered(&call.call_id, begun, options.texts.language);
                let event = Event::from(result.clone());
                batch.event(event.name(), |out| tambour::encode::data(&event, out));
                result
            });
            done.push((call, result));
        }
        // The next message of the conversation includes the known results.
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

/// Returns the error result of a call that was open when the server stopped. The call is never run again.
fn unanswered(call_id: &str, begun: bool, language: Language) -> ToolResult {
    let trouble = if begun { Trouble::Unknown } else { Trouble::ServerStopped };
    let error = Some(trouble.error(language));
    ToolResult { call_id: call_id.to_owned(), ok: false, result: None, error, elapsed_ms: 0 }
}

/// Adds the entry with the tool results after a reply; returns the history text of the reply.
pub(crate) fn between(raw: &str, calls: &[ToolCall], told: &str, again: &Again, batch: &mut Batch) -> String {
    let raw = raw.trim_end_matches('\n');
    let history = again.reply(raw, calls, false).filter(|text| text != raw);
    let between = Between { told: told.to_owned(), history };
    batch.event(TURN, |out| out.extend_from_slice(json!(between).to_string().as_bytes()));
    between.history.unwrap_or_else(|| raw.to_owned())
}

#[cfg(test)]
mod tests;
