//! Runs messages: calls the upstream, reads the reply into the log, runs its tool calls, and asks again with
//! their results.

mod attempt;
mod best_reply;
mod call_repeats;
mod fallback;
mod measures;
mod spending;
mod tool_execution;
mod tool_loop;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tambour::event::{Failure, FinishReason};
use tambour::{InputEnd, Options};
use tokio_util::sync::CancellationToken;

use crate::base::cpu_pool;
use crate::base::fail;
use crate::base::memory::MemoryPermit;
use crate::base::metrics::Metrics;
use crate::base::polled_when_woken::PolledWhenWoken;
use crate::record::history::{HistoryWriter, PromptOpening, PromptRecord};
use crate::record::{self, FinishError, RunTotals, interrupted_failure};
use crate::run::engine::RunEngine;
use crate::run::live_run::LiveRun;
use crate::run::message_start::PendingPrompt;
use crate::run::states::{self, MessageState};
use crate::run::turns::ConversationGuard;
use crate::store::{Batch, Lease, MessageRow, StoreError, WriteOutcome};
use crate::telemetry::TraceSpan;
use crate::tools::OfferedTool;
use crate::upstream::{Message, ModelRequest, Upstream, new_failure};
use attempt::{Attempt, AttemptSettings};
use best_reply::BestReply;
use measures::RunMeasures;
use spending::MessageSpending;
pub(crate) use tool_execution::{execute, refusal_of_call};
use tool_loop::ToolLoop;

/// A message to run.
pub(crate) struct MessageRun {
    pub(crate) row: Arc<MessageRow>,
    pub(crate) live_run: Arc<LiveRun>,
    /// Tracing span of the message.
    pub(crate) span: TraceSpan,
    /// Id of the caller's key.
    pub(crate) key: String,
    /// Cancelled when the caller's key is removed.
    pub(crate) key_removal: CancellationToken,
    /// Tools that replies may call; `None` without a tool loop.
    pub(crate) offer: Option<ToolOffer>,
    /// True for a client of the legacy protocol, which receives raw text: the text counts as delivered once
    /// it is appended to the log.
    pub(crate) is_legacy: bool,
    /// Maximum number of re-asks of one upstream.
    pub(crate) max_reasks: u32,
    /// Time that the run continues without a reader.
    pub(crate) grace_time: Duration,
    /// Memory reserved for what the run keeps of its request.
    pub(crate) _memory_permit: MemoryPermit,
}

/// Upstream to ask, with the request and the options for its reply.
pub(crate) struct UpstreamChoice {
    pub(crate) upstream: Arc<Upstream>,
    /// Request without the messages.
    pub(crate) request: ModelRequest,
    /// Options for reading its reply.
    pub(crate) options: Options,
    /// System prompt, and the example of the format instructions.
    pub(crate) opening: PromptOpening,
    /// Contract of the reply as given in the request, as JSON.
    pub(crate) contract: Value,
}

impl MessageRun {
    /// Marks the span as failed if the message ends with a failure.
    fn mark_failed(&self, end: &InputEnd) {
        if let InputEnd::Failed(Failure { code, .. }) = end {
            self.span.fail(code);
        }
    }
}

impl UpstreamChoice {
    /// Builds the request, without the messages.
    fn build_request(&self, run: &MessageRun, remaining_fallbacks: usize) -> ModelRequest {
        let (message_id, span) = (run.row.id.as_str().into(), run.span.clone());
        ModelRequest { message_id, span, has_fallback: remaining_fallbacks > 0, ..self.request.clone() }
    }

    /// Replaces the opening for another upstream with the one of this choice, in the prompt record and in the
    /// messages. Returns a copy of the messages.
    fn replace_opening(&self, prompt_record: &mut PromptRecord, messages: &mut Vec<Message>) -> Vec<Message> {
        prompt_record.opening.remove_from(messages);
        prompt_record.opening.clone_from(&self.opening);
        self.opening.insert_into(messages);
        messages.clone()
    }

