//! Runs: begun, claimed and fenced.

use std::sync::Arc;

use futures_util::FutureExt;
use sqlx::SqliteConnection;

use super::SqliteStore;
use super::commit::{begin, end, insert_message};
use super::journal::Record;
use super::lease::SqliteLease;
use super::states::take_back_from;
use super::tail::Tail;
use super::writer::Work;
use crate::fail;
use crate::store::{
    Acquired, Conversations, Lease, MessageRow, Messages, NewRun, Own, RunKind, Sent, Store, StoreError,
    Written,
};

impl SqliteStore {
    /// Begins a message atomically.
    pub(super) async fn begin_run(&self, new: NewRun) -> Result<Acquired, StoreError> {
        self.available()?;
        // A deletion of the conversation waits for those that have looked it up.
        let _acquiring = self.shared.acquiring.read().await;
        let row = &new.row;
        let word =
            row.repeat.clone().map(|word| Sent { owner: row.owner.clone(), route: String::new(), word });
        let held = word.clone().map(|sent| self.shared.places.hold(sent));
        if matches!(held, Some(None)) {
            return Ok(Acquired::UnderWay);
        }
        if let Some(Sent { word, .. }) = &word
            && let Some(before) = self.repeated(&row.owner, word, &new.since).await?
        {
            return Ok(Acquired::Repeated(Box::new(before)));
        }
        if !new.opens {
            let owner = match row.kind {
                RunKind::Message => self.conversation(&row.conversation_id).await?.map(|known| known.owner),
                RunKind::Turn => self.owner_of_dialogue(&row.conversation_id).await?,
            };
            if owner.is_none_or(|owner| owner != row.owner) {
                return Ok(Acquired::NoConversation);
            }
        }
        match &new.instead {
            Some(old) => self.begin_instead(&new, old).await,
            None => self.begin_behind(&new),
        }
    }

    /// Completes the row of a message that begins on this server.
    fn own_row(&self, row: &MessageRow, number: i64) -> Arc<MessageRow> {
        let Own { server, epoch } = self.own();
        let (server, epoch) = (Some(server.clone()), Some(*epoch));
        Arc::new(MessageRow { number: Some(number), server, epoch, ..row.clone() })
    }

    fn lease(&self, row: Arc<MessageRow>, tail: Arc<Tail>) -> Box<dyn Lease> {
        Box::new(SqliteLease::new(self.clone(), row, tail, self.own.epoch, 1))
    }

    /// Begins a message after those of its conversation: it is on the journal, and no other run gets between
    /// its number and its place.
    fn begin_behind(&self, new: &NewRun) -> Result<Acquired, StoreError> {
        let conversation = &new.row.conversation_id;
        let mut order = self.shared.places.order();
        if order.is_closed(conversation) {
            return Ok(Acquired::NoConversation);
        }
        if new.alone && order.running(conversation).next().is_some() {
            return Ok(Acquired::Busy);
        }
        let row = self.own_row(&new.row, order.next());
        let tail = Tail::new(row.id.clone(), self.own.epoch);
        let synced = self.journal(&Record::Message(&row), |file| {
            order.add(conversation, &tail);
            self.shared.pending.put(row.clone());
            self.shared.pending.open(&tail);
            let told = self.writer.tell(Work::Message(row.clone()));
            told.map(|()| self.shared.journal.syncer.as_ref().map(|syncer| syncer.wait(file)))
        });
        drop(order);
        let lease = self.lease(row, tail);
        // From here on dropping the lease cleans up.
        let kept = match synced?? {
            Some(synced) => async { synced.await.map_or(Written::Unknown, |()| Written::Stored) }.boxed(),
            None => std::future::ready(Written::Stored).boxed(),
        };
        Ok(Acquired::Begun { lease, kept })
    }

