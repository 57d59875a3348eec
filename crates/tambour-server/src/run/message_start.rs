//! Starts messages: the single entry point for all routes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tambour::texts::format_count;
use tambour_prompt::lore::TimedEffects;

use crate::base::ids;
use crate::base::memory::MemoryPermit;
use crate::base::metrics::Metrics;
use crate::base::problem::Problem;
use crate::record::history::{self, PromptRecord};
use crate::run::engine::RunEngine;
use crate::run::keys::Caller;
use crate::run::live_run::{LiveRun, ReaderGuard};
use crate::run::quotas::KeyLimits;
use crate::run::request_repeats;
use crate::run::runner::{self, MessageRun, ToolOffer, UpstreamChoice};
use crate::run::turns::ConversationGuard;
use crate::store::{BeginOutcome, Lease, MessageRow, NewRun, StoreError, WriteOutcome};
use crate::upstream::Message;

/// Request to start a message.
pub(crate) struct StartRequest {
    /// Client and key of the request.
    pub(crate) caller: Caller,
    /// Id of the HTTP request, for log lines and for the client.
    pub(crate) request_id: String,
    /// Id of an existing conversation of the owner; a new one is created when absent.
    pub(crate) conversation_id: Option<String>,
    /// Prompt of the request; earlier messages of the conversation precede its `text`.
    pub(crate) prompt: PromptRecord,
    /// Upstreams to ask, at least one: the first choice, then the fallbacks in order. The messages of the
    /// prompt are added to their requests once the earlier messages of the conversation have ended.
    pub(crate) candidates: Vec<UpstreamChoice>,
    /// Tools that replies may call; `None` without a tool loop.
    pub(crate) offer: Option<ToolOffer>,
    /// True for a client of the legacy protocol, which receives the raw text.
    pub(crate) is_legacy: bool,
    /// Maximum number of re-asks of one upstream.
    pub(crate) max_reasks: u32,
    /// True to queue after a running message of the conversation instead of being refused.
    pub(crate) is_queued: bool,
    /// Request as JSON, stored with the message.
    pub(crate) request: String,
    /// Idempotency key of the client.
    pub(crate) idempotency_key: Option<String>,
    /// True if a reader is attached from the beginning.
    pub(crate) has_reader: bool,
    /// Time that the run continues without a reader; the server's default when absent.
    pub(crate) grace: Option<Duration>,
    /// State of timed lore entries (world info that stays for some messages) after this prompt, to store for
    /// the next message of the conversation.
    pub(crate) timed_lore: Option<TimedEffects>,
    /// Id of the message that this one replaces, with the lock of its conversation.
    pub(crate) replaces: Option<(String, ConversationGuard)>,
}

/// Prompt of a message that waits for the earlier messages of its conversation.
pub(crate) struct PendingPrompt {
    /// Prompt of the request, without earlier messages.
    prompt: PromptRecord,
    /// True if earlier messages of the conversation precede the prompt.
    has_history: bool,
    /// True if the conversation existed before the message.
    pub(crate) continues_conversation: bool,
    /// Lock of the conversation, if the message holds it already.
    conversation_guard: Option<ConversationGuard>,
}

/// A started message.
pub(crate) struct StartedMessage {
    pub(crate) row: Arc<MessageRow>,
    /// Reader of the message, if the request wanted one.
    pub(crate) reader: Option<ReaderGuard>,
    /// True if an earlier request with the same idempotency key started the message.
    pub(crate) is_repeated: bool,
}

/// Stores a message and starts its run. Both continue even if the client disconnects.
///
/// # Errors
/// A limit of the key or its owner is reached, the conversation is busy or unknown, or the store failed.
pub(crate) async fn start_message(
    engine: &Arc<RunEngine>,
    start_request: StartRequest,
) -> Result<StartedMessage, Problem> {
    let task_engine = engine.clone();
    engine.run_to_completion(async move { begin_message(&task_engine, start_request).await }).await
}

/// Request counted in the quota, and place among the running messages; both are given back on drop unless the
/// message has begun.
struct RunAdmission<'a> {
    engine: &'a RunEngine,
    /// Id of the caller's key.
    key: String,
    limits: Arc<KeyLimits>,
    live_run: Arc<LiveRun>,
    has_begun: bool,
}

