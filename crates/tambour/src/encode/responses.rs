//! Encoder of the protocol of OpenAI Responses: typed, numbered events, or the whole response.

use serde_json::{Value, json};

use super::encoder::{Encoder, Entry};
use super::foreign::{About, Answer, Titles, Tokens, call_id, code, named, title, value};
use super::json::{number, string};
use super::seen::{Seen, Whole, plain};
use super::sse;
use crate::event::{Completed, Failure, FinishReason, ToolCall};

/// Writes the events of one response.
#[derive(Debug)]
pub struct Responses {
    about: About,
    /// Number of the next event, and number of events the client has seen.
    next: u64,
    seen: u64,
    /// Finished items.
    output: Vec<Value>,
    open: Option<Open>,
    answer: Answer,
    titles: Titles,
    called: bool,
    over: bool,
}

/// An open item.
#[derive(Debug)]
struct Open {
    kind: Kind,
    id: String,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Reasoning,
    Message,
}

impl Kind {
    /// Names of its part events, text events and index field, and the type of its part.
    fn names(self) -> [&'static str; 4] {
        match self {
            Kind::Reasoning => [
                "response.reasoning_summary_part",
                "response.reasoning_summary_text",
                "summary_index",
                "summary_text",
            ],
            Kind::Message => {
                ["response.content_part", "response.output_text", "content_index", "output_text"]
            }
        }
    }

    fn part(self, text: &str) -> Value {
        match self {
            Kind::Reasoning => json!({"type": "summary_text", "text": text}),
            Kind::Message => json!({"type": "output_text", "text": text, "annotations": []}),
        }
    }

    fn item(self, id: &str, text: Option<&str>) -> Value {
        let parts: Vec<Value> = text.map(|text| self.part(text)).into_iter().collect();
        let status = if text.is_some() { "completed" } else { "in_progress" };
        match self {
            Kind::Reasoning => json!({"id": id, "type": "reasoning", "summary": parts}),
            Kind::Message => {
                json!({"id": id, "type": "message", "role": "assistant", "status": status, "content": parts})
            }
        }
    }
}

impl Responses {
    /// Creates the encoder of one response, for a client that has seen the events before number `seen`.
    #[must_use]
    pub fn new(about: About, seen: u64) -> Responses {
        Responses {
            answer: Answer::new(&about),
            titles: Titles::default(),
            about,
            next: 0,
            seen,
            output: Vec::new(),
            open: None,
            called: false,
            over: false,
        }
    }

    fn event(&mut self, kind: &str, fields: Value, out: &mut Vec<u8>) {
        let number = self.next;
        self.next += 1;
        if number < self.seen {
            return;
        }
        let mut event = json!({"type": kind, "sequence_number": number});
        if let (Value::Object(event), Value::Object(fields)) = (&mut event, fields) {
            event.extend(fields);
        }
        named(out, kind, |out| value(out, &event));
    }

    fn begin(&mut self, kind: Kind, out: &mut Vec<u8>) {
        if self.open.as_ref().is_some_and(|open| open.kind == Kind::Message && kind == Kind::Message) {
            return;
        }
        self.close(out);
        let at = self.output.len();
        let id = item_id(&self.about, at, kind);
        let [part, _, index, _] = kind.names();
        self.event(
            "response.output_item.added",
            json!({"output_index": at, "item": kind.item(&id, None)}),
            out,
        );
        let fields = json!({"item_id": id, "output_index": at, index: 0, "part": kind.part("")});
        self.event(&format!("{part}.added"), fields, out);
        self.open = Some(Open { kind, id, text: String::new() });
    }

    fn text(&mut self, text: &str, out: &mut Vec<u8>) {
        let at = self.output.len() as u64;
        let Some(Open { kind, id, text: all }) = &mut self.open else { return };
        all.push_str(text);
        let sequence = self.next;
        self.next += 1;
        if sequence < self.seen {
            return;
        }
        // Sent for each piece of the reply, so it is written without a tree of values.
        let [_, name, index, _] = kind.names();
        let event = format!("{name}.delta");
        named(out, &event, |out| {
            let mut put = |parts: &[&str], value: u64| {
                parts.iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
                number(value, out);
            };
            put(&["{\"type\":\"", &event, "\",\"sequence_number\":"], sequence);
            put(&[",\"item_id\":\"", id, "\",\"output_index\":"], at);
            put(&[",\"", index, "\":"], 0);
            out.extend_from_slice(b",\"delta\":");
            string(text, out);
            out.extend_from_slice(if *kind == Kind::Message { b",\"logprobs\":[]}" } else { b"}" });
        });
    }

    fn phase(&mut self, text: &str, out: &mut Vec<u8>) {
        self.begin(Kind::Reasoning, out);
        self.text(&title(text, true), out);
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        let Some(Open { kind, id, text }) = self.open.take() else { return };
        let at = self.output.len();
        let [part, name, index, _] = kind.names();
        let mut fields = json!({"item_id": id, "output_index": at, index: 0, "text": text});
        if kind == Kind::Message {
            fields["logprobs"] = json!([]);
        }
        self.event(&format!("{name}.done"), fields, out);
        let fields = json!({"item_id": id, "output_index": at, index: 0, "part": kind.part(&text)});
        self.event(&format!("{part}.done"), fields, out);
        let item = kind.item(&id, Some(&text));
        self.event("response.output_item.done", json!({"output_index": at, "item": item}), out);
        self.output.push(item);
    }

