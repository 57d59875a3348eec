//! A store in memory with the bare interface: evidence that the suite tests the interface, and depends on
//! nothing of SQLite.

mod dialogues;
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
    Admin, Batch, BeginOutcome, ConversationRow, Conversations, Deletion, DialogueRow, Figures, InputClaim,
    InputResponse, KeyRow, Lease, Log, LogState, MessageRow, Messages, NewRun, PendingAppend, RecordChange,
    RequestClaim, RequestKey, Responses, Retention, RowPage, RunEnd, RunKind, StoreError, StoredResponse,
    TurnHistory, UsageRow, WriteOutcome,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{Backend, SuiteStore};

/// A store in memory.
#[derive(Clone, Default)]
pub(super) struct MemoryStore {
    data: Arc<Mutex<MemoryData>>,
    changed: Arc<Notify>,
}

/// Durable data, and data that dies with the process.
#[derive(Clone, Default)]
struct MemoryData {
    conversations: BTreeMap<String, ConversationRow>,
    lore: HashMap<String, String>,
    messages: BTreeMap<String, StoredMessage>,
    responses: HashMap<RequestKey, (StoredResponse, String)>,
    dialogues: BTreeMap<String, DialogueRow>,
    /// Records of calls, with their dialogues.
    rounds: Vec<(String, String)>,
    /// Records of turns, each with its dialogue.
    turns: Vec<(String, String)>,
    /// Responses to inputs by owner and request id, with their times and dialogues.
    input_responses: HashMap<(String, String), (InputResponse, String, String)>,
    keys: Vec<KeyRow>,
    settings: BTreeMap<String, String>,
    usage: Vec<UsageRow>,
    figures: Vec<Figures>,
    last_number: i64,
    /// Start counter.
    epoch: i64,
    /// Requests in progress, and conversations being deleted, by this process.
    claims_in_progress: HashSet<RequestKey>,
    closed_conversations: HashSet<String>,
}

#[derive(Clone)]
struct StoredMessage {
    row: Arc<MessageRow>,
    entries: Vec<Batch>,
    /// Epoch of the lease that may write.
    epoch: i64,
    /// True while that lease is held.
    is_leased: bool,
}

impl StoredMessage {
    fn last_entry(&self) -> u64 {
        self.entries.last().map_or(0, Batch::last)
    }

    fn is_running(&self) -> bool {
        self.is_leased && self.row.status == "running"
    }

    fn number(&self) -> i64 {
        self.row.number.unwrap_or_default()
    }
}

impl MemoryData {
    /// Messages of a conversation, in order.
    fn messages_of(&self, conversation: &str) -> Vec<&StoredMessage> {
        let mut messages: Vec<&StoredMessage> =
            self.messages.values().filter(|message| message.row.conversation_id == conversation).collect();
        messages.sort_unstable_by_key(|message| message.number());
        messages
    }

    /// Stores records of calls of a dialogue.
    fn record(&mut self, dialogue: &str, records: &[RecordChange]) {
        for record in records {
            match record {
                RecordChange::New(record) => self.rounds.push((dialogue.to_owned(), record.clone())),
                RecordChange::Over(record) => {
                    let last =
                        self.rounds.iter_mut().rev().find(|(owner_dialogue, _)| owner_dialogue == dialogue);
                    last.into_iter().for_each(|(_, last)| record.clone_into(last));
                }
                RecordChange::Turn(record) => self.turns.push((dialogue.to_owned(), record.clone())),
                RecordChange::TurnOver(record) => {
                    let last =
                        self.turns.iter_mut().rev().find(|(owner_dialogue, _)| owner_dialogue == dialogue);
                    last.into_iter().for_each(|(_, last)| record.clone_into(last));
                }
                RecordChange::Figures(figures) => self.figures.extend_from_slice(figures),
            }
        }
    }

