//! What a start found on the journal: damage, and what is lost by it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;
use tambour::texts::counted;

/// Names of messages that one line has.
const NAMES: usize = 10;

/// What was read from the journal at a start.
#[derive(Clone, Debug, Default)]
pub struct JournalReport {
    /// Files with damaged places.
    pub damaged: Vec<DamagedFile>,
    /// What is gone.
    pub loss: JournalLoss,
    /// The last event that was written of messages that lack some.
    pub written: BTreeMap<String, u64>,
}

/// A file of the journal with places that cannot be read.
#[derive(Clone, Debug)]
pub struct DamagedFile {
    /// The file.
    pub file: PathBuf,
    /// Damaged places: their offset and length in bytes.
    pub places: Vec<(u64, u64)>,
    /// Records that were there, at least.
    pub records: u64,
}

/// A file of the journal that ends before a place that the database knows, or is gone.
#[derive(Clone, Debug)]
pub struct ShortFile {
    /// The file.
    pub file: PathBuf,
    /// Bytes that were there.
    pub known: u64,
    /// Bytes that are there; `None` if the file is gone.
    pub found: Option<u64>,
}

/// What is gone.
#[derive(Clone, Debug, Default)]
pub struct JournalLoss {
    /// Where it is missing.
    pub damaged: Vec<DamagedFile>,
    /// Files that are gone, or shorter than the database knows.
    pub short: Vec<ShortFile>,
    /// Messages that are gone.
    pub gone: BTreeSet<String>,
    /// Messages whose events are cut off, and the last event that is there.
    pub cut: BTreeMap<String, u64>,
    /// Messages without an end, which may have had more on a file that is short.
    pub open: BTreeSet<String>,
    /// Records of which nothing is known.
    pub unknown: u64,
}

impl JournalLoss {
    /// Whether nothing is gone.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.cut.is_empty() && self.open.is_empty() && self.unknown == 0
    }

    /// Messages that are gone or lack something, as far as they are known.
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

/// Lists messages by what became of them, the first of them by name.
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
