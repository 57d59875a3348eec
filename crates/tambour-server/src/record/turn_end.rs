//! Ends of turns: the outcome that is stored, and the closing events of a log that breaks off.

use tambour::Options;
use tambour::event::{Event, EventKind, Failure, parse_kind};
use tambour::sequence::Sequencer;

use super::FinishError;
use crate::store::{Batch, DialogueProgress, Lease, LogEntryKind, MessageOutcome, RunEnd, WriteOutcome};

/// Bytes of a log read at once.
const READ_BYTES: usize = 1 << 20;

/// Adds an event to a batch.
pub(crate) fn push_event(batch: &mut Batch, event: &Event<'_>) {
    batch.push_event(event.name(), |out| tambour::encode::write_data(event, out));
}

/// Builds the outcome of a turn.
pub(crate) fn outcome(size: usize, progress: Option<DialogueProgress>) -> MessageOutcome {
    let progress = progress.map(Box::new);
    MessageOutcome { size: size as u64, summary: "{}".to_owned(), progress, ..MessageOutcome::default() }
}

/// Ends a turn whose log breaks off: open parts are closed, then `error`; nothing if the log has its end. The
/// dialogue stays as last stored. Returns the status.
pub(crate) async fn close(
    lease: &mut dyn Lease,
    failure: &Failure,
    options: &Options,
) -> Result<&'static str, FinishError> {
    let (mut last, mut size, mut end_entry) = (0, 0, None);
    let mut sequencer = Sequencer::new(options);
    loop {
        let batches = lease.read(last, READ_BYTES).await?;
        let Some(last_batch) = batches.last() else { break };
        last = last_batch.last();
        for batch in &batches {
            size += batch.body().len();
            for entry in batch.entries() {
                match entry.kind {
                    LogEntryKind::Event("completed") => end_entry = Some("completed"),
                    LogEntryKind::Event("error") => end_entry = Some("failed"),
                    LogEntryKind::Event(name) if parse_kind(name) == Some(EventKind::Contract) => {
                        let data = serde_json::from_str(entry.json).unwrap_or_default();
                        if let Some(event) = Event::parse(name, &data) {
                            sequencer.observe(&event);
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    let mut batch = Batch::new(last + 1);
    if end_entry.is_none() {
        if sequencer.has_started() {
            sequencer.finish(&mut |event| push_event(&mut batch, &event));
        }
        push_event(&mut batch, &Event::Error(failure.clone()));
    }
    let status = end_entry.unwrap_or("failed");
    let outcome = outcome(size + batch.body().len(), None);
    match lease.finish(RunEnd { last: batch, status: status.to_owned(), outcome }).await {
        WriteOutcome::Stored => Ok(status),
        written => Err(FinishError::EndUnwritten(written)),
    }
}