    /// Returns the fields of the message's request that this choice overrides, with its values.
    fn request_fields(&self) -> Value {
        json!({
            "upstream": self.upstream.name(), "model": self.request.model, "dialect": self.request.dialect,
            "contract": self.contract,
        })
    }

    /// Returns a writer of history text for its replies.
    fn history_writer(&self) -> HistoryWriter {
        HistoryWriter::new(&self.request.dialect, &self.options)
    }
}

/// Tools that the replies of a message may call.
pub(crate) struct ToolOffer {
    pub(crate) tools: Vec<OfferedTool>,
    /// Caller on whose behalf tools run (P-033).
    pub(crate) caller: Option<String>,
}

/// Runs a message to its end; its log always ends with one `completed` or `error`. The choices, at least one,
/// are asked in order until one gives a usable reply. `lease` is the right to append to the log.
///
/// State of a run is boxed: thousands of runs wait for their models at a time, and a future reserves space
/// for every large value that it moves.
pub(crate) async fn run_message(
    engine: Arc<RunEngine>,
    run: Box<MessageRun>,
    lease: Box<dyn Lease>,
    choices: Vec<UpstreamChoice>,
    prompt: PendingPrompt,
) {
    let run_guard = RunGuard { engine: engine.clone(), live_run: run.live_run.clone() };
    let mut measures = RunMeasures::start();
    // The conversation is locked until the outcome of the message is known.
    let mut conversation_guard = None;
    let mut log = RunLog { live_run: run.live_run.clone(), lease, seq: 0 };
    let reading =
        read_replies(&engine, &run, &choices, prompt, &mut conversation_guard, &mut log, &mut measures);
    let read_result = AssertUnwindSafe(reading).catch_unwind().await;
    drop(choices);
    let end_result =
        Box::pin(AssertUnwindSafe(finish_run(&engine, &run, log, read_result.ok(), measures)).catch_unwind());
    match end_result.await {
        Ok(Ok(status)) => {
            if status == "failed" {
                Metrics::increment(&engine.metrics.failed_messages);
            }
            run.span.end(status);
        }
        Ok(Err(FinishError::EndUnwritten(WriteOutcome::Fenced))) => {
            tracing::info!(
                message_id = run.live_run.id,
                "a run stopped without writing an end, because its message was deleted or claimed"
            );
            run.span.end("deleted");
        }
        end_failure => {
            let reason = match &end_failure {
                Ok(Err(error)) => format!("{error:?}"),
                _ => "it panicked".to_owned(),
            };
            tracing::error!(
                message_id = run.live_run.id,
                reason,
                "the end of a message could not be written; trying again"
            );
            run.span.fail("store_unavailable");
            run.span.end("unwritten");
            // Later messages of the conversation do not wait for the retries of this write.
            drop((conversation_guard, run_guard));
            Box::pin(retry_close(&engine, &run.live_run.id)).await;
        }
    }
}

/// Guard that unregisters a message on drop, even if its run panicked.
struct RunGuard {
    engine: Arc<RunEngine>,
    live_run: Arc<LiveRun>,
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        self.engine.desks.remove(&self.live_run.id);
        self.live_run.mark_over();
        self.engine.running.remove(&self.live_run.id);
    }
}

/// Finishes a message and writes its record. `read_result` is the last entries of its log, or the outcome of a
/// write that failed; `None` after a panic, for which closing events are added. Returns the status.
async fn finish_run(
    engine: &RunEngine,
    run: &MessageRun,
    mut log: RunLog,
    read_result: Option<Result<Batch, WriteOutcome>>,
    measures: RunMeasures,
) -> Result<&'static str, FinishError> {
    let RunMeasures { timings, spending: MessageSpending { usage, calls }, .. } = measures;
    let request_count = 1;
    let usage = engine.record_usage(&run.key, &run.row.owner, request_count, &usage);
    let totals = RunTotals { timings, usage: Some(usage), calls };
    fail::point("run.end");
    match read_result {
        Some(Ok(last_entries)) => {
            log.live_run.note_append(&last_entries);
            record::finish(&mut *log.lease, last_entries, totals, &engine.reading_defaults()).await
        }
        Some(Err(write_outcome)) => Err(FinishError::EndUnwritten(write_outcome)),
        None => {
            let failure = new_failure("internal_error", "the server failed while reading the reply", true);
            tracing::error!(message_id = run.live_run.id, "a run panicked; closing its message");
            run.span.fail(&failure.code);
            record::close(&mut *log.lease, failure, totals, &engine.reading_defaults()).await
        }
    }
}

