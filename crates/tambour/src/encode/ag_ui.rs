//! Encoder of the protocol AG-UI 1.0: a run with its messages, reasoning, calls, state and activities.

use serde_json::{Value, json};

use super::client_protocol::{
    AnswerBuffer, EMPTY_JSON_STRING, StatePatch, StreamContext, UsageCounts, apply_update, initial_state,
    unique_call_id, write_data_frame, write_value,
};
use super::encoder::{Encoder, EncoderEntry};
use super::entry_content::EntryContent;
use super::sse;
use crate::event::{Completed, FinishReason, ToolCall, ToolResult};

/// Data of a run that the [`StreamContext`] of its message does not have.
#[derive(Clone, Debug, Default)]
pub struct RunContext {
    /// Thread id given by the client.
    pub thread_id: String,
    /// Run id given by the client.
    pub run_id: String,
    /// State before the run, if it was ever set.
    pub state: Option<Value>,
    /// Members of the client's state that were refused, each with its path and reason.
    pub refusals: Vec<Value>,
}

/// Writes the events of one run.
#[derive(Debug)]
pub struct AgUiEncoder {
    context: StreamContext,
    run: RunContext,
    /// True if the reasoning is open. The first phase opens it, so a reply without phases has no reasoning
    /// events.
    is_reasoning_open: bool,
    /// Id and title of the first phase, held back until it has text: an empty single phase is not sent.
    held_phase: Option<(u64, String)>,
    /// Number of phases so far, the held one included.
    phase_count: usize,
    /// Open phase: its id, and the name of its step.
    open_phase: Option<(u64, String)>,
    /// True if the message with the answer is open.
    is_text_open: bool,
    answer: AnswerBuffer,
    /// Ids of calls without a result.
    pending_calls: Vec<String>,
    has_calls: bool,
    /// Number of activities so far other than status bars; it is part of the activity's id.
    activity_count: usize,
    /// Choice offered last: id of its activity, and its data.
    last_choice: Option<(String, Value)>,
    is_over: bool,
}

impl AgUiEncoder {
    /// Creates the encoder of one run.
    #[must_use]
    pub fn new(context: StreamContext, run: RunContext) -> AgUiEncoder {
        AgUiEncoder {
            answer: AnswerBuffer::new(&context),
            context,
            run,
            is_reasoning_open: false,
            held_phase: None,
            phase_count: 0,
            open_phase: None,
            is_text_open: false,
            pending_calls: Vec::new(),
            has_calls: false,
            activity_count: 0,
            last_choice: None,
            is_over: false,
        }
    }

    /// Id of a part of the message, from the name of the part.
    fn part_id(&self, name: &str) -> String {
        format!("{}:{name}", self.context.message_id)
    }

    /// Sends the start of a phase: its id and title.
    fn begin_phase(&mut self, (id, title): (u64, String), out: &mut Vec<u8>) {
        self.close_phase(out);
        if !std::mem::replace(&mut self.is_reasoning_open, true) {
            write_event(&json!({"type": "REASONING_START", "messageId": self.part_id("thinking")}), out);
        }
        let step = format!("{id} {title}");
        write_event(&json!({"type": "STEP_STARTED", "stepName": step}), out);
        let start = json!({
            "type": "REASONING_MESSAGE_START", "messageId": self.part_id(&format!("phase-{id}")),
            "role": "reasoning", "metadata": {"tambour": {"phase": id, "title": title}},
        });
        write_event(&start, out);
        self.open_phase = Some((id, step));
    }

    fn close_phase(&mut self, out: &mut Vec<u8>) {
        if let Some((id, step)) = self.open_phase.take() {
            let message_id = self.part_id(&format!("phase-{id}"));
            write_event(&json!({"type": "REASONING_MESSAGE_END", "messageId": message_id}), out);
            write_event(&json!({"type": "STEP_FINISHED", "stepName": step}), out);
        }
    }

    /// Closes the reasoning; a held phase is dropped, since it stayed empty.
    fn close_thinking(&mut self, out: &mut Vec<u8>) {
        self.held_phase = None;
        self.close_phase(out);
        if std::mem::take(&mut self.is_reasoning_open) {
            write_event(&json!({"type": "REASONING_END", "messageId": self.part_id("thinking")}), out);
        }
    }

    /// Closes the reasoning and the answer.
    fn close_parts(&mut self, out: &mut Vec<u8>) {
        self.close_thinking(out);
        if std::mem::take(&mut self.is_text_open) {
            write_event(&json!({"type": "TEXT_MESSAGE_END", "messageId": self.context.message_id}), out);
        }
    }

