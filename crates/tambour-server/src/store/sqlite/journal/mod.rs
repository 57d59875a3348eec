//! The journal: everything that is accepted, in files that only grow.
//!
//! A record is written by whoever has it, under one lock, straight to the system: what a killed process had accepted is in
//! the system's cache, and readers may see it at once. With `durable` it is also on the disk first ([`sync`]). The database
//! follows behind, in large commits; a segment whose records it has is removed. What a crash leaves is put there at the next
//! start ([`replay`]), past damage ([`scan`]); what is lost all the same is told ([`loss`]), also what the database knows to have
//! been there ([`extent`]).

mod extent;
mod loss;
mod old;
mod record;
mod replay;
mod room;
mod scan;
mod sync;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::{data_folder, fail};
pub(super) use extent::{Extents, Mark};
pub use loss::{DamagedFile, JournalLoss, JournalReport, ShortFile};
pub(super) use record::{Ending, Entries, Record};
pub(super) use replay::{Replay, hold_numbers, replay};
use room::Room;
pub(super) use sync::Syncer;

/// Bytes after which a segment is followed by the next.
const SEGMENT: u64 = 8 << 20;
/// Bytes of the buffer that are kept from one record to the next.
const BUFFER: usize = 64 << 10;
/// What a segment begins with: a name, and the version of its records.
const HEAD: &[u8; 12] = b"tambour\n\x02\0\0\0";

/// The journal.
pub(super) struct Journal {
    folder: PathBuf,
    open: Mutex<Open>,
    room: Room,
    pub(super) syncer: Option<Syncer>,
    /// The start of the machine, if a power cut may take what was written.
    boot: Option<String>,
}

/// A file of the journal.
pub(super) struct Segment {
    file: File,
    number: u64,
    /// Bytes of whole records, the head of the file included.
    length: AtomicU64,
    /// As many of them as are on the disk; with `durable` alone.
    synced: AtomicU64,
}

/// The segment that is written.
struct Open {
    segment: Arc<Segment>,
    /// Those before it that the database does not have all of.
    full: Vec<Arc<Segment>>,
    /// Number of the last record.
    records: u32,
    /// What follows the whole records is a torn one.
    torn: bool,
    buffer: Vec<u8>,
}

/// What came of a record.
pub(super) struct Appended<T> {
    /// What was done at once, before any other record.
    pub(super) then: T,
    /// A segment that is full.
    pub(super) full: Option<u64>,
}

