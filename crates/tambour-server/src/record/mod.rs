//! The record of a message: JSON with its reply, answer, events, findings and measurements, which the API
//! returns. Except for the timings, it is built from the log and the request alone.

pub(crate) mod figures;
mod fold;
pub(crate) mod history;
pub(crate) mod spending;
pub(crate) mod turn_end;

pub(crate) use fold::{LogFold, fold_log, fold_run_log};

use history::{HistoryWriter, PromptRecord, TurnMessages};
use spending::UpstreamSpending;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tambour::Event;
use tambour::event::{Failure, ToolCall, ToolResult};
use tambour::options::Language;
use tambour::sequence::Sequencer;

use crate::config::reading_defaults::ReadingDefaults;
use crate::store::{
    Batch, Lease, LogEntryKind, MessageOutcome, MessageRow, RunEnd, RunKind, Store, StoreError, UsageRow,
    WriteOutcome,
};
use crate::tools::{self, CallError};
use crate::upstream::new_failure;

/// Durations of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Timings {
    /// Milliseconds from the start of the run to the first item that an upstream sends.
    pub first_byte_ms: Option<u64>,
    /// Milliseconds from the start of the run to the first text that an upstream sends.
    pub first_text_ms: Option<u64>,
    /// Milliseconds from the start of the run to its end.
    pub total_ms: u64,
}

/// Approximate bytes of a log read at once.
pub(crate) const READ_BYTES: usize = 1 << 20;

/// Name of log entries for discarded attempts (P-034). Never sent to clients.
pub(crate) const ATTEMPT_ENTRY: &str = "attempt";

/// Name of log entries between two replies of a tool loop, with the tool results that end a round. Never sent
/// to clients.
pub(crate) const TOOL_RESULTS_ENTRY: &str = "turn";

/// Name of log entries for updates applied to the conversation's state, right after their event. Never sent
/// to clients.
pub(crate) const STATE_ENTRY: &str = "state";

/// Name of log entries for a switch to a fallback upstream, with the request fields that it overrides. Never
/// sent to clients.
const UPSTREAM_ENTRY: &str = "upstream";

/// Name of the log entry that holds the prompt as sent. Never sent to clients.
const PROMPT_ENTRY: &str = "prompt";

/// Adds an event to a batch, as a log entry.
pub(crate) fn push_event(batch: &mut Batch, event: &Event<'_>) {
    batch.push_event(event.name(), |out| tambour::encode::write_data(event, out));
}

/// Adds an entry with this JSON object to a batch.
pub(crate) fn push_json(batch: &mut Batch, name: &str, data: &Value) {
    batch.push_event(name, |out| out.extend_from_slice(data.to_string().as_bytes()));
}

/// Builds a batch with the entry of a prompt; `number` is the number of that entry.
pub(crate) fn prompt_entry(number: u64, prompt: &PromptRecord) -> Batch {
    let mut batch = Batch::new(number);
    push_json(&mut batch, PROMPT_ENTRY, &json!(prompt));
    batch
}

/// Adds the entry of a fallback upstream: the fields of the request that it overrides, with its values.
pub(crate) fn add_fallback_entry(request_fields: &Value, batch: &mut Batch) {
    push_json(batch, UPSTREAM_ENTRY, request_fields);
}

/// Data of a state entry.
#[derive(Serialize, Deserialize)]
struct StateEntry<'a> {
    /// Position of the message's first update within its conversation.
    start: i64,
    /// Applied block of operations, as JSON.
    #[serde(borrow)]
    applied: &'a RawValue,
}

/// Adds the entry of a state update. `start` is the position of the message's first update within its
/// conversation.
pub(crate) fn add_state_update(start: i64, block: &tambour::state::AppliedBlock, batch: &mut Batch) {
    push_json(batch, STATE_ENTRY, &json!({"start": start, "applied": block}));
}

/// Data of the entry between two replies.
#[derive(Serialize, Deserialize)]
pub(crate) struct ToolResultsEntry {
    /// Tool results as sent to the model.
    pub(crate) told: String,
    /// Text that later prompts show for the reply before this entry, if it differs from the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) history: Option<String>,
}

/// Reason why a message could not be finished.
#[derive(Debug)]
pub(crate) enum FinishError {
    /// The log of the message could not be read.
    LogUnreadable(StoreError),
    /// The end of the message was not written, or it is unknown whether it was.
    EndUnwritten(WriteOutcome),
}

impl From<StoreError> for FinishError {
    fn from(error: StoreError) -> FinishError {
        FinishError::LogUnreadable(error)
    }
}

