//! A store in memory with the bare interface: evidence that the suite tests the interface, and depends on nothing of SQLite.

mod figures;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use serde_json::Value;
use tambour::state::AppliedBlock;
use tambour_server::store::{
    AcquireOutcome, Admin, Batch, CallRecord, ConversationRow, Conversations, Deletion, DialogueFilter,
    DialogueRow, Dialogues, Figures, InputClaim, InputResponse, InputResponses, KeyRow, Lease, Log, LogState,
    MessageRow, Messages, NewRun, PendingAppend, RequestClaim, RequestKey, Responses, Retention, RowPage,
    RunEnd, RunKind, StoreError, StoredResponse, TurnHistory, UsageRow, WriteOutcome,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{Backend, Runs};

/// A store in memory.
#[derive(Clone, Default)]
pub(super) struct Memory {
    data: Arc<Mutex<Data>>,
    changed: Arc<Notify>,
}

/// Durable data, and data that dies with the process.
#[derive(Clone, Default)]
struct Data {
    conversations: BTreeMap<String, ConversationRow>,
    lore: HashMap<String, String>,
    messages: BTreeMap<String, Message>,
    answers: HashMap<RequestKey, (StoredResponse, String)>,
    dialogues: BTreeMap<String, DialogueRow>,
    /// Records of calls, with their dialogues.
    rounds: Vec<(String, String)>,
    /// Records of turns, each with its dialogue.
    turns: Vec<(String, String)>,
    /// Responses to inputs by owner and request id, with their times and dialogues.
    repeats: HashMap<(String, String), (InputResponse, String, String)>,
    keys: Vec<KeyRow>,
    settings: BTreeMap<String, String>,
    usage: Vec<UsageRow>,
    figures: Vec<Figures>,
    last: i64,
    /// Start counter.
    epoch: i64,
    /// Requests in progress, and conversations being deleted, by this process.
    taken: HashSet<RequestKey>,
    closed: HashSet<String>,
}

#[derive(Clone)]
struct Message {
    row: Arc<MessageRow>,
    entries: Vec<Batch>,
    /// Epoch of the lease that may write.
    epoch: i64,
    /// True while that lease is held.
    held: bool,
}

impl Message {
    fn last(&self) -> u64 {
        self.entries.last().map_or(0, Batch::last)
    }

    fn runs(&self) -> bool {
        self.held && self.row.status == "running"
    }

    fn number(&self) -> i64 {
        self.row.number.unwrap_or_default()
    }
}

impl Data {
    /// Messages of a conversation, in order.
    fn of(&self, conversation: &str) -> Vec<&Message> {
        let mut of: Vec<&Message> =
            self.messages.values().filter(|message| message.row.conversation_id == conversation).collect();
        of.sort_unstable_by_key(|message| message.number());
        of
    }

    /// Stores records of calls of a dialogue.
    fn record(&mut self, dialogue: &str, records: &[CallRecord]) {
        for record in records {
            match record {
                CallRecord::New(record) => self.rounds.push((dialogue.to_owned(), record.clone())),
                CallRecord::Over(record) => {
                    let last = self.rounds.iter_mut().rev().find(|(of, _)| of == dialogue);
                    last.into_iter().for_each(|(_, last)| record.clone_into(last));
                }
                CallRecord::Turn(record) => self.turns.push((dialogue.to_owned(), record.clone())),
                CallRecord::TurnOver(record) => {
                    let last = self.turns.iter_mut().rev().find(|(of, _)| of == dialogue);
                    last.into_iter().for_each(|(_, last)| record.clone_into(last));
                }
                CallRecord::Figures(figures) => self.figures.extend_from_slice(figures),
            }
        }
    }

    /// Records that an input was accepted, or its response.
    fn note(&mut self, dialogue: &str, once: &InputClaim, answer: Option<&str>) {
        let repeat = InputResponse {
            request: once.request.clone(),
            status: if answer.is_some() { 200 } else { InputResponse::NO_RESPONSE },
            body: answer.unwrap_or_default().to_owned(),
            turn: Some(once.turn.clone()),
        };
        let word = (once.owner.clone(), once.repeat.clone());
        self.repeats.insert(word, (repeat, once.created.clone(), dialogue.to_owned()));
    }

    fn runs_before(&self, conversation: &str, number: i64) -> bool {
        self.of(conversation).iter().any(|message| message.runs() && message.number() < number)
    }
}

impl Memory {
    fn data(&self) -> MutexGuard<'_, Data> {
        self.data.lock().unwrap()
    }

    /// Waits until the data satisfies a condition.
    fn until(&self, so: impl Fn(&Data) -> bool + Send + 'static) -> BoxFuture<'static, ()> {
        let store = self.clone();
        async move {
            loop {
                let mut changed = std::pin::pin!(store.changed.notified());
                changed.as_mut().enable();
                if so(&store.data()) {
                    return;
                }
                changed.await;
            }
        }
        .boxed()
    }

    fn lease(&self, message: &Message) -> Box<dyn Lease> {
        let (row, epoch, next) = (message.row.clone(), message.epoch, message.last() + 1);
        Box::new(MemoryLease { store: self.clone(), row, epoch, next })
    }
}

struct MemoryLease {
    store: Memory,
    row: Arc<MessageRow>,
    epoch: i64,
    next: u64,
}

impl MemoryLease {
    /// Changes the message if the lease holds.
    fn change(
        &self,
        change: impl FnOnce(&mut Message) -> Option<(Option<UsageRow>, Vec<Figures>)>,
    ) -> WriteOutcome {
        let mut data = self.store.data();
        let Some(message) = data.messages.get_mut(&self.row.id) else { return WriteOutcome::Fenced };
        if message.epoch != self.epoch || message.row.status != "running" {
            return WriteOutcome::Fenced;
        }
        if let Some((usage, figures)) = change(message) {
            data.usage.extend(usage);
            data.figures.extend(figures);
        }
        drop(data);
        self.store.changed.notify_waiters();
        WriteOutcome::Stored
    }
}

#[async_trait]
impl Lease for MemoryLease {
    fn row(&self) -> &Arc<MessageRow> {
        &self.row
    }

    fn epoch(&self) -> i64 {
        self.epoch
    }

    fn next_number(&self) -> u64 {
        self.next
    }

    fn wait_turn(&self) -> BoxFuture<'static, ()> {
        let (conversation, number) = (self.row.conversation_id.clone(), self.row.number.unwrap());
        self.store.until(move |data| !data.runs_before(&conversation, number))
    }

    fn append(&mut self, batch: Batch) -> PendingAppend<'_> {
        let last = batch.last();
        let written = self.change(|message| {
            message.entries.push(batch);
            None
        });
        if written == WriteOutcome::Stored {
            self.next = last + 1;
        }
        PendingAppend::Done(written)
    }

    fn wait_settled(&self) -> BoxFuture<'_, WriteOutcome> {
        std::future::ready(WriteOutcome::Stored).boxed()
    }

    async fn read(&self, after: u64, bytes: usize) -> Result<Vec<Batch>, StoreError> {
        Ok(self.store.read(&self.row.id, after, bytes).await?.0)
    }

    async fn finish(&mut self, RunEnd { last, status, outcome }: RunEnd) -> WriteOutcome {
        let progress = outcome.progress.clone();
        let written = self.change(|message| {
            let added = (outcome.usage.clone(), outcome.figures.clone());
            if !last.is_empty() {
                message.entries.push(last);
            }
            message.row =
                Arc::new(MessageRow { status, outcome: Some(outcome), ..MessageRow::clone(&message.row) });
            Some(added)
        });
        let mut data = self.store.data();
        let id = &self.row.conversation_id;
        if let (WriteOutcome::Stored, Some(progress)) = (written, progress)
            && let Some(dialogue) = data.dialogues.get_mut(id)
        {
            let (status, state, changed) = (progress.status, progress.state, progress.changed);
            *dialogue = DialogueRow { status, state, changed, ..dialogue.clone() };
            data.record(id, &progress.records);
            if let Some((once, answer)) = &progress.once {
                data.note(id, once, Some(answer));
            }
        }
        written
    }
}

