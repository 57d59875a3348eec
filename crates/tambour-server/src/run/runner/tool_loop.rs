//! Runs the tool calls of a reply. All calls are checked before any runs; one denied or invalid call prevents
//! all of them (P-028). The start of a call is stored before the call is sent.
//!
//! Each `tool_call` event gets exactly one `tool_result`; without a `tool_start` before it, the call never
//! ran.

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
    /// The log cannot be written any more, because of this outcome of a write.
    LogUnwritable(WriteOutcome),
}

impl From<InputEnd> for LoopHalt {
    fn from(end: InputEnd) -> LoopHalt {
        LoopHalt::End(end)
    }
}

impl From<WriteOutcome> for LoopHalt {
    fn from(write_outcome: WriteOutcome) -> LoopHalt {
        LoopHalt::LogUnwritable(write_outcome)
    }
}

/// Maximum number of calls of one reply: each may take long, and its result is kept until it is sent to the
/// model.
const MAX_CALLS: usize = 128;

/// Tool calls of one message.
pub(super) struct ToolLoop<'a> {
    engine: &'a Arc<RunEngine>,
    run: &'a MessageRun,
    offer: &'a ToolOffer,
    /// Receives the confirmations and results that clients send.
    desk: Arc<AnswerDesk>,
    /// Number of replies so far that called tools.
    calling_replies: u32,
    repeats: CallRepeats,
    history_writer: HistoryWriter,
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
        let (history_writer, language) = (choice.history_writer(), choice.options.texts.language);
        ToolLoop {
            engine,
            run,
            offer,
            desk,
            calling_replies: 0,
            repeats: CallRepeats::default(),
            history_writer,
            language,
        }
    }

    /// Switches to the history writer and language of a fallback, before any reply called a tool.
    pub(super) fn switch_choice(&mut self, choice: &UpstreamChoice) {
        (self.history_writer, self.language) = (choice.history_writer(), choice.options.texts.language);
    }

    /// Runs the calls of a reply. Returns the next messages for the model: the reply and the tool results.
    /// `None` when the message has ended; its last entries are still in the attempt.
    pub(super) async fn run_calls(
        &mut self,
        attempt: &mut Attempt,
        log: &mut RunLog,
    ) -> Result<Option<Vec<Message>>, WriteOutcome> {
        let calls = attempt.calls().to_vec();
        let loaded_config = self.engine.loaded_config();
        let language = self.language;
        let mut round = CallRound {
            calls: &calls,
            start_times: vec![None; calls.len()],
            spans: vec![TraceSpan::default(); calls.len()],
            results: vec![None; calls.len()],
            attempt,
            log,
            message_id: &self.run.live_run.id,
            language,
        };
        let loop_result = match self.check_endless(&calls, loaded_config.config.tools.max_iterations) {
            Some(failure) => {
                Metrics::increment(&self.engine.metrics.tool_loops);
                Err(InputEnd::Failed(failure))
            }
            None => match self.check_and_run(&loaded_config, &mut round).await {
                Ok(()) => Ok(()),
                Err(LoopHalt::End(end)) => Err(end),
                Err(LoopHalt::LogUnwritable(write_outcome)) => return Err(write_outcome),
            },
        };
        if let Err(end) = &loop_result {
            round.end_open_calls(end, &self.engine.metrics);
        }
        let call_results: Vec<(ToolCall, ToolResult)> =
            calls.iter().cloned().zip(round.results.into_iter().flatten()).collect();
        let results_text = results_message(language, &call_results, loaded_config.config.tools.max_shown);
        if loop_result.is_ok() {
            attempt.push_line_break();
        }
        // Also added if the message ends here, since prompts of later messages include the results; only the
        // results of too many calls are left out.
        let reply_message = (calls.len() <= MAX_CALLS)
            .then(|| attempt.add_results_entry(&calls, &results_text, &self.history_writer));
        if let Err(end) = &loop_result {
            self.run.mark_failed(end);
            attempt.abandon(end);
            return Ok(None);
        }
        attempt.append_gathered(log).await?;
        let max_shown = loaded_config.config.tools.max_shown;
        Ok(reply_message.map(|reply_message| {
            result_messages(reply_message, results_text, attempt, &call_results, language, max_shown)
        }))
    }

    /// Counts the calls of a reply. Returns a failure if the message seems to call tools without end: too
    /// many replies did (`max_replies`), this one has too many calls, or the calls repeat.
    fn check_endless(&mut self, calls: &[ToolCall], max_replies: u32) -> Option<Failure> {
        self.calling_replies += 1;
        if self.calling_replies > max_replies {
            let message = format!(
                "more than {} of the message called tools (`tools.max_iterations`)",
                format_count(max_replies, "reply")
            );
            return Some(new_failure("tool_iterations", message, false));
        }
        if calls.len() > MAX_CALLS {
            let message = format!("a reply calls {} tools: at most {MAX_CALLS} are allowed", calls.len());
            return Some(new_failure("tool_calls", message, false));
        }
        let repetition = self.repeats.add(calls)?;
        Some(new_failure("tool_loop", format!("the model repeats its tool calls: {repetition}"), false))
    }

    /// Checks all calls, waits for confirmations, and runs the calls in order; the calls after a failed one
    /// get errors instead. `Err` when the run must stop.
    async fn check_and_run(
        &self,
        loaded_config: &LoadedConfig,
        round: &mut CallRound<'_>,
    ) -> Result<(), LoopHalt> {
        let calls = round.calls;
        let refusals: Vec<Option<CallError>> =
            calls.iter().map(|call| self.refusal(loaded_config, call)).collect();
        if refusals.iter().any(Option::is_some) {
            round.refuse_all(&refusals, &CallError::OtherRefused, &self.engine.metrics);
            return Ok(());
        }
        let needs_confirmation = |call: &ToolCall| {
            self.find_tool(call).is_some_and(|offered_tool| offered_tool.tool.requires_confirmation)
        };
        self.desk.register_calls(calls, needs_confirmation);
        if let Some(denials) = self.wait_confirmations(loaded_config, round, needs_confirmation).await? {
            round.refuse_all(&denials, &CallError::OtherDenied, &self.engine.metrics);
            return Ok(());
        }
        let (mut start, mut has_failed) = (0, false);
        while start < calls.len() {
            let runs_on_client = |call: &ToolCall| {
                matches!(self.find_tool(call), Some(OfferedTool { executor: Executor::Client {}, .. }))
            };
            // Adjacent calls that the client runs are sent to it together.
            let client_call_count = calls[start..].iter().take_while(|call| runs_on_client(call)).count();
            let group = start..start + client_call_count.max(1);
            if has_failed {
                for index in group.clone() {
                    round.record_error(index, &CallError::EarlierFailed, &self.engine.metrics);
                }
            } else if client_call_count > 0 {
                self.run_on_client(loaded_config, round, group.clone()).await?;
            } else {
                self.run_on_server(loaded_config, round, start).await?;
            }
            has_failed |= round.results[group.clone()].iter().flatten().any(|result| !result.ok);
            start = group.end;
        }
        Ok(())
    }

    fn find_tool(&self, call: &ToolCall) -> Option<&OfferedTool> {
        self.offer.tools.iter().find(|offered_tool| offered_tool.tool.name == call.name)
    }

    /// Returns the reason why a call must not run.
    fn refusal(&self, loaded_config: &LoadedConfig, call: &ToolCall) -> Option<CallError> {
        match self.find_tool(call) {
            Some(offered_tool) => {
                refusal_of_call(loaded_config, offered_tool, self.offer.caller.as_deref(), &call.args)
            }
            None => Some(CallError::NoTool(call.name.clone())),
        }
    }

    /// Waits for the confirmations of calls that need one. Returns `None` if all are allowed; otherwise, for
    /// each call of the round, its error if it was denied or not confirmed in time.
    async fn wait_confirmations(
        &self,
        loaded_config: &LoadedConfig,
        round: &mut CallRound<'_>,
        needs_confirmation: impl Fn(&ToolCall) -> bool,
    ) -> Result<Option<Vec<Option<CallError>>>, LoopHalt> {
        let unconfirmed_calls: Vec<ToolCall> =
            round.calls.iter().filter(|call| needs_confirmation(call)).cloned().collect();
        if unconfirmed_calls.is_empty() {
            return Ok(None);
        }
        let timeout_ms = loaded_config.config.tools.confirmations_ms;
        round.push_status("awaiting_confirmation", &unconfirmed_calls, Some(timeout_ms)).await?;
        let decisions: Vec<Option<CallDecision>> =
            match self.wait_answers(timeout_ms, self.desk.wait_decisions(&unconfirmed_calls)).await? {
                Some(decisions) => decisions.into_iter().map(Some).collect(),
                // After the timeout, only some calls may have a decision.
                None => self.desk.close(&unconfirmed_calls).0,
            };
        let mut errors: Vec<Option<CallError>> = vec![None; round.calls.len()];
        for (call, decision) in unconfirmed_calls.iter().zip(decisions) {
            let index = round
                .calls
                .iter()
                .position(|candidate| candidate.call_id == call.call_id)
                .unwrap_or_default();
            errors[index] = match decision {
                Some(CallDecision { allow: true, .. }) => None,
                Some(CallDecision { reason, .. }) => Some(CallError::Denied(reason)),
                None => Some(CallError::Unconfirmed(timeout_ms)),
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
        let timeout_ms = loaded_config.config.tools.results_ms;
        self.start_calls(round, group.clone(), "awaiting_tool_results", Some(timeout_ms)).await?;
        let answers: Vec<Option<ToolAnswer>> =
            match self.wait_answers(timeout_ms, self.desk.wait_results(calls)).await? {
                Some(answers) => answers.into_iter().map(Some).collect(),
                // After the timeout, only some calls may have a result.
                None => self.desk.close(calls).1,
            };
        for (index, answer) in group.zip(answers) {
            let no_result = || Err(CallError::NoResult(timeout_ms).error(round.language));
            round.record_result(index, answer.unwrap_or_else(no_result), &self.engine.metrics);
        }
        Ok(())
    }

    /// Runs a call over a webhook or an MCP server.
    async fn run_on_server(
        &self,
        loaded_config: &LoadedConfig,
        round: &mut CallRound<'_>,
        index: usize,
    ) -> Result<(), LoopHalt> {
        let call = &round.calls[index];
        let Some(OfferedTool { executor, .. }) = self.find_tool(call) else {
            round.record_error(index, &CallError::NoExecutor, &self.engine.metrics);
            return Ok(());
        };
        self.start_calls(round, index..index + 1, "running_tools", None).await?;
        let request = WebhookRequest {
            message_id: &self.run.live_run.id,
            call_id: &call.call_id,
            name: &call.name,
            args: &call.args,
            caller: self.offer.caller.as_deref(),
        };
        let answer_future = execute(loaded_config, executor, &request, &round.spans[index]);
        let answer = tokio::select! {
            biased;
            end = self.wait_halt() => return Err(end.into()),
            answer = answer_future => answer,
        };
        fail::point("tool.answered");
        let answer = answer.map_err(|error| error.error(round.language));
        round.record_result(index, answer, &self.engine.metrics);
        Ok(())
    }

    /// Writes the start of calls to the log with a status event, and waits until both are stored.
    /// `timeout_ms` is the time that clients have for results.
    async fn start_calls(
        &self,
        round: &mut CallRound<'_>,
        group: std::ops::Range<usize>,
        state: &str,
        timeout_ms: Option<u64>,
    ) -> Result<(), LoopHalt> {
        // If the run must stop, the calls do not begin at all, so that none is interrupted.
        if let Some(end) = self.wait_halt().now_or_never() {
            return Err(end.into());
        }
        let calls = &round.calls[group.clone()];
        for (index, call) in group.zip(calls) {
            Metrics::increment(&self.engine.metrics.tool_calls);
            round.start_times[index] = Some(Instant::now());
            round.spans[index] = self.run.span.start_tool(&ToolCallInfo {
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
        round.push_status(state, calls, timeout_ms).await?;
        // A call must not be sent if its start could be lost.
        round.log.lease.wait_settled().await.into_result()?;
        fail::point("tool.started");
        Ok(())
    }

    /// Waits for confirmations or results of clients; `None` on timeout. The stream needs no reader
    /// meanwhile.
    async fn wait_answers<T>(
        &self,
        timeout_ms: u64,
        answers: impl Future<Output = T>,
    ) -> Result<Option<T>, InputEnd> {
        let tool_waits = &self.engine.metrics.tool_waits;
        tool_waits.fetch_add(1, Ordering::Relaxed);
        let result = tokio::select! {
            biased;
            end = self.wait_halt() => Err(end),
            received = tokio::time::timeout(Duration::from_millis(timeout_ms), answers) => Ok(received.ok()),
        };
        tool_waits.fetch_sub(1, Ordering::Relaxed);
        result
    }

    /// Waits until the message is cancelled, its key is removed or the server stops; returns the end.
    async fn wait_halt(&self) -> InputEnd {
        tokio::select! {
            () = self.run.live_run.cancel.cancelled() => InputEnd::Finished(FinishReason::Cancelled),
            () = self.run.key_removal.cancelled() => InputEnd::Finished(FinishReason::Cancelled),
            () = self.engine.run_abort.cancelled() => InputEnd::Failed(interrupted_failure()),
        }
    }
}

/// Builds the next messages for the model: the reply, the results of native calls in the service's own form,
/// and a text with the results of all calls if some were made in the text.
fn result_messages(
    reply_message: Message,
    results_text: String,
    attempt: &Attempt,
    call_results: &[(ToolCall, ToolResult)],
    language: Language,
    max_shown: usize,
) -> Vec<Message> {
    let native_result = |(call, call_index): (&NativeCall, &Result<usize, String>)| {
        let content = match call_index {
            Ok(index) => {
                call_results.get(*index).map(|call_result| result_text(language, call_result, max_shown))
            }
            Err(error) => Some(json!({"ok": false, "error": error}).to_string()),
        };
        Message { tool_call_id: Some(call.id.clone()), ..Message::new("tool", content.unwrap_or_default()) }
    };
    let native_results: Vec<Message> = attempt.native_calls().map(native_result).collect();
    let has_text_calls =
        attempt.native_calls().filter(|(_, call_index)| call_index.is_ok()).count() < call_results.len();
    let text = has_text_calls.then(|| Message::new("user", results_text));
    [reply_message].into_iter().chain(native_results).chain(text).collect()
}
