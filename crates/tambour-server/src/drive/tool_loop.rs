//! Runs the tool calls of a reply. All calls are checked before any runs; one denied or invalid call prevents
//! all of them (P-028). The start of a call is on disk before the call is sent.
//!
//!
//! Each `tool_call` gets exactly one `tool_result`; one without a `tool_start` before it never ran.

mod round;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use serde_json::json;
use tambour::End;
use tambour::event::{Failure, FinishReason, ToolCall, ToolResult, ToolStart};
use tambour::options::Language;
use tambour::texts::counted;

use self::round::Round;
use super::attempt::Attempt;
use super::repeats::Repeats;
use super::{Choice, Log, Offer, Run, barred, execute, interrupted};
use crate::app::{App, Loaded};
use crate::fail;
use crate::history::Again;
use crate::metrics::Metrics;
use crate::store::Written;
use crate::telemetry::{Span, ToolCalled};
use crate::tools::{Answer, Decision, Desk, Executor, Offered, Request, Trouble, told, told_one};
use crate::upstream::{Message, NativeCall, failure};

/// Reason why the calls of a reply stop.
enum Halt {
    /// The message ends.
    End(End),
    /// The log cannot be written any more.
    Lost(Written),
}

impl From<End> for Halt {
    fn from(end: End) -> Halt {
        Halt::End(end)
    }
}

impl From<Written> for Halt {
    fn from(written: Written) -> Halt {
        Halt::Lost(written)
    }
}

/// Most calls of one reply: each may take its time, and its result is kept until the model is sent it.
const MOST_CALLS: usize = 128;

/// Tool calls of one message.
pub(super) struct ToolLoop<'a> {
    app: &'a Arc<App>,
    run: &'a Run,
    offer: &'a Offer,
    desk: Arc<Desk>,
    /// Number of replies that called tools.
    iterations: u32,
    repeats: Repeats,
    again: Again,
    language: Language,
}