    /// Records that an input was accepted, or its response.
    fn note_input(&mut self, dialogue: &str, claim: &InputClaim, answer: Option<&str>) {
        let repeat = InputResponse {
            request: claim.request.clone(),
            status: if answer.is_some() { 200 } else { InputResponse::NO_RESPONSE },
            body: answer.unwrap_or_default().to_owned(),
            turn: Some(claim.turn.clone()),
        };
        let request = (claim.owner.clone(), claim.repeat.clone());
        self.input_responses.insert(request, (repeat, claim.created.clone(), dialogue.to_owned()));
    }

    fn runs_before(&self, conversation: &str, number: i64) -> bool {
        self.messages_of(conversation).iter().any(|message| message.is_running() && message.number() < number)
    }
}

impl MemoryStore {
    fn data(&self) -> MutexGuard<'_, MemoryData> {
        self.data.lock().unwrap()
    }

    /// Waits until the data satisfies a condition.
    fn wait_until(&self, condition: impl Fn(&MemoryData) -> bool + Send + 'static) -> BoxFuture<'static, ()> {
        let store = self.clone();
        async move {
            loop {
                let mut notification = std::pin::pin!(store.changed.notified());
                notification.as_mut().enable();
                if condition(&store.data()) {
                    return;
                }
                notification.await;
            }
        }
        .boxed()
    }

    fn lease(&self, message: &StoredMessage) -> Box<dyn Lease> {
        let (row, epoch, next) = (message.row.clone(), message.epoch, message.last_entry() + 1);
        Box::new(MemoryLease { store: self.clone(), row, epoch, next })
    }
}

struct MemoryLease {
    store: MemoryStore,
    row: Arc<MessageRow>,
    epoch: i64,
    next: u64,
}

impl MemoryLease {
    /// Changes the message if the lease holds.
    fn change(
        &self,
        change: impl FnOnce(&mut StoredMessage) -> Option<(Option<UsageRow>, Vec<Figures>)>,
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

    fn wait_earlier_runs(&self) -> BoxFuture<'static, ()> {
        let (conversation, number) = (self.row.conversation_id.clone(), self.row.number.unwrap());
        self.store.wait_until(move |data| !data.runs_before(&conversation, number))
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
                data.note_input(id, once, Some(answer));
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
            message.is_leased = false;
        }
        self.store.changed.notify_waiters();
    }
}

