//! State of conversations: attached to replies that read it, and changed by clients (F-110 to F-117).

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
use crate::store::{MessageRow, ROUTE_UPDATE, StateRow, StoreError, StoredUpdate};
use tokio::sync::OwnedMutexGuard;

/// Dialects whose replies change the state, or may turn out to be one that does.
const STATEFUL_DIALECTS: [&str; 2] = ["filament", tambour::dialect::AUTO];

/// Longest wait of a change for a running message.
const TURN_TIMEOUT: Duration = Duration::from_secs(2);

/// State that the replies of a message start from.
pub(crate) struct MessageState {
    /// State in the library's form.
    pub(crate) attached: AttachedState,
    /// Position of the message's first update within its conversation.
    pub(crate) start: i64,
}

/// Loads the state of the conversation when a message begins. `is_existing`: the conversation existed before it.
pub(crate) async fn load_message_state(
    engine: &RunEngine,
    row: &MessageRow,
    is_existing: bool,
    dialect: &str,
) -> Result<Option<MessageState>, StoreError> {
    if !STATEFUL_DIALECTS.contains(&dialect) {
        return Ok(None);
    }
    let stored_state = if is_existing { engine.store.state(&row.conversation_id).await? } else { None };
    if let Some(stored_state) = &stored_state {
        engine.store.store_snapshot(&row.conversation_id, stored_state).await?;
    }
    let stored_state = stored_state.unwrap_or_default();
    let schema = match compile_state_schema(engine, &row.owner, &stored_state).await {
        Ok(schema) => schema,
        Err(problem) => {
            // It was valid when it was stored, but limits are narrower now; without it, operations are
            // applied unchecked.
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

/// Prepares a state for applying operations.
pub(crate) fn attach_state(state: Value, id: String, schema: Option<&Schema>) -> AttachedState {
    AttachedState { message: id, state, schema: schema.cloned(), ..AttachedState::default() }
}

/// Returns the compiled schema of a state.
pub(crate) async fn compile_state_schema(
    engine: &RunEngine,
    owner: &str,
    schema_text: &StateRow,
) -> Result<Option<Arc<Schema>>, Problem> {
    let Some(schema) = schema_text.schema.as_deref().and_then(|text| serde_json::from_str(text).ok()) else {
        return Ok(None);
    };
    let limits = &engine.loaded_config().config.tools;
    engine.schemas.get((&engine.cpu_pool, owner), &schema, limits).await.map(Some)
}

/// Waits for the turn in a conversation, for a quick change. Fails with a conflict after two seconds.
pub(crate) async fn wait_change_turn(
    engine: &RunEngine,
    conversation: &str,
) -> Result<OwnedMutexGuard<()>, Problem> {
    let turn = async {
        engine.store.wait_idle(conversation).await;
        engine.turns.enqueue(conversation).wait().await
    };
    tokio::time::timeout(TURN_TIMEOUT, turn).await.map_err(|_| {
        Problem::conflict(
            "conversation_busy",
            "a message of the conversation is running; change the state after it has ended",
        )
    })
}

/// Returns the version of a state with its schema: a hash of both.
pub(crate) fn state_version(state: &str, schema: Option<&str>) -> String {
    let mut hash = Sha256::new();
    hash.update(state);
    // Separator that occurs in no JSON text.
    hash.update([0]);
    hash.update(schema.unwrap_or_default());
    hash.finalize()[..12].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Refuses a change that is based on another version of the state.
pub(crate) fn check_version(row: &StateRow, based_on: Option<&str>) -> Result<(), Problem> {
    let Some(base) = based_on else { return Ok(()) };
    let now = run_in_place(|| state_version(&row.state.to_string(), row.schema.as_deref()));
    if now == base {
        return Ok(());
    }
    let schema: Option<Value> = row.schema.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let detail = "the state has changed in the meantime; `present` is the current state";
    let problem = Problem::new(StatusCode::PRECONDITION_FAILED, "changed_meanwhile", detail);
    Err(problem.with("present", json!({"state": row.state, "schema": schema, "version": now})))
}

/// Result of a change.
pub(crate) struct ChangedState {
    /// Id of the update, if anything was changed.
    pub(crate) update: Option<String>,
    /// Results of the operations.
    pub(crate) applied: AppliedBlock,
    /// The state after it.
    pub(crate) state: Value,
    /// The version after it.
    pub(crate) version: String,
}

/// Applies operations to the state of a conversation as a separate update.
pub(crate) async fn change_state(
    engine: &Arc<RunEngine>,
    (owner, conversation): (&str, &str),
    operations: Vec<Operation>,
    analysis: String,
    atomic: bool,
    based_on: Option<&str>,
) -> Result<ChangedState, Problem> {
    let (work, owner, id) = (engine.clone(), owner.to_owned(), conversation.to_owned());
    let based_on = based_on.map(str::to_owned);
    // Operations are dropped if the client disconnects; once applied, they are stored.
    let drop_flag = DropFlag::default();
    let is_abandoned = Arc::clone(&drop_flag.0);
    engine
        .run_to_completion(async move {
            let _turn = wait_change_turn(&work, &id).await?;
            let row = work.store.state(&id).await?.unwrap_or_default();
            check_version(&row, based_on.as_deref())?;
            let schema = compile_state_schema(&work, &owner, &row).await?;
            let update = ids::new_id(ROUTE_UPDATE);
            let (name, before, next) = (update.clone(), row.state, row.next_position);
            // Each operation may scan the whole state.
            let apply = move || {
                let mut new_state = attach_state(before, name, schema.as_deref());
                let applied =
                    new_state.apply_until_stopped(&analysis, operations, atomic, Some(&is_abandoned));
                if is_abandoned.load(Ordering::Relaxed) {
                    // The client is gone and sees no error.
                    return Err(Problem::internal());
                }
                // Serialized directly: a tree of values would copy it several times.
                let text = serde_json::to_string(&applied).map_err(|_| Problem::internal())?;
                let texts = (text, new_state.state.to_string());
                Ok::<_, Problem>((applied, new_state.state, texts))
            };
            let text_of_schema = row.schema;
            let (applied, state, texts) = work.cpu_pool.run(&owner, apply).await??;
            let has_changed = applied.results.iter().any(|result| result.ok);
            if has_changed {
                let stored_update = StoredUpdate { position: next, applied: texts.0 };
                let created_at = ids::now();
                if !work.store.add_state_update(&id, &update, &stored_update, (&created_at, &texts.1)).await?
                {
                    return Err(Problem::not_found(format!("there is no conversation `{id}`")));
                }
            }
            let version = run_in_place(|| state_version(&texts.1, text_of_schema.as_deref()));
            Ok(ChangedState { update: has_changed.then_some(update), applied, state, version })
        })
        .await
}

/// Returns the state before a message that begins, or `None` if there is none yet.
pub(crate) async fn state_before(engine: &RunEngine, conversation: &str) -> Result<Option<Value>, Problem> {
    Ok(engine.store.state(conversation).await?.map(|row| row.state))
}
