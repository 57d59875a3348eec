//! Runs messages: calls the upstream, reads the reply into the log, runs its tool calls, and repeats. The
//! only place that waits for a model.

mod attempt;
mod best_reply;
mod call_repeats;
mod fallback;
mod spending;
mod tool_execution;
mod tool_loop;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tambour::event::{Failure, FinishReason};
use tambour::{InputEnd, Options};
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

use crate::base::cpu_pool;
use crate::base::fail;
use crate::base::memory::MemoryPermit;
use crate::base::metrics::Metrics;
use crate::base::self_woken::SelfWoken;
use crate::record::history::{HistoryWriter, PromptRecord};
use crate::record::{self, FinishError, RunTotals, Timings, interrupted_failure};
use crate::run::engine::RunEngine;
use crate::run::live_run::LiveRun;
use crate::run::message_start::PendingPrompt;
use crate::run::states::{self, MessageState};
use crate::store::{Batch, Lease, MessageRow, StoreError, WriteOutcome};
use crate::telemetry::TraceSpan;
use crate::tools::OfferedTool;
use crate::upstream::{Message, ModelRequest, Upstream, new_failure};
use attempt::{Attempt, AttemptSettings};
use best_reply::BestReply;
pub(crate) use spending::MessageSpending;
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
    /// Cancelled when that key is removed.
    pub(crate) key_removal: CancellationToken,
    /// Tools that replies may call; `None` without a tool loop.
    pub(crate) offer: Option<ToolOffer>,
    /// True if raw text counts as delivered once it is on the log.
    pub(crate) is_legacy: bool,
    pub(crate) max_reasks: u32,
    /// Time that the run continues without a reader.
    pub(crate) grace_time: Duration,
    /// Memory reserved for the kept part of its request.
    pub(crate) _kept: MemoryPermit,
}

/// Upstream to ask, with the request and the options for its reply.
pub(crate) struct UpstreamChoice {
    pub(crate) upstream: Arc<Upstream>,
    /// Request without the messages.
    pub(crate) request: ModelRequest,
    pub(crate) options: Options,
    /// System prompt.
    pub(crate) system: Option<String>,
    /// Contract as given by the request.
    pub(crate) contract: Value,
}

impl MessageRun {
    /// Marks the span of a failed message.
    fn mark_failed(&self, end: &InputEnd) {
        if let InputEnd::Failed(Failure { code, .. }) = end {
            self.span.fail(code);
        }
    }
}

impl UpstreamChoice {
    /// Builds the request; `others` is the number of remaining fallbacks.
    fn build_request(&self, run: &MessageRun, others: usize) -> ModelRequest {
        let (message, span) = (run.row.id.as_str().into(), run.span.clone());
        ModelRequest { message, span, has_fallback: others > 0, ..self.request.clone() }
    }

    /// Returns the messages for this upstream: as sent to another one, with its own system prompt.
    fn replace_system(&self, prompt_record: &mut PromptRecord, messages: &mut Vec<Message>) -> Vec<Message> {
        messages.drain(..usize::from(prompt_record.system.is_some()));
        prompt_record.system.clone_from(&self.system);
        messages.splice(0..0, self.system.iter().map(|text| Message::new("system", text)));
        messages.clone()
    }

    /// Returns the request fields that select this choice.
    fn request_fields(&self) -> Value {
        json!({
            "upstream": self.upstream.name(), "model": self.request.model, "dialect": self.request.dialect,
            "contract": self.contract,
        })
    }

    /// Returns the writer for the history of its replies.
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
/// are asked in order until one gives a usable reply.
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
    let (mut timings, mut spending) = (Timings::default(), MessageSpending::default());
    // The turn in the conversation is held until the outcome of the message is known.
    let mut turn = None;
    let mut log = RunLog { live_run: run.live_run.clone(), lease, seq: 0 };
    let counts = (&mut timings, &mut spending);
    let reply_future = read_replies(&engine, &run, &choices, prompt, &mut turn, &mut log, counts);
    let reply_future = AssertUnwindSafe(reply_future).catch_unwind().await;
    drop(choices);
    let end_result = Box::pin(
        AssertUnwindSafe(finish_run(&engine, &run, log, reply_future.ok(), timings, spending)).catch_unwind(),
    );
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
            let why = match &end_failure {
                Ok(Err(why)) => format!("{why:?}"),
                _ => "it panicked".to_owned(),
            };
            tracing::error!(
                message_id = run.live_run.id,
                why,
                "the end of a message could not be written; trying again"
            );
            run.span.fail("store_unavailable");
            run.span.end("unwritten");
            // No caller waits for it, so later runs may continue.
            drop((turn, run_guard));
            Box::pin(retry_close(&engine, &run.live_run.id)).await;
        }
    }
}

/// Guard that unregisters a message, whatever happens to its run.
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