    /// Writes text of the answer; `text` is a JSON string.
    fn write_final_text(&mut self, text: &str, out: &mut Vec<u8>) {
        if text == EMPTY_JSON_STRING {
            return;
        }
        if !std::mem::replace(&mut self.is_text_open, true) {
            let start = json!({"type": "TEXT_MESSAGE_START", "messageId": self.context.message_id, "role": "assistant"});
            write_event(&start, out);
        }
        write_delta("TEXT_MESSAGE_CONTENT", &self.context.message_id, text, out);
    }

    fn write_custom(name: &str, value: &Value, out: &mut Vec<u8>) {
        write_event(&json!({"type": "CUSTOM", "name": format!("tambour.{name}"), "value": value}), out);
    }

    fn write_extension(&mut self, name: &str, json: &str, out: &mut Vec<u8>) {
        let Ok(data) = serde_json::from_str::<Value>(json) else { return };
        match name {
            "state_update" => self.write_state_update(&data, out),
            "status_bar" | "details" | "ui_component" | "media" | "choice" | "form" | "picture" | "skill" => {
                let id = if name == "status_bar" {
                    self.part_id("status_bar")
                } else {
                    self.activity_count += 1;
                    self.part_id(&format!("{name}-{}", self.activity_count))
                };
                if name == "choice" {
                    self.last_choice = Some((id.clone(), data.clone()));
                }
                let kind = format!("tambour.{name}");
                let snapshot = json!({"type": "ACTIVITY_SNAPSHOT", "messageId": id, "activityType": kind, "content": data});
                write_event(&snapshot, out);
            }
            "aside" => AgUiEncoder::write_custom("comment", &data, out),
            "finding" => AgUiEncoder::write_custom("repair", &data, out),
            // `write_call` has sent the start of the call.
            "tool_start" => {}
            name => AgUiEncoder::write_custom(name, &data, out),
        }
    }

    /// Sends the applied operations of a state update as one patch, and each refused one as a custom event.
    fn write_state_update(&mut self, update: &Value, out: &mut Vec<u8>) {
        let has_state = self.run.state.is_some();
        let StatePatch { patch, refused_operations, .. } =
            apply_update(update, self.run.state.get_or_insert_with(initial_state));
        if !has_state && !patch.is_empty() {
            // A patch needs a state to apply to.
            write_event(&json!({"type": "STATE_SNAPSHOT", "snapshot": initial_state()}), out);
        }
        if !patch.is_empty() {
            let mut state_delta = json!({"type": "STATE_DELTA", "delta": patch});
            if let Some(analysis) = update["analysis"].as_str() {
                state_delta["metadata"] = json!({"tambour": {"analysis": analysis}});
            }
            write_event(&state_delta, out);
        }
        for (_, result) in refused_operations {
            AgUiEncoder::write_custom("state_rejected", &result, out);
        }
    }

