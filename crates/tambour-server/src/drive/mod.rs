//! Runs messages: calls the upstream, reads the reply into the log, runs its tool calls, and repeats. The
//! only place that waits for a model.

mod attempt;
mod best;
mod execute;
mod given_up;
mod repeats;
mod spending;
mod tool_loop;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tambour::event::{Failure, FinishReason};
use tambour::{End, Options};
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

use crate::apart::Apart;
use crate::app::App;
use crate::aside;
use crate::ask::Prompt;
use crate::fail;
use crate::history::{Again, Sent};
use crate::live::Live;
use crate::memory::Taken;
use crate::metrics::Metrics;
use crate::record::{self, Counts, Timings, Unfinished};
use crate::states::{self, State};
use crate::store::{Batch, Lease, MessageRow, StoreError, Written};
use crate::telemetry::Span;
use crate::tools::Offered;
use crate::upstream::{Ask, Message, Upstream, failure};
use attempt::{Attempt, Repeat};
use best::Best;
pub(crate) use execute::{barred, execute};
pub(crate) use spending::{Spending, UpstreamSpending};
use tool_loop::ToolLoop;

/// A message to run.
pub(crate) struct Run {
    pub(crate) row: Arc<MessageRow>,
    pub(crate) live: Arc<Live>,
    /// Tracing span of the message.
    pub(crate) span: Span,
    /// Id of the caller's key.
    pub(crate) key: String,
    /// Cancelled when that key is removed.
    pub(crate) removed: CancellationToken,
    /// Tools that replies may call; `None` without a tool loop.
    pub(crate) offer: Option<Offer>,
    /// True if raw text counts as delivered once it is on the log.
    pub(crate) legacy: bool,
    pub(crate) max_reasks: u32,
    /// Time that the run continues without a reader.
    pub(crate) grace: Duration,
    /// Memory reserved for the kept part of its request.
    pub(crate) _kept: Taken,
}

/// Upstream to ask, with the request and the options for its reply.
pub(crate) struct Choice {
    pub(crate) upstream: Arc<Upstream>,
    /// Request without the messages.
    pub(crate) ask: Ask,
    pub(crate) options: Options,
    /// System prompt.
    pub(crate) system: Option<String>,
    /// Contract as given by the request.
    pub(crate) contract: Value,
}

impl Run {
    /// Marks the span of a failed message.
    fn failed(&self, end: &End) {
        if let End::Failed(Failure { code, .. }) = end {
            self.span.fail(code);
        }
    }
}

impl Choice {
    /// Builds the request; `others` is the number of remaining fallbacks.
    fn ask(&self, run: &Run, others: usize) -> Ask {
        let (message, span) = (run.row.id.as_str().into(), run.span.clone());
        Ask { message, span, hurry: others > 0, ..self.ask.clone() }
    }

    /// Returns the messages for this upstream: as sent to another one, with its own system prompt.
    fn said(&self, sent: &mut Sent, messages: &mut Vec<Message>) -> Vec<Message> {
        messages.drain(..usize::from(sent.system.is_some()));
        sent.system.clone_from(&self.system);
        messages.splice(0..0, self.system.iter().map(|text| Message::new("system", text)));
        messages.clone()
    }

    /// Returns the request fields that select this choice.
    fn fields(&self) -> Value {
        json!({
            "upstream": self.upstream.name(), "model": self.ask.model, "dialect": self.ask.dialect,
            "contract": self.contract,
        })
    }

    /// Returns the writer for the history of its replies.
    fn again(&self) -> Again {
        Again::new(&self.ask.dialect, &self.options)
    }
}

/// Tools that the replies of a message may call.
pub(crate) struct Offer {
    pub(crate) tools: Vec<Offered>,
    /// Caller on whose behalf tools run (P-033).
    pub(crate) caller: Option<String>,
}

