//! Scheduler of a simulation: one thread, a clock that stands still while a task can go on, and an order of the
//! tasks that the seed decides. Tasks of a process can stand still, as after SIGSTOP, or end at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

/// Number of a process.
pub(super) type ProcessId = usize;

/// Scheduler, random numbers and trace of one simulation.
#[derive(Clone)]
pub(super) struct Scheduler(Arc<Mutex<SchedulerState>>);

struct SchedulerState {
    /// State of the random numbers (SplitMix64).
    random: u64,
    tasks: BTreeMap<u64, Task>,
    /// Tasks that can go on. A set: the order in which they were woken does not matter.
    ready: BTreeSet<u64>,
    processes: Vec<Process>,
    next_task: u64,
    /// Waker of the future that polls the tasks.
    waker: Option<Waker>,
    start: Instant,
    hasher: DefaultHasher,
    /// Lines of the trace, if they are kept.
    lines: Option<Vec<String>>,
}

struct Task {
    process: Option<ProcessId>,
    /// Absent while it is polled.
    future: Option<BoxFuture<'static, ()>>,
    waker: Waker,
}

#[derive(Default)]
struct Process {
    is_frozen: bool,
    is_dead: bool,
    /// Tasks that can go on once the process is not frozen any more.
    held: BTreeSet<u64>,
}

/// Wakes one task.
struct TaskWaker {
    task: u64,
    scheduler: Weak<Mutex<SchedulerState>>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<TaskWaker>) {
        let Some(state) = self.scheduler.upgrade() else { return };
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.ready.insert(self.task);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Writes text into a hash.
struct HashWriter<'a>(&'a mut DefaultHasher);

impl fmt::Write for HashWriter<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

impl Scheduler {
    /// Creates the scheduler of a seed. Keeps the lines of the trace if `keeps_lines` is set.
    pub(super) fn new(seed: u64, keeps_lines: bool) -> Scheduler {
        Scheduler(Arc::new(Mutex::new(SchedulerState {
            random: seed,
            tasks: BTreeMap::new(),
            ready: BTreeSet::new(),
            processes: Vec::new(),
            next_task: 0,
            waker: None,
            start: Instant::now(),
            hasher: DefaultHasher::new(),
            lines: keeps_lines.then(Vec::new),
        })))
    }

    fn lock(&self) -> MutexGuard<'_, SchedulerState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a random number below `bound`.
    pub(super) fn below(&self, bound: u64) -> u64 {
        self.lock().next_random() % bound.max(1)
    }

    /// Returns a random number from `first` to `last`.
    pub(super) fn between(&self, first: u64, last: u64) -> u64 {
        first + self.below(last - first + 1)
    }

