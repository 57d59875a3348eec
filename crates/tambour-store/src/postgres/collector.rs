//! Collectors: each takes the appends of many runs that have come since the last commit, and stores them with
//! one statement, which also checks that this server still holds the lease of each run.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::database::EntryRow;
use super::local_runs::LocalRun;
use super::server_runs::ServerRuns;
use crate::fail;
use crate::tail::DrainedEntries;

/// Maximum number of runs in one statement.
const MAX_RUNS: usize = 64;
/// Approximate maximum number of bytes in one statement.
const MAX_BYTES: usize = 1 << 20;

/// Runs whose appends wait for a collector.
#[derive(Default)]
pub(super) struct AppendQueue {
    runs: Mutex<VecDeque<Arc<LocalRun>>>,
    /// Notified when a run is queued.
    queued: Notify,
}

/// Entries of one run that a collector has taken.
struct TakenAppend {
    run: Arc<LocalRun>,
    first: i64,
    last: i64,
    body: Vec<u8>,
    drained: DrainedEntries,
}

impl TakenAppend {
    fn row(&self) -> EntryRow<'_> {
        EntryRow {
            message: &self.run.tail.message,
            epoch: self.run.epoch,
            first: self.first,
            last: self.last,
            body: &self.body,
        }
    }
}

impl AppendQueue {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<LocalRun>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues the entries that were appended to the tail of a run.
    pub(super) fn queue(&self, run: &Arc<LocalRun>) {
        if run.mark_appended() {
            self.push(run.clone());
        }
    }

    fn push(&self, run: Arc<LocalRun>) {
        self.lock().push_back(run);
        self.queued.notify_one();
    }

    /// Takes the appends that wait, within the limits of a statement; an empty list if none wait.
    fn take(&self) -> Vec<TakenAppend> {
        let mut runs = self.lock();
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while taken.len() < MAX_RUNS && bytes < MAX_BYTES {
            let Some(run) = runs.pop_front() else { break };
            run.mark_taken();
            let mut entries = None;
            let force = true;
            let drained = run.tail.drain(force, |first, last, body| {
                entries = Some((first.cast_signed(), last.cast_signed(), body.to_vec()));
            });
            match (drained, entries) {
                (Some(drained), Some((first, last, body))) => {
                    bytes += body.len();
                    taken.push(TakenAppend { run, first, last, body, drained });
                }
                // An earlier group took all of its entries; another may have been appended since.
                _ if run.mark_written() => runs.push_back(run),
                _ => {}
            }
        }
        if !runs.is_empty() {
            // Another collector can begin at once.
            self.queued.notify_one();
        }
        taken
    }

    /// Waits until appends are queued, and takes them.
    async fn next_group(&self) -> Vec<TakenAppend> {
        loop {
            let taken = self.take();
            if !taken.is_empty() {
                return taken;
            }
            self.queued.notified().await;
        }
    }
}

/// Stores appends until the store is closed.
pub(super) async fn collect_appends(runs: Arc<ServerRuns>) {
    loop {
        let group = tokio::select! {
            biased;
            () = runs.closed.cancelled() => return,
            group = runs.append_queue.next_group() => group,
        };
        tokio::select! {
            biased;
            () = runs.closed.cancelled() => return,
            () = write_group(&runs, group) => {}
        }
    }
}

/// Writes a group of appends, retrying until the database answers, waits are aborted or the lease of this
/// server may be lost. Shows stored entries to readers, and fences the runs whose entries were not stored.
async fn write_group(runs: &ServerRuns, group: Vec<TakenAppend>) {
    let what = format!("entries of {} runs", group.len());
    let stored = runs.write_until_answered(what, |may_be_stored| store(runs, &group, may_be_stored)).await;
    let stored = stored.unwrap_or_default();
    fail::point("append.after");
    for append in group {
        settle(runs, &append, stored.contains(&append.run.tail.message));
    }
}

/// Stores a group of appends, or finds that they are stored; returns the ids of the messages whose entries
/// are.
async fn store(
    runs: &ServerRuns,
    group: &[TakenAppend],
    may_be_stored: bool,
) -> sqlx::Result<HashSet<String>> {
    fail::point("append.before");
    let rows: Vec<EntryRow<'_>> = group.iter().map(TakenAppend::row).collect();
    let mut stored = runs.database.store_entries(&rows).await?;
    // An earlier attempt without an answer may have stored the entries that are refused now.
    if may_be_stored && stored.len() < rows.len() {
        stored.extend(runs.database.find_entries(&rows).await?);
    }
    Ok(stored)
}

/// Shows stored entries to readers, or fences the run if they were not stored.
fn settle(runs: &ServerRuns, append: &TakenAppend, is_stored: bool) {
    let tail = &append.run.tail;
    if is_stored {
        tail.mark_stored(&append.drained);
        // A server that may have lost its lease shows no entries, not even stored ones. It fences all its runs
        // before the lease is valid again.
        if runs.server_lease.is_valid() {
            tail.publish(append.drained.end());
        }
    } else {
        tracing::warn!(message_id = tail.message, "the run is fenced: its entries were not stored");
        runs.fenced_runs.fetch_add(1, Ordering::Relaxed);
        tail.fence();
    }
    if append.run.mark_written() {
        runs.append_queue.push(append.run.clone());
    }
}
