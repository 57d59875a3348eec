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
    engine: &Arc<RunEngine>,
    start_request: StartRequest,
) -> Result<StartedMessage, Problem> {
    let work = engine.clone();
    engine.run_to_completion(async move { begin_message(&work, start_request).await }).await
}

/// Reserved quota and running slot of a message; released on drop unless the message has begun.
struct RunAdmission<'a> {
    app: &'a RunEngine,
    caller: &'a Caller,
    live_run: Arc<LiveRun>,
    has_begun: bool,
}

impl<'a> RunAdmission<'a> {
    /// Reserves both, or refuses the message.
    fn reserve(
        engine: &'a RunEngine,
        caller: &'a Caller,
        conversation: &str,
        live_run: Arc<LiveRun>,
    ) -> Result<RunAdmission<'a>, Problem> {
        engine.quotas.admit(caller, Instant::now(), Timestamp::now())?;
        let max = engine.loaded_config().config.max_running;
        if !engine.running.add(&caller.owner, conversation, live_run.clone(), max) {
            engine.quotas.refund(&caller.key, &caller.limits);
            Metrics::increment(&engine.metrics.limited_requests);
            let limit_text = format_count(max, "message");
            let detail = format!("{limit_text} of this key may run at a time; wait until one has ended");
            return Err(Problem::too_many("too_many_running", detail));
        }
        Ok(RunAdmission { app: engine, caller, live_run, has_begun: false })
    }
}

impl Drop for RunAdmission<'_> {
    fn drop(&mut self) {
        if !self.has_begun {
            self.app.running.remove(&self.live_run.id);
            self.live_run.mark_over();
            self.app.quotas.refund(&self.caller.key, &self.caller.limits);
        }
    }
}

async fn begin_message(
    engine: &Arc<RunEngine>,
    start_request: StartRequest,
) -> Result<StartedMessage, Problem> {
    let opens_conversation = start_request.conversation_id.is_none();
    let row = MessageRow {
        id: ids::new_id("msg"),
        conversation_id: start_request.conversation_id.clone().unwrap_or_else(|| ids::new_id("conv")),
        request_id: start_request.request_id,
        owner: start_request.caller.owner.clone(),
        created: ids::now(),
        status: "running".to_owned(),
        request: start_request.request,
        repeat: start_request.idempotency_key,
        ..MessageRow::default()
    };
    let live_run = LiveRun::new(row.id.clone());
    // Registered before the run begins, so that its leaving is noticed.
    let reader = start_request.has_reader.then(|| live_run.add_reader());
    let room = engine.memory.reserve_run(&row.owner, start_request.caller.memory.kept_bytes())?;
    let mut admission =
        RunAdmission::reserve(engine, &start_request.caller, &row.conversation_id, live_run.clone())?;
    let (replaces, turn) = start_request.replaces.unzip();
    // Stored before the model is asked: a message that cannot be stored does not begin.
    let start_time = Instant::now();
    let conversation = row.conversation_id.clone();
    let new = NewRun {
        row,
        opens_conversation,
        is_exclusive: !start_request.is_queued,
        repeat_since: request_repeats::repeat_since(),
        replaces,
    };
    let (lease, repeated) = match engine.store.acquire(new).await? {
        AcquireOutcome::Started { lease, durable } => (lease, durable),
        AcquireOutcome::Repeated(row) => {
            return Ok(StartedMessage { row: Arc::new(*row), reader: None, is_repeated: true });
        }
        AcquireOutcome::InProgress => return Err(request_repeats::in_progress_problem()),
        AcquireOutcome::Busy => {
            return Err(Problem::conflict(
                "conversation_busy",
                "another message of the conversation is running",
            ));
        }
        AcquireOutcome::NoConversation => {
            return Err(Problem::not_found(format!("there is no conversation `{conversation}`")));
        }
        AcquireOutcome::NoMessage => return Err(Problem::not_found("the message no longer exists")),
        AcquireOutcome::StateGone => {
            return Err(Problem::conflict(
                "state_gone",
                "the state before this message is gone, because a later message was deleted",
            ));
        }
    };
    admission.has_begun = true;
    let row = lease.row().clone();
    tracing::info!(
        message_id = row.id,
        request = row.request_id,
        dialect = start_request.candidates[0].request.dialect,
        "message"
    );
    let run = MessageRun {
        row: row.clone(),
        live_run: live_run.clone(),
        span: engine.traces.start_message(
            &start_request.caller.span,
            &row.id,
            &row.conversation_id,
            &start_request.candidates[0].request.dialect,
        ),
        key: start_request.caller.key.clone(),
        key_removal: start_request.caller.removal.clone(),
        offer: start_request.offer,
        is_legacy: start_request.is_legacy,
        max_reasks: start_request.max_reasks,
        grace_time: start_request
            .grace
            .unwrap_or(Duration::from_millis(engine.loaded_config().config.grace_ms)),
        _kept: room,
    };
    // Its memory is free for others while the message waits for its model.
    start_request.caller.memory.release();
    let has_history = !opens_conversation && start_request.prompt.messages.is_none();
    let prompt =
        PendingPrompt { sent: start_request.prompt, has_history, is_existing: !opens_conversation, turn };
    engine.run_tasks.spawn(runner::run_message(
        engine.clone(),
        Box::new(run),
        lease,
        start_request.candidates,
        prompt,
    ));
    let repeated = repeated.await;
    engine.metrics.observe_commit("message", start_time.elapsed());
    if repeated != WriteOutcome::Stored {
        live_run.cancel.cancel();
        return Err(StoreError::Closed.into());
    }
    if let Some(timed_effects) = &start_request.timed_lore {
        // Failing here leaves the message valid; timed lore restarts in the next turn.
        let repeated = engine.store.put_lore(&row.conversation_id, &json!(timed_effects).to_string()).await;
        repeated.unwrap_or_else(
            |error| tracing::warn!(%error, message_id = row.id, "world info could not be stored"),
        );
    }
    Metrics::increment(&engine.metrics.messages);
    Ok(StartedMessage { row, reader, is_repeated: false })
}

impl PendingPrompt {
    /// Waits for the turn in the conversation, exclusive of other messages and state changes.
    pub(crate) async fn wait_turn(&mut self, engine: &RunEngine, row: &MessageRow) -> OwnedMutexGuard<()> {
        match self.turn.take() {
            Some(turn) => turn,
            None => engine.turns.enqueue(&row.conversation_id).wait().await,
        }
    }

    /// Builds the messages for the model and the prompt to log. Called when the message has its turn.
    pub(crate) async fn build(
        self,
        engine: &RunEngine,
        row: &MessageRow,
    ) -> Result<(PromptRecord, Vec<Message>), StoreError> {
        let defaults = engine.reading_defaults();
        let (sent_messages, messages) = if self.has_history {
            let max_history = engine.loaded_config().config.max_history;
            history::build_prompt(&*engine.store, &defaults, max_history, row, self.sent).await?
        } else {
            let messages = self.sent.clone().load_messages(&*engine.store, &defaults).await?;
            (self.sent, messages)
        };
        if engine.loaded_config().config.log_content {
            tracing::info!(message_id = row.id, prompt = %json!(messages), "prompt");
        }
        Ok((sent_messages, messages))
    }
}
