//! The order of runs: each one's number, who runs before it in its conversation, and what may not begin.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::tail::Tail;
use crate::store::Sent;

/// Runs and claims of this server.
#[derive(Default)]
pub(super) struct Places {
    order: Mutex<Order>,
    claimed: Mutex<HashSet<Sent>>,
}

/// Runs in the order of their numbers.
#[derive(Default)]
pub(super) struct Order {
    /// The last number that was given.
    last: i64,
    /// Runs of each conversation that are not over, oldest first.
    runs: HashMap<String, Vec<(i64, Arc<Tail>)>>,
    /// Conversations that are being deleted.
    closed: HashSet<String>,
}

/// A request that nobody else carries out as long as this lives.
pub(super) struct Claimed<'a> {
    places: &'a Places,
    sent: Option<Sent>,
}

impl Places {
    /// Places whose last number was `last`.
    pub(super) fn after(last: i64) -> Places {
        Places { order: Mutex::new(Order { last, ..Order::default() }), ..Places::default() }
    }

    /// Nobody else begins or leaves as long as this is held.
    pub(super) fn order(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn claimed(&self) -> MutexGuard<'_, HashSet<Sent>> {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims a request; whether nobody had it.
    pub(super) fn claim(&self, sent: &Sent) -> bool {
        self.claimed().insert(sent.clone())
    }

    /// Lets go of a request.
    pub(super) fn release(&self, sent: &Sent) {
        self.claimed().remove(sent);
    }

    /// Claims a request for as long as the result lives; `None` if somebody has it.
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
    /// The number of the next run, which is taken with [`Order::add`].
    pub(super) fn next(&self) -> i64 {
        self.last + 1
    }

    /// A run begins, with the next number.
    pub(super) fn add(&mut self, conversation: &str, tail: &Arc<Tail>) {
        self.last += 1;
        self.runs.entry(conversation.to_owned()).or_default().push((self.last, tail.clone()));
    }

    /// A run is over.
    pub(super) fn leave(&mut self, conversation: &str, number: i64) {
        if let Some(runs) = self.runs.get_mut(conversation) {
            runs.retain(|(other, _)| *other != number);
            if runs.is_empty() {
                self.runs.remove(conversation);
            }
        }
    }

    /// Runs of a conversation that are not over.
    pub(super) fn running(&self, conversation: &str) -> impl Iterator<Item = &(i64, Arc<Tail>)> {
        let runs = self.runs.get(conversation).into_iter().flatten();
        runs.filter(|(_, tail)| !tail.progress().ended)
    }

    fn before(&self, conversation: &str, number: i64) -> Option<Arc<Tail>> {
        self.running(conversation).filter(|(other, _)| *other < number).last().map(|(_, tail)| tail.clone())
    }

    /// Whether nothing may begin in a conversation.
    pub(super) fn is_closed(&self, conversation: &str) -> bool {
        self.closed.contains(conversation)
    }

    /// Nothing begins in a conversation from now on.
    pub(super) fn close(&mut self, conversation: &str) {
        self.closed.insert(conversation.to_owned());
    }

    /// A closed conversation is gone, or could not be deleted.
    pub(super) fn open(&mut self, conversation: &str) {
        self.closed.remove(conversation);
    }
}

impl Claimed<'_> {
    /// The request stays claimed until it is released.
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
