//! Transactions on a connection of the pool.

use std::ops::{Deref, DerefMut};

use sqlx::pool::PoolConnection;
use sqlx::{Sqlite, SqliteConnection, SqlitePool};

/// Open transaction on a connection. If it is dropped before its end, for example because a client
/// disconnects in the middle of a request, the connection is closed, which rolls back. If the connection went
/// back to the pool instead, the next write on it would become part of the open transaction, which nobody
/// commits, and all other writers would be blocked.
///
/// The transaction type of sqlx is not used: when the disk is full, SQLite itself ends a transaction, and
/// sqlx would then begin the next transaction as a nested one.
pub(super) struct OpenTransaction {
    connection: PoolConnection<Sqlite>,
    has_ended: bool,
}

impl OpenTransaction {
    /// Begins a transaction that writes; waits while another one writes.
    pub(super) async fn begin(pool: &SqlitePool) -> sqlx::Result<OpenTransaction> {
        OpenTransaction::begin_with(pool, "begin immediate").await
    }

    /// Begins a transaction that reads, for a consistent view.
    pub(super) async fn begin_read(pool: &SqlitePool) -> sqlx::Result<OpenTransaction> {
        OpenTransaction::begin_with(pool, "begin").await
    }

    async fn begin_with(pool: &SqlitePool, statement: &'static str) -> sqlx::Result<OpenTransaction> {
        let connection = pool.acquire().await?;
        let mut transaction = OpenTransaction { connection, has_ended: false };
        sqlx::query(statement).execute(&mut *transaction.connection).await?;
        Ok(transaction)
    }

    /// Ends the transaction: commits if `result`, the result of its work, is `Ok`; rolls back otherwise.
    /// Returns the error of the work or of the commit.
    pub(super) async fn end(mut self, result: sqlx::Result<()>) -> sqlx::Result<()> {
        let end_result = match result {
            Ok(()) => sqlx::query("commit").execute(&mut *self.connection).await.map(|_| ()),
            Err(error) => Err(error),
        };
        if end_result.is_err() {
            // SQLite may have ended the transaction already.
            let _ = self.roll_back().await;
        } else {
            self.has_ended = true;
        }
        end_result
    }

    /// Rolls back.
    pub(super) async fn roll_back(mut self) -> sqlx::Result<()> {
        let result = sqlx::query("rollback").execute(&mut *self.connection).await.map(|_| ());
        self.has_ended = true;
        result
    }
}

impl Deref for OpenTransaction {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.connection
    }
}

impl DerefMut for OpenTransaction {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.connection
    }
}

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        if !self.has_ended {
            self.connection.close_on_drop();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};

    use super::OpenTransaction;

    /// A connection that went back to the pool within its transaction would never commit the next write, and
    /// would block all others (invariant 9).
    #[tokio::test]
    async fn a_dropped_transaction_is_rolled_back_and_blocks_no_other() {
        let folder = std::env::temp_dir().join(format!("tambour-transaction-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let options = SqliteConnectOptions::new()
            .filename(folder.join("rows.sqlite"))
            .create_if_missing(true)
            .journal_mode(sqlx::sqlite::SqliteJournalMode::Wal)
            .busy_timeout(Duration::from_secs(5));
        let pool = SqlitePoolOptions::new().max_connections(2).connect_with(options).await.unwrap();
        sqlx::query("create table rows (number integer)").execute(&pool).await.unwrap();
        const INSERT: &str = "insert into rows (number) values (1)";
        for _ in 0..20 {
            // Transactions are dropped while they begin, after they have begun, and after a write.
            tokio::select! {
                biased;
                _ = OpenTransaction::begin(&pool) => {}
                () = tokio::task::yield_now() => {}
            }
            drop(OpenTransaction::begin_read(&pool).await.unwrap());
            let mut transaction = OpenTransaction::begin(&pool).await.unwrap();
            sqlx::query(INSERT).execute(&mut *transaction).await.unwrap();
            drop(transaction);
            sqlx::query(INSERT).execute(&pool).await.unwrap();
        }
        let mut transaction = OpenTransaction::begin(&pool).await.unwrap();
        sqlx::query(INSERT).execute(&mut *transaction).await.unwrap();
        transaction.end(Ok(())).await.unwrap();
        // One row from each iteration, and one from the last transaction.
        let count = |pool| sqlx::query_scalar::<_, i64>("select count(*) from rows").fetch_one(pool);
        assert_eq!(count(&pool).await.unwrap(), 21);
        pool.close().await;
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
