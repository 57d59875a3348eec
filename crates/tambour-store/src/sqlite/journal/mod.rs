//! Journal: append-only files that hold everything accepted.
//!
//! The holder of a record writes it under one lock, straight to the system: everything that a killed process
//! had accepted is in the system's cache, so readers may see it at once. With `durable` it is on disk first
//! ([`sync`]). The database follows in large commits; a segment that it fully has is removed. The next start
//! replays the rest after a crash ([`replay`]), reading past damage ([`scan`]), and reports losses
//! ([`loss`]), including parts that the database knows to have existed ([`extent`]).

mod extent;
mod loss;
mod record;
mod replay;
mod scan;
mod space;
mod sync;
#[cfg(test)]
mod tests;
mod v1;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::{data_folder, fail};
pub(super) use extent::{ExtentMark, SegmentExtents};
pub use loss::{DamagedFile, JournalLoss, JournalReport, ShortFile};
pub(super) use record::{EntryRange, JournalRecord, LogEnd};
pub(super) use replay::{ReplayResult, replay, reserve_numbers};
use space::SpaceCheck;
pub(super) use sync::JournalSyncer;

/// Size in bytes at which a segment is followed by the next one.
const SEGMENT_BYTES: u64 = 8 << 20;
/// Bytes of buffer capacity kept between records.
const BUFFER_BYTES: usize = 64 << 10;
/// Header of a segment: a name, and the version of its records.
const SEGMENT_HEADER: &[u8; 12] = b"tambour\n\x02\0\0\0";

/// Journal of a store.
pub(super) struct Journal {
    folder: PathBuf,
    open: Mutex<OpenSegment>,
    space: SpaceCheck,
    pub(super) syncer: Option<JournalSyncer>,
    /// Boot id of the machine, if a power cut may lose written data.
    boot_id: Option<String>,
}

/// Journal file.
pub(super) struct Segment {
    file: File,
    number: u64,
    /// Bytes of complete records, including the header of the file.
    length: AtomicU64,
    /// Bytes of these that are on disk; maintained only with `durable`.
    synced: AtomicU64,
}

/// Segment being written.
struct OpenSegment {
    segment: Arc<Segment>,
    /// Earlier segments that the database does not fully have.
    full_segments: Vec<Arc<Segment>>,
    /// Number of the last record.
    last_record: u32,
    /// Set when a torn record follows the complete ones.
    is_torn: bool,
    buffer: Vec<u8>,
}

/// Result of writing a record.
pub(super) struct JournalAppend<T> {
    /// Result of the callback, which ran before any other record.
    pub(super) result: T,
    /// Number of a segment that became full.
    pub(super) full_segment: Option<u64>,
}

impl Journal {
    /// Begins a segment with that number in `folder`.
    pub(super) fn open(
        folder: PathBuf,
        number: u64,
        durable: bool,
        dead: &CancellationToken,
    ) -> io::Result<Journal> {
        std::fs::create_dir_all(&folder)?;
        if durable && let Some(parent) = folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            data_folder::sync_folder(parent)?;
        }
        let segment = Arc::new(Segment::create(&folder, number, durable)?);
        let open = OpenSegment {
            segment,
            full_segments: Vec::new(),
            last_record: 0,
            is_torn: false,
            buffer: Vec::new(),
        };
        let syncer = durable.then(|| JournalSyncer::start(dead.clone())).transpose()?;
        let boot_id = (!durable).then(extent::boot_id);
        Ok(Journal { space: SpaceCheck::open(&folder)?, folder, open: Mutex::new(open), syncer, boot_id })
    }

    fn lock(&self) -> MutexGuard<'_, OpenSegment> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a record if `is_allowed` returns `true`, and runs `after_append` before any other record is written; `None`
    /// otherwise. `after_append` receives the segment, for the syncer. A new message is accepted only with space for
    /// its further records: the end of a file may have a little space where the disk has none.
    pub(super) fn append_if<T>(
        &self,
        record: &JournalRecord<'_>,
        is_allowed: impl FnOnce() -> bool,
        after_append: impl FnOnce(&Arc<Segment>) -> T,
    ) -> io::Result<Option<JournalAppend<T>>> {
        if matches!(record, JournalRecord::Message(_) | JournalRecord::Probe) {
            self.space.check()?;
        }
        let mut open = self.lock();
        if !is_allowed() {
            return Ok(None);
        }
        open.write_record(record)?;
        let result = after_append(&open.segment);
        let durable = self.syncer.is_some();
        let full_segment = (open.segment.length() >= SEGMENT_BYTES)
            .then(|| open.start_next(&self.folder, durable))
            .and_then(|next| {
                next.inspect_err(|error| tracing::warn!(%error, "the journal cannot start a new file")).ok()
            });
        drop(open);
        fail::point("log.after");
        Ok(Some(JournalAppend { result, full_segment }))
    }

    /// Runs `work` while no record is written.
    pub(super) fn with_lock<T>(&self, work: impl FnOnce() -> T) -> T {
        let _open = self.lock();
        work()
    }

    /// Starts a new segment and returns the number of the one before, so that the database can fully have
    /// that one.
    pub(super) fn rotate(&self) -> io::Result<u64> {
        self.lock().start_next(&self.folder, self.syncer.is_some())
    }

    /// Returns the written length of each segment that the database does not fully have. With `durable` only
    /// data on disk counts: the database must not know of more than a power cut leaves.
    pub(super) fn extents(&self) -> SegmentExtents {
        let open = self.lock();
        let written = |segment: &Arc<Segment>| {
            let length = if self.syncer.is_some() { &segment.synced } else { &segment.length };
            (segment.number, length.load(Ordering::Acquire))
        };
        open.full_segments.iter().chain([&open.segment]).map(written).collect()
    }

    /// Returns the boot id of the machine, if a power cut may lose written data.
    pub(super) fn boot_id(&self) -> Option<&str> {
        self.boot_id.as_deref()
    }

    /// Removes the segments up to that one, which the database fully has.
    pub(super) fn remove_segments(&self, last_number: u64) {
        fail::point("journal.before");
        self.lock().full_segments.retain(|segment| segment.number > last_number);
        for (_, file) in
            list_segments(&self.folder).into_iter().flatten().filter(|(number, _)| *number <= last_number)
        {
            if let Err(error) = std::fs::remove_file(&file) {
                tracing::warn!(%error, file = %file.display(), "a segment of the journal was not removed");
            }
        }
        fail::point("journal.after");
    }
}

