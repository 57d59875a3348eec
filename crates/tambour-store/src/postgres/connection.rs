//! Connections whose statements are given up when the database is silent: they stay open then, and nobody says
//! that nothing will come. A connection on which something was given up is closed at once; the others return to
//! their pool, which waits for their answer, within a limit.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{Either, Execute, Executor, PgConnection, PgPool, Postgres, SqlStr};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};

use super::LeaseSlot;

/// Time after the one at which the database cancels a statement.
const MARGIN: Duration = Duration::from_secs(5);
/// Longest time of a statement that the database does not cancel.
const LONG_TIME_LIMIT: Duration = Duration::from_secs(3600);
/// Longest wait for the answer of a connection that nobody uses.
pub(super) const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// Connections of statements, and the limits of their time.
pub(super) struct StatementState {
    pub(super) pool: PgPool,
    /// Lease with which statements are given up; empty if only their time is limited.
    pub(super) lease_slot: LeaseSlot,
    /// Time after which the database cancels a statement.
    pub(super) statement_timeout: Duration,
}

impl StatementState {
    /// Does work that waits for the database, for `time_limit` at most. Gives up before that when the lease of this
    /// server is lost: the database has not answered for a while.
    ///
    /// # Errors
    /// The work failed or was given up; it may have been done nevertheless.
    async fn limit<T>(
        &self,
        time_limit: Duration,
        work: impl Future<Output = sqlx::Result<T>>,
    ) -> sqlx::Result<T> {
        tokio::select! {
            biased;
            result = work => result,
            () = self.wait_silence(time_limit) => Err(sqlx::Error::PoolTimedOut),
        }
    }

    /// Resolves when work that begins now is to be given up.
    async fn wait_silence(&self, time_limit: Duration) {
        let begin = Instant::now();
        let deadline = begin + time_limit;
        let Some(lease) = self.lease_slot.get() else { return tokio::time::sleep_until(deadline).await };
        // Work may begin without a lease: the database has as long to answer as if it had just been renewed.
        let mut end = if lease.is_valid() { lease.valid_until() } else { begin + lease.valid_time() };
        loop {
            tokio::time::sleep_until(deadline.min(end)).await;
            if Instant::now() >= deadline || !lease.is_valid() {
                return;
            }
            end = lease.valid_until();
        }
    }
}

/// Progress of the last statement of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// The database has answered.
    Answered,
    /// The answer has not come; the connection may be dead.
    Waiting,
    /// Rows have come, and more may follow.
    Reading,
}

impl Progress {
    /// Returns the progress of a statement with this result. After an error that is no answer of the database, the
    /// connection cannot be used.
    fn after<T>(result: &sqlx::Result<T>) -> Progress {
        match result {
            Ok(_) | Err(sqlx::Error::Database(_)) => Progress::Answered,
            Err(_) => Progress::Waiting,
        }
    }
}

/// Connection of a pool. Each statement has a limit of time; dropping one that waits closes the connection.
pub(super) struct DatabaseConnection {
    /// Present until it is dropped.
    connection: Option<PoolConnection<Postgres>>,
    statements: Arc<StatementState>,
    /// Longest time of a statement.
    time_limit: Duration,
    progress: Progress,
    is_in_transaction: bool,
}

impl fmt::Debug for DatabaseConnection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("DatabaseConnection").field("progress", &self.progress).finish_non_exhaustive()
    }
}

impl DatabaseConnection {
    /// Takes a connection from the pool.
    pub(super) async fn acquire(statements: &Arc<StatementState>) -> sqlx::Result<DatabaseConnection> {
        let time_limit = statements.statement_timeout + MARGIN;
        let connection = statements.limit(time_limit, statements.pool.acquire()).await?;
        Ok(DatabaseConnection {
            connection: Some(connection),
            statements: statements.clone(),
            time_limit,
            progress: Progress::Answered,
            is_in_transaction: false,
        })
    }

