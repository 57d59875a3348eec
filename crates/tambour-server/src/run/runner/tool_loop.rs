//! Runs the tool calls of a reply. All calls are checked before any runs; one denied or invalid call prevents
//! all of them (P-028). The start of a call is on disk before the call is sent.
//!
//! Each `tool_call` gets exactly one `tool_result`; one without a `tool_start` before it never ran.

mod call_round;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use serde_json::json;
use tambour::InputEnd;
use tambour::event::{Failure, FinishReason, ToolCall, ToolResult, ToolStart};
use tambour::options::Language;
use tambour::texts::format_count;

use self::call_round::CallRound;
use super::attempt::Attempt;
use super::call_repeats::CallRepeats;
use super::{MessageRun, RunLog, ToolOffer, UpstreamChoice, execute, interrupted_failure, refusal_of_call};
use crate::base::fail;
use crate::base::metrics::Metrics;
use crate::record::history::HistoryWriter;
use crate::run::engine::RunEngine;
use crate::run::loaded_config::LoadedConfig;
use crate::store::WriteOutcome;
use crate::telemetry::{ToolCallInfo, TraceSpan};
use crate::tools::{
    AnswerDesk, CallDecision, CallError, Executor, OfferedTool, ToolAnswer, WebhookRequest, result_text,
    results_message,
};
use crate::upstream::{Message, NativeCall, new_failure};

/// Reason why the calls of a reply stop.
enum LoopHalt {
    /// The message ends.
    End(InputEnd),
    /// The log cannot be written any more.
    LogUnwritable(WriteOutcome),
}

impl From<InputEnd> for LoopHalt {
    fn from(end: InputEnd) -> LoopHalt {
        LoopHalt::End(end)
    }
}

impl From<WriteOutcome> for LoopHalt {
    fn from(written: WriteOutcome) -> LoopHalt {
        LoopHalt::LogUnwritable(written)
    }
}

/// Most calls of one reply: each may take its time, and its result is kept until the model is sent it.
const MAX_CALLS: usize = 128;

/// Tool calls of one message.
pub(super) struct ToolLoop<'a> {
    app: &'a Arc<RunEngine>,
    run: &'a MessageRun,
    offer: &'a ToolOffer,
    desk: Arc<AnswerDesk>,
    /// Number of replies that called tools.
    reply_count: u32,
    repeats: CallRepeats,
    history: HistoryWriter,
    language: Language,
}

