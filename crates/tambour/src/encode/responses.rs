//! Encoder of the protocol of OpenAI Responses: typed, numbered events, or the whole response.

use serde_json::{Value, json};

use super::client_protocol::{
    AnswerBuffer, PhaseTitles, StreamContext, UsageCounts, error_code, format_title, unique_call_id,
    write_named_frame, write_value,
};
use super::encoder::{Encoder, EncoderEntry};
use super::entry_content::{EntryContent, FoldedMessage, decode_string};
use super::json::{write_number, write_string};
use super::sse;
use crate::event::{Completed, Failure, FinishReason, ToolCall};

/// Writes the events of one response.
#[derive(Debug)]
pub struct ResponsesEncoder {
    context: StreamContext,
    /// Number of the next event, from 0.
    next_number: u64,
    /// Number of events that the client has seen; they are counted but not sent again.
    seen_count: u64,
    /// Finished items as JSON; their number is the index of the open item.
    finished_items: Vec<Value>,
    open_item: Option<ResponseItem>,
    answer: AnswerBuffer,
    phase_titles: PhaseTitles,
    has_calls: bool,
    is_over: bool,
}

/// An item that is still open.
#[derive(Debug)]
struct ResponseItem {
    kind: ItemKind,
    id: String,
    /// Text so far.
    text: String,
}

/// Kind of an item that is streamed as deltas; calls are written whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ItemKind {
    Reasoning,
    Message,
}

/// Names of events and fields that depend on the kind of an item.
struct ItemEventNames {
    /// Prefix of the events of the item's part.
    part_event: &'static str,
    /// Prefix of the events of the part's text.
    text_event: &'static str,
    /// Field for the index of the part, which is always 0: each item has one part.
    index_field: &'static str,
}

impl ItemKind {
    fn event_names(self) -> ItemEventNames {
        match self {
            ItemKind::Reasoning => ItemEventNames {
                part_event: "response.reasoning_summary_part",
                text_event: "response.reasoning_summary_text",
                index_field: "summary_index",
            },
            ItemKind::Message => ItemEventNames {
                part_event: "response.content_part",
                text_event: "response.output_text",
                index_field: "content_index",
            },
        }
    }

    fn part_json(self, text: &str) -> Value {
        match self {
            ItemKind::Reasoning => json!({"type": "summary_text", "text": text}),
            ItemKind::Message => json!({"type": "output_text", "text": text, "annotations": []}),
        }
    }

    /// JSON of the item; `text` is `None` while the item is open.
    fn item_json(self, id: &str, text: Option<&str>) -> Value {
        let parts: Vec<Value> = text.map(|text| self.part_json(text)).into_iter().collect();
        let status = if text.is_some() { "completed" } else { "in_progress" };
        match self {
            ItemKind::Reasoning => json!({"id": id, "type": "reasoning", "summary": parts}),
            ItemKind::Message => {
                json!({"id": id, "type": "message", "role": "assistant", "status": status, "content": parts})
            }
        }
    }
}

impl ResponsesEncoder {
    /// Creates the encoder of one response, for a client that has seen the first `seen_count` events.
    #[must_use]
    pub fn new(context: StreamContext, seen_count: u64) -> ResponsesEncoder {
        ResponsesEncoder {
            answer: AnswerBuffer::new(&context),
            phase_titles: PhaseTitles::default(),
            context,
            next_number: 0,
            seen_count,
            finished_items: Vec::new(),
            open_item: None,
            has_calls: false,
            is_over: false,
        }
    }

    /// Writes an event of `kind` with the next number and `fields`, unless the client has seen it.
    fn write_event(&mut self, kind: &str, fields: Value, out: &mut Vec<u8>) {
        let number = self.next_number;
        self.next_number += 1;
        if number < self.seen_count {
            return;
        }
        let mut event = json!({"type": kind, "sequence_number": number});
        if let (Value::Object(event), Value::Object(fields)) = (&mut event, fields) {
            event.extend(fields);
        }
        write_named_frame(out, kind, |out| write_value(out, &event));
    }

    /// Begins an item of `kind`, unless both it and the open item are messages.
    fn begin_item(&mut self, kind: ItemKind, out: &mut Vec<u8>) {
        let is_message_open = self.open_item.as_ref().is_some_and(|item| item.kind == ItemKind::Message);
        if is_message_open && kind == ItemKind::Message {
            return;
        }
        self.close_item(out);
        let item_index = self.finished_items.len();
        let id = item_id(&self.context, item_index, kind);
        let ItemEventNames { part_event, index_field, .. } = kind.event_names();
        self.write_event(
            "response.output_item.added",
            json!({"output_index": item_index, "item": kind.item_json(&id, None)}),
            out,
        );
        let part = kind.part_json("");
        let fields = json!({"item_id": id, "output_index": item_index, index_field: 0, "part": part});
        self.write_event(&format!("{part_event}.added"), fields, out);
        self.open_item = Some(ResponseItem { kind, id, text: String::new() });
    }

