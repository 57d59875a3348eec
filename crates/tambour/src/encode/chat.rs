//! Encoder of the protocol of OpenAI Chat Completions: chunks, or a whole completion.

use serde_json::{Value, json};

use super::client_protocol::{
    AnswerBuffer, PhaseTitles, StreamContext, UsageCounts, error_code, finish_reason, format_title,
    unique_call_id, write_data_frame, write_value,
};
use super::encoder::{Encoder, EncoderEntry};
use super::entry_content::{EntryContent, FoldedMessage};
use super::{json, sse};
use crate::event::{Completed, Failure, ToolCall};

/// Options of a stream of chunks.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChatOptions {
    /// True if a last chunk with token counts follows.
    pub sends_usage: bool,
    /// Field for reasoning: `reasoning_content` or `reasoning`; with `None` no reasoning is sent.
    pub reasoning_field: Option<&'static str>,
    /// True if the reasoning includes titles of phases.
    pub sends_titles: bool,
    /// True if the client runs the tool calls, so that they are sent.
    pub sends_calls: bool,
    /// True if extension events, summaries and queries are sent in a field `tambour`.
    pub sends_extensions: bool,
}

impl Default for ChatOptions {
    fn default() -> ChatOptions {
        ChatOptions {
            sends_usage: false,
            reasoning_field: Some("reasoning_content"),
            sends_titles: true,
            sends_calls: true,
            sends_extensions: false,
        }
    }
}

/// Writes the chunks of one message.
#[derive(Debug)]
pub struct ChatEncoder {
    context: StreamContext,
    options: ChatOptions,
    /// JSON object with the fields common to all chunks, without its closing brace.
    chunk_start: Vec<u8>,
    answer: AnswerBuffer,
    phase_titles: PhaseTitles,
    /// Number of phases so far, a held one not included.
    phase_count: usize,
    /// Number of calls sent so far.
    call_count: usize,
    is_over: bool,
}

impl ChatEncoder {
    /// Creates the encoder of one message.
    #[must_use]
    pub fn new(context: StreamContext, options: ChatOptions) -> ChatEncoder {
        let common_fields = json!({
            "id": format!("chatcmpl-{}", context.message_id), "object": "chat.completion.chunk",
            "created": context.created_at, "model": context.model,
        });
        let mut chunk_start = common_fields.to_string().into_bytes();
        // Removes the closing brace: each chunk has further fields.
        chunk_start.pop();
        let answer = AnswerBuffer::new(&context);
        ChatEncoder {
            context,
            options,
            chunk_start,
            answer,
            phase_titles: PhaseTitles::default(),
            phase_count: 0,
            call_count: 0,
            is_over: false,
        }
    }

    /// Writes a chunk with one text field; `text` is a JSON string.
    fn write_text(&self, field: &str, text: &str, out: &mut Vec<u8>) {
        write_data_frame(out, |out| {
            out.extend_from_slice(&self.chunk_start);
            out.extend_from_slice(b",\"choices\":[{\"index\":0,\"delta\":{\"");
            out.extend_from_slice(field.as_bytes());
            out.extend_from_slice(b"\":");
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(b"},\"finish_reason\":null}]}");
        });
    }

    /// Writes a chunk with `choices` and, if there is one, a further `member`: its name and value.
    fn write_chunk(&self, choices: &Value, member: Option<(&str, &Value)>, out: &mut Vec<u8>) {
        write_data_frame(out, |out| {
            out.extend_from_slice(&self.chunk_start);
            out.extend_from_slice(b",\"choices\":");
            write_value(out, choices);
            if let Some((name, member)) = member {
                out.push(b',');
                json::write_string(name, out);
                out.push(b':');
                write_value(out, member);
            }
            out.push(b'}');
        });
    }

    fn write_delta(&self, delta: &Value, reason: Option<&str>, out: &mut Vec<u8>) {
        self.write_chunk(&json!([{"index": 0, "delta": delta, "finish_reason": reason}]), None, out);
    }

    fn write_reasoning(&self, text: &str, out: &mut Vec<u8>) {
        if let Some(field) = self.options.reasoning_field {
            self.write_text(field, text, out);
        }
    }

    /// Writes the title of a phase or, if titles are not sent, a blank line before every phase but the first.
    fn write_title(&mut self, title: &str, out: &mut Vec<u8>) {
        self.phase_count += 1;
        if self.options.sends_titles {
            self.write_reasoning(&Value::from(format_title(title, self.phase_count == 1)).to_string(), out);
        } else if self.phase_count > 1 {
            // A blank line between phases.
            self.write_reasoning("\"\\n\\n\"", out);
        }
    }