impl Drop for MemoryLease {
    fn drop(&mut self) {
        if let Some(message) = self.store.data().messages.get_mut(&self.row.id)
            && message.epoch == self.epoch
        {
            message.held = false;
        }
        self.store.changed.notify_waiters();
    }
}

#[async_trait]
impl Log for Memory {
    async fn acquire(&self, new: NewRun) -> Result<AcquireOutcome, StoreError> {
        let NewRun { row, opens_conversation, is_exclusive, repeat_since, replaces } = new;
        let mut data = self.data();
        let same = |message: &&Message| {
            let before = &message.row;
            row.repeat.is_some()
                && (&before.owner, &before.repeat) == (&row.owner, &row.repeat)
                && before.created > repeat_since
        };
        if let Some(before) = data.messages.values().find(same) {
            return Ok(AcquireOutcome::Repeated(Box::new(MessageRow::clone(&before.row))));
        }
        let conversation = row.conversation_id.clone();
        if opens_conversation {
            let ConversationRow { title, metadata, .. } = ConversationRow::default();
            let (id, owner, created) = (conversation.clone(), row.owner.clone(), row.created.clone());
            let made = ConversationRow { id, owner, created, title, metadata };
            data.conversations.entry(conversation.clone()).or_insert(made);
        }
        let owner = match row.kind {
            RunKind::Message => data.conversations.get(&conversation).map(|known| &known.owner),
            RunKind::Turn => data.dialogues.get(&conversation).map(|known| &known.owner),
        };
        let known = owner == Some(&row.owner);
        if !known || data.closed.contains(&conversation) {
            return Ok(AcquireOutcome::NoConversation);
        }
        let busy = data.runs_before(&conversation, i64::MAX);
        if busy && (is_exclusive || replaces.is_some()) {
            return Ok(AcquireOutcome::Busy);
        }
        if let Some(old) = &replaces {
            let Some(number) = data.messages.get(old).map(Message::number) else {
                return Ok(AcquireOutcome::NoMessage);
            };
            for message in data.messages.values_mut().filter(|message| message.number() >= number) {
                if message.row.conversation_id == conversation {
                    let mut row = MessageRow::clone(&message.row);
                    row.status = "superseded".to_owned();
                    row.outcome.iter_mut().for_each(|outcome| outcome.updates.clear());
                    message.row = Arc::new(row);
                }
            }
        }
        data.last += 1;
        let row = Arc::new(MessageRow { number: Some(data.last), epoch: Some(data.epoch), ..row });
        let message = Message { row: row.clone(), entries: Vec::new(), epoch: data.epoch, held: true };
        let lease = self.lease(&message);
        data.messages.insert(row.id.clone(), message);
        Ok(AcquireOutcome::Started { lease, durable: std::future::ready(WriteOutcome::Stored).boxed() })
    }

