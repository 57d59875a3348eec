//! In-memory end of a log: entries that the database lacks, entries that readers want next, and notifications
//! of both.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use crate::store::{Batch, MessageRow};

/// Bytes of the log kept in memory for slow readers; older entries are read from the store.
const WINDOW: usize = 16 << 10;
/// Bytes of unstored entries that make a row of the log.
const ROW: usize = 3 << 10;
/// Capacity kept while the buffer is nearly empty: a row, and entries that arrive while it is written.
const ROOM: usize = 4 << 10;
/// Bytes that may wait for the database before the run has to wait.
const AHEAD: usize = 64 << 10;

/// Tail of one log.
#[derive(Debug)]
pub(super) struct Tail {
    /// Id of the message.
    pub(super) message: String,
    /// Epoch of the lease that may write; changed with the journal locked.
    epoch: AtomicI64,
    window: Mutex<Window>,
    committed: watch::Sender<Progress>,
    /// Notified when the database has stored entries.
    kept: Notify,
}

/// Committed extent of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Number of the last entry that readers may see.
    pub(super) last: u64,
    /// True if nothing follows it.
    pub(super) ended: bool,
}

/// End of the log: entries in the database, then entries on the journal only, then entries not yet on disk
/// where that is awaited. The first part may be dropped.
#[derive(Debug, Default)]
struct Window {
    bytes: Vec<u8>,
    /// Number of the first entry in memory, and its offset in the log.
    first: u64,
    base: usize,
    stored: Position,
    committed: Position,
    appended: Position,
    /// Taken by the writer and not written yet.
    storing: Position,
    /// Set when the writer was told that there is enough for a row.
    told: bool,
    /// Set when the end of the message was appended.
    ends: bool,
    /// Row with the outcome of the message, until the writer takes it together with the end.
    record: Option<Arc<MessageRow>>,
    /// Last entry that each reader has seen; `u64::MAX` marks a free slot.
    readers: Vec<u64>,
}

/// Position between two entries: number of the entry before it, and offset in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    number: u64,
    offset: usize,
}

/// Follow-up work after an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Appended {
    /// True if the writer has to be notified.
    pub(super) tell: bool,
    /// True if so much is waiting that the run should wait.
    pub(super) ahead: bool,
    /// Position after the appended entries.
    pub(super) upto: Position,
}

/// Epoch of a log that no lease may write.
const NOBODY: i64 = i64::MAX;

/// Entries on their way to the database, with the outcome of the message if its end is among them.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    upto: Position,
    pub(super) record: Option<Arc<MessageRow>>,
}

/// Reader of a running message, registered until it is dropped.
#[derive(Debug)]
pub(super) struct Reading {
    tail: Arc<Tail>,
    slot: usize,
    progress: watch::Receiver<Progress>,
}

impl Tail {
    /// Creates the tail of an empty log.
    pub(super) fn new(message: String, epoch: i64) -> Arc<Tail> {
        Arc::new(Tail {
            message,
            epoch: AtomicI64::new(epoch),
            window: Mutex::default(),
            committed: watch::Sender::new(Progress::default()),
            kept: Notify::new(),
        })
    }

