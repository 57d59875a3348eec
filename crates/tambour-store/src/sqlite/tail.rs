//! In-memory end of a log: entries that the database lacks, entries that readers want next, and notifications
//! of both.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use crate::{Batch, MessageRow};

/// Bytes of the log kept in memory for slow readers; older entries are read from the store.
const WINDOW_BYTES: usize = 16 << 10;
/// Bytes of unstored entries that make a row of the log.
const ROW_BYTES: usize = 3 << 10;
/// Capacity kept while the buffer is nearly empty: a row, and entries that arrive while it is written.
const BUFFER_BYTES: usize = 4 << 10;
/// Bytes that may wait for the database before the run has to wait.
const MAX_AHEAD_BYTES: usize = 64 << 10;

/// Tail of one log.
#[derive(Debug)]
pub(super) struct LogTail {
    /// Id of the message.
    pub(super) message: String,
    /// Epoch of the lease that may write; changed with the journal locked.
    epoch: AtomicI64,
    window: Mutex<TailWindow>,
    committed: watch::Sender<TailProgress>,
    /// Notified when the database has stored entries.
    stored_notify: Notify,
}

/// Committed extent of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TailProgress {
    /// Number of the last entry that readers may see.
    pub(super) last: u64,
    /// True if nothing follows it.
    pub(super) has_ended: bool,
}

/// End of the log: entries in the database, then entries on the journal only, then entries not yet on disk
/// where that is awaited. The first part may be dropped.
#[derive(Debug, Default)]
struct TailWindow {
    bytes: Vec<u8>,
    /// Number of the first entry in memory, and its offset in the log.
    first_number: u64,
    base_offset: usize,
    stored: LogPosition,
    committed: LogPosition,
    appended: LogPosition,
    /// Taken by the writer and not written yet.
    drained: LogPosition,
    /// Set when the writer was told that there is enough for a row.
    is_writer_notified: bool,
    /// Set when the end of the message was appended.
    has_end: bool,
    /// Row with the outcome of the message, until the writer takes it together with the end.
    record: Option<Arc<MessageRow>>,
    /// Last entry that each reader has seen; `u64::MAX` marks a free slot.
    readers: Vec<u64>,
}

/// Position between two entries: number of the entry before it, and offset in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LogPosition {
    number: u64,
    offset: usize,
}

/// Follow-up work after an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TailAppend {
    /// True if the writer has to be notified.
    pub(super) needs_notify: bool,
    /// True if so much is waiting that the run should wait.
    pub(super) is_ahead: bool,
    /// Position after the appended entries.
    pub(super) end: LogPosition,
}

/// Epoch of a log that no lease may write.
const NO_EPOCH: i64 = i64::MAX;

/// Entries on their way to the database, with the outcome of the message if its end is among them.
#[derive(Clone, Debug)]
pub(super) struct DrainedEntries {
    end: LogPosition,
    pub(super) record: Option<Arc<MessageRow>>,
}

/// Reader of a running message, registered until it is dropped.
#[derive(Debug)]
pub(super) struct TailReader {
    tail: Arc<LogTail>,
    slot: usize,
    progress: watch::Receiver<TailProgress>,
}

impl LogTail {
    /// Creates the tail of an empty log.
    pub(super) fn new(message: String, epoch: i64) -> Arc<LogTail> {
        Arc::new(LogTail {
            message,
            epoch: AtomicI64::new(epoch),
            window: Mutex::default(),
            committed: watch::Sender::new(TailProgress::default()),
            stored_notify: Notify::new(),
        })
    }

    fn window(&self) -> MutexGuard<'_, TailWindow> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if a lease of that epoch may write.
    pub(super) fn is_held(&self, epoch: i64) -> bool {
        self.epoch.load(Ordering::Acquire) == epoch
    }

    /// Starts the next epoch, which fences the lease before it. `None` if no lease may write.
    pub(super) fn claim(&self) -> Option<i64> {
        let epoch = self.epoch.load(Ordering::Acquire);
        if epoch == NO_EPOCH || self.window().has_end {
            return None;
        }
        self.epoch.store(epoch + 1, Ordering::Release);
        // Readers may follow the new lease's entries.
        self.committed.send_modify(|progress| progress.has_ended = false);
        Some(epoch + 1)
    }

    /// Fences every lease, since the message is deleted.
    pub(super) fn fence(&self) {
        self.epoch.store(NO_EPOCH, Ordering::Release);
        self.mark_ended();
    }

    /// Appends the last entries, which are on the journal together with the outcome. Readers see them after
    /// [`LogTail::publish`].
    pub(super) fn finish(&self, last: &Batch, record: Arc<MessageRow>) -> LogPosition {
        // Under one lock: no row of the database has the end without the outcome.
        let mut window = self.window();
        if !last.is_empty() {
            let _ = window.append(last);
        }
        window.has_end = true;
        window.record = Some(record);
        window.appended
    }