    /// Writes text of the open item.
    fn write_text(&mut self, text: &str, out: &mut Vec<u8>) {
        let item_index = self.finished_items.len() as u64;
        let Some(ResponseItem { kind, id, text: item_text }) = &mut self.open_item else { return };
        item_text.push_str(text);
        let number = self.next_number;
        self.next_number += 1;
        if number < self.seen_count {
            return;
        }
        // This event is sent for each piece of the reply, so it is written without a tree of values.
        let ItemEventNames { text_event, index_field, .. } = kind.event_names();
        let event = format!("{text_event}.delta");
        write_named_frame(out, &event, |out| {
            // Appends `texts`, then `number`.
            let mut write_numbered = |texts: &[&str], number: u64| {
                texts.iter().for_each(|text| out.extend_from_slice(text.as_bytes()));
                write_number(number, out);
            };
            write_numbered(&["{\"type\":\"", &event, "\",\"sequence_number\":"], number);
            write_numbered(&[",\"item_id\":\"", id, "\",\"output_index\":"], item_index);
            write_numbered(&[",\"", index_field, "\":"], 0);
            out.extend_from_slice(b",\"delta\":");
            write_string(text, out);
            out.extend_from_slice(if *kind == ItemKind::Message { b",\"logprobs\":[]}" } else { b"}" });
        });
    }

    /// Begins the item of a phase with the title of the phase.
    fn write_title(&mut self, title: &str, out: &mut Vec<u8>) {
        self.begin_item(ItemKind::Reasoning, out);
        // The title is the first text of its item.
        self.write_text(&format_title(title, true), out);
    }

    fn close_item(&mut self, out: &mut Vec<u8>) {
        let Some(ResponseItem { kind, id, text }) = self.open_item.take() else { return };
        let item_index = self.finished_items.len();
        let ItemEventNames { part_event, text_event, index_field } = kind.event_names();
        let mut fields = json!({"item_id": id, "output_index": item_index, index_field: 0, "text": text});
        if kind == ItemKind::Message {
            fields["logprobs"] = json!([]);
        }
        self.write_event(&format!("{text_event}.done"), fields, out);
        let part = kind.part_json(&text);
        let fields = json!({"item_id": id, "output_index": item_index, index_field: 0, "part": part});
        self.write_event(&format!("{part_event}.done"), fields, out);
        let item = kind.item_json(&id, Some(&text));
        self.write_event("response.output_item.done", json!({"output_index": item_index, "item": item}), out);
        self.finished_items.push(item);
    }

    fn write_call(&mut self, call: &ToolCall, out: &mut Vec<u8>) {
        self.close_item(out);
        let item_index = self.finished_items.len();
        let item = function_call_item(&self.context, item_index, call);
        let (id, arguments) = (item["id"].clone(), item["arguments"].clone());
        let mut added_item = item.clone();
        (added_item["arguments"], added_item["status"]) = ("".into(), "in_progress".into());
        self.write_event(
            "response.output_item.added",
            json!({"output_index": item_index, "item": added_item}),
            out,
        );
        let fields = json!({"item_id": id, "output_index": item_index, "delta": arguments});
        self.write_event("response.function_call_arguments.delta", fields, out);
        let fields =
            json!({"item_id": id, "output_index": item_index, "name": call.name, "arguments": arguments});
        self.write_event("response.function_call_arguments.done", fields, out);
        self.write_event("response.output_item.done", json!({"output_index": item_index, "item": item}), out);
        self.finished_items.push(item);
        self.has_calls = true;
    }

    fn write_end(&mut self, completed: &Completed, out: &mut Vec<u8>) {
        let is_fallback = completed.metadata.fallback_reason.is_some();
        for text in self.answer.take_held(is_fallback && self.has_calls) {
            self.begin_item(ItemKind::Message, out);
            self.write_text(&decode_string(&text), out);
        }
        self.close_item(out);
        let response = response_body(&self.context, &self.finished_items, Some(completed), None);
        let kind = match response_status(completed.finish_reason) {
            "completed" => "response.completed",
            // The protocol has no event for a cancelled response.
            _ => "response.incomplete",
        };
        self.write_event(kind, json!({ "response": response }), out);
        self.is_over = true;
    }
}

impl Encoder for ResponsesEncoder {
    fn write_start(&mut self, _: bool, _: &str, out: &mut Vec<u8>) {
        let response = response_body(&self.context, &[], None, None);
        self.write_event("response.created", json!({ "response": response }), out);
        self.write_event("response.in_progress", json!({ "response": response }), out);
    }

