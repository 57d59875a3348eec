//! Statements outside transactions. They are given up when the database is silent: its connections stay open
//! then, and nobody says that nothing will come.

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{Either, Execute, Executor, Postgres, SqlStr, Transaction};
use tokio::sync::mpsc;
use tokio::time::Instant;

use sqlx::PgPool;

use super::LeaseSlot;

/// Time after the one at which the database cancels a statement.
const MARGIN: Duration = Duration::from_secs(5);

/// Connections of statements, and the limits of their time.
pub(super) struct StatementState {
    pub(super) pool: PgPool,
    pub(super) lease_slot: LeaseSlot,
    /// Time after which the database cancels a statement.
    pub(super) statement_timeout: Duration,
}

/// Connection pool for single statements.
#[derive(Clone, Copy)]
pub(super) struct StatementPool<'c>(pub(super) &'c StatementState);

impl fmt::Debug for StatementPool<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("StatementPool")
    }
}

impl StatementPool<'_> {
    /// Begins a transaction. Its statements wait for a silent database until the lease of this server is lost
    /// and its caller gives up.
    pub(super) async fn begin(&self) -> sqlx::Result<Transaction<'static, Postgres>> {
        self.limit(self.0.pool.begin()).await
    }

    /// Does work that waits for the database. Gives up when the database does not answer to this work and has
    /// not renewed the lease of this server either, or after the time in which it cancels any statement.
    ///
    /// # Errors
    /// The work failed or was given up; it may have been done nevertheless.
    pub(super) async fn limit<T, E: From<sqlx::Error>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        tokio::select! {
            biased;
            result = work => result,
            () = self.wait_silence() => Err(sqlx::Error::PoolTimedOut.into()),
        }
    }

    /// Resolves when work that begins now is to be given up.
    async fn wait_silence(&self) {
        let deadline = Instant::now() + self.0.statement_timeout + MARGIN;
        let Some(lease) = self.0.lease_slot.get() else { return tokio::time::sleep_until(deadline).await };
        loop {
            tokio::time::sleep_until(deadline.min(Instant::now() + lease.valid_time())).await;
            if Instant::now() >= deadline || !lease.is_valid() {
                return;
            }
        }
    }

    /// Ends the use of a connection, and the connection itself if nothing came.
    fn release<T>(connection: PoolConnection<Postgres>, result: sqlx::Result<T>) -> sqlx::Result<T> {
        if matches!(result, Err(sqlx::Error::PoolTimedOut)) {
            drop(connection.detach());
        }
        result
    }
}

impl<'c> Executor<'c> for StatementPool<'c> {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, sqlx::Result<Either<PgQueryResult, PgRow>>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let (sender, mut receiver) = mpsc::channel(1);
        let reading = async move {
            let result = async {
                let mut connection = self.0.pool.acquire().await?;
                let result = async {
                    let mut rows = (&mut *connection).fetch_many(query);
                    while let Some(row) = self.limit(rows.try_next()).await? {
                        if sender.send(Ok(row)).await.is_err() {
                            break;
                        }
                    }
                    Ok(())
                };
                let result = result.await;
                StatementPool::release(connection, result)
            };
            if let Err(error) = result.await {
                // The reader may have gone.
                let _ = sender.send(Err(error)).await;
            }
        };
        let reading = stream::once(reading).filter_map(|()| std::future::ready(None));
        stream::select(stream::poll_fn(move |context| receiver.poll_recv(context)), reading).boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, sqlx::Result<Option<PgRow>>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        Box::pin(async move {
            let mut connection = self.0.pool.acquire().await?;
            let result = self.limit((&mut *connection).fetch_optional(query)).await;
            StatementPool::release(connection, result)
        })
    }

    fn execute<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, sqlx::Result<PgQueryResult>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        Box::pin(async move {
            let mut connection = self.0.pool.acquire().await?;
            let result = self.limit((&mut *connection).execute(query)).await;
            StatementPool::release(connection, result)
        })
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, sqlx::Result<PgStatement>>
    where
        'c: 'e,
    {
        Box::pin(async move {
            let mut connection = self.0.pool.acquire().await?;
            let result = self.limit((&mut *connection).prepare_with(sql, parameters)).await;
            StatementPool::release(connection, result)
        })
    }
}