    async fn claim(&self, message: &str) -> Result<Option<Box<dyn Lease>>, StoreError> {
        let mut data = self.data();
        let epoch = data.epoch;
        let Some(message) = data.messages.get_mut(message).filter(|one| one.row.status == "running") else {
            return Ok(None);
        };
        (message.epoch, message.held) = (epoch.max(message.epoch + 1), true);
        Ok(Some(self.lease(message)))
    }

    async fn list_abandoned(&self) -> Result<Vec<MessageRow>, StoreError> {
        let data = self.data();
        let left = |message: &&Message| {
            message.row.status == "running" && !message.held && message.row.epoch < Some(data.epoch)
        };
        let mut rows: Vec<MessageRow> =
            data.messages.values().filter(left).map(|message| MessageRow::clone(&message.row)).collect();
        rows.sort_unstable_by_key(|row| row.number);
        Ok(rows)
    }

    fn wait_idle(&self, conversation: &str) -> BoxFuture<'static, ()> {
        let (conversation, next) = (conversation.to_owned(), self.data().last + 1);
        self.until(move |data| !data.runs_before(&conversation, next))
    }

    fn read<'a>(
        &'a self,
        message: &'a str,
        after: u64,
        bytes: usize,
    ) -> BoxFuture<'a, Result<(Vec<Batch>, LogState), StoreError>> {
        let data = self.data();
        let read = data.messages.get(message).map_or((Vec::new(), LogState::Gone), |message| {
            let mut room = bytes;
            let behind = message.entries.iter().filter(|batch| batch.last() > after);
            let batches = behind.take_while(|batch| {
                let some = room > 0;
                room = room.saturating_sub(batch.body().len());
                some
            });
            let state = if message.row.status == "running" { LogState::Open } else { LogState::Ended };
            (batches.cloned().collect(), state)
        });
        std::future::ready(Ok(read)).boxed()
    }

    fn follow(
        &self,
        message: &str,
        after: u64,
        bytes: usize,
    ) -> BoxStream<'static, Result<Batch, StoreError>> {
        let at = (self.clone(), message.to_owned(), after);
        stream::unfold(at, move |(store, id, after)| async move {
            let waited = id.clone();
            let more = move |data: &Data| {
                data.messages.get(&waited).is_none_or(|message| message.last() > after || !message.runs())
            };
            store.until(more).await;
            let (batches, _) = store.read(&id, after, bytes).await.unwrap();
            let batch = batches.into_iter().next()?.skip_through(after);
            let last = batch.last();
            Some((Ok(batch), (store, id, last)))
        })
        .boxed()
    }
}