    /// Begins a message that replaces another: that one and all later ones are superseded in the same
    /// transaction.
    async fn begin_instead(&self, new: &NewRun, old: &str) -> Result<Acquired, StoreError> {
        let conversation = &new.row.conversation_id;
        let (row, tail) = {
            let mut order = self.shared.places.order();
            if order.is_closed(conversation) {
                return Ok(Acquired::NoConversation);
            }
            if order.running(conversation).next().is_some() {
                return Ok(Acquired::Busy);
            }
            let row = self.own_row(&new.row, order.next());
            let tail = Tail::new(row.id.clone(), self.own.epoch);
            // Runs that begin from now on queue behind it.
            order.add(conversation, &tail);
            (row, tail)
        };
        let lease = self.lease(row.clone(), tail.clone());
        // The outcomes of earlier messages are in the database after this.
        self.caught_up().await?;
        let mut connection = self.pool().acquire().await?;
        begin(&mut connection).await?;
        let (outcome, written) = match instead(&mut connection, &row, old).await {
            Ok(refused) => (refused, if refused.is_some() { Err(None) } else { Ok(()) }),
            Err(error) => (None, Err(Some(error))),
        };
        match written {
            Ok(()) => end(&mut connection, Ok(())).await?,
            Err(error) => {
                // Nothing of it is kept.
                let rolled_back = sqlx::query("rollback").execute(&mut *connection).await.map(|_| ());
                if let Some(error) = error {
                    return Err(error.into());
                }
                rolled_back?;
            }
        }
        drop(connection);
        fail::point("state.after");
        Ok(match outcome {
            None => {
                self.shared.pending.open(&tail);
                Acquired::Begun { lease, kept: std::future::ready(Written::Stored).boxed() }
            }
            Some(Refused::NoMessage) => Acquired::NoMessage,
            Some(Refused::StateGone) => Acquired::StateGone,
        })
    }

    /// Claims a run that has not ended.
    pub(super) async fn claim_run(&self, message: &str) -> Result<Option<Box<dyn Lease>>, StoreError> {
        let Some(row) = self.message(message).await?.filter(|row| row.status == "running") else {
            return Ok(None);
        };
        let row = Arc::new(row);
        if let Some(tail) = self.shared.pending.tail(message) {
            let Some(epoch) = self.shared.journal.locked(|| tail.claim()) else { return Ok(None) };
            let next = tail.last().max(self.last_stored(message).await?) + 1;
            return Ok(Some(Box::new(SqliteLease::new(self.clone(), row, tail, epoch, next))));
        }
        let next = self.last_stored(message).await? + 1;
        let tail = Tail::new(message.to_owned(), self.own.epoch);
        self.shared.pending.open(&tail);
        Ok(Some(Box::new(SqliteLease::new(self.clone(), row, tail, self.own.epoch, next))))
    }

    /// Returns the number of the last entry in the database.
    async fn last_stored(&self, message: &str) -> Result<u64, StoreError> {
        let query = sqlx::query_scalar("select max(last) from entries where message_id = ?").bind(message);
        let last: Option<i64> = query.fetch_one(self.pool()).await?;
        Ok(last.unwrap_or_default().cast_unsigned())
    }

    /// Fences the leases of these messages.
    pub(super) fn fence(&self, messages: &[String]) {
        for message in messages {
            if let Some(tail) = self.shared.pending.tail(message) {
                self.shared.journal.locked(|| tail.fence());
            }
        }
    }
}

/// Reason why a message cannot be replaced.
#[derive(Clone, Copy)]
enum Refused {
    NoMessage,
    StateGone,
}

async fn instead(
    connection: &mut SqliteConnection,
    row: &MessageRow,
    old: &str,
) -> sqlx::Result<Option<Refused>> {
    let query = sqlx::query_scalar("select number from messages where id = ? and conversation_id = ?");
    let number: Option<i64> =
        query.bind(old).bind(&row.conversation_id).fetch_optional(&mut *connection).await?;
    let Some(number) = number else { return Ok(Some(Refused::NoMessage)) };
    if !take_back_from(connection, &row.conversation_id, number).await? {
        return Ok(Some(Refused::StateGone));
    }
    let query = sqlx::query(
        "update messages set status = 'superseded' where conversation_id = ? and number >= ? and status <> 'running'",
    );
    query.bind(&row.conversation_id).bind(number).execute(&mut *connection).await?;
    fail::point("instead.amid");
    insert_message(connection, row).await?;
    Ok(None)
}
