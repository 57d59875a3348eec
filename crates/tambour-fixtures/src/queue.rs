//! Parallel work over all cores, for long tests and programs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// Number of cores of this machine.
#[must_use]
pub fn core_count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs `work` on the items in order, `worker_count` at a time, and passes each result with the index of its
/// item to `on_result` as soon as the result arrives.
pub fn run_each<T: Sync, R: Send>(
    worker_count: usize,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
    mut on_result: impl FnMut(usize, R),
) {
    let (next_index, work) = (AtomicUsize::new(0), &work);
    let (sender, results) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..worker_count.clamp(1, items.len().max(1)) {
            let (next_index, sender) = (&next_index, sender.clone());
            scope.spawn(move || {
                loop {
                    let index = next_index.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { return };
                    if sender.send((index, work(item))).is_err() {
                        return;
                    }
                }
            });
        }
        // The loop ends when the last worker has dropped its sender.
        drop(sender);
        for (index, result) in results {
            on_result(index, result);
        }
    });
}

/// Runs `work` on each item on all cores and returns the results in order.
pub fn run_all<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    run_in_order(core_count(), items, work)
}

/// Runs `work` on each item, `worker_count` at a time, and returns the results in order.
pub fn run_in_order<T: Sync, R: Send>(
    worker_count: usize,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let mut indexed_results: Vec<(usize, R)> = Vec::with_capacity(items.len());
    run_each(worker_count, items, work, |index, result| indexed_results.push((index, result)));
    indexed_results.sort_by_key(|(index, _)| *index);
    indexed_results.into_iter().map(|(_, result)| result).collect()
}

/// Runs `check` on each item on all cores.
///
/// # Panics
/// A check fails; the message has all complaints.
pub fn check_all<T: Sync>(items: &[T], check: impl Fn(&T) -> Result<(), String> + Sync) {
    let complaints: Vec<String> = run_all(items, check).into_iter().filter_map(Result::err).collect();
    assert!(complaints.is_empty(), "{} of {}:\n{}", complaints.len(), items.len(), complaints.join("\n\n"));
}
