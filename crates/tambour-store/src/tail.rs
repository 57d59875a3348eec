//! Tail of a log, its end in memory: entries that the database lacks, and entries that readers have not read
//! yet. It wakes readers when entries become visible to them, and the run when the database has stored some.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use crate::{Batch, MessageRow};

/// Bytes of the log kept in memory for slow readers, who read older entries from the database.
const WINDOW_BYTES: usize = 16 << 10;
/// Bytes of new entries that are enough for a row of the database.
const ROW_BYTES: usize = 3 << 10;
/// Capacity above which a nearly empty buffer is shrunk: room for a row, and for entries that arrive while it
/// is written.
const BUFFER_BYTES: usize = 4 << 10;
/// Bytes that the log may be ahead of the database before the run has to wait.
const MAX_AHEAD_BYTES: usize = 64 << 10;

/// Tail of one log.
#[derive(Debug)]
pub(crate) struct LogTail {
    /// Id of the message.
    pub(crate) message: String,
    /// Epoch of the lease that may write, or [`NO_EPOCH`]; with SQLite, changed with the journal locked.
    epoch: AtomicI64,
    window: Mutex<TailWindow>,
    /// Tells readers what they may see.
    progress: watch::Sender<TailProgress>,
    /// Notified when the database has stored entries.
    stored_notify: Notify,
}

/// Part of a log that readers may see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TailProgress {
    /// Number of the last entry that readers may see.
    pub(crate) last: u64,
    /// True if no entry follows the last one.
    pub(crate) has_ended: bool,
}

/// Last entries of the log. Those up to `stored` are in the database, too, and may be dropped. With SQLite
/// all entries are on the journal; with `durable`, those after `visible` are not on disk yet.
#[derive(Debug, Default)]
struct TailWindow {
    /// Encoded entries.
    bytes: Vec<u8>,
    /// Number of the first entry in memory, 0 before the first append.
    first_number: u64,
    /// Offset of the first entry in memory, in bytes from the entry at which this tail began.
    base_offset: usize,
    /// End of the entries that the database has.
    stored: LogPosition,
    /// End of the entries that readers may see.
    visible: LogPosition,
    /// End of all entries.
    appended: LogPosition,
    /// End of the entries that the writer of the database has taken.
    drained: LogPosition,
    /// True from the time when the writer is notified that there is enough for a row, until it takes the
    /// entries.
    is_writer_notified: bool,
    /// Set when the end of the message was appended.
    has_end: bool,
    /// Row with the outcome of the message, until the writer takes it together with the end.
    record: Option<Arc<MessageRow>>,
    /// Number of the last entry that each reader has seen; `u64::MAX` marks a free slot.
    readers: Vec<u64>,
}

/// Position between two entries: number of the entry before it, and offset in bytes as in
/// [`TailWindow::base_offset`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogPosition {
    number: u64,
    offset: usize,
}

/// Result of an append, with the follow-up work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TailAppend {
    /// True if the writer has to be notified.
    pub(crate) needs_notify: bool,
    /// True if the log is so far ahead of the database that the run has to wait.
    pub(crate) is_ahead: bool,
    /// Position after the appended entries.
    pub(crate) end: LogPosition,
}

/// Epoch of a log that no lease may write.
const NO_EPOCH: i64 = i64::MAX;

/// Entries that the writer has taken for the database.
#[derive(Clone, Debug)]
pub(crate) struct DrainedEntries {
    end: LogPosition,
    /// Row with the outcome of the message, if its end is among the entries.
    pub(crate) record: Option<Arc<MessageRow>>,
}

impl DrainedEntries {
    /// Returns the position after the entries.
    pub(crate) fn end(&self) -> LogPosition {
        self.end
    }
}

/// Reader of a running message, registered until it is dropped.
#[derive(Debug)]
pub(crate) struct TailReader {
    tail: Arc<LogTail>,
    /// Index in the window's `readers`.
    slot: usize,
    progress: watch::Receiver<TailProgress>,
}