    /// Appends entries that are on the journal. `is_visible`: readers may see them.
    pub(super) fn append(&self, batch: &Batch, is_visible: bool) -> TailAppend {
        let extent = self.window().append(batch);
        if is_visible {
            self.publish(extent.end);
        }
        extent
    }

    /// Takes the entries that the database lacks as one row of the log, if they are enough, or the message
    /// ends, or `all` is set. `row` receives the numbers of the first and last entry and the bytes.
    pub(super) fn drain(&self, all: bool, row: impl FnOnce(u64, u64, &[u8])) -> Option<DrainedEntries> {
        let mut window = self.window();
        window.is_writer_notified = false;
        let TailWindow { drained, appended, .. } = *window;
        let is_due = all || window.has_end || appended.offset - drained.offset >= ROW_BYTES;
        if !is_due || (drained == appended && window.record.is_none()) {
            return None;
        }
        if drained != appended {
            row(drained.number + 1, appended.number, window.slice(drained, appended));
        }
        window.drained = appended;
        Some(DrainedEntries { end: appended, record: window.record.take() })
    }

    /// Makes entries up to a position visible to readers.
    pub(super) fn publish(&self, extent: LogPosition) {
        let mut window = self.window();
        if extent.number > window.committed.number {
            window.committed = extent;
        }
        let has_ended = window.has_end && window.committed == window.appended;
        drop(window);
        self.committed.send_if_modified(|progress| {
            let is_newer = extent.number > progress.last || (has_ended && !progress.has_ended);
            progress.last = progress.last.max(extent.number);
            progress.has_ended |= has_ended;
            is_newer
        });
    }

    /// Marks taken entries as stored in the database.
    pub(super) fn mark_stored(&self, extent: &DrainedEntries) {
        let mut window = self.window();
        if extent.end.number > window.stored.number {
            window.stored = extent.end;
        }
        window.trim();
        drop(window);
        self.stored_notify.notify_waiters();
    }

    /// Marks the log as complete: nothing follows.
    pub(super) fn mark_ended(&self) {
        self.committed.send_modify(|progress| progress.has_ended = true);
    }

    /// Returns the committed extent.
    pub(super) fn progress(&self) -> TailProgress {
        *self.committed.borrow()
    }

    /// Returns `true` if nothing follows and the database has everything.
    pub(super) fn is_done(&self) -> bool {
        let window = self.window();
        let has_ended = window.has_end || self.progress().has_ended;
        has_ended && window.stored == window.appended && window.record.is_none()
    }

    /// Returns `true` if readers may see the end of the message.
    pub(super) fn is_end_visible(&self) -> bool {
        self.window().has_end && self.progress().has_ended
    }

    /// Returns the number of the last entry, visible or not.
    pub(super) fn last_number(&self) -> u64 {
        self.window().appended.number
    }

    /// Waits until nothing follows.
    pub(super) async fn wait_ended(&self) {
        let _ = self.committed.subscribe().wait_for(|progress| progress.has_ended).await;
    }

    /// Returns the bytes that the database lacks.
    fn unstored_bytes(&self) -> usize {
        let window = self.window();
        window.appended.offset - window.stored.offset
    }

    /// Waits until the run may continue.
    pub(super) async fn wait_caught_up(&self) {
        loop {
            let mut stored_wait = std::pin::pin!(self.stored_notify.notified());
            stored_wait.as_mut().enable();
            if self.unstored_bytes() <= MAX_AHEAD_BYTES {
                return;
            }
            stored_wait.await;
        }
    }

    /// Waits until readers may see everything.
    pub(super) async fn wait_visible(&self) {
        let last = self.window().appended.number;
        let _ = self.committed.subscribe().wait_for(|progress| progress.last >= last).await;
    }

    /// Returns entries after `after` without registering a reader; with `all` those that readers may not see
    /// yet too. `None` if the first of them are in the database only.
    pub(super) fn recent_batch(&self, after: u64, max: usize, all: bool) -> Option<Option<Batch>> {
        let window = self.window();
        let is_in_memory = window.first_number > 0 && window.first_number <= after.saturating_add(1);
        let extent = if all { window.appended } else { window.committed };
        is_in_memory.then(|| window.batch_after(after, max, extent))
    }

