//! Extents of the journal as the database knows them: the segments that it does not fully have, and their
//! lengths at its last commit. By them the next start detects a missing, empty or truncated segment.

use std::path::Path;

use sqlx::{SqliteConnection, SqlitePool};

use super::SEGMENT_HEADER;
use crate::sqlite::transaction::OpenTransaction;

/// Segment numbers with their lengths in bytes.
pub(in crate::sqlite) type SegmentExtents = Vec<(u64, u64)>;

/// File with the boot id of the machine.
const BOOT_ID_FILE: &str = "/proc/sys/kernel/random/boot_id";
/// Boot id of a system that reports none.
const UNKNOWN_BOOT: &str = "unknown";

/// Information about the journal that a commit stores.
pub(in crate::sqlite) struct ExtentMark<'a> {
    /// Current lengths of the segments.
    pub(in crate::sqlite) extents: &'a [(u64, u64)],
    /// Last segment that the database fully has with this commit.
    pub(in crate::sqlite) stored_through: Option<u64>,
    /// Boot id of the machine, if a power cut may lose written data.
    pub(in crate::sqlite) boot_id: Option<&'a str>,
}

/// Segment known to the database.
pub(super) struct SegmentExtent {
    pub(super) number: u64,
    pub(super) length: u64,
    boot_id: Option<String>,
}

impl ExtentMark<'_> {
    pub(in crate::sqlite) async fn write(&self, connection: &mut SqliteConnection) -> sqlx::Result<()> {
        if let Some(old_through) = self.stored_through {
            let query = sqlx::query("delete from segments where number <= ?").bind(old_through.cast_signed());
            query.execute(&mut *connection).await?;
        }
        let first_range =
            self.stored_through.map(|old_through| (old_through + 1, SEGMENT_HEADER.len() as u64));
        let is_later =
            |extent: &&(u64, u64)| self.stored_through.is_none_or(|old_through| extent.0 > old_through);
        let later_extents = self.extents.iter().filter(is_later).copied();
        for (number, length) in first_range.into_iter().chain(later_extents) {
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

impl SegmentExtent {
    /// Returns `true` if the machine has rebooted since, which explains the loss of unsynced data.
    pub(super) fn has_rebooted(&self) -> bool {
        self.boot_id.as_ref().is_some_and(|before| *before == UNKNOWN_BOOT || *before != boot_id())
    }
}

/// Returns the segments known to the database, oldest first.
pub(super) async fn load_extents(pool: &SqlitePool) -> sqlx::Result<Vec<SegmentExtent>> {
    let query = sqlx::query_as("select number, length, boot from segments order by number");
    let rows: Vec<(i64, i64, Option<String>)> = query.fetch_all(pool).await?;
    let extent = |(number, length, boot_id): (i64, i64, _)| SegmentExtent {
        number: number.cast_unsigned(),
        length: length.cast_unsigned(),
        boot_id,
    };
    Ok(rows.into_iter().map(extent).collect())
}

/// Stores that the database has the whole journal: the next segment has number `next` and is empty.
pub(super) async fn reset_extents(pool: &SqlitePool, next: u64, durable: bool) -> sqlx::Result<()> {
    let boot = (!durable).then(boot_id);
    let mark = ExtentMark { extents: &[], stored_through: Some(next - 1), boot_id: boot.as_deref() };
    let mut connection = OpenTransaction::begin(pool).await?;
    let written = mark.write(&mut connection).await;
    connection.end(written).await
}

/// Returns the boot id of the machine.
pub(super) fn boot_id() -> String {
    let text = std::fs::read_to_string(Path::new(BOOT_ID_FILE)).unwrap_or_default();
    let text = text.trim();
    if text.is_empty() { UNKNOWN_BOOT.to_owned() } else { text.to_owned() }
}
