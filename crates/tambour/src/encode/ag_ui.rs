//! Encoder of the protocol AG-UI 1.0: a run with its messages, reasoning, calls, state and activities.

use serde_json::{Value, json};

use super::encoder::{Encoder, Entry};
use super::foreign::{About, Answer, Tokens, call_id, data, value};
use super::patch::{Update, empty, of_update};
use super::seen::Seen;
use super::sse;
use crate::event::{Completed, FinishReason, ToolCall, ToolResult};

/// Context of a run beyond its message.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Thread id given by the client.
    pub thread: String,
    /// Run id given by the client.
    pub run: String,
    /// State before the run, if it was ever set.
    pub state: Option<Value>,
    /// Refused members of the client's state, each with its path and reason.
    pub refused: Vec<Value>,
}

/// Writes the events of one run.
#[derive(Debug)]
pub struct AgUi {
    about: About,
    run: Run,
    /// True if the reasoning is open. Its first phase opens it, so a reply without phases has no reasoning
    /// events.
    thinking: bool,
    /// First phase, held back until it has text: an empty single phase is not sent.
    waiting: Option<(u64, String)>,
    phases: usize,
    /// Open phase: its id, and the name of its step.
    phase: Option<(u64, String)>,
    text: bool,
    answer: Answer,
    /// Calls without a result.
    pending: Vec<String>,
    called: bool,
    /// Number of activities, for their ids, and the choice offered last.
    activities: usize,
    choice: Option<(String, Value)>,
    over: bool,
}

impl AgUi {
    /// Creates the encoder of one run.
    #[must_use]
    pub fn new(about: About, run: Run) -> AgUi {
        AgUi {
            answer: Answer::new(&about),
            about,
            run,
            thinking: false,
            waiting: None,
            phases: 0,
            phase: None,
            text: false,
            pending: Vec::new(),
            called: false,
            activities: 0,
            choice: None,
            over: false,
        }
    }

    fn id(&self, part: &str) -> String {
        format!("{}:{part}", self.about.message)
    }

    /// Sends the start of a phase.
    fn open_phase(&mut self, (id, title): (u64, String), out: &mut Vec<u8>) {
        self.close_phase(out);
        if !std::mem::replace(&mut self.thinking, true) {
            event(&json!({"type": "REASONING_START", "messageId": self.id("thinking")}), out);
        }
        let step = format!("{id} {title}");
        event(&json!({"type": "STEP_STARTED", "stepName": step}), out);
        let start = json!({
            "type": "REASONING_MESSAGE_START", "messageId": self.id(&format!("phase-{id}")),
            "role": "reasoning", "metadata": {"tambour": {"phase": id, "title": title}},
        });
        event(&start, out);
        self.phase = Some((id, step));
    }

    fn close_phase(&mut self, out: &mut Vec<u8>) {
        if let Some((id, step)) = self.phase.take() {
            let message = self.id(&format!("phase-{id}"));
            event(&json!({"type": "REASONING_MESSAGE_END", "messageId": message}), out);
            event(&json!({"type": "STEP_FINISHED", "stepName": step}), out);
        }
    }

    fn close_thinking(&mut self, out: &mut Vec<u8>) {
        self.waiting = None;
        self.close_phase(out);
        if std::mem::take(&mut self.thinking) {
            event(&json!({"type": "REASONING_END", "messageId": self.id("thinking")}), out);
        }
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        self.close_thinking(out);
        if std::mem::take(&mut self.text) {
            event(&json!({"type": "TEXT_MESSAGE_END", "messageId": self.about.message}), out);
        }
    }

    fn final_text(&mut self, text: &str, out: &mut Vec<u8>) {
        if text == "\"\"" {
            return;
        }
        if !std::mem::replace(&mut self.text, true) {
            let start =
                json!({"type": "TEXT_MESSAGE_START", "messageId": self.about.message, "role": "assistant"});
            event(&start, out);
        }
        delta("TEXT_MESSAGE_CONTENT", &self.about.message, text, out);
    }

