//! State of the HTTP interface.

use std::ops::Deref;
use std::sync::Arc;

use super::RunningThreads;
use super::idempotency::SecretResponses;
use super::streams::StreamRegistry;
use super::turn_claims::TurnClaims;
use crate::run::engine::RunEngine;

/// The state as handlers receive it.
pub(crate) type AppState = Arc<App>;

/// State that requests share: the engine of the runs, to which it dereferences, and claims, threads and streams of
/// clients.
pub(crate) struct App {
    engine: Arc<RunEngine>,
    /// Idempotency keys of requests in progress.
    pub claims: Arc<SecretResponses>,
    /// Turns of dialogues in progress that a client may repeat.
    pub turn_claims: Arc<TurnClaims>,
    /// Running messages in conversations named by clients.
    pub threads: RunningThreads,
    /// Open event streams.
    pub streams: Arc<StreamRegistry>,
}

impl App {
    /// Creates the state of an interface to `engine`.
    pub(crate) fn new(engine: RunEngine) -> App {
        App {
            engine: Arc::new(engine),
            claims: Arc::default(),
            turn_claims: Arc::default(),
            threads: RunningThreads::default(),
            streams: Arc::default(),
        }
    }
}

impl Deref for App {
    type Target = Arc<RunEngine>;

    fn deref(&self) -> &Arc<RunEngine> {
        &self.engine
    }
}
