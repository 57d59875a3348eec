//! Rows of responses for repeated requests: table `kept`, whose column `word` is the idempotency key, table
//! `kept_names` with the ids that a response names, and table `request_claims` with requests in progress.

use std::sync::PoisonError;

use super::connection::DatabaseConnection;
use super::held_rows::HeldRow;
use super::{PostgresStore, lock};
use crate::{RequestClaim, RequestKey, Responses, StoreError, StoredResponse, fail};
use async_trait::async_trait;

#[async_trait]
impl Responses for PostgresStore {
    async fn claim_request(&self, request_key: &RequestKey, since: &str) -> Result<RequestClaim, StoreError> {
        // The claim comes before the query: a response that another caller stores in between is found.
        let mut claim_guard = self.row_guard(HeldRow::Claim(request_key.clone()));
        if !claim_guard.take().await? {
            return Ok(RequestClaim::InProgress);
        }
        let query = sqlx::query_as(
            "select digest, status, location, body from kept \
             where owner = $1 and route = $2 and word = $3 and created > $4",
        );
        let query = query.bind(&request_key.owner).bind(&request_key.route);
        let query = query.bind(&request_key.idempotency_key).bind(since);
        if let Some(response) = query.fetch_optional(self.pool()).await? {
            return Ok(RequestClaim::Responded(response));
        }
        let mut holders = self.shared.request_holders.lock().unwrap_or_else(PoisonError::into_inner);
        holders.insert(request_key.clone(), claim_guard.keep());
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
            self.spawn_release(HeldRow::Claim(request_key.clone()), holder, is_doubtful);
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
    connection: &mut DatabaseConnection,
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
async fn delete_rows(connection: &mut DatabaseConnection, numbers: &[i64]) -> sqlx::Result<()> {
    for statement in
        ["delete from kept where number = any($1)", "delete from kept_names where kept = any($1)"]
    {
        sqlx::query(statement).bind(numbers).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Deletes the responses that name one of the deleted ids.
pub(super) async fn delete_responses_mentioning(
    connection: &mut DatabaseConnection,
    ids: &[String],
) -> sqlx::Result<()> {
    let query = sqlx::query_scalar("select kept from kept_names where name = any($1)").bind(ids);
    let numbers: Vec<i64> = query.fetch_all(&mut *connection).await?;
    delete_rows(connection, &numbers).await
}
