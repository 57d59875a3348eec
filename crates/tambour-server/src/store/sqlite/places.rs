//! Order of runs: their numbers, their queue in each conversation, and conversations closed to new ones.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::tail::Tail;
use crate::store::Sent;

/// Runs and claimed requests of this server.
#[derive(Default)]
pub(super) struct Places {
    order: Mutex<Order>,
    claimed: Mutex<HashSet<Sent>>,
}

/// Runs in the order of their numbers.
#[derive(Default)]
pub(super) struct Order {
    /// Last assigned number.
    last: i64,
    /// Unfinished runs of each conversation, oldest first.
    runs: HashMap<String, Vec<(i64, Arc<Tail>)>>,
    /// Conversations being deleted.
    closed: HashSet<String>,
}

/// Claim of a request, released on drop unless kept.
pub(super) struct Claimed<'a> {
    places: &'a Places,
    sent: Option<Sent>,
}

impl Places {
    /// Creates the order of a store whose last number was `last`.
    pub(super) fn after(last: i64) -> Places {
        Places { order: Mutex::new(Order { last, ..Order::default() }), ..Places::default() }
    }

    /// Locks the order: no run begins or leaves while the guard is held.
    pub(super) fn order(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn claimed(&self) -> MutexGuard<'_, HashSet<Sent>> {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims a request; `false` if it is claimed already.
    pub(super) fn claim(&self, sent: &Sent) -> bool {
        self.claimed().insert(sent.clone())
    }

    /// Releases a request.
    pub(super) fn release(&self, sent: &Sent) {
        self.claimed().remove(sent);
    }

    /// Claims a request until the result is dropped; `None` if it is claimed already.
    pub(super) fn hold(&self, sent: Sent) -> Option<Claimed<'_>> {
        self.claim(&sent).then(|| Claimed { places: self, sent: Some(sent) })
    }

    /// Waits until the runs before a number are over.
    pub(super) async fn turn(&self, conversation: &str, number: i64) {
        loop {
            let before = self.order().before(conversation, number);
            match before {
                Some(tail) => tail.over().await,
                None => return,
            }
        }
    }
}

impl Order {
    /// Returns the number of the next run, which [`Order::add`] assigns.
    pub(super) fn next(&self) -> i64 {
        self.last + 1
    }

    /// Adds a run with the next number.
    pub(super) fn add(&mut self, conversation: &str, tail: &Arc<Tail>) {
        self.last += 1;
        self.runs.entry(conversation.to_owned()).or_default().push((self.last, tail.clone()));
    }

    /// Removes a run that is over.
    pub(super) fn leave(&mut self, conversation: &str, number: i64) {
        if let Some(runs) = self.runs.get_mut(conversation) {
            runs.retain(|(other, _)| *other != number);
            if runs.is_empty() {
                self.runs.remove(conversation);
            }
        }
    }

    /// Returns the unfinished runs of a conversation.
    pub(super) fn running(&self, conversation: &str) -> impl Iterator<Item = &(i64, Arc<Tail>)> {
        let runs = self.runs.get(conversation).into_iter().flatten();
        runs.filter(|(_, tail)| !tail.progress().ended)
    }

    fn before(&self, conversation: &str, number: i64) -> Option<Arc<Tail>> {
        self.running(conversation).filter(|(other, _)| *other < number).last().map(|(_, tail)| tail.clone())
    }

    /// Returns `true` if a conversation is closed to new runs.
    pub(super) fn is_closed(&self, conversation: &str) -> bool {
        self.closed.contains(conversation)
    }

    /// Closes a conversation to new runs.
    pub(super) fn close(&mut self, conversation: &str) {
        self.closed.insert(conversation.to_owned());
    }

    /// Reopens a conversation that was deleted or could not be.
    pub(super) fn open(&mut self, conversation: &str) {
        self.closed.remove(conversation);
    }
}

impl Claimed<'_> {
    /// Keeps the claim until it is released explicitly.
    pub(super) fn keep(mut self) {
        self.sent = None;
    }
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        if let Some(sent) = &self.sent {
            self.places.release(sent);
        }
    }
}
