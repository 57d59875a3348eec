//! Runs of one server of a cluster: its lease, the runs whose lease it holds, and the tasks that write them.

use std::fmt::Display;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::collector::{self, AppendQueue};
use super::database::RunDatabase;
use super::local_runs::LocalRuns;
use super::server_lease::{self, ServerLease};
use crate::{PeerReader, StoreError};

/// Shortest and longest pause between two attempts to store something.
const MIN_PAUSE: Duration = Duration::from_millis(20);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Starts a task.
pub(super) type TaskSpawner = Arc<dyn Fn(BoxFuture<'static, ()>) + Send + Sync>;

/// State of the runs of a server, shared by its store, its leases and its tasks.
pub(super) struct ServerRuns {
    pub(super) database: Arc<dyn RunDatabase>,
    /// Id of the server.
    pub(super) server: String,
    /// Runs whose lease this server holds.
    pub(super) local_runs: LocalRuns,
    pub(super) append_queue: AppendQueue,
    pub(super) server_lease: Arc<ServerLease>,
    /// Number of runs whose entries or end were refused.
    pub(super) fenced_runs: AtomicU64,
    /// Reader of logs that other servers write.
    pub(super) peer_reader: OnceLock<Arc<dyn PeerReader>>,
    /// Cancelled when the store is closed.
    pub(super) closed: CancellationToken,
    /// Cancelled when writes that fail are no longer retried.
    pub(super) abort_waits: CancellationToken,
    /// Cancelled when the lease is renewed no more.
    pub(super) renewals_ended: CancellationToken,
    task_spawner: TaskSpawner,
}

impl ServerRuns {
    /// Registers the server, whose lease lasts for `lease`, and starts its tasks: one renews the lease,
    /// `collectors` append to logs.
    pub(super) async fn start(
        database: Arc<dyn RunDatabase>,
        server: String,
        lease: Duration,
        collectors: u32,
        task_spawner: TaskSpawner,
    ) -> Result<Arc<ServerRuns>, StoreError> {
        let server_lease = ServerLease::acquire(&*database, server.clone(), lease).await?;
        let runs = Arc::new(ServerRuns {
            database,
            server,
            local_runs: LocalRuns::default(),
            append_queue: AppendQueue::default(),
            server_lease: Arc::new(server_lease),
            fenced_runs: AtomicU64::new(0),
            peer_reader: OnceLock::new(),
            closed: CancellationToken::new(),
            abort_waits: CancellationToken::new(),
            renewals_ended: CancellationToken::new(),
            task_spawner,
        });
        runs.spawn(server_lease::keep_lease(runs.clone()));
        for _ in 0..collectors {
            runs.spawn(collector::collect_appends(runs.clone()));
        }
        Ok(runs)
    }

    /// Starts a task of this server.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        (self.task_spawner)(task.boxed());
    }

    /// Checks that the store is open and the lease of this server is valid.
    pub(super) fn check_available(&self) -> Result<(), StoreError> {
        if self.closed.is_cancelled() || self.abort_waits.is_cancelled() {
            return Err(StoreError::Closed);
        }
        if self.server_lease.is_valid() { Ok(()) } else { Err(StoreError::LeaseLost) }
    }

    /// Waits until everything appended is settled, and lets the lease of the server end; each takes `deadline` at
    /// most.
    pub(super) async fn close(&self, deadline: Duration) {
        if timeout(deadline, self.local_runs.wait_idle()).await.is_err() {
            self.abort_waits.cancel();
        }
        self.closed.cancel();
        // A renewal that the database got after the end would put the row of the server back.
        let _ = timeout(deadline, self.renewals_ended.cancelled()).await;
        let _ = timeout(deadline, self.server_lease.end(&*self.database)).await;
    }

    /// Stops everything at once, as if the process was killed, and lets the lease of the server end.
    pub(super) async fn crash(&self) -> Result<(), StoreError> {
        self.closed.cancel();
        self.abort_waits.cancel();
        self.local_runs.fence_all();
        self.renewals_ended.cancelled().await;
        self.server_lease.end(&*self.database).await
    }

    /// Repeats a write until the database has answered. `what` is stored, in words. Each attempt gets `true` if an
    /// earlier one may have stored it. Returns `None` if waits are aborted, or the lease of this server may be lost.
    pub(super) async fn write_until_answered<T, F>(
        &self,
        what: impl Display,
        mut attempt: impl FnMut(bool) -> F,
    ) -> Option<T>
    where
        F: Future<Output = sqlx::Result<T>>,
    {
        let (mut pause, mut may_be_stored) = (MIN_PAUSE, false);
        loop {
            // The database may be silent: the lease is over then, or another connection works.
            match timeout(self.server_lease.valid_time(), attempt(may_be_stored)).await {
                Ok(Ok(value)) => return Some(value),
                Ok(Err(error)) => tracing::error!(%error, "{what} could not be stored; trying again"),
                Err(_) => tracing::error!("the database did not answer to {what}; trying again"),
            }
            may_be_stored = true;
            tokio::select! {
                biased;
                () = self.abort_waits.cancelled() => return None,
                () = tokio::time::sleep(pause) => {}
            }
            if !self.server_lease.is_valid() {
                return None;
            }
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }
}
