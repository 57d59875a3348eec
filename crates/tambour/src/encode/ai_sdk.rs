//! Encoder of the UI message stream of the Vercel AI SDK, version 1, limited to parts that all its clients
//! know.

use serde_json::{Value, json};

use super::client_protocol::{
    AnswerBuffer, EMPTY_JSON_STRING, StatePatch, StreamContext, UsageCounts, apply_update, initial_state,
    unique_call_id, write_data_frame, write_value,
};
use super::encoder::{Encoder, EncoderEntry};
use super::entry_content::EntryContent;
use super::sse;
use crate::event::{Completed, FinishReason, ToolCall, ToolResult};

/// Writes the parts of one message.
#[derive(Debug)]
pub struct AiSdkEncoder {
    context: StreamContext,
    /// Id and title of the open phase.
    open_phase: Option<(u64, String)>,
    /// True if the part with the answer is open.
    is_text_open: bool,
    answer: AnswerBuffer,
    has_calls: bool,
    /// Number of data parts so far whose id is generated; the number is part of that id.
    part_count: usize,
    /// State of the conversation after the entries so far.
    state: Value,
    is_over: bool,
}

impl AiSdkEncoder {
    /// Creates the encoder of one message. `state` is the conversation's state before the message, if any was
    /// ever set.
    #[must_use]
    pub fn new(context: StreamContext, state: Option<Value>) -> AiSdkEncoder {
        AiSdkEncoder {
            answer: AnswerBuffer::new(&context),
            context,
            open_phase: None,
            is_text_open: false,
            has_calls: false,
            part_count: 0,
            state: state.unwrap_or_else(initial_state),
            is_over: false,
        }
    }

    /// Sends the data part of a phase; a later part for the same phase replaces it.
    fn write_phase_data(id: u64, title: &str, status: &str, out: &mut Vec<u8>) {
        let data = json!({"id": id, "title": title, "status": status});
        write_part(&json!({"type": "data-phase", "id": format!("phase-{id}"), "data": data}), out);
    }

    fn close_phase(&mut self, out: &mut Vec<u8>) {
        if let Some((id, title)) = self.open_phase.take() {
            write_part(&json!({"type": "reasoning-end", "id": format!("phase-{id}")}), out);
            AiSdkEncoder::write_phase_data(id, &title, "done", out);
        }
    }

    /// Closes the open phase and the answer.
    fn close_parts(&mut self, out: &mut Vec<u8>) {
        self.close_phase(out);
        if std::mem::take(&mut self.is_text_open) {
            write_part(&json!({"type": "text-end", "id": "final"}), out);
        }
    }

    /// Writes text of the answer; `text` is a JSON string.
    fn write_final_text(&mut self, text: &str, out: &mut Vec<u8>) {
        if text == EMPTY_JSON_STRING {
            return;
        }
        if !std::mem::replace(&mut self.is_text_open, true) {
            write_part(&json!({"type": "text-start", "id": "final"}), out);
        }
        write_delta("text-delta", "final", text, out);
    }

    /// Sends operations on the state: applied ones together, with the resulting patch, and each refused one
    /// separately.
    fn write_state_update(&mut self, update: &Value, out: &mut Vec<u8>) {
        let StatePatch { applied_operations, patch, refused_operations } =
            apply_update(update, &mut self.state);
        let mut updates = Vec::new();
        // An update without any operation is sent too: it may have an analysis.
        if !applied_operations.is_empty() || refused_operations.is_empty() {
            updates.push(json!({"ops": applied_operations, "patch": patch, "applied": true}));
        }
        updates.extend(refused_operations.into_iter().map(|(operation, result)| {
            json!({"ops": [operation], "patch": [], "applied": false, "error": result["reason"]})
        }));
        for mut data in updates {
            if let Some(analysis) = update.get("analysis") {
                data["analysis"] = analysis.clone();
            }
            self.part_count += 1;
            write_part(
                &json!({"type": "data-state", "id": format!("state-{}", self.part_count), "data": data}),
                out,
            );
        }
    }

