//! Takes over the messages of a server that is gone: asks the model again if nobody has seen anything of the
//! reply, and ends the message with `interrupted` otherwise.

use std::sync::Arc;

use serde_json::Value;

use super::new_message::NewMessage;
use crate::base::problem::Problem;
use crate::http::app::App;
use crate::record;
use crate::run::message_start::{self, StartRequest};
use crate::store::{Lease, MessageRow, RunKind, StoreError};

/// Epoch of the lease of the server that takes over first. Only this server asks the model again.
const FIRST_TAKEOVER: i64 = 2;

/// Takes over all abandoned messages and turns. Returns the number taken over. A message that cannot be taken
/// over does not delay the others: it is tried again at the next look.
///
/// # Errors
/// The abandoned messages cannot be listed.
pub(crate) async fn take_over_abandoned(app: &Arc<App>) -> Result<usize, StoreError> {
    let mut count = 0;
    for row in app.store.list_abandoned().await? {
        match take_over(app, &row.id).await {
            Ok(was_taken) => count += usize::from(was_taken),
            Err(error) => {
                tracing::warn!(%error, message_id = row.id, "a message was not taken over; trying again");
            }
        }
    }
    Ok(count)
}

/// Takes over a message or turn. Returns `false` if another server was faster.
async fn take_over(app: &Arc<App>, id: &str) -> Result<bool, StoreError> {
    let Some(lease) = app.store.claim(id).await? else { return Ok(false) };
    match prepare_restart(app, &*lease).await? {
        Some((start_request, opens_conversation)) => {
            // A refusal drops the lease: the message is abandoned again, and ended at the next look.
            let restart = message_start::restart_message(app, start_request, lease, opens_conversation);
            if let Err(refusal) = restart {
                tracing::warn!(message_id = id, code = refusal.code(), "a message is not asked again");
            }
        }
        None => record::close_interrupted(&*app.store, lease, &app.reading_defaults()).await?,
    }
    Ok(true)
}

/// Returns the request to ask the model again, and whether the message opens its conversation; `None` if the
/// message must end.
async fn prepare_restart(
    app: &Arc<App>,
    lease: &dyn Lease,
) -> Result<Option<(StartRequest, bool)>, StoreError> {
    let row = lease.row();
    let is_first_takeover = lease.epoch() == FIRST_TAKEOVER;
    if row.kind != RunKind::Message || !is_first_takeover || !record::is_unseen(lease).await? {
        return Ok(None);
    }
    // Clients of other protocols are gone with their connection, and parts of their requests are not stored.
    let request: Value = serde_json::from_str(&row.request).unwrap_or_default();
    if ["named_model", "as_response"].iter().any(|field| !request[field].is_null()) {
        return Ok(None);
    }
    let opens_conversation = app.store.history_before(row, 1).await?.is_empty();
    match rebuild_request(app, row).await {
        Ok(start_request) => Ok(Some((start_request, opens_conversation))),
        Err(problem) => {
            tracing::warn!(message_id = row.id, code = problem.code(), "a message cannot be asked again");
            Ok(None)
        }
    }
}

/// Rebuilds the request of a message from its row.
async fn rebuild_request(app: &Arc<App>, row: &MessageRow) -> Result<StartRequest, Problem> {
    let caller = app.keys.caller_of_owner(&row.owner);
    let caller = caller.ok_or_else(|| Problem::not_found("the owner has no key, or several"))?;
    let mut new_message = NewMessage::from_stored(row)?;
    new_message.check(app)?;
    let idempotency_key = None;
    new_message.to_start_request(app, &caller, row.request_id.clone(), idempotency_key).await
}
