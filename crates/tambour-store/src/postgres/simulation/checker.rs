//! Checker of a simulation: keeps a log of each run of its own, and compares everything with it at the moment
//! it happens.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::scheduler::Scheduler;
use crate::{Batch, WriteOutcome};

/// Checker of what servers store, acknowledge and show.
pub(super) struct Checker {
    scheduler: Scheduler,
    /// Time for which a renewed lease of a server is valid by its own clock.
    valid_time: Duration,
    state: Mutex<CheckerState>,
}

#[derive(Default)]
struct CheckerState {
    violations: Vec<String>,
    runs: BTreeMap<String, RunHistory>,
    servers: BTreeMap<String, ServerHistory>,
    counts: Counts,
}

/// Numbers of events, which show that simulations reach what they are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) completed: u64,
    pub(super) interrupted: u64,
    /// Claims of runs that somebody else had begun.
    pub(super) claims: u64,
    /// Writes of a lease that another has taken over.
    pub(super) refused: u64,
    /// Statements that were applied without an answer.
    pub(super) unanswered: u64,
    pub(super) shown: u64,
    pub(super) acknowledged: u64,
    /// Runs that were asked again, since nobody had seen anything of them.
    pub(super) restarts: u64,
    /// Batches that came from the server that writes the log.
    pub(super) peer_batches: u64,
}

impl Counts {
    /// Adds the numbers of another simulation.
    pub(super) fn add(&mut self, other: Counts) {
        let Counts {
            completed,
            interrupted,
            claims,
            refused,
            unanswered,
            shown,
            acknowledged,
            restarts,
            peer_batches,
        } = other;
        self.completed += completed;
        self.interrupted += interrupted;
        self.claims += claims;
        self.refused += refused;
        self.unanswered += unanswered;
        self.shown += shown;
        self.acknowledged += acknowledged;
        self.restarts += restarts;
        self.peer_batches += peer_batches;
    }
}

/// Entries, leases and end of a run that the database has accepted.
#[derive(Default)]
struct RunHistory {
    /// Server and epoch of the last lease.
    lease: (String, i64),
    /// Entries with their line break, from number 1 on.
    lines: Vec<Vec<u8>>,
    /// Epoch of the last entry.
    epoch: i64,
    /// Epoch of the lease that has written the end.
    end: Option<i64>,
}

/// Renewals of the lease of a server.
struct ServerHistory {
    /// Time at which the last successful renewal was sent.
    renewed: Instant,
    /// Time at which it was noticed last that the lease had not been valid.
    lapse: Option<Instant>,
}

fn lines_of(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    body.split_inclusive(|byte| *byte == b'\n')
}

/// Returns `true` for the line of an entry that ends a log.
pub(super) fn is_end(line: &[u8]) -> bool {
    line.starts_with(b"E completed ") || line.starts_with(b"E error ")
}

impl Checker {
    pub(super) fn new(scheduler: Scheduler, valid_time: Duration) -> Checker {
        Checker { scheduler, valid_time, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, CheckerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn require(&self, state: &mut CheckerState, holds: bool, message: impl FnOnce() -> String) {
        if !holds {
            let message = message();
            self.scheduler.trace(format_args!("VIOLATION {message}"));
            state.violations.push(message);
        }
    }

    /// Returns the violations so far.
    pub(super) fn violations(&self) -> Vec<String> {
        self.lock().violations.clone()
    }

    pub(super) fn counts(&self) -> Counts {
        self.lock().counts
    }

    /// Changes the numbers of what has happened.
    pub(super) fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.lock().counts);
    }

    /// Notes a violation that another part has found.
    pub(super) fn fail(&self, message: String) {
        let mut state = self.lock();
        self.require(&mut state, false, || message);
    }

    // Changes of the database.

    /// Notes that a run was inserted.
    pub(super) fn note_insert(&self, run: &str, server: &str, epoch: i64) {
        let history = RunHistory { lease: (server.to_owned(), epoch), epoch, ..RunHistory::default() };
        self.lock().runs.insert(run.to_owned(), history);
    }

    /// Notes that a run was deleted, since its caller had gone.
    pub(super) fn note_delete(&self, run: &str) {
        let mut state = self.lock();
        if let Some(history) = state.runs.remove(run) {
            self.require(&mut state, history.lines.is_empty(), || format!("{run} was deleted with entries"));
        }
    }

    /// Notes that a lease was given out, which must have a higher epoch.
    pub(super) fn note_claim(&self, run: &str, server: &str, epoch: i64) {
        let mut state = self.lock();
        state.counts.claims += 1;
        let Some(history) = state.runs.get_mut(run) else { return };
        let former = std::mem::replace(&mut history.lease, (server.to_owned(), epoch));
        let has_ended = history.end.is_some();
        self.require(&mut state, !has_ended, || format!("{run} is claimed after its end"));
        self.require(&mut state, former.1 < epoch, || {
            format!("{run}: epoch {epoch} for {server} after {former:?}")
        });
    }

    /// Notes that a lease of `server` has stored entries: the next ones, and as the last holder of the run.
    pub(super) fn note_stored(&self, run: &str, server: &str, epoch: i64, first: u64, body: &[u8]) {
        let mut state = self.lock();
        let Some(history) = state.runs.get_mut(run) else {
            return self.require(&mut state, false, || format!("{run} has entries and no run"));
        };
        let number = history.lines.len() as u64 + 1;
        let (lease, last_epoch, has_ended) = (history.lease.clone(), history.epoch, history.end.is_some());
        history.lines.extend(lines_of(body).map(<[u8]>::to_vec));
        history.epoch = epoch;
        self.require(&mut state, first == number, || format!("{run}: {first} is stored as {number}"));
        self.require(&mut state, epoch >= last_epoch, || {
            format!("{run}: entry {first} of epoch {epoch} is behind one of epoch {last_epoch}")
        });
        self.require(&mut state, lease == (server.to_owned(), epoch), || {
            format!("{run}: {server} with epoch {epoch} writes entry {first}, and {lease:?} has the lease")
        });
        self.require(&mut state, !has_ended, || format!("{run}: entry {first} is behind the end"));
    }