impl Segment {
    /// Creates a segment. With `durable` its folder entry is on disk before anything is written: a file
    /// without an entry is lost in a power cut even if its data was synced.
    fn create(folder: &Path, number: u64, durable: bool) -> io::Result<Segment> {
        let name = folder.join(format!("{number:016}.log"));
        let file = data_folder::create_file(&name)?;
        let written = (&file).write_all(SEGMENT_HEADER).and_then(|()| match durable {
            true => data_folder::sync_folder(folder),
            false => Ok(()),
        });
        if let Err(error) = written {
            let _ = std::fs::remove_file(&name);
            return Err(error);
        }
        let length = SEGMENT_HEADER.len() as u64;
        Ok(Segment { file, number, length: AtomicU64::new(length), synced: AtomicU64::new(length) })
    }

    fn length(&self) -> u64 {
        self.length.load(Ordering::Acquire)
    }
}

impl OpenSegment {
    fn write_record(&mut self, record: &JournalRecord<'_>) -> io::Result<()> {
        if self.is_torn {
            self.truncate_torn()?;
            self.is_torn = false;
        }
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_BYTES);
        let number = self.last_record.saturating_add(1);
        record.write(number, &mut self.buffer);
        fail::point("log.before");
        let first_half = if fail::is_armed() { self.buffer.len() / 2 } else { 0 };
        let (first, second) = self.buffer.split_at(first_half);
        let mut file = &self.segment.file;
        let written = file.write_all(first).and_then(|()| {
            fail::point("log.amid");
            fail::fault("log.write")?;
            file.write_all(second)
        });
        if let Err(error) = written {
            // A partly written record must not precede the next one.
            self.is_torn = self.truncate_torn().is_err();
            return Err(error);
        }
        self.last_record = number;
        self.segment.length.fetch_add(self.buffer.len() as u64, Ordering::Release);
        Ok(())
    }

    /// Truncates the file after the last complete record.
    fn truncate_torn(&self) -> io::Result<()> {
        fail::fault("log.cut")?;
        self.segment.file.set_len(self.segment.length())
    }

    /// Begins the next segment, and returns the number of the one before.
    fn start_next(&mut self, folder: &Path, durable: bool) -> io::Result<u64> {
        let number = self.segment.number;
        let next = Arc::new(Segment::create(folder, number + 1, durable)?);
        if self.is_torn {
            // A torn record now ends its file, where a reader recognizes it.
            self.is_torn = self.truncate_torn().is_err();
        }
        self.full_segments.push(std::mem::replace(&mut self.segment, next));
        self.last_record = 0;
        self.is_torn = false;
        Ok(number)
    }
}

/// Lists the segments in a folder, oldest first.
fn list_segments(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let number = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".log")?.parse().ok());
        found.extend(number.map(|number| (number, path)));
    }
    found.sort_unstable();
    Ok(found)
}
