//! Rows and logs that are on the journal and not yet in the database, for readers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::tail::LogTail;
use crate::{ConversationRow, MessageRow, RunKind};

/// Rows and logs ahead of the database, by id of their message.
#[derive(Default)]
pub(super) struct PendingRows {
    rows: Mutex<HashMap<String, PendingRow>>,
    logs: Mutex<HashMap<String, Arc<LogTail>>>,
}

/// Row of a message that the writer has yet to write.
struct PendingRow {
    /// Row for readers; absent while readers should see the row in the database.
    row: Option<Arc<MessageRow>>,
    /// Number of notifications of the writer about the row, less the number of times that it has written the
    /// row.
    notifications: usize,
}

impl PendingRows {
    fn lock_rows(&self) -> MutexGuard<'_, HashMap<String, PendingRow>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_logs(&self) -> MutexGuard<'_, HashMap<String, Arc<LogTail>>> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the row of a new message. The caller sends it to the writer.
    pub(super) fn insert(&self, row: Arc<MessageRow>) {
        self.count_notification(&row.id);
        self.set_row(row);
    }

    /// Counts a notification of the writer about a changed row. Readers do not see the change before
    /// [`PendingRows::set_row`].
    pub(super) fn count_notification(&self, id: &str) {
        self.lock_rows()
            .entry(id.to_owned())
            .or_insert(PendingRow { row: None, notifications: 0 })
            .notifications += 1;
    }

    /// Makes a changed row visible to readers. Does nothing if the writer has written it meanwhile.
    pub(super) fn set_row(&self, row: Arc<MessageRow>) {
        if let Some(entry) = self.lock_rows().get_mut(&row.id) {
            entry.row = Some(row);
        }
    }

    /// Returns the row of a message, if it is newer than that in the database.
    pub(super) fn row(&self, id: &str) -> Option<Arc<MessageRow>> {
        self.lock_rows().get(id).and_then(|entry| entry.row.clone())
    }

    /// Returns the pending message of an owner with this idempotency key.
    pub(super) fn row_by_key(&self, owner: &str, idempotency_key: &str) -> Option<Arc<MessageRow>> {
        let rows = self.lock_rows();
        let is_same =
            |row: &&Arc<MessageRow>| row.owner == owner && row.repeat.as_deref() == Some(idempotency_key);
        rows.values().filter_map(|entry| entry.row.as_ref()).find(is_same).cloned()
    }

    /// Returns the conversation that a pending message opened.
    pub(super) fn conversation(&self, id: &str) -> Option<ConversationRow> {
        let rows = self.lock_rows();
        let visible_rows = rows.values().filter_map(|entry| entry.row.as_ref());
        let messages = visible_rows.filter(|row| row.kind == RunKind::Message && row.conversation_id == id);
        let first = messages.min_by_key(|row| row.number)?;
        let (owner, created) = (first.owner.clone(), first.created.clone());
        Some(ConversationRow { id: id.to_owned(), owner, created, ..ConversationRow::default() })
    }

    /// Returns `true` if the database has every row.
    pub(super) fn is_empty(&self) -> bool {
        self.lock_rows().is_empty()
    }

    /// Transfers rows from one owner to another.
    pub(super) fn hand_over(&self, from: &str, to: &str) {
        let mut rows = self.lock_rows();
        for row in rows.values_mut().filter_map(|entry| entry.row.as_mut()).filter(|row| row.owner == from) {
            *row = Arc::new(MessageRow { owner: to.to_owned(), ..MessageRow::clone(row) });
        }
    }

    /// Notes that the writer has written rows. A row is removed once it was written as often as the writer
    /// was notified of it.
    pub(super) fn mark_written<'a>(&self, written_rows: impl Iterator<Item = &'a Arc<MessageRow>>) {
        let mut rows = self.lock_rows();
        for row in written_rows {
            if let Some(entry) = rows.get_mut(&row.id) {
                entry.notifications -= 1;
                if entry.notifications == 0 {
                    rows.remove(&row.id);
                }
            }
        }
    }

    /// Registers the tail of a log that is being written.
    pub(super) fn add_log(&self, tail: &Arc<LogTail>) {
        self.lock_logs().insert(tail.message.clone(), tail.clone());
    }

    /// Removes the log of a deleted message.
    pub(super) fn remove_log(&self, message: &str) {
        self.lock_logs().remove(message);
    }

    /// Removes a log that has ended and is in the database completely.
    pub(super) fn remove_if_done(&self, tail: &LogTail) {
        if tail.is_done() {
            let mut logs = self.lock_logs();
            if logs.get(&tail.message).is_some_and(|entry| std::ptr::eq(&**entry, tail)) {
                logs.remove(&tail.message);
            }
        }
    }

    /// Returns the tails of the registered logs.
    pub(super) fn tails(&self) -> Vec<Arc<LogTail>> {
        self.lock_logs().values().cloned().collect()
    }

    /// Returns the tail of a message's log, if it is being written or the database lacks a part of it.
    pub(super) fn tail(&self, message: &str) -> Option<Arc<LogTail>> {
        self.lock_logs().get(message).cloned()
    }
}