#[async_trait]
impl Messages for Memory {
    async fn message(&self, id: &str) -> Result<Option<MessageRow>, StoreError> {
        Ok(self.data().messages.get(id).map(|message| MessageRow::clone(&message.row)))
    }

    async fn message_by_key(
        &self,
        owner: &str,
        repeat: &str,
        since: &str,
    ) -> Result<Option<MessageRow>, StoreError> {
        let data = self.data();
        let same = |message: &&Message| {
            message.row.owner == owner
                && message.row.repeat.as_deref() == Some(repeat)
                && message.row.created.as_str() > since
        };
        Ok(data.messages.values().find(same).map(|message| MessageRow::clone(&message.row)))
    }

    async fn conversation_messages(
        &self,
        conversation: &str,
        after: i64,
        limit: u32,
        bytes: usize,
    ) -> Result<RowPage<MessageRow>, StoreError> {
        let data = self.data();
        let (mut page, mut read) = (RowPage { rows: Vec::new(), has_more: false }, 0);
        for message in data.of(conversation).into_iter().filter(|message| message.number() > after) {
            read += message.row.request.len();
            if page.rows.len() == limit as usize || (read > bytes && !page.rows.is_empty()) {
                page.has_more = true;
                break;
            }
            page.rows.push(MessageRow::clone(&message.row));
        }
        Ok(page)
    }

    async fn history_before(&self, message: &MessageRow, _: usize) -> Result<Vec<TurnHistory>, StoreError> {
        let data = self.data();
        let before = data.of(&message.conversation_id).into_iter().rev();
        let before = before.filter(|one| one.row.number < message.number && one.row.status != "superseded");
        Ok(before.map(turn).collect())
    }

    async fn turn_history(&self, id: &str) -> Result<Option<TurnHistory>, StoreError> {
        Ok(self.data().messages.get(id).map(turn))
    }
}

fn turn(message: &Message) -> TurnHistory {
    let MessageRow { id, status, outcome, .. } = &*message.row;
    let history = outcome.as_ref().and_then(|outcome| outcome.turn.clone());
    TurnHistory { id: id.clone(), status: status.clone(), history, source: None }
}

#[async_trait]
impl Conversations for Memory {
    async fn insert_conversation(&self, row: &ConversationRow) -> Result<(), StoreError> {
        self.data().conversations.insert(row.id.clone(), row.clone());
        Ok(())
    }

    async fn conversation(&self, id: &str) -> Result<Option<ConversationRow>, StoreError> {
        Ok(self.data().conversations.get(id).cloned())
    }

    async fn change_conversation(&self, row: &ConversationRow) -> Result<(), StoreError> {
        if let Some(known) = self.data().conversations.get_mut(&row.id) {
            *known = row.clone();
        }
        Ok(())
    }

