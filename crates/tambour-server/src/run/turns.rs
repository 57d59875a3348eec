//! Exclusive access to a conversation or dialogue: its messages, turns and other changes run one at a time, on
//! all servers that share the database. Messages run in the order in which they were stored: a message first
//! waits until the earlier ones have ended (`Lease::wait_earlier_runs`), and enters the queue only then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::store::{ConversationLock, Store};

/// Pause between two attempts to get access while another server has it.
const REMOTE_PAUSE: Duration = Duration::from_millis(50);
/// Pause after an attempt that the database did not answer.
const ERROR_PAUSE: Duration = Duration::from_millis(500);

/// Queues of all conversations in which something runs or waits.
pub(crate) struct ConversationQueues {
    local: LocalQueues,
    store: Arc<dyn Store>,
}

/// Queues of this server.
#[derive(Default)]
struct LocalQueues {
    by_conversation: Mutex<HashMap<String, Weak<AsyncMutex<()>>>>,
}

/// Exclusive access to a conversation or dialogue, until it is dropped.
pub(crate) struct ConversationGuard {
    /// Access that the other servers respect; `None` if no other server uses the database.
    shared: Option<Box<dyn ConversationLock>>,
    /// Access on this server, given up after the shared access.
    _local: OwnedMutexGuard<()>,
}

impl ConversationQueues {
    /// Creates the queues. Servers that share the database of `store` have access one at a time, too.
    pub(crate) fn new(store: Arc<dyn Store>) -> ConversationQueues {
        ConversationQueues { local: LocalQueues::default(), store }
    }

    /// Waits for access to a conversation. The first poll enters the queue of this server.
    pub(crate) async fn enter(&self, conversation: &str) -> ConversationGuard {
        let local = self.local.lock_of(conversation).lock_owned().await;
        let mut guard = self.guard(conversation, local);
        if let Some(lock) = &mut guard.shared {
            loop {
                match lock.take().await {
                    Ok(true) => break,
                    Ok(false) => tokio::time::sleep(REMOTE_PAUSE).await,
                    Err(error) => {
                        tracing::error!(%error, conversation, "a conversation could not be locked; trying again");
                        tokio::time::sleep(ERROR_PAUSE).await;
                    }
                }
            }
        }
        guard
    }

    /// Returns access to a conversation if nobody has it.
    pub(crate) async fn try_enter(&self, conversation: &str) -> Option<ConversationGuard> {
        let local = self.local.lock_of(conversation).try_lock_owned().ok()?;
        let mut guard = self.guard(conversation, local);
        let has_access = match &mut guard.shared {
            Some(lock) => matches!(lock.take().await, Ok(true)),
            None => true,
        };
        has_access.then_some(guard)
    }

    /// Creates the guard of access that the other servers have not granted yet.
    fn guard(&self, conversation: &str, local: OwnedMutexGuard<()>) -> ConversationGuard {
        let shared = self.store.cluster().map(|cluster| cluster.conversation_lock(conversation));
        ConversationGuard { shared, _local: local }
    }
}

impl LocalQueues {
    /// Returns the lock of a conversation, which grants access in the order of arrival.
    fn lock_of(&self, conversation: &str) -> Arc<AsyncMutex<()>> {
        let mut by_conversation = self.by_conversation.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = by_conversation.get(conversation).and_then(Weak::upgrade);
        queue.unwrap_or_else(|| {
            // Entries that nobody holds are removed before the map would grow.
            if by_conversation.len() == by_conversation.capacity() {
                by_conversation.retain(|_, lock| lock.strong_count() > 0);
            }
            let lock = Arc::new(AsyncMutex::new(()));
            by_conversation.insert(conversation.to_owned(), Arc::downgrade(&lock));
            lock
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::LocalQueues;

    #[tokio::test]
    async fn access_is_granted_in_order_of_arrival() {
        let queues = LocalQueues::default();
        let first = queues.lock_of("a").try_lock_owned().expect("nobody is before it");
        assert!(queues.lock_of("b").try_lock_owned().is_ok(), "another conversation");
        let (mut second, mut third) =
            (Box::pin(queues.lock_of("a").lock_owned()), Box::pin(queues.lock_of("a").lock_owned()));
        // The first poll enters the queue.
        assert!((&mut second).now_or_never().is_none());
        assert!((&mut third).now_or_never().is_none());
        drop(first);
        assert!((&mut third).now_or_never().is_none(), "the second one is before it");
        drop(second.await);
        drop(third.await);
        assert!(queues.lock_of("a").try_lock_owned().is_ok());
    }
}