#[async_trait]
impl Log for MemoryStore {
    async fn begin(&self, new: NewRun) -> Result<BeginOutcome, StoreError> {
        let NewRun { row, opens_conversation, is_exclusive, repeat_since, replaces } = new;
        let mut data = self.data();
        let is_same_request = |message: &&StoredMessage| {
            let before = &message.row;
            row.repeat.is_some()
                && (&before.owner, &before.repeat) == (&row.owner, &row.repeat)
                && before.created > repeat_since
        };
        if let Some(before) = data.messages.values().find(is_same_request) {
            return Ok(BeginOutcome::Repeated(Box::new(MessageRow::clone(&before.row))));
        }
        let conversation = row.conversation_id.clone();
        if opens_conversation {
            let ConversationRow { title, metadata, .. } = ConversationRow::default();
            let (id, owner, created) = (conversation.clone(), row.owner.clone(), row.created.clone());
            let row_of_conversation = ConversationRow { id, owner, created, title, metadata };
            data.conversations.entry(conversation.clone()).or_insert(row_of_conversation);
        }
        let owner = match row.kind {
            RunKind::Message => data.conversations.get(&conversation).map(|known_keys| &known_keys.owner),
            RunKind::Turn => data.dialogues.get(&conversation).map(|known_keys| &known_keys.owner),
        };
        let known_keys = owner == Some(&row.owner);
        if !known_keys || data.closed_conversations.contains(&conversation) {
            return Ok(BeginOutcome::NoConversation);
        }
        let busy = data.runs_before(&conversation, i64::MAX);
        if busy && (is_exclusive || replaces.is_some()) {
            return Ok(BeginOutcome::Busy);
        }
        if let Some(replaced) = &replaces {
            let Some(number) = data.messages.get(replaced).map(StoredMessage::number) else {
                return Ok(BeginOutcome::NoMessage);
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
        data.last_number += 1;
        let row = Arc::new(MessageRow { number: Some(data.last_number), epoch: Some(data.epoch), ..row });
        let message =
            StoredMessage { row: row.clone(), entries: Vec::new(), epoch: data.epoch, is_leased: true };
        let lease = self.lease(&message);
        data.messages.insert(row.id.clone(), message);
        Ok(BeginOutcome::Started { lease, durable: std::future::ready(WriteOutcome::Stored).boxed() })
    }

    async fn claim(&self, message: &str) -> Result<Option<Box<dyn Lease>>, StoreError> {
        let mut data = self.data();
        let epoch = data.epoch;
        let Some(message) =
            data.messages.get_mut(message).filter(|candidate| candidate.row.status == "running")
        else {
            return Ok(None);
        };
        (message.epoch, message.is_leased) = (epoch.max(message.epoch + 1), true);
        Ok(Some(self.lease(message)))
    }

    async fn list_abandoned(&self) -> Result<Vec<MessageRow>, StoreError> {
        let data = self.data();
        let is_abandoned = |message: &&StoredMessage| {
            message.row.status == "running" && !message.is_leased && message.row.epoch < Some(data.epoch)
        };
        let mut rows: Vec<MessageRow> = data
            .messages
            .values()
            .filter(is_abandoned)
            .map(|message| MessageRow::clone(&message.row))
            .collect();
        rows.sort_unstable_by_key(|row| row.number);
        Ok(rows)
    }

    fn wait_idle(&self, conversation: &str) -> BoxFuture<'static, ()> {
        let (conversation, next) = (conversation.to_owned(), self.data().last_number + 1);
        self.wait_until(move |data| !data.runs_before(&conversation, next))
    }

    fn read<'a>(
        &'a self,
        message: &'a str,
        after: u64,
        bytes: usize,
    ) -> BoxFuture<'a, Result<(Vec<Batch>, LogState), StoreError>> {
        let data = self.data();
        let stored_entries = data.messages.get(message).map_or((Vec::new(), LogState::Gone), |message| {
            let mut room = bytes;
            let later_batches = message.entries.iter().filter(|batch| batch.last() > after);
            let batches = later_batches.take_while(|batch| {
                let has_room = room > 0;
                room = room.saturating_sub(batch.body().len());
                has_room
            });
            let state = if message.row.status == "running" { LogState::Open } else { LogState::Ended };
            (batches.cloned().collect(), state)
        });
        std::future::ready(Ok(stored_entries)).boxed()
    }

    fn follow(
        &self,
        message: &str,
        after: u64,
        bytes: usize,
    ) -> BoxStream<'static, Result<Batch, StoreError>> {
        let position = (self.clone(), message.to_owned(), after);
        stream::unfold(position, move |(store, id, after)| async move {
            let message_id = id.clone();
            let has_more = move |data: &MemoryData| {
                data.messages
                    .get(&message_id)
                    .is_none_or(|message| message.last_entry() > after || !message.is_running())
            };
            store.wait_until(has_more).await;
            let (batches, _) = store.read(&id, after, bytes).await.unwrap();
            let batch = batches.into_iter().next()?.skip_through(after);
            let last = batch.last();
            Some((Ok(batch), (store, id, last)))
        })
        .boxed()
    }
}

#[async_trait]
impl Messages for MemoryStore {
    async fn message(&self, id: &str) -> Result<Option<MessageRow>, StoreError> {
        Ok(self.data().messages.get(id).map(|message| MessageRow::clone(&message.row)))
    }

    async fn message_by_key(
        &self,
        owner: &str,
        repeat: &str,
        created_after: &str,
    ) -> Result<Option<MessageRow>, StoreError> {
        let data = self.data();
        let is_same_request = |message: &&StoredMessage| {
            message.row.owner == owner
                && message.row.repeat.as_deref() == Some(repeat)
                && message.row.created.as_str() > created_after
        };
        Ok(data.messages.values().find(is_same_request).map(|message| MessageRow::clone(&message.row)))
    }

