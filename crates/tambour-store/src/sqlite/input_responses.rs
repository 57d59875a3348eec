//! Rows of dialogue inputs that a client may repeat, and their responses (table `repeats`).

use async_trait::async_trait;
use sqlx::SqliteConnection;

use super::SqliteStore;
use crate::{InputClaim, InputResponse, InputResponses, StoreError};

impl InputClaim {
    /// Stores within a transaction that the input was accepted or, with the body of a response, that it was
    /// answered with status 200. Stores nothing if the dialogue does not exist. Deletes the inputs of all
    /// owners from before `since`.
    pub(super) async fn store(
        &self,
        connection: &mut SqliteConnection,
        dialogue: &str,
        response: Option<&str>,
    ) -> sqlx::Result<()> {
        let query = sqlx::query("delete from repeats where created < ?").bind(&self.since);
        query.execute(&mut *connection).await?;
        let query = sqlx::query(
            "insert or replace into repeats (owner, repeat, created, request, status, answer, turn) \
             select ?1, ?2, ?3, ?4, ?5, ?6, ?7 where exists (select 1 from dialogues where id = ?8)",
        );
        let status = if response.is_some() { 200 } else { InputResponse::NO_RESPONSE };
        let query = query.bind(&self.owner).bind(&self.repeat).bind(&self.created).bind(&self.request);
        let query = query.bind(status).bind(response.unwrap_or_default()).bind(&self.turn);
        query.bind(dialogue).execute(connection).await?;
        Ok(())
    }
}

#[async_trait]
impl InputResponses for SqliteStore {
    async fn input_response(
        &self,
        owner: &str,
        idempotency_key: &str,
        since: &str,
    ) -> Result<Option<InputResponse>, StoreError> {
        self.wait_caught_up().await?;
        let query = sqlx::query_as(
            "select request, status, answer, turn from repeats where owner = ? and repeat = ? and created >= ?",
        );
        let found: Option<(String, u16, String, Option<String>)> =
            query.bind(owner).bind(idempotency_key).bind(since).fetch_optional(self.pool()).await?;
        Ok(found.map(|(request, status, body, turn)| InputResponse { request, status, body, turn }))
    }
}
