//! Simulation of a cluster: the runs of several servers, a database in memory and readers, in one thread. A seed
//! decides the order of the tasks, all delays and all faults, so that orders come up that real processes hardly
//! ever show, and a failure comes up again.
//!
//! `scheduler` polls the tasks and freezes or kills processes, `database` has the rows and the faults on the way
//! to them, `server` carries runs out and takes them over, `reader` follows logs, and `checker` checks the
//! promises.
//!
//! `SIMULATION_SEEDS=FIRST..LAST` chooses the seeds, without the last.

mod checker;
mod database;
mod reader;
mod scheduler;
mod server;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout};

use checker::Counts;
use database::FaultRates;
use reader::Reader;
use scheduler::Scheduler;
use server::{LEASE, Server, World};

use crate::MessageRow;

/// Number of servers.
const SERVERS: usize = 3;
/// Seeds that are always run.
const SEEDS: Range<u64> = 0..300;
/// Longest time that runs and readers need to come to an end once all faults are over.
const SETTLE_TIME: Duration = Duration::from_secs(30);

/// Simulation of one seed.
struct Simulation {
    world: World,
    /// Servers as they have started last.
    servers: Arc<Mutex<Vec<Server>>>,
    /// Number of readers that have not read their log to its end.
    open_readers: Arc<Mutex<usize>>,
    /// Faults that are not over yet.
    open_faults: Arc<Mutex<usize>>,
}

/// Result of a seed.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    violations: Vec<String>,
    counts: Counts,
    /// Hash of the trace.
    hash: u64,
}

impl Simulation {
    fn new(scheduler: Scheduler) -> Simulation {
        Simulation {
            world: World::new(scheduler),
            servers: Arc::default(),
            open_readers: Arc::default(),
            open_faults: Arc::default(),
        }
    }

