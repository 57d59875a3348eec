//! What the journal has and the database does not, as it is read meanwhile.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::tail::Tail;
use crate::store::{ConversationRow, MessageRow};

/// Rows and logs in front of the database.
#[derive(Default)]
pub(super) struct Pending {
    rows: Mutex<HashMap<String, Row>>,
    logs: Mutex<HashMap<String, Arc<Tail>>>,
}

struct Row {
    row: Arc<MessageRow>,
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

    /// A row that is new, or has changed; the writer is told of it.
    pub(super) fn put(&self, row: MessageRow) {
        let row = Arc::new(row);
        let mut rows = self.rows();
        let told = rows.get(&row.id).map_or(0, |known| known.told) + 1;
        rows.insert(row.id.clone(), Row { row, told });
    }

    /// The row of that id, if the database does not have it as it is.
    pub(super) fn row(&self, id: &str) -> Option<Arc<MessageRow>> {
        self.rows().get(id).map(|known| known.row.clone())
    }

    /// The message of an owner that was asked for with that word.
    pub(super) fn repeated(&self, owner: &str, repeat: &str) -> Option<Arc<MessageRow>> {
        let rows = self.rows();
        let same = |known: &&Row| known.row.owner == owner && known.row.repeat.as_deref() == Some(repeat);
        rows.values().find(same).map(|known| known.row.clone())
    }

    /// A conversation that began with a message that is new.
    pub(super) fn conversation(&self, id: &str) -> Option<ConversationRow> {
        let rows = self.rows();
        let of = rows.values().filter(|known| known.row.conversation_id == id);
        let first = of.min_by(|a, b| a.row.created.cmp(&b.row.created))?;
        let (owner, created) = (first.row.owner.clone(), first.row.created.clone());
        Some(ConversationRow { id: id.to_owned(), owner, created, ..ConversationRow::default() })
    }

    /// Whether there is no row that the database does not have.
    pub(super) fn is_empty(&self) -> bool {
        self.rows().is_empty()
    }

    /// Makes what is one owner's another one's.
    pub(super) fn hand_over(&self, from: &str, to: &str) {
        for known in self.rows().values_mut().filter(|known| known.row.owner == from) {
            known.row = Arc::new(MessageRow { owner: to.to_owned(), ..MessageRow::clone(&known.row) });
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

    /// The end of a message's log, which begins now if it is not known.
    pub(super) fn begin(&self, message: &str) -> Arc<Tail> {
        let mut logs = self.logs();
        if let Some(tail) = logs.get(message) {
            return tail.clone();
        }
        let tail = Tail::new(message.to_owned());
        logs.insert(message.to_owned(), tail.clone());
        tail
    }

    /// A log that is over leaves when the database has all of it.
    pub(super) fn close(&self, tail: &Tail) {
        if tail.is_done() {
            self.logs().remove(&tail.message);
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
