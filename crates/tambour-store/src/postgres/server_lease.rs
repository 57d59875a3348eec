//! Lease of this server: a row that it renews, and its own clock, which tells it when the others may take its
//! runs over.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::database::{RunDatabase, ServerRow};
use super::local_runs::LocalRuns;
use super::server_runs::ServerRuns;
use crate::StoreError;

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
        database: &dyn RunDatabase,
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
        lease.renew(database, &LocalRuns::default()).await?;
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
    pub(super) async fn publish_address(
        &self,
        database: &dyn RunDatabase,
        local_runs: &LocalRuns,
        address: String,
    ) -> Result<(), StoreError> {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner) = Some(address);
        self.renew(database, local_runs).await
    }

    /// Renews the lease; registers the server again if its row has been removed. If the lease was not valid for a
    /// moment, fences all runs before it is valid again: others may have claimed them, and what was stored in that
    /// moment was not shown.
    async fn renew(&self, database: &dyn RunDatabase, local_runs: &LocalRuns) -> Result<(), StoreError> {
        let sent_at = Instant::now();
        let address = self.address.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let row = ServerRow { id: &self.server, address: address.as_deref(), lease: self.duration };
        let renewal = tokio::time::timeout(self.valid_time() / 2, database.renew_server(row));
        // The database may be silent.
        renewal.await.map_err(|_| StoreError::Timeout)??;
        if !self.is_valid() {
            local_runs.fence_all();
            *self.regained_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
        *self.renewed_at.lock().unwrap_or_else(PoisonError::into_inner) = sent_at;
        Ok(())
    }

    /// Ends the lease: other servers may claim at once the runs that this one has left.
    pub(super) async fn end(&self, database: &dyn RunDatabase) -> Result<(), StoreError> {
        Ok(database.delete_server(&self.server).await?)
    }
}

/// Renews the lease until the store is closed. Once it may be lost, fences all runs of this server.
pub(super) async fn keep_lease(runs: Arc<ServerRuns>) {
    let lease = &runs.server_lease;
    let mut interval = tokio::time::interval(lease.renew_interval());
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut was_valid = true;
    loop {
        tokio::select! {
            biased;
            () = runs.closed.cancelled() => return,
            _ = interval.tick() => {}
        }
        // The process may have been suspended, and other servers may have claimed its runs.
        if !lease.is_valid() {
            runs.local_runs.fence_all();
        }
        let result = tokio::select! {
            biased;
            () = runs.closed.cancelled() => return,
            result = lease.renew(&*runs.database, &runs.local_runs) => result,
        };
        match result {
            Ok(()) if !was_valid => tracing::info!("the database answers again"),
            Ok(()) => {}
            Err(error) if was_valid => tracing::error!(%error, "the lease of this server is not renewed"),
            Err(error) => tracing::debug!(%error, "the lease of this server is not renewed"),
        }
        was_valid = lease.is_valid();
        if !was_valid {
            runs.local_runs.fence_all();
        }
    }
}
