//! Encoder of the protocol of Anthropic Messages: a sequence of blocks, or a whole message.

use serde_json::{Value, json};

use super::encoder::{Encoder, Entry};
use super::foreign::{About, Answer, Titles, Tokens, call_id, named, value};
use super::seen::{Seen, Whole};
use crate::event::{Completed, Failure, FinishReason, ToolCall};

/// Writes the events of one message.
#[derive(Debug)]
pub struct Anthropic {
    about: About,
    /// Number of finished blocks, and the kind of the open one.
    blocks: usize,
    open: Option<Kind>,
    answer: Answer,
    titles: Titles,
    called: bool,
    over: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Thinking,
    Text,
}

impl Anthropic {
    /// Creates the encoder of one message.
    #[must_use]
    pub fn new(about: About) -> Anthropic {
        let answer = Answer::new(&about);
        Anthropic {
            about,
            blocks: 0,
            open: None,
            answer,
            titles: Titles::default(),
            called: false,
            over: false,
        }
    }

    fn begin(&mut self, kind: Kind, out: &mut Vec<u8>) {
        if self.open == Some(Kind::Text) && kind == Kind::Text {
            return;
        }
        self.close(out);
        let block = match kind {
            Kind::Thinking => json!({"type": "thinking", "thinking": "", "signature": ""}),
            Kind::Text => json!({"type": "text", "text": ""}),
        };
        let fields = json!({"index": self.blocks, "content_block": block});
        event("content_block_start", &fields, out);
        self.open = Some(kind);
    }

    /// Writes text of the open block; `text` is a JSON string.
    fn text(&self, text: &str, out: &mut Vec<u8>) {
        let (kind, field) = match self.open {
            Some(Kind::Thinking) => ("thinking_delta", "thinking"),
            Some(Kind::Text) => ("text_delta", "text"),
            None => return,
        };
        let start = format!(
            "{{\"type\":\"content_block_delta\",\"index\":{},\"delta\":{{\"type\":\"{kind}\",\"{field}\":",
            self.blocks
        );
        named(out, "content_block_delta", |out| {
            out.extend_from_slice(start.as_bytes());
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(b"}}");
        });
    }

    fn phase(&mut self, title: &str, out: &mut Vec<u8>) {
        self.begin(Kind::Thinking, out);
        self.text(&Value::from(format!("{title}\n")).to_string(), out);
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if let Some(kind) = self.open.take() {
            if kind == Kind::Thinking {
                // A signature cannot be made up.
                let delta = json!({"type": "signature_delta", "signature": ""});
                event("content_block_delta", &json!({"index": self.blocks, "delta": delta}), out);
            }
            event("content_block_stop", &json!({"index": self.blocks}), out);
            self.blocks += 1;
        }
    }

    fn call(&mut self, call: &ToolCall, out: &mut Vec<u8>) {
        self.close(out);
        let mut block = tool_use(&self.about, call);
        let input = std::mem::replace(&mut block["input"], json!({}));
        event("content_block_start", &json!({"index": self.blocks, "content_block": block}), out);
        let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
        event("content_block_delta", &json!({"index": self.blocks, "delta": delta}), out);
        event("content_block_stop", &json!({"index": self.blocks}), out);
        self.blocks += 1;
        self.called = true;
    }

    fn end(&mut self, completed: &Completed, out: &mut Vec<u8>) {
        let replaced = completed.metadata.fallback_reason.is_some();
        for text in self.answer.release(replaced && self.called) {
            self.begin(Kind::Text, out);
            self.text(&text, out);
        }
        self.close(out);
        let tokens = Tokens::of(&completed.usage);
        let delta = json!({"stop_reason": stop_reason(completed, self.called), "stop_sequence": null});
        let usage = json!({"input_tokens": tokens.input, "output_tokens": tokens.output});
        event("message_delta", &json!({"delta": delta, "usage": usage}), out);
        event("message_stop", &json!({}), out);
        self.over = true;
    }
}

