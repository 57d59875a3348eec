//! Extents of the journal as the database knows them: the segments that it does not fully have, and their
//! lengths at its last commit. By them the next start detects a missing, empty or truncated segment.

use std::path::Path;

use sqlx::{SqliteConnection, SqlitePool};

use super::HEAD;
use crate::store::sqlite::commit::{begin, end};

/// Segment numbers with their lengths in bytes.
pub(in crate::store::sqlite) type Extents = Vec<(u64, u64)>;

/// File with the boot id of the machine.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
/// Boot id of a system that reports none.
const UNKNOWN: &str = "unknown";

/// Information about the journal that a commit stores.
pub(in crate::store::sqlite) struct Mark<'a> {
    /// Current lengths of the segments.
    pub(in crate::store::sqlite) extents: &'a [(u64, u64)],
    /// Last segment that the database fully has with this commit.
    pub(in crate::store::sqlite) had: Option<u64>,
    /// Boot id of the machine, if a power cut may lose written data.
    pub(in crate::store::sqlite) boot: Option<&'a str>,
}

/// Segment known to the database.
pub(super) struct Extent {
    pub(super) number: u64,
    pub(super) length: u64,
    boot: Option<String>,
}

impl Mark<'_> {
    pub(in crate::store::sqlite) async fn write(
        &self,
        connection: &mut SqliteConnection,
    ) -> sqlx::Result<()> {
        if let Some(had) = self.had {
            let query = sqlx::query("delete from segments where number <= ?").bind(had.cast_signed());
            query.execute(&mut *connection).await?;
        }
        let beginning = self.had.map(|had| (had + 1, HEAD.len() as u64));
        let behind = |extent: &&(u64, u64)| self.had.is_none_or(|had| extent.0 > had);
        let known = self.extents.iter().filter(behind).copied();
        for (number, length) in beginning.into_iter().chain(known) {
            let query = sqlx::query(
                "insert into segments (number, length, boot) values (?, ?, ?) \
                 on conflict (number) do update set length = excluded.length",
            );
            let query = query.bind(number.cast_signed()).bind(length.cast_signed()).bind(self.boot);
            query.execute(&mut *connection).await?;
        }
        Ok(())
    }
}

impl Extent {
    /// Returns `true` if the machine has rebooted since, which explains the loss of unsynced data.
    pub(super) fn is_excused(&self) -> bool {
        self.boot.as_ref().is_some_and(|before| *before == UNKNOWN || *before != boot())
    }
}

/// Returns the segments known to the database, oldest first.
pub(super) async fn known(pool: &SqlitePool) -> sqlx::Result<Vec<Extent>> {
    let query = sqlx::query_as("select number, length, boot from segments order by number");
    let rows: Vec<(i64, i64, Option<String>)> = query.fetch_all(pool).await?;
    let extent = |(number, length, boot): (i64, i64, _)| Extent {
        number: number.cast_unsigned(),
        length: length.cast_unsigned(),
        boot,
    };
    Ok(rows.into_iter().map(extent).collect())
}

/// Stores that the database has the whole journal: the next segment has number `next` and is empty.
pub(super) async fn restart(pool: &SqlitePool, next: u64, durable: bool) -> sqlx::Result<()> {
    let boot = (!durable).then(boot);
    let mark = Mark { extents: &[], had: Some(next - 1), boot: boot.as_deref() };
    let mut connection = pool.acquire().await?;
    begin(&mut connection).await?;
    let written = mark.write(&mut connection).await;
    end(&mut connection, written).await
}

/// Returns the boot id of the machine.
pub(super) fn boot() -> String {
    let said = std::fs::read_to_string(Path::new(BOOT)).unwrap_or_default();
    let said = said.trim();
    if said.is_empty() { UNKNOWN.to_owned() } else { said.to_owned() }
}