/// Time in which the database says whether a message has to wait for others.
const QUEUE_ANSWER: Duration = Duration::from_secs(1);

/// Longest pause between two tries to write the end of a message.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Claims a message or turn that its run left without an end, and closes it, retrying until that succeeds or
/// the server stops.
pub(crate) async fn retry_close(engine: &RunEngine, id: &str) {
    let mut pause = Duration::from_millis(50);
    loop {
        let close = AssertUnwindSafe(Box::pin(close_message(engine, id))).catch_unwind();
        match close.await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => {
                tracing::warn!(message_id = id, ?error, "the end of a message is still not written")
            }
            Err(_) => tracing::error!(message_id = id, "closing a message panicked"),
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            // The next start of the server closes the message.
            () = engine.shutdown.cancelled() => return,
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Claims and closes a message or turn. Succeeds also if there is nothing to close or another process closes
/// it.
async fn close_message(engine: &RunEngine, id: &str) -> Result<(), FinishError> {
    let Some(mut lease) = engine.store.claim(id).await? else { return Ok(()) };
    let failure = new_failure("internal_error", "the server failed while ending the message", true);
    match record::close(&mut *lease, failure, RunTotals::default(), &engine.reading_defaults()).await {
        Ok(_) | Err(FinishError::EndUnwritten(WriteOutcome::Fenced)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Asks the model, then again for each re-ask, each fallback and each reply that called tools. Returns the
/// last entries, which the caller writes to the log; `Err` if the log cannot be written any more. Locks the
/// conversation, and puts the guard of the lock into `conversation_guard`.
async fn read_replies(
    engine: &Arc<RunEngine>,
    run: &MessageRun,
    choices: &[UpstreamChoice],
    prompt: PendingPrompt,
    conversation_guard: &mut Option<ConversationGuard>,
    log: &mut RunLog,
    measures: &mut RunMeasures,
) -> Result<Batch, WriteOutcome> {
    let mut fallbacks = choices.iter();
    let mut choice = fallbacks.next().expect("a message has at least one choice of upstream");
    let mut request = choice.build_request(run, fallbacks.len());
    let keeps_discarded = run.max_reasks > 0 || fallbacks.len() > 0;
    // `reasks` counts the re-asks of the current upstream. `previous` is the pipeline of a reply that called
    // tools, which the next reply continues. `best` is the best reply that was re-asked.
    let (mut reasks, mut previous, mut best) = (0, None, None::<BestReply>);
    let mut tool_loop = run.offer.as_ref().map(|offer| Box::new(ToolLoop::new(engine, run, offer, choice)));
    let continues_conversation = prompt.continues_conversation;
    // One future for all attempts of a reply, so that a grace time that began in one continues in the next.
    // `PolledWhenWoken`: polled only after its own wake-up, not at each chunk of the reply.
    let mut stop = std::pin::pin!(PolledWhenWoken::new(wait_stop(engine, run)));
    let earlier_runs = log.lease.wait_earlier_runs();
    let preparation =
        Box::pin(prepare_prompt(engine, run, prompt, &request.dialect, earlier_runs, conversation_guard));
    let prepare_result = tokio::select! {
        biased;
        end = stop.as_mut() => Err(end),
        prepare_result = preparation => prepare_result,
    };
    // `early_end` ends the message before the first model, or a fallback, is asked. `fallback_prompt` is the
    // prompt for fallbacks; `None` if there are none.
    let (mut early_end, mut fallback_prompt, mut state) = match prepare_result {
        Ok((sent_prompt, messages, state)) => {
            log.append(record::prompt_entry(log.next_number(), &sent_prompt)).await?;
            let fallback_prompt = (fallbacks.len() > 0).then(|| (sent_prompt, messages.clone()));
            request.messages = messages;
            (None, fallback_prompt, state)
        }
        Err(end) => (Some(end), None, None),
    };
    loop {
        let may_reask = reasks < run.max_reasks;
        let settings = AttemptSettings {
            reasks,
            is_reask: reasks > 0,
            keeps_discarded,
            keeps_items: may_reask,
            holds_all: best.is_some(),
        };
        let attempt =
            Attempt::new(choice, state.as_ref(), &request.dialect, previous.as_deref(), settings, log);
        let mut attempt = Box::new(attempt);
        let end = match early_end.take() {
            Some(end) => end,
            None => attempt.read_reply(run, choice, &request, log, measures, stop.as_mut()).await?,
        };
        fail::point("run");
        measures.spending.add(choice, attempt.usage.take());
        finish_reply(engine, run, &mut attempt, &end, &measures.spending.usage).await;
        measures.record_end();
        if may_reask
            && attempt.can_reask()
            && let InputEnd::Finished(reason @ (FinishReason::Stop | FinishReason::ToolCalls)) = end
            && !run.live_run.cancel.is_cancelled()
        {
            reasks += 1;
            let end = InputEnd::Finished(reason);
            attempt.discard(&end, Some(reasks), log).await?;
            request.messages.extend(attempt.reask_messages(&choice.options));
            best = BestReply::choose(*attempt, &end, best);
            continue;
        }
        let is_cancelled =
            run.live_run.cancel.is_cancelled() || end == InputEnd::Finished(FinishReason::Cancelled);
        // After a reply that called tools, the message stays with its upstream.
        let needs_fallback = previous.is_none() && attempt.can_fall_back(&end) && !is_cancelled;
        if needs_fallback
            && let (Some(fallback), Some((sent_prompt, messages))) = (fallbacks.next(), &mut fallback_prompt)
        {
            attempt.fall_back(&end, choice, fallback, log).await?;
            choice = fallback;
            request = choice.build_request(run, fallbacks.len());
            request.messages = choice.replace_opening(sent_prompt, messages);
            log.append(record::prompt_entry(log.next_number(), sent_prompt)).await?;
            state = states::load_message_state(engine, &run.row, continues_conversation, &request.dialect)
                .await
                .unwrap_or_else(|error| {
                    early_end =
                        Some(InputEnd::Failed(new_failure("store_unavailable", error.to_string(), true)));
                    None
                });
            if let Some(tool_loop) = &mut tool_loop {
                tool_loop.switch_choice(choice);
            }
            (reasks, best) = (0, None);
            continue;
        }
        // An earlier reply is used instead of the last one unless the last one is better.
        let mut end = end;
        if let Some(earlier_reply) =
            best.take().filter(|earlier_reply| !is_cancelled && earlier_reply.beats(&attempt, &end))
        {
            attempt.discard(&end, None, log).await?;
            let is_reask = earlier_reply.is_reask;
            let settings =
                AttemptSettings { reasks, is_reask, keeps_discarded, keeps_items: false, holds_all: true };
            *attempt =
                Attempt::new(choice, state.as_ref(), &request.dialect, previous.as_deref(), settings, log);
            end = earlier_reply.replay(&mut attempt, choice, run);
            finish_reply(engine, run, &mut attempt, &end, &measures.spending.usage).await;
        }
        let Some(tool_loop) = tool_loop.as_mut().filter(|_| !attempt.calls().is_empty()) else {
            run.mark_failed(&end);
            return Ok(attempt.take_gathered(log));
        };
        // Boxed: most messages call no tools and need no space for this future.
        let Some(reply_and_results) = Box::pin(tool_loop.run_calls(&mut attempt, log)).await? else {
            measures.record_end();
            return Ok(attempt.take_gathered(log));
        };
        request.messages.extend(reply_and_results);
        previous = Some(Box::new(attempt.into_pipeline()));
        // No client needs to read while tools run, so the grace time starts again.
        stop.set(PolledWhenWoken::new(wait_stop(engine, run)));
    }
}

/// Ends a reply in the pipeline. `usage` has the token counts of all calls so far.
async fn finish_reply(
    engine: &RunEngine,
    run: &MessageRun,
    attempt: &mut Attempt,
    end: &InputEnd,
    usage: &Value,
) {
    if attempt.has_schema() {
        // A schema check may take long: it counts as a job of the CPU pool, and other tasks of this thread
        // move to another one.
        let _permit = engine.cpu_pool.acquire(&run.row.owner).await;
        cpu_pool::run_in_place(|| attempt.finish(end, usage.clone()));
    } else {
        attempt.finish(end, usage.clone());
    }
}

/// Waits for the earlier messages of the conversation, and locks it. Returns the prompt, its messages and, if
/// replies may change the state of the conversation, that state. `Err` is the end of a message that ends
/// before the model is asked.
async fn prepare_prompt(
    engine: &RunEngine,
    run: &MessageRun,
    mut prompt: PendingPrompt,
    dialect: &str,
    earlier_runs: BoxFuture<'static, ()>,
    conversation_guard: &mut Option<ConversationGuard>,
) -> Result<(PromptRecord, Vec<Message>, Option<MessageState>), InputEnd> {
    {
        let mut locking = std::pin::pin!(async {
            earlier_runs.await;
            prompt.lock_conversation(engine, &run.row).await
        });
        *conversation_guard = Some(match locking.as_mut().now_or_never() {
            Some(guard) => guard,
            None => tokio::select! {
                biased;
                // A stopping server starts no waiting message.
                () = wait_stop_of_queue(engine) => return Err(InputEnd::Failed(interrupted_failure())),
                guard = locking => guard,
            },
        });
    }
    let continues_conversation = prompt.continues_conversation;
    let preparation = async {
        let (sent_prompt, messages) = prompt.build(engine, &run.row).await?;
        let state = states::load_message_state(engine, &run.row, continues_conversation, dialect).await?;
        Ok::<_, StoreError>((sent_prompt, messages, state))
    };
    preparation
        .await
        .map_err(|error| InputEnd::Failed(new_failure("store_unavailable", error.to_string(), true)))
}

/// Waits until messages that wait for others must end, since the server stops.
async fn wait_stop_of_queue(engine: &RunEngine) {
    engine.shutdown.cancelled().await;
    if engine.store.cluster().is_some() {
        // A message that waits for no other one still waits for the answers of the database.
        tokio::time::sleep(QUEUE_ANSWER).await;
    }
}

/// Log of the message, as written by this run.
struct RunLog {
    live_run: Arc<LiveRun>,
    lease: Box<dyn Lease>,
    /// Number of the last piece of raw text.
    seq: u64,
}

impl RunLog {
    /// Returns the number of the next entry.
    fn next_number(&self) -> u64 {
        self.lease.next_number()
    }

    /// Appends a batch. On an error the run must not continue.
    async fn append(&mut self, batch: Batch) -> Result<(), WriteOutcome> {
        self.live_run.note_append(&batch);
        self.lease.append(batch).await.into_result()
    }
}

/// Waits until the run must stop, and returns its end: cancelled by a client, by removal of its key or for
/// lack of a reader, or failed because the server stops.
async fn wait_stop(engine: &RunEngine, run: &MessageRun) -> InputEnd {
    tokio::select! {
        () = run.live_run.cancel.cancelled() => {}
        () = run.key_removal.cancelled() => tracing::info!(message_id = run.live_run.id, "the key of the run was removed"),
        () = run.live_run.wait_deserted(run.grace_time) => tracing::debug!(message_id = run.live_run.id, "no client reads the run any more"),
        () = engine.run_abort.cancelled() => return InputEnd::Failed(interrupted_failure()),
    }
    InputEnd::Finished(FinishReason::Cancelled)
}