    /// Registers a reader.
    pub(super) fn add_reader(self: &Arc<LogTail>) -> TailReader {
        let mut window = self.window();
        let free_slot = window.readers.iter().position(|reader| *reader == u64::MAX);
        let slot = free_slot.unwrap_or_else(|| {
            window.readers.push(0);
            window.readers.len() - 1
        });
        window.readers[slot] = 0;
        drop(window);
        TailReader { tail: self.clone(), slot, progress: self.committed.subscribe() }
    }
}

impl TailWindow {
    /// Appends entries, not yet visible.
    fn append(&mut self, batch: &Batch) -> TailAppend {
        if self.bytes.is_empty() && self.appended.number + 1 != batch.first() {
            // A log that continues after a crash does not begin at 1.
            let before = LogPosition { number: batch.first() - 1, offset: self.base_offset };
            self.first_number = batch.first();
            (self.stored, self.drained) = (before, before);
            (self.committed, self.appended) = (before, before);
        }
        if self.bytes.is_empty() {
            self.first_number = batch.first();
        }
        debug_assert_eq!(self.appended.number + 1, batch.first(), "numbers have no gaps");
        self.bytes.extend_from_slice(batch.body());
        let end = LogPosition { number: batch.last(), offset: self.base_offset + self.bytes.len() };
        self.appended = end;
        self.has_end |= batch.has_end();
        let row = self.has_end || end.offset - self.drained.offset >= ROW_BYTES;
        let needs_notify = row && !std::mem::replace(&mut self.is_writer_notified, true);
        TailAppend { needs_notify, is_ahead: end.offset - self.stored.offset > MAX_AHEAD_BYTES, end }
    }

    /// Drops entries that the database has and all readers have seen, or that exceed the window.
    fn trim(&mut self) {
        // With `durable` the database may have entries that are not visible yet.
        let stored_end =
            if self.committed.number < self.stored.number { self.committed } else { self.stored };
        let is_read = self.readers.iter().all(|reader| *reader >= stored_end.number);
        if stored_end.offset == self.base_offset || !(is_read || self.bytes.len() > WINDOW_BYTES) {
            return;
        }
        self.bytes.drain(..stored_end.offset - self.base_offset);
        if self.bytes.capacity() > BUFFER_BYTES && self.bytes.len() < ROW_BYTES / 2 {
            self.bytes.shrink_to(ROW_BYTES);
        }
        (self.first_number, self.base_offset) = (stored_end.number + 1, stored_end.offset);
    }

    fn slice(&self, from: LogPosition, to: LogPosition) -> &[u8] {
        &self.bytes[from.offset - self.base_offset..to.offset - self.base_offset]
    }

    /// Returns entries after `after` up to a position, about `max` bytes of them.
    fn batch_after(&self, after: u64, max: usize, extent: LogPosition) -> Option<Batch> {
        if after >= extent.number || after + 1 < self.first_number {
            return None;
        }
        let committed = &self.bytes[..extent.offset - self.base_offset];
        let (skipped, remaining) = (after + 1 - self.first_number, extent.number - after);
        let start = if remaining < skipped {
            // Counts line breaks from the end: the final one, and one for each entry wanted.
            let at = usize::try_from(remaining).expect("entries in memory");
            memchr::memrchr_iter(b'\n', committed).nth(at).map_or(0, |end| end + 1)
        } else {
            match usize::try_from(skipped).expect("entries in memory") {
                0 => 0,
                skipped => memchr::memchr_iter(b'\n', committed).nth(skipped - 1)? + 1,
            }
        };
        let entries = &committed[start..];
        if entries.len() <= max {
            return Some(Batch::from_stored(after + 1, extent.number, entries.to_vec()));
        }
        let end = memchr::memrchr(b'\n', &entries[..max]).or_else(|| memchr::memchr(b'\n', entries))? + 1;
        let count = memchr::memchr_iter(b'\n', &entries[..end]).count() as u64;
        Some(Batch::from_stored(after + 1, after + count, entries[..end].to_vec()))
    }
}

impl TailReader {
    /// Waits until there are entries after `after`, or nothing follows.
    pub(super) async fn wait_more(&mut self, after: u64) -> TailProgress {
        let result = self.progress.wait_for(|progress| progress.last > after || progress.has_ended).await;
        let result = result.map(|progress| *progress);
        result.unwrap_or_else(|_| TailProgress { has_ended: true, ..*self.progress.borrow() })
    }

    /// Returns committed entries after `after`, about `max` bytes of them, if they are still in memory.
    /// Marks everything before as seen.
    pub(super) fn batch_after(&self, after: u64, max: usize) -> Option<Batch> {
        let mut window = self.tail.window();
        window.readers[self.slot] = after;
        window.batch_after(after, max, window.committed)
    }
}

impl Drop for TailReader {
    fn drop(&mut self) {
        self.tail.window().readers[self.slot] = u64::MAX;
    }
}
