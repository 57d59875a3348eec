//! What a crash left on the journal, put into the database.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use sqlx::SqlitePool;

use super::record::{self, Entries, Found};
use super::{HEAD, segments};
use crate::fail;
use crate::store::StoreError;
use crate::store::sqlite::commit::{begin, end, insert_message, insert_rows};

/// Bytes of entries of one transaction.
const ENOUGH: usize = 4 << 20;

/// Puts what only the journal has into the database, and removes its segments. A damaged tail is left out.
pub(in crate::store::sqlite) async fn replay(folder: &Path, pool: &SqlitePool) -> Result<(), StoreError> {
    let segments = if folder.exists() { segments(folder)? } else { Vec::new() };
    let mut replay = Replay { pool, last: HashMap::new(), rows: Vec::new(), bytes: 0 };
    replay.table().await?;
    for (_, file) in &segments {
        replay.segment(file).await?;
    }
    replay.write().await?;
    fail::point("journal.before");
    for (_, file) in segments {
        std::fs::remove_file(file)?;
        fail::point("journal.amid");
    }
    fail::point("journal.after");
    Ok(())
}

struct Replay<'a> {
    pool: &'a SqlitePool,
    /// The last entry that the log of a message has, or will have.
    last: HashMap<String, u64>,
    rows: Vec<Entries>,
    bytes: usize,
}

impl Replay<'_> {
    async fn segment(&mut self, file: &PathBuf) -> Result<(), StoreError> {
        let bytes = std::fs::read(file)?;
        let Some(mut rest) = bytes.strip_prefix(HEAD) else {
            // The process died while it began the file, or it is of a version that is not known.
            if !HEAD.starts_with(&bytes) {
                let detail = format!("{} is no journal of this version", file.display());
                return Err(StoreError::Folder(std::io::Error::other(detail)));
            }
            return Ok(());
        };
        while let Some(found) = record::next(&mut rest) {
            match found {
                Found::Message(row) => {
                    self.write().await?;
                    let mut connection = self.pool.acquire().await?;
                    begin(&mut connection).await?;
                    let inserted = insert_message(&mut connection, &row).await;
                    end(&mut connection, inserted).await?;
                }
                Found::Entries(entries) => self.entries(entries).await?,
                Found::Other => {}
            }
        }
        if !rest.is_empty() {
            let (file, lost) = (file.display(), rest.len());
            tracing::warn!(%file, lost, "the journal ends in a damaged record; what follows it is left out");
        }
        Ok(())
    }

    async fn entries(&mut self, entries: Entries) -> Result<(), StoreError> {
        let last = match self.last.get(&entries.message) {
            Some(last) => *last,
            None => {
                let last: Option<i64> =
                    sqlx::query_scalar("select max(last) from entries where message_id = ?")
                        .bind(&entries.message)
                        .fetch_one(self.pool)
                        .await?;
                last.unwrap_or_default().cast_unsigned()
            }
        };
        self.last.insert(entries.message.clone(), last.max(entries.last));
        if entries.last <= last {
            return Ok(());
        }
        if entries.first != last + 1 {
            // A part of them is there, or some before them are not: numbers have no gaps.
            return self.rest(entries, last);
        }
        self.bytes += entries.body.len();
        match self.rows.iter_mut().rev().find(|before| before.message == entries.message) {
            Some(before) if before.last + 1 == entries.first && before.body.len() < ENOUGH => {
                before.last = entries.last;
                before.body.extend_from_slice(&entries.body);
            }
            _ => self.rows.push(entries),
        }
        if self.bytes >= ENOUGH { self.write().await } else { Ok(()) }
    }

    /// The entries after `last` of those that overlap what is there.
    fn rest(&mut self, entries: Entries, last: u64) -> Result<(), StoreError> {
        let Entries { message, first, last: upto, body } = entries;
        if first > last + 1 {
            tracing::error!(
                message_id = message,
                first,
                last,
                "entries are missing in the journal; those behind them are left out"
            );
            self.last.insert(message, last);
            return Ok(());
        }
        let known = usize::try_from(last + 1 - first).unwrap_or(usize::MAX);
        let at = memchr::memchr_iter(b'\n', &body).nth(known - 1).map_or(body.len(), |end| end + 1);
        self.bytes += body.len() - at;
        self.rows.push(Entries { message, first: last + 1, last: upto, body: body[at..].to_vec() });
        Ok(())
    }

    async fn write(&mut self) -> Result<(), StoreError> {
        if !self.rows.is_empty() {
            let mut connection = self.pool.acquire().await?;
            begin(&mut connection).await?;
            let inserted = insert_rows(&mut connection, &self.rows).await;
            end(&mut connection, inserted).await?;
            self.rows.clear();
            self.bytes = 0;
        }
        Ok(())
    }

    /// Before there were files, the journal was a table, with a record for each row of a log and no checksums.
    async fn table(&mut self) -> Result<(), StoreError> {
        let bodies: Vec<(Vec<u8>,)> =
            sqlx::query_as("select body from journal order by id").fetch_all(self.pool).await?;
        for (body,) in &bodies {
            let mut rest = body.as_slice();
            while let Some(entries) = of_table(&mut rest) {
                self.entries(entries).await?;
            }
        }
        self.write().await?;
        sqlx::query("delete from journal").execute(self.pool).await?;
        Ok(())
    }
}

/// Takes the first record of a row of the table off.
fn of_table(rest: &mut &[u8]) -> Option<Entries> {
    fn some<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
        let length = u32::from_le_bytes(*rest.split_off(..4)?.first_chunk()?);
        rest.split_off(..usize::try_from(length).ok()?)
    }
    let message = String::from_utf8(some(rest)?.to_vec()).ok()?;
    let first = u64::from_le_bytes(*rest.split_off(..8)?.first_chunk()?);
    let last = u64::from_le_bytes(*rest.split_off(..8)?.first_chunk()?);
    Some(Entries { message, first, last, body: some(rest)?.to_vec() })
}
