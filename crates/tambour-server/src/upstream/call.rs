//! Observation of one upstream call: failures are logged and counted, times are measured.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use tambour::End;
use tambour::event::Failure;

use super::Item;
use super::breaker::Breaker;
use crate::metrics::Calls;
use crate::telemetry::ChatSpan;

/// Upstream call in progress; dropping it records its end.
pub(super) struct Call {
    calls: Calls,
    breaker: Arc<Breaker>,
    upstream: Arc<str>,
    message: Arc<str>,
    attempt: u32,
    started: Instant,
    first_text: Option<Duration>,
    span: Option<Box<ChatSpan>>,
    /// `dropped` until the call has ended.
    outcome: &'static str,
}

impl Call {
    pub(super) fn begin(
        upstream: &Arc<str>,
        message: &Arc<str>,
        calls: &Calls,
        breaker: &Arc<Breaker>,
        span: Option<Box<ChatSpan>>,
    ) -> Call {
        Call {
            calls: calls.clone(),
            breaker: breaker.clone(),
            upstream: upstream.clone(),
            message: message.clone(),
            attempt: 1,
            started: Instant::now(),
            first_text: None,
            span,
            outcome: "dropped",
        }
    }

    /// Returns the headers that propagate the call's trace.
    pub(super) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(span) = &self.span {
            span.headers(&mut headers);
        }
        headers
    }

    /// Records a failed attempt, followed by another one after `wait`, or by none.
    pub(super) fn failed(&mut self, failure: &Failure, wait: Option<Duration>) {
        let (upstream, message_id) = (&*self.upstream, &*self.message);
        let (code, attempt) = (&failure.code, self.attempt);
        self.calls.failed(&self.upstream, code);
        if let Some(span) = &mut self.span {
            span.failed(code, wait.is_some());
        }
        match wait {
            Some(wait) => {
                let wait_ms = wait.as_millis();
                tracing::warn!(message_id, upstream, %code, attempt, wait_ms, "an upstream failed, and is asked again");
                self.attempt += 1;
            }
            None => {
                tracing::warn!(message_id, upstream, %code, attempt, "an upstream failed");
                self.outcome = "failed";
                // A refused request may be the client's fault.
                if !matches!(&**code, "upstream_refused" | "recording_not_found") {
                    self.breaker.failed(Instant::now());
                }
            }
        }
    }

    /// Records the items received.
    pub(super) fn came(&mut self, items: &[Item]) {
        if let Some(span) = &mut self.span {
            span.came(items);
        }
        for item in items {
            match item {
                Item::Text(_) if self.first_text.is_none() => self.first_text = Some(self.started.elapsed()),
                Item::End(End::Failed(failure)) => self.failed(failure, None),
                Item::End(_) => {
                    self.outcome = "completed";
                    self.breaker.succeeded();
                }
                Item::Text(_) | Item::Reasoning(_) | Item::Call(_) | Item::Usage(_) => {}
            }
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.calls.ended(&self.upstream, self.outcome, self.first_text, self.started.elapsed());
    }
}
