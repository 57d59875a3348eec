//! Queues of changes per conversation or dialogue: one at a time. The order of messages is the store's; each
//! waits for its lease's turn first.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures_util::FutureExt;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

/// Conversations with a running or waiting change.
#[derive(Default)]
pub(crate) struct Turns {
    by_conversation: Mutex<HashMap<String, Weak<Turn<()>>>>,
}

/// Future that resolves to the turn.
pub(crate) type Waiting = Pin<Box<dyn Future<Output = OwnedMutexGuard<()>> + Send>>;

/// Place in the queue of a conversation.
pub(crate) enum Place {
    /// Nothing else runs; the turn lasts until the guard is dropped.
    Free(OwnedMutexGuard<()>),
    /// Waiting for others.
    Behind(Waiting),
}

impl Place {
    /// Waits for the turn.
    pub(crate) async fn reached(self) -> OwnedMutexGuard<()> {
        match self {
            Place::Free(turn) => turn,
            Place::Behind(waiting) => waiting.await,
        }
    }
}

impl Turns {
    /// Takes the next place in the queue of a conversation.
    pub(crate) fn queue(&self, conversation: &str) -> Place {
        let mut by_conversation = self.by_conversation.lock().unwrap_or_else(PoisonError::into_inner);
        let known = by_conversation.get(conversation).and_then(Weak::upgrade);
        let turn = known.unwrap_or_else(|| {
            // Drops dead entries before the map would grow.
            if by_conversation.len() == by_conversation.capacity() {
                by_conversation.retain(|_, turn| turn.strong_count() > 0);
            }
            let turn = Arc::new(Turn::new(()));
            by_conversation.insert(conversation.to_owned(), Arc::downgrade(&turn));
            turn
        });
        let mut waiting: Waiting = Box::pin(turn.lock_owned());
        // Polling it once enters the queue.
        match (&mut waiting).now_or_never() {
            Some(turn) => Place::Free(turn),
            None => Place::Behind(waiting),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_comes_first_is_first() {
        let turns = Turns::default();
        let Place::Free(first) = turns.queue("a") else { panic!("nobody is before it") };
        assert!(matches!(turns.queue("b"), Place::Free(_)), "another conversation");
        let (second, third) = (turns.queue("a"), turns.queue("a"));
        drop(first);
        let mut third = Box::pin(third.reached());
        assert!((&mut third).now_or_never().is_none(), "the second one is before it");
        drop(second.reached().await);
        drop(third.await);
        assert!(matches!(turns.queue("a"), Place::Free(_)));
    }
}
