//! Dialogues of the store in memory, and responses to their inputs.

use async_trait::async_trait;
use serde_json::Value;
use tambour_server::store::{
    DialogueFilter, DialogueRow, Dialogues, InputClaim, InputResponse, InputResponses, RecordChange,
    Retention, RowPage, StoreError,
};

use super::MemoryStore;

#[async_trait]
impl Dialogues for MemoryStore {
    async fn insert_dialogue(&self, row: &DialogueRow) -> Result<(), StoreError> {
        self.data().dialogues.insert(row.id.clone(), row.clone());
        Ok(())
    }

    async fn fork_dialogue(&self, row: &DialogueRow, from: &str, before: i64) -> Result<(), StoreError> {
        let mut data = self.data();
        let turn = |record: &str| serde_json::from_str::<Value>(record).unwrap()["turn"].clone();
        let numbered_turns =
            (1..).zip(&data.turns).filter(|(number, (dialogue, _))| dialogue == from && *number < before);
        let turns: Vec<String> = numbered_turns.map(|(_, (_, record))| record.clone()).collect();
        let shared: Vec<Value> = turns.iter().map(|record| turn(record)).collect();
        let fork_rounds = data
            .rounds
            .iter()
            .filter(|(dialogue, record)| dialogue == from && shared.contains(&turn(record)));
        let rounds: Vec<String> = fork_rounds.map(|(_, record)| record.clone()).collect();
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
        let matches = |filter_value: Option<&str>, value: &str| {
            filter_value.is_none_or(|filter_value| filter_value == value)
        };
        let own_rows = data.dialogues.values().filter(|row| {
            row.owner == owner
                && matches(filter.script_id, &row.script_id)
                && matches(filter.session, &row.session)
                && matches(filter.status, &row.status)
        });
        let rows: Vec<DialogueRow> =
            own_rows.filter(|row| after.is_none_or(|after| row.id.as_str() < after)).rev().cloned().collect();
        Ok(RowPage::from_rows(rows, limit))
    }

    async fn take_input(
        &self,
        row: &DialogueRow,
        claim: Option<&InputClaim>,
        records: &[RecordChange],
    ) -> Result<(), StoreError> {
        let mut data = self.data();
        let Some(stored) = data.dialogues.get_mut(&row.id) else { return Ok(()) };
        *stored = row.clone();
        data.record(&row.id, records);
        data.input_responses.retain(|_, (repeat, _, dialogue)| {
            *dialogue != row.id || repeat.status != InputResponse::NO_RESPONSE
        });
        if let Some(claim) = claim {
            data.note_input(&row.id, claim, None);
        }
        Ok(())
    }

    async fn step_dialogue(&self, row: &DialogueRow, records: &[RecordChange]) -> Result<(), StoreError> {
        let mut data = self.data();
        let Some(stored) = data.dialogues.get_mut(&row.id) else { return Ok(()) };
        *stored = row.clone();
        data.record(&row.id, records);
        Ok(())
    }

    async fn call_records(&self, id: &str, after: i64, limit: u32) -> Result<Vec<(i64, String)>, StoreError> {
        let data = self.data();
        let numbered_rounds =
            (1..).zip(&data.rounds).filter(|(number, (dialogue, _))| dialogue == id && *number > after);
        Ok(numbered_rounds
            .take(limit as usize)
            .map(|(number, (_, record))| (number, record.clone()))
            .collect())
    }

    async fn dialogue_turns(
        &self,
        id: &str,
        after: i64,
        limit: u32,
    ) -> Result<Vec<(i64, String)>, StoreError> {
        let data = self.data();
        let numbered_turns =
            (1..).zip(&data.turns).filter(|(number, (dialogue, _))| dialogue == id && *number > after);
        Ok(numbered_turns
            .take(limit as usize)
            .map(|(number, (_, record))| (number, record.clone()))
            .collect())
    }

    async fn delete_dialogue(&self, id: &str) -> Result<(), StoreError> {
        let mut data = self.data();
        data.turns.retain(|(dialogue, _)| dialogue != id);
        data.closed_conversations.remove(id);
        data.dialogues.remove(id);
        data.rounds.retain(|(dialogue, _)| dialogue != id);
        data.input_responses.retain(|_, (_, _, dialogue)| dialogue != id);
        data.messages.retain(|_, message| message.row.conversation_id != id);
        drop(data);
        self.changed.notify_waiters();
        Ok(())
    }

    async fn expired_dialogues(&self, retention: Retention<'_>) -> Result<Vec<String>, StoreError> {
        let data = self.data();
        let is_expired = |row: &&DialogueRow| retention.before.is_some_and(|time| *row.changed < *time);
        Ok(data.dialogues.values().filter(is_expired).map(|row| row.id.clone()).collect())
    }
}

#[async_trait]
impl InputResponses for MemoryStore {
    async fn input_response(
        &self,
        owner: &str,
        repeat: &str,
        created_after: &str,
    ) -> Result<Option<InputResponse>, StoreError> {
        let data = self.data();
        let entry = data.input_responses.get(&(owner.to_owned(), repeat.to_owned()));
        Ok(entry
            .filter(|(_, created, _)| created.as_str() >= created_after)
            .map(|(repeat, ..)| repeat.clone()))
    }
}