    async fn conversation_messages(
        &self,
        conversation: &str,
        after: i64,
        limit: u32,
        bytes: usize,
    ) -> Result<RowPage<MessageRow>, StoreError> {
        let data = self.data();
        let (mut page, mut bytes_read) = (RowPage { rows: Vec::new(), has_more: false }, 0);
        for message in data.messages_of(conversation).into_iter().filter(|message| message.number() > after) {
            bytes_read += message.row.request.len();
            if page.rows.len() == limit as usize || (bytes_read > bytes && !page.rows.is_empty()) {
                page.has_more = true;
                break;
            }
            page.rows.push(MessageRow::clone(&message.row));
        }
        Ok(page)
    }

    async fn history_before(&self, message: &MessageRow, _: usize) -> Result<Vec<TurnHistory>, StoreError> {
        let data = self.data();
        let before = data.messages_of(&message.conversation_id).into_iter().rev();
        let before = before.filter(|candidate| {
            candidate.row.number < message.number && candidate.row.status != "superseded"
        });
        Ok(before.map(turn_history_of).collect())
    }

    async fn turn_history(&self, id: &str) -> Result<Option<TurnHistory>, StoreError> {
        Ok(self.data().messages.get(id).map(turn_history_of))
    }
}

fn turn_history_of(message: &StoredMessage) -> TurnHistory {
    let MessageRow { id, status, outcome, .. } = &*message.row;
    let history = outcome.as_ref().and_then(|outcome| outcome.turn.clone());
    TurnHistory { id: id.clone(), status: status.clone(), history, source: None }
}

#[async_trait]
impl Conversations for MemoryStore {
    async fn insert_conversation(&self, row: &ConversationRow) -> Result<(), StoreError> {
        self.data().conversations.insert(row.id.clone(), row.clone());
        Ok(())
    }

    async fn conversation(&self, id: &str) -> Result<Option<ConversationRow>, StoreError> {
        Ok(self.data().conversations.get(id).cloned())
    }

    async fn change_conversation(&self, row: &ConversationRow) -> Result<(), StoreError> {
        if let Some(stored) = self.data().conversations.get_mut(&row.id) {
            *stored = row.clone();
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
        let own_rows = data.conversations.values().filter(|row| row.owner == owner);
        let rows: Vec<ConversationRow> =
            own_rows.filter(|row| after.is_none_or(|after| row.id.as_str() < after)).rev().cloned().collect();
        Ok(RowPage::from_rows(rows, limit))
    }

    async fn timed_effects(&self, conversation: &str) -> Result<Option<String>, StoreError> {
        Ok(self.data().lore.get(conversation).cloned())
    }

    async fn put_timed_effects(&self, conversation: &str, timed_effects: &str) -> Result<(), StoreError> {
        self.data().lore.insert(conversation.to_owned(), timed_effects.to_owned());
        Ok(())
    }
}

#[async_trait]
impl Responses for MemoryStore {
    async fn claim_request(
        &self,
        request_key: &RequestKey,
        created_after: &str,
    ) -> Result<RequestClaim, StoreError> {
        let mut data = self.data();
        if data.claims_in_progress.contains(request_key) {
            return Ok(RequestClaim::InProgress);
        }
        if let Some((response, _)) =
            data.responses.get(request_key).filter(|(_, created)| created.as_str() > created_after)
        {
            return Ok(RequestClaim::Responded(response.clone()));
        }
        data.claims_in_progress.insert(request_key.clone());
        Ok(RequestClaim::Claimed)
    }

    async fn store_response(
        &self,
        request_key: &RequestKey,
        response: &StoredResponse,
        now: &str,
    ) -> Result<(), StoreError> {
        self.data().responses.insert(request_key.clone(), (response.clone(), now.to_owned()));
        Ok(())
    }

