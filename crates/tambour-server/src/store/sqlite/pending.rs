//! Rows and logs that are on the journal and not yet in the database, for readers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::tail::Tail;
use crate::store::{ConversationRow, MessageRow, RunKind};

/// Rows and logs ahead of the database.
#[derive(Default)]
pub(super) struct Pending {
    rows: Mutex<HashMap<String, Row>>,
    logs: Mutex<HashMap<String, Arc<Tail>>>,
}

struct Row {
    /// Absent while the row in the database is current.
    row: Option<Arc<MessageRow>>,
    /// Number of notifications to the writer that it has not processed.
    told: usize,
}

impl Pending {
    fn rows(&self) -> MutexGuard<'_, HashMap<String, Row>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn logs(&self) -> MutexGuard<'_, HashMap<String, Arc<Tail>>> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a new row; the writer is notified of it separately.
    pub(super) fn put(&self, row: Arc<MessageRow>) {
        self.tell(&row.id);
        self.show(row);
    }

    /// Counts a notification of a changed row whose change is not visible yet.
    pub(super) fn tell(&self, id: &str) {
        self.rows().entry(id.to_owned()).or_insert(Row { row: None, told: 0 }).told += 1;
    }

    /// Makes a changed row visible. Without a pending notification the database has it already.
    pub(super) fn show(&self, row: Arc<MessageRow>) {
        if let Some(known) = self.rows().get_mut(&row.id) {
            known.row = Some(row);
        }
    }

    /// Returns the row with that id, if it is newer than the database's.
    pub(super) fn row(&self, id: &str) -> Option<Arc<MessageRow>> {
        self.rows().get(id).and_then(|known| known.row.clone())
    }

    /// Returns the message of an owner with that idempotency key.
    pub(super) fn repeated(&self, owner: &str, repeat: &str) -> Option<Arc<MessageRow>> {
        let rows = self.rows();
        let same = |row: &&Arc<MessageRow>| row.owner == owner && row.repeat.as_deref() == Some(repeat);
        rows.values().filter_map(|known| known.row.as_ref()).find(same).cloned()
    }

    /// Returns the conversation that a pending message opened.
    pub(super) fn conversation(&self, id: &str) -> Option<ConversationRow> {
        let rows = self.rows();
        let all = rows.values().filter_map(|known| known.row.as_ref());
        let of = all.filter(|row| row.kind == RunKind::Message && row.conversation_id == id);
        let first = of.min_by_key(|row| row.number)?;
        let (owner, created) = (first.owner.clone(), first.created.clone());
        Some(ConversationRow { id: id.to_owned(), owner, created, ..ConversationRow::default() })
    }

    /// Returns `true` if the database has every row.
    pub(super) fn is_empty(&self) -> bool {
        self.rows().is_empty()
    }

    /// Transfers rows from one owner to another.
    pub(super) fn hand_over(&self, from: &str, to: &str) {
        let mut rows = self.rows();
        for row in rows.values_mut().filter_map(|known| known.row.as_mut()).filter(|row| row.owner == from) {
            *row = Arc::new(MessageRow { owner: to.to_owned(), ..MessageRow::clone(row) });
        }
    }

    /// Counts rows that the database has, once for each occurrence.
    pub(super) fn written<'a>(&self, written: impl Iterator<Item = &'a Arc<MessageRow>>) {
        let mut rows = self.rows();
        for row in written {
            if let Some(known) = rows.get_mut(&row.id) {
                known.told -= 1;
                if known.told == 0 {
                    rows.remove(&row.id);
                }
            }
        }
    }

    /// Registers a log that is being written.
    pub(super) fn open(&self, tail: &Arc<Tail>) {
        self.logs().insert(tail.message.clone(), tail.clone());
    }

    /// Removes the log of a deleted message.
    pub(super) fn forget(&self, message: &str) {
        self.logs().remove(message);
    }

    /// Removes a log that is over and fully in the database.
    pub(super) fn close(&self, tail: &Tail) {
        if tail.is_done() {
            let mut logs = self.logs();
            if logs.get(&tail.message).is_some_and(|known| std::ptr::eq(&**known, tail)) {
                logs.remove(&tail.message);
            }
        }
    }

    /// Returns the registered logs.
    pub(super) fn tails(&self) -> Vec<Arc<Tail>> {
        self.logs().values().cloned().collect()
    }

    /// Returns the tail of a message's log, if it is being written or the database lacks a part of it.
    pub(super) fn tail(&self, message: &str) -> Option<Arc<Tail>> {
        self.logs().get(message).cloned()
    }
}