    fn custom(name: &str, value: &Value, out: &mut Vec<u8>) {
        event(&json!({"type": "CUSTOM", "name": format!("tambour.{name}"), "value": value}), out);
    }

    fn beside(&mut self, name: &str, json: &str, out: &mut Vec<u8>) {
        let Ok(data) = serde_json::from_str::<Value>(json) else { return };
        match name {
            "state_update" => self.state(&data, out),
            "status_bar" | "details" | "ui_component" | "media" | "choice" | "form" | "picture" | "skill" => {
                let id = if name == "status_bar" {
                    self.id("status_bar")
                } else {
                    self.activities += 1;
                    self.id(&format!("{name}-{}", self.activities))
                };
                if name == "choice" {
                    self.choice = Some((id.clone(), data.clone()));
                }
                let kind = format!("tambour.{name}");
                let snapshot = json!({"type": "ACTIVITY_SNAPSHOT", "messageId": id, "activityType": kind, "content": data});
                event(&snapshot, out);
            }
            "aside" => AgUi::custom("comment", &data, out),
            "finding" => AgUi::custom("repair", &data, out),
            "tool_start" => {}
            name => AgUi::custom(name, &data, out),
        }
    }

    /// Sends operations on the state as a patch; their effect is taken from their results, and refused ones
    /// are sent separately.
    fn state(&mut self, update: &Value, out: &mut Vec<u8>) {
        let told = self.run.state.is_some();
        let Update { patch, refused, .. } = of_update(update, self.run.state.get_or_insert_with(empty));
        if !told && !patch.is_empty() {
            // A patch needs a state to apply to.
            event(&json!({"type": "STATE_SNAPSHOT", "snapshot": empty()}), out);
        }
        if !patch.is_empty() {
            let mut changed = json!({"type": "STATE_DELTA", "delta": patch});
            if let Some(analysis) = update["analysis"].as_str() {
                changed["metadata"] = json!({"tambour": {"analysis": analysis}});
            }
            event(&changed, out);
        }
        for (_, result) in refused {
            AgUi::custom("state_rejected", &result, out);
        }
    }

