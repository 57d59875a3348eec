//! Span of one model call, from the request to the end of the reply.

use std::time::Instant;

use axum::http::HeaderMap;
use serde_json::Value;
use tambour::End;
use tambour::event::FinishReason;

use super::on::Span;
use super::{Asked, genai};
use crate::upstream::{Ask, Item};

/// Span that ends when it is dropped.
pub(crate) struct ChatSpan {
    span: Span,
    started: Instant,
    /// Seconds until the first text.
    first_text: Option<f64>,
    usage: Option<Value>,
    finish: Option<FinishReason>,
    /// Collected reply, if texts are traced.
    said: Option<genai::Said>,
    /// Failed attempts that were retried.
    again: i64,
    /// Code of the final failure.
    failed: Option<String>,
}

impl Span {
    /// Starts the span of a model call.
    pub(crate) fn chat(&self, asked: &Asked<'_>, ask: &Ask) -> Option<Box<ChatSpan>> {
        let content = self.content()?;
        let span = self.client(genai::chat_name(asked), genai::chat(asked, ask, content));
        Some(Box::new(ChatSpan {
            span,
            started: Instant::now(),
            first_text: None,
            usage: None,
            finish: None,
            said: content.then(genai::Said::default),
            again: 0,
            failed: None,
        }))
    }
}

impl ChatSpan {
    /// Adds the trace context to the headers of the request.
    pub(crate) fn headers(&self, headers: &mut HeaderMap) {
        self.span.headers(headers);
    }

    /// Records received items.
    pub(crate) fn came(&mut self, items: &[Item]) {
        for item in items {
            match item {
                Item::Text(text) => {
                    self.first_text.get_or_insert_with(|| self.started.elapsed().as_secs_f64());
                    if let Some(said) = &mut self.said {
                        said.text.push_str(text);
                    }
                }
                Item::Reasoning(text) => {
                    if let Some(said) = &mut self.said {
                        said.reasoning.push_str(text);
                    }
                }
                Item::Call(call) => {
                    if let Some(said) = &mut self.said {
                        said.calls.push(call.clone());
                    }
                }
                Item::Usage(usage) => self.usage = Some(usage.clone()),
                Item::End(End::Finished(reason) | End::Incomplete(reason)) => self.finish = Some(*reason),
                // Recorded by `failed`.
                Item::End(_) => {}
            }
        }
    }

    /// Records a failed attempt, and whether it is retried.
    pub(crate) fn failed(&mut self, code: &str, again: bool) {
        if again { self.again += 1 } else { self.failed = Some(code.to_owned()) }
    }
}

impl Drop for ChatSpan {
    fn drop(&mut self) {
        let ended = genai::chat_end(self.usage.as_ref(), self.first_text, self.finish, self.said.as_ref());
        self.span.set(ended);
        if self.again > 0 {
            self.span.set([opentelemetry::KeyValue::new("tambour.retries", self.again)]);
        }
        // Dropped before the end: the call counts as aborted.
        let outcome = match (&self.failed, self.finish) {
            (Some(_), _) => "failed",
            (None, Some(_)) => "completed",
            (None, None) => "dropped",
        };
        if let Some(code) = &self.failed {
            self.span.fail(code);
        }
        self.span.end(outcome);
    }
}