/// Runs a message to its end; its log always ends with one `completed` or `error`. The choices, at least one,
/// are asked in order until one gives a usable reply.
///
/// State of a run is boxed: thousands of runs wait for their models at a time, and a future reserves space
/// for every large value that it moves.
pub(crate) async fn run(
    app: Arc<App>,
    run: Box<Run>,
    lease: Box<dyn Lease>,
    choices: Vec<Choice>,
    prompt: Prompt,
) {
    let leaving = Leaving { app: app.clone(), live: run.live.clone() };
    let (mut timings, mut spending) = (Timings::default(), Spending::default());
    // The turn in the conversation is held until the outcome of the message is known.
    let mut turn = None;
    let mut log = Log { live: run.live.clone(), lease, seq: 0 };
    let counts = (&mut timings, &mut spending);
    let reading = read(&app, &run, &choices, prompt, &mut turn, &mut log, counts);
    let reading = AssertUnwindSafe(reading).catch_unwind().await;
    drop(choices);
    let ended =
        Box::pin(AssertUnwindSafe(end(&app, &run, log, reading.ok(), timings, spending)).catch_unwind());
    match ended.await {
        Ok(Ok(status)) => {
            if status == "failed" {
                Metrics::count(&app.metrics.failed);
            }
            run.span.end(status);
        }
        Ok(Err(Unfinished::Unwritten(Written::Fenced))) => {
            tracing::info!(
                message_id = run.live.id,
                "a run ends without an end, since its message was deleted or claimed"
            );
            run.span.end("deleted");
        }
        unfinished => {
            let why = match &unfinished {
                Ok(Err(why)) => format!("{why:?}"),
                _ => "it has panicked".to_owned(),
            };
            tracing::error!(
                message_id = run.live.id,
                why,
                "the end of a message could not be written; it is tried again"
            );
            run.span.fail("store_unavailable");
            run.span.end("unwritten");
            // No caller waits for it, so later runs may continue.
            drop((turn, leaving));
            Box::pin(close_in_time(&app, &run.live.id)).await;
        }
    }
}

/// Guard that unregisters a message, whatever happens to its run.
struct Leaving {
    app: Arc<App>,
    live: Arc<Live>,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.app.desks.remove(&self.live.id);
        self.live.end();
        self.app.live.remove(&self.live.id);
    }
}

/// Finishes a message with its outcome: with the `last` entries, or with closing events if reading panicked.
async fn end(
    app: &App,
    run: &Run,
    mut log: Log,
    last: Option<Result<Batch, Written>>,
    timings: Timings,
    Spending { usage, calls }: Spending,
) -> Result<&'static str, Unfinished> {
    let usage = app.usage(&run.key, &run.row.owner, 1, &usage);
    let counts = Counts { timings, usage: Some(usage), calls };
    fail::point("run.end");
    match last {
        Some(Ok(last)) => {
            log.live.appending(&last);
            record::finish(&mut *log.lease, last, counts, &app.own()).await
        }
        Some(Err(written)) => Err(Unfinished::Unwritten(written)),
        None => {
            let failure = failure("internal_error", "the server failed while it read the reply", true);
            tracing::error!(message_id = run.live.id, "a run has panicked; its message is closed");
            run.span.fail(&failure.code);
            record::close(&mut *log.lease, failure, counts, &app.own()).await
        }
    }
}

/// Longest pause between two tries to write the end of a message.
const PATIENCE: Duration = Duration::from_secs(10);

/// Claims a message or turn that its run left without an end, and closes it, retrying until that succeeds or
/// the server stops.
pub(crate) async fn close_in_time(app: &App, id: &str) {
    let mut wait = Duration::from_millis(50);
    loop {
        let closing = AssertUnwindSafe(Box::pin(close_now(app, id))).catch_unwind();
        match closing.await {
            Ok(Ok(())) => return,
            Ok(Err(why)) => tracing::warn!(message_id = id, ?why, "a message is still without its end"),
            Err(_) => tracing::error!(message_id = id, "closing a message has panicked"),
        }
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            // The next start closes it.
            () = app.closing.cancelled() => return,
        }
        wait = (wait * 2).min(PATIENCE);
    }
}

