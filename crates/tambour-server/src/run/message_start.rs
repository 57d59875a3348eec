//! Starts messages: the single entry point for all routes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::json;
use tambour::texts::format_count;
use tambour_prompt::lore::TimedEffects;

use crate::base::ids;
use crate::base::metrics::Metrics;
use crate::base::problem::Problem;
use crate::record::history::{self, PromptRecord};
use crate::run::engine::RunEngine;
use crate::run::keys::Caller;
use crate::run::live_run::{LiveRun, ReaderGuard};
use crate::run::request_repeats;
use crate::run::runner::{self, MessageRun, ToolOffer, UpstreamChoice};
use crate::store::{AcquireOutcome, MessageRow, NewRun, StoreError, WriteOutcome};
use crate::upstream::Message;
use tokio::sync::OwnedMutexGuard;

/// Request to start a message.
pub(crate) struct StartRequest {
    /// Client and key of the request.
    pub(crate) caller: Caller,
    pub(crate) request_id: String,
    /// An existing conversation of the owner; a new one is made when absent.
    pub(crate) conversation_id: Option<String>,
    /// The new prompt; earlier messages of the conversation precede its `text`.
    pub(crate) prompt: PromptRecord,
    /// Upstreams to ask, the fallbacks in order; at least one. Their messages are filled in when the message
    /// has its turn.
    pub(crate) candidates: Vec<UpstreamChoice>,
    pub(crate) offer: Option<ToolOffer>,
    /// The client receives the raw text.
    pub(crate) is_legacy: bool,
    pub(crate) max_reasks: u32,
    /// True to queue after a running message of the conversation instead of being refused.
    pub(crate) is_queued: bool,
    /// The request as JSON, for the record.
    pub(crate) request: String,
    /// Idempotency key of the client.
    pub(crate) idempotency_key: Option<String>,
    /// True if a reader is attached from the beginning.
    pub(crate) has_reader: bool,
    /// Time that it continues without a reader; the server's default when absent.
    pub(crate) grace: Option<Duration>,
    /// State of timed lore so far, if the next turn is to know it.
    pub(crate) timed_lore: Option<TimedEffects>,
    /// Id of the message that this one replaces, with the turn in its conversation.
    pub(crate) replaces: Option<(String, OwnedMutexGuard<()>)>,
}

/// Prompt of a message that waits for its turn.
pub(crate) struct PendingPrompt {
    sent: PromptRecord,
    /// True if earlier messages of the conversation precede it.
    has_history: bool,
    /// True if the conversation existed before the message.
    pub(crate) is_existing: bool,
    /// The turn in the conversation, if the message holds it already.
    turn: Option<OwnedMutexGuard<()>>,
}

/// A started message.
pub(crate) struct StartedMessage {
    pub(crate) row: Arc<MessageRow>,
    pub(crate) reader: Option<ReaderGuard>,
    /// True if the same request started it before.
    pub(crate) is_repeated: bool,
}

/// Stores a message and starts its run, which continues even if the client disconnects.
pub(crate) async fn start_message(
    app: &Arc<RunEngine>,
    asked: StartRequest,
) -> Result<StartedMessage, Problem> {
    let work = app.clone();
    app.run_to_completion(async move { begin_message(&work, asked).await }).await
}

/// Reserved quota and running slot of a message; released on drop unless the message has begun.
struct RunAdmission<'a> {
    app: &'a RunEngine,
    caller: &'a Caller,
    live: Arc<LiveRun>,
    has_begun: bool,
}

impl<'a> RunAdmission<'a> {
    /// Reserves both, or refuses the message.
    fn reserve(
        app: &'a RunEngine,
        caller: &'a Caller,
        conversation: &str,
        live: Arc<LiveRun>,
    ) -> Result<RunAdmission<'a>, Problem> {
        app.quotas.admit(caller, Instant::now(), Timestamp::now())?;
        let most = app.loaded_config().config.max_running;
        if !app.running.add(&caller.owner, conversation, live.clone(), most) {
            app.quotas.refund(&caller.key, &caller.limits);
            Metrics::increment(&app.metrics.limited_requests);
            let running = format_count(most, "message");
            let detail = format!("{running} of this key may run at a time; wait until one has ended");
            return Err(Problem::too_many("too_many_running", detail));
        }
        Ok(RunAdmission { app, caller, live, has_begun: false })
    }
}

impl Drop for RunAdmission<'_> {
    fn drop(&mut self) {
        if !self.has_begun {
            self.app.running.remove(&self.live.id);
            self.live.mark_over();
            self.app.quotas.refund(&self.caller.key, &self.caller.limits);
        }
    }
}