    async fn conversations(
        &self,
        owner: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<RowPage<ConversationRow>, StoreError> {
        let data = self.data();
        let of_owner = data.conversations.values().filter(|row| row.owner == owner);
        let mut rows: Vec<ConversationRow> =
            of_owner.filter(|row| after.is_none_or(|after| row.id.as_str() < after)).rev().cloned().collect();
        let has_more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        Ok(RowPage { rows, has_more })
    }

    async fn lore(&self, conversation: &str) -> Result<Option<String>, StoreError> {
        Ok(self.data().lore.get(conversation).cloned())
    }

    async fn put_lore(&self, conversation: &str, timed: &str) -> Result<(), StoreError> {
        self.data().lore.insert(conversation.to_owned(), timed.to_owned());
        Ok(())
    }
}

#[async_trait]
impl Responses for Memory {
    async fn claim_request(&self, sent: &RequestKey, since: &str) -> Result<RequestClaim, StoreError> {
        let mut data = self.data();
        if data.taken.contains(sent) {
            return Ok(RequestClaim::InProgress);
        }
        if let Some((kept, _)) = data.answers.get(sent).filter(|(_, created)| created.as_str() > since) {
            return Ok(RequestClaim::Responded(kept.clone()));
        }
        data.taken.insert(sent.clone());
        Ok(RequestClaim::Claimed)
    }

    async fn store_response(
        &self,
        sent: &RequestKey,
        kept: &StoredResponse,
        now: &str,
    ) -> Result<(), StoreError> {
        self.data().answers.insert(sent.clone(), (kept.clone(), now.to_owned()));
        Ok(())
    }

    fn release_request(&self, sent: &RequestKey) {
        self.data().taken.remove(sent);
    }

    async fn delete_responses(&self, before: &str) -> Result<bool, StoreError> {
        let mut data = self.data();
        let many = data.answers.len();
        data.answers.retain(|_, (_, created)| created.as_str() > before);
        Ok(data.answers.len() < many)
    }
}

#[async_trait]
impl Deletion for Memory {
    async fn delete_messages(&self, ids: &[String]) -> Result<(), StoreError> {
        self.data().messages.retain(|id, _| !ids.contains(id));
        self.changed.notify_waiters();
        Ok(())
    }

    fn close_if_idle(&self, id: &str) -> bool {
        let mut data = self.data();
        let idle = !data.runs_before(id, i64::MAX);
        if idle {
            data.closed.insert(id.to_owned());
        }
        idle
    }

    fn close_conversation(&self, id: &str) {
        self.data().closed.insert(id.to_owned());
    }

    async fn delete_conversation(&self, id: &str) -> Result<(), StoreError> {
        let mut data = self.data();
        data.closed.remove(id);
        data.conversations.remove(id);
        data.lore.remove(id);
        data.messages.retain(|_, message| message.row.conversation_id != id);
        drop(data);
        self.changed.notify_waiters();
        Ok(())
    }

    async fn expired_messages(&self, retention: Retention<'_>) -> Result<Vec<String>, StoreError> {
        let data = self.data();
        let old = |message: &&Message| {
            message.row.status != "running"
                && message.row.kind == RunKind::Message
                && retention.before.is_some_and(|time| *message.row.created < *time)
        };
        Ok(data.messages.values().filter(old).map(|message| message.row.id.clone()).collect())
    }

    async fn sweep(&self, _: &CancellationToken) -> Result<bool, StoreError> {
        Ok(true)
    }
}

#[async_trait]
impl Dialogues for Memory {
    async fn insert_dialogue(&self, row: &DialogueRow) -> Result<(), StoreError> {
        self.data().dialogues.insert(row.id.clone(), row.clone());
        Ok(())
    }

    async fn fork_dialogue(&self, row: &DialogueRow, from: &str, before: i64) -> Result<(), StoreError> {
        let mut data = self.data();
        let turn = |record: &str| serde_json::from_str::<Value>(record).unwrap()["turn"].clone();
        let numbered = (1..).zip(&data.turns).filter(|(number, (of, _))| of == from && *number < before);
        let turns: Vec<String> = numbered.map(|(_, (_, record))| record.clone()).collect();
        let shared: Vec<Value> = turns.iter().map(|record| turn(record)).collect();
        let of_fork = data.rounds.iter().filter(|(of, record)| of == from && shared.contains(&turn(record)));
        let rounds: Vec<String> = of_fork.map(|(_, record)| record.clone()).collect();
        data.turns.extend(turns.into_iter().map(|record| (row.id.clone(), record)));
        data.rounds.extend(rounds.into_iter().map(|record| (row.id.clone(), record)));
        data.dialogues.insert(row.id.clone(), row.clone());
        Ok(())
    }

