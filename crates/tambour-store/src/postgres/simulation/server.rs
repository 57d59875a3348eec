//! Server of a simulation: the runs of the store, and what a server does with them: writers that append and act,
//! takeovers, and logs for the other servers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};

use super::checker::Checker;
use super::database::{DatabaseClient, SimulatedDatabase};
use super::scheduler::{ProcessId, Scheduler};
use crate::postgres::server_runs::ServerRuns;
use crate::{
    Batch, BeginOutcome, Lease, LogEntryKind, MessageOutcome, MessageRow, NewRun, PeerReader, RunEnd,
    WriteOutcome,
};

/// Time without a renewal after which the others take over.
pub(super) const LEASE: Duration = Duration::from_secs(1);
/// Number of collectors of a server.
const COLLECTORS: u32 = 2;
/// Time between two signs of life to a server that follows a log.
const HEARTBEAT: Duration = Duration::from_millis(200);
/// Time without a sign of life after which a server counts as gone.
const SILENCE: Duration = Duration::from_millis(600);
/// Epoch of the lease of the server that takes over first. A run is asked again once.
const FIRST_TAKEOVER: i64 = 2;

/// State that all servers and readers of a simulation share.
#[derive(Clone)]
pub(super) struct World {
    pub(super) scheduler: Scheduler,
    pub(super) checker: Arc<Checker>,
    pub(super) database: Arc<SimulatedDatabase>,
    /// Addresses that the other servers do not reach.
    cut_addresses: Arc<Mutex<BTreeSet<String>>>,
    /// Servers by address.
    servers: Arc<Mutex<BTreeMap<String, Server>>>,
}

/// One start of a server.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) id: String,
    pub(super) process: ProcessId,
    world: World,
    runs: Arc<Mutex<Option<Arc<ServerRuns>>>>,
}

impl World {
    pub(super) fn new(scheduler: Scheduler) -> World {
        let checker = Arc::new(Checker::new(scheduler.clone(), LEASE * 3 / 5));
        let database = Arc::new(SimulatedDatabase::new(scheduler.clone(), checker.clone()));
        World { scheduler, checker, database, cut_addresses: Arc::default(), servers: Arc::default() }
    }

    /// Starts a server. It takes part once it is registered.
    pub(super) fn start_server(&self, id: String) -> Server {
        let process = self.scheduler.new_process();
        let server = Server { id, process, world: self.clone(), runs: Arc::default() };
        self.servers.lock().unwrap_or_else(PoisonError::into_inner).insert(server.id.clone(), server.clone());
        self.scheduler.spawn(Some(process), server.clone().serve());
        server
    }

    /// Cuts the connections to a server from the others, or connects them again.
    pub(super) fn set_cut(&self, address: &str, is_cut: bool) {
        let mut addresses = self.cut_addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if is_cut {
            addresses.insert(address.to_owned());
        } else {
            addresses.remove(address);
        }
    }

    fn is_cut(&self, address: &str) -> bool {
        self.cut_addresses.lock().unwrap_or_else(PoisonError::into_inner).contains(address)
    }

    fn server(&self, address: &str) -> Option<Server> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner).get(address).cloned()
    }

    /// Lets go of the servers, whose tasks hold them.
    pub(super) fn clear(&self) {
        let servers = std::mem::take(&mut *self.servers.lock().unwrap_or_else(PoisonError::into_inner));
        for server in servers.into_values() {
            drop(server.runs.lock().unwrap_or_else(PoisonError::into_inner).take());
        }
    }
}

/// Reader of the logs of other servers, for one server.
struct PeerLogs {
    world: World,
}

