//! Runs one message: asks the upstream, reads the reply, puts it on the log; runs what the reply calls, and asks on. The only
//! place that waits for a model.

mod attempt;
mod given_up;
mod repeats;
mod tool_loop;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use serde_json::{Value, json};
use tambour::event::{Failure, FinishReason};
use tambour::{End, Options};
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

use crate::apart::Apart;
use crate::app::App;
use crate::ask::Prompt;
use crate::fail;
use crate::history::{Again, Sent};
use crate::live::Live;
use crate::metrics::Metrics;
use crate::record::{self, Timings};
use crate::states::{self, State};
use crate::store::{Batch, MessageRow, StoreError};
use crate::telemetry::Span;
use crate::tools::Offered;
use crate::upstream::{Ask, Message, Upstream, failure};
use attempt::Attempt;
use tool_loop::ToolLoop;

/// Everything a run needs.
pub(crate) struct Run {
    pub(crate) row: MessageRow,
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
pub(crate) async fn run(app: Arc<App>, run: Box<Run>, choices: Vec<Choice>, prompt: Prompt) {
    let Run { row, live, key, .. } = &*run;
    let (mut timings, mut usage) = (Timings::default(), Value::Null);
    // The turn in the conversation lasts until it is known what came of the message.
    let mut turn = None;
    let counts = (&mut timings, &mut usage);
    let reading =
        AssertUnwindSafe(read(&app, &run, &choices, prompt, &mut turn, counts)).catch_unwind().await;
    app.spent(key, &row.owner, 1, &usage).await;
    let mut closed = Ok(());
    if reading.is_err() {
        let failure = failure("internal_error", "the server failed while it read the reply", true);
        tracing::error!(message_id = live.id, "a run has panicked; its message is closed");
        run.span.fail(&failure.code);
        closed = Box::pin(record::close(&*app.store, row, failure, &app.own())).await;
    }
    let stored = match closed {
        Ok(()) => Box::pin(record::materialise(&*app.store, row, timings, &app.own())).await,
        Err(error) => Err(error),
    };
    match &stored {
        Ok(status) => {
            if *status == "failed" {
                Metrics::count(&app.metrics.failed);
            }
            run.span.end(status);
        }
        Err(error) => {
            tracing::error!(%error, message_id = live.id, "not all was written; the next start does it");
            run.span.fail("store_unavailable");
            run.span.end("unwritten");
        }
    }
    app.desks.remove(&live.id);
    app.store.end(&live.id).await;
    live.end();
    app.live.remove(&live.id);
}

/// Asks, reads, and asks again if need be: since a reply cannot be used, or with the results of its calls.
async fn read(
    app: &Arc<App>,
    run: &Run,
    choices: &[Choice],
    prompt: Prompt,
    turn: &mut Option<OwnedMutexGuard<()>>,
    (timings, usage): (&mut Timings, &mut Value),
) {
    let started = Instant::now();
    let mut log = Log { app: app.clone(), live: run.live.clone(), next: 1, seq: 0 };
    let mut others = choices.iter();
    let mut choice = others.next().expect("somebody is asked");
    let mut ask = choice.ask(run, others.len());
    // What is thrown away is kept in the record.
    let keeps = run.max_reasks > 0 || others.len() > 0;
    let (mut reasks, mut before) = (0, None);
    let mut tools = run.offer.as_ref().map(|offer| Box::new(ToolLoop::new(app, run, offer, choice)));
    let known = prompt.known;
    // One wait while the model writes: the time of grace goes on meanwhile.
    let mut stop = std::pin::pin!(Apart::new(stopped(app, run)));
    let reached = tokio::select! {
        biased;
        end = stop.as_mut() => Err(end),
        reached = Box::pin(reached(app, run, prompt, &ask.dialect, turn)) => reached.map_err(|error| {
            End::Failed(failure("store_unavailable", error.to_string(), true))
        }),
    };
    let (mut not_asked, mut told, mut state) = match reached {
        Ok((sent, messages, state)) => {
            log.append(record::prompt(log.next, &sent)).await;
            let told = (others.len() > 0).then(|| (sent, messages.clone()));
            ask.messages = messages;
            (None, told, state)
        }
        Err(end) => (Some(end), None, None),
    };
    loop {
        let place = (log.next, log.seq);
        let before_it = before.as_deref();
        let attempt = Attempt::new(choice, state.as_ref(), &ask.dialect, before_it, (reasks, keeps), place);
        let mut attempt = Box::new(attempt);
        let end = match not_asked.take() {
            Some(end) => end,
            None => attempt.read(run, choice, &ask, &mut log, (started, timings), stop.as_mut()).await,
        };
        fail::point("run");
        add_usage(usage, attempt.usage.take());
        attempt.finish(&end, usage.clone());
        timings.total_ms = millis(started);
        let again = attempt.may_be_asked_again() && reasks < run.max_reasks;
        if again
            && let End::Finished(reason @ (FinishReason::Stop | FinishReason::ToolCalls)) = end
            && !run.live.cancel.is_cancelled()
        {
            reasks += 1;
            attempt.throw_away(reason, reasks, &mut log).await;
            ask.messages.extend(attempt.complaint(&choice.options));
            continue;
        }
        let given_up = before.is_none() && attempt.may_be_given_up(&end) && !run.live.cancel.is_cancelled();
        if given_up && let (Some(next), Some((sent, messages))) = (others.next(), &mut told) {
            attempt.give_up(&end, choice, next, &mut log).await;
            choice = next;
            ask = choice.ask(run, others.len());
            ask.messages = choice.said(sent, messages);
            log.append(record::prompt(log.next, sent)).await;
            state = states::attached(app, &run.row, known, &ask.dialect).await.unwrap_or_else(|error| {
                not_asked = Some(End::Failed(failure("store_unavailable", error.to_string(), true)));
                None
            });
            if let Some(tools) = &mut tools {
                tools.read_as(choice);
            }
            reasks = 0;
            continue;
        }
        let Some(tools) = tools.as_mut().filter(|_| !attempt.calls().is_empty()) else {
            run.failed(&end);
            return attempt.send(&mut log).await;
        };
        // In a place of its own: most messages call nothing, and would carry the room for it.
        let Some(said) = Box::pin(tools.carry_out(&mut attempt, &mut log)).await else {
            timings.total_ms = millis(started);
            return;
        };
        ask.messages.extend(said);
        before = Some(Box::new(attempt.into_pipeline()));
        // Nobody is expected to watch calls run: the time of grace begins anew.
        stop.set(Apart::new(stopped(app, run)));
    }
}

/// Waits for the message's turn: what is sent then, and the state of the conversation where replies may change it.
async fn reached(
    app: &App,
    run: &Run,
    prompt: Prompt,
    dialect: &str,
    turn: &mut Option<OwnedMutexGuard<()>>,
) -> Result<(Sent, Vec<Message>, Option<State>), StoreError> {
    let known = prompt.known;
    let (sent, messages) = prompt.reached(app, &run.row, turn).await?;
    let state = states::attached(app, &run.row, known, dialect).await?;
    Ok((sent, messages, state))
}

/// The log of the message, as far as this run has written it.
struct Log {
    app: Arc<App>,
    live: Arc<Live>,
    next: u64,
    seq: u64,
}

impl Log {
    async fn append(&mut self, batch: Batch) {
        self.next = batch.last() + 1;
        self.live.appending(&batch);
        let Log { app, live, .. } = self;
        if app.store.append(&live.id, app.store.own().epoch, batch).await.is_err() {
            // The server is stopping; the next start closes what is open.
            tracing::warn!(message_id = self.live.id, "the log is closed");
        }
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

/// Adds the token counts of an attempt.
fn add_usage(sum: &mut Value, usage: Option<Value>) {
    match (sum, usage) {
        (_, None | Some(Value::Null)) => {}
        (Value::Object(sum), Some(Value::Object(more))) => {
            for (name, value) in more {
                add_usage(sum.entry(name).or_insert(Value::Null), Some(value));
            }
        }
        (sum, Some(more)) => {
            let both = sum.as_u64().zip(more.as_u64());
            *sum = both.map_or(more, |(a, b)| Value::from(a + b));
        }
    }
}

/// A failure for messages that were running when the server stopped.
pub(crate) fn interrupted() -> Failure {
    failure("interrupted", "the server stopped while the message was running", true)
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