    fn write_call(&mut self, ToolCall { call_id: id, name, args }: &ToolCall, out: &mut Vec<u8>) {
        let (index, id) = (self.call_count, unique_call_id(&self.context, id));
        self.call_count += 1;
        let call_start = json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}});
        self.write_delta(&json!({"tool_calls": [call_start]}), None, out);
        let arguments = json!({"index": index, "function": {"arguments": args.to_string()}});
        self.write_delta(&json!({"tool_calls": [arguments]}), None, out);
    }

    fn write_end(&mut self, completed: &Completed, out: &mut Vec<u8>) {
        let is_fallback = completed.metadata.fallback_reason.is_some();
        for text in self.answer.take_held(is_fallback && self.call_count > 0) {
            self.write_text("content", &text, out);
        }
        self.write_delta(&json!({}), Some(finish_reason(completed.finish_reason, self.call_count > 0)), out);
        if self.options.sends_usage {
            self.write_chunk(
                &json!([]),
                Some(("usage", &UsageCounts::from_usage(&completed.usage).to_chat_usage())),
                out,
            );
        }
        write_data_frame(out, |out| out.extend_from_slice(b"[DONE]"));
        self.is_over = true;
    }

    fn write_extension(&self, name: &str, json: &str, out: &mut Vec<u8>) {
        if self.options.sends_extensions
            && let Ok(data) = serde_json::from_str::<Value>(json)
        {
            let choices = json!([{"index": 0, "delta": {}, "finish_reason": null}]);
            self.write_chunk(&choices, Some(("tambour", &json!({"event": name, "data": data}))), out);
        }
    }
}

impl Encoder for ChatEncoder {
    fn write_start(&mut self, _: bool, _: &str, out: &mut Vec<u8>) {
        self.write_delta(&json!({"role": "assistant", "content": ""}), None, out);
    }

    fn write_entry(&mut self, entry: &EncoderEntry<'_>, out: &mut Vec<u8>) {
        let Some(content) = EntryContent::new(entry) else { return };
        match content {
            EntryContent::PhaseText(text) => {
                if let Some(title) = self.phase_titles.take_held() {
                    self.write_title(&title, out);
                }
                self.write_reasoning(text, out);
            }
            EntryContent::FinalText(text) => {
                if self.answer.push_text(text) {
                    self.write_text("content", text, out);
                }
            }
            EntryContent::PhaseStart { title, .. } => {
                for title in self.phase_titles.begin_phase(&title) {
                    self.write_title(&title, out);
                }
            }
            EntryContent::Call(call) if self.options.sends_calls => {
                self.answer.note_call();
                self.write_call(&call, out);
            }
            EntryContent::Completed(completed) => self.write_end(&completed, out),
            EntryContent::Error(failure) => {
                write_data_frame(out, |out| write_value(out, &error_body(&failure)));
                self.is_over = true;
            }
            EntryContent::Summary(json) => self.write_extension("serp_summary", json, out),
            EntryContent::Queries(json) => self.write_extension("serp_queries", json, out),
            EntryContent::Extension(name, json) => self.write_extension(name, json, out),
            EntryContent::ThinkingStart
            | EntryContent::ThinkingEnd
            | EntryContent::FinalEnd
            | EntryContent::Status(_)
            | EntryContent::Call(_)
            | EntryContent::Result(_) => {}
        }
    }

    fn write_heartbeat(&mut self, _: &str, out: &mut Vec<u8>) {
        sse::write_comment("keep-alive", out);
    }

    fn is_over(&self) -> bool {
        self.is_over
    }
}

/// Error body for a failure in this protocol.
#[must_use]
pub fn error_body(failure: &Failure) -> Value {
    let kind = match &failure.upstream {
        Some(_) => "invalid_request_error",
        None if failure.code.starts_with("upstream") => "upstream_error",
        None => "server_error",
    };
    json!({"error": {"message": failure.message, "type": kind, "param": null, "code": error_code(failure)}})
}

/// Body of a completion that is not streamed.
#[must_use]
pub fn completion_from_log(
    context: &StreamContext,
    options: &ChatOptions,
    folded_message: &FoldedMessage,
) -> Value {
    let completed = folded_message.completed.as_deref().cloned().unwrap_or_default();
    let calls = if options.sends_calls { &folded_message.calls[..] } else { &[] };
    let content = (!folded_message.answer.is_empty() || calls.is_empty()).then_some(&folded_message.answer);
    let mut message = json!({"role": "assistant", "content": content, "refusal": null});
    if let Some(field) = options.reasoning_field
        && let reasoning = folded_message.reasoning(options.sends_titles)
        && !reasoning.is_empty()
    {
        message[field] = reasoning.into();
    }
    if !calls.is_empty() {
        let call_json = |ToolCall { call_id: id, name, args }: &ToolCall| {
            let function = json!({"name": name, "arguments": args.to_string()});
            json!({"id": unique_call_id(context, id), "type": "function", "function": function})
        };
        message["tool_calls"] = calls.iter().map(call_json).collect();
    }
    let reason = finish_reason(completed.finish_reason, !calls.is_empty());
    let mut completion = json!({
        "id": format!("chatcmpl-{}", context.message_id), "object": "chat.completion",
        "created": context.created_at, "model": context.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": reason}],
        "usage": UsageCounts::from_usage(&completed.usage).to_chat_usage(),
    });
    if options.sends_extensions {
        let events =
            folded_message.extensions.iter().map(|(name, data)| json!({"event": name, "data": data}));
        completion["tambour"] = json!({"events": events.collect::<Vec<_>>(), "metadata": completed.metadata});
    }
    completion
}