    /// Sends an event as a data part. A part with a fixed id replaces the earlier part with that id. Other
    /// parts get a new id, except transient ones: they have no id, since clients do not store them.
    fn write_data(&mut self, name: &str, json: &str, out: &mut Vec<u8>) {
        let Ok(mut data) = serde_json::from_str::<Value>(json) else { return };
        let (kind, fixed_id, is_transient) = match name {
            "status_bar" => ("status-bar", Some("status-bar".to_owned()), false),
            "plan" => ("plan", Some("plan".to_owned()), false),
            "serp_summary" => ("serp-summary", Some("serp-summary".to_owned()), false),
            "serp_queries" => ("serp-queries", Some("serp-queries".to_owned()), false),
            "state_update" => return self.write_state_update(&data, out),
            "exit_decision" => ("exit-decision", None, false),
            "ui_component" => ("ui-component", None, false),
            "choice" | "details" | "media" | "form" | "picture" | "skill" => (name, None, false),
            "aside" => ("comment", None, true),
            "notice" => ("notice", None, true),
            "finding" => ("repair", None, true),
            _ => return,
        };
        if is_transient {
            write_part(&json!({"type": format!("data-{kind}"), "data": data, "transient": true}), out);
            return;
        }
        if name == "choice" {
            // The protocol calls the text of an option its label.
            for option in data["options"].as_array_mut().into_iter().flatten() {
                if let Some(fields) = option.as_object_mut()
                    && let Some(text) = fields.remove("text")
                {
                    fields.insert("label".to_owned(), text);
                }
            }
        }
        if name == "ui_component"
            && let Some(fields) = data.as_object_mut()
            && let Some(text) = fields.remove("fallback_text")
        {
            fields.insert("fallbackText".to_owned(), text);
        }
        let id = fixed_id.unwrap_or_else(|| {
            self.part_count += 1;
            format!("{kind}-{}", self.part_count)
        });
        write_part(&json!({"type": format!("data-{kind}"), "id": id, "data": data}), out);
    }

    fn write_call(&mut self, ToolCall { call_id: id, name, args }: &ToolCall, out: &mut Vec<u8>) {
        let id = unique_call_id(&self.context, id);
        let start = json!({"type": "tool-input-start", "toolCallId": id, "toolName": name, "dynamic": true});
        write_part(&start, out);
        write_part(
            &json!({"type": "tool-input-delta", "toolCallId": id, "inputTextDelta": args.to_string()}),
            out,
        );
        let available = json!({"type": "tool-input-available", "toolCallId": id, "toolName": name, "input": args, "dynamic": true});
        write_part(&available, out);
        self.has_calls = true;
    }

    fn write_result(&self, result: &ToolResult, out: &mut Vec<u8>) {
        let id = unique_call_id(&self.context, &result.call_id);
        let part = match &result.error {
            None => {
                let output = result.result.clone().unwrap_or_default();
                json!({"type": "tool-output-available", "toolCallId": id, "output": output, "dynamic": true})
            }
            Some(error) => {
                json!({"type": "tool-output-error", "toolCallId": id, "errorText": error.message, "dynamic": true})
            }
        };
        write_part(&part, out);
    }

    fn write_end(&mut self, completed: &Completed, out: &mut Vec<u8>) {
        let is_fallback = completed.metadata.fallback_reason.is_some();
        for text in self.answer.take_held(is_fallback && self.has_calls) {
            self.write_final_text(&text, out);
        }
        self.close_parts(out);
        if completed.finish_reason == FinishReason::Cancelled {
            write_part(&json!({"type": "abort", "reason": "cancelled"}), out);
        } else {
            write_part(&json!({"type": "finish-step"}), out);
            let reason = match completed.finish_reason {
                FinishReason::Length => "length",
                FinishReason::ContentFilter => "content-filter",
                _ if self.has_calls && !self.answer.has_sent_text => "tool-calls",
                _ => "stop",
            };
            let UsageCounts { input, output, total, .. } = UsageCounts::from_usage(&completed.usage);
            let usage = json!({"inputTokens": input, "outputTokens": output, "totalTokens": total});
            let metadata = json!({"usage": usage, "metadata": completed.metadata});
            write_part(&json!({"type": "finish", "finishReason": reason, "messageMetadata": metadata}), out);
        }
        self.write_done(out);
    }