/// Measurements of a run, written with its last entries.
#[derive(Debug, Default)]
pub(crate) struct RunTotals {
    pub(crate) timings: Timings,
    /// Usage to add to the totals of the client's key.
    pub(crate) usage: Option<UsageRow>,
    /// Spending of the model calls, by upstream; the last upstream produced the reply.
    pub(crate) calls: Vec<UpstreamSpending>,
}

/// Finishes a message: writes its last entries (`last`) and its record in one step. Returns its status.
pub(crate) async fn finish(
    lease: &mut dyn Lease,
    last: Batch,
    totals: RunTotals,
    defaults: &ReadingDefaults,
) -> Result<&'static str, FinishError> {
    let mut fold = fold_run_log(lease).await?;
    fold.add(&last);
    finish_folded(lease, fold, last, totals, defaults).await
}

/// Finishes a message as `finish` does; `fold` has all its entries, including the last ones.
async fn finish_folded(
    lease: &mut dyn Lease,
    mut fold: LogFold,
    last: Batch,
    RunTotals { timings, usage, calls }: RunTotals,
    defaults: &ReadingDefaults,
) -> Result<&'static str, FinishError> {
    let row = lease.row().clone();
    let size = fold.size;
    let updates = std::mem::take(&mut fold.updates);
    let (status, record) = fold.into_record(timings, &row.request, defaults);
    let figures = figures::message_figures(&row, status, &record, timings.first_text_ms, &calls);
    let mut outcome = split_record(&row, record, size);
    outcome.figures = figures;
    outcome.usage = usage;
    // Updates of a failed message are not kept: the repeated request would apply them again.
    if status != "failed" {
        outcome.size += updates.iter().map(|update| update.applied.len() as u64).sum::<u64>();
        outcome.updates = updates;
    }
    match lease.finish(RunEnd { last, status: status.to_owned(), outcome }).await {
        WriteOutcome::Stored => Ok(status),
        write_outcome => Err(FinishError::EndUnwritten(write_outcome)),
    }
}

/// Splits a record into the stored parts: a summary that listings show, and details that they do not. Adds
/// the messages for later prompts of the conversation. `log_size` is the size of the log in bytes.
fn split_record(row: &MessageRow, mut record: Value, log_size: usize) -> MessageOutcome {
    let turn = json!(TurnMessages::new(&row.request, &record));
    let mut details = Map::new();
    for name in ["prompt", "events", "findings"] {
        if let Some(part) = record.as_object_mut().and_then(|record| record.remove(name)) {
            details.insert(name.to_owned(), part);
        }
    }
    let (turn, summary, details) = (turn.to_string(), record.to_string(), Value::Object(details).to_string());
    let size = log_size + row.request.len() + turn.len() + summary.len() + details.len();
    MessageOutcome {
        size: size as u64,
        turn: Some(turn),
        summary,
        details: Some(details),
        ..MessageOutcome::default()
    }
}

/// Returns the failure of messages, and turns of dialogues, that were running when the server stopped.
pub(crate) fn interrupted_failure() -> Failure {
    new_failure("interrupted", "the server stopped while the message was running", true)
}

/// Closes messages, and turns of dialogues, that were running when the server stopped: adds the missing
/// events and one `error`. Deletes those that their clients asked not to store. Returns the number found.
///
/// # Errors
/// The store failed, or an end could not be written.
pub(crate) async fn recover(store: &dyn Store, defaults: &ReadingDefaults) -> Result<usize, StoreError> {
    let rows = store.list_abandoned().await?;
    let count = rows.len();
    for row in rows {
        if let Some(lease) = store.claim(&row.id).await? {
            close_interrupted(store, lease, defaults).await?;
        }
    }
    Ok(count)
}

/// Closes a message or turn that was running when its server stopped, or deletes it if its client asked not to
/// store it.
///
/// # Errors
/// The store failed, or the end could not be written.
pub(crate) async fn close_interrupted(
    store: &dyn Store,
    mut lease: Box<dyn Lease>,
    defaults: &ReadingDefaults,
) -> Result<(), StoreError> {
    let row = lease.row().clone();
    match close(&mut *lease, interrupted_failure(), RunTotals::default(), defaults).await {
        Ok(_) => {}
        Err(FinishError::LogUnreadable(error)) => return Err(error),
        Err(FinishError::EndUnwritten(write_outcome)) => {
            tracing::error!(
                message_id = row.id,
                written = ?write_outcome,
                "an interrupted message could not be closed"
            );
            return Err(StoreError::Closed);
        }
    }
    let request: Value = serde_json::from_str(&row.request).unwrap_or_default();
    // Set by the protocol of OpenAI's Responses.
    if request["as_response"]["store"] == false {
        store.delete_messages(std::slice::from_ref(&row.id)).await?;
    }
    Ok(())
}

