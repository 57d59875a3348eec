//! Database of a simulation, in memory: the statements of PostgreSQL on runs, each applied at one moment, and
//! the faults on the way to it and back.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep};

use super::checker::Checker;
use super::scheduler::{ProcessId, Scheduler};
use crate::postgres::database::{EndRow, EntryRow, InsertOutcome, RunDatabase, RunHolder, ServerRow};
use crate::postgres::run_insert::FIRST_EPOCH;
use crate::{Batch, MessageRow, NewRun};

/// Frequency of faults, in calls of 100.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FaultRates {
    /// Calls that take long, before or after their effect.
    pub(super) slow: u64,
    /// Longest delay of such a call, in milliseconds.
    pub(super) longest: u64,
    /// Calls that fail without effect.
    pub(super) refused: u64,
    /// Calls that fail, or have no answer, after their effect.
    pub(super) unanswered: u64,
    /// Calls that fail, and have their effect later.
    pub(super) late: u64,
    /// Calls that have neither effect nor answer for a long time.
    pub(super) silent: u64,
    /// Calls, of 1000, at whose effect the server stands still or is killed.
    pub(super) strikes: u64,
}

/// Fault of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallFault {
    None,
    Refused,
    Unanswered,
    Late,
    Silent,
}

/// Database that all servers share.
pub(super) struct SimulatedDatabase {
    scheduler: Scheduler,
    checker: Arc<Checker>,
    rows: Mutex<Rows>,
    rates: Mutex<FaultRates>,
    /// Servers that have no connection to the database.
    cut_servers: watch::Sender<BTreeSet<String>>,
    /// Number of restarts.
    restarts: watch::Sender<u64>,
    /// Time up to which a restart takes.
    down_until: Mutex<Instant>,
}

/// Rows of the tables.
struct Rows {
    checker: Arc<Checker>,
    scheduler: Scheduler,
    /// End of the lease of each server, and its address.
    servers: BTreeMap<String, (Instant, Option<String>)>,
    messages: BTreeMap<String, MessageRow>,
    runs: BTreeMap<String, RunRow>,
    entries: BTreeMap<String, Vec<StoredEntries>>,
    next_number: i64,
}

/// Row of a run.
#[derive(Clone, Debug)]
struct RunRow {
    number: i64,
    conversation: String,
    server: Option<String>,
    epoch: i64,
    next: i64,
}

/// Row of entries.
#[derive(Clone, Debug, PartialEq, Eq)]
struct StoredEntries {
    message: String,
    epoch: i64,
    first: i64,
    last: i64,
    body: Vec<u8>,
}

impl From<&EntryRow<'_>> for StoredEntries {
    fn from(row: &EntryRow<'_>) -> StoredEntries {
        let EntryRow { message, epoch, first, last, body } = *row;
        StoredEntries { message: message.to_owned(), epoch, first, last, body: body.to_vec() }
    }
}

fn broken_connection() -> sqlx::Error {
    sqlx::Error::Io(io::Error::from(io::ErrorKind::ConnectionReset))
}

impl SimulatedDatabase {
    pub(super) fn new(scheduler: Scheduler, checker: Arc<Checker>) -> SimulatedDatabase {
        SimulatedDatabase {
            rows: Mutex::new(Rows {
                checker: checker.clone(),
                scheduler: scheduler.clone(),
                servers: BTreeMap::new(),
                messages: BTreeMap::new(),
                runs: BTreeMap::new(),
                entries: BTreeMap::new(),
                next_number: 1,
            }),
            scheduler,
            checker,
            rates: Mutex::default(),
            cut_servers: watch::Sender::default(),
            restarts: watch::Sender::default(),
            down_until: Mutex::new(Instant::now()),
        }
    }

    fn lock_rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if a server has a row.
    pub(super) fn has_server(&self, server: &str) -> bool {
        self.lock_rows().servers.contains_key(server)
    }

    pub(super) fn set_rates(&self, rates: FaultRates) {
        *self.rates.lock().unwrap_or_else(PoisonError::into_inner) = rates;
    }

    /// Cuts a server off, or connects it again.
    pub(super) fn set_cut(&self, server: &str, is_cut: bool) {
        self.cut_servers.send_modify(|servers| {
            if is_cut {
                servers.insert(server.to_owned());
            } else {
                servers.remove(server);
            }
        });
    }

