//! Tracing span of one model call, from the request to the end of the reply.

use std::time::Instant;

use http::HeaderMap;
use serde_json::Value;
use tambour::InputEnd;
use tambour::event::FinishReason;

use super::{CallTarget, ModelRequest, ReplyItem, genai};
use crate::telemetry::TraceSpan;

/// Span of a model call. Ends when it is dropped.
pub(crate) struct ChatSpan {
    span: TraceSpan,
    start_time: Instant,
    /// Seconds from the start to the first text.
    first_text: Option<f64>,
    /// Token counts as last reported.
    usage: Option<Value>,
    finish_reason: Option<FinishReason>,
    /// True if the reply has ended, with or without a finish reason, and did not fail.
    has_ended: bool,
    /// Reply so far, if content is traced.
    collected_reply: Option<genai::CollectedReply>,
    /// Number of failed attempts that were retried.
    retries: i64,
    /// Code of the final failure.
    failure_code: Option<String>,
}

impl TraceSpan {
    /// Starts the span of a model call; `None` if nothing is traced.
    pub(crate) fn start_chat(
        &self,
        target: &CallTarget<'_>,
        request: &ModelRequest,
    ) -> Option<Box<ChatSpan>> {
        let with_content = self.traces_content()?;
        let attributes = genai::chat_attributes(target, request, with_content);
        let span = self.start_client(genai::chat_span_name(target), attributes);
        Some(Box::new(ChatSpan {
            span,
            start_time: Instant::now(),
            first_text: None,
            usage: None,
            finish_reason: None,
            has_ended: false,
            collected_reply: with_content.then(genai::CollectedReply::default),
            retries: 0,
            failure_code: None,
        }))
    }
}

impl ChatSpan {
    /// Adds the trace context to the headers of the request.
    pub(crate) fn inject_headers(&self, headers: &mut HeaderMap) {
        self.span.inject_headers(headers);
    }

    /// Records received items.
    pub(crate) fn record_items(&mut self, items: &[ReplyItem]) {
        for item in items {
            match item {
                ReplyItem::Text(text) => {
                    self.first_text.get_or_insert_with(|| self.start_time.elapsed().as_secs_f64());
                    if let Some(collected_reply) = &mut self.collected_reply {
                        collected_reply.text.push_str(text);
                    }
                }
                ReplyItem::Reasoning(text) => {
                    if let Some(collected_reply) = &mut self.collected_reply {
                        collected_reply.reasoning.push_str(text);
                    }
                }
                ReplyItem::Call(call) => {
                    if let Some(collected_reply) = &mut self.collected_reply {
                        collected_reply.calls.push(call.clone());
                    }
                }
                ReplyItem::Usage(usage) => self.usage = Some(usage.clone()),
                // Recorded by `record_failure`.
                ReplyItem::End(InputEnd::Failed(_)) => {}
                ReplyItem::End(end) => {
                    self.has_ended = true;
                    if let InputEnd::Finished(reason) | InputEnd::Incomplete(reason) = end {
                        self.finish_reason = Some(*reason);
                    }
                }
            }
        }
    }

    /// Records a failed attempt, and whether it is retried.
    pub(crate) fn record_failure(&mut self, code: &str, is_retried: bool) {
        if is_retried { self.retries += 1 } else { self.failure_code = Some(code.to_owned()) }
    }
}

impl Drop for ChatSpan {
    fn drop(&mut self) {
        let end_attributes = genai::chat_end_attributes(
            self.usage.as_ref(),
            self.first_text,
            self.finish_reason,
            self.collected_reply.as_ref(),
        );
        self.span.set_attributes(end_attributes);
        if self.retries > 0 {
            self.span.set_attributes([opentelemetry::KeyValue::new("tambour.retries", self.retries)]);
        }
        let outcome = match (&self.failure_code, self.has_ended) {
            (Some(_), _) => "failed",
            (None, true) => "completed",
            (None, false) => "dropped",
        };
        if let Some(code) = &self.failure_code {
            self.span.fail(code);
        }
        self.span.end(outcome);
    }
}