    fn window(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if a lease of that epoch may write.
    pub(super) fn is_held(&self, epoch: i64) -> bool {
        self.epoch.load(Ordering::Acquire) == epoch
    }

    /// Starts the next epoch, which fences the lease before it. `None` if no lease may write.
    pub(super) fn claim(&self) -> Option<i64> {
        let epoch = self.epoch.load(Ordering::Acquire);
        if epoch == NOBODY || self.window().ends {
            return None;
        }
        self.epoch.store(epoch + 1, Ordering::Release);
        // Readers may follow the new lease's entries.
        self.committed.send_modify(|progress| progress.ended = false);
        Some(epoch + 1)
    }

    /// Fences every lease, since the message is deleted.
    pub(super) fn fence(&self) {
        self.epoch.store(NOBODY, Ordering::Release);
        self.end();
    }

    /// Appends the last entries, which are on the journal together with the outcome. Readers see them after
    /// [`Tail::publish`].
    pub(super) fn finish(&self, last: &Batch, record: Arc<MessageRow>) -> Position {
        // Under one lock: no row of the database has the end without the outcome.
        let mut window = self.window();
        if !last.is_empty() {
            let _ = window.append(last);
        }
        window.ends = true;
        window.record = Some(record);
        window.appended
    }

    /// Appends entries that are on the journal. `visible`: readers may see them.
    pub(super) fn append(&self, batch: &Batch, visible: bool) -> Appended {
        let appended = self.window().append(batch);
        if visible {
            self.publish(appended.upto);
        }
        appended
    }

    /// Takes the entries that the database lacks as one row of the log, if they are enough, or the message
    /// ends, or `all` is set. `row` receives the numbers of the first and last entry and the bytes.
    pub(super) fn take(&self, all: bool, row: impl FnOnce(u64, u64, &[u8])) -> Option<Taken> {
        let mut window = self.window();
        window.told = false;
        let Window { storing, appended, .. } = *window;
        let enough = all || window.ends || appended.offset - storing.offset >= ROW;
        if !enough || (storing == appended && window.record.is_none()) {
            return None;
        }
        if storing != appended {
            row(storing.number + 1, appended.number, window.slice(storing, appended));
        }
        window.storing = appended;
        Some(Taken { upto: appended, record: window.record.take() })
    }

    /// Makes entries up to a position visible to readers.
    pub(super) fn publish(&self, upto: Position) {
        let mut window = self.window();
        if upto.number > window.committed.number {
            window.committed = upto;
        }
        let ended = window.ends && window.committed == window.appended;
        drop(window);
        self.committed.send_if_modified(|progress| {
            let more = upto.number > progress.last || (ended && !progress.ended);
            progress.last = progress.last.max(upto.number);
            progress.ended |= ended;
            more
        });
    }

    /// Marks taken entries as stored in the database.
    pub(super) fn stored(&self, taken: &Taken) {
        let mut window = self.window();
        if taken.upto.number > window.stored.number {
            window.stored = taken.upto;
        }
        window.trim();
        drop(window);
        self.kept.notify_waiters();
    }

    /// Marks the log as complete: nothing follows.
    pub(super) fn end(&self) {
        self.committed.send_modify(|progress| progress.ended = true);
    }

    /// Returns the committed extent.
    pub(super) fn progress(&self) -> Progress {
        *self.committed.borrow()
    }

    /// Returns `true` if nothing follows and the database has everything.
    pub(super) fn is_done(&self) -> bool {
        let window = self.window();
        let over = window.ends || self.progress().ended;
        over && window.stored == window.appended && window.record.is_none()
    }

    /// Returns `true` if readers may see the end of the message.
    pub(super) fn shows_end(&self) -> bool {
        self.window().ends && self.progress().ended
    }

    /// Returns the number of the last entry, visible or not.
    pub(super) fn last(&self) -> u64 {
        self.window().appended.number
    }

    /// Waits until nothing follows.
    pub(super) async fn over(&self) {
        let _ = self.committed.subscribe().wait_for(|progress| progress.ended).await;
    }

    /// Returns the bytes that the database lacks.
    fn ahead(&self) -> usize {
        let window = self.window();
        window.appended.offset - window.stored.offset
    }

    /// Waits until the run may continue.
    pub(super) async fn caught_up(&self) {
        loop {
            let mut kept = std::pin::pin!(self.kept.notified());
            kept.as_mut().enable();
            if self.ahead() <= AHEAD {
                return;
            }
            kept.await;
        }
    }

    /// Waits until readers may see everything.
    pub(super) async fn shown(&self) {
        let last = self.window().appended.number;
        let _ = self.committed.subscribe().wait_for(|progress| progress.last >= last).await;
    }

    /// Returns entries after `after` without registering a reader; with `all` those that readers may not see
    /// yet too. `None` if the first of them are in the database only.
    pub(super) fn recent(&self, after: u64, most: usize, all: bool) -> Option<Option<Batch>> {
        let window = self.window();
        let known = window.first > 0 && window.first <= after.saturating_add(1);
        let upto = if all { window.appended } else { window.committed };
        known.then(|| window.since(after, most, upto))
    }

    /// Registers a reader.
    pub(super) fn read(self: &Arc<Tail>) -> Reading {
        let mut window = self.window();
        let free = window.readers.iter().position(|reader| *reader == u64::MAX);
        let slot = free.unwrap_or_else(|| {
            window.readers.push(0);
            window.readers.len() - 1
        });
        window.readers[slot] = 0;
        drop(window);
        Reading { tail: self.clone(), slot, progress: self.committed.subscribe() }
    }
}

impl Window {
    /// Appends entries, not yet visible.
    fn append(&mut self, batch: &Batch) -> Appended {
        if self.bytes.is_empty() && self.appended.number + 1 != batch.first() {
            // A log that continues after a crash does not begin at 1.
            let before = Position { number: batch.first() - 1, offset: self.base };
            self.first = batch.first();
            (self.stored, self.storing) = (before, before);
            (self.committed, self.appended) = (before, before);
        }
        if self.bytes.is_empty() {
            self.first = batch.first();
        }
        debug_assert_eq!(self.appended.number + 1, batch.first(), "numbers have no gaps");
        self.bytes.extend_from_slice(batch.body());
        let upto = Position { number: batch.last(), offset: self.base + self.bytes.len() };
        self.appended = upto;
        self.ends |= batch.ends();
        let row = self.ends || upto.offset - self.storing.offset >= ROW;
        let tell = row && !std::mem::replace(&mut self.told, true);
        Appended { tell, ahead: upto.offset - self.stored.offset > AHEAD, upto }
    }

