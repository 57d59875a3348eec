//! Rows by which servers coordinate.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;

use super::PostgresStore;
use super::held_rows::{HeldRow, RowGuard};
use crate::{Cluster, ClusterStatus, ConversationLock, PeerReader, StoreError, StreamTokenRow};

/// Time for which a key may use its allowance at once: a burst has at most the requests of this time.
const BURST: Duration = Duration::from_secs(60);

#[async_trait]
impl Cluster for PostgresStore {
    async fn publish_address(&self, address: &str) -> Result<(), StoreError> {
        let runs = self.runs();
        runs.server_lease.publish_address(&*runs.database, &runs.local_runs, address.to_owned()).await
    }

    fn status(&self) -> ClusterStatus {
        ClusterStatus {
            lease_age: self.runs().server_lease.age(),
            fenced_runs: self.runs().fenced_runs.load(Ordering::Relaxed),
            held_runs: self.runs().local_runs.count(),
            lease_regains: self.runs().server_lease.regains(),
        }
    }

    fn set_peer_reader(&self, reader: Arc<dyn PeerReader>) {
        // Only the first one counts.
        let _ = self.runs().peer_reader.set(reader);
    }

    async fn remote_address(&self, message: &str) -> Result<Option<String>, StoreError> {
        Ok(self.runs().database.remote_address(message, &self.identity.server).await?)
    }

    async fn running_message(&self, conversation: &str) -> Result<Option<String>, StoreError> {
        let query =
            sqlx::query_scalar("select id from runs where conversation_id = $1 order by number limit 1");
        Ok(query.bind(conversation).fetch_optional(self.pool()).await?)
    }

    async fn secret(&self, new_secret: &str) -> Result<String, StoreError> {
        let query = sqlx::query(
            "insert into cluster_secrets (name, secret) values ('internal', $1) on conflict do nothing",
        );
        query.bind(new_secret).execute(self.pool()).await?;
        let query = sqlx::query_scalar("select secret from cluster_secrets where name = 'internal'");
        Ok(query.fetch_one(self.pool()).await?)
    }

    async fn hold_task_lease(&self, name: &str) -> Result<bool, StoreError> {
        let query = sqlx::query(
            "insert into duties (name, server, lease_until) values ($1, $2, now() + interval '1 minute') \
             on conflict (name) do update set server = excluded.server, lease_until = excluded.lease_until \
             where duties.server = excluded.server or duties.lease_until < now() \
             or not exists (select 1 from servers where servers.id = duties.server)",
        );
        let result = query.bind(name).bind(&self.identity.server).execute(self.pool()).await?;
        Ok(result.rows_affected() > 0)
    }

    async fn shared_version(&self) -> Result<i64, StoreError> {
        let query =
            sqlx::query_scalar("select cast(coalesce(sum(version), 0) as bigint) from shared_versions");
        Ok(query.fetch_one(self.pool()).await?)
    }

    async fn count_request(&self, key: &str, interval: Duration) -> Result<Option<Duration>, StoreError> {
        // Each request moves `rate_until`, or the present if that is later, on by the interval. A request
        // that would move it further ahead than `BURST` is refused.
        let query = sqlx::query(
            "insert into key_rates (key, rate_until) values ($1, now() + $2 * interval '1 second') \
             on conflict (key) do update \
             set rate_until = greatest(key_rates.rate_until, now()) + $2 * interval '1 second' \
             where greatest(key_rates.rate_until, now()) + $2 * interval '1 second' \
             <= now() + $3 * interval '1 second'",
        );
        let (seconds, burst) = (interval.as_secs_f64(), BURST.as_secs_f64());
        let result = query.bind(key).bind(seconds).bind(burst).execute(self.pool()).await?;
        if result.rows_affected() > 0 {
            return Ok(None);
        }
        let query = sqlx::query_scalar(
            "select cast(extract(epoch from rate_until - now()) as double precision) + $2 - $3 \
             from key_rates where key = $1",
        );
        let wait: Option<f64> = query.bind(key).bind(seconds).bind(burst).fetch_optional(self.pool()).await?;
        Ok(Some(Duration::try_from_secs_f64(wait.unwrap_or_default().max(0.0)).unwrap_or(BURST)))
    }

    async fn refund_request(&self, key: &str, interval: Duration) -> Result<(), StoreError> {
        let query = sqlx::query(
            "update key_rates set rate_until = rate_until - $2 * interval '1 second' where key = $1",
        );
        query.bind(key).bind(interval.as_secs_f64()).execute(self.pool()).await?;
        Ok(())
    }

    async fn put_stream_token(&self, token: &StreamTokenRow, lifetime: Duration) -> Result<(), StoreError> {
        let query = sqlx::query(
            "insert into stream_tokens (hash, message_id, key, lease_until) \
             values ($1, $2, $3, now() + $4 * interval '1 second') on conflict do nothing",
        );
        let query = query.bind(&token.hash).bind(&token.message).bind(&token.key);
        query.bind(lifetime.as_secs_f64()).execute(self.pool()).await?;
        Ok(())
    }

    async fn stream_token(&self, hash: &[u8]) -> Result<Option<StreamTokenRow>, StoreError> {
        let query = sqlx::query_as(
            "select message_id, key from stream_tokens where hash = $1 and lease_until > now()",
        );
        let token: Option<(String, String)> = query.bind(hash).fetch_optional(self.pool()).await?;
        Ok(token.map(|(message, key)| StreamTokenRow { hash: hash.to_vec(), message, key }))
    }

    fn conversation_lock(&self, id: &str) -> Box<dyn ConversationLock> {
        Box::new(self.row_guard(HeldRow::Lock(id.to_owned())))
    }

    async fn count_remote_runs(&self, owner: &str) -> Result<u64, StoreError> {
        let query = sqlx::query_scalar(
            "select count(*) from runs join messages on messages.id = runs.id \
             where messages.owner = $1 and runs.server is not null and runs.server <> $2",
        );
        let count: i64 = query.bind(owner).bind(&self.identity.server).fetch_one(self.pool()).await?;
        Ok(count.unsigned_abs())
    }
}

#[async_trait]
impl ConversationLock for RowGuard {
    async fn take(&mut self) -> Result<bool, StoreError> {
        RowGuard::take(self).await
    }
}
