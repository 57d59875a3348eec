//! What the journal has and the database does not, as it is read meanwhile.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::tail::Tail;
use crate::store::{ConversationRow, MessageRow, RunKind};

/// Rows and logs in front of the database.
#[derive(Default)]
pub(super) struct Pending {
    rows: Mutex<HashMap<String, Row>>,
    logs: Mutex<HashMap<String, Arc<Tail>>>,
}

struct Row {
    /// Absent while the database has it as it is to be seen.
    row: Option<Arc<MessageRow>>,
    /// How often the writer was told of it, and has not written it.
    told: usize,
}

impl Pending {
    fn rows(&self) -> MutexGuard<'_, HashMap<String, Row>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn logs(&self) -> MutexGuard<'_, HashMap<String, Arc<Tail>>> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A row that is new; the writer is told of it.
    pub(super) fn put(&self, row: Arc<MessageRow>) {
        self.tell(&row.id);
        self.show(row);
    }

    /// The writer is told of a row that has changed, and nobody sees the change yet.
    pub(super) fn tell(&self, id: &str) {
        self.rows().entry(id.to_owned()).or_insert(Row { row: None, told: 0 }).told += 1;
    }

    /// A row that the writer was told of is seen like this from now on. If the database has it, it is there.
    pub(super) fn show(&self, row: Arc<MessageRow>) {
        if let Some(known) = self.rows().get_mut(&row.id) {
            known.row = Some(row);
        }
    }

    /// The row of that id, if the database does not have it as it is.
    pub(super) fn row(&self, id: &str) -> Option<Arc<MessageRow>> {
        self.rows().get(id).and_then(|known| known.row.clone())
    }

    /// The message of an owner that was asked for with that word.
    pub(super) fn repeated(&self, owner: &str, repeat: &str) -> Option<Arc<MessageRow>> {
        let rows = self.rows();
        let same = |row: &&Arc<MessageRow>| row.owner == owner && row.repeat.as_deref() == Some(repeat);
        rows.values().filter_map(|known| known.row.as_ref()).find(same).cloned()
    }

    /// A conversation that began with a message that is new.
    pub(super) fn conversation(&self, id: &str) -> Option<ConversationRow> {
        let rows = self.rows();
        let all = rows.values().filter_map(|known| known.row.as_ref());
        let of = all.filter(|row| row.kind == RunKind::Message && row.conversation_id == id);
        let first = of.min_by_key(|row| row.number)?;
        let (owner, created) = (first.owner.clone(), first.created.clone());
        Some(ConversationRow { id: id.to_owned(), owner, created, ..ConversationRow::default() })
    }

    /// Whether there is no row that the database does not have.
    pub(super) fn is_empty(&self) -> bool {
        self.rows().is_empty()
    }

    /// Makes what is one owner's another one's.
    pub(super) fn hand_over(&self, from: &str, to: &str) {
        let mut rows = self.rows();
        for row in rows.values_mut().filter_map(|known| known.row.as_mut()).filter(|row| row.owner == from) {
            *row = Arc::new(MessageRow { owner: to.to_owned(), ..MessageRow::clone(row) });
        }
    }

    /// The database has these rows, each as often as it is named.
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

    /// The log of a message is written from now on.
    pub(super) fn open(&self, tail: &Arc<Tail>) {
        self.logs().insert(tail.message.clone(), tail.clone());
    }

    /// The log of a message leaves whatever the database has of it, since the message is deleted.
    pub(super) fn forget(&self, message: &str) {
        self.logs().remove(message);
    }

    /// A log that is over leaves when the database has all of it.
    pub(super) fn close(&self, tail: &Tail) {
        if tail.is_done() {
            let mut logs = self.logs();
            if logs.get(&tail.message).is_some_and(|known| std::ptr::eq(&**known, tail)) {
                logs.remove(&tail.message);
            }
        }
    }

    /// The logs that are written.
    pub(super) fn tails(&self) -> Vec<Arc<Tail>> {
        self.logs().values().cloned().collect()
    }

    /// The end of the log of that message, if it is written or the database does not have all of it.
    pub(super) fn tail(&self, message: &str) -> Option<Arc<Tail>> {
        self.logs().get(message).cloned()
    }
}