#[async_trait]
impl PeerReader for PeerLogs {
    async fn follow(&self, address: &str, message: &str, after: u64) -> Option<BoxStream<'static, Batch>> {
        let (world, scheduler) = (self.world.clone(), self.world.scheduler.clone());
        scheduler.pause(0, 3).await;
        if world.is_cut(address) {
            sleep(SILENCE).await;
            return None;
        }
        let server = world.server(address).filter(|server| !scheduler.is_dead(server.process))?;
        let (response_sender, response) = oneshot::channel();
        let (frame_sender, frames) = mpsc::channel(2);
        let message = message.to_owned();
        scheduler.spawn(Some(server.process), async move {
            let runs = server.runs().filter(|runs| runs.local_runs.find(&message).is_some());
            let Some(runs) = runs else { return };
            let _ = response_sender.send(());
            let mut batches = runs.follow(&message, after, 1 << 14);
            loop {
                let frame = match timeout(HEARTBEAT, batches.next()).await {
                    Ok(Some(Ok(batch))) => Some(batch),
                    Ok(Some(Err(_)) | None) => return,
                    Err(_) => None,
                };
                server.world.scheduler.pause(0, 2).await;
                while server.world.is_cut(&server.id) {
                    sleep(HEARTBEAT).await;
                }
                if frame_sender.send(frame).await.is_err() {
                    return;
                }
            }
        });
        timeout(SILENCE, response).await.ok()?.ok()?;
        let batches = stream::unfold((frames, world), |(mut frames, world)| async move {
            loop {
                if let Some(batch) = timeout(SILENCE, frames.recv()).await.ok()?? {
                    world.checker.count(|counts| counts.peer_batches += 1);
                    return Some((batch, (frames, world)));
                }
            }
        });
        Some(batches.boxed())
    }
}

impl Server {
    pub(super) fn world(&self) -> World {
        self.world.clone()
    }

    /// Returns the runs of the server, once it is registered.
    pub(super) fn runs(&self) -> Option<Arc<ServerRuns>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Registers the server, and takes runs over until it ends.
    async fn serve(self) {
        let scheduler = self.world.scheduler.clone();
        let process = self.process;
        let runs = loop {
            let (database, server) = (self.world.database.clone(), self.id.clone());
            let database = Arc::new(DatabaseClient { database, server, process });
            let task_scheduler = scheduler.clone();
            let spawner = Arc::new(move |task| {
                let _ = task_scheduler.spawn_boxed(Some(process), task);
            });
            match ServerRuns::start(database, self.id.clone(), LEASE, COLLECTORS, spawner).await {
                Ok(runs) => break runs,
                Err(_) => scheduler.pause(50, 200).await,
            }
        };
        let _ = runs.peer_reader.set(Arc::new(PeerLogs { world: self.world.clone() }));
        *self.runs.lock().unwrap_or_else(PoisonError::into_inner) = Some(runs.clone());
        while let Err(_silence) =
            runs.server_lease.publish_address(&*runs.database, &runs.local_runs, self.id.clone()).await
        {
            scheduler.pause(10, 100).await;
        }
        loop {
            for row in runs.list_abandoned().await.unwrap_or_default() {
                let since = Instant::now();
                if let Ok(Some(lease)) = runs.claim_run(&row.id).await {
                    self.take_over(lease, since).await;
                }
            }
            scheduler.pause(100, 200).await;
        }
    }

    /// Lets the server come to its end, as at a restart: all its runs are left.
    pub(super) async fn stop(&self) {
        let (stopped_sender, stopped) = oneshot::channel();
        let server = self.clone();
        self.world.scheduler.spawn(Some(self.process), async move {
            if let Some(runs) = server.runs() {
                runs.close(Duration::from_millis(400)).await;
            }
            server.world.scheduler.pause(0, 300).await;
            let _ = stopped_sender.send(());
        });
        let _ = stopped.await;
    }

    /// Returns `true` if the server is coming to its end.
    fn is_closing(&self) -> bool {
        self.runs().is_none_or(|runs| runs.abort_waits.is_cancelled() || runs.closed.is_cancelled())
    }