    fn call(&mut self, call: &ToolCall, out: &mut Vec<u8>) {
        self.close(out);
        let at = self.output.len();
        let item = function(&self.about, at, call);
        let (id, arguments) = (item["id"].clone(), item["arguments"].clone());
        let mut begun = item.clone();
        (begun["arguments"], begun["status"]) = ("".into(), "in_progress".into());
        self.event("response.output_item.added", json!({"output_index": at, "item": begun}), out);
        let fields = json!({"item_id": id, "output_index": at, "delta": arguments});
        self.event("response.function_call_arguments.delta", fields, out);
        let fields = json!({"item_id": id, "output_index": at, "name": call.name, "arguments": arguments});
        self.event("response.function_call_arguments.done", fields, out);
        self.event("response.output_item.done", json!({"output_index": at, "item": item}), out);
        self.output.push(item);
        self.called = true;
    }

    fn end(&mut self, completed: &Completed, out: &mut Vec<u8>) {
        let replaced = completed.metadata.fallback_reason.is_some();
        for text in self.answer.release(replaced && self.called) {
            self.begin(Kind::Message, out);
            self.text(&plain(&text), out);
        }
        self.close(out);
        let response = response(&self.about, &self.output, Some(completed), None);
        let kind = match status(completed.finish_reason) {
            "completed" => "response.completed",
            _ => "response.incomplete",
        };
        self.event(kind, json!({ "response": response }), out);
        self.over = true;
    }
}

impl Encoder for Responses {
    fn open(&mut self, _: bool, _: &str, out: &mut Vec<u8>) {
        let begun = response(&self.about, &[], None, None);
        self.event("response.created", json!({ "response": begun }), out);
        self.event("response.in_progress", json!({ "response": begun }), out);
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
                self.text(&plain(text), out);
            }
            Some(Seen::ThinkingEnd) => self.close(out),
            Some(Seen::FinalText(text)) if self.answer.text(text) => {
                self.begin(Kind::Message, out);
                self.text(&plain(text), out);
            }
            Some(Seen::Call(call)) => {
                self.answer.call();
                self.call(&call, out);
            }
            Some(Seen::Completed(completed)) => self.end(&completed, out),
            Some(Seen::Error(failure)) => {
                self.close(out);
                let failed = response(&self.about, &self.output, None, Some(&failure));
                self.event("response.failed", json!({ "response": failed }), out);
                self.over = true;
            }
            _ => {}
        }
    }

    fn heartbeat(&mut self, _: &str, out: &mut Vec<u8>) {
        sse::comment("keep-alive", out);
    }

    fn is_over(&self) -> bool {
        self.over
    }
}

/// Body of a response that is not streamed.
#[must_use]
pub fn whole(about: &About, whole: &Whole) -> Value {
    let mut output: Vec<Value> = Vec::new();
    for (name, text) in whole.thoughts() {
        let id = item_id(about, output.len(), Kind::Reasoning);
        output.push(Kind::Reasoning.item(&id, Some(&(title(name, true) + text))));
    }
    let answer = |output: &mut Vec<Value>| {
        if !whole.answer.is_empty() {
            let id = item_id(about, output.len(), Kind::Message);
            output.push(Kind::Message.item(&id, Some(&whole.answer)));
        }
    };
    if !whole.calls_first {
        answer(&mut output);
    }
    for call in &whole.calls {
        output.push(function(about, output.len(), call));
    }
    if whole.calls_first {
        answer(&mut output);
    }
    response(about, &output, whole.completed.as_deref(), whole.failure.as_ref())
}

fn item_id(about: &About, at: usize, kind: Kind) -> String {
    let kind = if kind == Kind::Reasoning { "rs" } else { "msg" };
    format!("{kind}_{at}_{}", about.message)
}

fn function(about: &About, at: usize, ToolCall { call_id: call, name, args }: &ToolCall) -> Value {
    json!({
        "id": format!("fc_{at}_{}", about.message), "type": "function_call", "status": "completed",
        "call_id": call_id(about, call), "name": name, "arguments": args.to_string(),
    })
}

fn status(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::Stop | FinishReason::ToolCalls => "completed",
        FinishReason::Length | FinishReason::ContentFilter => "incomplete",
        FinishReason::Cancelled => "cancelled",
    }
}

/// Body of the response in its current state.
fn response(
    about: &About,
    output: &[Value],
    completed: Option<&Completed>,
    failure: Option<&Failure>,
) -> Value {
    let status = match (completed, failure) {
        (_, Some(_)) => "failed",
        (Some(completed), None) => status(completed.finish_reason),
        (None, None) => "in_progress",
    };
    let reason = completed.and_then(|completed| match completed.finish_reason {
        FinishReason::Length => Some("max_output_tokens"),
        FinishReason::ContentFilter => Some("content_filter"),
        _ => None,
    });
    let usage = completed.map(|completed| {
        let Tokens { input, output, total, reasoning, cached } = Tokens::of(&completed.usage);
        json!({
            "input_tokens": input, "input_tokens_details": {"cached_tokens": cached},
            "output_tokens": output, "output_tokens_details": {"reasoning_tokens": reasoning},
            "total_tokens": total,
        })
    });
    json!({
        "id": format!("resp_{}", about.message), "object": "response", "created_at": about.created,
        "model": about.model, "status": status, "output": output,
        "error": failure.map(|failure| json!({"code": code(failure), "message": failure.message})),
        "incomplete_details": reason.map(|reason| json!({ "reason": reason })),
        "background": about.background, "store": !about.unstored, "previous_response_id": about.previous,
        "instructions": null, "metadata": {}, "parallel_tool_calls": true, "temperature": null,
        "tool_choice": "auto", "tools": [], "top_p": null, "usage": usage,
    })
}
