//! Begins, claims and fences runs.

use std::sync::Arc;

use futures_util::FutureExt;
use sqlx::SqliteConnection;

use super::SqliteStore;
use super::commit::insert_message;
use super::journal::JournalRecord;
use super::lease::SqliteLease;
use super::states::undo_from;
use super::transaction::OpenTransaction;
use super::writer::WriterTask;
use crate::fail;
use crate::tail::LogTail;
use crate::{
    BeginOutcome, Conversations, Lease, MessageRow, Messages, NewRun, RequestKey, RunKind, ServerIdentity,
    Store, StoreError, WriteOutcome,
};

impl SqliteStore {
    /// Begins a message or turn atomically.
    pub(super) async fn begin_run(&self, new: NewRun) -> Result<BeginOutcome, StoreError> {
        self.check_available()?;
        // A deletion of the conversation waits for callers that have looked it up.
        let _begin_guard = self.shared.begin_lock.read().await;
        let row = &new.row;
        // The empty route distinguishes these keys from the keys of other HTTP requests.
        let request_key = row.repeat.clone().map(|idempotency_key| RequestKey {
            owner: row.owner.clone(),
            route: String::new(),
            idempotency_key,
        });
        // `Some(None)`: another caller has claimed the key.
        let claim_guard = request_key.clone().map(|key| self.shared.run_queue.claim_guarded(key));
        if matches!(claim_guard, Some(None)) {
            return Ok(BeginOutcome::InProgress);
        }
        if let Some(RequestKey { idempotency_key, .. }) = &request_key
            && let Some(earlier) = self.message_by_key(&row.owner, idempotency_key, &new.repeat_since).await?
        {
            return Ok(BeginOutcome::Repeated(Box::new(earlier)));
        }
        if !new.opens_conversation {
            let owner = match row.kind {
                RunKind::Message => {
                    self.conversation(&row.conversation_id).await?.map(|conversation| conversation.owner)
                }
                RunKind::Turn => self.dialogue_owner(&row.conversation_id).await?,
            };
            if owner.is_none_or(|owner| owner != row.owner) {
                return Ok(BeginOutcome::NoConversation);
            }
        }
        match &new.replaces {
            Some(replaced) => self.begin_replacing(&new, replaced).await,
            None => self.begin_queued(&new),
        }
    }

    /// Returns the row of a message that begins on this server: with its number and the server's identity.
    fn local_row(&self, row: &MessageRow, number: i64) -> Arc<MessageRow> {
        let ServerIdentity { server, epoch } = self.identity();
        let (server, epoch) = (Some(server.clone()), Some(*epoch));
        Arc::new(MessageRow { number: Some(number), server, epoch, ..row.clone() })
    }

    /// Creates the lease of a run that begins with an empty log.
    fn new_lease(&self, row: Arc<MessageRow>, tail: Arc<LogTail>) -> Box<dyn Lease> {
        let next_number = 1;
        Box::new(SqliteLease::new(self.clone(), row, tail, self.identity.epoch, next_number))
    }

    /// Begins a message after the others of its conversation: writes it to the journal, and gives it the next
    /// number and the last place in the queue under one lock.
    fn begin_queued(&self, new: &NewRun) -> Result<BeginOutcome, StoreError> {
        let conversation = &new.row.conversation_id;
        let mut order = self.shared.run_queue.lock_order();
        if order.is_closed(conversation) {
            return Ok(BeginOutcome::NoConversation);
        }
        if new.is_exclusive && order.unfinished_runs(conversation).next().is_some() {
            return Ok(BeginOutcome::Busy);
        }
        let row = self.local_row(&new.row, order.next_number());
        let tail = LogTail::new(row.id.clone(), self.identity.epoch);
        let sync_wait = self.append_journal(&JournalRecord::Message(&row), |segment| {
            order.add(conversation, &tail);
            self.shared.pending.insert(row.clone());
            self.shared.pending.add_log(&tail);
            let was_sent = self.writer.send(WriterTask::Message(row.clone()));
            was_sent.map(|()| self.shared.journal.syncer.as_ref().map(|syncer| syncer.queue_waiter(segment)))
        });
        drop(order);
        let lease = self.new_lease(row, tail);
        // From here on dropping the lease cleans up: it takes the run out of the queue.
        let durable = match sync_wait?? {
            Some(sync_wait) => {
                async { sync_wait.await.map_or(WriteOutcome::Unknown, |()| WriteOutcome::Stored) }.boxed()
            }
            None => std::future::ready(WriteOutcome::Stored).boxed(),
        };
        Ok(BeginOutcome::Started { lease, durable })
    }

