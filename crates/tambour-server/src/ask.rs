//! Starts messages: the single entry point for all routes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::json;
use tambour::texts::counted;
use tambour_prompt::lore::Timed;

use crate::app::App;
use crate::drive::{self, Choice, Offer, Run};
use crate::history::{self, Sent};
use crate::http::idempotency;
use crate::http::problem::Problem;
use crate::ids;
use crate::keys::Caller;
use crate::live::{Live, Reading};
use crate::metrics::Metrics;
use crate::store::{Acquired, MessageRow, NewRun, StoreError, Written};
use crate::upstream::Message;
use tokio::sync::OwnedMutexGuard;

/// Request to start a message.
pub(crate) struct Asked {
    /// Client and key of the request.
    pub(crate) caller: Caller,
    pub(crate) request_id: String,
    /// An existing conversation of the owner; a new one is made when absent.
    pub(crate) conversation_id: Option<String>,
    /// The new prompt; earlier messages of the conversation precede its `text`.
    pub(crate) prompt: Sent,
    /// Upstreams to ask, the fallbacks in order; at least one. Their messages are filled in when the message
    /// has its turn.
    pub(crate) choices: Vec<Choice>,
    pub(crate) offer: Option<Offer>,
    /// The client receives the raw text.
    pub(crate) legacy: bool,
    pub(crate) max_reasks: u32,
    /// True to queue after a running message of the conversation instead of being refused.
    pub(crate) waits: bool,
    /// The request as JSON, for the record.
    pub(crate) request: String,
    /// Idempotency key of the client.
    pub(crate) repeat: Option<String>,
    /// True if a reader is attached from the beginning.
    pub(crate) read: bool,
    /// Time that it continues without a reader; the server's default when absent.
    pub(crate) grace: Option<Duration>,
    /// State of timed lore so far, if the next turn is to know it.
    pub(crate) timed: Option<Timed>,
    /// Id of the message that this one replaces, with the turn in its conversation.
    pub(crate) instead: Option<(String, OwnedMutexGuard<()>)>,
}

/// Prompt of a message that waits for its turn.
pub(crate) struct Prompt {
    sent: Sent,
    /// True if earlier messages of the conversation precede it.
    goes_on: bool,
    /// True if the conversation existed before the message.
    pub(crate) known: bool,
    /// The turn in the conversation, if the message holds it already.
    turn: Option<OwnedMutexGuard<()>>,
}

/// A started message.
pub(crate) struct Started {
    pub(crate) row: Arc<MessageRow>,
    pub(crate) reading: Option<Reading>,
    /// True if the same request started it before.
    pub(crate) repeated: bool,
}

/// Stores a message and starts its run, which continues even if the client disconnects.
pub(crate) async fn start(app: &Arc<App>, asked: Asked) -> Result<Started, Problem> {
    let work = app.clone();
    app.undisturbed(async move { begin(&work, asked).await }).await
}

/// Reserved quota and running slot of a message; released on drop unless the message has begun.
struct Admission<'a> {
    app: &'a App,
    caller: &'a Caller,
    live: Arc<Live>,
    begun: bool,
}

impl<'a> Admission<'a> {
    /// Reserves both, or refuses the message.
    fn take(
        app: &'a App,
        caller: &'a Caller,
        conversation: &str,
        live: Arc<Live>,
    ) -> Result<Admission<'a>, Problem> {
        app.quotas.ask(caller, Instant::now(), Timestamp::now())?;
        let most = app.loaded().config.max_running;
        if !app.live.add(&caller.owner, conversation, live.clone(), most) {
            app.quotas.give_back(&caller.key, &caller.limits);
            Metrics::count(&app.metrics.limited);
            let running = counted(most, "message");
            let detail = format!("{running} of this key may run at a time; wait until one has ended");
            return Err(Problem::too_many("too_many_running", detail));
        }
        Ok(Admission { app, caller, live, begun: false })
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        if !self.begun {
            self.app.live.remove(&self.live.id);
            self.live.end();
            self.app.quotas.give_back(&self.caller.key, &self.caller.limits);
        }
    }
}