async fn close_now(app: &App, id: &str) -> Result<(), Unfinished> {
    let Some(mut lease) = app.store.claim(id).await? else { return Ok(()) };
    let failure = failure("internal_error", "the server failed while it ended the message", true);
    match record::close(&mut *lease, failure, Counts::default(), &app.own()).await {
        Ok(_) | Err(Unfinished::Unwritten(Written::Fenced)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Asks the model, and again for a re-ask or with tool results. Returns the last entries, which are not on
/// the log yet; `Err` if the log cannot be written any more.
async fn read(
    app: &Arc<App>,
    run: &Run,
    choices: &[Choice],
    prompt: Prompt,
    turn: &mut Option<OwnedMutexGuard<()>>,
    log: &mut Log,
    (timings, spending): (&mut Timings, &mut Spending),
) -> Result<Batch, Written> {
    let started = Instant::now();
    let mut others = choices.iter();
    let mut choice = others.next().expect("somebody is asked");
    let mut ask = choice.ask(run, others.len());
    // Discarded replies are kept in the record.
    let keeps = run.max_reasks > 0 || others.len() > 0;
    let (mut reasks, mut before, mut best) = (0, None, None::<Best>);
    let mut tools = run.offer.as_ref().map(|offer| Box::new(ToolLoop::new(app, run, offer, choice)));
    let known = prompt.known;
    // One future for the whole reply: the grace time continues while the model writes.
    let mut stop = std::pin::pin!(Apart::new(stopped(app, run)));
    let reached = tokio::select! {
        biased;
        end = stop.as_mut() => Err(end),
        reached = Box::pin(reached(app, run, prompt, &ask.dialect, log.lease.turn(), turn)) => reached,
    };
    let (mut not_asked, mut told, mut state) = match reached {
        Ok((sent, messages, state)) => {
            log.append(record::prompt(log.next(), &sent)).await?;
            let told = (others.len() > 0).then(|| (sent, messages.clone()));
            ask.messages = messages;
            (None, told, state)
        }
        Err(end) => (Some(end), None, None),
    };
    loop {
        let place = (log.next(), log.seq);
        let before_it = before.as_deref();
        let may_stand = reasks < run.max_reasks;
        let repeat = Repeat { reasks, keeps, hears: may_stand, waits: best.is_some() };
        let attempt = Attempt::new(choice, state.as_ref(), &ask.dialect, before_it, repeat, place);
        let mut attempt = Box::new(attempt);
        let end = match not_asked.take() {
            Some(end) => end,
            None => attempt.read(run, choice, &ask, log, (started, timings), stop.as_mut()).await?,
        };
        fail::point("run");
        spending.add(choice, attempt.usage.take());
        finish(app, run, &mut attempt, &end, &spending.usage).await;
        timings.total_ms = millis(started);
        let again = attempt.may_be_asked_again() && reasks < run.max_reasks;
        if again
            && let End::Finished(reason @ (FinishReason::Stop | FinishReason::ToolCalls)) = end
            && !run.live.cancel.is_cancelled()
        {
            reasks += 1;
            let end = End::Finished(reason);
            attempt.throw_away(&end, Some(reasks), log).await?;
            ask.messages.extend(attempt.complaint(&choice.options));
            best = Best::of(*attempt, &end, best);
            continue;
        }
        let cancelled = run.live.cancel.is_cancelled() || end == End::Finished(FinishReason::Cancelled);
        let given_up = before.is_none() && attempt.may_be_given_up(&end) && !cancelled;
        if given_up && let (Some(next), Some((sent, messages))) = (others.next(), &mut told) {
            attempt.give_up(&end, choice, next, log).await?;
            choice = next;
            ask = choice.ask(run, others.len());
            ask.messages = choice.said(sent, messages);
            log.append(record::prompt(log.next(), sent)).await?;
            state = states::attached(app, &run.row, known, &ask.dialect).await.unwrap_or_else(|error| {
                not_asked = Some(End::Failed(failure("store_unavailable", error.to_string(), true)));
                None
            });
            if let Some(tools) = &mut tools {
                tools.read_as(choice);
            }
            (reasks, best) = (0, None);
            continue;
        }
        // The last reply replaces the kept one only if it is better.
        let mut end = end;
        if let Some(kept) = best.take().filter(|kept| !cancelled && kept.beats(&attempt, &end)) {
            attempt.throw_away(&end, None, log).await?;
            let place = (log.next(), log.seq);
            let repeat = Repeat { reasks, keeps, hears: false, waits: true };
            let read = Attempt::new(choice, state.as_ref(), &ask.dialect, before.as_deref(), repeat, place);
            *attempt = read;
            end = kept.replay(&mut attempt, choice, run);
            finish(app, run, &mut attempt, &end, &spending.usage).await;
        }
        let Some(tools) = tools.as_mut().filter(|_| !attempt.calls().is_empty()) else {
            run.failed(&end);
            return Ok(attempt.rest(log));
        };
        // Boxed: most messages call no tools and need no space for it.
        let Some(said) = Box::pin(tools.carry_out(&mut attempt, log)).await? else {
            timings.total_ms = millis(started);
            return Ok(attempt.rest(log));
        };
        ask.messages.extend(said);
        before = Some(Box::new(attempt.into_pipeline()));
        // Nobody is expected to watch calls run, so the grace time starts again.
        stop.set(Apart::new(stopped(app, run)));
    }
}

/// Finishes a reply in the pipeline.
async fn finish(app: &App, run: &Run, attempt: &mut Attempt, end: &End, usage: &Value) {
    if attempt.has_schema() {
        // A schema check may take long: it takes a turn of its owner, and other tasks of this thread move
        // elsewhere.
        let _turn = app.aside.turn(&run.row.owner).await;
        aside::in_place(|| attempt.finish(end, usage.clone()));
    } else {
        attempt.finish(end, usage.clone());
    }
}

/// Waits for the message's turn; returns the prompt, the messages and the state of the conversation where
/// replies may change it. `Err` is the end of a message that is not sent.
async fn reached(
    app: &App,
    run: &Run,
    mut prompt: Prompt,
    dialect: &str,
    before: BoxFuture<'static, ()>,
    turn: &mut Option<OwnedMutexGuard<()>>,
) -> Result<(Sent, Vec<Message>, Option<State>), End> {
    {
        let mut place = std::pin::pin!(async {
            before.await;
            prompt.turn(app, &run.row).await
        });
        *turn = Some(match place.as_mut().now_or_never() {
            Some(turn) => turn,
            None => tokio::select! {
                biased;
                // A stopping server starts no waiting message.
                () = app.closing.cancelled() => return Err(End::Failed(interrupted())),
                turn = place => turn,
            },
        });
    }
    let known = prompt.known;
    let sent = async {
        let (sent, messages) = prompt.sent(app, &run.row).await?;
        let state = states::attached(app, &run.row, known, dialect).await?;
        Ok::<_, StoreError>((sent, messages, state))
    };
    sent.await.map_err(|error| End::Failed(failure("store_unavailable", error.to_string(), true)))
}

/// Log of the message, as written by this run.
struct Log {
    live: Arc<Live>,
    lease: Box<dyn Lease>,
    seq: u64,
}

impl Log {
    /// Returns the number of the next entry.
    fn next(&self) -> u64 {
        self.lease.next()
    }

    /// Appends a batch. On an error the run must not continue.
    async fn append(&mut self, batch: Batch) -> Result<(), Written> {
        self.live.appending(&batch);
        self.lease.append(batch).await.stored()
    }
}

/// Waits until the run should stop, and returns its end: cancelled, key removed, no reader for the grace
/// time, or the server stops.
async fn stopped(app: &App, run: &Run) -> End {
    tokio::select! {
        () = run.live.cancel.cancelled() => {}
        () = run.removed.cancelled() => tracing::info!(message_id = run.live.id, "its key was removed"),
        () = run.live.deserted(run.grace) => tracing::debug!(message_id = run.live.id, "nobody reads it any more"),
        () = app.halting.cancelled() => return End::Failed(interrupted()),
    }
    End::Finished(FinishReason::Cancelled)
}

/// Returns the failure of messages that were running when the server stopped.
pub(crate) fn interrupted() -> Failure {
    failure("interrupted", "the server stopped while the message was running", true)
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
