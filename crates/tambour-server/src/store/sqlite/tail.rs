//! The end of a log in memory: what the database does not have yet, what readers want next, and who waits for more.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use crate::store::{Batch, MessageRow};

/// Bytes of the log that stay in memory for readers who are behind; they read older entries from the store.
const WINDOW: usize = 16 << 10;
/// Bytes after which what is only in the journal becomes a row of the log.
const ROW: usize = 3 << 10;
/// Room that is kept where little is in it: a row, and what comes while it is written.
const ROOM: usize = 4 << 10;
/// Bytes that may wait for the database; a run that is faster waits itself.
const AHEAD: usize = 64 << 10;

/// What readers follow.
#[derive(Debug)]
pub(super) struct Tail {
    /// The message.
    pub(super) message: String,
    /// Epoch of the lease that may write; changed with the journal locked.
    epoch: AtomicI64,
    window: Mutex<Window>,
    committed: watch::Sender<Progress>,
    /// The database has got something.
    kept: Notify,
}

/// How far a log is committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Number of the last entry that readers may see.
    pub(super) last: u64,
    /// Whether it is the last one of all.
    pub(super) ended: bool,
}

/// The end of the log: entries that the database has, then those that only the journal has, then those that are not on the
/// disk yet where that is waited for. The first may be dropped.
#[derive(Debug, Default)]
struct Window {
    bytes: Vec<u8>,
    /// Number of the first entry here, and its offset in the log.
    first: u64,
    base: usize,
    stored: Position,
    committed: Position,
    appended: Position,
    /// What the writer has taken, and has not written yet.
    storing: Position,
    /// The writer knows that there is enough for a row.
    told: bool,
    /// The end of the message has come.
    ends: bool,
    /// What came of the message, until the writer has taken it together with the end.
    record: Option<Arc<MessageRow>>,
    /// How far each reader is; `u64::MAX` where there is none.
    readers: Vec<u64>,
}

/// A place between two entries: number of the one before it, and offset in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    number: u64,
    offset: usize,
}

/// What is to be done for a message that got entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Appended {
    /// The writer does not know that there is something for it.
    pub(super) tell: bool,
    /// So much is waiting that the run should wait.
    pub(super) ahead: bool,
    /// The place after them.
    pub(super) upto: Position,
}

/// Epoch of a log that nobody may write.
const NOBODY: i64 = i64::MAX;

/// Entries that are on their way to the database, and what came of the message if its end is among them.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    upto: Position,
    pub(super) record: Option<Arc<MessageRow>>,
}

/// A reader of a running message, counted as long as it lives.
#[derive(Debug)]
pub(super) struct Reading {
    tail: Arc<Tail>,
    slot: usize,
    progress: watch::Receiver<Progress>,
}

impl Tail {
    /// A message whose log is empty.
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

    /// Whether a lease of that epoch may write.
    pub(super) fn is_held(&self, epoch: i64) -> bool {
        self.epoch.load(Ordering::Acquire) == epoch
    }

    /// The next epoch: the lease before it writes nothing any more. `None` if nobody may write.
    pub(super) fn claim(&self) -> Option<i64> {
        let epoch = self.epoch.load(Ordering::Acquire);
        if epoch == NOBODY || self.window().ends {
            return None;
        }
        self.epoch.store(epoch + 1, Ordering::Release);
        // Readers may wait for what comes.
        self.committed.send_modify(|progress| progress.ended = false);
        Some(epoch + 1)
    }

    /// Nobody writes any more, since the message is deleted.
    pub(super) fn fence(&self) {
        self.epoch.store(NOBODY, Ordering::Release);
        self.end();
    }

    /// Adds the last entries, which are on the journal together with what came of the message. Nobody sees them before
    /// [`Tail::publish`].
    pub(super) fn finish(&self, last: &Batch, record: Arc<MessageRow>) -> Position {
        // In one: no row of the database has the end without what came of the message.
        let mut window = self.window();
        if !last.is_empty() {
            let _ = window.append(last);
        }
        window.ends = true;
        window.record = Some(record);
        window.appended
    }

