//! State of the HTTP interface, shared by all requests.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use super::RunningThreads;
use super::idempotency::MemoryResponses;
use super::streams::StreamRegistry;
use super::turn_claims::TurnClaims;
use crate::run::engine::RunEngine;

/// State as handlers receive it.
pub(crate) type AppState = Arc<App>;

/// State that requests share: the engine of the runs and what only the HTTP interface needs. Dereferences to
/// the engine.
pub(crate) struct App {
    engine: Arc<RunEngine>,
    /// Responses to requests with an idempotency key that are kept in memory only.
    pub memory_responses: Arc<MemoryResponses>,
    /// Dialogue turns in progress whose request a client may repeat.
    pub turn_claims: Arc<TurnClaims>,
    /// Running messages of AI SDK chats. Clients choose the names of these chats.
    pub threads: RunningThreads,
    /// Open event streams.
    pub streams: Arc<StreamRegistry>,
    /// Secret that the servers which share the database show each other; not set if there are none.
    pub cluster_secret: OnceLock<String>,
}

impl App {
    /// Creates the state around `engine`.
    pub(crate) fn new(engine: RunEngine) -> App {
        App {
            engine: Arc::new(engine),
            memory_responses: Arc::default(),
            turn_claims: Arc::default(),
            threads: RunningThreads::default(),
            streams: Arc::default(),
            cluster_secret: OnceLock::new(),
        }
    }
}

impl Deref for App {
    type Target = Arc<RunEngine>;

    fn deref(&self) -> &Arc<RunEngine> {
        &self.engine
    }
}