async fn begin_message(app: &Arc<RunEngine>, asked: StartRequest) -> Result<StartedMessage, Problem> {
    let opens_conversation = asked.conversation_id.is_none();
    let row = MessageRow {
        id: ids::new_id("msg"),
        conversation_id: asked.conversation_id.clone().unwrap_or_else(|| ids::new_id("conv")),
        request_id: asked.request_id,
        owner: asked.caller.owner.clone(),
        created: ids::now(),
        status: "running".to_owned(),
        request: asked.request,
        repeat: asked.idempotency_key,
        ..MessageRow::default()
    };
    let live = LiveRun::new(row.id.clone());
    // Registered before the run begins, so that its leaving is noticed.
    let reader = asked.has_reader.then(|| live.add_reader());
    let room = app.memory.reserve_run(&row.owner, asked.caller.memory.kept_bytes())?;
    let mut admission = RunAdmission::reserve(app, &asked.caller, &row.conversation_id, live.clone())?;
    let (replaces, turn) = asked.replaces.unzip();
    // Stored before the model is asked: a message that cannot be stored does not begin.
    let started = Instant::now();
    let conversation = row.conversation_id.clone();
    let new = NewRun {
        row,
        opens_conversation,
        is_exclusive: !asked.is_queued,
        repeat_since: request_repeats::repeat_since(),
        replaces,
    };
    let (lease, kept) = match app.store.acquire(new).await? {
        AcquireOutcome::Started { lease, durable } => (lease, durable),
        AcquireOutcome::Repeated(row) => {
            return Ok(StartedMessage { row: Arc::new(*row), reader: None, is_repeated: true });
        }
        AcquireOutcome::InProgress => return Err(request_repeats::in_progress_problem()),
        AcquireOutcome::Busy => {
            return Err(Problem::conflict("conversation_busy", "another message of the conversation runs"));
        }
        AcquireOutcome::NoConversation => {
            return Err(Problem::not_found(format!("there is no conversation `{conversation}`")));
        }
        AcquireOutcome::NoMessage => return Err(Problem::not_found("the message is not there any more")),
        AcquireOutcome::StateGone => {
            return Err(Problem::conflict(
                "state_gone",
                "the state before this message is gone, since a later message was deleted",
            ));
        }
    };
    admission.has_begun = true;
    let row = lease.row().clone();
    tracing::info!(
        message_id = row.id,
        request = row.request_id,
        dialect = asked.candidates[0].ask.dialect,
        "message"
    );
    let run = MessageRun {
        row: row.clone(),
        live_run: live.clone(),
        span: app.traces.start_message(
            &asked.caller.span,
            &row.id,
            &row.conversation_id,
            &asked.candidates[0].ask.dialect,
        ),
        key: asked.caller.key.clone(),
        key_removal: asked.caller.removal.clone(),
        offer: asked.offer,
        is_legacy: asked.is_legacy,
        max_reasks: asked.max_reasks,
        grace_time: asked.grace.unwrap_or(Duration::from_millis(app.loaded_config().config.grace_ms)),
        _kept: room,
    };
    // Its memory is free for others while the message waits for its model.
    asked.caller.memory.release();
    let has_history = !opens_conversation && asked.prompt.messages.is_none();
    let prompt = PendingPrompt { sent: asked.prompt, has_history, is_existing: !opens_conversation, turn };
    app.run_tasks.spawn(runner::run_message(app.clone(), Box::new(run), lease, asked.candidates, prompt));
    let kept = kept.await;
    app.metrics.observe_commit("message", started.elapsed());
    if kept != WriteOutcome::Stored {
        live.cancel.cancel();
        return Err(StoreError::Closed.into());
    }
    if let Some(timed) = &asked.timed_lore {
        // Failing here leaves the message valid; timed lore restarts in the next turn.
        let kept = app.store.put_lore(&row.conversation_id, &json!(timed).to_string()).await;
        kept.unwrap_or_else(
            |error| tracing::warn!(%error, message_id = row.id, "world info is not remembered"),
        );
    }
    Metrics::increment(&app.metrics.messages);
    Ok(StartedMessage { row, reader, is_repeated: false })
}

impl PendingPrompt {
    /// Waits for the turn in the conversation, exclusive of other messages and state changes.
    pub(crate) async fn wait_turn(&mut self, app: &RunEngine, row: &MessageRow) -> OwnedMutexGuard<()> {
        match self.turn.take() {
            Some(turn) => turn,
            None => app.turns.enqueue(&row.conversation_id).wait().await,
        }
    }

    /// Builds the messages for the model and the prompt to log. Called when the message has its turn.
    pub(crate) async fn build(
        self,
        app: &RunEngine,
        row: &MessageRow,
    ) -> Result<(PromptRecord, Vec<Message>), StoreError> {
        let own = app.reading_defaults();
        let (sent, messages) = if self.has_history {
            let most = app.loaded_config().config.max_history;
            history::build_prompt(&*app.store, &own, most, row, self.sent).await?
        } else {
            let messages = self.sent.clone().load_messages(&*app.store, &own).await?;
            (self.sent, messages)
        };
        if app.loaded_config().config.log_content {
            tracing::info!(message_id = row.id, prompt = %json!(messages), "prompt");
        }
        Ok((sent, messages))
    }
}
