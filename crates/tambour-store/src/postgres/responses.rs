//! Rows of responses for repeated requests: table `kept`, whose column `word` is the idempotency key, table
//! `kept_names` with the ids that a response names, and table `request_claims` with requests in progress.

use std::collections::HashSet;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::PgConnection;

use super::{PostgresStore, lock};
use crate::{RequestClaim, RequestKey, Responses, StoreError, StoredResponse, fail, ids};

/// Shortest and longest pause between two attempts to release a claim.
const MIN_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(16);
/// Number of further releases of a claim that the database may get later than its release: over half a minute.
const DOUBTFUL_REPEATS: u32 = 7;

/// Claim of a request, which is released when the guard is dropped.
pub(super) struct ClaimGuard {
    store: PostgresStore,
    /// Key of the request and random id of the claim's holder; `None` once the claim is kept.
    claim: Option<(RequestKey, String)>,
    /// Set until the database has answered.
    is_doubtful: bool,
}

impl ClaimGuard {
    /// Returns the id of the holder; `None` once the claim is kept.
    pub(super) fn holder(&self) -> Option<&str> {
        self.claim.as_ref().map(|(_, holder)| holder.as_str())
    }

    /// Keeps the claim beyond this guard. Returns the id of its holder.
    fn keep(mut self) -> Option<String> {
        self.claim.take().map(|(_, holder)| holder)
    }

    /// Releases the claim once the database can no longer store what was sent for its request.
    pub(super) fn release_later(self) {
        // The database ends a transaction that stands still for as long as a lease.
        let pause = self.store.runs().server_lease.valid_time() * 2;
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            drop(self);
        });
    }
}

impl Drop for ClaimGuard {
    fn drop(&mut self) {
        if let Some((request_key, holder)) = self.claim.take() {
            self.store.spawn_release(request_key, holder, self.is_doubtful);
        }
    }
}

impl PostgresStore {
    /// Claims a request until the guard is dropped, for ten minutes at most. `None` if another
    /// caller has claimed it.
    pub(super) async fn claim_guarded(
        &self,
        request_key: RequestKey,
    ) -> Result<Option<ClaimGuard>, StoreError> {
        let holder = ids::new_id("claim");
        // The guard exists before the claim does: the claim is released if the caller goes away meanwhile.
        let claim = Some((request_key.clone(), holder.clone()));
        let mut guard = ClaimGuard { store: self.clone(), claim, is_doubtful: true };
        let query = sqlx::query(
            "insert into request_claims (owner, route, word, holder, server, lease_until) \
             values ($1, $2, $3, $4, $5, now() + interval '10 minutes') \
             on conflict (owner, route, word) do update set holder = excluded.holder, \
             server = excluded.server, lease_until = excluded.lease_until \
             where request_claims.lease_until < now() or request_claims.holder = any($6) or not exists \
             (select 1 from servers where servers.id = request_claims.server and lease_until > now())",
        );
        let released: Vec<String> = self.lock_released().iter().cloned().collect();
        let query = query.bind(&request_key.owner).bind(&request_key.route);
        let query = query.bind(&request_key.idempotency_key).bind(&holder).bind(&self.identity.server);
        let result = query.bind(released).execute(self.pool()).await?;
        guard.is_doubtful = false;
        if result.rows_affected() > 0 {
            return Ok(Some(guard));
        }
        guard.keep();
        Ok(None)
    }

