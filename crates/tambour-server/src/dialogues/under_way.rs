//! Repeatable turns in progress: a client that lost the response and repeats its request waits for the turn
//! or joins its stream.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::live::Live;
use crate::store::MessageRow;

/// Owner and idempotency key of a turn.
type Of = (String, String);

/// Repeatable turns in progress.
#[derive(Default)]
pub(crate) struct UnderWay(Mutex<HashMap<Of, Arc<Begun>>>);

/// Run of a turn.
pub(crate) type Run = (Arc<MessageRow>, Arc<Live>);

/// Turn in progress.
pub(crate) struct Begun {
    /// Request of the turn.
    pub(crate) request: String,
    /// Run of the turn, once it has one.
    run: watch::Sender<Option<Run>>,
    over: CancellationToken,
}

/// Guard of a turn in progress; dropping it ends the entry.
pub(crate) struct Guard {
    all: Arc<UnderWay>,
    of: Of,
    begun: Arc<Begun>,
}

impl UnderWay {
    /// Registers a turn, or returns the one in progress with the same key.
    pub(crate) fn begin(
        self: &Arc<UnderWay>,
        owner: &str,
        word: &str,
        request: &str,
    ) -> Result<Guard, Arc<Begun>> {
        let of = (owner.to_owned(), word.to_owned());
        match self.lock().entry(of.clone()) {
            Entry::Occupied(begun) => Err(begun.get().clone()),
            Entry::Vacant(place) => {
                let begun = Begun {
                    request: request.to_owned(),
                    run: watch::Sender::default(),
                    over: CancellationToken::new(),
                };
                let begun = place.insert(Arc::new(begun)).clone();
                Ok(Guard { all: self.clone(), of, begun })
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Of, Arc<Begun>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Begun {
    /// Waits for the run; `None` if the turn ends without one.
    pub(crate) async fn run(&self) -> Option<Run> {
        let mut run = self.run.subscribe();
        let begun = tokio::select! {
            biased;
            begun = run.wait_for(Option::is_some) => begun.ok()?.clone(),
            () = self.over() => None,
        };
        begun
    }

    /// Waits until the turn is over.
    pub(crate) async fn over(&self) {
        self.over.cancelled().await;
    }
}

impl Guard {
    /// Publishes the run for others to read.
    pub(crate) fn runs(&self, run: Run) {
        self.begun.run.send_replace(Some(run));
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Waiting requests find it gone.
        self.all.lock().remove(&self.of);
        self.begun.over.cancel();
    }
}
