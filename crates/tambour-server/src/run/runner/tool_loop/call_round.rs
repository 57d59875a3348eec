//! Tool calls of one reply: status, tracing and the one result of each.

use std::time::Instant;

use serde_json::{Value, json};
use tambour::InputEnd;
use tambour::event::{ToolCall, ToolResult};
use tambour::options::Language;

use crate::base::metrics::Metrics;
use crate::run::runner::attempt::Attempt;
use crate::run::runner::{RunLog, millis};
use crate::store::WriteOutcome;
use crate::telemetry::TraceSpan;
use crate::tools::{CallError, ToolAnswer};

/// Progress of the calls of one reply.
pub(super) struct CallRound<'r> {
    pub(super) calls: &'r [ToolCall],
    /// Start time of each call.
    pub(super) started: Vec<Option<Instant>>,
    /// Tracing span of each call.
    pub(super) spans: Vec<TraceSpan>,
    pub(super) results: Vec<Option<ToolResult>>,
    pub(super) attempt: &'r mut Attempt,
    pub(super) log: &'r mut RunLog,
    pub(super) message: &'r str,
    pub(super) language: Language,
}

impl CallRound<'_> {
    /// Emits a status of these calls, and appends the gathered entries.
    pub(super) async fn push_status(
        &mut self,
        state: &str,
        calls: &[ToolCall],
        ms: Option<u64>,
    ) -> Result<(), WriteOutcome> {
        let calls: Vec<Value> =
            calls.iter().map(|call| json!({"call_id": call.call_id, "name": call.name})).collect();
        let mut status = json!({"state": state, "calls": calls});
        if let Some(ms) = ms {
            status["timeout_ms"] = ms.into();
        }
        self.attempt.push_status(&status);
        self.attempt.append_gathered(self.log).await
    }

    /// Records the result of a call.
    pub(super) fn record_result(&mut self, place: usize, answer: ToolAnswer, metrics: &Metrics) {
        let call = &self.calls[place];
        let elapsed_ms = self.started[place].map_or(0, millis);
        let begun = self.started[place].is_some();
        let code = answer.as_ref().err().map_or("", |error| error.code.as_ref());
        tracing::info!(
            message_id = self.message,
            call = call.call_id,
            tool = call.name,
            begun,
            code,
            ms = elapsed_ms,
            "tool call"
        );
        if begun && answer.is_err() {
            Metrics::increment(&metrics.tool_failures);
        }
        let (result, error) = match answer {
            Ok(result) => (Some(result), None),
            Err(error) => (None, Some(error)),
        };
        let span = &self.spans[place];
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
        self.results[place] = Some(result);
    }

    /// Records an error as the result of a call.
    pub(super) fn record_error(&mut self, place: usize, error: &CallError, metrics: &Metrics) {
        self.record_result(place, Err(error.error(self.language)), metrics);
    }

    /// Refuses all calls: those with an error get it as their result, the others get `call_error`.
    pub(super) fn refuse_all(
        &mut self,
        errors: &[Option<CallError>],
        call_error: &CallError,
        metrics: &Metrics,
    ) {
        for (place, error) in errors.iter().enumerate() {
            self.record_error(place, error.as_ref().unwrap_or(call_error), metrics);
        }
    }

    /// Ends the calls without a result when the run stops, with what is known of them.
    pub(super) fn end_open_calls(&mut self, end: &InputEnd, metrics: &Metrics) {
        let is_cancelled = matches!(end, InputEnd::Finished(_));
        for place in 0..self.calls.len() {
            if self.results[place].is_some() {
                continue;
            }
            let error = match (self.started[place].is_some(), is_cancelled) {
                (true, true) => CallError::Cancelled,
                (true, false) => CallError::Interrupted,
                (false, _) => CallError::MessageEnded,
            };
            self.record_error(place, &error, metrics);
        }
    }
}