    /// Returns `true` in `percent` of 100 cases.
    pub(super) fn chance(&self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Returns a random index below `length`.
    pub(super) fn index(&self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap()
    }

    /// Sleeps for a random number of milliseconds from `first` to `last`.
    pub(super) async fn pause(&self, first: u64, last: u64) {
        tokio::time::sleep(std::time::Duration::from_millis(self.between(first, last))).await;
    }

    /// Adds a line to the trace.
    pub(super) fn trace(&self, line: fmt::Arguments<'_>) {
        self.lock().trace(line);
    }

    /// Returns the hash of the trace, and its lines if they are kept.
    pub(super) fn take_trace(&self) -> (u64, Vec<String>) {
        let mut state = self.lock();
        (state.hasher.finish(), state.lines.take().unwrap_or_default())
    }

    /// Creates a process.
    pub(super) fn new_process(&self) -> ProcessId {
        let mut state = self.lock();
        state.processes.push(Process::default());
        state.processes.len() - 1
    }

    /// Starts a task of a process, or drops it if the process is dead. A task without a process is one of the
    /// database, the network or a client.
    pub(super) fn spawn(&self, process: Option<ProcessId>, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn_boxed(process, task.boxed());
    }

    /// Starts a task as `spawn` does, and returns its number.
    pub(super) fn spawn_boxed(&self, process: Option<ProcessId>, future: BoxFuture<'static, ()>) -> u64 {
        let mut state = self.lock();
        let task = state.next_task;
        state.next_task += 1;
        if process.is_some_and(|process| state.processes[process].is_dead) {
            drop(state);
            drop(future);
            return task;
        }
        let waker = Waker::from(Arc::new(TaskWaker { task, scheduler: Arc::downgrade(&self.0) }));
        state.tasks.insert(task, Task { process, future: Some(future), waker });
        state.ready.insert(task);
        task
    }

    /// Stops a process where it stands. What happens meanwhile it finds when it goes on.
    pub(super) fn freeze(&self, process: ProcessId) {
        self.lock().processes[process].is_frozen = true;
    }

    /// Lets a process go on.
    pub(super) fn thaw(&self, process: ProcessId) {
        let mut state = self.lock();
        state.processes[process].is_frozen = false;
        let held = std::mem::take(&mut state.processes[process].held);
        state.ready.extend(held);
    }

    /// Ends a process: its tasks do nothing any more.
    pub(super) fn kill(&self, process: ProcessId) {
        let mut state = self.lock();
        state.processes[process].is_dead = true;
        let ids: Vec<u64> =
            state.tasks.iter().filter(|(_, task)| task.process == Some(process)).map(|(id, _)| *id).collect();
        let tasks: Vec<Option<Task>> = ids.iter().map(|id| state.tasks.remove(id)).collect();
        drop(state);
        drop(tasks);
    }

    /// Returns `true` if the process has ended.
    pub(super) fn is_dead(&self, process: ProcessId) -> bool {
        self.lock().processes[process].is_dead
    }

    /// Runs all tasks until `main` is done.
    pub(super) async fn run(&self, main: impl Future<Output = ()> + Send + 'static) {
        let main = self.spawn_boxed(None, main.boxed());
        let polls = std::future::poll_fn(|context| {
            self.lock().waker = Some(context.waker().clone());
            loop {
                let Some((task, mut future, waker)) = self.lock().next_ready() else { return Poll::Pending };
                let poll = future.as_mut().poll(&mut Context::from_waker(&waker));
                let mut state = self.lock();
                if poll.is_pending() && state.tasks.contains_key(&task) {
                    state.tasks.get_mut(&task).unwrap().future = Some(future);
                    continue;
                }
                let ended = state.tasks.remove(&task);
                drop(state);
                drop((ended, future));
                if task == main {
                    return Poll::Ready(());
                }
            }
        });
        // The budget of tokio is meant for one task, not for all of them.
        tokio::task::unconstrained(polls).await;
        // Tasks that are left hold the scheduler, and may start others when they are dropped.
        let tasks = {
            let mut state = self.lock();
            state.processes.iter_mut().for_each(|process| process.is_dead = true);
            std::mem::take(&mut state.tasks)
        };
        drop(tasks);
        let late_tasks = std::mem::take(&mut self.lock().tasks);
        drop(late_tasks);
    }
}

impl SchedulerState {
    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn trace(&mut self, line: fmt::Arguments<'_>) {
        let _ = fmt::write(&mut HashWriter(&mut self.hasher), line);
        let elapsed = self.start.elapsed();
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{:>6} ms  {line}", elapsed.as_millis()));
        }
    }

    /// Takes one of the tasks that can go on.
    fn next_ready(&mut self) -> Option<(u64, BoxFuture<'static, ()>, Waker)> {
        while !self.ready.is_empty() {
            let index = self.next_random() % self.ready.len() as u64;
            let task_id = *self.ready.iter().nth(usize::try_from(index).unwrap())?;
            self.ready.remove(&task_id);
            let Some(task) = self.tasks.get_mut(&task_id) else { continue };
            if let Some(process) = task.process
                && self.processes[process].is_frozen
            {
                self.processes[process].held.insert(task_id);
                continue;
            }
            let Some(future) = task.future.take() else { continue };
            self.hasher.write_u64(task_id);
            self.hasher.write_u128(self.start.elapsed().as_millis());
            return Some((task_id, future, task.waker.clone()));
        }
        None
    }
}