    /// Begins a message that replaces another one: the message `replaced` and all later messages are
    /// superseded in the same transaction. The row of the new message goes straight to the database, without
    /// the journal.
    async fn begin_replacing(&self, new: &NewRun, replaced: &str) -> Result<BeginOutcome, StoreError> {
        let conversation = &new.row.conversation_id;
        let (row, tail) = {
            let mut order = self.shared.run_queue.lock_order();
            if order.is_closed(conversation) {
                return Ok(BeginOutcome::NoConversation);
            }
            if order.unfinished_runs(conversation).next().is_some() {
                return Ok(BeginOutcome::Busy);
            }
            let row = self.local_row(&new.row, order.next_number());
            let tail = LogTail::new(row.id.clone(), self.identity.epoch);
            // Runs that begin from now on wait for this one.
            order.add(conversation, &tail);
            (row, tail)
        };
        let lease = self.new_lease(row.clone(), tail.clone());
        // After this the outcomes of earlier messages are in the database.
        self.wait_caught_up().await?;
        let mut transaction = OpenTransaction::begin(self.pool()).await?;
        let replacement = replace_message(&mut transaction, &row, replaced).await;
        let refusal = match replacement {
            Ok(refusal) => refusal,
            Err(error) => {
                let _ = transaction.roll_back().await;
                return Err(error.into());
            }
        };
        match refusal {
            None => transaction.end(Ok(())).await?,
            Some(_) => transaction.roll_back().await?,
        }
        fail::point("state.after");
        Ok(match refusal {
            None => {
                self.shared.pending.add_log(&tail);
                BeginOutcome::Started { lease, durable: std::future::ready(WriteOutcome::Stored).boxed() }
            }
            Some(ReplaceRefusal::NoMessage) => BeginOutcome::NoMessage,
            Some(ReplaceRefusal::StateGone) => BeginOutcome::StateGone,
        })
    }

    /// Claims a run that has not ended; `None` if it has, or does not exist.
    pub(super) async fn claim_run(&self, message: &str) -> Result<Option<Box<dyn Lease>>, StoreError> {
        let Some(row) = self.message(message).await?.filter(|row| row.status == "running") else {
            return Ok(None);
        };
        let row = Arc::new(row);
        if let Some(tail) = self.shared.pending.tail(message) {
            // The run began or was claimed after this server had started.
            let Some(epoch) = self.shared.journal.with_lock(|| tail.claim()) else { return Ok(None) };
            let next_number = tail.last_number().max(self.last_stored_number(message).await?) + 1;
            return Ok(Some(Box::new(SqliteLease::new(self.clone(), row, tail, epoch, next_number))));
        }
        let next_number = self.last_stored_number(message).await? + 1;
        let tail = LogTail::new(message.to_owned(), self.identity.epoch);
        self.shared.pending.add_log(&tail);
        Ok(Some(Box::new(SqliteLease::new(self.clone(), row, tail, self.identity.epoch, next_number))))
    }

    /// Returns the number of the last entry of a log that the database has, 0 if it has none.
    async fn last_stored_number(&self, message: &str) -> Result<u64, StoreError> {
        let query = sqlx::query_scalar("select max(last) from entries where message_id = ?").bind(message);
        let last: Option<i64> = query.fetch_one(self.pool()).await?;
        Ok(last.unwrap_or_default().cast_unsigned())
    }

    /// Fences the leases of these messages.
    pub(super) fn fence(&self, messages: &[String]) {
        for message in messages {
            if let Some(tail) = self.shared.pending.tail(message) {
                self.shared.journal.with_lock(|| tail.fence());
            }
        }
    }
}

/// Reason why a message cannot be replaced.
#[derive(Clone, Copy)]
enum ReplaceRefusal {
    /// The conversation has no message with that id.
    NoMessage,
    /// The state before the message is no longer known.
    StateGone,
}

/// Supersedes the message `replaced` and all later ones of its conversation, undoes their state updates and
/// inserts `row`. After a refusal the caller rolls the transaction back.
async fn replace_message(
    connection: &mut SqliteConnection,
    row: &MessageRow,
    replaced: &str,
) -> sqlx::Result<Option<ReplaceRefusal>> {
    let query = sqlx::query_scalar("select number from messages where id = ? and conversation_id = ?");
    let number: Option<i64> =
        query.bind(replaced).bind(&row.conversation_id).fetch_optional(&mut *connection).await?;
    let Some(number) = number else { return Ok(Some(ReplaceRefusal::NoMessage)) };
    if !undo_from(connection, &row.conversation_id, number).await? {
        return Ok(Some(ReplaceRefusal::StateGone));
    }
    let query = sqlx::query(
        "update messages set status = 'superseded' where conversation_id = ? and number >= ? and status <> 'running'",
    );
    query.bind(&row.conversation_id).bind(number).execute(&mut *connection).await?;
    fail::point("instead.amid");
    insert_message(connection, row).await?;
    Ok(None)
}
