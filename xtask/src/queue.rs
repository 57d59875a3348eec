//! A queue of work that waits or computes in other processes, over all cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// Cores of this machine.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Does `work` on each item, as many at a time as `at_once` says, in order of the list; hands over what came of each as
/// it comes, with its place in the list.
pub(crate) fn run<T: Sync, R: Send>(
    at_once: usize,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
    mut done: impl FnMut(usize, R),
) {
    let (next, work) = (AtomicUsize::new(0), &work);
    let (send, results) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..at_once.clamp(1, items.len().max(1)) {
            let (next, send) = (&next, send.clone());
            scope.spawn(move || {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(place) else { return };
                    if send.send((place, work(item))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        for (place, result) in results {
            done(place, result);
        }
    });
}

/// The same; what came of all, in order of the list.
pub(crate) fn all<T: Sync, R: Send>(at_once: usize, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let mut all: Vec<(usize, R)> = Vec::with_capacity(items.len());
    run(at_once, items, work, |place, result| all.push((place, result)));
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::all;

    #[test]
    fn everything_is_done_once_and_in_order() {
        let items: Vec<u32> = (0..100).collect();
        assert_eq!(all(3, &items, |item| item * 2), items.iter().map(|item| item * 2).collect::<Vec<_>>());
        assert!(all(2, &[] as &[u32], |item| *item).is_empty());
    }
}
