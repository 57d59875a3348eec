//! Rows read on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use tambour_bindings::batch::{Row, RowReader};

use super::texts::Texts;

/// Bytes of text for which a further thread is worth its start.
const MIN_BYTES_PER_THREAD: usize = 128 << 10;
/// Bytes of text that a thread takes at a time.
const BYTES_PER_TURN: usize = 64 << 10;
/// Largest number of threads.
const MAX_THREADS: usize = 256;

/// Number of threads to use if `wanted` is `None`: one for each core that this process may use.
pub(super) fn thread_count(wanted: Option<usize>) -> usize {
    let all = || thread::available_parallelism().map_or(1, usize::from);
    wanted.unwrap_or_else(all).clamp(1, MAX_THREADS)
}

/// Reads all rows, on at most `threads` threads, of which this one is the first. Null rows stay `None`.
pub(super) fn read_rows(reader: &RowReader, texts: &Texts, threads: usize) -> Vec<Option<Row>> {
    let turns = divide(texts);
    let bytes: usize = (0..texts.len()).map(|row| texts.size(row)).sum();
    let threads = threads.min(bytes / MIN_BYTES_PER_THREAD + 1).min(turns.len().max(1));
    let next_turn = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Vec<Option<Row>>)>> = Mutex::new(Vec::with_capacity(turns.len()));
    let work = || {
        while let Some(rows) = turns.get(next_turn.fetch_add(1, Ordering::Relaxed)) {
            let read: Vec<_> = rows.clone().map(|row| texts.get(row).map(|text| reader.read(text))).collect();
            done.lock().unwrap_or_else(PoisonError::into_inner).push((rows.start, read));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            // Without a further thread, those that run do its work.
            if thread::Builder::new().name("tambour-batch".to_owned()).spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(start, _)| *start);
    done.into_iter().flat_map(|(_, rows)| rows).collect()
}

/// Divides rows into ranges of about [`BYTES_PER_TURN`].
fn divide(texts: &Texts) -> Vec<std::ops::Range<usize>> {
    let (mut turns, mut start, mut bytes) = (Vec::new(), 0, 0);
    for row in 0..texts.len() {
        // An empty row takes time too.
        bytes += texts.size(row) + 64;
        if bytes >= BYTES_PER_TURN {
            turns.push(start..row + 1);
            (start, bytes) = (row + 1, 0);
        }
    }
    if start < texts.len() {
        turns.push(start..texts.len());
    }
    turns
}