impl LogTail {
    /// Creates the tail of a log, with no entries in memory yet.
    pub(crate) fn new(message: String, epoch: i64) -> Arc<LogTail> {
        Arc::new(LogTail {
            message,
            epoch: AtomicI64::new(epoch),
            window: Mutex::default(),
            progress: watch::Sender::new(TailProgress::default()),
            stored_notify: Notify::new(),
        })
    }

    fn lock_window(&self) -> MutexGuard<'_, TailWindow> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if a lease of that epoch may write.
    pub(crate) fn is_held(&self, epoch: i64) -> bool {
        self.epoch.load(Ordering::Acquire) == epoch
    }

    /// Starts the next epoch and returns it, which fences the lease before it. `None` if no lease may write
    /// any more.
    pub(crate) fn claim(&self) -> Option<i64> {
        let epoch = self.epoch.load(Ordering::Acquire);
        if epoch == NO_EPOCH || self.lock_window().has_end {
            return None;
        }
        self.epoch.store(epoch + 1, Ordering::Release);
        // Readers may follow the new lease's entries.
        self.progress.send_modify(|progress| progress.has_ended = false);
        Some(epoch + 1)
    }

    /// Fences every lease, for example because the message is deleted.
    pub(crate) fn fence(&self) {
        self.epoch.store(NO_EPOCH, Ordering::Release);
        self.mark_ended();
    }

    /// Appends the last entries, which are stored together with the outcome (with SQLite on the journal), and
    /// returns the end of the log. Readers see them after [`LogTail::publish`]. `record` is the row with the
    /// outcome.
    pub(crate) fn finish(&self, last: &Batch, record: Arc<MessageRow>) -> LogPosition {
        // Under one lock: no row of the database has the end without the outcome.
        let mut window = self.lock_window();
        if !last.is_empty() {
            let _ = window.append(last);
        }
        window.has_end = true;
        window.record = Some(record);
        window.appended
    }

    /// Appends entries, which with SQLite are on the journal already. Readers see them at once if
    /// `is_visible` is set, otherwise after [`LogTail::publish`].
    pub(crate) fn append(&self, batch: &Batch, is_visible: bool) -> TailAppend {
        let append = self.lock_window().append(batch);
        if is_visible {
            self.publish(append.end);
        }
        append
    }

    /// Takes the entries that the database lacks, which are to be written as one row. Takes nothing and
    /// returns `None` if they are too few for a row, unless the message has ended or `force` is set. Calls
    /// `add_row` with the numbers of the first and last entry and the bytes, unless only the outcome is left
    /// to take.
    pub(crate) fn drain(&self, force: bool, add_row: impl FnOnce(u64, u64, &[u8])) -> Option<DrainedEntries> {
        let mut window = self.lock_window();
        window.is_writer_notified = false;
        let TailWindow { drained, appended, .. } = *window;
        let is_due = force || window.has_end || appended.offset - drained.offset >= ROW_BYTES;
        if !is_due || (drained == appended && window.record.is_none()) {
            return None;
        }
        if drained != appended {
            add_row(drained.number + 1, appended.number, window.slice(drained, appended));
        }
        window.drained = appended;
        Some(DrainedEntries { end: appended, record: window.record.take() })
    }

    /// Makes entries up to a position visible to readers. With the last entry, the end of the log becomes
    /// visible, too.
    pub(crate) fn publish(&self, end: LogPosition) {
        let mut window = self.lock_window();
        if end.number > window.visible.number {
            window.visible = end;
        }
        let has_ended = window.has_end && window.visible == window.appended;
        drop(window);
        self.progress.send_if_modified(|progress| {
            let is_newer = end.number > progress.last || (has_ended && !progress.has_ended);
            progress.last = progress.last.max(end.number);
            progress.has_ended |= has_ended;
            is_newer
        });
    }

    /// Marks entries that the writer has taken as stored in the database.
    pub(crate) fn mark_stored(&self, drained: &DrainedEntries) {
        let mut window = self.lock_window();
        if drained.end.number > window.stored.number {
            window.stored = drained.end;
        }
        window.trim();
        drop(window);
        self.stored_notify.notify_waiters();
    }