    fn is_cut(&self, server: &str) -> bool {
        self.cut_servers.borrow().contains(server)
    }

    async fn wait_connected(&self, server: &str) {
        let mut cut_servers = self.cut_servers.subscribe();
        let _ = cut_servers.wait_for(|servers| !servers.contains(server)).await;
    }

    /// Restarts the database, which takes that time: all calls in flight fail.
    pub(super) fn restart(&self, time: Duration) {
        *self.down_until.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now() + time;
        self.restarts.send_modify(|restarts| *restarts += 1);
    }

    fn is_down(&self) -> bool {
        *self.down_until.lock().unwrap_or_else(PoisonError::into_inner) > Instant::now()
    }

    /// Draws the fault of a call and its delays before and after the effect, in milliseconds.
    fn draw_fault(&self) -> (CallFault, [u64; 2]) {
        let rates = *self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        let draw_delay = || {
            let longest = if self.scheduler.chance(rates.slow) { rates.longest } else { 2 };
            self.scheduler.below(longest + 1)
        };
        let delays = [draw_delay(), draw_delay()];
        let mut draw = self.scheduler.below(100);
        for (fault, rate) in [
            (CallFault::Refused, rates.refused),
            (CallFault::Unanswered, rates.unanswered),
            (CallFault::Late, rates.late),
            (CallFault::Silent, rates.silent),
        ] {
            if draw < rate {
                return (fault, delays);
            }
            draw -= rate;
        }
        (CallFault::None, delays)
    }

    /// Stops or kills a server in the middle of one of its calls.
    fn strike(&self, server: &str, process: ProcessId, name: &'static str) {
        if self.scheduler.chance(30) {
            self.scheduler.trace(format_args!("{server} is killed at its {name}"));
            return self.scheduler.kill(process);
        }
        self.scheduler.trace(format_args!("{server} stands still at its {name}"));
        self.scheduler.freeze(process);
        let (scheduler, server) = (self.scheduler.clone(), server.to_owned());
        self.scheduler.spawn(None, async move {
            scheduler.pause(10, 4000).await;
            scheduler.trace(format_args!("{server} goes on"));
            scheduler.thaw(process);
        });
    }

    /// Carries a call of a server out.
    async fn carry_out<T>(
        self: &Arc<SimulatedDatabase>,
        (server, process): (&str, ProcessId),
        name: &'static str,
        effect: impl FnOnce(&mut Rows) -> T + Send + 'static,
    ) -> sqlx::Result<T> {
        let (fault, [delay_before, delay_after]) = self.draw_fault();
        let mut restarts = self.restarts.subscribe();
        if self.is_cut(server) {
            self.wait_connected(server).await;
            return Err(broken_connection());
        }
        if self.is_down() {
            return Err(broken_connection());
        }
        tokio::select! {
            biased;
            _ = restarts.changed() => {
                // The last that it does may be a commit.
                if self.scheduler.chance(30) {
                    self.checker.count(|counts| counts.unanswered += 1);
                    self.scheduler.trace(format_args!("{server} {name}: applied, then the database restarts"));
                    effect(&mut self.lock_rows());
                }
                return Err(broken_connection());
            }
            () = sleep(Duration::from_millis(delay_before)) => {}
        }
        if self.is_cut(server) {
            self.wait_connected(server).await;
            return Err(broken_connection());
        }
        if fault != CallFault::None {
            self.scheduler.trace(format_args!("{server} {name}: {fault:?}"));
        }
        match fault {
            CallFault::Refused => return Err(broken_connection()),
            CallFault::Silent => {
                self.scheduler.pause(200, 3000).await;
                return Err(broken_connection());
            }
            CallFault::Late => {
                if self.scheduler.chance(30) {
                    self.strike(server, process, name);
                }
                let (database, server) = (self.clone(), server.to_owned());
                self.scheduler.spawn(None, async move {
                    let mut restarts = database.restarts.subscribe();
                    tokio::select! {
                        biased;
                        _ = restarts.changed() => return,
                        () = database.scheduler.pause(1, 2500) => {}
                    }
                    database.checker.count(|counts| counts.unanswered += 1);
                    database.scheduler.trace(format_args!("{server} {name}: applied late"));
                    effect(&mut database.lock_rows());
                });
                return Err(broken_connection());
            }
            CallFault::None | CallFault::Unanswered => {}
        }
        let value = effect(&mut self.lock_rows());
        let rate = self.rates.lock().unwrap_or_else(PoisonError::into_inner).strikes;
        if self.scheduler.below(1000) < rate {
            self.strike(server, process, name);
        }
        if fault == CallFault::Unanswered {
            self.checker.count(|counts| counts.unanswered += 1);
            if self.scheduler.chance(50) {
                self.scheduler.pause(200, 3000).await;
            }
            return Err(broken_connection());
        }
        tokio::select! {
            biased;
            _ = restarts.changed() => return Err(broken_connection()),
            () = sleep(Duration::from_millis(delay_after)) => {}
        }
        if self.is_cut(server) {
            self.wait_connected(server).await;
            return Err(broken_connection());
        }
        Ok(value)
    }
}

