//! Rows of dialogue inputs that a client may repeat, and their responses (table `repeats`).

use super::PostgresStore;
use super::connection::DatabaseConnection;
use crate::{InputClaim, InputResponse, InputResponses, StoreError};
use async_trait::async_trait;

/// Stores within a transaction that an input was accepted or, with the body of a response, that it was
/// answered with status 200. Stores nothing if the dialogue does not exist. Deletes the owner's inputs from
/// before `claim.since`.
pub(super) async fn store_input(
    connection: &mut DatabaseConnection,
    claim: &InputClaim,
    dialogue: &str,
    response: Option<&str>,
) -> sqlx::Result<()> {
    let query = sqlx::query("delete from repeats where owner = $1 and created < $2");
    query.bind(&claim.owner).bind(&claim.since).execute(&mut *connection).await?;
    let query = sqlx::query(
        "insert into repeats (owner, repeat, created, request, status, answer, turn) \
         select $1, $2, $3, $4, $5, $6, $7 where exists (select 1 from dialogues where id = $8) \
         on conflict (owner, repeat) do update set created = excluded.created, request = excluded.request, \
         status = excluded.status, answer = excluded.answer, turn = excluded.turn",
    );
    let status = if response.is_some() { 200 } else { InputResponse::NO_RESPONSE };
    let query = query.bind(&claim.owner).bind(&claim.repeat).bind(&claim.created).bind(&claim.request);
    let query = query.bind(i64::from(status)).bind(response.unwrap_or_default()).bind(&claim.turn);
    query.bind(dialogue).execute(connection).await.map(|_| ())
}

#[async_trait]
impl InputResponses for PostgresStore {
    async fn input_response(
        &self,
        owner: &str,
        idempotency_key: &str,
        since: &str,
    ) -> Result<Option<InputResponse>, StoreError> {
        let query = sqlx::query_as(
            "select request, status, answer, turn from repeats \
             where owner = $1 and repeat = $2 and created >= $3",
        );
        let found: Option<(String, i64, String, Option<String>)> =
            query.bind(owner).bind(idempotency_key).bind(since).fetch_optional(self.pool()).await?;
        Ok(found.map(|(request, status, body, turn)| InputResponse {
            request,
            status: u16::try_from(status).unwrap_or(InputResponse::NO_RESPONSE),
            body,
            turn,
        }))
    }
}
