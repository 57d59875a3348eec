//! Open event streams: counted per owner, and closed when their client has stopped reading for good.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::base::connection::Connection;
use crate::run::keys::Caller;
use crate::run::live_run::LiveRun;

/// Registry of open event streams.
#[derive(Default)]
pub(crate) struct StreamRegistry(Mutex<OpenStreams>);

#[derive(Default)]
struct OpenStreams {
    by_owner: HashMap<String, usize>,
    /// Streams with a known connection, by number.
    watched: HashMap<u64, WatchedStream>,
    next: u64,
}

/// Stream that is closed when its client stops reading.
struct WatchedStream {
    connection: Arc<Connection>,
    /// Absent if the message had ended before the stream began.
    live_run: Option<Arc<LiveRun>>,
    /// Time at which the message was first seen to have ended.
    ended_ms: Option<u64>,
}

/// Open event stream, counted until it is dropped.
pub(crate) struct OpenStream {
    streams: Arc<StreamRegistry>,
    owner: String,
    number: u64,
    connection: Option<Arc<Connection>>,
    /// Cancelled when the key that opened it is removed.
    pub(crate) removal: CancellationToken,
}

/// Limit that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamLimit {
    /// Streams of this owner.
    Owner,
    /// Streams of the server.
    Server,
}

impl StreamRegistry {
    /// Registers a stream of an owner, up to `max` per owner and `total` in all.
    pub(crate) fn open(
        self: &Arc<StreamRegistry>,
        caller: &Caller,
        max: usize,
        total: usize,
    ) -> Result<OpenStream, StreamLimit> {
        let owner = caller.owner.as_str();
        let mut open = self.lock();
        let own_count = open.by_owner.get(owner).copied().unwrap_or_default();
        if own_count >= max {
            return Err(StreamLimit::Owner);
        }
        if open.by_owner.values().sum::<usize>() >= total {
            return Err(StreamLimit::Server);
        }
        open.by_owner.insert(owner.to_owned(), own_count + 1);
        open.next += 1;
        let number = open.next;
        Ok(OpenStream {
            streams: self.clone(),
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

    /// Closes streams whose message ended `patience` ago and whose client has read nothing since.
    pub(crate) fn close_stalled(&self, patience: Duration) {
        let patience = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        for stream in self.lock().watched.values_mut() {
            let WatchedStream { connection, live_run, ended_ms } = stream;
            if live_run.as_ref().is_some_and(|run| !run.has_ended()) {
                continue;
            }
            let now = connection.elapsed_ms();
            let since = (*ended_ms.get_or_insert(now)).max(connection.last_write_ms());
            if now.saturating_sub(since) >= patience {
                tracing::info!("a client has read nothing since its message ended; closing its connection");
                connection.cancel.cancel();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, OpenStreams> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenStream {
    /// Watches the connection once the message has ended; `None` stands for one that has ended already.
    pub(crate) fn watch(&self, live_run: Option<Arc<LiveRun>>) {
        if let Some(connection) = self.connection.clone() {
            self.streams
                .lock()
                .watched
                .insert(self.number, WatchedStream { connection, live_run, ended_ms: None });
        }
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut open = self.streams.lock();
        open.watched.remove(&self.number);
        if let Some(own_count) = open.by_owner.get_mut(&self.owner) {
            *own_count -= 1;
            if *own_count == 0 {
                open.by_owner.remove(&self.owner);
            }
        }
    }
}