impl Rows {
    /// Returns `true` if a server can claim a run.
    fn is_claimable(&self, run: &RunRow, server: &str) -> bool {
        run.server.as_ref().is_none_or(|holder| {
            holder == server || self.servers.get(holder).is_none_or(|(lease, _)| *lease <= Instant::now())
        })
    }

    fn insert_run(&mut self, new: &NewRun, server: &str) -> i64 {
        let number = self.next_number;
        self.next_number += 1;
        let row = MessageRow {
            number: Some(number),
            server: Some(server.to_owned()),
            epoch: Some(FIRST_EPOCH),
            ..new.row.clone()
        };
        let run = RunRow {
            number,
            conversation: row.conversation_id.clone(),
            server: Some(server.to_owned()),
            epoch: FIRST_EPOCH,
            next: 1,
        };
        self.scheduler.trace(format_args!("{} begins on {server}", row.id));
        self.checker.note_insert(&row.id, server, FIRST_EPOCH);
        self.runs.insert(row.id.clone(), run);
        self.messages.insert(row.id.clone(), row);
        number
    }

    fn delete_run(&mut self, message: &str, epoch: i64) {
        if self.runs.get(message).is_none_or(|run| run.epoch != epoch) {
            return;
        }
        self.scheduler.trace(format_args!("{message} is deleted"));
        self.runs.remove(message);
        self.messages.remove(message);
        self.checker.note_delete(message);
    }

    fn claim_run(&mut self, message: &str, server: &str) -> Option<(i64, i64)> {
        let run = self.runs.get(message).filter(|run| self.is_claimable(run, server))?;
        // Another statement may have the row locked.
        if self.scheduler.chance(3) {
            return None;
        }
        let run = RunRow { server: Some(server.to_owned()), epoch: run.epoch + 1, ..run.clone() };
        let (epoch, next) = (run.epoch, run.next);
        self.scheduler.trace(format_args!("{message} is claimed by {server}, epoch {epoch}, next {next}"));
        self.checker.note_claim(message, server, epoch);
        self.runs.insert(message.to_owned(), run);
        if let Some(row) = self.messages.get_mut(message) {
            (row.server, row.epoch) = (Some(server.to_owned()), Some(epoch));
        }
        Some((epoch, next))
    }

    fn store_entries(&mut self, server: &str, rows: Vec<StoredEntries>) -> HashSet<String> {
        let mut stored = HashSet::new();
        for row in rows {
            let Some(run) = self.runs.get_mut(&row.message) else { continue };
            if run.epoch != row.epoch || run.next != row.first {
                continue;
            }
            run.next = row.last + 1;
            stored.insert(row.message.clone());
            self.insert_entries(server, row);
        }
        stored
    }

    fn insert_entries(&mut self, server: &str, row: StoredEntries) {
        let StoredEntries { message, epoch, first, last, body } = &row;
        self.scheduler
            .trace(format_args!("{message}: {first} to {last} of {server}, epoch {epoch}, are stored"));
        self.checker.note_stored(message, server, *epoch, first.cast_unsigned(), body);
        self.entries.entry(message.clone()).or_default().push(row);
    }