    fn write_call(&mut self, ToolCall { call_id: id, name, args }: &ToolCall, out: &mut Vec<u8>) {
        let id = unique_call_id(&self.context, id);
        let message_id = &self.context.message_id;
        let start = json!({"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name, "parentMessageId": message_id});
        write_event(&start, out);
        write_event(&json!({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": args.to_string()}), out);
        write_event(&json!({"type": "TOOL_CALL_END", "toolCallId": id}), out);
        self.pending_calls.push(id);
        self.has_calls = true;
    }

    fn write_result(&mut self, result: &ToolResult, out: &mut Vec<u8>) {
        let id = unique_call_id(&self.context, &result.call_id);
        self.pending_calls.retain(|pending| *pending != id);
        let content = match &result.error {
            Some(error) => json!({ "error": error }).to_string(),
            None => match result.result.clone().unwrap_or_default() {
                Value::String(text) => text,
                other => other.to_string(),
            },
        };
        let message_id = self.part_id(&format!("result-{}", result.call_id));
        let result_event = json!({
            "type": "TOOL_CALL_RESULT", "messageId": message_id, "toolCallId": id, "content": content, "role": "tool",
        });
        write_event(&result_event, out);
    }

    fn write_end(&mut self, completed: &Completed, out: &mut Vec<u8>) {
        let is_fallback = completed.metadata.fallback_reason.is_some();
        for text in self.answer.take_held(is_fallback && self.has_calls) {
            self.write_final_text(&text, out);
        }
        self.close_parts(out);
        let UsageCounts { input, output, total, reasoning, cached } =
            UsageCounts::from_usage(&completed.usage);
        let usage = json!([{
            "model": self.context.model, "inputTokens": input, "outputTokens": output, "totalTokens": total,
            "reasoningTokens": reasoning, "cachedInputTokens": cached,
        }]);
        let outcome = match (&self.last_choice, completed.finish_reason) {
            (_, FinishReason::Cancelled) => json!({"type": "cancelled"}),
            (Some((id, choice)), _) => {
                json!({"type": "interrupt", "interrupts": [choice_interrupt(id, choice)]})
            }
            _ if !self.pending_calls.is_empty() => {
                json!({"type": "success", "pendingToolCallIds": self.pending_calls})
            }
            _ => json!({"type": "success"}),
        };
        let mut finish_event = json!({
            "type": "RUN_FINISHED", "threadId": self.run.thread_id, "runId": self.run.run_id, "outcome": outcome, "usage": usage,
        });
        if completed.metadata.truncated {
            // The protocol has no outcome for a truncated run.
            finish_event["result"] = json!({"truncated": true, "finish_reason": completed.finish_reason});
        }
        write_event(&finish_event, out);
        self.is_over = true;
    }
}

/// Interrupt of the run that asks the client for a choice.
fn choice_interrupt(id: &str, choice: &Value) -> Value {
    let ids: Vec<&Value> =
        choice["options"].as_array().into_iter().flatten().map(|option| &option["id"]).collect();
    let mut interrupt = json!({
        "id": id, "reason": "choice", "responseSchema": {"type": "string", "enum": ids},
    });
    if let Some(prompt) = choice["prompt"].as_str() {
        interrupt["message"] = prompt.into();
    }
    interrupt
}

impl Encoder for AgUiEncoder {
    fn write_start(&mut self, _: bool, _: &str, out: &mut Vec<u8>) {
        let RunContext { thread_id, run_id, .. } = &self.run;
        let started =
            json!({"type": "RUN_STARTED", "threadId": thread_id, "runId": run_id, "protocolVersion": "1.0"});
        write_event(&started, out);
        if let Some(state) = &self.run.state {
            write_event(&json!({"type": "STATE_SNAPSHOT", "snapshot": state}), out);
        }
        for refusal in &self.run.refusals {
            AgUiEncoder::write_custom("state_rejected", refusal, out);
        }
    }

    fn write_entry(&mut self, entry: &EncoderEntry<'_>, out: &mut Vec<u8>) {
        match EntryContent::new(entry) {
            Some(EntryContent::PhaseStart { id, title }) => {
                self.phase_count += 1;
                let phase = (id, title.into_owned());
                // The first phase is held, since it may stay empty and be the only one; a second releases it.
                if self.phase_count == 1 {
                    self.held_phase = Some(phase);
                } else {
                    for phase in self.held_phase.take().into_iter().chain([phase]) {
                        self.begin_phase(phase, out);
                    }
                }
            }
            // Clients refuse an empty delta.
            Some(EntryContent::PhaseText(EMPTY_JSON_STRING)) => {}
            Some(EntryContent::PhaseText(text)) => {
                if let Some(phase) = self.held_phase.take() {
                    self.begin_phase(phase, out);
                }
                if let Some((id, _)) = &self.open_phase {
                    let message_id = self.part_id(&format!("phase-{id}"));
                    write_delta("REASONING_MESSAGE_CONTENT", &message_id, text, out);
                }
            }
            Some(EntryContent::ThinkingEnd) => self.close_thinking(out),
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
            Some(EntryContent::Summary(json)) => self.write_extension("serp_summary", json, out),
            Some(EntryContent::Queries(json)) => self.write_extension("serp_queries", json, out),
            Some(EntryContent::Extension(name, json)) => self.write_extension(name, json, out),
            Some(EntryContent::Status(json)) => {
                AgUiEncoder::write_custom("status", &serde_json::from_str(json).unwrap_or_default(), out);
            }
            Some(EntryContent::Completed(completed)) => self.write_end(&completed, out),
            Some(EntryContent::Error(failure)) => {
                self.close_parts(out);
                write_event(
                    &json!({"type": "RUN_ERROR", "message": failure.message, "code": failure.code}),
                    out,
                );
                self.is_over = true;
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

fn write_event(event: &Value, out: &mut Vec<u8>) {
    write_data_frame(out, |out| write_value(out, event));
}

/// Writes a text delta; `text` is a JSON string.
fn write_delta(kind: &str, message_id: &str, text: &str, out: &mut Vec<u8>) {
    write_data_frame(out, |out| {
        let message_id = Value::from(message_id);
        out.extend_from_slice(
            format!("{{\"type\":\"{kind}\",\"messageId\":{message_id},\"delta\":").as_bytes(),
        );
        out.extend_from_slice(text.as_bytes());
        out.push(b'}');
    });
}
