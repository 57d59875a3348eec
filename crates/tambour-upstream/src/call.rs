//! Observation of one upstream call: failures are logged and counted, times are measured, and the circuit
//! breaker gets the result.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::HeaderMap;
use tambour::InputEnd;
use tambour::event::Failure;

use super::ChatSpan;
use super::ReplyItem;
use super::breaker::CircuitBreaker;
use crate::{UNCONSTRAINED_CODE, UpstreamMetrics};

/// Upstream call in progress; dropping it records its end.
pub(super) struct UpstreamCall {
    metrics: UpstreamMetrics,
    breaker: Arc<CircuitBreaker>,
    /// Name of the upstream.
    upstream: Arc<str>,
    message_id: Arc<str>,
    /// Number of the current attempt, from 1.
    attempt: u32,
    start_time: Instant,
    /// Time from the start to the first text.
    first_text: Option<Duration>,
    /// Span of the call, if it is traced.
    span: Option<Box<ChatSpan>>,
    /// Outcome for the metrics: `dropped` until the call has ended, then `completed` or `failed`.
    outcome: &'static str,
}

impl UpstreamCall {
    /// Begins the observation of a call to an upstream for a message.
    pub(super) fn begin(
        upstream: &Arc<str>,
        message_id: &Arc<str>,
        metrics: &UpstreamMetrics,
        breaker: &Arc<CircuitBreaker>,
        span: Option<Box<ChatSpan>>,
    ) -> UpstreamCall {
        UpstreamCall {
            metrics: metrics.clone(),
            breaker: breaker.clone(),
            upstream: upstream.clone(),
            message_id: message_id.clone(),
            attempt: 1,
            start_time: Instant::now(),
            first_text: None,
            span,
            outcome: "dropped",
        }
    }

    /// Returns the headers that propagate the call's trace.
    pub(super) fn trace_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(span) = &self.span {
            span.inject_headers(&mut headers);
        }
        headers
    }

    /// Records a failed attempt. Another attempt follows after `pause`; with `None`, the call has failed.
    pub(super) fn record_failure(&mut self, failure: &Failure, pause: Option<Duration>) {
        let (upstream, message_id) = (&*self.upstream, &*self.message_id);
        let (code, attempt) = (&failure.code, self.attempt);
        self.metrics.count_failure(&self.upstream, code);
        if let Some(span) = &mut self.span {
            span.record_failure(code, pause.is_some());
        }
        match pause {
            Some(pause) => {
                let wait_ms = pause.as_millis();
                tracing::warn!(message_id, upstream, %code, attempt, wait_ms, "an upstream failed; retrying");
                self.attempt += 1;
            }
            None => {
                tracing::warn!(message_id, upstream, %code, attempt, "an upstream failed");
                self.outcome = "failed";
                // Failures with these codes may be the client's fault rather than the upstream's.
                if !matches!(&**code, "upstream_refused" | "recording_not_found" | UNCONSTRAINED_CODE) {
                    self.breaker.record_failure(Instant::now());
                }
            }
        }
    }

    /// Records the items received.
    pub(super) fn record_items(&mut self, items: &[ReplyItem]) {
        if let Some(span) = &mut self.span {
            span.record_items(items);
        }
        for item in items {
            match item {
                ReplyItem::Text(_) if self.first_text.is_none() => {
                    self.first_text = Some(self.start_time.elapsed())
                }
                ReplyItem::End(InputEnd::Failed(failure)) => self.record_failure(failure, None),
                ReplyItem::End(_) => {
                    self.outcome = "completed";
                    self.breaker.record_success();
                }
                ReplyItem::Text(_) | ReplyItem::Reasoning(_) | ReplyItem::Call(_) | ReplyItem::Usage(_) => {}
            }
        }
    }
}

impl Drop for UpstreamCall {
    fn drop(&mut self) {
        self.metrics.observe_call(&self.upstream, self.outcome, self.first_text, self.start_time.elapsed());
    }
}
