//! Journal: append-only files, called segments, that hold every accepted record until the database has it.
//!
//! Each run writes its own records under one lock, with an unbuffered system call. A record then survives a
//! killed process, so readers may see it at once. With `durable` they see it when it is on disk ([`sync`]).
//! The database follows in large commits, and segments that it has completely are removed. After a crash the
//! next start replays the others ([`replay`]). It reads past damage ([`scan`]) and reports losses ([`loss`]),
//! including parts that are missing although the database knows of them ([`extent`]).

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

/// Size in bytes from which a segment counts as full, and the next one begins.
const SEGMENT_BYTES: u64 = 8 << 20;
/// Maximum capacity, in bytes, that the encoding buffer keeps between records.
const BUFFER_BYTES: usize = 64 << 10;
/// Header of a segment: a name of eight bytes, and the version of its records.
const SEGMENT_HEADER: &[u8; 12] = b"tambour\n\x02\0\0\0";

/// Journal of a store.
pub(super) struct Journal {
    folder: PathBuf,
    open_segment: Mutex<OpenSegment>,
    space: SpaceCheck,
    /// Present with `durable`.
    pub(super) syncer: Option<JournalSyncer>,
    /// Boot id of the machine; present without `durable`, when a power cut may lose written data.
    boot_id: Option<String>,
}

/// File of the journal.
pub(super) struct Segment {
    file: File,
    number: u64,
    /// Bytes of complete records, including the header of the file.
    length: AtomicU64,
    /// Number of these bytes that are on disk; maintained only with `durable`.
    synced: AtomicU64,
}

/// Segment that is being written, with what its writers share.
struct OpenSegment {
    segment: Arc<Segment>,
    /// Earlier segments that the database does not have completely.
    full_segments: Vec<Arc<Segment>>,
    /// Number of the last record in the segment, from 1; 0 if there is none.
    last_record: u32,
    /// Set when a torn record, which was written only partly, follows the complete records.
    is_torn: bool,
    /// Holds one encoded record, so that it is written with one call.
    buffer: Vec<u8>,
}

/// Result of writing a record.
pub(super) struct JournalAppend<T> {
    /// Result of the `after_append` of [`Journal::append_if`].
    pub(super) result: T,
    /// Number of the segment that became full with the record; the journal has begun the next one.
    pub(super) full_segment: Option<u64>,
}

