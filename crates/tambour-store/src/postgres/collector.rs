//! Collectors: each takes the appends of many runs that have come since the last commit, and stores them with
//! one statement, which also checks that this server still holds the lease of each run.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::PgConnection;
use tokio::sync::Notify;

use super::StoreState;
use super::local_runs::LocalRun;
use crate::fail;
use crate::tail::DrainedEntries;

/// Maximum number of runs in one statement.
const MAX_RUNS: usize = 64;
/// Approximate maximum number of bytes in one statement.
const MAX_BYTES: usize = 1 << 20;
/// Longest pause between two attempts to reach the database.
const MAX_PAUSE: Duration = Duration::from_secs(1);

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
                _ => drop(run.mark_written()),
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
pub(super) async fn collect_appends(shared: Arc<StoreState>) {
    loop {
        let group = tokio::select! {
            group = shared.append_queue.next_group() => group,
            () = shared.closed.cancelled() => return,
        };
        tokio::select! {
            () = write_group(&shared, group) => {}
            () = shared.closed.cancelled() => return,
        }
    }
}

/// Writes a group of appends, retrying until the database answers, waits are aborted or the lease of this
/// server may be lost. Shows stored entries to readers, and fences the runs whose entries were not stored.
async fn write_group(shared: &StoreState, group: Vec<TakenAppend>) {
    let mut pause = Duration::from_millis(20);
    let mut may_be_stored = false;
    let stored = loop {
        fail::point("append.before");
        match attempt(shared, &group, may_be_stored).await {
            Ok(stored) => break stored,
            Err(error) => {
                tracing::error!(%error, runs = group.len(), "entries could not be stored; trying again");
                may_be_stored = true;
            }
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shared.abort_waits.cancelled() => break HashSet::new(),
        }
        if !shared.server_lease.is_valid() {
            break HashSet::new();
        }
        pause = (pause * 2).min(MAX_PAUSE);
    };
    fail::point("append.after");
    for append in group {
        settle(shared, &append, stored.contains(&append.run.tail.message));
    }
}

/// Stores a group of appends, or finds that they are stored; returns the ids of the messages whose entries
/// are. Gives up when the lease of this server is over, and then closes the connection too: the database may
/// be silent.
async fn attempt(
    shared: &StoreState,
    group: &[TakenAppend],
    may_be_stored: bool,
) -> sqlx::Result<HashSet<String>> {
    let mut connection = shared.append_pool.acquire().await?;
    let work = async {
        let mut stored = store_entries(&mut connection, group).await?;
        // An earlier attempt without an answer may have stored the entries that are refused now.
        if may_be_stored && stored.len() < group.len() {
            stored.extend(find_stored(&mut connection, group).await?);
        }
        Ok(stored)
    };
    match tokio::time::timeout(shared.server_lease.valid_time(), work).await {
        Ok(result) => result,
        Err(_) => {
            drop(connection.detach());
            Err(sqlx::Error::PoolTimedOut)
        }
    }
}

/// Shows stored entries to readers, or fences the run if they were not stored.
fn settle(shared: &StoreState, append: &TakenAppend, is_stored: bool) {
    let tail = &append.run.tail;
    if is_stored {
        tail.mark_stored(&append.drained);
        // A server that may have lost its lease shows no entries, not even stored ones.
        if shared.server_lease.is_valid() {
            tail.publish(append.drained.end());
        }
    } else {
        tracing::warn!(message_id = tail.message, "the run is fenced: another server holds its lease");
        shared.fenced_runs.fetch_add(1, Ordering::Relaxed);
        tail.fence();
    }
    if append.run.mark_written() {
        shared.append_queue.push(append.run.clone());
    }
}

/// Stores the entries of runs whose epoch and next number are as expected. Returns the ids of the messages
/// whose entries were stored.
async fn store_entries(
    connection: &mut PgConnection,
    group: &[TakenAppend],
) -> sqlx::Result<HashSet<String>> {
    let query = sqlx::query_scalar::<_, String>(
        "with input as (select * from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bytea[]) \
         as input (id, epoch, first, last, body)), \
         moved as (update runs set next = input.last + 1 from input \
         where runs.id = input.id and runs.epoch = input.epoch and runs.next = input.first \
         returning runs.id, input.first, input.last, input.epoch, runs.day, input.body) \
         insert into entries (message_id, first, last, epoch, day, body) \
         select id, first, last, epoch, day, body from moved returning message_id",
    );
    let stored = query.bind(messages(group)).bind(epochs(group)).bind(firsts(group));
    let stored = stored.bind(lasts(group)).bind(bodies(group)).fetch_all(&mut *connection).await?;
    Ok(stored.into_iter().collect())
}

/// Returns the ids of the messages whose entries are stored with the same epoch and bytes.
async fn find_stored(connection: &mut PgConnection, group: &[TakenAppend]) -> sqlx::Result<HashSet<String>> {
    let query = sqlx::query_scalar::<_, String>(
        "select entries.message_id from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bytea[]) \
         as input (id, epoch, first, last, body) join entries on entries.message_id = input.id \
         and entries.first = input.first and entries.last = input.last and entries.epoch = input.epoch \
         and entries.body = input.body",
    );
    let found = query.bind(messages(group)).bind(epochs(group)).bind(firsts(group));
    let found = found.bind(lasts(group)).bind(bodies(group)).fetch_all(&mut *connection).await?;
    Ok(found.into_iter().collect())
}

fn messages(group: &[TakenAppend]) -> Vec<&str> {
    group.iter().map(|append| append.run.tail.message.as_str()).collect()
}

fn epochs(group: &[TakenAppend]) -> Vec<i64> {
    group.iter().map(|append| append.run.epoch).collect()
}

fn firsts(group: &[TakenAppend]) -> Vec<i64> {
    group.iter().map(|append| append.first).collect()
}

fn lasts(group: &[TakenAppend]) -> Vec<i64> {
    group.iter().map(|append| append.last).collect()
}

fn bodies(group: &[TakenAppend]) -> Vec<&[u8]> {
    group.iter().map(|append| append.body.as_slice()).collect()
}