    fn server(&self, slot: usize) -> Server {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)[slot].clone()
    }

    /// Runs servers, clients and faults, and waits until all has come to an end.
    async fn run(self: Arc<Simulation>) {
        let scheduler = &self.world.scheduler;
        for slot in 0..SERVERS {
            let server = self.world.start_server(format!("server-{slot}"));
            self.servers.lock().unwrap_or_else(PoisonError::into_inner).push(server);
        }
        for slot in 0..SERVERS {
            scheduler.spawn(None, self.clone().supervise(slot));
        }
        scheduler.pause(50, 300).await;
        self.world.database.set_rates(self.draw_rates());
        for client in 0..scheduler.between(1, 5) {
            scheduler.spawn(None, self.clone().request(client));
        }
        let end = Instant::now() + Duration::from_millis(scheduler.between(1000, 5000));
        let longest_pause = scheduler.between(100, 1500);
        while Instant::now() < end {
            scheduler.pause(20, longest_pause).await;
            self.inject_fault();
        }
        self.world.database.set_rates(FaultRates::default());
        if timeout(SETTLE_TIME, self.wait_end()).await.is_err() {
            let readers = *self.open_readers.lock().unwrap_or_else(PoisonError::into_inner);
            let runs = self.world.checker.open_runs();
            self.world.checker.fail(format!("no end of runs {runs:?} and {readers} readers"));
        }
    }

    /// Waits until faults, readers and runs are at an end.
    async fn wait_end(&self) {
        loop {
            let faults = *self.open_faults.lock().unwrap_or_else(PoisonError::into_inner);
            let readers = *self.open_readers.lock().unwrap_or_else(PoisonError::into_inner);
            if faults + readers == 0 && self.world.checker.open_runs().is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Draws how often calls go wrong: in many simulations hardly ever.
    fn draw_rates(&self) -> FaultRates {
        let scheduler = &self.world.scheduler;
        let draw_rate = || if scheduler.chance(50) { 0 } else { scheduler.below(8) };
        FaultRates {
            slow: if scheduler.chance(30) { scheduler.below(50) } else { draw_rate() },
            longest: scheduler.between(20, 1000),
            refused: draw_rate(),
            unanswered: draw_rate(),
            late: draw_rate(),
            silent: draw_rate() / 2,
            strikes: draw_rate(),
        }
    }

    /// Asks servers until one begins a run, and lets readers follow it.
    async fn request(self: Arc<Simulation>, client: u64) {
        let scheduler = &self.world.scheduler;
        scheduler.pause(0, 1500).await;
        for attempt in 0.. {
            let server = self.server(scheduler.index(SERVERS));
            let id = format!("run-{client}-{attempt}");
            let row = MessageRow {
                id: id.clone(),
                conversation_id: format!("conversation-{}", client / 2),
                status: "running".to_owned(),
                ..MessageRow::default()
            };
            let patience = Duration::from_millis(scheduler.between(5, 800));
            if let Ok(Ok(id)) = timeout(patience, server.begin(row)).await {
                for reader in 0..scheduler.between(1, 3) {
                    self.spawn_reader(format!("reader-{client}-{reader}"), id.clone());
                }
                return;
            }
            scheduler.pause(10, 200).await;
        }
    }

    fn spawn_reader(self: &Arc<Simulation>, name: String, run: String) {
        let world = self.world.clone();
        let simulation = self.clone();
        let reader = Reader { world: world.clone(), servers: self.servers.clone(), name, run };
        *self.open_readers.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        world.scheduler.spawn(None, async move {
            reader.read().await;
            *simulation.open_readers.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        });
    }

    /// Lets something happen to a server or to the database.
    fn inject_fault(self: &Arc<Simulation>) {
        let scheduler = self.world.scheduler.clone();
        let slot = scheduler.index(SERVERS);
        let simulation = self.clone();
        *self.open_faults.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        scheduler.clone().spawn(None, async move {
            let server = simulation.server(slot);
            match scheduler.below(11) {
                0..2 => simulation.end(&server).await,
                2..6 => simulation.freeze(&server).await,
                6..8 => simulation.cut(&server).await,
                8 => simulation.restart_database(),
                _ => simulation.cut_peers(&server).await,
            }
            *simulation.open_faults.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        });
    }

    /// Kills a server, or lets it come to its end before.
    async fn end(&self, server: &Server) {
        let scheduler = &self.world.scheduler;
        if scheduler.is_dead(server.process) {
            return;
        }
        if scheduler.chance(40) {
            scheduler.trace(format_args!("{} stops", server.id));
            let _ = timeout(2 * LEASE, server.stop()).await;
        }
        if scheduler.is_dead(server.process) {
            return;
        }
        scheduler.trace(format_args!("{} is killed", server.id));
        scheduler.kill(server.process);
    }

    /// Starts a server again whenever it has ended.
    async fn supervise(self: Arc<Simulation>, slot: usize) {
        let scheduler = &self.world.scheduler;
        loop {
            scheduler.pause(50, 150).await;
            if !scheduler.is_dead(self.server(slot).process) {
                continue;
            }
            scheduler.pause(0, 2000).await;
            let new_id = format!("server-{slot}-{}", scheduler.below(1 << 32));
            scheduler.trace(format_args!("{new_id} starts"));
            let server = self.world.start_server(new_id);
            self.servers.lock().unwrap_or_else(PoisonError::into_inner)[slot] = server;
        }
    }

    /// Stops a server for shorter or longer than its lease.
    async fn freeze(&self, server: &Server) {
        let scheduler = &self.world.scheduler;
        scheduler.trace(format_args!("{} stands still", server.id));
        scheduler.freeze(server.process);
        let lease = u64::try_from(LEASE.as_millis()).unwrap();
        match scheduler.chance(40) {
            true => scheduler.pause(10, lease * 3 / 5).await,
            false => scheduler.pause(lease * 3 / 5, lease * 4).await,
        }
        scheduler.trace(format_args!("{} goes on", server.id));
        scheduler.thaw(server.process);
    }

    /// Cuts a server off from the database.
    async fn cut(&self, server: &Server) {
        let scheduler = &self.world.scheduler;
        scheduler.trace(format_args!("{} is cut off", server.id));
        self.world.database.set_cut(&server.id, true);
        scheduler.pause(20, 3000).await;
        scheduler.trace(format_args!("{} is connected", server.id));
        self.world.database.set_cut(&server.id, false);
    }

    /// Cuts a server off from the other servers.
    async fn cut_peers(&self, server: &Server) {
        let scheduler = &self.world.scheduler;
        scheduler.trace(format_args!("the others do not reach {}", server.id));
        self.world.set_cut(&server.id, true);
        scheduler.pause(20, 3000).await;
        scheduler.trace(format_args!("the others reach {}", server.id));
        self.world.set_cut(&server.id, false);
    }

    fn restart_database(&self) {
        let time = self.world.scheduler.below(1200);
        self.world.scheduler.trace(format_args!("the database restarts for {time} ms"));
        self.world.database.restart(Duration::from_millis(time));
    }
}

/// Runs the simulation of a seed. Returns the lines of its trace if they are to be kept.
fn simulate(seed: u64, keeps_lines: bool) -> (Outcome, Vec<String>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let scheduler = Scheduler::new(seed, keeps_lines);
        let simulation = Arc::new(Simulation::new(scheduler.clone()));
        let world = simulation.world.clone();
        scheduler.run(simulation.run()).await;
        let (hash, lines) = scheduler.take_trace();
        let outcome =
            Outcome { violations: world.checker.violations(), counts: world.checker.counts(), hash };
        world.clear();
        (outcome, lines)
    })
}

