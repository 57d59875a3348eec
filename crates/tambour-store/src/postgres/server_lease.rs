//! Lease of this server: a row that it renews, and its own clock, which tells it when the others may take its
//! runs over.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::database::{RunDatabase, ServerRow};
use super::local_runs::LocalRuns;
use super::server_runs::ServerRuns;
use crate::{StoreError, fail};

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
    /// Number of renewals after the lease may have been lost.
    regains: AtomicU64,
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
            regains: AtomicU64::new(0),
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

    /// Returns the time up to which the lease is valid, if it is not renewed.
    pub(super) fn valid_until(&self) -> Instant {
        *self.renewed_at.lock().unwrap_or_else(PoisonError::into_inner) + self.valid_time()
    }

    /// Returns the number of renewals after the lease may have been lost.
    pub(super) fn regains(&self) -> u64 {
        self.regains.load(Ordering::Relaxed)
    }

    /// Returns `true` until the lease may have been lost: after three fifths of its duration without a
    /// renewal, by its own clock, this server writes no more and shows no further entries.
    pub(super) fn is_valid(&self) -> bool {
        self.age() < self.valid_time()
    }

    /// Returns `true` if a connection that has been idle for so long may be dead: it is from before the database
    /// last answered again.
    pub(super) fn is_doubtful(&self, idle_time: Duration) -> bool {
        let is_valid = self.is_valid();
        let regained_at = *self.regained_at.lock().unwrap_or_else(PoisonError::into_inner);
        !is_valid || regained_at.is_some_and(|time| time.elapsed() < idle_time)
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

    /// Renews the lease; registers the server again if its row has been removed.
    async fn renew(&self, database: &dyn RunDatabase, local_runs: &LocalRuns) -> Result<(), StoreError> {
        let sent_at = Instant::now();
        let address = self.address.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let row = ServerRow { id: &self.server, address: address.as_deref(), lease: self.duration };
        let renewal = tokio::time::timeout(self.valid_time() / 2, database.renew_server(row));
        // The database may be silent.
        renewal.await.map_err(|_| StoreError::Timeout)??;
        self.note_renewal(local_runs, sent_at);
        Ok(())
    }

    /// Notes a renewal that was sent at `sent_at`. If the lease was not valid for a moment, fences all runs before it
    /// is valid again: others may have claimed them, and what was stored in that moment was not shown.
    fn note_renewal(&self, local_runs: &LocalRuns, sent_at: Instant) {
        // Locked to the end: nobody may find the lease lost and see it valid again with runs that are not fenced.
        let mut renewed_at = self.renewed_at.lock().unwrap_or_else(PoisonError::into_inner);
        if renewed_at.elapsed() >= self.valid_time() {
            local_runs.fence_all();
            *self.regained_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
            self.regains.fetch_add(1, Ordering::Relaxed);
        }
        fail::point("lease.renewal");
        *renewed_at = sent_at;
    }

    /// Ends the lease: other servers may claim at once the runs that this one has left.
    pub(super) async fn end(&self, database: &dyn RunDatabase) -> Result<(), StoreError> {
        Ok(database.delete_server(&self.server).await?)
    }
}

/// Renews the lease until the store is closed. Once it may be lost, fences all runs of this server.
pub(super) async fn keep_lease(runs: Arc<ServerRuns>) {
    let _end_guard = runs.renewals_ended.clone().drop_guard();
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
        // Also when the store is closed: what is on its way could reach the database after the end of the lease.
        match lease.renew(&*runs.database, &runs.local_runs).await {
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::atomic::AtomicU64;
    use std::sync::mpsc::{self, Receiver};
    use std::sync::{Mutex, OnceLock};
    use std::time::Duration;

    use tokio::time::Instant;

    use super::ServerLease;
    use crate::fail;
    use crate::postgres::local_runs::{LocalRun, LocalRuns};

    /// Time for which a thread that is not kept waiting has looked at the lease.
    const LOOK: Duration = Duration::from_millis(200);

    static LEASE: OnceLock<ServerLease> = OnceLock::new();
    /// Validity of the lease in the middle of its renewal, once it is known.
    static VALIDITY: Mutex<Option<Receiver<bool>>> = Mutex::new(None);

    thread_local! {
        /// Set in the thread of the test: other tests renew leases, too.
        static IS_RENEWING: Cell<bool> = const { Cell::new(false) };
    }

    /// Lets the lease end in the middle of its renewal, and another thread look at it then.
    fn look_at_lease(point: &'static str) {
        let Some(lease) = LEASE.get().filter(|_| point == "lease.renewal" && IS_RENEWING.get()) else {
            return;
        };
        std::thread::sleep(lease.valid_time());
        let (sender, receiver) = mpsc::channel();
        let (looked_sender, looked) = mpsc::channel();
        std::thread::spawn(move || {
            sender.send(lease.is_valid()).unwrap();
            let _ = looked_sender.send(());
        });
        // It may be kept waiting until the end of the renewal.
        let _ = looked.recv_timeout(LOOK);
        *VALIDITY.lock().unwrap() = Some(receiver);
    }

    /// A collector that finds the lease lost does not show what it has stored: its run has to be fenced.
    #[test]
    fn nobody_finds_a_lease_lost_that_is_renewed_without_fencing() {
        let duration = Duration::from_secs(1);
        let lease = LEASE.get_or_init(|| ServerLease {
            server: String::new(),
            duration,
            address: Mutex::default(),
            renewed_at: Mutex::new(Instant::now()),
            regained_at: Mutex::default(),
            regains: AtomicU64::new(0),
        });
        let local_runs = LocalRuns::default();
        let run = LocalRun::new("msg", 1);
        local_runs.insert(&run);
        fail::arm(look_at_lease);
        IS_RENEWING.set(true);
        // Valid for as long as the other thread may take to look.
        lease.note_renewal(&local_runs, Instant::now() + Duration::from_secs(3600));
        let was_valid = VALIDITY.lock().unwrap().take().unwrap().recv().unwrap();
        assert!(was_valid || !run.is_held(), "it waits for ever for what was stored to be shown");
    }
}