    /// Tells readers that nothing follows, at least until the next claim.
    pub(crate) fn mark_ended(&self) {
        self.progress.send_modify(|progress| progress.has_ended = true);
    }

    /// Returns the part of the log that readers may see.
    pub(crate) fn progress(&self) -> TailProgress {
        *self.progress.borrow()
    }

    /// Returns `true` if nothing follows and the database has everything.
    pub(crate) fn is_done(&self) -> bool {
        let window = self.lock_window();
        let has_ended = window.has_end || self.progress().has_ended;
        has_ended && window.stored == window.appended && window.record.is_none()
    }

    /// Returns `true` if readers may see the end of the message.
    pub(crate) fn is_end_visible(&self) -> bool {
        self.lock_window().has_end && self.progress().has_ended
    }

    /// Returns the number of the last entry, visible or not.
    pub(crate) fn last_number(&self) -> u64 {
        self.lock_window().appended.number
    }

    /// Waits until nothing follows.
    pub(crate) async fn wait_ended(&self) {
        let _ = self.progress.subscribe().wait_for(|progress| progress.has_ended).await;
    }

    /// Returns the bytes that the database lacks.
    fn unstored_bytes(&self) -> usize {
        let window = self.lock_window();
        window.appended.offset - window.stored.offset
    }

    /// Waits until the database has caught up enough for the run to continue.
    pub(crate) async fn wait_caught_up(&self) {
        loop {
            let mut stored_wait = std::pin::pin!(self.stored_notify.notified());
            stored_wait.as_mut().enable();
            if self.unstored_bytes() <= MAX_AHEAD_BYTES {
                return;
            }
            stored_wait.await;
        }
    }

    /// Waits until readers may see everything that was appended before the call.
    pub(crate) async fn wait_visible(&self) {
        let last = self.lock_window().appended.number;
        let _ = self.progress.subscribe().wait_for(|progress| progress.last >= last).await;
    }

    /// Returns entries after `after`, about `max_bytes` of them, without registering a reader; `Some(None)`
    /// if there are none. Includes entries that readers may not see yet if `includes_invisible` is set.
    /// `None` if the first of the entries is not in memory.
    pub(crate) fn recent_batch(
        &self,
        after: u64,
        max_bytes: usize,
        includes_invisible: bool,
    ) -> Option<Option<Batch>> {
        let window = self.lock_window();
        let is_in_memory = window.first_number > 0 && window.first_number <= after.saturating_add(1);
        let end = if includes_invisible { window.appended } else { window.visible };
        is_in_memory.then(|| window.batch_after(after, max_bytes, end))
    }

    /// Registers a reader, which at first keeps every entry in memory (within the window).
    pub(crate) fn add_reader(self: &Arc<LogTail>) -> TailReader {
        let mut window = self.lock_window();
        let free_slot = window.readers.iter().position(|reader| *reader == u64::MAX);
        let slot = free_slot.unwrap_or_else(|| {
            window.readers.push(0);
            window.readers.len() - 1
        });
        window.readers[slot] = 0;
        drop(window);
        TailReader { tail: self.clone(), slot, progress: self.progress.subscribe() }
    }
}

impl TailWindow {
    /// Appends entries, which are not visible yet.
    fn append(&mut self, batch: &Batch) -> TailAppend {
        if self.bytes.is_empty() && self.appended.number + 1 != batch.first() {
            // A log that continues after a crash does not begin at 1: the database has what comes before.
            let before = LogPosition { number: batch.first() - 1, offset: self.base_offset };
            self.first_number = batch.first();
            (self.stored, self.drained) = (before, before);
            (self.visible, self.appended) = (before, before);
        }
        if self.bytes.is_empty() {
            self.first_number = batch.first();
        }
        debug_assert_eq!(self.appended.number + 1, batch.first(), "numbers have no gaps");
        self.bytes.extend_from_slice(batch.body());
        let end = LogPosition { number: batch.last(), offset: self.base_offset + self.bytes.len() };
        self.appended = end;
        self.has_end |= batch.has_end();
        let is_row_due = self.has_end || end.offset - self.drained.offset >= ROW_BYTES;
        let needs_notify = is_row_due && !std::mem::replace(&mut self.is_writer_notified, true);
        TailAppend { needs_notify, is_ahead: end.offset - self.stored.offset > MAX_AHEAD_BYTES, end }
    }