impl<'a> RunAdmission<'a> {
    /// Reserves both, or refuses the message.
    async fn reserve(
        engine: &'a RunEngine,
        caller: &Caller,
        conversation: &str,
        live_run: Arc<LiveRun>,
    ) -> Result<RunAdmission<'a>, Problem> {
        engine.admit_request(caller).await?;
        let max = engine.loaded_config().config.max_running;
        let remote_runs = engine.count_remote_runs(&caller.owner).await?;
        let local_max = max.saturating_sub(remote_runs);
        if !engine.running.add(&caller.owner, conversation, live_run.clone(), local_max) {
            engine.refund_request(&caller.key, &caller.limits);
            Metrics::increment(&engine.metrics.limited_requests);
            let limit_text = format_count(max, "message");
            let detail = format!("{limit_text} of this owner may run at a time; wait until one has ended");
            return Err(Problem::too_many("too_many_running", detail));
        }
        let (key, limits) = (caller.key.clone(), caller.limits.clone());
        Ok(RunAdmission { engine, key, limits, live_run, has_begun: false })
    }
}

impl Drop for RunAdmission<'_> {
    fn drop(&mut self) {
        if !self.has_begun {
            self.engine.running.remove(&self.live_run.id);
            self.live_run.mark_over();
            self.engine.refund_request(&self.key, &self.limits);
        }
    }
}

