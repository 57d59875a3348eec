//! Dialogue turns in progress that have an idempotency key: a client that lost the response and repeats its
//! request waits for the turn or joins its stream.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::run::live_run::LiveRun;
use crate::store::MessageRow;

/// Owner and idempotency key of a turn's request.
type TurnKey = (String, String);

/// Registry of turns in progress that have an idempotency key.
#[derive(Default)]
pub(crate) struct TurnClaims(Mutex<HashMap<TurnKey, Arc<ClaimedTurn>>>);

/// Row and live run of a turn.
pub(crate) type TurnRun = (Arc<MessageRow>, Arc<LiveRun>);

/// Turn in progress, as repeated requests see it.
pub(crate) struct ClaimedTurn {
    /// Request of the turn, which a repetition must equal.
    pub(crate) request: String,
    /// Run of the turn, once it has one.
    run: watch::Sender<Option<TurnRun>>,
    /// Cancelled when the turn is over.
    over_token: CancellationToken,
}

/// Claim of the first request on its turn; dropping it removes the turn from the registry.
pub(crate) struct TurnClaim {
    claims: Arc<TurnClaims>,
    key: TurnKey,
    turn: Arc<ClaimedTurn>,
}

impl TurnClaims {
    /// Registers a turn, or returns the turn in progress that has the same key.
    pub(crate) fn claim(
        self: &Arc<TurnClaims>,
        owner: &str,
        idempotency_key: &str,
        request: &str,
    ) -> Result<TurnClaim, Arc<ClaimedTurn>> {
        let key = (owner.to_owned(), idempotency_key.to_owned());
        match self.lock().entry(key.clone()) {
            Entry::Occupied(occupied) => Err(occupied.get().clone()),
            Entry::Vacant(vacant) => {
                let claimed_turn = ClaimedTurn {
                    request: request.to_owned(),
                    run: watch::Sender::default(),
                    over_token: CancellationToken::new(),
                };
                let turn = vacant.insert(Arc::new(claimed_turn)).clone();
                Ok(TurnClaim { claims: self.clone(), key, turn })
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TurnKey, Arc<ClaimedTurn>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClaimedTurn {
    /// Waits for the run; `None` if the turn ends without one.
    pub(crate) async fn wait_run(&self) -> Option<TurnRun> {
        let mut run_receiver = self.run.subscribe();
        let result = tokio::select! {
            biased;
            result = run_receiver.wait_for(Option::is_some) => result.ok()?.clone(),
            () = self.wait_over() => None,
        };
        result
    }

    /// Waits until the turn is over.
    pub(crate) async fn wait_over(&self) {
        self.over_token.cancelled().await;
    }
}

impl TurnClaim {
    /// Publishes the run to repeated requests that wait for it.
    pub(crate) fn publish_run(&self, run: TurnRun) {
        self.turn.run.send_replace(Some(run));
    }
}

impl Drop for TurnClaim {
    fn drop(&mut self) {
        // Removed first, so that requests woken by the token no longer find the turn.
        self.claims.lock().remove(&self.key);
        self.turn.over_token.cancel();
    }
}
