//! Insertion of a message and its run: checks of the conversation, and the message that it replaces.

use super::connection::DatabaseConnection;
use super::database::InsertOutcome;
use super::states::undo_from;
use crate::fail;
use crate::rows::kind_name;
use crate::{BeginOutcome, MessageRow, NewRun, RunKind};

/// Epoch of the first lease of a run.
pub(super) const FIRST_EPOCH: i64 = 1;

/// Inserts a message and its run within a transaction, which is rolled back after a refusal.
pub(super) async fn insert_message(
    connection: &mut DatabaseConnection,
    new: &NewRun,
    server: &str,
) -> sqlx::Result<InsertOutcome> {
    let NewRun { row, opens_conversation, is_exclusive, replaces, .. } = new;
    let refuse = |refusal| Ok(InsertOutcome::Refused(refusal));
    if *opens_conversation {
        let query = sqlx::query(
            "insert into conversations (id, owner, created) values ($1, $2, $3) on conflict do nothing",
        );
        let query = query.bind(&row.conversation_id).bind(&row.owner).bind(&row.created);
        query.execute(&mut *connection).await?;
    }
    // Locked to the end of the transaction: numbers rise in the order of commits, and a deletion waits.
    let statement = match row.kind {
        RunKind::Message => "select owner from conversations where id = $1 for update",
        RunKind::Turn => "select owner from dialogues where id = $1 for update",
    };
    let query = sqlx::query_scalar(statement).bind(&row.conversation_id);
    let owner: Option<String> = query.fetch_optional(&mut *connection).await?;
    if owner.is_none_or(|owner| owner != row.owner) || is_closed(connection, &row.conversation_id).await? {
        return refuse(BeginOutcome::NoConversation);
    }
    if (*is_exclusive || replaces.is_some()) && has_runs(connection, &row.conversation_id).await? {
        return refuse(BeginOutcome::Busy);
    }
    if let Some(replaced) = replaces
        && let Some(refusal) = supersede(connection, row, replaced).await?
    {
        return refuse(refusal);
    }
    let query = sqlx::query_scalar(
        "insert into messages (id, conversation_id, request_id, owner, created, status, request, kind, repeat, \
         server, epoch) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) returning number",
    );
    let query = query.bind(&row.id).bind(&row.conversation_id).bind(&row.request_id).bind(&row.owner);
    let query = query.bind(&row.created).bind(&row.status).bind(&row.request).bind(kind_name(row.kind));
    let query = query.bind(&row.repeat).bind(server).bind(FIRST_EPOCH);
    let number: i64 = query.fetch_one(&mut *connection).await?;
    let query = sqlx::query(
        "insert into runs (id, number, conversation_id, server, epoch, next, day) \
         values ($1, $2, $3, $4, $5, 1, cast(substr($6, 1, 10) as date))",
    );
    let query = query.bind(&row.id).bind(number).bind(&row.conversation_id).bind(server);
    query.bind(FIRST_EPOCH).bind(&row.created).execute(&mut *connection).await?;
    Ok(InsertOutcome::Inserted(number))
}

/// Returns `true` if a holder has the claim of a message's idempotency key, and keeps it to the end of the
/// transaction: another server takes the claim of one that stood still for longer than its lease.
pub(super) async fn holds_claim(
    connection: &mut DatabaseConnection,
    row: &MessageRow,
    holder: &str,
) -> sqlx::Result<bool> {
    let query = sqlx::query(
        "select 1 from request_claims where owner = $1 and route = '' and word = $2 and holder = $3 for share",
    );
    let query = query.bind(&row.owner).bind(&row.repeat).bind(holder);
    Ok(query.fetch_optional(connection).await?.is_some())
}

/// Returns `true` if no run may begin in the conversation or dialogue.
async fn is_closed(connection: &mut DatabaseConnection, conversation: &str) -> sqlx::Result<bool> {
    let query = sqlx::query_scalar(
        "select exists (select 1 from closed where conversation_id = $1 and lease_until > now())",
    );
    query.bind(conversation).fetch_one(connection).await
}

/// Returns `true` if a run of the conversation or dialogue has not ended. Runs whose lease was given up do not
/// count.
pub(super) async fn has_runs(connection: &mut DatabaseConnection, conversation: &str) -> sqlx::Result<bool> {
    let query = sqlx::query_scalar(
        "select exists (select 1 from runs where conversation_id = $1 and server is not null)",
    );
    query.bind(conversation).fetch_one(connection).await
}

/// Supersedes the message `replaced` and all later ones of its conversation, and undoes their state updates.
/// Returns the reason if that is impossible.
async fn supersede(
    connection: &mut DatabaseConnection,
    row: &MessageRow,
    replaced: &str,
) -> sqlx::Result<Option<BeginOutcome>> {
    let query = sqlx::query_scalar("select number from messages where id = $1 and conversation_id = $2");
    let query = query.bind(replaced).bind(&row.conversation_id);
    let number: Option<i64> = query.fetch_optional(&mut *connection).await?;
    let Some(number) = number else { return Ok(Some(BeginOutcome::NoMessage)) };
    if !undo_from(connection, &row.conversation_id, number).await? {
        return Ok(Some(BeginOutcome::StateGone));
    }
    let query = sqlx::query(
        "update messages set status = 'superseded' \
         where conversation_id = $1 and number >= $2 and status <> 'running'",
    );
    query.bind(&row.conversation_id).bind(number).execute(&mut *connection).await?;
    fail::point("instead.amid");
    Ok(None)
}
