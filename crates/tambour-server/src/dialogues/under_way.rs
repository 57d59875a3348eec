//! Turns that may come again and are under way: who has lost the answer, and asks again, waits for this one or joins its stream.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::live::Live;
use crate::store::MessageRow;

/// Whose turn it is: its owner, and the word under which it may come again.
type Of = (String, String);

/// The turns that are under way.
#[derive(Default)]
pub(crate) struct UnderWay(Mutex<HashMap<Of, Arc<Begun>>>);

/// The run of a turn.
pub(crate) type Run = (Arc<MessageRow>, Arc<Live>);

/// One of them.
pub(crate) struct Begun {
    /// What was asked for.
    pub(crate) request: String,
    /// Its run, once it has one.
    run: watch::Sender<Option<Run>>,
    over: CancellationToken,
}

/// A turn that has begun, until it is over.
pub(crate) struct Guard {
    all: Arc<UnderWay>,
    of: Of,
    begun: Arc<Begun>,
}

impl UnderWay {
    /// Begins a turn, or finds the one that has begun under the same word.
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
    /// Waits for its run; none if it is over without one.
    pub(crate) async fn run(&self) -> Option<Run> {
        let mut run = self.run.subscribe();
        let begun = tokio::select! {
            biased;
            begun = run.wait_for(Option::is_some) => begun.ok()?.clone(),
            () = self.over() => None,
        };
        begun
    }

    /// Waits until it is over, however it ended.
    pub(crate) async fn over(&self) {
        self.over.cancelled().await;
    }
}

impl Guard {
    /// Others may read this run.
    pub(crate) fn runs(&self, run: Run) {
        self.begun.run.send_replace(Some(run));
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Those who wait find it gone.
        self.all.lock().remove(&self.of);
        self.begun.over.cancel();
    }
}
