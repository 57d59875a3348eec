//! Asking a model: the one way in which a message begins, whatever route it came by.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::json;
use tambour::prompt::lore::Timed;

use crate::app::App;
use crate::drive::{self, Choice, Offer, Run};
use crate::history::{self, Sent};
use crate::http::problem::Problem;
use crate::ids;
use crate::keys::Caller;
use crate::live::{Live, Reading};
use crate::metrics::Metrics;
use crate::store::{MessageRow, StoreError};
use crate::turns::Place;
use crate::upstream::Message;
use tokio::sync::OwnedMutexGuard;

/// What is asked for.
pub(crate) struct Asked {
    /// Whose message it is, and with what key.
    pub(crate) caller: Caller,
    pub(crate) request_id: String,
    /// One of the owner's; a new one when absent.
    pub(crate) conversation_id: Option<String>,
    /// What is said now; earlier messages of the conversation go before `text`.
    pub(crate) prompt: Sent,
    /// Who is asked, first and when nothing that can be used came of those before; the messages are put in when it is the message's
    /// turn. There is one at least.
    pub(crate) choices: Vec<Choice>,
    pub(crate) offer: Option<Offer>,
    /// The reader sees raw text.
    pub(crate) legacy: bool,
    pub(crate) max_reasks: u32,
    /// Whether it waits while another message of the conversation runs, or is refused.
    pub(crate) waits: bool,
    /// What was asked for, as JSON, for the record.
    pub(crate) request: String,
    /// A word of the client's own, under which the same request is the same message.
    pub(crate) repeat: Option<String>,
    /// Whether somebody reads from the beginning.
    pub(crate) read: bool,
    /// How long it goes on when nobody reads it any more; the server's time when absent.
    pub(crate) grace: Option<Duration>,
    /// What world info has done up to here, if that is to be remembered for the next turn.
    pub(crate) timed: Option<Timed>,
    /// The message in whose place it is made, and the turn in its conversation.
    pub(crate) instead: Option<(MessageRow, Place)>,
}

/// The prompt of a message whose turn has not come.
pub(crate) struct Prompt {
    sent: Sent,
    /// Whether earlier messages of the conversation go before it.
    goes_on: bool,
    /// Whether the conversation was there before the message.
    pub(crate) known: bool,
    place: Place,
}

/// A message that runs.
pub(crate) struct Started {
    pub(crate) row: MessageRow,
    pub(crate) reading: Option<Reading>,
}

/// Stores a message and runs it. From here on it ends by itself, whatever becomes of who asked.
pub(crate) async fn start(app: &Arc<App>, asked: Asked) -> Result<Started, Problem> {
    let work = app.clone();
    app.undisturbed(async move { begin(&work, asked).await }).await
}

async fn begin(app: &Arc<App>, asked: Asked) -> Result<Started, Problem> {
    if let Some(id) = &asked.conversation_id {
        let known = app.store.conversation(id).await?;
        if known.is_none_or(|row| row.owner != asked.caller.owner) {
            return Err(Problem::not_found(format!("there is no conversation `{id}`")));
        }
    }
    let conversation_id = asked.conversation_id.clone().unwrap_or_else(|| ids::new("conv"));
    let (instead, place) = match asked.instead {
        Some((row, place)) => (Some(row), place),
        None => (None, app.turns.queue(&conversation_id)),
    };
    if !asked.waits && matches!(place, Place::Behind(_)) {
        return Err(Problem::conflict("conversation_busy", "another message of the conversation runs"));
    }
    app.quotas.ask(&asked.caller, Instant::now(), Timestamp::now())?;
    let loaded = app.loaded();
    let row = MessageRow {
        id: ids::new("msg"),
        conversation_id,
        request_id: asked.request_id,
        owner: asked.caller.owner.clone(),
        created: ids::now(),
        status: "running".to_owned(),
        request: asked.request,
        repeat: asked.repeat,
        ..MessageRow::default()
    };
    let live = Live::new(row.id.clone());
    // The first reader is there before the run begins, so that its going away is noticed.
    let reading = asked.read.then(|| live.read());
    let most = loaded.config.max_running;
    if !app.live.add(&row.owner, live.clone(), most) {
        Metrics::count(&app.metrics.limited);
        let detail = format!("{most} messages of this key are running; wait until one has ended");
        return Err(Problem::too_many("too_many_running", detail));
    }
    if let Some(instead) = &instead {
        // Last: what is refused has changed nothing.
        let superseded = app.store.supersede(instead).await;
        if !matches!(superseded, Ok(true)) {
            app.live.remove(&live.id);
            superseded?;
            return Err(Problem::conflict(
                "state_gone",
                "the state before this message is gone, since a later message was deleted",
            ));
        }
    }
    // Before the model is asked: what cannot be kept is not begun.
    let started = Instant::now();
    let written = match app.store.insert_message(&row) {
        Ok(written) => written,
        Err(error) => {
            app.live.remove(&live.id);
            return Err(error.into());
        }
    };
    tracing::info!(
        message_id = row.id,
        request = row.request_id,
        dialect = asked.choices[0].ask.dialect,
        "message"
    );
    let run = Run {
        row: row.clone(),
        live: live.clone(),
        span: app.traces.message(
            &asked.caller.span,
            &row.id,
            &row.conversation_id,
            &asked.choices[0].ask.dialect,
        ),
        key: asked.caller.key,
        removed: asked.caller.removed,
        offer: asked.offer,
        legacy: asked.legacy,
        max_reasks: asked.max_reasks,
        grace: asked.grace.unwrap_or(Duration::from_millis(loaded.config.grace_ms)),
    };
    let goes_on = asked.conversation_id.is_some() && asked.prompt.messages.is_none();
    let prompt = Prompt { sent: asked.prompt, goes_on, known: asked.conversation_id.is_some(), place };
    app.runs.spawn(drive::run(app.clone(), Box::new(run), asked.choices, prompt));
    let written = written.await;
    app.metrics.committed("message", started.elapsed());
    if let Err(error) = written {
        live.cancel.cancel();
        return Err(error.into());
    }
    if let Some(timed) = &asked.timed {
        // Without it the message is good; the next turn has world info begin anew.
        let kept = app.store.keep_lore(&row.conversation_id, &json!(timed).to_string()).await;
        kept.unwrap_or_else(
            |error| tracing::warn!(%error, message_id = row.id, "world info is not remembered"),
        );
    }
    Metrics::count(&app.metrics.messages);
    Ok(Started { row, reading })
}

impl Prompt {
    /// Waits for the message's turn, and gives the messages for the model, and what is kept of them. The turn is put into `turn`,
    /// and lasts as long as it is there.
    pub(crate) async fn reached(
        self,
        app: &App,
        row: &MessageRow,
        turn: &mut Option<OwnedMutexGuard<()>>,
    ) -> Result<(Sent, Vec<Message>), StoreError> {
        *turn = Some(self.place.reached().await);
        let (sent, messages) = if self.goes_on {
            history::prompt(app, row, self.sent).await?
        } else {
            let messages = self.sent.clone().messages(app).await?;
            (self.sent, messages)
        };
        if app.loaded().config.log_content {
            tracing::info!(message_id = row.id, prompt = %json!(messages), "prompt");
        }
        Ok((sent, messages))
    }
}