    /// Notes that a run has ended, after its last entries were stored: once, with an entry that says so.
    pub(super) fn note_end(&self, run: &str, epoch: i64, status: &str) {
        let mut state = self.lock();
        match status {
            "completed" => state.counts.completed += 1,
            _ => state.counts.interrupted += 1,
        }
        let Some(history) = state.runs.get_mut(run) else { return };
        let former = history.end.replace(epoch);
        let ends = history.lines.iter().filter(|line| is_end(line)).count();
        let is_last = history.lines.last().is_some_and(|line| is_end(line));
        self.require(&mut state, former.is_none(), || format!("{run} ends twice"));
        self.require(&mut state, ends == 1 && is_last, || format!("{run} has {ends} entries that end it"));
    }

    /// Notes that the renewal of a lease, sent at `sent`, was answered.
    pub(super) fn note_renewal(&self, server: &str, sent: Instant) {
        let mut state = self.lock();
        let history =
            state.servers.entry(server.to_owned()).or_insert(ServerHistory { renewed: sent, lapse: None });
        if history.renewed.elapsed() >= self.valid_time {
            history.lapse = Some(Instant::now());
        }
        history.renewed = sent;
    }

    // Answers of the servers.

    /// Returns `true` if the lease of a server may not have been valid at some time since `since`.
    fn has_lapsed(&self, state: &CheckerState, server: &str, since: Instant) -> bool {
        state.servers.get(server).is_none_or(|history| {
            history.renewed.elapsed() >= self.valid_time || history.lapse.is_some_and(|lapse| lapse >= since)
        })
    }

    /// Checks what a lease tells its run: these lines, from number `first` on, are settled. The run acts now, and
    /// another server must not have taken it over.
    pub(super) fn check_acknowledged(
        &self,
        run: &str,
        (server, epoch): (&str, i64),
        first: u64,
        lines: &[Vec<u8>],
    ) {
        let mut state = self.lock();
        state.counts.acknowledged += 1;
        let Some(history) = state.runs.get(run) else {
            return self.require(&mut state, false, || format!("{run} is acknowledged and does not exist"));
        };
        let from = usize::try_from(first - 1).unwrap();
        let is_stored = history.lines.get(from..from + lines.len()).is_some_and(|stored| stored == lines);
        let lease = history.lease.clone();
        self.require(&mut state, is_stored, || {
            format!("{run}: entries from {first} on are acknowledged and not stored")
        });
        self.require(&mut state, lease == (server.to_owned(), epoch), || {
            format!("{run}: {server} with epoch {epoch} acts, and {lease:?} has the lease")
        });
    }

    /// Checks that a lease which does not go on has a reason: another lease, an end by another server, or a lease
    /// of its server that may not have been valid at some time since `since`.
    pub(super) fn check_refused(
        &self,
        run: &str,
        (server, epoch): (&str, i64),
        since: Instant,
        outcome: WriteOutcome,
    ) {
        let mut state = self.lock();
        state.counts.refused += u64::from(outcome == WriteOutcome::Fenced);
        let has_lapsed = self.has_lapsed(&state, server, since);
        let Some(history) = state.runs.get(run) else { return };
        let has_reason = has_lapsed || (history.lease.1 > epoch && history.end != Some(epoch));
        let (lease, end) = (history.lease.clone(), history.end);
        self.require(&mut state, has_reason, || {
            format!(
                "{run}: {server} with epoch {epoch} is told {outcome:?}; {lease:?} has the lease, end {end:?}"
            )
        });
    }

    /// Checks that a lease has read its whole log, which has `expected` entries; `is_whole` is true if it got each
    /// of them once.
    pub(super) fn check_read(&self, run: &str, (server, epoch): (&str, i64), expected: u64, is_whole: bool) {
        let mut state = self.lock();
        // A lease that was taken over may read what the next one has written.
        let is_current =
            state.runs.get(run).is_some_and(|history| history.lease == (server.to_owned(), epoch));
        self.require(&mut state, !is_current || is_whole, || {
            format!("{run}: {server} with epoch {epoch} does not read its {expected} entries")
        });
    }

    /// Checks a batch for a reader that has seen the entries up to `after`: the next ones, as they are stored.
    pub(super) fn check_shown(&self, run: &str, reader: &str, after: u64, batch: &Batch) {
        let mut state = self.lock();
        state.counts.shown += 1;
        self.require(&mut state, batch.first() == after + 1 && !batch.is_empty(), || {
            format!("{run}: {reader} gets {} to {} after {after}", batch.first(), batch.last())
        });
        let from = usize::try_from(batch.first() - 1).unwrap();
        let stored = state.runs.get(run).and_then(|history| history.lines.get(from..)).unwrap_or_default();
        let count = usize::try_from(batch.last() + 1 - batch.first()).unwrap();
        let is_stored = lines_of(batch.body()).count() == count
            && stored.len() >= count
            && lines_of(batch.body()).zip(stored).all(|(line, stored)| line == stored.as_slice());
        self.require(&mut state, is_stored, || {
            format!("{run}: {reader} is shown {} to {}, which are not stored", batch.first(), batch.last())
        });
    }

    /// Returns the runs that have not ended.
    pub(super) fn open_runs(&self) -> Vec<String> {
        let state = self.lock();
        state.runs.iter().filter(|(_, history)| history.end.is_none()).map(|(run, _)| run.clone()).collect()
    }
}