/// Finishes a message with its outcome: with the `last` entries, or with closing events if reading panicked.
async fn finish_run(
    engine: &RunEngine,
    run: &MessageRun,
    mut log: RunLog,
    last: Option<Result<Batch, WriteOutcome>>,
    timings: Timings,
    MessageSpending { usage, calls }: MessageSpending,
) -> Result<&'static str, FinishError> {
    let usage = engine.record_usage(&run.key, &run.row.owner, 1, &usage);
    let counts = RunTotals { timings, usage: Some(usage), calls };
    fail::point("run.end");
    match last {
        Some(Ok(last)) => {
            log.live_run.note_append(&last);
            record::finish(&mut *log.lease, last, counts, &engine.reading_defaults()).await
        }
        Some(Err(written)) => Err(FinishError::EndUnwritten(written)),
        None => {
            let failure = new_failure("internal_error", "the server failed while reading the reply", true);
            tracing::error!(message_id = run.live_run.id, "a run panicked; closing its message");
            run.span.fail(&failure.code);
            record::close(&mut *log.lease, failure, counts, &engine.reading_defaults()).await
        }
    }
}

/// Longest pause between two tries to write the end of a message.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Claims a message or turn that its run left without an end, and closes it, retrying until that succeeds or
/// the server stops.
pub(crate) async fn retry_close(engine: &RunEngine, id: &str) {
    let mut wait = Duration::from_millis(50);
    loop {
        let close = AssertUnwindSafe(Box::pin(close_message(engine, id))).catch_unwind();
        match close.await {
            Ok(Ok(())) => return,
            Ok(Err(why)) => {
                tracing::warn!(message_id = id, ?why, "the end of a message is still not written")
            }
            Err(_) => tracing::error!(message_id = id, "closing a message panicked"),
        }
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            // The next start closes it.
            () = engine.shutdown.cancelled() => return,
        }
        wait = (wait * 2).min(LONGEST_PAUSE);
    }
}