/// Runs a seed; fails with the end of its trace.
fn check_seed(seed: u64) -> Counts {
    let (outcome, _) = simulate(seed, false);
    if !outcome.violations.is_empty() {
        let (_, lines) = simulate(seed, true);
        let first = lines.iter().position(|line| line.contains("VIOLATION")).unwrap_or(lines.len());
        let shown = &lines[first.saturating_sub(80)..lines.len().min(first + 10)];
        panic!("seed {seed}: {:#?}\n{}", outcome.violations, shown.join("\n"));
    }
    outcome.counts
}

/// Returns the seeds of the environment, `FIRST..LAST` without the last, or those that are always run.
fn chosen_seeds() -> Range<u64> {
    let Ok(text) = std::env::var("SIMULATION_SEEDS") else { return SEEDS };
    let (first, last) = text.split_once("..").expect("SIMULATION_SEEDS is FIRST..LAST");
    first.parse().expect("a number")..last.parse().expect("a number")
}

#[test]
fn no_order_of_events_breaks_a_promise() {
    let next_seed = AtomicU64::new(chosen_seeds().start);
    let total = Mutex::new(Counts::default());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next_seed.fetch_add(1, Ordering::Relaxed);
                    if seed >= chosen_seeds().end {
                        return;
                    }
                    let counts = check_seed(seed);
                    total.lock().unwrap().add(counts);
                }
            });
        }
    });
    let total = total.into_inner().unwrap();
    println!("{total:?}");
    assert!(total.completed > 0 && total.interrupted > 0 && total.refused > 0 && total.restarts > 0);
}

/// Checks seeds that have found a fault.
fn check_seeds(seeds: &[u64]) {
    for seed in seeds {
        check_seed(*seed);
    }
}

#[test]
fn a_late_deletion_leaves_a_run_that_another_server_has_claimed() {
    check_seeds(&[3]);
}

#[test]
fn a_lease_that_was_not_valid_for_a_moment_leaves_no_run_behind() {
    check_seeds(&[5182, 6005]);
}

#[test]
fn a_lease_reads_what_is_stored_while_it_reads() {
    check_seeds(&[467, 2337]);
}

/// A renewal that the database got after the end of the lease would put the server back.
#[test]
fn a_server_that_has_stopped_is_gone_although_the_database_is_slow() {
    for seed in 0..50 {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let scheduler = Scheduler::new(seed, false);
            let world = World::new(scheduler.clone());
            let (stop_scheduler, stop_world) = (scheduler.clone(), world.clone());
            let stop = async move {
                let (scheduler, world) = (stop_scheduler, stop_world);
                let server = world.start_server("server".to_owned());
                scheduler.pause(300, 500).await;
                assert!(world.database.has_server("server"), "seed {seed}");
                world.database.set_rates(FaultRates { slow: 100, longest: 180, ..FaultRates::default() });
                scheduler.pause(0, 400).await;
                server.stop().await;
                scheduler.pause(500, 500).await;
                assert!(!world.database.has_server("server"), "seed {seed}");
            };
            scheduler.run(stop).await;
            world.clear();
        });
    }
}

#[test]
fn a_seed_has_one_trace() {
    for seed in 0..20 {
        let [(first, first_lines), (second, second_lines)] = [simulate(seed, true), simulate(seed, true)];
        assert_eq!(first_lines, second_lines, "seed {seed}");
        assert_eq!(first, second, "seed {seed}");
    }
    assert_ne!(simulate(1, false).0.hash, simulate(2, false).0.hash);
}
