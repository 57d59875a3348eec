//! Queues for exclusive access to a conversation or dialogue: its messages, turns and other changes run one
//! at a time. Messages run in the order in which they were stored: a message first waits until the earlier
//! ones have ended (`Lease::wait_earlier_runs`), and enters the queue only then.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures_util::FutureExt;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// Queues of all conversations in which something runs or waits.
#[derive(Default)]
pub(crate) struct ConversationQueues {
    by_conversation: Mutex<HashMap<String, Weak<AsyncMutex<()>>>>,
}

/// Future of the exclusive access, which lasts until the guard is dropped.
pub(crate) type QueueWait = Pin<Box<dyn Future<Output = OwnedMutexGuard<()>> + Send>>;

/// Place in the queue of a conversation.
pub(crate) enum QueuePlace {
    /// Nothing else runs: access is granted, until the guard is dropped.
    Ready(OwnedMutexGuard<()>),
    /// Others have access or come first: the future waits for them.
    Queued(QueueWait),
}

impl QueuePlace {
    /// Waits for access.
    pub(crate) async fn wait(self) -> OwnedMutexGuard<()> {
        match self {
            QueuePlace::Ready(guard) => guard,
            QueuePlace::Queued(queue_wait) => queue_wait.await,
        }
    }
}

impl ConversationQueues {
    /// Takes the next place in the queue of a conversation.
    pub(crate) fn enqueue(&self, conversation: &str) -> QueuePlace {
        let mut by_conversation = self.by_conversation.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = by_conversation.get(conversation).and_then(Weak::upgrade);
        let lock = queue.unwrap_or_else(|| {
            // Entries that nobody holds are removed before the map would grow.
            if by_conversation.len() == by_conversation.capacity() {
                by_conversation.retain(|_, lock| lock.strong_count() > 0);
            }
            let lock = Arc::new(AsyncMutex::new(()));
            by_conversation.insert(conversation.to_owned(), Arc::downgrade(&lock));
            lock
        });
        let mut queue_wait: QueueWait = Box::pin(lock.lock_owned());
        // The first poll enters the queue.
        match (&mut queue_wait).now_or_never() {
            Some(guard) => QueuePlace::Ready(guard),
            None => QueuePlace::Queued(queue_wait),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn access_is_granted_in_order_of_arrival() {
        let queues = ConversationQueues::default();
        let QueuePlace::Ready(first) = queues.enqueue("a") else { panic!("nobody is before it") };
        assert!(matches!(queues.enqueue("b"), QueuePlace::Ready(_)), "another conversation");
        let (second, third) = (queues.enqueue("a"), queues.enqueue("a"));
        drop(first);
        let mut third = Box::pin(third.wait());
        assert!((&mut third).now_or_never().is_none(), "the second one is before it");
        drop(second.wait().await);
        drop(third.await);
        assert!(matches!(queues.enqueue("a"), QueuePlace::Ready(_)));
    }
}