impl<'a> ToolLoop<'a> {
    pub(super) fn new(
        engine: &'a Arc<RunEngine>,
        run: &'a MessageRun,
        offer: &'a ToolOffer,
        choice: &UpstreamChoice,
    ) -> ToolLoop<'a> {
        let desk = engine.desks.open(&run.live_run.id);
        let (history, language) = (choice.history_writer(), choice.options.texts.language);
        ToolLoop {
            app: engine,
            run,
            offer,
            desk,
            reply_count: 0,
            repeats: CallRepeats::default(),
            history,
            language,
        }
    }

    /// Switches to a fallback, before anything was called.
    pub(super) fn switch_choice(&mut self, choice: &UpstreamChoice) {
        (self.history, self.language) = (choice.history_writer(), choice.options.texts.language);
    }

    /// Runs the calls of a reply; returns the messages for the model: the reply and the tool results. `None`
    /// when the message has ended; its last entries are still in the attempt.
    pub(super) async fn run_calls(
        &mut self,
        attempt: &mut Attempt,
        log: &mut RunLog,
    ) -> Result<Option<Vec<Message>>, WriteOutcome> {
        let calls = attempt.calls().to_vec();
        let loaded_config = self.app.loaded_config();
        let language = self.language;
        let mut round = CallRound {
            calls: &calls,
            started: vec![None; calls.len()],
            spans: vec![TraceSpan::default(); calls.len()],
            results: vec![None; calls.len()],
            attempt,
            log,
            message: &self.run.live_run.id,
            language,
        };
        let end_error = match self.check_endless(&calls, loaded_config.config.tools.max_iterations) {
            Some(failure) => {
                Metrics::increment(&self.app.metrics.tool_loops);
                Err(InputEnd::Failed(failure))
            }
            None => match self.check_and_run(&loaded_config, &mut round).await {
                Ok(()) => Ok(()),
                Err(LoopHalt::End(end)) => Err(end),
                Err(LoopHalt::LogUnwritable(written)) => return Err(written),
            },
        };
        if let Err(end) = &end_error {
            round.end_open_calls(end, &self.app.metrics);
        }
        let call_results: Vec<(ToolCall, ToolResult)> =
            calls.iter().cloned().zip(round.results.into_iter().flatten()).collect();
        let results_text = results_message(language, &call_results, loaded_config.config.tools.max_shown);
        if end_error.is_ok() {
            attempt.push_line_break();
        }
        // Even without a further reply: the next message of the conversation includes the results.
        let messages = (calls.len() <= MAX_CALLS)
            .then(|| attempt.add_results_entry(&calls, &results_text, &self.history));
        if let Err(end) = &end_error {
            self.run.mark_failed(end);
            attempt.abandon(end);
            return Ok(None);
        }
        attempt.append_gathered(log).await?;
        let max_shown = loaded_config.config.tools.max_shown;
        Ok(messages.map(|messages| {
            result_messages(messages, results_text, attempt, &call_results, language, max_shown)
        }))
    }

    /// Returns a failure if the message calls tools without end.
    fn check_endless(&mut self, calls: &[ToolCall], max_calls: u32) -> Option<Failure> {
        self.reply_count += 1;
        if self.reply_count > max_calls {
            let message = format!(
                "more than {} of the message called tools (`tools.max_iterations`)",
                format_count(max_calls, "reply")
            );
            return Some(new_failure("tool_iterations", message, false));
        }
        if calls.len() > MAX_CALLS {
            let message = format!("a reply calls {} tools: at most {MAX_CALLS} are allowed", calls.len());
            return Some(new_failure("tool_calls", message, false));
        }
        let repeat_count = self.repeats.add(calls)?;
        Some(new_failure("tool_loop", format!("the model repeats its tool calls: {repeat_count}"), false))
    }

    /// Checks all calls, asks for confirmations, and runs them. `Err` when the run must stop.
    async fn check_and_run(
        &self,
        loaded_config: &LoadedConfig,
        round: &mut CallRound<'_>,
    ) -> Result<(), LoopHalt> {
        let calls = round.calls;
        let refusals: Vec<Option<CallError>> =
            calls.iter().map(|call| self.refusal(loaded_config, call)).collect();
        if refusals.iter().any(Option::is_some) {
            round.refuse_all(&refusals, &CallError::OtherRefused, &self.app.metrics);
            return Ok(());
        }
        let needs_confirmation = |call: &ToolCall| {
            self.find_tool(call).is_some_and(|selected_tool| selected_tool.tool.requires_confirmation)
        };
        self.desk.register_calls(calls, needs_confirmation);
        if let Some(denial) = self.wait_confirmations(loaded_config, round, needs_confirmation).await? {
            round.refuse_all(&denial, &CallError::OtherDenied, &self.app.metrics);
            return Ok(());
        }
        let (mut at, mut has_failed) = (0, false);
        while at < calls.len() {
            let is_of_client = |call: &ToolCall| {
                matches!(self.find_tool(call), Some(OfferedTool { executor: Executor::Client {}, .. }))
            };
            // Adjacent calls that the client runs are sent to it together.
            let clients = calls[at..].iter().take_while(|call| is_of_client(call)).count();
            let group = at..at + clients.max(1);
            if has_failed {
                for place in group.clone() {
                    round.record_error(place, &CallError::BeforeFailed, &self.app.metrics);
                }
            } else if clients > 0 {
                self.run_on_client(loaded_config, round, group.clone()).await?;
            } else {
                self.run_on_server(loaded_config, round, at).await?;
            }
            has_failed |= round.results[group.clone()].iter().flatten().any(|result| !result.ok);
            at = group.end;
        }
        Ok(())
    }

    fn find_tool(&self, call: &ToolCall) -> Option<&OfferedTool> {
        self.offer.tools.iter().find(|selected_tool| selected_tool.tool.name == call.name)
    }

    /// Returns the reason why a call must not run.
    fn refusal(&self, loaded_config: &LoadedConfig, call: &ToolCall) -> Option<CallError> {
        match self.find_tool(call) {
            Some(selected_tool) => {
                refusal_of_call(loaded_config, selected_tool, self.offer.caller.as_deref(), &call.args)
            }
            None => Some(CallError::NoTool(call.name.clone())),
        }
    }

    /// Waits for the confirmations of calls that need one. Returns errors by call if one is not allowed.
    async fn wait_confirmations(
        &self,
        loaded_config: &LoadedConfig,
        round: &mut CallRound<'_>,
        needs_confirmation: impl Fn(&ToolCall) -> bool,
    ) -> Result<Option<Vec<Option<CallError>>>, LoopHalt> {
        let open_calls: Vec<ToolCall> =
            round.calls.iter().filter(|call| needs_confirmation(call)).cloned().collect();
        if open_calls.is_empty() {
            return Ok(None);
        }
        let ms = loaded_config.config.tools.confirmations_ms;
        round.push_status("awaiting_confirmation", &open_calls, Some(ms)).await?;
        let decisions: Vec<Option<CallDecision>> =
            match self.wait_answers(ms, self.desk.wait_decisions(&open_calls)).await? {
                Some(all) => all.into_iter().map(Some).collect(),
                None => self.desk.close(&open_calls).0,
            };
        let mut errors: Vec<Option<CallError>> = vec![None; round.calls.len()];
        for (call, decision) in open_calls.iter().zip(decisions) {
            let place = round
                .calls
                .iter()
                .position(|candidate| candidate.call_id == call.call_id)
                .unwrap_or_default();
            errors[place] = match decision {
                Some(CallDecision { allow: true, .. }) => None,
                Some(CallDecision { reason, .. }) => Some(CallError::Denied(reason)),
                None => Some(CallError::Unconfirmed(ms)),
            };
        }
        Ok(errors.iter().any(Option::is_some).then_some(errors))
    }

    /// Runs calls on the client: they begin together, and all results are awaited.
    async fn run_on_client(
        &self,
        loaded_config: &LoadedConfig,
        round: &mut CallRound<'_>,
        group: std::ops::Range<usize>,
    ) -> Result<(), LoopHalt> {
        let calls = &round.calls[group.clone()];
        self.desk.expect_results(calls);
        let ms = loaded_config.config.tools.results_ms;
        self.start_calls(round, group.clone(), "awaiting_tool_results", Some(ms)).await?;
        let answers: Vec<Option<ToolAnswer>> =
            match self.wait_answers(ms, self.desk.wait_results(calls)).await? {
                Some(all) => all.into_iter().map(Some).collect(),
                None => self.desk.close(calls).1,
            };
        for (place, answer) in group.zip(answers) {
            let no_result = || Err(CallError::NoResult(ms).error(round.language));
            round.record_result(place, answer.unwrap_or_else(no_result), &self.app.metrics);
        }
        Ok(())
    }

    /// Runs a call by a webhook or an MCP server.
    async fn run_on_server(
        &self,
        loaded_config: &LoadedConfig,
        round: &mut CallRound<'_>,
        place: usize,
    ) -> Result<(), LoopHalt> {
        let call = &round.calls[place];
        let Some(OfferedTool { executor, .. }) = self.find_tool(call) else {
            round.record_error(place, &CallError::NoExecutor, &self.app.metrics);
            return Ok(());
        };
        self.start_calls(round, place..place + 1, "running_tools", None).await?;
        let request = WebhookRequest {
            message_id: &self.run.live_run.id,
            call_id: &call.call_id,
            name: &call.name,
            args: &call.args,
            caller: self.offer.caller.as_deref(),
        };
        let answer_future = execute(loaded_config, executor, &request, &round.spans[place]);
        let answer = tokio::select! {
            biased;
            end = self.wait_halt() => return Err(end.into()),
            answer = answer_future => answer,
        };
        fail::point("tool.answered");
        let answer = answer.map_err(|error| error.error(round.language));
        round.record_result(place, answer, &self.app.metrics);
        Ok(())
    }

    /// Writes the start of calls to the log, and waits until it is on disk.
    async fn start_calls(
        &self,
        round: &mut CallRound<'_>,
        group: std::ops::Range<usize>,
        state: &str,
        ms: Option<u64>,
    ) -> Result<(), LoopHalt> {
        // A call that has not begun is better than one that is interrupted.
        if let Some(end) = self.wait_halt().now_or_never() {
            return Err(end.into());
        }
        let calls = &round.calls[group.clone()];
        for (place, call) in group.zip(calls) {
            Metrics::increment(&self.app.metrics.tool_calls);
            round.started[place] = Some(Instant::now());
            round.spans[place] = self.run.span.start_tool(&ToolCallInfo {
                name: &call.name,
                call_id: &call.call_id,
                is_client_call: self
                    .find_tool(call)
                    .is_some_and(|tool| matches!(tool.executor, Executor::Client {})),
                args: &call.args,
            });
            let start = ToolStart { call_id: call.call_id.clone(), name: call.name.clone() };
            round.attempt.insert_event(start);
        }
        round.push_status(state, calls, ms).await?;
        // A call must not be sent if its start could be lost.
        round.log.lease.wait_settled().await.into_result()?;
        fail::point("tool.started");
        Ok(())
    }

    /// Waits for people or clients; `None` on timeout. The stream needs no reader meanwhile.
    async fn wait_answers<T>(
        &self,
        ms: u64,
        answers: impl Future<Output = T>,
    ) -> Result<Option<T>, InputEnd> {
        let tool_waits = &self.app.metrics.tool_waits;
        tool_waits.fetch_add(1, Ordering::Relaxed);
        let result = tokio::select! {
            biased;
            end = self.wait_halt() => Err(end),
            received = tokio::time::timeout(Duration::from_millis(ms), answers) => Ok(received.ok()),
        };
        tool_waits.fetch_sub(1, Ordering::Relaxed);
        result
    }

    /// Waits until the message is cancelled or the server stops.
    async fn wait_halt(&self) -> InputEnd {
        tokio::select! {
            () = self.run.live_run.cancel.cancelled() => InputEnd::Finished(FinishReason::Cancelled),
            () = self.run.key_removal.cancelled() => InputEnd::Finished(FinishReason::Cancelled),
            () = self.app.run_abort.cancelled() => InputEnd::Failed(interrupted_failure()),
        }
    }
}

/// Builds the messages for the model: the reply and the results, with results of native calls in the
/// service's own form.
fn result_messages(
    reply_messages: Message,
    results_text: String,
    attempt: &Attempt,
    call_results: &[(ToolCall, ToolResult)],
    language: Language,
    max_shown: usize,
) -> Vec<Message> {
    let result = |(call, parsed): (&NativeCall, &Result<usize, String>)| {
        let content = match parsed {
            Ok(at) => {
                call_results.get(*at).map(|call_results| result_text(language, call_results, max_shown))
            }
            Err(error) => Some(json!({"ok": false, "error": error}).to_string()),
        };
        Message { tool_call_id: Some(call.id.clone()), ..Message::new("tool", content.unwrap_or_default()) }
    };
    let results: Vec<Message> = attempt.native_calls().map(result).collect();
    // Results of calls in the text are sent as text.
    let has_text_calls =
        attempt.native_calls().filter(|(_, parsed)| parsed.is_ok()).count() < call_results.len();
    let text = has_text_calls.then(|| Message::new("user", results_text));
    [reply_messages].into_iter().chain(results).chain(text).collect()
}
