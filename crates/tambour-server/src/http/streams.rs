//! Registry of open event streams: counts them per owner, and closes streams whose clients stop reading after
//! the message has ended. A dialogue turn counts as a message here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::base::connection::Connection;
use crate::base::durations::millis;
use crate::run::keys::Caller;
use crate::run::live_run::LiveRun;

/// Registry of open event streams.
#[derive(Default)]
pub(crate) struct StreamRegistry(Mutex<OpenStreams>);

#[derive(Default)]
struct OpenStreams {
    /// Number of open streams by owner.
    by_owner: HashMap<String, usize>,
    /// Streams whose connection is known and watched, by number.
    watched: HashMap<u64, WatchedStream>,
    /// Number of the stream that was opened last.
    last_number: u64,
}

/// Stream that is closed if its client stops reading after the message has ended.
struct WatchedStream {
    connection: Arc<Connection>,
    /// Absent if the message had ended before the stream began.
    live_run: Option<Arc<LiveRun>>,
    /// Time at which the message was first seen to have ended, in milliseconds of the connection's clock.
    ended_ms: Option<u64>,
}

/// Open event stream, counted until it is dropped.
pub(crate) struct OpenStream {
    registry: Arc<StreamRegistry>,
    owner: String,
    /// Number in the registry.
    number: u64,
    /// Connection of the client; a stream without one is not watched.
    connection: Option<Arc<Connection>>,
    /// Cancelled when the key that opened the stream is removed.
    pub(crate) removal: CancellationToken,
}

/// Limit on open streams that has been reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamLimit {
    /// Limit of one owner (`max_streams`).
    Owner,
    /// Limit of all owners together (`max_streams_total`).
    Server,
}

impl StreamRegistry {
    /// Registers a stream of the caller.
    ///
    /// # Errors
    /// `max_of_owner` streams of the caller's owner are open, or `max_total` streams of all owners.
    pub(crate) fn open(
        self: &Arc<StreamRegistry>,
        caller: &Caller,
        max_of_owner: usize,
        max_total: usize,
    ) -> Result<OpenStream, StreamLimit> {
        let owner = caller.owner.as_str();
        let mut streams = self.lock();
        let own_count = streams.by_owner.get(owner).copied().unwrap_or_default();
        if own_count >= max_of_owner {
            return Err(StreamLimit::Owner);
        }
        if streams.by_owner.values().sum::<usize>() >= max_total {
            return Err(StreamLimit::Server);
        }
        streams.by_owner.insert(owner.to_owned(), own_count + 1);
        streams.last_number += 1;
        let number = streams.last_number;
        Ok(OpenStream {
            registry: self.clone(),
            owner: owner.to_owned(),
            number,
            connection: caller.connection.clone(),
            removal: caller.removal.clone(),
        })
    }

    /// Returns the number of open streams.
    pub(crate) fn count(&self) -> usize {
        self.lock().by_owner.values().sum()
    }

    /// Closes the connections of streams whose message has ended and whose client has read nothing for
    /// `idle_limit` since then.
    pub(crate) fn close_stalled(&self, idle_limit: Duration) {
        let idle_limit = millis(idle_limit);
        for stream in self.lock().watched.values_mut() {
            let WatchedStream { connection, live_run, ended_ms } = stream;
            if live_run.as_ref().is_some_and(|run| !run.has_ended()) {
                continue;
            }
            let now = connection.elapsed_ms();
            let idle_since = (*ended_ms.get_or_insert(now)).max(connection.last_write_ms());
            if now.saturating_sub(idle_since) >= idle_limit {
                tracing::info!(
                    "a client has stopped reading after its message ended; closing its connection"
                );
                connection.cancel.cancel();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, OpenStreams> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenStream {
    /// Watches the connection from the end of the message on. `live_run` is `None` if the message has already
    /// ended.
    pub(crate) fn watch(&self, live_run: Option<Arc<LiveRun>>) {
        if let Some(connection) = self.connection.clone() {
            self.registry
                .lock()
                .watched
                .insert(self.number, WatchedStream { connection, live_run, ended_ms: None });
        }
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut streams = self.registry.lock();
        streams.watched.remove(&self.number);
        if let Some(own_count) = streams.by_owner.get_mut(&self.owner) {
            *own_count -= 1;
            if *own_count == 0 {
                streams.by_owner.remove(&self.owner);
            }
        }
    }
}
