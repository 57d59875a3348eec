//! Span of one model call, from the request to the end of the reply.

use std::time::Instant;

use axum::http::HeaderMap;
use serde_json::Value;
use tambour::InputEnd;
use tambour::event::FinishReason;

use super::{CallTarget, ModelRequest, ReplyItem, genai};
use crate::telemetry::TraceSpan;

/// Span that ends when it is dropped.
pub(crate) struct ChatSpan {
    span: TraceSpan,
    started: Instant,
    /// Seconds until the first text.
    first_text: Option<f64>,
    usage: Option<Value>,
    finish: Option<FinishReason>,
    /// Collected reply, if texts are traced.
    reply_text: Option<genai::CollectedReply>,
    /// Failed attempts that were retried.
    retries: i64,
    /// Code of the final failure.
    failure_code: Option<String>,
}

impl TraceSpan {
    /// Starts the span of a model call.
    pub(crate) fn start_chat(
        &self,
        target: &CallTarget<'_>,
        request: &ModelRequest,
    ) -> Option<Box<ChatSpan>> {
        let content = self.traces_content()?;
        let span =
            self.start_client(genai::chat_name(target), genai::chat_attributes(target, request, content));
        Some(Box::new(ChatSpan {
            span,
            started: Instant::now(),
            first_text: None,
            usage: None,
            finish: None,
            reply_text: content.then(genai::CollectedReply::default),
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
                    self.first_text.get_or_insert_with(|| self.started.elapsed().as_secs_f64());
                    if let Some(reply_text) = &mut self.reply_text {
                        reply_text.text.push_str(text);
                    }
                }
                ReplyItem::Reasoning(text) => {
                    if let Some(reply_text) = &mut self.reply_text {
                        reply_text.reasoning.push_str(text);
                    }
                }
                ReplyItem::Call(call) => {
                    if let Some(reply_text) = &mut self.reply_text {
                        reply_text.calls.push(call.clone());
                    }
                }
                ReplyItem::Usage(usage) => self.usage = Some(usage.clone()),
                ReplyItem::End(InputEnd::Finished(reason) | InputEnd::Incomplete(reason)) => {
                    self.finish = Some(*reason)
                }
                // Recorded by `failed`.
                ReplyItem::End(_) => {}
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
            self.finish,
            self.reply_text.as_ref(),
        );
        self.span.set_attributes(end_attributes);
        if self.retries > 0 {
            self.span.set_attributes([opentelemetry::KeyValue::new("tambour.retries", self.retries)]);
        }
        // Dropped before the end: the call counts as aborted.
        let outcome = match (&self.failure_code, self.finish) {
            (Some(_), _) => "failed",
            (None, Some(_)) => "completed",
            (None, None) => "dropped",
        };
        if let Some(code) = &self.failure_code {
            self.span.fail(code);
        }
        self.span.end(outcome);
    }
}
