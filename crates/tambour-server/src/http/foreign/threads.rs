//! Conversations that clients name themselves: chats of the AI SDK, threads of AG-UI.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};

use crate::base::ids;
use crate::base::problem::Problem;
use crate::http::app::App;
use crate::http::keys::Caller;
use crate::run::live_run::LiveRun;
use crate::store::ConversationRow;

/// Maximum length in bytes of a client's name for a conversation.
const MAX_NAME_BYTES: usize = 256;

/// Ids of the running messages of AI SDK chats, by the id of the conversation. Threads of AG-UI are not
/// registered, since that protocol has no requests for a running message.
#[derive(Default)]
pub(crate) struct RunningThreads(Mutex<HashMap<String, String>>);

impl RunningThreads {
    /// Registers a message that has begun. Entries of ended messages are dropped.
    pub(super) fn register(&self, app: &App, conversation: &str, message: &str) {
        let mut running_messages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running_messages.retain(|_, message| app.running.get(message).is_some());
        running_messages.insert(conversation.to_owned(), message.to_owned());
    }

    /// Returns the running message of a conversation.
    pub(super) fn running_message(&self, app: &App, conversation: &str) -> Option<Arc<LiveRun>> {
        let running_messages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A message that has just ended may still be in the registry of running ones.
        app.running.get(running_messages.get(conversation)?).filter(|live_run| !live_run.has_ended())
    }
}

/// Derives the id of the conversation that a client calls `name`; `kind` is the word of the client's protocol
/// for a conversation. The same owner, kind and name always give the same id.
pub(super) fn conversation_id(caller: &Caller, kind: &str, name: &str) -> Result<String, Problem> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        let detail = format!("the id of a {kind} must have 1 to {MAX_NAME_BYTES} bytes");
        return Err(Problem::invalid("invalid_field", detail).with("field", "id"));
    }
    let mut hash = Sha256::new();
    // The lengths separate the parts: `ab` and `c` hash differently from `a` and `bc`.
    for part in [kind, &caller.owner, name] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    // Half of the hash is enough: 128 bits.
    let digits: String = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("conv_{digits}"))
}

/// Returns the id of the conversation that a client calls `name`, and creates it if needed.
pub(super) async fn find_or_create(
    app: &App,
    caller: &Caller,
    kind: &str,
    name: &str,
) -> Result<String, Problem> {
    let id = conversation_id(caller, kind, name)?;
    if app.store.conversation(&id).await?.is_none() {
        let row = ConversationRow {
            id: id.clone(),
            owner: caller.owner.clone(),
            created: ids::now(),
            metadata: Some(serde_json::json!({ kind: name }).to_string()),
            ..ConversationRow::default()
        };
        // Another request may have created it meanwhile.
        if let Err(error) = app.store.insert_conversation(&row).await
            && app.store.conversation(&id).await?.is_none()
        {
            return Err(error.into());
        }
    }
    Ok(id)
}
