//! Encoder of the protocol of OpenAI Chat Completions: chunks, or a whole completion.

use serde_json::{Value, json};

use super::encoder::{Encoder, Entry};
use super::foreign::{About, Answer, Titles, Tokens, call_id, code, data, finish_reason, title, value};
use super::seen::{Seen, Whole};
use super::{json, sse};
use crate::event::{Completed, Failure, ToolCall};

/// Options of a stream of chunks.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// True if a last chunk with token counts follows.
    pub usage: bool,
    /// Field for reasoning: `reasoning_content` or `reasoning`; `None` sends none.
    pub reasoning: Option<&'static str>,
    /// True if the reasoning includes titles of phases.
    pub titles: bool,
    /// True if the client runs the calls.
    pub calls: bool,
    /// True if other events are sent in a field `tambour`.
    pub extensions: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            usage: false,
            reasoning: Some("reasoning_content"),
            titles: true,
            calls: true,
            extensions: false,
        }
    }
}

/// Writes the chunks of one message.
#[derive(Debug)]
pub struct Chat {
    about: About,
    options: Options,
    /// JSON of the fields common to all chunks.
    head: Vec<u8>,
    answer: Answer,
    titles: Titles,
    phases: usize,
    calls: usize,
    over: bool,
}

impl Chat {
    /// Creates the encoder of one message.
    #[must_use]
    pub fn new(about: About, options: Options) -> Chat {
        let fixed = json!({
            "id": format!("chatcmpl-{}", about.message), "object": "chat.completion.chunk",
            "created": about.created, "model": about.model,
        });
        let mut head = fixed.to_string().into_bytes();
        head.pop();
        let answer = Answer::new(&about);
        Chat { about, options, head, answer, titles: Titles::default(), phases: 0, calls: 0, over: false }
    }

    /// Writes a chunk with one text field; `text` is a JSON string.
    fn text(&self, field: &str, text: &str, out: &mut Vec<u8>) {
        data(out, |out| {
            out.extend_from_slice(&self.head);
            out.extend_from_slice(b",\"choices\":[{\"index\":0,\"delta\":{\"");
            out.extend_from_slice(field.as_bytes());
            out.extend_from_slice(b"\":");
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(b"},\"finish_reason\":null}]}");
        });
    }

    fn chunk(&self, choices: &Value, more: Option<(&str, &Value)>, out: &mut Vec<u8>) {
        data(out, |out| {
            out.extend_from_slice(&self.head);
            out.extend_from_slice(b",\"choices\":");
            value(out, choices);
            if let Some((name, more)) = more {
                out.push(b',');
                json::string(name, out);
                out.push(b':');
                value(out, more);
            }
            out.push(b'}');
        });
    }

    fn delta(&self, delta: &Value, finish: Option<&str>, out: &mut Vec<u8>) {
        self.chunk(&json!([{"index": 0, "delta": delta, "finish_reason": finish}]), None, out);
    }

    fn reasoning(&self, text: &str, out: &mut Vec<u8>) {
        if let Some(field) = self.options.reasoning {
            self.text(field, text, out);
        }
    }

    fn phase(&mut self, text: &str, out: &mut Vec<u8>) {
        self.phases += 1;
        if self.options.titles {
            self.reasoning(&Value::from(title(text, self.phases == 1)).to_string(), out);
        } else if self.phases > 1 {
            self.reasoning("\"\\n\\n\"", out);
        }
    }

    fn call(&mut self, ToolCall { call_id: id, name, args }: &ToolCall, out: &mut Vec<u8>) {
        let (index, id) = (self.calls, call_id(&self.about, id));
        self.calls += 1;
        let first = json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}});
        self.delta(&json!({"tool_calls": [first]}), None, out);
        let rest = json!({"index": index, "function": {"arguments": args.to_string()}});
        self.delta(&json!({"tool_calls": [rest]}), None, out);
    }

    fn end(&mut self, completed: &Completed, out: &mut Vec<u8>) {
        let replaced = completed.metadata.fallback_reason.is_some();
        for text in self.answer.release(replaced && self.calls > 0) {
            self.text("content", &text, out);
        }
        self.delta(&json!({}), Some(finish_reason(completed.finish_reason, self.calls > 0)), out);
        if self.options.usage {
            self.chunk(&json!([]), Some(("usage", &Tokens::of(&completed.usage).chat())), out);
        }
        data(out, |out| out.extend_from_slice(b"[DONE]"));
        self.over = true;
    }

    fn beside(&self, name: &str, json: &str, out: &mut Vec<u8>) {
        if self.options.extensions
            && let Ok(data) = serde_json::from_str::<Value>(json)
        {
            let choices = json!([{"index": 0, "delta": {}, "finish_reason": null}]);
            self.chunk(&choices, Some(("tambour", &json!({"event": name, "data": data}))), out);
        }
    }
}