impl Encoder for Anthropic {
    fn open(&mut self, _: bool, _: &str, out: &mut Vec<u8>) {
        let begun = message(&self.about, &[], None, Tokens::default());
        event("message_start", &json!({ "message": begun }), out);
    }

    fn entry(&mut self, entry: &Entry<'_>, out: &mut Vec<u8>) {
        match Seen::new(entry) {
            Some(Seen::Phase { title, .. }) => {
                for title in self.titles.phase(&title) {
                    self.phase(&title, out);
                }
            }
            Some(Seen::PhaseText(text)) => {
                if let Some(title) = self.titles.text() {
                    self.phase(&title, out);
                }
                self.text(text, out);
            }
            Some(Seen::ThinkingEnd) => self.close(out),
            Some(Seen::FinalText(text)) if self.answer.text(text) => {
                self.begin(Kind::Text, out);
                self.text(text, out);
            }
            Some(Seen::Call(call)) => {
                self.answer.call();
                self.call(&call, out);
            }
            Some(Seen::Completed(completed)) => self.end(&completed, out),
            Some(Seen::Error(failure)) => {
                named(out, "error", |out| value(out, &error(&failure)));
                self.over = true;
            }
            _ => {}
        }
    }

    fn heartbeat(&mut self, _: &str, out: &mut Vec<u8>) {
        event("ping", &json!({}), out);
    }

    fn is_over(&self) -> bool {
        self.over
    }
}

/// Error body for a failure in this protocol.
#[must_use]
pub fn error(failure: &Failure) -> Value {
    let refused = failure.upstream.as_ref().map(|refusal| refusal.status);
    let kind = match &*failure.code {
        _ if refused == Some(404) => "not_found_error",
        _ if refused == Some(413) => "request_too_large",
        _ if refused.is_some() => "invalid_request_error",
        "upstream_rate_limited" => "rate_limit_error",
        "upstream_timeout" => "timeout_error",
        "input_too_large" => "invalid_request_error",
        code if failure.retryable && code.starts_with("upstream") => "overloaded_error",
        _ => "api_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": failure.message}})
}

/// Body of a message that is not streamed.
#[must_use]
pub fn whole(about: &About, whole: &Whole) -> Value {
    let thinking = whole.thoughts().iter().map(
        |(title, text)| json!({"type": "thinking", "thinking": format!("{title}\n{text}"), "signature": ""}),
    );
    let text = (!whole.answer.is_empty()).then(|| json!({"type": "text", "text": whole.answer}));
    let calls = whole.calls.iter().map(|call| tool_use(about, call));
    let content: Vec<Value> = thinking.chain(text).chain(calls).collect();
    let completed = whole.completed.as_deref().cloned().unwrap_or_default();
    let reason = stop_reason(&completed, !whole.calls.is_empty());
    message(about, &content, Some(reason), Tokens::of(&completed.usage))
}

fn message(about: &About, content: &[Value], stop_reason: Option<&str>, tokens: Tokens) -> Value {
    json!({
        "id": about.message, "type": "message", "role": "assistant", "model": about.model, "content": content,
        "stop_reason": stop_reason, "stop_sequence": null,
        "usage": {"input_tokens": tokens.input, "output_tokens": tokens.output},
    })
}

fn tool_use(about: &About, ToolCall { call_id: id, name, args }: &ToolCall) -> Value {
    json!({"type": "tool_use", "id": call_id(about, id), "name": name, "input": args})
}

fn stop_reason(completed: &Completed, called: bool) -> &'static str {
    match completed.finish_reason {
        FinishReason::Length => "max_tokens",
        FinishReason::ContentFilter => "refusal",
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Cancelled if called => "tool_use",
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Cancelled => "end_turn",
    }
}

fn event(kind: &str, fields: &Value, out: &mut Vec<u8>) {
    let mut event = json!({ "type": kind });
    if let (Value::Object(event), Value::Object(fields)) = (&mut event, fields) {
        event.extend(fields.clone());
    }
    named(out, kind, |out| value(out, &event));
}