impl<'a> ToolLoop<'a> {
    pub(super) fn new(app: &'a Arc<App>, run: &'a Run, offer: &'a Offer, choice: &Choice) -> ToolLoop<'a> {
        let desk = app.desks.open(&run.live.id);
        let (again, language) = (choice.again(), choice.options.texts.language);
        ToolLoop { app, run, offer, desk, iterations: 0, repeats: Repeats::default(), again, language }
    }

    /// Switches to a fallback, before anything was called.
    pub(super) fn read_as(&mut self, choice: &Choice) {
        (self.again, self.language) = (choice.again(), choice.options.texts.language);
    }

    /// Runs the calls of a reply; returns the messages for the model: the reply and the tool results. `None`
    /// when the message has ended; its last entries are still in the attempt.
    pub(super) async fn carry_out(
        &mut self,
        attempt: &mut Attempt,
        log: &mut Log,
    ) -> Result<Option<Vec<Message>>, Written> {
        let calls = attempt.calls().to_vec();
        let loaded = self.app.loaded();
        let language = self.language;
        let mut round = Round {
            calls: &calls,
            begun: vec![None; calls.len()],
            spans: vec![Span::default(); calls.len()],
            results: vec![None; calls.len()],
            attempt,
            log,
            message: &self.run.live.id,
            language,
        };
        let ended = match self.endless(&calls, loaded.config.tools.max_iterations) {
            Some(failure) => {
                Metrics::count(&self.app.metrics.tool_loops);
                Err(End::Failed(failure))
            }
            None => match self.all(&loaded, &mut round).await {
                Ok(()) => Ok(()),
                Err(Halt::End(end)) => Err(end),
                Err(Halt::Lost(written)) => return Err(written),
            },
        };
        if let Err(end) = &ended {
            round.abandon(end, &self.app.metrics);
        }
        let done: Vec<(ToolCall, ToolResult)> =
            calls.iter().cloned().zip(round.results.into_iter().flatten()).collect();
        let told = told(language, &done, loaded.config.tools.max_shown);
        if ended.is_ok() {
            attempt.new_line();
        }
        // Even without a further reply: the next message of the conversation includes the results.
        let said = (calls.len() <= MOST_CALLS).then(|| attempt.turn(&calls, &told, &self.again));
        if let Err(end) = &ended {
            self.run.failed(end);
            attempt.end(end);
            return Ok(None);
        }
        attempt.send(log).await?;
        let shown = loaded.config.tools.max_shown;
        Ok(said.map(|said| told_of(said, told, attempt, &done, language, shown)))
    }

    /// Returns a failure if the message calls tools without end.
    fn endless(&mut self, calls: &[ToolCall], most: u32) -> Option<Failure> {
        self.iterations += 1;
        if self.iterations > most {
            let message = format!(
                "more than {} of the message called tools (`tools.max_iterations`)",
                counted(most, "reply")
            );
            return Some(failure("tool_iterations", message, false));
        }
        if calls.len() > MOST_CALLS {
            let message = format!("a reply calls {} tools, more than {MOST_CALLS}", calls.len());
            return Some(failure("tool_calls", message, false));
        }
        let repeated = self.repeats.add(calls)?;
        Some(failure("tool_loop", format!("the model goes round in circles: {repeated}"), false))
    }

    /// Checks all calls, asks for confirmations, and runs them. `Err` when the run must stop.
    async fn all(&self, loaded: &Loaded, round: &mut Round<'_>) -> Result<(), Halt> {
        let calls = round.calls;
        let barred: Vec<Option<Trouble>> = calls.iter().map(|call| self.barred(loaded, call)).collect();
        if barred.iter().any(Option::is_some) {
            round.refuse(&barred, &Trouble::OtherBarred, &self.app.metrics);
            return Ok(());
        }
        let asks = |call: &ToolCall| self.offered(call).is_some_and(|offered| offered.tool.confirm);
        self.desk.announce(calls, asks);
        if let Some(denied) = self.denied(loaded, round, asks).await? {
            round.refuse(&denied, &Trouble::OtherDenied, &self.app.metrics);
            return Ok(());
        }
        let (mut at, mut failed) = (0, false);
        while at < calls.len() {
            let of_client = |call: &ToolCall| {
                matches!(self.offered(call), Some(Offered { executor: Executor::Client {}, .. }))
            };
            // Adjacent calls that the client runs are sent to it together.
            let clients = calls[at..].iter().take_while(|call| of_client(call)).count();
            let group = at..at + clients.max(1);
            if failed {
                for place in group.clone() {
                    round.trouble(place, &Trouble::BeforeFailed, &self.app.metrics);
                }
            } else if clients > 0 {
                self.by_client(loaded, round, group.clone()).await?;
            } else {
                self.by_server(loaded, round, at).await?;
            }
            failed |= round.results[group.clone()].iter().flatten().any(|result| !result.ok);
            at = group.end;
        }
        Ok(())
    }

    fn offered(&self, call: &ToolCall) -> Option<&Offered> {
        self.offer.tools.iter().find(|offered| offered.tool.name == call.name)
    }

    /// Returns the reason why a call must not run.
    fn barred(&self, loaded: &Loaded, call: &ToolCall) -> Option<Trouble> {
        match self.offered(call) {
            Some(offered) => barred(loaded, offered, self.offer.caller.as_deref(), &call.args),
            None => Some(Trouble::NoTool(call.name.clone())),
        }
    }

    /// Waits for the confirmations of calls that need one. Returns errors by call if one is not allowed.
    async fn denied(
        &self,
        loaded: &Loaded,
        round: &mut Round<'_>,
        asks: impl Fn(&ToolCall) -> bool,
    ) -> Result<Option<Vec<Option<Trouble>>>, Halt> {
        let asked: Vec<ToolCall> = round.calls.iter().filter(|call| asks(call)).cloned().collect();
        if asked.is_empty() {
            return Ok(None);
        }
        let ms = loaded.config.tools.confirmations_ms;
        round.status("awaiting_confirmation", &asked, Some(ms)).await?;
        let given: Vec<Option<Decision>> = match self.wait(ms, self.desk.decisions(&asked)).await? {
            Some(all) => all.into_iter().map(Some).collect(),
            None => self.desk.close(&asked).0,
        };
        let mut errors: Vec<Option<Trouble>> = vec![None; round.calls.len()];
        for (call, decision) in asked.iter().zip(given) {
            let place = round.calls.iter().position(|one| one.call_id == call.call_id).unwrap_or_default();
            errors[place] = match decision {
                Some(Decision { allow: true, .. }) => None,
                Some(Decision { reason, .. }) => Some(Trouble::Denied(reason)),
                None => Some(Trouble::Unconfirmed(ms)),
            };
        }
        Ok(errors.iter().any(Option::is_some).then_some(errors))
    }

    /// Runs calls on the client: they begin together, and all results are awaited.
    async fn by_client(
        &self,
        loaded: &Loaded,
        round: &mut Round<'_>,
        group: std::ops::Range<usize>,
    ) -> Result<(), Halt> {
        let calls = &round.calls[group.clone()];
        self.desk.want_results(calls);
        let ms = loaded.config.tools.results_ms;
        self.begin(round, group.clone(), "awaiting_tool_results", Some(ms)).await?;
        let given: Vec<Option<Answer>> = match self.wait(ms, self.desk.results(calls)).await? {
            Some(all) => all.into_iter().map(Some).collect(),
            None => self.desk.close(calls).1,
        };
        for (place, answer) in group.zip(given) {
            let late = || Err(Trouble::NoResult(ms).error(round.language));
            round.result(place, answer.unwrap_or_else(late), &self.app.metrics);
        }
        Ok(())
    }

    /// Runs a call by a webhook or an MCP server.
    async fn by_server(&self, loaded: &Loaded, round: &mut Round<'_>, place: usize) -> Result<(), Halt> {
        let call = &round.calls[place];
        let Some(Offered { executor, .. }) = self.offered(call) else {
            round.trouble(place, &Trouble::Nobody, &self.app.metrics);
            return Ok(());
        };
        self.begin(round, place..place + 1, "running_tools", None).await?;
        let request = Request {
            message_id: &self.run.live.id,
            call_id: &call.call_id,
            name: &call.name,
            args: &call.args,
            caller: self.offer.caller.as_deref(),
        };
        let answered = execute(loaded, executor, &request, &round.spans[place]);
        let answer = tokio::select! {
            biased;
            end = self.halted() => return Err(end.into()),
            answer = answered => answer,
        };
        fail::point("tool.answered");
        let answer = answer.map_err(|trouble| trouble.error(round.language));
        round.result(place, answer, &self.app.metrics);
        Ok(())
    }

    /// Writes the start of calls to the log, and waits until it is on disk.
    async fn begin(
        &self,
        round: &mut Round<'_>,
        group: std::ops::Range<usize>,
        state: &str,
        ms: Option<u64>,
    ) -> Result<(), Halt> {
        // A call that has not begun is better than one that is interrupted.
        if let Some(end) = self.halted().now_or_never() {
            return Err(end.into());
        }
        let calls = &round.calls[group.clone()];
        for (place, call) in group.zip(calls) {
            Metrics::count(&self.app.metrics.tool_calls);
            round.begun[place] = Some(Instant::now());
            round.spans[place] = self.run.span.tool(&ToolCalled {
                name: &call.name,
                call_id: &call.call_id,
                by_client: self.offered(call).is_some_and(|one| matches!(one.executor, Executor::Client {})),
                args: &call.args,
            });
            let start = ToolStart { call_id: call.call_id.clone(), name: call.name.clone() };
            round.attempt.extension(start);
        }
        round.status(state, calls, ms).await?;
        // A call must not be sent if its start could be lost.
        round.log.lease.settled().await.stored()?;
        fail::point("tool.started");
        Ok(())
    }

    /// Waits for people or clients; `None` on timeout. The stream needs no reader meanwhile.
    async fn wait<T>(&self, ms: u64, wanted: impl Future<Output = T>) -> Result<Option<T>, End> {
        let waits = &self.app.metrics.tool_waits;
        waits.fetch_add(1, Ordering::Relaxed);
        let waited = tokio::select! {
            biased;
            end = self.halted() => Err(end),
            given = tokio::time::timeout(Duration::from_millis(ms), wanted) => Ok(given.ok()),
        };
        waits.fetch_sub(1, Ordering::Relaxed);
        waited
    }

    /// Waits until the message is cancelled or the server stops.
    async fn halted(&self) -> End {
        tokio::select! {
            () = self.run.live.cancel.cancelled() => End::Finished(FinishReason::Cancelled),
            () = self.run.removed.cancelled() => End::Finished(FinishReason::Cancelled),
            () = self.app.halting.cancelled() => End::Failed(interrupted()),
        }
    }
}

/// Builds the messages for the model: the reply and the results, with results of native calls in the
/// service's own form.
fn told_of(
    said: Message,
    told: String,
    attempt: &Attempt,
    done: &[(ToolCall, ToolResult)],
    language: Language,
    max_shown: usize,
) -> Vec<Message> {
    let result = |(call, came): (&NativeCall, &Result<usize, String>)| {
        let content = match came {
            Ok(at) => done.get(*at).map(|done| told_one(language, done, max_shown)),
            Err(why) => Some(json!({"ok": false, "error": why}).to_string()),
        };
        Message { tool_call_id: Some(call.id.clone()), ..Message::new("tool", content.unwrap_or_default()) }
    };
    let results: Vec<Message> = attempt.native().map(result).collect();
    // Results of calls in the text are sent as text.
    let in_text = attempt.native().filter(|(_, came)| came.is_ok()).count() < done.len();
    let text = in_text.then(|| Message::new("user", told));
    [said].into_iter().chain(results).chain(text).collect()
}