impl Encoder for Chat {
    fn open(&mut self, _: bool, _: &str, out: &mut Vec<u8>) {
        self.delta(&json!({"role": "assistant", "content": ""}), None, out);
    }

    fn entry(&mut self, entry: &Entry<'_>, out: &mut Vec<u8>) {
        let Some(seen) = Seen::new(entry) else { return };
        match seen {
            Seen::PhaseText(text) => {
                if let Some(title) = self.titles.text() {
                    self.phase(&title, out);
                }
                self.reasoning(text, out);
            }
            Seen::FinalText(text) => {
                if self.answer.text(text) {
                    self.text("content", text, out);
                }
            }
            Seen::Phase { title, .. } => {
                for title in self.titles.phase(&title) {
                    self.phase(&title, out);
                }
            }
            Seen::Call(call) if self.options.calls => {
                self.answer.call();
                self.call(&call, out);
            }
            Seen::Completed(completed) => self.end(&completed, out),
            Seen::Error(failure) => {
                data(out, |out| value(out, &error(&failure)));
                self.over = true;
            }
            Seen::Summary(json) => self.beside("serp_summary", json, out),
            Seen::Queries(json) => self.beside("serp_queries", json, out),
            Seen::Beside(name, json) => self.beside(name, json, out),
            Seen::ThinkingStart
            | Seen::ThinkingEnd
            | Seen::FinalEnd
            | Seen::Status(_)
            | Seen::Call(_)
            | Seen::Result(_) => {}
        }
    }

    fn heartbeat(&mut self, _: &str, out: &mut Vec<u8>) {
        sse::comment("keep-alive", out);
    }

    fn is_over(&self) -> bool {
        self.over
    }
}

/// Error body for a failure in this protocol.
#[must_use]
pub fn error(failure: &Failure) -> Value {
    let kind = match &failure.upstream {
        Some(_) => "invalid_request_error",
        None if failure.code.starts_with("upstream") => "upstream_error",
        None => "server_error",
    };
    json!({"error": {"message": failure.message, "type": kind, "param": null, "code": code(failure)}})
}

/// Body of a completion that is not streamed.
#[must_use]
pub fn whole(about: &About, options: &Options, whole: &Whole) -> Value {
    let completed = whole.completed.as_deref().cloned().unwrap_or_default();
    let calls = if options.calls { &whole.calls[..] } else { &[] };
    let content = (!whole.answer.is_empty() || calls.is_empty()).then_some(&whole.answer);
    let mut message = json!({"role": "assistant", "content": content, "refusal": null});
    if let Some(field) = options.reasoning
        && let reasoning = whole.reasoning(options.titles)
        && !reasoning.is_empty()
    {
        message[field] = reasoning.into();
    }
    if !calls.is_empty() {
        let call = |ToolCall { call_id: id, name, args }: &ToolCall| {
            let function = json!({"name": name, "arguments": args.to_string()});
            json!({"id": call_id(about, id), "type": "function", "function": function})
        };
        message["tool_calls"] = calls.iter().map(call).collect();
    }
    let finish = finish_reason(completed.finish_reason, !calls.is_empty());
    let mut answer = json!({
        "id": format!("chatcmpl-{}", about.message), "object": "chat.completion",
        "created": about.created, "model": about.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish}],
        "usage": Tokens::of(&completed.usage).chat(),
    });
    if options.extensions {
        let beside = whole.beside.iter().map(|(name, data)| json!({"event": name, "data": data}));
        answer["tambour"] = json!({"events": beside.collect::<Vec<_>>(), "metadata": completed.metadata});
    }
    answer
}
