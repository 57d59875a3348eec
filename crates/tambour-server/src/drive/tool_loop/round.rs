//! Tool calls of one reply: status, tracing and the one result of each.

use std::time::Instant;

use serde_json::{Value, json};
use tambour::End;
use tambour::event::{ToolCall, ToolResult};
use tambour::options::Language;

use crate::drive::attempt::Attempt;
use crate::drive::{Log, millis};
use crate::metrics::Metrics;
use crate::store::Written;
use crate::telemetry::Span;
use crate::tools::{Answer, Trouble};

/// Progress of the calls of one reply.
pub(super) struct Round<'r> {
    pub(super) calls: &'r [ToolCall],
    /// Start time of each call.
    pub(super) begun: Vec<Option<Instant>>,
    /// Tracing span of each call.
    pub(super) spans: Vec<Span>,
    pub(super) results: Vec<Option<ToolResult>>,
    pub(super) attempt: &'r mut Attempt,
    pub(super) log: &'r mut Log,
    pub(super) message: &'r str,
    pub(super) language: Language,
}

impl Round<'_> {
    /// Emits a status of these calls, and appends the gathered entries.
    pub(super) async fn status(
        &mut self,
        state: &str,
        calls: &[ToolCall],
        ms: Option<u64>,
    ) -> Result<(), Written> {
        let calls: Vec<Value> =
            calls.iter().map(|call| json!({"call_id": call.call_id, "name": call.name})).collect();
        let mut status = json!({"state": state, "calls": calls});
        if let Some(ms) = ms {
            status["timeout_ms"] = ms.into();
        }
        self.attempt.status(&status);
        self.attempt.send(self.log).await
    }

    /// Records the result of a call.
    pub(super) fn result(&mut self, place: usize, answer: Answer, metrics: &Metrics) {
        let call = &self.calls[place];
        let elapsed_ms = self.begun[place].map_or(0, millis);
        let begun = self.begun[place].is_some();
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
            Metrics::count(&metrics.tool_failures);
        }
        let (result, error) = match answer {
            Ok(result) => (Some(result), None),
            Err(error) => (None, Some(error)),
        };
        let span = &self.spans[place];
        if let Some(result) = &result {
            span.result(result);
        }
        if let Some(error) = &error {
            span.fail(&error.code);
        }
        span.end(if error.is_none() { "completed" } else { "failed" });
        let result =
            ToolResult { call_id: call.call_id.clone(), ok: error.is_none(), result, error, elapsed_ms };
        self.attempt.extension(result.clone());
        self.results[place] = Some(result);
    }

    /// Records an error as the result of a call.
    pub(super) fn trouble(&mut self, place: usize, trouble: &Trouble, metrics: &Metrics) {
        self.result(place, Err(trouble.error(self.language)), metrics);
    }

    /// Refuses all calls: those with an error get it as their result, the others get `why`.
    pub(super) fn refuse(&mut self, errors: &[Option<Trouble>], why: &Trouble, metrics: &Metrics) {
        for (place, error) in errors.iter().enumerate() {
            self.trouble(place, error.as_ref().unwrap_or(why), metrics);
        }
    }

    /// Ends the calls without a result when the run stops, with what is known of them.
    pub(super) fn abandon(&mut self, end: &End, metrics: &Metrics) {
        let cancelled = matches!(end, End::Finished(_));
        for place in 0..self.calls.len() {
            if self.results[place].is_some() {
                continue;
            }
            let trouble = match (self.begun[place].is_some(), cancelled) {
                (true, true) => Trouble::Cancelled,
                (true, false) => Trouble::Unknown,
                (false, _) => Trouble::MessageEnded,
            };
            self.trouble(place, &trouble, metrics);
        }
    }
}
