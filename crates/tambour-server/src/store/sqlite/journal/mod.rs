//! The journal: everything that is accepted, in files that only grow.
//!
//! A record is written by whoever has it, under one lock, straight to the system: what a killed process had accepted is in
//! the system's cache, and readers may see it at once. With `durable` it is also on the disk first ([`sync`]). The database
//! follows behind, in large commits; a segment whose records it has is removed. What a crash leaves is put there at the next
//! start ([`replay`]).

mod record;
mod replay;
mod sync;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::{data_folder, fail};
pub(super) use record::{Entries, Record};
pub(super) use replay::replay;
pub(super) use sync::Syncer;

/// Bytes after which a segment is followed by the next.
const SEGMENT: u64 = 8 << 20;
/// Bytes of the buffer that are kept from one record to the next.
const BUFFER: usize = 64 << 10;
/// What a segment begins with: a name, and the version of its records.
const HEAD: &[u8; 12] = b"tambour\n\x01\0\0\0";

/// The journal.
pub(super) struct Journal {
    folder: PathBuf,
    open: Mutex<Open>,
    pub(super) syncer: Option<Syncer>,
}

/// The segment that is written.
struct Open {
    file: Arc<File>,
    number: u64,
    /// Bytes of whole records; what follows them is a torn one, if `torn` says so.
    length: u64,
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
    /// Begins a new segment in `folder`.
    pub(super) fn open(folder: PathBuf, durable: bool, dead: &CancellationToken) -> io::Result<Journal> {
        std::fs::create_dir_all(&folder)?;
        let number = segments(&folder)?.last().map_or(1, |(number, _)| number + 1);
        let file = Arc::new(begin(&folder, number)?);
        let buffer = Vec::new();
        let open = Open { file, number, length: HEAD.len() as u64, torn: false, buffer };
        let syncer = durable.then(|| Syncer::start(dead.clone())).transpose()?;
        Ok(Journal { folder, open: Mutex::new(open), syncer })
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a record, and does `then` before any other one is written. `then` gets the file, for the syncer.
    pub(super) fn append<T>(
        &self,
        record: &Record<'_>,
        then: impl FnOnce(&Arc<File>) -> T,
    ) -> io::Result<Appended<T>> {
        let mut open = self.lock();
        open.write(record)?;
        let then = then(&open.file);
        let full = (open.length >= SEGMENT).then(|| open.follow(&self.folder)).and_then(|next| {
            next.inspect_err(|error| tracing::warn!(%error, "the journal cannot go on in a new file")).ok()
        });
        drop(open);
        fail::point("log.after");
        Ok(Appended { then, full })
    }

    /// The segment that is written. Another one follows, so that the database can have all of it.
    pub(super) fn turn(&self) -> io::Result<u64> {
        self.lock().follow(&self.folder)
    }

    /// Removes the segments up to that one; the database has what is in them.
    pub(super) fn remove(&self, upto: u64) {
        fail::point("journal.before");
        for (_, file) in segments(&self.folder).into_iter().flatten().filter(|(number, _)| *number <= upto) {
            if let Err(error) = std::fs::remove_file(&file) {
                tracing::warn!(%error, file = %file.display(), "a segment of the journal stays");
            }
        }
        fail::point("journal.after");
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
        record.write(&mut self.buffer);
        fail::point("log.before");
        let half = if fail::is_armed() { self.buffer.len() / 2 } else { 0 };
        let (first, second) = self.buffer.split_at(half);
        let mut file = &*self.file;
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
        self.length += self.buffer.len() as u64;
        Ok(())
    }

    /// Takes away what follows the last whole record.
    fn cut(&self) -> io::Result<()> {
        fail::fault("log.cut")?;
        self.file.set_len(self.length)
    }

    /// Begins the next segment, and gives the number of the one before.
    fn follow(&mut self, folder: &Path) -> io::Result<u64> {
        self.file = Arc::new(begin(folder, self.number + 1)?);
        self.length = HEAD.len() as u64;
        self.torn = false;
        self.number += 1;
        Ok(self.number - 1)
    }
}

/// Makes a segment.
fn begin(folder: &Path, number: u64) -> io::Result<File> {
    let name = folder.join(format!("{number:016}.log"));
    let made = data_folder::create(&name)?;
    if let Err(error) = (&made).write_all(HEAD) {
        let _ = std::fs::remove_file(&name);
        return Err(error);
    }
    Ok(made)
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
