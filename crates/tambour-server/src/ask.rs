//! Asking a model: the one way in which a message begins, whatever route it came by.

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
    /// Id of the message in whose place it is made, and the turn in its conversation.
    pub(crate) instead: Option<(String, OwnedMutexGuard<()>)>,
}

/// The prompt of a message whose turn has not come.
pub(crate) struct Prompt {
    sent: Sent,
    /// Whether earlier messages of the conversation go before it.
    goes_on: bool,
    /// Whether the conversation was there before the message.
    pub(crate) known: bool,
    /// The turn in the conversation, where the message has it already.
    turn: Option<OwnedMutexGuard<()>>,
}

/// A message that runs.
pub(crate) struct Started {
    pub(crate) row: Arc<MessageRow>,
    pub(crate) reading: Option<Reading>,
    /// It was begun before, by the same request.
    pub(crate) repeated: bool,
}

/// Stores a message and runs it. From here on it ends by itself, whatever becomes of who asked.
pub(crate) async fn start(app: &Arc<App>, asked: Asked) -> Result<Started, Problem> {
    let work = app.clone();
    app.undisturbed(async move { begin(&work, asked).await }).await
}

/// What a message that begins takes of what there is a limit of; given back unless it begins.
struct Admission<'a> {
    app: &'a App,
    caller: &'a Caller,
    live: Arc<Live>,
    begun: bool,
}

impl<'a> Admission<'a> {
    /// Takes it, or refuses the message.
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
    // The first reader is there before the run begins, so that its going away is noticed.
    let reading = asked.read.then(|| live.read());
    let room = app.memory.run(&row.owner, asked.caller.hold.kept())?;
    let mut admission = Admission::take(app, &asked.caller, &row.conversation_id, live.clone())?;
    let (instead, turn) = asked.instead.unzip();
    // Before the model is asked: what cannot be kept is not begun.
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
    // Others may come while it waits for its model.
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
        // Without it the message is good; the next turn has world info begin anew.
        let kept = app.store.keep_lore(&row.conversation_id, &json!(timed).to_string()).await;
        kept.unwrap_or_else(
            |error| tracing::warn!(%error, message_id = row.id, "world info is not remembered"),
        );
    }
    Metrics::count(&app.metrics.messages);
    Ok(Started { row, reading, repeated: false })
}

impl Prompt {
    /// The turn in the conversation, when no other message and no change of its state has it.
    pub(crate) async fn turn(&mut self, app: &App, row: &MessageRow) -> OwnedMutexGuard<()> {
        match self.turn.take() {
            Some(turn) => turn,
            None => app.turns.queue(&row.conversation_id).reached().await,
        }
    }

    /// The messages for the model, and what is kept of them, when the message has its turn.
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
