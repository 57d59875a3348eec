//! Report of a start about the journal: damage, and the losses caused by it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;
use tambour::texts::counted;

/// Most message ids in one line.
const NAMES: usize = 10;

/// Result of reading the journal at a start.
#[derive(Clone, Debug, Default)]
pub struct JournalReport {
    /// Files with damaged ranges.
    pub damaged: Vec<DamagedFile>,
    /// Lost data.
    pub loss: JournalLoss,
    /// Last written entry of messages that lack some.
    pub written: BTreeMap<String, u64>,
}

/// Journal file with unreadable ranges.
#[derive(Clone, Debug)]
pub struct DamagedFile {
    /// Path of the file.
    pub file: PathBuf,
    /// Damaged ranges: offset and length in bytes.
    pub places: Vec<(u64, u64)>,
    /// Least number of records that they contained.
    pub records: u64,
}

/// Journal file that is missing or shorter than the database knows.
#[derive(Clone, Debug)]
pub struct ShortFile {
    /// Path of the file.
    pub file: PathBuf,
    /// Bytes that it had.
    pub known: u64,
    /// Bytes that it has; `None` if the file is missing.
    pub found: Option<u64>,
}

/// Lost data.
#[derive(Clone, Debug, Default)]
pub struct JournalLoss {
    /// Files with damaged ranges that caused it.
    pub damaged: Vec<DamagedFile>,
    /// Files that are missing or shorter than the database knows.
    pub short: Vec<ShortFile>,
    /// Ids of lost messages.
    pub gone: BTreeSet<String>,
    /// Truncated messages with their last remaining entry.
    pub cut: BTreeMap<String, u64>,
    /// Unfinished messages that may have had more entries in a short file.
    pub open: BTreeSet<String>,
    /// Number of lost records whose message is unknown.
    pub unknown: u64,
}

impl JournalLoss {
    /// Returns `true` if nothing is lost.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.cut.is_empty() && self.open.is_empty() && self.unknown == 0
    }

    /// Returns the number of known messages that are lost or incomplete.
    #[must_use]
    pub fn messages(&self) -> u64 {
        let named = self.cut.keys().chain(&self.gone).chain(&self.open).collect::<BTreeSet<_>>();
        named.len() as u64
    }
}

impl Display for JournalLoss {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("the journal has lost messages: ")?;
        for DamagedFile { file, places, .. } in &self.damaged {
            let (offset, bytes) = places.first().copied().unwrap_or_default();
            write!(f, "{} is damaged at byte {offset} ({})", file.display(), counted(bytes, "byte"))?;
            if places.len() > 1 {
                write!(f, " and {}", counted(places.len() - 1, "more place"))?;
            }
            f.write_str("; ")?;
        }
        for ShortFile { file, known, found } in &self.short {
            match found {
                None => write!(f, "{} is gone, which had {}; ", file.display(), counted(*known, "byte"))?,
                Some(found) => write!(f, "{} has {found} of {known} bytes; ", file.display())?,
            }
        }
        list(f, "gone", self.gone.iter().map(Clone::clone))?;
        list(f, "cut off", self.cut.iter().map(|(id, last)| format!("{id} behind event {last}")))?;
        list(f, "perhaps cut off", self.open.iter().map(Clone::clone))?;
        if self.unknown > 0 {
            write!(f, "{} of messages that cannot be told; ", counted(self.unknown, "record"))?;
        }
        f.write_str(
            "nothing has been removed: put the files back from a copy if you have one, or start once with `--accept-loss`, \
             which takes all that is intact, ends messages that were cut off with an `error`, and keeps each damaged file as `*.damaged`",
        )
    }
}

/// Writes a list of messages with the same fate, the first of them by id.
fn list(f: &mut Formatter<'_>, what: &str, names: impl ExactSizeIterator<Item = String>) -> fmt::Result {
    let count = names.len();
    if count == 0 {
        return Ok(());
    }
    let more = count.saturating_sub(NAMES);
    let names = names.take(NAMES).collect::<Vec<_>>().join(", ");
    write!(f, "{count} {} {what}: {names}", if count == 1 { "message is" } else { "messages are" })?;
    if more > 0 {
        write!(f, " and {more} more")?;
    }
    f.write_str("; ")
}