    /// Ends the stream.
    fn write_done(&mut self, out: &mut Vec<u8>) {
        write_data_frame(out, |out| out.extend_from_slice(b"[DONE]"));
        self.is_over = true;
    }
}

impl Encoder for AiSdkEncoder {
    fn write_start(&mut self, _: bool, _: &str, out: &mut Vec<u8>) {
        let metadata = json!({"requestId": self.context.request_id, "model": self.context.model});
        write_part(
            &json!({"type": "start", "messageId": self.context.message_id, "messageMetadata": metadata}),
            out,
        );
        write_part(&json!({"type": "start-step"}), out);
    }

    fn write_entry(&mut self, entry: &EncoderEntry<'_>, out: &mut Vec<u8>) {
        match EntryContent::new(entry) {
            Some(EntryContent::PhaseStart { id, title }) => {
                self.close_phase(out);
                AiSdkEncoder::write_phase_data(id, &title, "streaming", out);
                let metadata = json!({"tambour": {"phase": id, "title": title}});
                let start = json!({"type": "reasoning-start", "id": format!("phase-{id}"), "providerMetadata": metadata});
                write_part(&start, out);
                self.open_phase = Some((id, title.into_owned()));
            }
            Some(EntryContent::PhaseText(text)) => {
                if let Some((id, _)) = &self.open_phase {
                    write_delta("reasoning-delta", &format!("phase-{id}"), text, out);
                }
            }
            Some(EntryContent::ThinkingEnd) => self.close_phase(out),
            Some(EntryContent::FinalText(text)) => {
                if self.answer.push_text(text) {
                    self.write_final_text(text, out);
                }
            }
            Some(EntryContent::Call(call)) => {
                self.answer.note_call();
                self.write_call(&call, out);
            }
            Some(EntryContent::Result(result)) => self.write_result(&result, out),
            Some(EntryContent::Summary(json)) => self.write_data("serp_summary", json, out),
            Some(EntryContent::Queries(json)) => self.write_data("serp_queries", json, out),
            Some(EntryContent::Extension(name, json)) => self.write_data(name, json, out),
            Some(EntryContent::Status(json)) => {
                let status: Value = serde_json::from_str(json).unwrap_or_default();
                let (kind, data) = match status["reask"].as_u64() {
                    // The first re-ask is the second attempt.
                    Some(reask) => ("data-retry", json!({ "attempt": reask + 1 })),
                    None => ("data-status", status),
                };
                write_part(&json!({"type": kind, "data": data, "transient": true}), out);
            }
            Some(EntryContent::Completed(completed)) => self.write_end(&completed, out),
            Some(EntryContent::Error(failure)) => {
                self.close_parts(out);
                write_part(&json!({"type": "error", "errorText": failure.message}), out);
                self.write_done(out);
            }
            Some(EntryContent::ThinkingStart | EntryContent::FinalEnd) | None => {}
        }
    }

    fn write_heartbeat(&mut self, _: &str, out: &mut Vec<u8>) {
        sse::write_comment("keep-alive", out);
    }

    fn is_over(&self) -> bool {
        self.is_over
    }
}

fn write_part(part: &Value, out: &mut Vec<u8>) {
    write_data_frame(out, |out| write_value(out, part));
}

/// Writes a text delta for the part `id`; `text` is a JSON string.
fn write_delta(kind: &str, id: &str, text: &str, out: &mut Vec<u8>) {
    write_data_frame(out, |out| {
        out.extend_from_slice(format!("{{\"type\":\"{kind}\",\"id\":\"{id}\",\"delta\":").as_bytes());
        out.extend_from_slice(text.as_bytes());
        out.push(b'}');
    });
}
