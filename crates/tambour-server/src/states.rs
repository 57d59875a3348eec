//! The state of a conversation: what replies are read with, and what clients ask of it (F-110 to F-117).

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tambour::schema::Schema;
use tambour::state::Attached;

use crate::app::App;
use crate::http::problem::Problem;
use crate::store::{MessageRow, StateRow, StoreError};
use crate::turns::Place;

/// Dialects whose replies change the state, or may turn out to.
const CHANGING: [&str; 2] = ["filament", tambour::dialect::AUTO];

/// How long who asks waits for a message that runs.
const PATIENCE: Duration = Duration::from_secs(2);

/// The state that the replies of a message are read with.
pub(crate) struct State {
    /// As the library takes it.
    pub(crate) attached: Attached,
    /// Position of the first update of the message in its conversation.
    pub(crate) start: i64,
}

/// The state of its conversation when a message begins. `known`: the conversation was there before it.
pub(crate) async fn attached(
    app: &App,
    row: &MessageRow,
    known: bool,
    dialect: &str,
) -> Result<Option<State>, StoreError> {
    if !CHANGING.contains(&dialect) {
        return Ok(None);
    }
    let stored = if known { app.store.state(&row.conversation_id).await? } else { None };
    if let Some(stored) = &stored {
        app.store.settle_state(&row.conversation_id, stored).await?;
    }
    let stored = stored.unwrap_or_default();
    let schema = match compiled(app, &stored).await {
        Ok(schema) => schema,
        Err(problem) => {
            // It was taken once, and limits are narrower now: what it would refuse cannot be told.
            tracing::warn!(
                message_id = row.id,
                problem = problem.detail(),
                "the schema of the state is not used"
            );
            None
        }
    };
    let attached = attach(stored.state, row.id.clone(), schema.as_deref());
    Ok(Some(State { attached, start: stored.next }))
}

/// A state to apply operations to.
pub(crate) fn attach(state: Value, id: String, schema: Option<&Schema>) -> Attached {
    Attached { message: id, state, schema: schema.cloned(), ..Attached::default() }
}

/// The schema of a state, compiled.
pub(crate) async fn compiled(app: &App, stored: &StateRow) -> Result<Option<Arc<Schema>>, Problem> {
    let Some(schema) = stored.schema.as_deref().and_then(|text| serde_json::from_str(text).ok()) else {
        return Ok(None);
    };
    let limits = &app.loaded().config.tools;
    app.schemas.get(&app.aside, &schema, limits).await.map(Some)
}

/// The turn in a conversation, for a change that is done soon.
pub(crate) async fn turn(app: &App, conversation: &str) -> Result<Place, Problem> {
    let reached = tokio::time::timeout(PATIENCE, app.turns.queue(conversation).reached()).await;
    reached.map(Place::Free).map_err(|_| {
        Problem::conflict(
            "conversation_busy",
            "a message of the conversation runs; its state changes when that has ended",
        )
    })
}

/// Waits for messages that have ended a moment ago: what they came to is known right after their last event.
pub(crate) async fn settled(app: &App, conversation: &str) -> Result<(), Problem> {
    for live in app.live.all() {
        if !live.has_ended() {
            continue;
        }
        let Some(row) = app.store.message(&live.id).await? else { continue };
        if row.conversation_id == conversation {
            live.ended().await;
        }
    }
    Ok(())
}
