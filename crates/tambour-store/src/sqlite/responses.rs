//! Rows of responses for repeated requests: table `kept`, whose column `word` is the idempotency key, and
//! table `kept_names` with the ids that a response names.

use async_trait::async_trait;
use sqlx::{QueryBuilder, Sqlite, SqliteConnection};

use super::SqliteStore;
use super::transaction::OpenTransaction;
use crate::fail;
use crate::{RequestClaim, RequestKey, Responses, StoreError, StoredResponse};

#[async_trait]
impl Responses for SqliteStore {
    async fn claim_request(&self, request_key: &RequestKey, since: &str) -> Result<RequestClaim, StoreError> {
        // The claim comes before the query: a response that another caller stores in between is found.
        let Some(claim_guard) = self.shared.run_queue.claim_guarded(request_key.clone()) else {
            return Ok(RequestClaim::InProgress);
        };
        let query = sqlx::query_as(
            "select digest, status, location, body from kept \
             where owner = ? and route = ? and word = ? and created > ?",
        );
        let query = query
            .bind(&request_key.owner)
            .bind(&request_key.route)
            .bind(&request_key.idempotency_key)
            .bind(since);
        Ok(match query.fetch_optional(self.pool()).await? {
            Some(response) => RequestClaim::Responded(response),
            None => {
                claim_guard.keep();
                RequestClaim::Claimed
            }
        })
    }

    async fn store_response(
        &self,
        request_key: &RequestKey,
        response: &StoredResponse,
        now: &str,
    ) -> Result<(), StoreError> {
        fail::point("kept.before");
        let mut transaction = OpenTransaction::begin(self.pool()).await?;
        let write_result = insert_response(&mut transaction, request_key, response, now).await;
        transaction.end(write_result).await?;
        fail::point("kept.after");
        Ok(())
    }

    fn release_request(&self, request_key: &RequestKey) {
        self.shared.run_queue.release(request_key);
    }

    async fn delete_responses(&self, before: &str) -> Result<bool, StoreError> {
        let query = sqlx::query_scalar("select number from kept where created <= ?").bind(before);
        let old_numbers: Vec<i64> = query.fetch_all(self.pool()).await?;
        if old_numbers.is_empty() {
            return Ok(false);
        }
        let mut transaction = OpenTransaction::begin(self.pool()).await?;
        let deletion = delete_rows(&mut transaction, &old_numbers).await;
        transaction.end(deletion).await?;
        Ok(true)
    }
}

/// Inserts the response to a request, in place of an earlier response to it.
async fn insert_response(
    connection: &mut SqliteConnection,
    request_key: &RequestKey,
    response: &StoredResponse,
    now: &str,
) -> sqlx::Result<()> {
    let query = sqlx::query_scalar("select number from kept where owner = ? and route = ? and word = ?");
    let query = query.bind(&request_key.owner).bind(&request_key.route).bind(&request_key.idempotency_key);
    let old_numbers: Vec<i64> = query.fetch_all(&mut *connection).await?;
    delete_rows(connection, &old_numbers).await?;
    let query = sqlx::query(
        "insert into kept (owner, route, word, digest, status, location, body, created) \
         values (?, ?, ?, ?, ?, ?, ?, ?)",
    );
    let query = query
        .bind(&request_key.owner)
        .bind(&request_key.route)
        .bind(&request_key.idempotency_key)
        .bind(&response.digest);
    let query = query.bind(response.status).bind(&response.location).bind(&response.body).bind(now);
    let number = query.execute(&mut *connection).await?.last_insert_rowid();
    fail::point("kept.amid");
    for id in &response.named_ids {
        let query = sqlx::query("insert or ignore into kept_names (name, kept) values (?, ?)");
        query.bind(id).bind(number).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Deletes responses with these row numbers, and the ids that they name.
async fn delete_rows(connection: &mut SqliteConnection, numbers: &[i64]) -> sqlx::Result<()> {
    for number in numbers {
        let query = sqlx::query("delete from kept where number = ?; delete from kept_names where kept = ?");
        query.bind(number).bind(number).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Deletes the responses that name one of the deleted ids.
pub(super) async fn delete_responses_mentioning(
    connection: &mut SqliteConnection,
    ids: &[String],
) -> sqlx::Result<()> {
    let mut query = QueryBuilder::<Sqlite>::new("select kept from kept_names where name in (");
    let mut list = query.separated(", ");
    ids.iter().for_each(|id| {
        list.push_bind(id);
    });
    let numbers: Vec<i64> = query.push(")").build_query_scalar().fetch_all(&mut *connection).await?;
    delete_rows(connection, &numbers).await
}
