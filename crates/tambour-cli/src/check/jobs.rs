//! Work on several threads whose results come in the order of its parts.

use std::io;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Number of jobs if the user names none: one for each core that this process may use.
pub(super) fn default_jobs() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Parts that are read, worked on or waiting, for each job.
const PARTS_PER_JOB: usize = 2;

/// Calls `work` on each part, on `jobs` threads, and `take` on each result, on this thread and in the order of
/// the parts. At most [`PARTS_PER_JOB`] parts for each job are in memory. Ends early if `take` fails.
///
/// # Errors
/// The error of `take`, or no thread could be started.
pub(super) fn run_in_order<Part: Send, Output: Send>(
    parts: impl Iterator<Item = Part> + Send,
    jobs: usize,
    work: impl Fn(Part) -> Output + Sync,
    mut take: impl FnMut(Output) -> io::Result<()>,
) -> io::Result<()> {
    if jobs <= 1 {
        return parts.map(work).try_for_each(take);
    }
    let (part_sender, part_receiver) = mpsc::sync_channel::<(Part, SyncSender<Output>)>(jobs);
    let (order_sender, order_receiver) = mpsc::sync_channel::<Receiver<Output>>(jobs * PARTS_PER_JOB);
    let part_receiver = Mutex::new(part_receiver);
    let (parts_of_jobs, work) = (&part_receiver, &work);
    thread::scope(|scope| {
        let builder = || thread::Builder::new().name("check".to_owned());
        builder().spawn_scoped(scope, move || {
            for part in parts {
                let (sender, receiver) = mpsc::sync_channel(1);
                if order_sender.send(receiver).is_err() || part_sender.send((part, sender)).is_err() {
                    // Nobody takes further results.
                    return;
                }
            }
        })?;
        for index in 0..jobs {
            let job = move || {
                loop {
                    let next = parts_of_jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((part, sender)) = next else { return };
                    // An error says that nobody waits for the result.
                    let _ = sender.send(work(part));
                }
            };
            match builder().spawn_scoped(scope, job) {
                Ok(_) => {}
                // Fewer threads do the same work.
                Err(_) if index > 0 => break,
                Err(error) => return Err(error),
            }
        }
        // A job that panics closes its channel; the panic continues at the end of the scope.
        for receiver in order_receiver {
            let Ok(output) = receiver.recv() else { return Ok(()) };
            take(output)?;
        }
        Ok(())
    })
}