    /// Drops entries that the database has, if all readers have seen them or they exceed the window.
    fn trim(&mut self) {
        // With `durable` the database may have entries that are not visible yet.
        let droppable_end = if self.visible.number < self.stored.number { self.visible } else { self.stored };
        let is_read = self.readers.iter().all(|reader| *reader >= droppable_end.number);
        if droppable_end.offset == self.base_offset || !(is_read || self.bytes.len() > WINDOW_BYTES) {
            return;
        }
        self.bytes.drain(..droppable_end.offset - self.base_offset);
        if self.bytes.capacity() > BUFFER_BYTES && self.bytes.len() < ROW_BYTES / 2 {
            self.bytes.shrink_to(ROW_BYTES);
        }
        (self.first_number, self.base_offset) = (droppable_end.number + 1, droppable_end.offset);
    }

    /// Returns the encoded entries between two positions in memory.
    fn slice(&self, from: LogPosition, to: LogPosition) -> &[u8] {
        &self.bytes[from.offset - self.base_offset..to.offset - self.base_offset]
    }

    /// Returns the entries after number `after` up to the position `end`: at most `max_bytes`, but at least
    /// one. `None` if there are none, or the first of them is not in memory.
    fn batch_after(&self, after: u64, max_bytes: usize, end: LogPosition) -> Option<Batch> {
        if after >= end.number || after + 1 < self.first_number {
            return None;
        }
        let lines = &self.bytes[..end.offset - self.base_offset];
        let (skipped, wanted) = (after + 1 - self.first_number, end.number - after);
        // The start is searched for from the nearer end.
        let start = if wanted < skipped {
            // Counts line breaks from the end: the final one, and one for each entry wanted.
            let line_breaks = usize::try_from(wanted).expect("entries in memory");
            memchr::memrchr_iter(b'\n', lines).nth(line_breaks).map_or(0, |line_end| line_end + 1)
        } else {
            match usize::try_from(skipped).expect("entries in memory") {
                0 => 0,
                skipped => memchr::memchr_iter(b'\n', lines).nth(skipped - 1)? + 1,
            }
        };
        let entries = &lines[start..];
        if entries.len() <= max_bytes {
            return Some(Batch::from_stored(after + 1, end.number, entries.to_vec()));
        }
        let last_break =
            memchr::memrchr(b'\n', &entries[..max_bytes]).or_else(|| memchr::memchr(b'\n', entries))?;
        let entries = &entries[..=last_break];
        let count = memchr::memchr_iter(b'\n', entries).count() as u64;
        Some(Batch::from_stored(after + 1, after + count, entries.to_vec()))
    }
}

impl TailReader {
    /// Waits until there are entries after `after`, or nothing follows.
    pub(crate) async fn wait_more(&mut self, after: u64) -> TailProgress {
        let result = self.progress.wait_for(|progress| progress.last > after || progress.has_ended).await;
        let result = result.map(|progress| *progress);
        result.unwrap_or_else(|_| TailProgress { has_ended: true, ..*self.progress.borrow() })
    }

    /// Returns the visible entries after `after`, at most `max_bytes` but at least one; `None` if there are
    /// none in memory. Notes that the reader has seen the entries up to `after`.
    pub(crate) fn batch_after(&self, after: u64, max_bytes: usize) -> Option<Batch> {
        let mut window = self.tail.lock_window();
        window.readers[self.slot] = after;
        window.batch_after(after, max_bytes, window.visible)
    }
}

impl Drop for TailReader {
    fn drop(&mut self) {
        self.tail.lock_window().readers[self.slot] = u64::MAX;
    }
}