impl Journal {
    /// Begins a segment of that number in `folder`.
    pub(super) fn open(
        folder: PathBuf,
        number: u64,
        durable: bool,
        dead: &CancellationToken,
    ) -> io::Result<Journal> {
        std::fs::create_dir_all(&folder)?;
        if durable && let Some(above) = folder.parent().filter(|above| !above.as_os_str().is_empty()) {
            data_folder::sync(above)?;
        }
        let segment = Arc::new(Segment::begin(&folder, number, durable)?);
        let open = Open { segment, full: Vec::new(), records: 0, torn: false, buffer: Vec::new() };
        let syncer = durable.then(|| Syncer::start(dead.clone())).transpose()?;
        let boot = (!durable).then(extent::boot);
        Ok(Journal { room: Room::open(&folder)?, folder, open: Mutex::new(open), syncer, boot })
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a record if `admits` says so, and does `then` before any other one is written; `None` if it does not. `then` gets
    /// the segment, for the syncer. A new message is taken only with room for what it comes to: the end of a file may have a
    /// little where the disk has none.
    pub(super) fn append_if<T>(
        &self,
        record: &Record<'_>,
        admits: impl FnOnce() -> bool,
        then: impl FnOnce(&Arc<Segment>) -> T,
    ) -> io::Result<Option<Appended<T>>> {
        if matches!(record, Record::Message(_) | Record::Probe) {
            self.room.check()?;
        }
        let mut open = self.lock();
        if !admits() {
            return Ok(None);
        }
        open.write(record)?;
        let then = then(&open.segment);
        let durable = self.syncer.is_some();
        let full =
            (open.segment.length() >= SEGMENT).then(|| open.follow(&self.folder, durable)).and_then(|next| {
                next.inspect_err(|error| tracing::warn!(%error, "the journal cannot go on in a new file"))
                    .ok()
            });
        drop(open);
        fail::point("log.after");
        Ok(Some(Appended { then, full }))
    }

    /// Does something while nobody writes.
    pub(super) fn locked<T>(&self, work: impl FnOnce() -> T) -> T {
        let _open = self.lock();
        work()
    }

    /// The segment that is written. Another one follows, so that the database can have all of it.
    pub(super) fn turn(&self) -> io::Result<u64> {
        self.lock().follow(&self.folder, self.syncer.is_some())
    }

    /// How far the segments are written that the database does not have all of. With `durable` only what is on the disk counts:
    /// the database must not know of more than a power cut leaves.
    pub(super) fn extents(&self) -> Extents {
        let open = self.lock();
        let written = |segment: &Arc<Segment>| {
            let length = if self.syncer.is_some() { &segment.synced } else { &segment.length };
            (segment.number, length.load(Ordering::Acquire))
        };
        open.full.iter().chain([&open.segment]).map(written).collect()
    }

    /// The start of the machine, if a power cut may take what was written.
    pub(super) fn boot(&self) -> Option<&str> {
        self.boot.as_deref()
    }

    /// Removes the segments up to that one; the database has what is in them.
    pub(super) fn remove(&self, upto: u64) {
        fail::point("journal.before");
        self.lock().full.retain(|segment| segment.number > upto);
        for (_, file) in segments(&self.folder).into_iter().flatten().filter(|(number, _)| *number <= upto) {
            if let Err(error) = std::fs::remove_file(&file) {
                tracing::warn!(%error, file = %file.display(), "a segment of the journal stays");
            }
        }
        fail::point("journal.after");
    }
}

impl Segment {
    /// Makes a segment. With `durable` the disk has its name before anything is written to it: a file that no folder names is
    /// gone after a power cut, whatever was synced of it.
    fn begin(folder: &Path, number: u64, durable: bool) -> io::Result<Segment> {
        let name = folder.join(format!("{number:016}.log"));
        let file = data_folder::create(&name)?;
        let written = (&file).write_all(HEAD).and_then(|()| match durable {
            true => data_folder::sync(folder),
            false => Ok(()),
        });
        if let Err(error) = written {
            let _ = std::fs::remove_file(&name);
            return Err(error);
        }
        let length = HEAD.len() as u64;
        Ok(Segment { file, number, length: AtomicU64::new(length), synced: AtomicU64::new(length) })
    }

    fn length(&self) -> u64 {
        self.length.load(Ordering::Acquire)
    }
}

impl Open {
    fn write(&mut self, record: &Record<'_>) -> io::Result<()> {
        if self.torn {
            self.cut()?;
            self.torn = false;
        }
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER);
        let number = self.records.saturating_add(1);
        record.write(number, &mut self.buffer);
        fail::point("log.before");
        let half = if fail::is_armed() { self.buffer.len() / 2 } else { 0 };
        let (first, second) = self.buffer.split_at(half);
        let mut file = &self.segment.file;
        let written = file.write_all(first).and_then(|()| {
            fail::point("log.amid");
            fail::fault("log.write")?;
            file.write_all(second)
        });
        if let Err(error) = written {
            // What was written of it must not stand before the next one.
            self.torn = self.cut().is_err();
            return Err(error);
        }
        self.records = number;
        self.segment.length.fetch_add(self.buffer.len() as u64, Ordering::Release);
        Ok(())
    }

    /// Takes away what follows the last whole record.
    fn cut(&self) -> io::Result<()> {
        fail::fault("log.cut")?;
        self.segment.file.set_len(self.segment.length())
    }

    /// Begins the next segment, and gives the number of the one before.
    fn follow(&mut self, folder: &Path, durable: bool) -> io::Result<u64> {
        let number = self.segment.number;
        let next = Arc::new(Segment::begin(folder, number + 1, durable)?);
        if self.torn {
            // What is torn there ends a file now, and a reader sees that it does.
            self.torn = self.cut().is_err();
        }
        self.full.push(std::mem::replace(&mut self.segment, next));
        self.records = 0;
        self.torn = false;
        Ok(number)
    }
}

/// The segments in a folder, oldest first.
fn segments(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let number = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".log")?.parse().ok());
        found.extend(number.map(|number| (number, path)));
    }
    found.sort_unstable();
    Ok(found)
}
