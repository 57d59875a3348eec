//! What came of a message, made from its log and its request alone; making it again gives the same.

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

/// The data of an entry between two replies.
#[derive(Serialize, Deserialize)]
pub(crate) struct Between {
    /// What the model is told.
    pub(crate) told: String,
    /// What stands for the reply before in a conversation, where it is not the reply itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) history: Option<String>,
}

/// Why a message has no end yet.
#[derive(Debug)]
pub(crate) enum Unfinished {
    /// Its log could not be read.
    Unread(StoreError),
    /// Its end was not written, or nobody knows.
    Unwritten(Written),
}

impl From<StoreError> for Unfinished {
    fn from(error: StoreError) -> Unfinished {
        Unfinished::Unread(error)
    }
}

/// What ends a run beside its last entries.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) timings: Timings,
    /// What the run adds to the usage of its key.
    pub(crate) usage: Option<Usage>,
    /// Calls by upstream; the upstream that gave the reply is the last one.
    pub(crate) calls: Vec<UpstreamSpending>,
}

/// Ends a message whose log ends with `last`: the log and what is folded from it are written in one step. How it ended.
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
    // A client that asks again after a failure would have them twice.
    if status != "failed" {
        outcome.size += updates.iter().map(|update| update.applied.len() as u64).sum::<u64>();
        outcome.updates = updates;
    }
    match lease.finish(RunEnd { last, status: status.to_owned(), outcome }).await {
        Written::Stored => Ok(status),
        written => Err(Unfinished::Unwritten(written)),
    }
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
    Outcome { size: size as u64, turn: Some(turn), summary, details: Some(details), ..Outcome::default() }
}

/// Closes the messages that were running when the server stopped: the events that are missing, then one `error`.
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

/// Ends a message or turn whose log breaks off: the events that are missing, then `error`; nothing of that if the log has its end. How it
/// ended.
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

/// The events that close a stream that was cut off, in the language of its request.
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
    // Without a tool loop nobody runs calls, and they have no results.
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
