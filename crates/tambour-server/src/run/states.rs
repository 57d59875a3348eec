//! State of conversations, as JSON, which the replies of messages and clients change (F-110 to F-117).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tambour::schema::Schema;
use tambour::state::{AppliedBlock, AttachedState, Operation};

use crate::base::cpu_pool::{DropFlag, run_in_place};
use crate::base::ids;
use crate::base::problem::Problem;
use crate::run::engine::RunEngine;
use crate::run::turns::ConversationGuard;
use crate::store::{MessageRow, ROUTE_UPDATE, StateRow, StoreError, StoredUpdate};

/// Dialects whose replies change the state: `filament`, and `auto`, which may detect it.
const STATEFUL_DIALECTS: [&str; 2] = ["filament", tambour::dialect::AUTO];

/// Longest wait of a client's change for running messages.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// State that the replies of a message start from.
pub(crate) struct MessageState {
    /// State as the pipeline of a reply needs it.
    pub(crate) attached: AttachedState,
    /// Position of the message's first update within its conversation.
    pub(crate) start: i64,
}

/// Loads the state of the conversation when a message begins; `None` if the dialect changes no state. With
/// `continues_conversation`, the conversation existed before the message.
pub(crate) async fn load_message_state(
    engine: &RunEngine,
    row: &MessageRow,
    continues_conversation: bool,
    dialect: &str,
) -> Result<Option<MessageState>, StoreError> {
    if !STATEFUL_DIALECTS.contains(&dialect) {
        return Ok(None);
    }
    let stored_state =
        if continues_conversation { engine.store.state(&row.conversation_id).await? } else { None };
    if let Some(stored_state) = &stored_state {
        // Later reads of the state then apply fewer updates.
        engine.store.store_snapshot(&row.conversation_id, stored_state).await?;
    }
    let stored_state = stored_state.unwrap_or_default();
    let schema = match compile_state_schema(engine, &row.owner, &stored_state).await {
        Ok(schema) => schema,
        Err(problem) => {
            // The schema was valid when it was stored, but the limits are narrower now. Without a
            // schema, operations are applied unchecked.
            tracing::warn!(
                message_id = row.id,
                problem = problem.detail(),
                "the schema of the state cannot be used and is ignored"
            );
            None
        }
    };
    let attached = attach_state(stored_state.state, row.id.clone(), schema.as_deref());
    Ok(Some(MessageState { attached, start: stored_state.next_position }))
}

/// Prepares a state for operations of the message or update with this id.
pub(crate) fn attach_state(state: Value, id: String, schema: Option<&Schema>) -> AttachedState {
    AttachedState { message: id, state, schema: schema.cloned(), ..AttachedState::default() }
}

/// Compiles the schema of a state; `None` without one.
///
/// # Errors
/// The schema is too large or takes too long for the configured limits.
pub(crate) async fn compile_state_schema(
    engine: &RunEngine,
    owner: &str,
    row: &StateRow,
) -> Result<Option<Arc<Schema>>, Problem> {
    let Some(schema) = row.schema.as_deref().and_then(|text| serde_json::from_str(text).ok()) else {
        return Ok(None);
    };
    let limits = &engine.loaded_config().config.tools;
    engine.schemas.get((&engine.cpu_pool, owner), &schema, limits).await.map(Some)
}

/// Locks a conversation for a quick change, until the guard is dropped.
///
/// # Errors
/// Messages of the conversation were still running after [`LOCK_TIMEOUT`].
pub(crate) async fn lock_conversation(
    engine: &RunEngine,
    conversation: &str,
) -> Result<ConversationGuard, Problem> {
    let locking = async {
        engine.store.wait_idle(conversation).await;
        engine.conversation_queues.enter(conversation).await
    };
    tokio::time::timeout(LOCK_TIMEOUT, locking).await.map_err(|_| {
        Problem::conflict(
            "conversation_busy",
            "a message of the conversation is running; change the state after it has ended",
        )
    })
}

