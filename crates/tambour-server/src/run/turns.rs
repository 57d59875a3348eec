//! Queues of changes per conversation or dialogue: one at a time. The order of messages is the store's; each
//! waits for its lease's turn first.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures_util::FutureExt;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

/// Conversations with a running or waiting change.
#[derive(Default)]
pub(crate) struct TurnQueues {
    by_conversation: Mutex<HashMap<String, Weak<Turn<()>>>>,
}

/// Future that resolves to the turn.
pub(crate) type TurnWait = Pin<Box<dyn Future<Output = OwnedMutexGuard<()>> + Send>>;

/// Place in the queue of a conversation.
pub(crate) enum QueuePlace {
    /// Nothing else runs; the turn lasts until the guard is dropped.
    Ready(OwnedMutexGuard<()>),
    /// Waiting for others.
    Queued(TurnWait),
}

impl QueuePlace {
    /// Waits for the turn.
    pub(crate) async fn wait(self) -> OwnedMutexGuard<()> {
        match self {
            QueuePlace::Ready(turn) => turn,
            QueuePlace::Queued(turn_wait) => turn_wait.await,
        }
    }
}

impl TurnQueues {
    /// Takes the next place in the queue of a conversation.
    pub(crate) fn enqueue(&self, conversation: &str) -> QueuePlace {
        let mut by_conversation = self.by_conversation.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = by_conversation.get(conversation).and_then(Weak::upgrade);
        let turn = queue.unwrap_or_else(|| {
            // Drops dead entries before the map would grow.
            if by_conversation.len() == by_conversation.capacity() {
                by_conversation.retain(|_, turn| turn.strong_count() > 0);
            }
            let turn = Arc::new(Turn::new(()));
            by_conversation.insert(conversation.to_owned(), Arc::downgrade(&turn));
            turn
        });
        let mut turn_wait: TurnWait = Box::pin(turn.lock_owned());
        // Polling it once enters the queue.
        match (&mut turn_wait).now_or_never() {
            Some(turn) => QueuePlace::Ready(turn),
            None => QueuePlace::Queued(turn_wait),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_comes_first_is_first() {
        let turns = TurnQueues::default();
        let QueuePlace::Ready(first) = turns.enqueue("a") else { panic!("nobody is before it") };
        assert!(matches!(turns.enqueue("b"), QueuePlace::Ready(_)), "another conversation");
        let (second, third) = (turns.enqueue("a"), turns.enqueue("a"));
        drop(first);
        let mut third = Box::pin(third.wait());
        assert!((&mut third).now_or_never().is_none(), "the second one is before it");
        drop(second.wait().await);
        drop(third.await);
        assert!(matches!(turns.enqueue("a"), QueuePlace::Ready(_)));
    }
}