async fn begin(app: &Arc<App>, asked: Asked) -> Result<Started, Problem> {
    let opens = asked.conversation_id.is_none();
    let row = MessageRow {
        id: ids::new("msg"),
        conversation_id: asked.conversation_id.clone().unwrap_or_else(|| ids::new("conv")),
        request_id: asked.request_id,
        owner: asked.caller.owner.clone(),
        created: ids::now(),
        status: "running".to_owned(),
        request: asked.request,
        repeat: asked.repeat,
        ..MessageRow::default()
    };
    let live = Live::new(row.id.clone());
    // Registered before the run begins, so that its leaving is noticed.
    let reading = asked.read.then(|| live.read());
    let room = app.memory.run(&row.owner, asked.caller.hold.kept())?;
    let mut admission = Admission::take(app, &asked.caller, &row.conversation_id, live.clone())?;
    let (instead, turn) = asked.instead.unzip();
    // Stored before the model is asked: a message that cannot be stored does not begin.
    let started = Instant::now();
    let conversation = row.conversation_id.clone();
    let new = NewRun { row, opens, alone: !asked.waits, since: idempotency::since(), instead };
    let (lease, kept) = match app.store.acquire(new).await? {
        Acquired::Begun { lease, kept } => (lease, kept),
        Acquired::Repeated(row) => {
            return Ok(Started { row: Arc::new(*row), reading: None, repeated: true });
        }
        Acquired::UnderWay => return Err(idempotency::under_way()),
        Acquired::Busy => {
            return Err(Problem::conflict("conversation_busy", "another message of the conversation runs"));
        }
        Acquired::NoConversation => {
            return Err(Problem::not_found(format!("there is no conversation `{conversation}`")));
        }
        Acquired::NoMessage => return Err(Problem::not_found("the message is not there any more")),
        Acquired::StateGone => {
            return Err(Problem::conflict(
                "state_gone",
                "the state before this message is gone, since a later message was deleted",
            ));
        }
    };
    admission.begun = true;
    let row = lease.row().clone();
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
        key: asked.caller.key.clone(),
        removed: asked.caller.removed.clone(),
        offer: asked.offer,
        legacy: asked.legacy,
        max_reasks: asked.max_reasks,
        grace: asked.grace.unwrap_or(Duration::from_millis(app.loaded().config.grace_ms)),
        _kept: room,
    };
    // Its memory is free for others while the message waits for its model.
    asked.caller.hold.release();
    let goes_on = !opens && asked.prompt.messages.is_none();
    let prompt = Prompt { sent: asked.prompt, goes_on, known: !opens, turn };
    app.runs.spawn(drive::run(app.clone(), Box::new(run), lease, asked.choices, prompt));
    let kept = kept.await;
    app.metrics.committed("message", started.elapsed());
    if kept != Written::Stored {
        live.cancel.cancel();
        return Err(StoreError::Closed.into());
    }
    if let Some(timed) = &asked.timed {
        // Failing here leaves the message valid; timed lore restarts in the next turn.
        let kept = app.store.keep_lore(&row.conversation_id, &json!(timed).to_string()).await;
        kept.unwrap_or_else(
            |error| tracing::warn!(%error, message_id = row.id, "world info is not remembered"),
        );
    }
    Metrics::count(&app.metrics.messages);
    Ok(Started { row, reading, repeated: false })
}

impl Prompt {
    /// Waits for the turn in the conversation, exclusive of other messages and state changes.
    pub(crate) async fn turn(&mut self, app: &App, row: &MessageRow) -> OwnedMutexGuard<()> {
        match self.turn.take() {
            Some(turn) => turn,
            None => app.turns.queue(&row.conversation_id).reached().await,
        }
    }

    /// Builds the messages for the model and the prompt to log. Called when the message has its turn.
    pub(crate) async fn sent(self, app: &App, row: &MessageRow) -> Result<(Sent, Vec<Message>), StoreError> {
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
