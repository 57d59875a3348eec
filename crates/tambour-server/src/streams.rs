//! The event streams that are open: counted, and cut off when their reader has stopped for good.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::connection::Connection;
use crate::fail;
use crate::keys::Caller;
use crate::live::Live;

/// The event streams that are open.
#[derive(Default)]
pub(crate) struct Streams(Mutex<Open>);

#[derive(Default)]
struct Open {
    by_owner: HashMap<String, usize>,
    /// Those whose connection is known, by a number of their own.
    watched: HashMap<u64, Watched>,
    next: u64,
}

/// A stream that is cut off when nobody takes what it has.
struct Watched {
    connection: Arc<Connection>,
    /// Absent for a message that had ended before.
    live: Option<Arc<Live>>,
    /// When the message was first seen to have ended.
    ended: Option<u64>,
}

/// One open event stream, counted as long as it lives.
pub(crate) struct Opened {
    streams: Arc<Streams>,
    owner: String,
    number: u64,
    connection: Option<Arc<Connection>>,
    /// Ends when the key is removed that it was opened with.
    pub(crate) removed: CancellationToken,
}

/// Who has as many streams as there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// The one who asks.
    Owner,
    /// All together.
    Server,
}

impl Streams {
    /// One more stream of an owner, unless that one has `most` already, or all have `total`.
    pub(crate) fn open(
        self: &Arc<Streams>,
        caller: &Caller,
        most: usize,
        total: usize,
    ) -> Result<Opened, Full> {
        let owner = caller.owner.as_str();
        let mut open = self.lock();
        let mine = open.by_owner.get(owner).copied().unwrap_or_default();
        if mine >= most {
            return Err(Full::Owner);
        }
        if open.by_owner.values().sum::<usize>() >= total {
            return Err(Full::Server);
        }
        open.by_owner.insert(owner.to_owned(), mine + 1);
        open.next += 1;
        let number = open.next;
        Ok(Opened {
            streams: self.clone(),
            owner: owner.to_owned(),
            number,
            connection: caller.connection.clone(),
            removed: caller.removed.clone(),
        })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.lock().by_owner.values().sum()
    }

    /// Cuts off those whose message ended that long ago and whose client has taken nothing since.
    fn cut(&self, patience: Duration) {
        let patience = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        for watched in self.lock().watched.values_mut() {
            let Watched { connection, live, ended } = watched;
            if live.as_ref().is_some_and(|live| !live.has_ended()) {
                continue;
            }
            let now = connection.now();
            let since = (*ended.get_or_insert(now)).max(connection.written());
            if now.saturating_sub(since) >= patience {
                tracing::info!(
                    "a reader has taken nothing since its message ended; its connection is closed"
                );
                connection.cut.cancel();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Opened {
    /// Looks after the connection once the message has ended; absent, it has.
    pub(crate) fn watch(&self, live: Option<Arc<Live>>) {
        if let Some(connection) = self.connection.clone() {
            self.streams.lock().watched.insert(self.number, Watched { connection, live, ended: None });
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let mut open = self.streams.lock();
        open.watched.remove(&self.number);
        if let Some(mine) = open.by_owner.get_mut(&self.owner) {
            *mine -= 1;
            if *mine == 0 {
                open.by_owner.remove(&self.owner);
            }
        }
    }
}

/// Looks after the streams until the server stops.
pub(crate) async fn watch(app: Arc<App>) {
    loop {
        let patience = Duration::from_millis(app.loaded().config.reader_idle_ms);
        tokio::select! {
            () = tokio::time::sleep((patience / 4).clamp(Duration::from_millis(20), Duration::from_secs(5))) => {}
            () = app.closing.cancelled() => return,
        }
        fail::point("watch");
        app.streams.cut(patience);
    }
}