/// Returns the version of a state with its schema: 12 bytes of a hash of both, in hexadecimal digits.
pub(crate) fn state_version(state: &str, schema: Option<&str>) -> String {
    let mut hash = Sha256::new();
    hash.update(state);
    // Separator that occurs in no JSON text.
    hash.update([0]);
    hash.update(schema.unwrap_or_default());
    hash.finalize()[..12].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Refuses a change that is based on another version of the state; `None` means any version.
pub(crate) fn check_version(row: &StateRow, based_on: Option<&str>) -> Result<(), Problem> {
    let Some(base_version) = based_on else { return Ok(()) };
    let current_version = run_in_place(|| state_version(&row.state.to_string(), row.schema.as_deref()));
    if current_version == base_version {
        return Ok(());
    }
    let schema: Option<Value> = row.schema.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let detail = "the state has changed in the meantime; `present` is the current state";
    let problem = Problem::new(StatusCode::PRECONDITION_FAILED, "changed_meanwhile", detail);
    Err(problem.with("present", json!({"state": row.state, "schema": schema, "version": current_version})))
}

/// Result of a change.
pub(crate) struct ChangedState {
    /// Id of the update, if anything was changed.
    pub(crate) update: Option<String>,
    /// Results of the operations.
    pub(crate) applied: AppliedBlock,
    /// State after the change.
    pub(crate) state: Value,
    /// Version after the change.
    pub(crate) version: String,
}

/// Applies operations of a client to the state of a conversation, as an update that belongs to no message.
/// `analysis` is the client's note on them, stored with the update. If `atomic`, none is applied unless all
/// succeed. `based_on` is the version that the state must have; `None` means any version.
///
/// # Errors
/// The conversation is busy or unknown, its state has another version, or the client has disconnected.
pub(crate) async fn change_state(
    engine: &Arc<RunEngine>,
    (owner, conversation): (&str, &str),
    operations: Vec<Operation>,
    analysis: String,
    atomic: bool,
    based_on: Option<&str>,
) -> Result<ChangedState, Problem> {
    let (task_engine, owner, id) = (engine.clone(), owner.to_owned(), conversation.to_owned());
    let based_on = based_on.map(str::to_owned);
    // Operations are dropped if the client disconnects; once applied, they are stored.
    let drop_flag = DropFlag::default();
    let is_abandoned = Arc::clone(&drop_flag.0);
    engine
        .run_to_completion(async move {
            let _guard = lock_conversation(&task_engine, &id).await?;
            let row = task_engine.store.state(&id).await?.unwrap_or_default();
            check_version(&row, based_on.as_deref())?;
            let schema = compile_state_schema(&task_engine, &owner, &row).await?;
            let update = ids::new_id(ROUTE_UPDATE);
            let (update_id, old_state, position) = (update.clone(), row.state, row.next_position);
            // Each operation may scan the whole state.
            let apply = move || {
                let mut attached = attach_state(old_state, update_id, schema.as_deref());
                let applied =
                    attached.apply_until_stopped(&analysis, operations, atomic, Some(&is_abandoned));
                if is_abandoned.load(Ordering::Relaxed) {
                    // The client is gone and sees no error.
                    return Err(Problem::internal());
                }
                // Serialized directly: a tree of values would copy it several times.
                let applied_json = serde_json::to_string(&applied).map_err(|_| Problem::internal())?;
                let state_json = attached.state.to_string();
                Ok::<_, Problem>((applied, attached.state, applied_json, state_json))
            };
            let schema_text = row.schema;
            let (applied, state, applied_json, state_json) =
                task_engine.cpu_pool.run(&owner, apply).await??;
            let has_changed = applied.results.iter().any(|result| result.ok);
            if has_changed {
                let stored_update = StoredUpdate { position, applied: applied_json };
                let created_at = ids::now();
                let was_added = task_engine
                    .store
                    .add_state_update(&id, &update, &stored_update, (&created_at, &state_json))
                    .await?;
                if !was_added {
                    return Err(Problem::not_found(format!("there is no conversation `{id}`")));
                }
            }
            let version = run_in_place(|| state_version(&state_json, schema_text.as_deref()));
            Ok(ChangedState { update: has_changed.then_some(update), applied, state, version })
        })
        .await
}

/// Returns the current state of a conversation, before a message that is about to begin; `None` if it has no
/// state yet.
pub(crate) async fn state_before(engine: &RunEngine, conversation: &str) -> Result<Option<Value>, Problem> {
    Ok(engine.store.state(conversation).await?.map(|row| row.state))
}