    fn write_entry(&mut self, entry: &EncoderEntry<'_>, out: &mut Vec<u8>) {
        match EntryContent::new(entry) {
            Some(EntryContent::PhaseStart { title, .. }) => {
                for title in self.phase_titles.begin_phase(&title) {
                    self.write_title(&title, out);
                }
            }
            Some(EntryContent::PhaseText(text)) => {
                if let Some(title) = self.phase_titles.take_held() {
                    self.write_title(&title, out);
                }
                self.write_text(&decode_string(text), out);
            }
            Some(EntryContent::ThinkingEnd) => self.close_item(out),
            Some(EntryContent::FinalText(text)) if self.answer.push_text(text) => {
                self.begin_item(ItemKind::Message, out);
                self.write_text(&decode_string(text), out);
            }
            Some(EntryContent::Call(call)) => {
                self.answer.note_call();
                self.write_call(&call, out);
            }
            Some(EntryContent::Completed(completed)) => self.write_end(&completed, out),
            Some(EntryContent::Error(failure)) => {
                self.close_item(out);
                let response = response_body(&self.context, &self.finished_items, None, Some(&failure));
                self.write_event("response.failed", json!({ "response": response }), out);
                self.is_over = true;
            }
            _ => {}
        }
    }

    fn write_heartbeat(&mut self, _: &str, out: &mut Vec<u8>) {
        sse::write_comment("keep-alive", out);
    }

    fn is_over(&self) -> bool {
        self.is_over
    }
}

/// Body of a response that is not streamed.
#[must_use]
pub fn response_from_log(context: &StreamContext, folded_message: &FoldedMessage) -> Value {
    let mut output: Vec<Value> = Vec::new();
    for (title, text) in folded_message.reasoning_phases() {
        // Each phase is an item, so its title is the first text of the item.
        let id = item_id(context, output.len(), ItemKind::Reasoning);
        output.push(ItemKind::Reasoning.item_json(&id, Some(&(format_title(title, true) + text))));
    }
    let push_answer = |output: &mut Vec<Value>| {
        if !folded_message.answer.is_empty() {
            let id = item_id(context, output.len(), ItemKind::Message);
            output.push(ItemKind::Message.item_json(&id, Some(&folded_message.answer)));
        }
    };
    if !folded_message.has_calls_first {
        push_answer(&mut output);
    }
    for call in &folded_message.calls {
        output.push(function_call_item(context, output.len(), call));
    }
    if folded_message.has_calls_first {
        push_answer(&mut output);
    }
    response_body(context, &output, folded_message.completed.as_deref(), folded_message.failure.as_ref())
}

fn item_id(context: &StreamContext, item_index: usize, kind: ItemKind) -> String {
    let prefix = if kind == ItemKind::Reasoning { "rs" } else { "msg" };
    format!("{prefix}_{item_index}_{}", context.message_id)
}

fn function_call_item(
    context: &StreamContext,
    item_index: usize,
    ToolCall { call_id, name, args }: &ToolCall,
) -> Value {
    json!({
        "id": format!("fc_{item_index}_{}", context.message_id), "type": "function_call", "status": "completed",
        "call_id": unique_call_id(context, call_id), "name": name, "arguments": args.to_string(),
    })
}

fn response_status(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::Stop | FinishReason::ToolCalls => "completed",
        FinishReason::Length | FinishReason::ContentFilter => "incomplete",
        FinishReason::Cancelled => "cancelled",
    }
}

/// Body of the response in its current state.
fn response_body(
    context: &StreamContext,
    output: &[Value],
    completed: Option<&Completed>,
    failure: Option<&Failure>,
) -> Value {
    let status = match (completed, failure) {
        (_, Some(_)) => "failed",
        (Some(completed), None) => response_status(completed.finish_reason),
        (None, None) => "in_progress",
    };
    let incomplete_reason = completed.and_then(|completed| match completed.finish_reason {
        FinishReason::Length => Some("max_output_tokens"),
        FinishReason::ContentFilter => Some("content_filter"),
        _ => None,
    });
    let usage = completed.map(|completed| {
        let UsageCounts { input, output, total, reasoning, cached } =
            UsageCounts::from_usage(&completed.usage);
        json!({
            "input_tokens": input, "input_tokens_details": {"cached_tokens": cached},
            "output_tokens": output, "output_tokens_details": {"reasoning_tokens": reasoning},
            "total_tokens": total,
        })
    });
    json!({
        "id": format!("resp_{}", context.message_id), "object": "response", "created_at": context.created_at,
        "model": context.model, "status": status, "output": output,
        "error": failure.map(|failure| json!({"code": error_code(failure), "message": failure.message})),
        "incomplete_details": incomplete_reason.map(|reason| json!({ "reason": reason })),
        "background": context.is_background, "store": !context.is_unstored, "previous_response_id": context.previous_response,
        "instructions": null, "metadata": {}, "parallel_tool_calls": true, "temperature": null,
        "tool_choice": "auto", "tools": [], "top_p": null, "usage": usage,
    })
}