/// Returns `true` if nobody has seen anything of a message and nothing was begun on its behalf: its log has the
/// prompt at most.
///
/// # Errors
/// The log cannot be read.
pub(crate) async fn is_unseen(lease: &dyn Lease) -> Result<bool, StoreError> {
    // The prompt is one entry.
    if lease.next_number() > 2 {
        return Ok(false);
    }
    let batches = lease.read(0, 1).await?;
    Ok(batches.iter().flat_map(Batch::entries).all(|entry| entry.kind == LogEntryKind::Event(PROMPT_ENTRY)))
}

/// Ends a message, or a turn of a dialogue, whose log breaks off: adds the missing events and an `error`, or
/// nothing if the log has its end already. Writes the record, and returns the status.
pub(crate) async fn close(
    lease: &mut dyn Lease,
    failure: Failure,
    totals: RunTotals,
    defaults: &ReadingDefaults,
) -> Result<&'static str, FinishError> {
    if lease.row().kind == RunKind::Turn {
        return turn_end::close(lease, &failure, &defaults.options).await;
    }
    let mut log_fold = fold_run_log(lease).await?;
    let last = if log_fold.end_event.is_some() {
        Batch::new(log_fold.last_entry + 1)
    } else {
        closing_events(&mut log_fold, lease.row(), defaults, failure)
    };
    log_fold.add(&last);
    finish_folded(lease, log_fold, last, totals, defaults).await
}

/// Builds the events that close an interrupted log, in the language of its request: results of open tool
/// calls, ends of open parts, and an `error`.
fn closing_events(
    log_fold: &mut LogFold,
    row: &MessageRow,
    defaults: &ReadingDefaults,
    failure: Failure,
) -> Batch {
    let mut batch = Batch::new(log_fold.last_entry + 1);
    let (_, options) = log_fold.reply_options(&row.request, defaults);
    let mut sequencer = Sequencer::new(&options);
    for event in &log_fold.events {
        let name = event["event"].as_str().unwrap_or("");
        if let Some(event) = Event::parse(name, &event["data"]) {
            sequencer.observe(&event);
        }
    }
    // Without a tool loop, calls are not run, so they have no results.
    if options.tool_loop && !log_fold.calls.is_empty() {
        let mut results = Vec::new();
        for call in log_fold.calls.clone() {
            let result = log_fold.result_of_call(&call.call_id).unwrap_or_else(|has_started| {
                let result = unanswered_result(&call.call_id, has_started, options.texts.language);
                push_event(&mut batch, &Event::from(result.clone()));
                result
            });
            results.push((call, result));
        }
        // With this entry, prompts of later messages in the conversation include the results.
        let calls: Vec<ToolCall> = results.iter().map(|(call, _)| call.clone()).collect();
        let results_text = tools::results_message(options.texts.language, &results, defaults.max_shown_bytes);
        add_tool_results(
            log_fold.last_reply(),
            &calls,
            &results_text,
            &log_fold.history_writer(&row.request, defaults),
            &mut batch,
        );
    }
    let mut send = |event: Event<'_>| push_event(&mut batch, &event);
    if sequencer.has_started() {
        sequencer.finish(&mut send);
    }
    send(Event::Error(failure));
    batch
}

/// Returns the error result of a call that was open when the server stopped. The call is never run again.
fn unanswered_result(call_id: &str, has_started: bool, language: Language) -> ToolResult {
    let call_error = if has_started { CallError::Interrupted } else { CallError::ServerStopped };
    let error = Some(call_error.error(language));
    ToolResult { call_id: call_id.to_owned(), ok: false, result: None, error, elapsed_ms: 0 }
}

/// Adds the entry with the tool results after a reply. Returns the text of the reply for the next prompt: its
/// repaired form, or the reply itself.
pub(crate) fn add_tool_results(
    raw: &str,
    calls: &[ToolCall],
    results_text: &str,
    history_writer: &HistoryWriter,
    batch: &mut Batch,
) -> String {
    let raw = raw.trim_end_matches('\n');
    let history = history_writer.render_reply(raw, calls, false).filter(|text| text != raw);
    let entry = ToolResultsEntry { told: results_text.to_owned(), history };
    push_json(batch, TOOL_RESULTS_ENTRY, &json!(entry));
    entry.history.unwrap_or_else(|| raw.to_owned())
}

#[cfg(test)]
mod tests;