impl Journal {
    /// Opens the journal in `folder`, creating the folder if needed, and begins segment `number`. The token
    /// `dead` is cancelled when the disk can no longer be synced.
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
        let open_segment = OpenSegment {
            segment,
            full_segments: Vec::new(),
            last_record: 0,
            is_torn: false,
            buffer: Vec::new(),
        };
        let syncer = durable.then(|| JournalSyncer::start(dead.clone())).transpose()?;
        let boot_id = (!durable).then(extent::boot_id);
        let space = SpaceCheck::open(&folder)?;
        Ok(Journal { folder, open_segment: Mutex::new(open_segment), space, syncer, boot_id })
    }

    fn lock(&self) -> MutexGuard<'_, OpenSegment> {
        self.open_segment.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a record if `is_allowed` returns `true`; `None` otherwise. Then runs `after_append` with the
    /// segment of the record, before any other record is written. A new message is accepted only if the disk
    /// has space for its further records as well ([`space`]).
    ///
    /// # Errors
    /// The disk has no space for a new message, or the record cannot be written.
    pub(super) fn append_if<T>(
        &self,
        record: &JournalRecord<'_>,
        is_allowed: impl FnOnce() -> bool,
        after_append: impl FnOnce(&Arc<Segment>) -> T,
    ) -> io::Result<Option<JournalAppend<T>>> {
        if matches!(record, JournalRecord::Message(_) | JournalRecord::Probe) {
            self.space.check()?;
        }
        let mut open_segment = self.lock();
        if !is_allowed() {
            return Ok(None);
        }
        open_segment.write_record(record)?;
        let result = after_append(&open_segment.segment);
        let durable = self.syncer.is_some();
        // Without a next segment this one keeps growing, and the next record tries again.
        let full_segment = (open_segment.segment.length() >= SEGMENT_BYTES)
            .then(|| open_segment.start_next(&self.folder, durable))
            .and_then(|full| {
                full.inspect_err(|error| tracing::warn!(%error, "the journal cannot start a new file")).ok()
            });
        drop(open_segment);
        fail::point("log.after");
        Ok(Some(JournalAppend { result, full_segment }))
    }

    /// Runs `work` while no record is written.
    pub(super) fn with_lock<T>(&self, work: impl FnOnce() -> T) -> T {
        let _guard = self.lock();
        work()
    }

    /// Begins a new segment and returns the number of the one before it, which can then be removed as soon as
    /// the database has it.
    pub(super) fn rotate(&self) -> io::Result<u64> {
        self.lock().start_next(&self.folder, self.syncer.is_some())
    }

    /// Returns the length of each segment that the database does not have completely. With `durable` only
    /// bytes on disk count: the database must not expect more than a power cut leaves.
    pub(super) fn extents(&self) -> SegmentExtents {
        let open_segment = self.lock();
        let extent = |segment: &Arc<Segment>| {
            let length = if self.syncer.is_some() { &segment.synced } else { &segment.length };
            (segment.number, length.load(Ordering::Acquire))
        };
        open_segment.full_segments.iter().chain([&open_segment.segment]).map(extent).collect()
    }

    /// Returns the boot id of the machine; `None` with `durable`, when a power cut loses no written data.
    pub(super) fn boot_id(&self) -> Option<&str> {
        self.boot_id.as_deref()
    }

    /// Removes the segments up to number `last_number`, which the database has completely.
    pub(super) fn remove_segments(&self, last_number: u64) {
        fail::point("journal.before");
        self.lock().full_segments.retain(|segment| segment.number > last_number);
        // A folder that cannot be read is left to the next call.
        let segments = list_segments(&self.folder).into_iter().flatten();
        for (_, file) in segments.filter(|(number, _)| *number <= last_number) {
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
        let write_result = (&file).write_all(SEGMENT_HEADER).and_then(|()| match durable {
            true => data_folder::sync_folder(folder),
            false => Ok(()),
        });
        if let Err(error) = write_result {
            let _ = std::fs::remove_file(&name);
            return Err(error);
        }
        let length = SEGMENT_HEADER.len() as u64;
        Ok(Segment { file, number, length: AtomicU64::new(length), synced: AtomicU64::new(length) })
    }

    /// Returns the bytes of the complete records and the header.
    fn length(&self) -> u64 {
        self.length.load(Ordering::Acquire)
    }
}

impl OpenSegment {
    /// Writes a record with the next number. After an error nothing of it remains, or `is_torn` is set.
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
        // Two halves, so that a test can crash between them; the first one is empty without a test.
        let first_half = if fail::is_armed() { self.buffer.len() / 2 } else { 0 };
        let (first, second) = self.buffer.split_at(first_half);
        let mut file = &self.segment.file;
        let write_result = file.write_all(first).and_then(|()| {
            fail::point("log.amid");
            fail::fault("log.write")?;
            file.write_all(second)
        });
        if let Err(error) = write_result {
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

    /// Begins the next segment, and returns the number of the one before it.
    fn start_next(&mut self, folder: &Path, durable: bool) -> io::Result<u64> {
        let number = self.segment.number;
        let next = Arc::new(Segment::create(folder, number + 1, durable)?);
        if self.is_torn {
            // After another failure the torn record ends its file, where a scan recognizes it.
            self.is_torn = self.truncate_torn().is_err();
        }
        self.full_segments.push(std::mem::replace(&mut self.segment, next));
        self.last_record = 0;
        self.is_torn = false;
        Ok(number)
    }
}

/// Lists the segments in a folder by number and path, oldest first. Other files are skipped.
fn list_segments(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut segments = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let number = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".log")?.parse().ok());
        segments.extend(number.map(|number| (number, path)));
    }
    segments.sort_unstable();
    Ok(segments)
}