    async fn dialogue(&self, id: &str) -> Result<Option<DialogueRow>, StoreError> {
        Ok(self.data().dialogues.get(id).cloned())
    }

    async fn dialogues(
        &self,
        owner: &str,
        filter: DialogueFilter<'_>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<RowPage<DialogueRow>, StoreError> {
        let data = self.data();
        let fits = |wanted: Option<&str>, found: &str| wanted.is_none_or(|wanted| wanted == found);
        let of_owner = data.dialogues.values().filter(|row| {
            row.owner == owner
                && fits(filter.script_id, &row.script_id)
                && fits(filter.session, &row.session)
                && fits(filter.status, &row.status)
        });
        let mut rows: Vec<DialogueRow> =
            of_owner.filter(|row| after.is_none_or(|after| row.id.as_str() < after)).rev().cloned().collect();
        let has_more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        Ok(RowPage { rows, has_more })
    }

    async fn take_input(
        &self,
        row: &DialogueRow,
        once: Option<&InputClaim>,
        records: &[CallRecord],
    ) -> Result<(), StoreError> {
        let mut data = self.data();
        let Some(known) = data.dialogues.get_mut(&row.id) else { return Ok(()) };
        *known = row.clone();
        data.record(&row.id, records);
        data.repeats
            .retain(|_, (repeat, _, of)| *of != row.id || repeat.status != InputResponse::NO_RESPONSE);
        if let Some(once) = once {
            data.note(&row.id, once, None);
        }
        Ok(())
    }

    async fn step_dialogue(&self, row: &DialogueRow, records: &[CallRecord]) -> Result<(), StoreError> {
        let mut data = self.data();
        let Some(known) = data.dialogues.get_mut(&row.id) else { return Ok(()) };
        *known = row.clone();
        data.record(&row.id, records);
        Ok(())
    }

    async fn rounds(&self, id: &str, after: i64, limit: u32) -> Result<Vec<(i64, String)>, StoreError> {
        let data = self.data();
        let numbered = (1..).zip(&data.rounds).filter(|(number, (of, _))| of == id && *number > after);
        Ok(numbered.take(limit as usize).map(|(number, (_, record))| (number, record.clone())).collect())
    }

    async fn dialogue_turns(
        &self,
        id: &str,
        after: i64,
        limit: u32,
    ) -> Result<Vec<(i64, String)>, StoreError> {
        let data = self.data();
        let numbered = (1..).zip(&data.turns).filter(|(number, (of, _))| of == id && *number > after);
        Ok(numbered.take(limit as usize).map(|(number, (_, record))| (number, record.clone())).collect())
    }

    async fn delete_dialogue(&self, id: &str) -> Result<(), StoreError> {
        let mut data = self.data();
        data.turns.retain(|(of, _)| of != id);
        data.closed.remove(id);
        data.dialogues.remove(id);
        data.rounds.retain(|(of, _)| of != id);
        data.repeats.retain(|_, (_, _, of)| of != id);
        data.messages.retain(|_, message| message.row.conversation_id != id);
        drop(data);
        self.changed.notify_waiters();
        Ok(())
    }

    async fn expired_dialogues(&self, retention: Retention<'_>) -> Result<Vec<String>, StoreError> {
        let data = self.data();
        let old = |row: &&DialogueRow| retention.before.is_some_and(|time| *row.changed < *time);
        Ok(data.dialogues.values().filter(old).map(|row| row.id.clone()).collect())
    }
}

#[async_trait]
impl InputResponses for Memory {
    async fn input_response(
        &self,
        owner: &str,
        repeat: &str,
        since: &str,
    ) -> Result<Option<InputResponse>, StoreError> {
        let data = self.data();
        let found = data.repeats.get(&(owner.to_owned(), repeat.to_owned()));
        Ok(found.filter(|(_, created, _)| created.as_str() >= since).map(|(repeat, ..)| repeat.clone()))
    }
}

#[async_trait]
impl Admin for Memory {
    async fn settings(&self) -> Result<Vec<(String, String)>, StoreError> {
        Ok(self.data().settings.clone().into_iter().collect())
    }