    /// Runs a statement within its limit.
    async fn run<'e, T>(
        &'e mut self,
        start: impl FnOnce(&'e mut PgConnection) -> BoxFuture<'e, sqlx::Result<T>>,
    ) -> sqlx::Result<T> {
        let DatabaseConnection { connection, statements, time_limit, progress, .. } = self;
        let connection = connection.as_mut().expect("it is present until it is dropped");
        *progress = Progress::Waiting;
        let result = statements.limit(*time_limit, start(connection)).await;
        *progress = Progress::after(&result);
        result
    }
}

impl Drop for DatabaseConnection {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        if self.progress == Progress::Waiting {
            drop(connection.detach());
            return;
        }
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(give_back(connection, self.is_in_transaction))),
            // The process is about to end.
            Err(_) => std::mem::forget(connection),
        }
    }
}

/// Returns a connection to its pool, which then waits for its answer, or closes it if none comes.
async fn give_back(mut connection: PoolConnection<Postgres>, is_in_transaction: bool) {
    if is_in_transaction {
        let rollback = timeout(PING_TIMEOUT, (&mut *connection).execute("rollback")).await;
        if !matches!(rollback, Ok(Ok(_))) {
            drop(connection.detach());
            return;
        }
    }
    // As dropping the connection does, which sets no limit. Dropping this future closes the connection.
    let _ = timeout(PING_TIMEOUT, connection.return_to_pool()).await;
}

impl<'c> Executor<'c> for &'c mut DatabaseConnection {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, sqlx::Result<Either<PgQueryResult, PgRow>>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let DatabaseConnection { connection, statements, time_limit, progress, .. } = self;
        let connection = connection.as_mut().expect("it is present until it is dropped");
        let (statements, time_limit): (&StatementState, Duration) = (statements, *time_limit);
        *progress = Progress::Waiting;
        let rows = (&mut **connection).fetch_many(query);
        stream::try_unfold((rows, progress), move |(mut rows, progress)| async move {
            let result = statements.limit(time_limit, rows.try_next()).await;
            *progress = match &result {
                Ok(Some(_)) => Progress::Reading,
                result => Progress::after(result),
            };
            Ok(result?.map(|row| (row, (rows, progress))))
        })
        .boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, sqlx::Result<Option<PgRow>>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        Box::pin(self.run(move |connection| connection.fetch_optional(query)))
    }

    fn execute<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, sqlx::Result<PgQueryResult>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        Box::pin(self.run(move |connection| connection.execute(query)))
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, sqlx::Result<PgStatement>>
    where
        'c: 'e,
    {
        Box::pin(self.run(move |connection| connection.prepare_with(sql, parameters)))
    }
}

/// Transaction, which is rolled back when it is dropped before it is committed.
#[derive(Debug)]
pub(super) struct Transaction(DatabaseConnection);

impl Transaction {
    /// Begins a transaction on a connection of the pool.
    ///
    /// # Errors
    /// The pool has no connection, or the database does not answer.
    pub(super) async fn begin(statements: &Arc<StatementState>) -> sqlx::Result<Transaction> {
        let mut connection = DatabaseConnection::acquire(statements).await?;
        connection.is_in_transaction = true;
        connection.execute("begin").await?;
        Ok(Transaction(connection))
    }

    /// Lets the statements of this transaction take as long as they need.
    pub(super) async fn lift_limit(&mut self) -> sqlx::Result<()> {
        self.0.time_limit = LONG_TIME_LIMIT;
        self.0.execute("set local statement_timeout = 0").await.map(|_| ())
    }

    /// Commits the transaction. After an error that is no answer of the database, it may be committed
    /// nevertheless.
    pub(super) async fn commit(mut self) -> sqlx::Result<()> {
        self.0.execute("commit").await?;
        self.0.is_in_transaction = false;
        Ok(())
    }
}

impl Deref for Transaction {
    type Target = DatabaseConnection;

    fn deref(&self) -> &DatabaseConnection {
        &self.0
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut DatabaseConnection {
        &mut self.0
    }
}
