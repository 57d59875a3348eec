//! Rows that one holder has at a time, known by its random id: claims of requests, and locks of conversations. A
//! guard gives its row up when it is dropped, even if the database gets what was sent for it later than that.

use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use super::PostgresStore;
use crate::{RequestKey, StoreError, ids};

/// Shortest and longest pause between two attempts to give a row up.
const MIN_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(16);
/// Number of further attempts if the database may get the row later than the first: over half a minute.
const DOUBTFUL_REPEATS: u32 = 7;

/// Key of a row that one holder has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HeldRow {
    /// Claim of a request, for ten minutes at most.
    Claim(RequestKey),
    /// Lock of the conversation or dialogue with this id.
    Lock(String),
}

/// Row that is given up when the guard is dropped.
pub(super) struct RowGuard {
    store: PostgresStore,
    row: HeldRow,
    /// Random id.
    holder: String,
    is_held: bool,
    /// Set while the database has not answered to an attempt to take the row.
    is_doubtful: bool,
}

impl RowGuard {
    pub(super) fn holder(&self) -> &str {
        &self.holder
    }

    /// Takes the row. Returns `false` while another holder has it whose server lives.
    pub(super) async fn take(&mut self) -> Result<bool, StoreError> {
        let (holder, server) = (&self.holder, &self.store.identity.server);
        let released = self.store.released_holders(&self.row);
        let was_doubtful = std::mem::replace(&mut self.is_doubtful, true);
        let query = match &self.row {
            HeldRow::Claim(key) => {
                let query = sqlx::query(
                    "insert into request_claims (holder, server, owner, route, word, lease_until) \
                     values ($1, $2, $4, $5, $6, now() + interval '10 minutes') \
                     on conflict (owner, route, word) do update set holder = excluded.holder, \
                     server = excluded.server, lease_until = excluded.lease_until \
                     where request_claims.lease_until < now() or request_claims.holder = any($3) or not exists \
                     (select 1 from servers where servers.id = request_claims.server and lease_until > now())",
                );
                let query = query.bind(holder).bind(server).bind(released);
                query.bind(&key.owner).bind(&key.route).bind(&key.idempotency_key)
            }
            HeldRow::Lock(conversation) => {
                let query = sqlx::query(
                    "insert into conversation_locks (holder, server, conversation_id) values ($1, $2, $4) \
                     on conflict (conversation_id) do update set holder = excluded.holder, \
                     server = excluded.server where conversation_locks.holder = excluded.holder \
                     or conversation_locks.holder = any($3) or not exists (select 1 from servers \
                     where servers.id = conversation_locks.server and lease_until > now())",
                );
                query.bind(holder).bind(server).bind(released).bind(conversation)
            }
        };
        let is_taken = query.execute(self.store.pool()).await?.rows_affected() > 0;
        self.is_doubtful = was_doubtful;
        self.is_held |= is_taken;
        Ok(is_taken)
    }

    /// Keeps the row beyond this guard. Returns the id of its holder.
    pub(super) fn keep(mut self) -> String {
        (self.is_held, self.is_doubtful) = (false, false);
        std::mem::take(&mut self.holder)
    }

    /// Gives the row up once the database can no longer store what was sent while it was held.
    pub(super) fn release_later(self) {
        // The database ends a transaction that stands still for as long as a lease.
        let pause = self.store.runs().server_lease.valid_time() * 2;
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            drop(self);
        });
    }
}

impl Drop for RowGuard {
    fn drop(&mut self) {
        if self.is_held || self.is_doubtful {
            let holder = std::mem::take(&mut self.holder);
            self.store.spawn_release(self.row.clone(), holder, self.is_doubtful);
        }
    }
}

impl PostgresStore {
    /// Returns the guard of a row that has not been taken yet.
    pub(super) fn row_guard(&self, row: HeldRow) -> RowGuard {
        // The guard exists before the row does: it is given up if the caller goes away meanwhile.
        let (is_held, is_doubtful) = (false, false);
        RowGuard { store: self.clone(), row, holder: ids::new_id("holder"), is_held, is_doubtful }
    }

    /// Gives a row up in the background.
    /// `is_doubtful`: the database may not have got the row yet.
    pub(super) fn spawn_release(&self, row: HeldRow, holder: String, is_doubtful: bool) {
        // Without a runtime the process is about to end, and the row with its lease.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let store = self.clone();
        self.lock_released().insert(holder.clone(), row.clone());
        runtime.spawn(async move {
            let (mut pause, mut repeats_left) = (MIN_PAUSE, if is_doubtful { DOUBTFUL_REPEATS } else { 0 });
            loop {
                match store.release(&row, &holder).await {
                    Ok(()) if repeats_left == 0 => break,
                    Ok(()) => repeats_left -= 1,
                    Err(error) => tracing::warn!(%error, "a claim or lock is not given up; trying again"),
                }
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    // It ends with the lease of this server.
                    () = store.runs().closed.cancelled() => break,
                }
                pause = (pause * 2).min(MAX_PAUSE);
            }
            store.lock_released().remove(&holder);
        });
    }

    /// Deletes a row, if `holder` has it.
    async fn release(&self, row: &HeldRow, holder: &str) -> sqlx::Result<()> {
        let query = match row {
            HeldRow::Claim(key) => {
                let query = sqlx::query(
                    "delete from request_claims where holder = $1 and owner = $2 and route = $3 and word = $4",
                );
                query.bind(holder).bind(&key.owner).bind(&key.route).bind(&key.idempotency_key)
            }
            HeldRow::Lock(conversation) => {
                let query =
                    sqlx::query("delete from conversation_locks where holder = $1 and conversation_id = $2");
                query.bind(holder).bind(conversation)
            }
        };
        query.execute(self.pool()).await.map(|_| ())
    }

    /// Returns the holders who are giving a row up: this server may take it already.
    fn released_holders(&self, row: &HeldRow) -> Vec<String> {
        let released = self.lock_released();
        released
            .iter()
            .filter(|(_, released_row)| *released_row == row)
            .map(|(holder, _)| holder.clone())
            .collect()
    }

    fn lock_released(&self) -> MutexGuard<'_, HashMap<String, HeldRow>> {
        self.shared.released_rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