    /// Begins a run. Returns its id once it has begun; the caller may go away meanwhile.
    pub(super) fn begin(&self, row: MessageRow) -> oneshot::Receiver<String> {
        let (sender, receiver) = oneshot::channel();
        let server = self.clone();
        self.world.scheduler.spawn(Some(self.process), async move {
            let Some(runs) = server.runs() else { return };
            let (id, since) = (row.id.clone(), Instant::now());
            let begin_runs = runs.clone();
            let begin = async move { begin_runs.begin(&NewRun { row, ..NewRun::default() }, None).await };
            let mut sender = sender;
            let outcome = tokio::select! {
                biased;
                () = sender.closed() => return,
                outcome = runs.begin_in_task(begin) => outcome,
            };
            let Ok(BeginOutcome::Started { lease, .. }) = outcome else { return };
            let _ = sender.send(id);
            server.spawn_writer(lease, since);
        });
        receiver
    }

    fn spawn_writer(&self, lease: Box<dyn Lease>, since: Instant) {
        let writer = RunWriter::new(self.clone(), lease, since);
        self.world.scheduler.spawn(Some(self.process), writer.write());
    }

    /// Takes a run over: goes on if nobody has seen anything of it, otherwise ends it.
    async fn take_over(&self, mut lease: Box<dyn Lease>, since: Instant) {
        if lease.epoch() == FIRST_TAKEOVER && lease.next_number() <= 2 {
            let Ok(batches) = lease.read(0, 1).await else { return };
            let is_prompt = |kind| kind == LogEntryKind::Event("prompt");
            if batches.iter().flat_map(Batch::entries).all(|entry| is_prompt(entry.kind)) {
                self.world.checker.count(|counts| counts.restarts += 1);
                return self.spawn_writer(lease, since);
            }
        }
        let Some(last_number) = self.read_log(&*lease).await else { return };
        let mut last = Batch::new(last_number + 1);
        last.push_event("error", |out| out.extend_from_slice(b"{\"code\":\"interrupted\"}"));
        let (id, epoch) = (lease.row().id.clone(), lease.epoch());
        if lease.next_number() != last_number + 1 {
            return;
        }
        let outcome = lease.finish(run_end(last.clone(), "failed")).await;
        self.check_outcome(&id, epoch, since, outcome, &last);
    }

    /// Reads the log of a lease, as the record of a message does. Returns the number of its last entry; `None`
    /// if it cannot be read.
    async fn read_log(&self, lease: &dyn Lease) -> Option<u64> {
        let (mut last, expected) = (0, lease.next_number() - 1);
        let mut is_whole = true;
        loop {
            let batches = lease.read(last, 1 << 20).await.ok()?;
            if batches.is_empty() {
                break;
            }
            for batch in &batches {
                is_whole &= batch.first() == last + 1;
                last = batch.last();
            }
        }
        is_whole &= last == expected;
        self.world.checker.check_read(&lease.row().id, (&self.id, lease.epoch()), expected, is_whole);
        Some(last)
    }

    /// Checks what a lease says of a write; `batch` is the end, if it has written one.
    fn check_outcome(&self, run: &str, epoch: i64, since: Instant, outcome: WriteOutcome, batch: &Batch) {
        let (checker, writer) = (&self.world.checker, (self.id.as_str(), epoch));
        match outcome {
            WriteOutcome::Stored => {
                checker.check_acknowledged(run, writer, batch.first(), &lines(batch));
            }
            WriteOutcome::Fenced | WriteOutcome::Unknown if !self.is_closing() => {
                checker.check_refused(run, writer, since, outcome);
            }
            _ => {}
        }
    }
}