    fn release_request(&self, request_key: &RequestKey) {
        self.data().claims_in_progress.remove(request_key);
    }

    async fn delete_responses(&self, before: &str) -> Result<bool, StoreError> {
        let mut data = self.data();
        let count_before = data.responses.len();
        data.responses.retain(|_, (_, created)| created.as_str() > before);
        Ok(data.responses.len() < count_before)
    }
}

#[async_trait]
impl Deletion for MemoryStore {
    async fn delete_messages(&self, ids: &[String]) -> Result<(), StoreError> {
        self.data().messages.retain(|id, _| !ids.contains(id));
        self.changed.notify_waiters();
        Ok(())
    }

    async fn close_if_idle(&self, id: &str) -> Result<bool, StoreError> {
        let mut data = self.data();
        let is_idle = !data.runs_before(id, i64::MAX);
        if is_idle {
            data.closed_conversations.insert(id.to_owned());
        }
        Ok(is_idle)
    }

    async fn close_conversation(&self, id: &str) -> Result<(), StoreError> {
        self.data().closed_conversations.insert(id.to_owned());
        Ok(())
    }

    async fn delete_conversation(&self, id: &str) -> Result<(), StoreError> {
        let mut data = self.data();
        data.closed_conversations.remove(id);
        data.conversations.remove(id);
        data.lore.remove(id);
        data.messages.retain(|_, message| message.row.conversation_id != id);
        drop(data);
        self.changed.notify_waiters();
        Ok(())
    }

    async fn expired_messages(&self, retention: Retention<'_>) -> Result<Vec<String>, StoreError> {
        let data = self.data();
        let is_expired = |message: &&StoredMessage| {
            message.row.status != "running"
                && message.row.kind == RunKind::Message
                && retention.before.is_some_and(|time| *message.row.created < *time)
        };
        Ok(data.messages.values().filter(is_expired).map(|message| message.row.id.clone()).collect())
    }

    async fn sweep(&self, _: &CancellationToken) -> Result<bool, StoreError> {
        Ok(true)
    }
}

#[async_trait]
impl Admin for MemoryStore {
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
        data.keys.iter_mut().filter(|stored| stored.id == key.id).for_each(|stored| stored.clone_from(key));
        Ok(())
    }

    async fn add_usage(&self, usage: &UsageRow) -> Result<(), StoreError> {
        self.data().usage.push(usage.clone());
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
        let is_selected = |usage: &&UsageRow| {
            owner.is_none_or(|owner| usage.owner == owner) && (from..=to).contains(&usage.day.as_str())
        };
        Ok(data.usage.iter().filter(is_selected).take(limit as usize).cloned().collect())
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
        let count_before = data.keys.len();
        data.keys.retain(|key| key.id != id);
        Ok(data.keys.len() < count_before)
    }
}

#[async_trait]
impl Backend for MemoryStore {
    async fn open() -> MemoryStore {
        let store = MemoryStore::default();
        store.data().epoch = 1;
        store
    }

    fn store(&self) -> Arc<dyn SuiteStore> {
        Arc::new(self.clone())
    }

    async fn crash(self) -> MemoryStore {
        let mut data = self.data().clone();
        data.epoch += 1;
        data.claims_in_progress.clear();
        data.closed_conversations.clear();
        data.messages.values_mut().for_each(|message| message.is_leased = false);
        MemoryStore { data: Arc::new(Mutex::new(data)), ..MemoryStore::default() }
    }

    async fn state(&self, conversation: &str) -> Value {
        let data = self.data();
        let mut state = serde_json::json!({});
        for message in data.messages_of(conversation) {
            for update in message.row.outcome.iter().flat_map(|outcome| &outcome.updates) {
                let applied_block: AppliedBlock = serde_json::from_str(&update.applied).unwrap();
                applied_block.redo(&mut state).unwrap();
            }
        }
        state
    }

    async fn requests(&self) -> i64 {
        self.data().usage.iter().map(|usage| usage.requests).sum()
    }
}