    fn store_end(&mut self, server: &str, message: MessageRow, next: i64, last: StoredEntries) -> bool {
        let epoch = last.epoch;
        if self.runs.get(&message.id).is_none_or(|run| run.epoch != epoch || run.next != next) {
            return false;
        }
        self.runs.remove(&message.id);
        if last.last >= last.first {
            self.insert_entries(server, last);
        }
        self.scheduler.trace(format_args!("{} ends: {}, epoch {epoch}", message.id, message.status));
        self.checker.note_end(&message.id, epoch, &message.status);
        if let Some(row) = self.messages.get_mut(&message.id) {
            (row.status, row.outcome) = (message.status, message.outcome);
        }
        true
    }
}

/// Connection of one server to the database.
pub(super) struct DatabaseClient {
    pub(super) database: Arc<SimulatedDatabase>,
    pub(super) server: String,
    pub(super) process: ProcessId,
}

impl DatabaseClient {
    /// Makes a call. It goes on if the caller goes away.
    async fn call<T: Send + 'static>(
        &self,
        name: &'static str,
        effect: impl FnOnce(&mut Rows) -> T + Send + 'static,
    ) -> sqlx::Result<T> {
        let (sender, receiver) = oneshot::channel();
        let (database, server, process) = (self.database.clone(), self.server.clone(), self.process);
        self.database.scheduler.spawn(None, async move {
            drop(sender.send(database.carry_out((&server, process), name, effect).await));
        });
        receiver.await.unwrap_or_else(|_| Err(broken_connection()))
    }
}

#[async_trait]
impl RunDatabase for DatabaseClient {
    async fn renew_server(&self, server: ServerRow<'_>) -> sqlx::Result<()> {
        let sent = Instant::now();
        let (id, address, lease) = (server.id.to_owned(), server.address.map(str::to_owned), server.lease);
        let renewal = self.call("renewal", move |rows| {
            rows.servers.insert(id, (Instant::now() + lease, address));
        });
        renewal.await?;
        self.database.checker.note_renewal(server.id, sent);
        Ok(())
    }

    async fn delete_server(&self, server: &str) -> sqlx::Result<()> {
        let server = server.to_owned();
        self.call("end of the server", move |rows| drop(rows.servers.remove(&server))).await
    }

    async fn insert_run(
        &self,
        new: &NewRun,
        server: &str,
        _claim_holder: Option<&str>,
    ) -> sqlx::Result<InsertOutcome> {
        let (new, server) = (new.clone(), server.to_owned());
        let insertion = self.call("begin", move |rows| rows.insert_run(&new, &server));
        Ok(insertion.await.map_or_else(InsertOutcome::Unknown, InsertOutcome::Inserted))
    }

    async fn message_number(&self, message: &str) -> sqlx::Result<Option<i64>> {
        let message = message.to_owned();
        self.call("number", move |rows| rows.messages.get(&message).and_then(|row| row.number)).await
    }

    async fn delete_run(
        &self,
        message: &str,
        epoch: i64,
        _opened_conversation: Option<&str>,
    ) -> sqlx::Result<()> {
        let message = message.to_owned();
        self.call("deletion", move |rows| rows.delete_run(&message, epoch)).await
    }

    async fn claim_run(&self, message: &str, server: &str) -> sqlx::Result<Option<(i64, i64)>> {
        let (message, server) = (message.to_owned(), server.to_owned());
        self.call("claim", move |rows| rows.claim_run(&message, &server)).await
    }

    async fn release_run(&self, message: &str, epoch: i64) -> sqlx::Result<()> {
        let message = message.to_owned();
        let release = self.call("release", move |rows| {
            if let Some(run) = rows.runs.get_mut(&message).filter(|run| run.epoch == epoch) {
                run.server = None;
                rows.scheduler.trace(format_args!("{message} is given up, epoch {epoch}"));
            }
        });
        release.await
    }

    async fn list_claimable(
        &self,
        server: &str,
        local_messages: Vec<String>,
    ) -> sqlx::Result<Vec<MessageRow>> {
        let server = server.to_owned();
        let list = self.call("list", move |rows| {
            let mut messages: Vec<MessageRow> = rows
                .runs
                .iter()
                .filter(|(id, run)| !local_messages.contains(id) && rows.is_claimable(run, &server))
                .filter_map(|(id, _)| rows.messages.get(id).cloned())
                .collect();
            messages.sort_by_key(|row| row.number);
            messages
        });
        list.await
    }