    async fn put_settings(&self, changes: &[(String, Value)]) -> Result<(), StoreError> {
        let changes = changes.iter().map(|(name, value)| (name.clone(), value.to_string()));
        self.data().settings.extend(changes);
        Ok(())
    }

    async fn keys(&self) -> Result<Vec<KeyRow>, StoreError> {
        Ok(self.data().keys.clone())
    }

    async fn insert_key(&self, key: &KeyRow) -> Result<(), StoreError> {
        self.data().keys.push(key.clone());
        Ok(())
    }

    async fn change_key(&self, key: &KeyRow) -> Result<(), StoreError> {
        let mut data = self.data();
        data.keys.iter_mut().filter(|known| known.id == key.id).for_each(|known| known.clone_from(key));
        Ok(())
    }

    async fn add_usage(&self, more: &UsageRow) -> Result<(), StoreError> {
        self.data().usage.push(more.clone());
        Ok(())
    }

    /// Figures as added, not summed.
    async fn usage(
        &self,
        owner: Option<&str>,
        (from, to): (&str, &str),
        _: Option<(&str, &str)>,
        limit: u32,
    ) -> Result<Vec<UsageRow>, StoreError> {
        let data = self.data();
        let fits = |usage: &&UsageRow| {
            owner.is_none_or(|owner| usage.owner == owner) && (from..=to).contains(&usage.day.as_str())
        };
        Ok(data.usage.iter().filter(fits).take(limit as usize).cloned().collect())
    }

    async fn hand_over(&self, from: &str, to: &str) -> Result<(), StoreError> {
        let mut data = self.data();
        let conversations = data.conversations.values_mut().map(|row| &mut row.owner);
        conversations.filter(|owner| *owner == from).for_each(|owner| to.clone_into(owner));
        let dialogues = data.dialogues.values_mut().map(|row| &mut row.owner);
        dialogues.filter(|owner| *owner == from).for_each(|owner| to.clone_into(owner));
        let figures = data.figures.iter_mut().map(|row| &mut row.owner);
        figures.filter(|owner| *owner == from).for_each(|owner| to.clone_into(owner));
        for message in data.messages.values_mut().filter(|message| message.row.owner == from) {
            let owner = to.to_owned();
            message.row = Arc::new(MessageRow { owner, ..MessageRow::clone(&message.row) });
        }
        Ok(())
    }

    async fn delete_key(&self, id: &str) -> Result<bool, StoreError> {
        let mut data = self.data();
        let many = data.keys.len();
        data.keys.retain(|key| key.id != id);
        Ok(data.keys.len() < many)
    }
}

#[async_trait]
impl Backend for Memory {
    async fn open() -> Memory {
        let store = Memory::default();
        store.data().epoch = 1;
        store
    }

    fn store(&self) -> Arc<dyn Runs> {
        Arc::new(self.clone())
    }

    async fn crash(self) -> Memory {
        let mut data = self.data().clone();
        data.epoch += 1;
        data.taken.clear();
        data.closed.clear();
        data.messages.values_mut().for_each(|message| message.held = false);
        Memory { data: Arc::new(Mutex::new(data)), ..Memory::default() }
    }

    async fn state(&self, conversation: &str) -> Value {
        let data = self.data();
        let mut state = serde_json::json!({});
        for message in data.of(conversation) {
            for update in message.row.outcome.iter().flat_map(|outcome| &outcome.updates) {
                let applied: AppliedBlock = serde_json::from_str(&update.applied).unwrap();
                applied.redo(&mut state).unwrap();
            }
        }
        state
    }

    async fn requests(&self) -> i64 {
        self.data().usage.iter().map(|usage| usage.requests).sum()
    }
}