    /// Releases a claim in the background.
    /// `is_doubtful`: the database may not have got the claim yet.
    fn spawn_release(&self, request_key: RequestKey, holder: String, is_doubtful: bool) {
        // Without a runtime the process is about to end, and the claim with its lease.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let store = self.clone();
        self.lock_released().insert(holder.clone());
        runtime.spawn(async move {
            let (mut pause, mut repeats_left) = (MIN_PAUSE, if is_doubtful { DOUBTFUL_REPEATS } else { 0 });
            loop {
                let query = sqlx::query(
                    "delete from request_claims where owner = $1 and route = $2 and word = $3 and holder = $4",
                );
                let query = query.bind(&request_key.owner).bind(&request_key.route);
                let query = query.bind(&request_key.idempotency_key).bind(&holder);
                match query.execute(store.pool()).await {
                    Ok(result) if repeats_left == 0 || result.rows_affected() > 0 => break,
                    Ok(_) => repeats_left -= 1,
                    Err(error) => {
                        tracing::warn!(%error, "the claim of a request is not released; trying again");
                    }
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

    /// Locks the holders of claims that are being released: this server may claim those requests already.
    fn lock_released(&self) -> MutexGuard<'_, HashSet<String>> {
        self.shared.released_holders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Responses for PostgresStore {
    async fn claim_request(&self, request_key: &RequestKey, since: &str) -> Result<RequestClaim, StoreError> {
        // The claim comes before the query: a response that another caller stores in between is found.
        let Some(claim_guard) = self.claim_guarded(request_key.clone()).await? else {
            return Ok(RequestClaim::InProgress);
        };
        let query = sqlx::query_as(
            "select digest, status, location, body from kept \
             where owner = $1 and route = $2 and word = $3 and created > $4",
        );
        let query = query.bind(&request_key.owner).bind(&request_key.route);
        let query = query.bind(&request_key.idempotency_key).bind(since);
        if let Some(response) = query.fetch_optional(self.pool()).await? {
            return Ok(RequestClaim::Responded(response));
        }
        if let Some(holder) = claim_guard.keep() {
            let mut holders = self.shared.request_holders.lock().unwrap_or_else(PoisonError::into_inner);
            holders.insert(request_key.clone(), holder);
        }
        Ok(RequestClaim::Claimed)
    }

    async fn store_response(
        &self,
        request_key: &RequestKey,
        response: &StoredResponse,
        now: &str,
    ) -> Result<(), StoreError> {
        fail::point("kept.before");
        let mut transaction = self.pool().begin().await?;
        lock(&mut transaction, &format!("kept:{}", request_key.owner)).await?;
        insert_response(&mut transaction, request_key, response, now).await?;
        transaction.commit().await?;
        fail::point("kept.after");
        Ok(())
    }

    fn release_request(&self, request_key: &RequestKey) {
        let mut holders = self.shared.request_holders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(holder) = holders.remove(request_key) {
            let is_doubtful = false;
            self.spawn_release(request_key.clone(), holder, is_doubtful);
        }
    }

    async fn delete_responses(&self, before: &str) -> Result<bool, StoreError> {
        let query = sqlx::query_scalar("select number from kept where created <= $1").bind(before);
        let old_numbers: Vec<i64> = query.fetch_all(self.pool()).await?;
        if old_numbers.is_empty() {
            return Ok(false);
        }
        let mut transaction = self.pool().begin().await?;
        delete_rows(&mut transaction, &old_numbers).await?;
        transaction.commit().await?;
        Ok(true)
    }
}

/// Inserts the response to a request, in place of an earlier response to it.
async fn insert_response(
    connection: &mut PgConnection,
    request_key: &RequestKey,
    response: &StoredResponse,
    now: &str,
) -> sqlx::Result<()> {
    let query = sqlx::query_scalar("select number from kept where owner = $1 and route = $2 and word = $3");
    let query = query.bind(&request_key.owner).bind(&request_key.route).bind(&request_key.idempotency_key);
    let old_numbers: Vec<i64> = query.fetch_all(&mut *connection).await?;
    delete_rows(connection, &old_numbers).await?;
    let query = sqlx::query_scalar(
        "insert into kept (owner, route, word, digest, status, location, body, created) \
         values ($1, $2, $3, $4, $5, $6, $7, $8) returning number",
    );
    let query = query.bind(&request_key.owner).bind(&request_key.route).bind(&request_key.idempotency_key);
    let query = query.bind(&response.digest).bind(i64::from(response.status)).bind(&response.location);
    let number: i64 = query.bind(&response.body).bind(now).fetch_one(&mut *connection).await?;
    fail::point("kept.amid");
    for id in &response.named_ids {
        let query = sqlx::query("insert into kept_names (name, kept) values ($1, $2) on conflict do nothing");
        query.bind(id).bind(number).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Deletes responses with these row numbers, and the ids that they name.
async fn delete_rows(connection: &mut PgConnection, numbers: &[i64]) -> sqlx::Result<()> {
    for statement in
        ["delete from kept where number = any($1)", "delete from kept_names where kept = any($1)"]
    {
        sqlx::query(statement).bind(numbers).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Deletes the responses that name one of the deleted ids.
pub(super) async fn delete_responses_mentioning(
    connection: &mut PgConnection,
    ids: &[String],
) -> sqlx::Result<()> {
    let query = sqlx::query_scalar("select kept from kept_names where name = any($1)").bind(ids);
    let numbers: Vec<i64> = query.fetch_all(&mut *connection).await?;
    delete_rows(connection, &numbers).await
}