    async fn message(&self, message: &str) -> sqlx::Result<Option<MessageRow>> {
        let message = message.to_owned();
        self.call("message", move |rows| rows.messages.get(&message).cloned()).await
    }

    async fn store_entries(&self, rows: &[EntryRow<'_>]) -> sqlx::Result<HashSet<String>> {
        let (server, new_rows) = (self.server.clone(), rows.iter().map(StoredEntries::from).collect());
        self.call("append", move |rows| rows.store_entries(&server, new_rows)).await
    }

    async fn find_entries(&self, rows: &[EntryRow<'_>]) -> sqlx::Result<HashSet<String>> {
        let wanted: Vec<StoredEntries> = rows.iter().map(StoredEntries::from).collect();
        let search = self.call("search", move |rows| {
            let is_stored = |row: &&StoredEntries| {
                rows.entries.get(&row.message).is_some_and(|stored| stored.contains(row))
            };
            wanted.iter().filter(is_stored).map(|row| row.message.clone()).collect()
        });
        search.await
    }

    async fn store_end(&self, end: EndRow<'_>) -> sqlx::Result<bool> {
        let (server, row, first) = (self.server.clone(), end.row.clone(), end.first_number.cast_signed());
        let last = StoredEntries {
            message: row.id.clone(),
            epoch: end.epoch,
            first: end.last.first().cast_signed(),
            last: end.last.last().cast_signed(),
            body: end.last.body().to_vec(),
        };
        self.call("end", move |rows| rows.store_end(&server, row, first, last)).await
    }

    async fn is_end_stored(&self, message: &str, epoch: i64) -> sqlx::Result<bool> {
        let message = message.to_owned();
        let look = self.call("look for the end", move |rows| {
            rows.messages.get(&message).is_some_and(|row| row.epoch == Some(epoch) && row.outcome.is_some())
        });
        look.await
    }

    async fn run_holder(&self, message: &str) -> sqlx::Result<RunHolder> {
        let message = message.to_owned();
        let look = self.call("holder", move |rows| match rows.messages.get(&message) {
            None => RunHolder::Gone,
            Some(row) if row.status != "running" => RunHolder::Ended,
            Some(_) => match rows.runs.get(&message).and_then(|run| run.server.as_ref()) {
                Some(_) => RunHolder::Server,
                None => RunHolder::Nobody,
            },
        });
        look.await
    }

    async fn remote_address(&self, message: &str, server: &str) -> sqlx::Result<Option<String>> {
        let (message, server) = (message.to_owned(), server.to_owned());
        let look = self.call("address", move |rows| {
            let holder = rows.runs.get(&message)?.server.as_ref().filter(|holder| **holder != server)?;
            let (lease, address) = rows.servers.get(holder)?;
            address.clone().filter(|_| *lease > Instant::now())
        });
        look.await
    }

    async fn read_entries(&self, message: &str, after: i64, bytes: usize) -> sqlx::Result<Vec<Batch>> {
        let message = message.to_owned();
        let read = self.call("read", move |rows| {
            let (mut batches, mut bytes_read) = (Vec::new(), 0);
            let stored = rows.entries.get(&message).map(Vec::as_slice).unwrap_or_default();
            for row in stored.iter().filter(|row| row.last > after) {
                let (first, last) = (row.first.cast_unsigned(), row.last.cast_unsigned());
                batches.push(Batch::from_stored(first, last, row.body.clone()));
                bytes_read += row.body.len();
                if bytes_read >= bytes {
                    break;
                }
            }
            batches
        });
        read.await
    }

    async fn has_runs_before(&self, conversation: &str, number: i64) -> sqlx::Result<bool> {
        let conversation = conversation.to_owned();
        let look = self.call("earlier runs", move |rows| {
            rows.runs
                .values()
                .any(|run| run.conversation == conversation && run.number < number && run.server.is_some())
        });
        look.await
    }

    async fn next_run_number(&self, conversation: &str) -> sqlx::Result<i64> {
        let conversation = conversation.to_owned();
        let look = self.call("next run", move |rows| {
            let runs = rows.runs.values().filter(|run| run.conversation == conversation);
            runs.map(|run| run.number).max().unwrap_or(0) + 1
        });
        look.await
    }
}
