//! What the database knows of the journal: which segments it does not have all of, and how long they were at its last commit. So
//! a segment that is gone, empty or cut off says so at the next start.

use std::path::Path;

use sqlx::{SqliteConnection, SqlitePool};

use super::HEAD;
use crate::store::sqlite::commit::{begin, end};

/// Numbers of segments, and bytes of each.
pub(in crate::store::sqlite) type Extents = Vec<(u64, u64)>;

/// Where a system says which of its starts this is.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
/// The start of a system that does not say.
const UNKNOWN: &str = "unknown";

/// What a commit tells the database of the journal.
pub(in crate::store::sqlite) struct Mark<'a> {
    /// Segments as they are.
    pub(in crate::store::sqlite) extents: &'a [(u64, u64)],
    /// The last segment that the database has all of with this commit.
    pub(in crate::store::sqlite) had: Option<u64>,
    /// The start of the machine, if a power cut may take what was written.
    pub(in crate::store::sqlite) boot: Option<&'a str>,
}

/// A segment that the database knows.
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
    /// Whether the machine has been started anew since, and what it had not put on the disk is gone with that.
    pub(super) fn is_excused(&self) -> bool {
        self.boot.as_ref().is_some_and(|before| *before == UNKNOWN || *before != boot())
    }
}

/// The segments that the database knows, oldest first.
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

/// The database has all that the journal had: the next segment has that number, and holds nothing.
pub(super) async fn restart(pool: &SqlitePool, next: u64, durable: bool) -> sqlx::Result<()> {
    let boot = (!durable).then(boot);
    let mark = Mark { extents: &[], had: Some(next - 1), boot: boot.as_deref() };
    let mut connection = pool.acquire().await?;
    begin(&mut connection).await?;
    let written = mark.write(&mut connection).await;
    end(&mut connection, written).await
}

/// The start of the machine.
pub(super) fn boot() -> String {
    let said = std::fs::read_to_string(Path::new(BOOT)).unwrap_or_default();
    let said = said.trim();
    if said.is_empty() { UNKNOWN.to_owned() } else { said.to_owned() }
}
