//! Ends of dialogue turns: the outcome that is stored, and the closing events of a log that breaks off.

use tambour::Options;
use tambour::event::{Event, EventKind, Failure, parse_kind};
use tambour::sequence::Sequencer;

use super::{FinishError, READ_BYTES, push_event};
use crate::store::{Batch, DialogueProgress, Lease, LogEntryKind, MessageOutcome, RunEnd, WriteOutcome};

/// Builds the outcome of a turn: the size of its log in bytes, and the dialogue as the turn leaves it (`None`
/// if it stays as last stored).
pub(crate) fn outcome(log_size: usize, progress: Option<DialogueProgress>) -> MessageOutcome {
    let progress = progress.map(Box::new);
    MessageOutcome { size: log_size as u64, summary: "{}".to_owned(), progress, ..MessageOutcome::default() }
}

/// Ends a turn whose log breaks off: adds the missing events and an `error`, or nothing if the log has its
/// end already. The dialogue stays as last stored. Returns the status.
pub(crate) async fn close(
    lease: &mut dyn Lease,
    failure: &Failure,
    options: &Options,
) -> Result<&'static str, FinishError> {
    let (mut last_entry, mut log_size, mut end_status) = (0, 0, None);
    let mut sequencer = Sequencer::new(options);
    loop {
        let batches = lease.read(last_entry, READ_BYTES).await?;
        let Some(last_batch) = batches.last() else { break };
        last_entry = last_batch.last();
        for batch in &batches {
            log_size += batch.body().len();
            for entry in batch.entries() {
                match entry.kind {
                    LogEntryKind::Event("completed") => end_status = Some("completed"),
                    LogEntryKind::Event("error") => end_status = Some("failed"),
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
    let mut batch = Batch::new(last_entry + 1);
    if end_status.is_none() {
        if sequencer.has_started() {
            sequencer.finish(&mut |event| push_event(&mut batch, &event));
        }
        push_event(&mut batch, &Event::Error(failure.clone()));
    }
    let status = end_status.unwrap_or("failed");
    let outcome = outcome(log_size + batch.body().len(), None);
    match lease.finish(RunEnd { last: batch, status: status.to_owned(), outcome }).await {
        WriteOutcome::Stored => Ok(status),
        write_outcome => Err(FinishError::EndUnwritten(write_outcome)),
    }
}