/// Stores a message and starts its run. Must run to its end, not be dropped midway.
async fn begin_message(
    engine: &Arc<RunEngine>,
    mut start_request: StartRequest,
) -> Result<StartedMessage, Problem> {
    let opens_conversation = start_request.conversation_id.is_none();
    let row = MessageRow {
        id: ids::new_id("msg"),
        conversation_id: start_request.conversation_id.clone().unwrap_or_else(|| ids::new_id("conv")),
        request_id: std::mem::take(&mut start_request.request_id),
        owner: start_request.caller.owner.clone(),
        created: ids::now(),
        status: "running".to_owned(),
        request: std::mem::take(&mut start_request.request),
        repeat: start_request.idempotency_key.take(),
        ..MessageRow::default()
    };
    let live_run = LiveRun::new(row.id.clone());
    // Registered before the run begins, so that the run notices when the reader leaves.
    let reader = start_request.has_reader.then(|| live_run.add_reader());
    let memory_permit = engine.memory.reserve_run(&row.owner, start_request.caller.memory.kept_bytes())?;
    let mut admission =
        RunAdmission::reserve(engine, &start_request.caller, &row.conversation_id, live_run.clone()).await?;
    let (replaces, conversation_guard) = start_request.replaces.take().unzip();
    // Stored before the model is asked: a message that cannot be stored does not begin.
    let start_time = Instant::now();
    let conversation = row.conversation_id.clone();
    let new_run = NewRun {
        row,
        opens_conversation,
        is_exclusive: !start_request.is_queued,
        repeat_since: request_repeats::repeat_since(),
        replaces,
    };
    // `durable` resolves once the message is stored.
    let (lease, durable) = match engine.store.begin(new_run).await? {
        BeginOutcome::Started { lease, durable } => (lease, durable),
        BeginOutcome::Repeated(row) => {
            return Ok(StartedMessage { row: Arc::new(*row), reader: None, is_repeated: true });
        }
        BeginOutcome::InProgress => return Err(request_repeats::in_progress_problem()),
        BeginOutcome::Busy => {
            return Err(Problem::conflict(
                "conversation_busy",
                "another message of the conversation is running",
            ));
        }
        BeginOutcome::NoConversation => {
            return Err(Problem::not_found(format!("there is no conversation `{conversation}`")));
        }
        BeginOutcome::NoMessage => return Err(Problem::not_found("the message no longer exists")),
        BeginOutcome::StateGone => {
            return Err(Problem::conflict(
                "state_gone",
                "the message cannot be replaced: the state before it is gone, because a message after it was deleted",
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
    let timed_lore = start_request.timed_lore.take();
    let acquired = AcquiredMessage {
        lease,
        live_run: live_run.clone(),
        memory_permit,
        opens_conversation,
        conversation_guard,
    };
    spawn_run(engine, acquired, start_request);
    let write_outcome = durable.await;
    engine.metrics.observe_commit("message", start_time.elapsed());
    if write_outcome != WriteOutcome::Stored {
        live_run.cancel.cancel();
        return Err(StoreError::Closed.into());
    }
    if let Some(timed_effects) = &timed_lore {
        // If this fails, the message stays valid; timed lore starts over with the next message.
        let put_result =
            engine.store.put_timed_effects(&row.conversation_id, &json!(timed_effects).to_string()).await;
        put_result.unwrap_or_else(
            |error| tracing::warn!(%error, message_id = row.id, "world info could not be stored"),
        );
    }
    Metrics::increment(&engine.metrics.messages);
    Ok(StartedMessage { row, reader, is_repeated: false })
}

/// Starts another run of a message whose lease this server has taken over. Nobody has seen anything of the
/// first run.
///
/// # Errors
/// The owner has reached the limit of running messages, or of the memory that they keep.
pub(crate) fn restart_message(
    engine: &Arc<RunEngine>,
    start_request: StartRequest,
    lease: Box<dyn Lease>,
    opens_conversation: bool,
) -> Result<(), Problem> {
    let row = lease.row().clone();
    let live_run = LiveRun::new(row.id.clone());
    let memory_permit = engine.memory.reserve_run(&row.owner, start_request.caller.memory.kept_bytes())?;
    let max = engine.loaded_config().config.max_running;
    if !engine.running.add(&row.owner, &row.conversation_id, live_run.clone(), max) {
        return Err(Problem::too_many("too_many_running", "too many messages of this owner are running"));
    }
    tracing::info!(message_id = row.id, "the message of a server that is gone is asked again");
    let conversation_guard = None;
    let acquired = AcquiredMessage { lease, live_run, memory_permit, opens_conversation, conversation_guard };
    spawn_run(engine, acquired, start_request);
    Ok(())
}

/// Message whose log this server may write.
struct AcquiredMessage {
    lease: Box<dyn Lease>,
    live_run: Arc<LiveRun>,
    memory_permit: MemoryPermit,
    /// True if the message is the first of its conversation.
    opens_conversation: bool,
    /// Lock of the conversation, if the message holds it already.
    conversation_guard: Option<ConversationGuard>,
}

/// Spawns the run of a message.
fn spawn_run(engine: &Arc<RunEngine>, acquired: AcquiredMessage, start_request: StartRequest) {
    let AcquiredMessage { lease, live_run, memory_permit, opens_conversation, conversation_guard } = acquired;
    let row = lease.row().clone();
    let run = MessageRun {
        row: row.clone(),
        live_run,
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
        _memory_permit: memory_permit,
    };
    // The memory of the request is free for others while the message waits for its model.
    start_request.caller.memory.release();
    let has_history = !opens_conversation && start_request.prompt.messages.is_none();
    let prompt = PendingPrompt {
        prompt: start_request.prompt,
        has_history,
        continues_conversation: !opens_conversation,
        conversation_guard,
    };
    engine.run_tasks.spawn(runner::run_message(
        engine.clone(),
        Box::new(run),
        lease,
        start_request.candidates,
        prompt,
    ));
}

impl PendingPrompt {
    /// Locks the conversation against other messages and state changes; waits until it is free.
    pub(crate) async fn lock_conversation(
        &mut self,
        engine: &RunEngine,
        row: &MessageRow,
    ) -> ConversationGuard {
        match self.conversation_guard.take() {
            Some(guard) => guard,
            None => engine.conversation_queues.enter(&row.conversation_id).await,
        }
    }

    /// Returns the prompt to log, and the messages for the model. The caller has locked the conversation.
    pub(crate) async fn build(
        self,
        engine: &RunEngine,
        row: &MessageRow,
    ) -> Result<(PromptRecord, Vec<Message>), StoreError> {
        let defaults = engine.reading_defaults();
        let (sent_prompt, messages) = if self.has_history {
            let max_history = engine.loaded_config().config.max_history;
            history::build_prompt(&*engine.store, &defaults, max_history, row, self.prompt).await?
        } else {
            let messages = self.prompt.clone().load_messages(&*engine.store, &defaults).await?;
            (self.prompt, messages)
        };
        if engine.loaded_config().config.log_content {
            tracing::info!(message_id = row.id, prompt = %json!(messages), "prompt");
        }
        Ok((sent_prompt, messages))
    }
}