async fn close_message(engine: &RunEngine, id: &str) -> Result<(), FinishError> {
    let Some(mut lease) = engine.store.claim(id).await? else { return Ok(()) };
    let failure = new_failure("internal_error", "the server failed while ending the message", true);
    match record::close(&mut *lease, failure, RunTotals::default(), &engine.reading_defaults()).await {
        Ok(_) | Err(FinishError::EndUnwritten(WriteOutcome::Fenced)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Asks the model, and again for a re-ask or with tool results. Returns the last entries, which are not on
/// the log yet; `Err` if the log cannot be written any more.
async fn read_replies(
    engine: &Arc<RunEngine>,
    run: &MessageRun,
    choices: &[UpstreamChoice],
    prompt: PendingPrompt,
    turn: &mut Option<OwnedMutexGuard<()>>,
    log: &mut RunLog,
    (timings, spending): (&mut Timings, &mut MessageSpending),
) -> Result<Batch, WriteOutcome> {
    let start_time = Instant::now();
    let mut others = choices.iter();
    let mut choice = others.next().expect("somebody is asked");
    let mut request = choice.build_request(run, others.len());
    // Discarded replies are kept in the record.
    let keeps_discarded = run.max_reasks > 0 || others.len() > 0;
    let (mut reasks, mut before, mut best) = (0, None, None::<BestReply>);
    let mut tools = run.offer.as_ref().map(|offer| Box::new(ToolLoop::new(engine, run, offer, choice)));
    let is_existing = prompt.is_existing;
    // One future for the whole reply: the grace time continues while the model writes.
    let mut stop = std::pin::pin!(SelfWoken::new(wait_stop(engine, run)));
    let earlier_runs = log.lease.wait_earlier_runs();
    let start = Box::pin(wait_turn(engine, run, prompt, &request.dialect, earlier_runs, turn));
    let start_result = tokio::select! {
        biased;
        end = stop.as_mut() => Err(end),
        start_result = start => start_result,
    };
    let (mut start_failure, mut report, mut state) = match start_result {
        Ok((sent_prompt, messages, state)) => {
            log.append(record::prompt_entry(log.next_number(), &sent_prompt)).await?;
            let report = (others.len() > 0).then(|| (sent_prompt, messages.clone()));
            request.messages = messages;
            (None, report, state)
        }
        Err(end) => (Some(end), None, None),
    };
    loop {
        let place = (log.next_number(), log.seq);
        let previous_reply = before.as_deref();
        let may_stand = reasks < run.max_reasks;
        let repeat =
            AttemptSettings { reasks, keeps_discarded, keeps_items: may_stand, holds_all: best.is_some() };
        let attempt = Attempt::new(choice, state.as_ref(), &request.dialect, previous_reply, repeat, place);
        let mut attempt = Box::new(attempt);
        let end = match start_failure.take() {
            Some(end) => end,
            None => {
                attempt.read_reply(run, choice, &request, log, (start_time, timings), stop.as_mut()).await?
            }
        };
        fail::point("run");
        spending.add(choice, attempt.usage.take());
        finish_reply(engine, run, &mut attempt, &end, &spending.usage).await;
        timings.total_ms = millis(start_time);
        let can_retry = attempt.can_reask() && reasks < run.max_reasks;
        if can_retry
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
        let given_up = before.is_none() && attempt.can_fall_back(&end) && !is_cancelled;
        if given_up && let (Some(next), Some((sent_prompt, messages))) = (others.next(), &mut report) {
            attempt.fall_back(&end, choice, next, log).await?;
            choice = next;
            request = choice.build_request(run, others.len());
            request.messages = choice.replace_system(sent_prompt, messages);
            log.append(record::prompt_entry(log.next_number(), sent_prompt)).await?;
            state = states::load_message_state(engine, &run.row, is_existing, &request.dialect)
                .await
                .unwrap_or_else(|error| {
                    start_failure =
                        Some(InputEnd::Failed(new_failure("store_unavailable", error.to_string(), true)));
                    None
                });
            if let Some(tools) = &mut tools {
                tools.switch_choice(choice);
            }
            (reasks, best) = (0, None);
            continue;
        }
        // The last reply replaces the kept one only if it is better.
        let mut end = end;
        if let Some(better_reply) =
            best.take().filter(|better_reply| !is_cancelled && better_reply.beats(&attempt, &end))
        {
            attempt.discard(&end, None, log).await?;
            let place = (log.next_number(), log.seq);
            let repeat = AttemptSettings { reasks, keeps_discarded, keeps_items: false, holds_all: true };
            let attempt_reading =
                Attempt::new(choice, state.as_ref(), &request.dialect, before.as_deref(), repeat, place);
            *attempt = attempt_reading;
            end = better_reply.replay(&mut attempt, choice, run);
            finish_reply(engine, run, &mut attempt, &end, &spending.usage).await;
        }
        let Some(tools) = tools.as_mut().filter(|_| !attempt.calls().is_empty()) else {
            run.mark_failed(&end);
            return Ok(attempt.take_gathered(log));
        };
        // Boxed: most messages call no tools and need no space for it.
        let Some(loop_messages) = Box::pin(tools.run_calls(&mut attempt, log)).await? else {
            timings.total_ms = millis(start_time);
            return Ok(attempt.take_gathered(log));
        };
        request.messages.extend(loop_messages);
        before = Some(Box::new(attempt.into_pipeline()));
        // Nobody is expected to watch calls run, so the grace time starts again.
        stop.set(SelfWoken::new(wait_stop(engine, run)));
    }
}

/// Finishes a reply in the pipeline.
async fn finish_reply(
    engine: &RunEngine,
    run: &MessageRun,
    attempt: &mut Attempt,
    end: &InputEnd,
    usage: &Value,
) {
    if attempt.has_schema() {
        // A schema check may take long: it takes a turn of its owner, and other tasks of this thread move
        // elsewhere.
        let _turn = engine.cpu_pool.acquire(&run.row.owner).await;
        cpu_pool::run_in_place(|| attempt.finish(end, usage.clone()));
    } else {
        attempt.finish(end, usage.clone());
    }
}

/// Waits for the message's turn; returns the prompt, the messages and the state of the conversation where
/// replies may change it. `Err` is the end of a message that is not sent.
async fn wait_turn(
    engine: &RunEngine,
    run: &MessageRun,
    mut prompt: PendingPrompt,
    dialect: &str,
    before: BoxFuture<'static, ()>,
    turn: &mut Option<OwnedMutexGuard<()>>,
) -> Result<(PromptRecord, Vec<Message>, Option<MessageState>), InputEnd> {
    {
        let mut place = std::pin::pin!(async {
            before.await;
            prompt.wait_turn(engine, &run.row).await
        });
        *turn = Some(match place.as_mut().now_or_never() {
            Some(turn) => turn,
            None => tokio::select! {
                biased;
                // A stopping server starts no waiting message.
                () = engine.shutdown.cancelled() => return Err(InputEnd::Failed(interrupted_failure())),
                turn = place => turn,
            },
        });
    }
    let is_existing = prompt.is_existing;
    let prompt_future = async {
        let (prompt_future, messages) = prompt.build(engine, &run.row).await?;
        let state = states::load_message_state(engine, &run.row, is_existing, dialect).await?;
        Ok::<_, StoreError>((prompt_future, messages, state))
    };
    prompt_future
        .await
        .map_err(|error| InputEnd::Failed(new_failure("store_unavailable", error.to_string(), true)))
}

/// Log of the message, as written by this run.
struct RunLog {
    live_run: Arc<LiveRun>,
    lease: Box<dyn Lease>,
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

/// Waits until the run should stop, and returns its end: cancelled, key removed, no reader for the grace
/// time, or the server stops.
async fn wait_stop(engine: &RunEngine, run: &MessageRun) -> InputEnd {
    tokio::select! {
        () = run.live_run.cancel.cancelled() => {}
        () = run.key_removal.cancelled() => tracing::info!(message_id = run.live_run.id, "the key of the run was removed"),
        () = run.live_run.wait_deserted(run.grace_time) => tracing::debug!(message_id = run.live_run.id, "no client reads the run any more"),
        () = engine.run_abort.cancelled() => return InputEnd::Failed(interrupted_failure()),
    }
    InputEnd::Finished(FinishReason::Cancelled)
}

fn millis(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX)
}