    /// Adds entries that are on the journal. `visible`: readers may see them.
    pub(super) fn append(&self, batch: &Batch, visible: bool) -> Appended {
        let appended = self.window().append(batch);
        if visible {
            self.publish(appended.upto);
        }
        appended
    }

    /// Takes what the database does not have, as one row of the log, if that is enough, or the message ends, or `all` says so.
    /// `row` gets number of the first and last entry and the bytes.
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

    /// Readers may see the entries up to there.
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

    /// What was taken is in the database.
    pub(super) fn stored(&self, taken: &Taken) {
        let mut window = self.window();
        if taken.upto.number > window.stored.number {
            window.stored = taken.upto;
        }
        window.trim();
        drop(window);
        self.kept.notify_waiters();
    }

    /// Nothing follows any more.
    pub(super) fn end(&self) {
        self.committed.send_modify(|progress| progress.ended = true);
    }

    /// How far the log is committed.
    pub(super) fn progress(&self) -> Progress {
        *self.committed.borrow()
    }

    /// Whether nothing follows and the database has everything.
    pub(super) fn is_done(&self) -> bool {
        let window = self.window();
        let over = window.ends || self.progress().ended;
        over && window.stored == window.appended && window.record.is_none()
    }

    /// Whether readers may see the end of the message.
    pub(super) fn shows_end(&self) -> bool {
        self.window().ends && self.progress().ended
    }

    /// Number of the last entry, also of one that readers may not see yet.
    pub(super) fn last(&self) -> u64 {
        self.window().appended.number
    }

    /// Waits until nothing follows.
    pub(super) async fn over(&self) {
        let _ = self.committed.subscribe().wait_for(|progress| progress.ended).await;
    }

    /// Bytes that the database does not have.
    fn ahead(&self) -> usize {
        let window = self.window();
        window.appended.offset - window.stored.offset
    }

    /// Waits until the run may go on.
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

    /// Entries after `after`, for who is no reader; also those that readers may not see, if `all`. `None` if the first of them
    /// are in the database alone.
    pub(super) fn recent(&self, after: u64, most: usize, all: bool) -> Option<Option<Batch>> {
        let window = self.window();
        let known = window.first > 0 && window.first <= after.saturating_add(1);
        let upto = if all { window.appended } else { window.committed };
        known.then(|| window.since(after, most, upto))
    }

    /// A new reader.
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
    /// Adds entries, which nobody sees yet.
    fn append(&mut self, batch: &Batch) -> Appended {
        if self.bytes.is_empty() && self.appended.number + 1 != batch.first() {
            // A log that goes on after a crash does not begin at 1.
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

    /// Drops what the database has and all readers have seen, or what is too much.
    fn trim(&mut self) {
        // With `durable` the database may have what is not shown yet.
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

    /// Entries after `after` up to a place, about `most` bytes of them.
    fn since(&self, after: u64, most: usize, upto: Position) -> Option<Batch> {
        if after >= upto.number || after + 1 < self.first {
            return None;
        }
        let committed = &self.bytes[..upto.offset - self.base];
        let (passed, left) = (after + 1 - self.first, upto.number - after);
        let start = if left < passed {
            // Line breaks from the end: its own, and one for each entry that is wanted.
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
    /// Waits until there is something after `after`, or nothing will come.
    pub(super) async fn more(&mut self, after: u64) -> Progress {
        let waited = self.progress.wait_for(|progress| progress.last > after || progress.ended).await;
        let waited = waited.map(|progress| *progress);
        waited.unwrap_or_else(|_| Progress { ended: true, ..*self.progress.borrow() })
    }

    /// Committed entries after `after`, about `most` bytes of them, if memory still has them. The reader has seen what was
    /// before.
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
