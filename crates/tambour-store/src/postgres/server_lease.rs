//! Lease of this server: a row that it renews, and its own clock, which tells it when the others may take its
//! runs over.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use sqlx::PgPool;

use super::StoreState;
use crate::{StoreError, clock, ids};

/// Lease of this server.
pub(super) struct ServerLease {
    server: String,
    /// Time without a renewal, by the clock of the database, after which others take over.
    duration: Duration,
    /// Base URL at which the other servers reach this one, once it is known.
    address: Mutex<Option<String>>,
    /// Time at which the last successful renewal was sent.
    renewed_at: Mutex<Instant>,
    /// Time at which the database last answered again after the lease may have been lost.
    regained_at: Mutex<Option<Instant>>,
}

impl ServerLease {
    /// Registers the server.
    pub(super) async fn acquire(
        pool: &PgPool,
        server: String,
        duration: Duration,
    ) -> Result<ServerLease, StoreError> {
        let lease = ServerLease {
            server,
            duration,
            address: Mutex::default(),
            renewed_at: Mutex::new(Instant::now()),
            regained_at: Mutex::default(),
        };
        lease.renew(pool).await?;
        Ok(lease)
    }

    /// Returns the time from one renewal to the next.
    fn renew_interval(&self) -> Duration {
        self.duration / 5
    }

    /// Returns the time for which a renewed lease is valid by the clock of this server.
    pub(super) fn valid_time(&self) -> Duration {
        self.duration * 3 / 5
    }

    /// Returns the time since the last successful renewal was sent.
    pub(super) fn age(&self) -> Duration {
        self.renewed_at.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// Returns `true` until the lease may have been lost: after three fifths of its duration without a
    /// renewal, by its own clock, this server writes no more and shows no further entries.
    pub(super) fn is_valid(&self) -> bool {
        self.age() < self.valid_time()
    }

    /// Returns `true` if a connection that has been idle for so long may be dead: it is from before the database
    /// last answered again.
    pub(super) fn is_doubtful(&self, idle_time: Duration) -> bool {
        let regained_at = *self.regained_at.lock().unwrap_or_else(PoisonError::into_inner);
        !self.is_valid() || regained_at.is_some_and(|time| time.elapsed() < idle_time)
    }

    /// Tells the other servers the base URL of this one.
    pub(super) async fn publish_address(&self, pool: &PgPool, address: String) -> Result<(), StoreError> {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner) = Some(address);
        self.renew(pool).await
    }

    /// Renews the lease; registers the server again if its row has been removed.
    async fn renew(&self, pool: &PgPool) -> Result<(), StoreError> {
        let sent_at = Instant::now();
        let query = sqlx::query_scalar::<_, i64>(
            "insert into servers (id, address, started, lease_until) \
             values ($1, $2, $3, now() + $4 * interval '1 second') \
             on conflict (id) do update set lease_until = excluded.lease_until, address = excluded.address \
             returning cast(extract(epoch from clock_timestamp()) * 1000000 as bigint)",
        );
        let address = self.address.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let query = query.bind(&self.server).bind(address).bind(ids::now());
        let query = query.bind(self.duration.as_secs_f64());
        let limit = self.valid_time() / 2;
        let acquired = tokio::time::timeout(limit, pool.acquire()).await;
        let mut connection = acquired.map_err(|_| StoreError::Timeout)??;
        match tokio::time::timeout(limit, query.fetch_one(&mut *connection)).await {
            Ok(result) => {
                if let Ok(time) = Timestamp::from_microsecond(result?) {
                    clock::set(sent_at, time);
                }
            }
            Err(_) => {
                // The database may be silent: the connection is given up.
                drop(connection.detach());
                return Err(StoreError::Timeout);
            }
        }
        if !self.is_valid() {
            *self.regained_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
        *self.renewed_at.lock().unwrap_or_else(PoisonError::into_inner) = sent_at;
        Ok(())
    }

    /// Ends the lease: other servers may claim at once the runs that this one has left.
    pub(super) async fn end(&self, pool: &PgPool) -> Result<(), StoreError> {
        sqlx::query("delete from servers where id = $1").bind(&self.server).execute(pool).await?;
        Ok(())
    }
}

/// Renews the lease until the store is closed. Once it may be lost, fences all runs of this server.
pub(super) async fn keep_lease(shared: Arc<StoreState>) {
    let lease = &shared.server_lease;
    let mut interval = tokio::time::interval(lease.renew_interval());
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut was_valid = true;
    loop {
        tokio::select! {
            _ = interval.tick() => {}
            () = shared.closed.cancelled() => return,
        }
        // The process may have been suspended, and other servers may have claimed its runs.
        if !lease.is_valid() {
            shared.local_runs.fence_all();
        }
        let result = tokio::select! {
            result = lease.renew(&shared.append_pool) => result,
            () = shared.closed.cancelled() => return,
        };
        match result {
            Ok(()) if !was_valid => tracing::info!("the database answers again"),
            Ok(()) => {}
            Err(error) if was_valid => tracing::error!(%error, "the lease of this server is not renewed"),
            Err(error) => tracing::debug!(%error, "the lease of this server is not renewed"),
        }
        was_valid = lease.is_valid();
        if !was_valid {
            shared.local_runs.fence_all();
        }
    }
}
