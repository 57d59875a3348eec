//! Extents of the journal as the database knows them: the segments that it does not have completely, and
//! their lengths at its last commit. With them the next start detects a missing, empty or truncated segment.

use std::path::Path;

use sqlx::{SqliteConnection, SqlitePool};

use super::SEGMENT_HEADER;
use crate::sqlite::transaction::OpenTransaction;

/// Segment numbers with their lengths in bytes.
pub(in crate::sqlite) type SegmentExtents = Vec<(u64, u64)>;

/// File with the boot id of the machine on Linux. The boot id changes with each boot.
const BOOT_ID_FILE: &str = "/proc/sys/kernel/random/boot_id";
/// Boot id of a system that reports none.
const UNKNOWN_BOOT: &str = "unknown";

/// Extents of the journal that a commit stores with its rows.
pub(in crate::sqlite) struct ExtentMark<'a> {
    /// Current lengths of the segments, oldest first.
    pub(in crate::sqlite) extents: &'a [(u64, u64)],
    /// Last segment that the database has completely with this commit.
    pub(in crate::sqlite) stored_through: Option<u64>,
    /// Boot id of the machine; present without `durable`, when a power cut may lose written data.
    pub(in crate::sqlite) boot_id: Option<&'a str>,
}

/// Segment that the database knows of.
pub(super) struct KnownSegment {
    pub(super) number: u64,
    /// Bytes that it had at the last commit, including its header.
    pub(super) length: u64,
    /// Boot id of the machine when the segment began; `None` if these bytes were on disk.
    boot_id: Option<String>,
}

impl ExtentMark<'_> {
    /// Writes the extents within the transaction of the commit.
    pub(in crate::sqlite) async fn write(&self, connection: &mut SqliteConnection) -> sqlx::Result<()> {
        if let Some(last_stored) = self.stored_through {
            let query = sqlx::query("delete from segments where number <= ?").bind(last_stored.cast_signed());
            query.execute(&mut *connection).await?;
        }
        // The segment after the stored ones exists even if `extents` does not have it yet. If `extents` has
        // it, the length there replaces this one.
        let next_segment =
            self.stored_through.map(|last_stored| (last_stored + 1, SEGMENT_HEADER.len() as u64));
        let is_later =
            |extent: &&(u64, u64)| self.stored_through.is_none_or(|last_stored| extent.0 > last_stored);
        let later_extents = self.extents.iter().filter(is_later).copied();
        for (number, length) in next_segment.into_iter().chain(later_extents) {
            let query = sqlx::query(
                "insert into segments (number, length, boot) values (?, ?, ?) \
                 on conflict (number) do update set length = excluded.length",
            );
            let query = query.bind(number.cast_signed()).bind(length.cast_signed()).bind(self.boot_id);
            query.execute(&mut *connection).await?;
        }
        Ok(())
    }
}

impl KnownSegment {
    /// Returns `true` if the machine has, or may have, rebooted since the segment began, and the segment was
    /// not synced: a power cut then explains that bytes are missing.
    pub(super) fn has_rebooted(&self) -> bool {
        self.boot_id.as_ref().is_some_and(|earlier| *earlier == UNKNOWN_BOOT || *earlier != boot_id())
    }
}

/// Returns the segments known to the database, oldest first.
pub(super) async fn load_extents(pool: &SqlitePool) -> sqlx::Result<Vec<KnownSegment>> {
    let query = sqlx::query_as("select number, length, boot from segments order by number");
    let rows: Vec<(i64, i64, Option<String>)> = query.fetch_all(pool).await?;
    let segment = |(number, length, boot_id): (i64, i64, _)| KnownSegment {
        number: number.cast_unsigned(),
        length: length.cast_unsigned(),
        boot_id,
    };
    Ok(rows.into_iter().map(segment).collect())
}

/// Stores that the database has the whole journal, and that the next segment has number `next_segment` and is
/// empty.
pub(super) async fn reset_extents(pool: &SqlitePool, next_segment: u64, durable: bool) -> sqlx::Result<()> {
    let boot_id = (!durable).then(boot_id);
    let mark =
        ExtentMark { extents: &[], stored_through: Some(next_segment - 1), boot_id: boot_id.as_deref() };
    let mut transaction = OpenTransaction::begin(pool).await?;
    let write_result = mark.write(&mut transaction).await;
    transaction.end(write_result).await
}

/// Returns the boot id of the machine, [`UNKNOWN_BOOT`] if there is none.
pub(super) fn boot_id() -> String {
    let text = std::fs::read_to_string(Path::new(BOOT_ID_FILE)).unwrap_or_default();
    let text = text.trim();
    if text.is_empty() { UNKNOWN_BOOT.to_owned() } else { text.to_owned() }
}