    /// Drops entries that the database has and all readers have seen, or that exceed the window.
    fn trim(&mut self) {
        // With `durable` the database may have entries that are not visible yet.
        let stored = if self.committed.number < self.stored.number { self.committed } else { self.stored };
        let seen = self.readers.iter().all(|reader| *reader >= stored.number);
        if stored.offset == self.base || !(seen || self.bytes.len() > WINDOW) {
            return;
        }
        self.bytes.drain(..stored.offset - self.base);
        if self.bytes.capacity() > ROOM && self.bytes.len() < ROW / 2 {
            self.bytes.shrink_to(ROW);
        }
        (self.first, self.base) = (stored.number + 1, stored.offset);
    }

    fn slice(&self, from: Position, to: Position) -> &[u8] {
        &self.bytes[from.offset - self.base..to.offset - self.base]
    }

    /// Returns entries after `after` up to a position, about `most` bytes of them.
    fn since(&self, after: u64, most: usize, upto: Position) -> Option<Batch> {
        if after >= upto.number || after + 1 < self.first {
            return None;
        }
        let committed = &self.bytes[..upto.offset - self.base];
        let (passed, left) = (after + 1 - self.first, upto.number - after);
        let start = if left < passed {
            // Counts line breaks from the end: the final one, and one for each entry wanted.
            let at = usize::try_from(left).expect("entries in memory");
            memchr::memrchr_iter(b'\n', committed).nth(at).map_or(0, |end| end + 1)
        } else {
            match usize::try_from(passed).expect("entries in memory") {
                0 => 0,
                passed => memchr::memchr_iter(b'\n', committed).nth(passed - 1)? + 1,
            }
        };
        let wanted = &committed[start..];
        if wanted.len() <= most {
            return Some(Batch::stored(after + 1, upto.number, wanted.to_vec()));
        }
        let end = memchr::memrchr(b'\n', &wanted[..most]).or_else(|| memchr::memchr(b'\n', wanted))? + 1;
        let count = memchr::memchr_iter(b'\n', &wanted[..end]).count() as u64;
        Some(Batch::stored(after + 1, after + count, wanted[..end].to_vec()))
    }
}

impl Reading {
    /// Waits until there are entries after `after`, or nothing follows.
    pub(super) async fn more(&mut self, after: u64) -> Progress {
        let waited = self.progress.wait_for(|progress| progress.last > after || progress.ended).await;
        let waited = waited.map(|progress| *progress);
        waited.unwrap_or_else(|_| Progress { ended: true, ..*self.progress.borrow() })
    }

    /// Returns committed entries after `after`, about `most` bytes of them, if they are still in memory.
    /// Marks everything before as seen.
    pub(super) fn since(&self, after: u64, most: usize) -> Option<Batch> {
        let mut window = self.tail.window();
        window.readers[self.slot] = after;
        window.since(after, most, window.committed)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.tail.window().readers[self.slot] = u64::MAX;
    }
}
