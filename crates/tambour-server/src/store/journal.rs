//! The journal: what arrived of all running messages, one row a commit.
//!
//! A log has a row of its own for every few KiB only; until then its entries are here, and in memory. A commit so touches a
//! few pages of the database, however many messages got something. Entries that are here and not in the log after a crash
//! are put there at the next start.

use sqlx::SqlitePool;

use super::StoreError;
use super::commit::{EMPTY, Row, insert_rows};
use crate::fail;

/// Appends a record: entries `first` to `last` of a message.
pub(super) fn record(message: &str, first: u64, last: u64, body: &[u8], out: &mut Vec<u8>) {
    let length = |length: usize| u32::try_from(length).expect("a record is small").to_le_bytes();
    out.extend_from_slice(&length(message.len()));
    out.extend_from_slice(message.as_bytes());
    out.extend_from_slice(&first.to_le_bytes());
    out.extend_from_slice(&last.to_le_bytes());
    out.extend_from_slice(&length(body.len()));
    out.extend_from_slice(body);
}

/// Takes the first record off; `None` at the end, or where a damaged one begins.
fn next(rest: &mut &[u8]) -> Option<Row> {
    fn some<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
        let length = u32::from_le_bytes(*rest.split_off(..4)?.first_chunk()?);
        rest.split_off(..usize::try_from(length).ok()?)
    }
    let message = String::from_utf8(some(rest)?.to_vec()).ok()?;
    let first = u64::from_le_bytes(*rest.split_off(..8)?.first_chunk()?);
    let last = u64::from_le_bytes(*rest.split_off(..8)?.first_chunk()?);
    Some(Row { message, first, last, body: some(rest)?.to_vec() })
}

/// Puts entries that only the journal has on their logs, and empties it.
pub(super) async fn replay(pool: &SqlitePool) -> Result<(), StoreError> {
    let bodies: Vec<(Vec<u8>,)> =
        sqlx::query_as("select body from journal order by id").fetch_all(pool).await?;
    if bodies.is_empty() {
        return Ok(());
    }
    let mut rows = Vec::<Row>::new();
    for (body,) in &bodies {
        let mut rest = body.as_slice();
        while let Some(row) = next(&mut rest) {
            let known: Option<i64> = sqlx::query_scalar("select max(last) from log where message_id = ?")
                .bind(&row.message)
                .fetch_one(pool)
                .await?;
            if known.is_some_and(|known| known.cast_unsigned() >= row.last) {
                continue;
            }
            match rows.iter_mut().rev().find(|before| before.message == row.message) {
                Some(before) if before.last + 1 == row.first => {
                    before.last = row.last;
                    before.body.extend_from_slice(&row.body);
                }
                Some(before) if before.last >= row.last => {}
                _ => rows.push(row),
            }
        }
    }
    fail::point("journal.before");
    let mut transaction = pool.begin().await?;
    insert_rows(&mut transaction, &rows).await?;
    sqlx::query(EMPTY).execute(&mut *transaction).await?;
    fail::point("journal.amid");
    transaction.commit().await?;
    fail::point("journal.after");
    Ok(())
}

#[cfg(test)]
mod tests {
    use sqlx::sqlite::SqlitePoolOptions;

    use super::{Row, next, record, replay};
    use crate::store::commit::insert_rows;
    use crate::store::migrations;

    #[tokio::test]
    async fn only_what_the_log_lacks_is_put_there() {
        // One connection: each has a database of its own in memory.
        let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await.unwrap();
        migrations::run(&pool).await.unwrap();
        let row = Row { message: "msg_1".into(), first: 1, last: 3, body: b"1\n2\n3\n".into() };
        insert_rows(&mut pool.acquire().await.unwrap(), &[row]).await.unwrap();
        let mut body = Vec::new();
        record("msg_1", 2, 2, b"2\n", &mut body);
        record("msg_1", 3, 3, b"3\n", &mut body);
        record("msg_1", 4, 5, b"4\n5\n", &mut body);
        sqlx::query("insert into journal (body) values (?)").bind(body).execute(&pool).await.unwrap();
        replay(&pool).await.unwrap();
        let log: Vec<(i64, i64, Vec<u8>)> =
            sqlx::query_as("select first, last, body from log order by first")
                .fetch_all(&pool)
                .await
                .unwrap();
        assert_eq!(log, [(1, 3, b"1\n2\n3\n".to_vec()), (4, 5, b"4\n5\n".to_vec())]);
        let left: i64 = sqlx::query_scalar("select count(*) from journal").fetch_one(&pool).await.unwrap();
        assert_eq!(left, 0);
    }

    #[test]
    fn records_are_read_as_they_were_written_and_a_torn_one_is_none() {
        let mut out = Vec::new();
        record("msg_1", 1, 2, b"T \"a\"\nT \"b\"\n", &mut out);
        record("msg_2", 7, 7, b"", &mut out);
        let mut rest = out.as_slice();
        let row = next(&mut rest).unwrap();
        assert_eq!((row.message.as_str(), row.first, row.last), ("msg_1", 1, 2));
        assert_eq!(row.body, b"T \"a\"\nT \"b\"\n");
        assert_eq!(next(&mut rest).map(|row| row.message), Some("msg_2".to_owned()));
        assert!(next(&mut rest).is_none());
        for cut in 0..out.len() {
            let mut rest = &out[..cut];
            while next(&mut rest).is_some() {}
        }
    }
}
