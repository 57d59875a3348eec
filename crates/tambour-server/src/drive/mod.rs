//! Runs one message: asks the upstream, reads the reply, puts it on the log; runs what the reply calls, and asks on. The only
//! place that waits for a model.

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

/// Everything a run needs.
pub(crate) struct Run {
    pub(crate) row: Arc<MessageRow>,
    pub(crate) live: Arc<Live>,
    /// What is traced of it.
    pub(crate) span: Span,
    /// The key that asked.
    pub(crate) key: String,
    /// Ends when it is removed.
    pub(crate) removed: CancellationToken,
    /// Tools that replies may call; none without a tool loop.
    pub(crate) offer: Option<Offer>,
    /// Raw text counts as delivered as soon as it is on the log.
    pub(crate) legacy: bool,
    pub(crate) max_reasks: u32,
    /// How long a run goes on when nobody reads it any more.
    pub(crate) grace: Duration,
    /// Room for what it keeps of its request.
    pub(crate) _kept: Taken,
}

/// Who is asked, how, and how the reply is read.
pub(crate) struct Choice {
    pub(crate) upstream: Arc<Upstream>,
    /// How the model is asked, without the messages.
    pub(crate) ask: Ask,
    pub(crate) options: Options,
    /// What goes before all messages.
    pub(crate) system: Option<String>,
    /// The contract as the request says it.
    pub(crate) contract: Value,
}

impl Run {
    /// Traces that the message ends like this, where that is a failure.
    fn failed(&self, end: &End) {
        if let End::Failed(Failure { code, .. }) = end {
            self.span.fail(code);
        }
    }
}

impl Choice {
    /// How the model is asked, `others` being asked when nothing comes of it.
    fn ask(&self, run: &Run, others: usize) -> Ask {
        let (message, span) = (run.row.id.as_str().into(), run.span.clone());
        Ask { message, span, hurry: others > 0, ..self.ask.clone() }
    }

    /// What is said to it: the messages as they were sent to another one, but for what goes before them.
    fn said(&self, sent: &mut Sent, messages: &mut Vec<Message>) -> Vec<Message> {
        messages.drain(..usize::from(sent.system.is_some()));
        sent.system.clone_from(&self.system);
        messages.splice(0..0, self.system.iter().map(|text| Message::new("system", text)));
        messages.clone()
    }

    /// The fields of a request that say this.
    fn fields(&self) -> Value {
        json!({
            "upstream": self.upstream.name(), "model": self.ask.model, "dialect": self.ask.dialect,
            "contract": self.contract,
        })
    }

    /// How a reply of it is written again.
    fn again(&self) -> Again {
        Again::new(&self.ask.dialect, &self.options)
    }
}

/// What the replies of a message may call.
pub(crate) struct Offer {
    pub(crate) tools: Vec<Offered>,
    /// Who calls (P-033).
    pub(crate) caller: Option<String>,
}

/// Runs a message to its end; whatever happens, its log ends with one `completed` or `error`. The choices, of which there is one at
/// least, are asked in order until one gives something that can be used.
///
/// What a run keeps is in boxes: thousands of them wait for their models at a time, and a future that moves large values has room
/// for each move.
pub(crate) async fn run(
    app: Arc<App>,
    run: Box<Run>,
    lease: Box<dyn Lease>,
    choices: Vec<Choice>,
    prompt: Prompt,
) {
    let leaving = Leaving { app: app.clone(), live: run.live.clone() };
    let (mut timings, mut spending) = (Timings::default(), Spending::default());
    // The turn in the conversation lasts until it is known what came of the message.
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
            // Nobody waits for it: what comes behind it goes on.
            drop((turn, leaving));
            Box::pin(close_in_time(&app, &run.live.id)).await;
        }
    }
}

/// Takes a message off what is running, whatever became of its run.
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

/// Writes the end of a message, with what came of it: `last`, or where reading it has panicked what closes its log.
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

/// Claims a message or turn whose run has left it without an end, and ends it: again and again, until that is done or the server stops.
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
            // The next start does it.
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

/// Asks, reads, and asks again if need be: since a reply cannot be used, or with the results of its calls. Gives the last entries,
/// which are not on the log yet, or why nothing more can be written on it.
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
    // What is thrown away is kept in the record.
    let keeps = run.max_reasks > 0 || others.len() > 0;
    let (mut reasks, mut before, mut best) = (0, None, None::<Best>);
    let mut tools = run.offer.as_ref().map(|offer| Box::new(ToolLoop::new(app, run, offer, choice)));
    let known = prompt.known;
    // One wait while the model writes: the time of grace goes on meanwhile.
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
        // What came then takes over only if it is better.
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
        // In a place of its own: most messages call nothing, and would carry the room for it.
        let Some(said) = Box::pin(tools.carry_out(&mut attempt, log)).await? else {
            timings.total_ms = millis(started);
            return Ok(attempt.rest(log));
        };
        ask.messages.extend(said);
        before = Some(Box::new(attempt.into_pipeline()));
        // Nobody is expected to watch calls run: the time of grace begins anew.
        stop.set(Apart::new(stopped(app, run)));
    }
}

/// Ends a reply.
async fn finish(app: &App, run: &Run, attempt: &mut Attempt, end: &End, usage: &Value) {
    if attempt.has_schema() {
        // A check may take long: those of one owner take turns, and the other tasks of this thread go on elsewhere.
        let _turn = app.aside.turn(&run.row.owner).await;
        aside::in_place(|| attempt.finish(end, usage.clone()));
    } else {
        attempt.finish(end, usage.clone());
    }
}

/// Waits for the message's turn: what is sent then, and the state of the conversation where replies may change it. The end when
/// there is nothing to be sent.
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
                // A server that stops lets none that waits begin.
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

/// The log of the message, as far as this run has written it.
struct Log {
    live: Arc<Live>,
    lease: Box<dyn Lease>,
    seq: u64,
}

impl Log {
    /// Number of the next entry.
    fn next(&self) -> u64 {
        self.lease.next()
    }

    /// Puts a batch on the log. What cannot be written there must not be gone on with.
    async fn append(&mut self, batch: Batch) -> Result<(), Written> {
        self.live.appending(&batch);
        self.lease.append(batch).await.stored()
    }
}

/// Waits until the run should stop, and says how it ends: cancelled, nobody has read it for the time of grace, or the
/// server stops.
async fn stopped(app: &App, run: &Run) -> End {
    tokio::select! {
        () = run.live.cancel.cancelled() => {}
        () = run.removed.cancelled() => tracing::info!(message_id = run.live.id, "its key was removed"),
        () = run.live.deserted(run.grace) => tracing::debug!(message_id = run.live.id, "nobody reads it any more"),
        () = app.halting.cancelled() => return End::Failed(interrupted()),
    }
    End::Finished(FinishReason::Cancelled)
}

/// A failure for messages that were running when the server stopped.
pub(crate) fn interrupted() -> Failure {
    failure("interrupted", "the server stopped while the message was running", true)
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
