//! Report on the journal at the start of the server: damage, and the losses caused by it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;
use tambour::texts::format_count;

/// Maximum number of message ids in one list.
const MAX_LISTED: usize = 10;

/// Result of reading the journal at the start of the server.
#[derive(Clone, Debug, Default)]
pub struct JournalReport {
    /// Files with damaged ranges.
    pub damaged: Vec<DamagedFile>,
    /// Lost data, empty if nothing is lost.
    pub loss: JournalLoss,
    /// Messages that lack entries, by id, with the number of the last entry that was ever written, even if
    /// that entry is lost.
    pub last_written: BTreeMap<String, u64>,
}

/// Journal file with unreadable ranges.
#[derive(Clone, Debug)]
pub struct DamagedFile {
    /// Path of the file.
    pub file: PathBuf,
    /// Damaged ranges: offset and length in bytes.
    pub ranges: Vec<(u64, u64)>,
    /// Minimum number of records that the ranges contained.
    pub records: u64,
}

/// Journal file that is missing, or shorter than the database recorded.
#[derive(Clone, Debug)]
pub struct ShortFile {
    /// Path of the file.
    pub file: PathBuf,
    /// Bytes that the database recorded.
    pub known_bytes: u64,
    /// Bytes that the file has; `None` if it is missing.
    pub found_bytes: Option<u64>,
}

/// Lost data.
#[derive(Clone, Debug, Default)]
pub struct JournalLoss {
    /// Files with damaged ranges, which caused the loss.
    pub damaged: Vec<DamagedFile>,
    /// Files that are missing, or shorter than the database recorded.
    pub short: Vec<ShortFile>,
    /// Ids of lost messages.
    pub lost_messages: BTreeSet<String>,
    /// Messages whose last entries are lost, by id, with the number of the last entry that remains.
    pub truncated_messages: BTreeMap<String, u64>,
    /// Ids of unfinished messages that may have had more entries in a short file.
    pub unfinished_messages: BTreeSet<String>,
    /// Number of lost records whose message is unknown.
    pub unknown_records: u64,
}

impl JournalLoss {
    /// Returns `true` if nothing is lost. Damaged or short files alone are not a loss: the database may have
    /// the data that they lack.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lost_messages.is_empty()
            && self.truncated_messages.is_empty()
            && self.unfinished_messages.is_empty()
            && self.unknown_records == 0
    }

    /// Returns the number of known messages that are lost or incomplete.
    #[must_use]
    pub fn message_count(&self) -> u64 {
        let named_messages = self
            .truncated_messages
            .keys()
            .chain(&self.lost_messages)
            .chain(&self.unfinished_messages)
            .collect::<BTreeSet<_>>();
        named_messages.len() as u64
    }
}

impl Display for JournalLoss {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("the journal has lost messages: ")?;
        for DamagedFile { file, ranges, .. } in &self.damaged {
            let (offset, bytes) = ranges.first().copied().unwrap_or_default();
            write!(f, "{} is damaged at byte {offset} ({})", file.display(), format_count(bytes, "byte"))?;
            if ranges.len() > 1 {
                write!(f, " and {}", format_count(ranges.len() - 1, "more place"))?;
            }
            f.write_str("; ")?;
        }
        for ShortFile { file, known_bytes, found_bytes } in &self.short {
            match found_bytes {
                None => write!(
                    f,
                    "{} is missing, which had {}; ",
                    file.display(),
                    format_count(*known_bytes, "byte")
                )?,
                Some(found) => write!(f, "{} has {found} of {known_bytes} bytes; ", file.display())?,
            }
        }
        write_list(f, "lost", self.lost_messages.iter().map(Clone::clone))?;
        write_list(
            f,
            "cut off",
            self.truncated_messages.iter().map(|(id, last)| format!("{id} after event {last}")),
        )?;
        write_list(f, "possibly cut off", self.unfinished_messages.iter().map(Clone::clone))?;
        if self.unknown_records > 0 {
            write!(f, "{} of unknown messages; ", format_count(self.unknown_records, "record"))?;
        }
        f.write_str(
            "nothing has been removed: restore the files from a backup if you have one, or start once with \
             `--accept-loss`, which reads everything that is intact, ends messages that were cut off with an \
             `error`, and keeps each damaged file as `*.damaged`",
        )
    }
}

/// Writes the number of messages with the loss `label`, and the names of at most [`MAX_LISTED`] of them;
/// nothing if there are none.
fn write_list(
    f: &mut Formatter<'_>,
    label: &str,
    names: impl ExactSizeIterator<Item = String>,
) -> fmt::Result {
    let count = names.len();
    if count == 0 {
        return Ok(());
    }
    let unlisted = count.saturating_sub(MAX_LISTED);
    let names = names.take(MAX_LISTED).collect::<Vec<_>>().join(", ");
    write!(f, "{count} {} {label}: {names}", if count == 1 { "message is" } else { "messages are" })?;
    if unlisted > 0 {
        write!(f, " and {unlisted} more")?;
    }
    f.write_str("; ")
}