    fn call(&mut self, ToolCall { call_id: id, name, args }: &ToolCall, out: &mut Vec<u8>) {
        let id = call_id(&self.about, id);
        let message = &self.about.message;
        let start = json!({"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name, "parentMessageId": message});
        event(&start, out);
        event(&json!({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": args.to_string()}), out);
        event(&json!({"type": "TOOL_CALL_END", "toolCallId": id}), out);
        self.pending.push(id);
        self.called = true;
    }

    fn result(&mut self, result: &ToolResult, out: &mut Vec<u8>) {
        let id = call_id(&self.about, &result.call_id);
        self.pending.retain(|pending| *pending != id);
        let content = match &result.error {
            Some(error) => json!({ "error": error }).to_string(),
            None => match result.result.clone().unwrap_or_default() {
                Value::String(text) => text,
                other => other.to_string(),
            },
        };
        let message = self.id(&format!("result-{}", result.call_id));
        let told = json!({
            "type": "TOOL_CALL_RESULT", "messageId": message, "toolCallId": id, "content": content, "role": "tool",
        });
        event(&told, out);
    }

    fn end(&mut self, completed: &Completed, out: &mut Vec<u8>) {
        let replaced = completed.metadata.fallback_reason.is_some();
        for text in self.answer.release(replaced && self.called) {
            self.final_text(&text, out);
        }
        self.close(out);
        let Tokens { input, output, total, reasoning, cached } = Tokens::of(&completed.usage);
        let usage = json!([{
            "model": self.about.model, "inputTokens": input, "outputTokens": output, "totalTokens": total,
            "reasoningTokens": reasoning, "cachedInputTokens": cached,
        }]);
        let outcome = match (&self.choice, completed.finish_reason) {
            (_, FinishReason::Cancelled) => json!({"type": "cancelled"}),
            (Some((id, choice)), _) => json!({"type": "interrupt", "interrupts": [interrupt(id, choice)]}),
            _ if !self.pending.is_empty() => {
                json!({"type": "success", "pendingToolCallIds": self.pending})
            }
            _ => json!({"type": "success"}),
        };
        let mut finished = json!({
            "type": "RUN_FINISHED", "threadId": self.run.thread, "runId": self.run.run, "outcome": outcome, "usage": usage,
        });
        if completed.metadata.truncated {
            // The protocol has no outcome for a truncated run.
            finished["result"] = json!({"truncated": true, "finish_reason": completed.finish_reason});
        }
        event(&finished, out);
        self.over = true;
    }
}

/// A choice as an interrupt that the run waits for.
fn interrupt(id: &str, choice: &Value) -> Value {
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

impl Encoder for AgUi {
    fn open(&mut self, _: bool, _: &str, out: &mut Vec<u8>) {
        let Run { thread, run, .. } = &self.run;
        let started =
            json!({"type": "RUN_STARTED", "threadId": thread, "runId": run, "protocolVersion": "1.0"});
        event(&started, out);
        if let Some(state) = &self.run.state {
            event(&json!({"type": "STATE_SNAPSHOT", "snapshot": state}), out);
        }
        for refused in &self.run.refused {
            AgUi::custom("state_rejected", refused, out);
        }
    }

    fn entry(&mut self, entry: &Entry<'_>, out: &mut Vec<u8>) {
        match Seen::new(entry) {
            Some(Seen::Phase { id, title }) => {
                self.phases += 1;
                let phase = (id, title.into_owned());
                if self.phases == 1 {
                    self.waiting = Some(phase);
                } else {
                    for phase in self.waiting.take().into_iter().chain([phase]) {
                        self.open_phase(phase, out);
                    }
                }
            }
            Some(Seen::PhaseText(text)) => {
                if text != "\"\""
                    && let Some(phase) = self.waiting.take()
                {
                    self.open_phase(phase, out);
                }
                // Clients refuse an empty delta.
                if let Some((id, _)) = self.phase.as_ref().filter(|_| text != "\"\"") {
                    delta("REASONING_MESSAGE_CONTENT", &self.id(&format!("phase-{id}")), text, out);
                }
            }
            Some(Seen::ThinkingEnd) => self.close_thinking(out),
            Some(Seen::FinalText(text)) => {
                if self.answer.text(text) {
                    self.final_text(text, out);
                }
            }
            Some(Seen::Call(call)) => {
                self.answer.call();
                self.call(&call, out);
            }
            Some(Seen::Result(result)) => self.result(&result, out),
            Some(Seen::Summary(json)) => self.beside("serp_summary", json, out),
            Some(Seen::Queries(json)) => self.beside("serp_queries", json, out),
            Some(Seen::Beside(name, json)) => self.beside(name, json, out),
            Some(Seen::Status(json)) => {
                AgUi::custom("status", &serde_json::from_str(json).unwrap_or_default(), out);
            }
            Some(Seen::Completed(completed)) => self.end(&completed, out),
            Some(Seen::Error(failure)) => {
                self.close(out);
                event(&json!({"type": "RUN_ERROR", "message": failure.message, "code": failure.code}), out);
                self.over = true;
            }
            Some(Seen::ThinkingStart | Seen::FinalEnd) | None => {}
        }
    }

    fn heartbeat(&mut self, _: &str, out: &mut Vec<u8>) {
        sse::comment("keep-alive", out);
    }

    fn is_over(&self) -> bool {
        self.over
    }
}

fn event(event: &Value, out: &mut Vec<u8>) {
    data(out, |out| value(out, event));
}

/// Writes a text delta; `text` is a JSON string.
fn delta(kind: &str, message: &str, text: &str, out: &mut Vec<u8>) {
    data(out, |out| {
        let message = Value::from(message);
        out.extend_from_slice(format!("{{\"type\":\"{kind}\",\"messageId\":{message},\"delta\":").as_bytes());
        out.extend_from_slice(text.as_bytes());
        out.push(b'}');
    });
}
