//! Statements outside transactions, each on a connection of its own.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use sqlx::postgres::{PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{Either, Execute, Executor, Postgres, SqlStr};
use tokio::sync::mpsc;

use super::connection::{DatabaseConnection, StatementState, Transaction};

/// Connection pool for single statements.
#[derive(Clone, Copy)]
pub(super) struct StatementPool<'c>(pub(super) &'c Arc<StatementState>);

impl fmt::Debug for StatementPool<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("StatementPool")
    }
}

impl StatementPool<'_> {
    pub(super) async fn begin(&self) -> sqlx::Result<Transaction> {
        Transaction::begin(self.0).await
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
                let mut connection = DatabaseConnection::acquire(self.0).await?;
                let mut rows = connection.fetch_many(query);
                while let Some(row) = rows.try_next().await? {
                    if sender.send(Ok(row)).await.is_err() {
                        break;
                    }
                }
                Ok(())
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
        Box::pin(async move { DatabaseConnection::acquire(self.0).await?.fetch_optional(query).await })
    }

    fn execute<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, sqlx::Result<PgQueryResult>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        Box::pin(async move { DatabaseConnection::acquire(self.0).await?.execute(query).await })
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, sqlx::Result<PgStatement>>
    where
        'c: 'e,
    {
        Box::pin(
            async move { DatabaseConnection::acquire(self.0).await?.prepare_with(sql, parameters).await },
        )
    }
}
