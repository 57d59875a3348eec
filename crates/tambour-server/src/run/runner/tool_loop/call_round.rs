//! Tool calls of one reply while they run: status events, tracing, and the result of each call.

use std::time::Instant;

use serde_json::{Value, json};
use tambour::InputEnd;
use tambour::event::{ToolCall, ToolResult};
use tambour::options::Language;

use crate::base::durations::millis;
use crate::base::metrics::Metrics;
use crate::run::runner::RunLog;
use crate::run::runner::attempt::Attempt;
use crate::store::WriteOutcome;
use crate::telemetry::TraceSpan;
use crate::tools::{CallError, ToolAnswer};

/// Progress of the calls of one reply.
pub(super) struct CallRound<'r> {
    pub(super) calls: &'r [ToolCall],
    /// Start time of each call, once it has begun.
    pub(super) start_times: Vec<Option<Instant>>,
    /// Tracing span of each call.
    pub(super) spans: Vec<TraceSpan>,
    /// Result of each call, once known.
    pub(super) results: Vec<Option<ToolResult>>,
    pub(super) attempt: &'r mut Attempt,
    pub(super) log: &'r mut RunLog,
    pub(super) message_id: &'r str,
    pub(super) language: Language,
}

impl CallRound<'_> {
    /// Emits a status event about these calls, and appends the gathered entries.
    pub(super) async fn push_status(
        &mut self,
        state: &str,
        calls: &[ToolCall],
        timeout_ms: Option<u64>,
    ) -> Result<(), WriteOutcome> {
        let calls: Vec<Value> =
            calls.iter().map(|call| json!({"call_id": call.call_id, "name": call.name})).collect();
        let mut status = json!({"state": state, "calls": calls});
        if let Some(timeout_ms) = timeout_ms {
            status["timeout_ms"] = timeout_ms.into();
        }
        self.attempt.push_status(&status);
        self.attempt.append_gathered(self.log).await
    }

    /// Records the result of the call at this index: in its span, as an event and in a log line.
    pub(super) fn record_result(&mut self, index: usize, answer: ToolAnswer, metrics: &Metrics) {
        let call = &self.calls[index];
        let elapsed_ms = self.start_times[index].map_or(0, |start_time| millis(start_time.elapsed()));
        let has_begun = self.start_times[index].is_some();
        let code = answer.as_ref().err().map_or("", |error| error.code.as_ref());
        tracing::info!(
            message_id = self.message_id,
            call = call.call_id,
            tool = call.name,
            begun = has_begun,
            code,
            ms = elapsed_ms,
            "tool call"
        );
        if has_begun && answer.is_err() {
            Metrics::increment(&metrics.tool_failures);
        }
        let (result, error) = match answer {
            Ok(result) => (Some(result), None),
            Err(error) => (None, Some(error)),
        };
        let span = &self.spans[index];
        if let Some(result) = &result {
            span.record_result(result);
        }
        if let Some(error) = &error {
            span.fail(&error.code);
        }
        span.end(if error.is_none() { "completed" } else { "failed" });
        let result =
            ToolResult { call_id: call.call_id.clone(), ok: error.is_none(), result, error, elapsed_ms };
        self.attempt.insert_event(result.clone());
        self.results[index] = Some(result);
    }

    /// Records an error as the result of a call.
    pub(super) fn record_error(&mut self, index: usize, error: &CallError, metrics: &Metrics) {
        self.record_result(index, Err(error.error(self.language)), metrics);
    }

    /// Refuses all calls: a call with an error gets this error as its result, the others get `other_error`.
    pub(super) fn refuse_all(
        &mut self,
        errors: &[Option<CallError>],
        other_error: &CallError,
        metrics: &Metrics,
    ) {
        for (index, error) in errors.iter().enumerate() {
            self.record_error(index, error.as_ref().unwrap_or(other_error), metrics);
        }
    }

    /// Ends the calls without a result when the message ends: the error says whether they had begun.
    pub(super) fn end_open_calls(&mut self, end: &InputEnd, metrics: &Metrics) {
        let is_cancelled = matches!(end, InputEnd::Finished(_));
        for index in 0..self.calls.len() {
            if self.results[index].is_some() {
                continue;
            }
            let error = match (self.start_times[index].is_some(), is_cancelled) {
                (true, true) => CallError::Cancelled,
                (true, false) => CallError::Interrupted,
                (false, _) => CallError::MessageEnded,
            };
            self.record_error(index, &error, metrics);
        }
    }
}