fn lines(batch: &Batch) -> Vec<Vec<u8>> {
    batch.body().split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

fn run_end(last: Batch, status: &str) -> RunEnd {
    let outcome = MessageOutcome { summary: "{}".to_owned(), ..MessageOutcome::default() };
    RunEnd { last, status: status.to_owned(), outcome }
}

/// Run as a server carries it out.
struct RunWriter {
    server: Server,
    lease: Box<dyn Lease>,
    /// Time at which its server asked for the lease.
    since: Instant,
    /// Number of the first entry that this writer has appended.
    first: u64,
    /// Entries that this writer has appended.
    appended: Vec<Vec<u8>>,
}

impl RunWriter {
    fn new(server: Server, lease: Box<dyn Lease>, since: Instant) -> RunWriter {
        let first = lease.next_number();
        RunWriter { server, lease, since, first, appended: Vec::new() }
    }

    async fn write(mut self) {
        if let Err(outcome) = self.write_all().await {
            let (run, epoch) = (self.lease.row().id.clone(), self.lease.epoch());
            self.server.check_outcome(&run, epoch, self.since, outcome, &Batch::new(1));
        }
    }

    /// Appends entries and ends the run.
    async fn write_all(&mut self) -> Result<(), WriteOutcome> {
        let scheduler = self.server.world.scheduler.clone();
        if scheduler.chance(20) {
            self.lease.wait_earlier_runs().await;
        }
        if self.lease.next_number() == 1 {
            let mut prompt = Batch::new(1);
            prompt.push_event("prompt", |out| out.extend_from_slice(b"{}"));
            self.append(prompt).await?;
        }
        for _ in 0..scheduler.between(1, 12) {
            let batch = self.draw_batch();
            self.append(batch).await?;
            if scheduler.chance(25) {
                self.settle().await?;
            }
            if scheduler.chance(20) {
                self.trace(format_args!("reads its log"));
                let _ = self.server.read_log(&*self.lease).await;
            }
            if scheduler.chance(1) {
                // It gives up; another will end the run.
                return Ok(());
            }
            if scheduler.chance(70) {
                scheduler.pause(0, 250).await;
            }
        }
        self.trace(format_args!("reads its log"));
        let Some(last_number) = self.server.read_log(&*self.lease).await else { return Ok(()) };
        if last_number + 1 != self.lease.next_number() {
            return Ok(());
        }
        let mut last = Batch::new(last_number + 1);
        if scheduler.chance(50) {
            last.push_raw(last_number, "the last words");
        }
        last.push_event("completed", |out| out.extend_from_slice(b"{}"));
        self.trace(format_args!("ends with {last_number}"));
        let outcome = self.lease.finish(run_end(last.clone(), "completed")).await;
        outcome.into_result()?;
        self.appended.extend(lines(&last));
        self.check_settled();
        Ok(())
    }

    fn trace(&self, step: std::fmt::Arguments<'_>) {
        let (scheduler, run) = (&self.server.world.scheduler, &self.lease.row().id);
        scheduler.trace(format_args!("{run} on {} {step}", self.server.id));
    }

    /// Draws one to three entries, seldom very long ones.
    fn draw_batch(&self) -> Batch {
        let scheduler = &self.server.world.scheduler;
        let mut batch = Batch::new(self.lease.next_number());
        for _ in 0..scheduler.between(1, 3) {
            let (number, words) = (batch.last() + 1, scheduler.below(1 << 32));
            let length = match scheduler.below(200) {
                0 => 70_000,
                1..=5 => 9_000,
                _ => 0,
            };
            let filling = ".".repeat(length);
            batch.push_raw(number, &format!("{} {} {words} {filling}", self.server.id, self.lease.epoch()));
        }
        batch
    }

    async fn append(&mut self, batch: Batch) -> Result<(), WriteOutcome> {
        let lines = lines(&batch);
        self.trace(format_args!("appends {} to {}", batch.first(), batch.last()));
        self.lease.append(batch).await.into_result()?;
        self.appended.extend(lines);
        Ok(())
    }

    /// Waits until everything appended is settled, and acts.
    async fn settle(&self) -> Result<(), WriteOutcome> {
        self.trace(format_args!("waits"));
        self.lease.wait_settled().await.into_result()?;
        self.trace(format_args!("acts"));
        self.check_settled();
        Ok(())
    }

    fn check_settled(&self) {
        let (run, writer) = (&self.lease.row().id, (self.server.id.as_str(), self.lease.epoch()));
        self.server.world.checker.check_acknowledged(run, writer, self.first, &self.appended);
    }
}
