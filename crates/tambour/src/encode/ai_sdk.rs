//! Encoder of the UI message stream of the Vercel AI SDK, version 1, limited to parts that all its clients
//! know.

use serde_json::{Value, json};

use super::encoder::{Encoder, Entry};
use super::foreign::{About, Answer, Tokens, call_id, data, value};
use super::patch::{Update, empty, of_update};
use super::seen::Seen;
use super::sse;
use crate::event::{Completed, FinishReason, ToolCall, ToolResult};

/// Writes the parts of one message.
#[derive(Debug)]
pub struct AiSdk {
    about: About,
    /// Open phase, with its title.
    phase: Option<(u64, String)>,
    text: bool,
    answer: Answer,
    called: bool,
    /// Number of data parts, for their ids.
    parts: usize,
    /// State of the conversation after the entries so far.
    state: Value,
    over: bool,
}

impl AiSdk {
    /// Creates the encoder of one message. `state` is that of the conversation before it, if it was ever set.
    #[must_use]
    pub fn new(about: About, state: Option<Value>) -> AiSdk {
        AiSdk {
            answer: Answer::new(&about),
            about,
            phase: None,
            text: false,
            called: false,
            parts: 0,
            state: state.unwrap_or_else(empty),
            over: false,
        }
    }

    fn phase_data(id: u64, title: &str, status: &str, out: &mut Vec<u8>) {
        let data = json!({"id": id, "title": title, "status": status});
        part(&json!({"type": "data-phase", "id": format!("phase-{id}"), "data": data}), out);
    }

    fn close_phase(&mut self, out: &mut Vec<u8>) {
        if let Some((id, title)) = self.phase.take() {
            part(&json!({"type": "reasoning-end", "id": format!("phase-{id}")}), out);
            AiSdk::phase_data(id, &title, "done", out);
        }
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        self.close_phase(out);
        if std::mem::take(&mut self.text) {
            part(&json!({"type": "text-end", "id": "final"}), out);
        }
    }

    fn final_text(&mut self, text: &str, out: &mut Vec<u8>) {
        if text == "\"\"" {
            return;
        }
        if !std::mem::replace(&mut self.text, true) {
            part(&json!({"type": "text-start", "id": "final"}), out);
        }
        delta("text-delta", "final", text, out);
    }

    /// Sends operations on the state: applied ones together, with the resulting patch, and each refused one
    /// separately.
    fn update(&mut self, update: &Value, out: &mut Vec<u8>) {
        let Update { applied, patch, refused } = of_update(update, &mut self.state);
        let mut told = Vec::new();
        if !applied.is_empty() || refused.is_empty() {
            told.push(json!({"ops": applied, "patch": patch, "applied": true}));
        }
        told.extend(refused.into_iter().map(|(operation, result)| {
            json!({"ops": [operation], "patch": [], "applied": false, "error": result["reason"]})
        }));
        for mut data in told {
            if let Some(analysis) = update.get("analysis") {
                data["analysis"] = analysis.clone();
            }
            self.parts += 1;
            part(&json!({"type": "data-state", "id": format!("state-{}", self.parts), "data": data}), out);
        }
    }

    /// Sends a data part: an update of an earlier one if it has a fixed id, otherwise a new one.
    fn data(&mut self, name: &str, json: &str, out: &mut Vec<u8>) {
        let Ok(mut data) = serde_json::from_str::<Value>(json) else { return };
        let (kind, id, transient) = match name {
            "status_bar" => ("status-bar", Some("status-bar".to_owned()), false),
            "plan" => ("plan", Some("plan".to_owned()), false),
            "serp_summary" => ("serp-summary", Some("serp-summary".to_owned()), false),
            "serp_queries" => ("serp-queries", Some("serp-queries".to_owned()), false),
            "state_update" => return self.update(&data, out),
            "exit_decision" => ("exit-decision", None, false),
            "ui_component" => ("ui-component", None, false),
            "choice" | "details" | "media" | "form" | "picture" | "skill" => (name, None, false),
            "aside" => ("comment", None, true),
            "notice" => ("notice", None, true),
            "finding" => ("repair", None, true),
            _ => return,
        };
        if transient {
            part(&json!({"type": format!("data-{kind}"), "data": data, "transient": true}), out);
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
        let id = id.unwrap_or_else(|| {
            self.parts += 1;
            format!("{kind}-{}", self.parts)
        });
        part(&json!({"type": format!("data-{kind}"), "id": id, "data": data}), out);
    }

    fn call(&mut self, ToolCall { call_id: id, name, args }: &ToolCall, out: &mut Vec<u8>) {
        let id = call_id(&self.about, id);
        let start = json!({"type": "tool-input-start", "toolCallId": id, "toolName": name, "dynamic": true});
        part(&start, out);
        part(&json!({"type": "tool-input-delta", "toolCallId": id, "inputTextDelta": args.to_string()}), out);
        let whole = json!({"type": "tool-input-available", "toolCallId": id, "toolName": name, "input": args, "dynamic": true});
        part(&whole, out);
        self.called = true;
    }

    fn result(&self, result: &ToolResult, out: &mut Vec<u8>) {
        let id = call_id(&self.about, &result.call_id);
        let whole = match &result.error {
            None => {
                let output = result.result.clone().unwrap_or_default();
                json!({"type": "tool-output-available", "toolCallId": id, "output": output, "dynamic": true})
            }
            Some(error) => {
                json!({"type": "tool-output-error", "toolCallId": id, "errorText": error.message, "dynamic": true})
            }
        };
        part(&whole, out);
    }

    fn end(&mut self, completed: &Completed, out: &mut Vec<u8>) {
        let replaced = completed.metadata.fallback_reason.is_some();
        for text in self.answer.release(replaced && self.called) {
            self.final_text(&text, out);
        }
        self.close(out);
        if completed.finish_reason == FinishReason::Cancelled {
            part(&json!({"type": "abort", "reason": "cancelled"}), out);
        } else {
            part(&json!({"type": "finish-step"}), out);
            let reason = match completed.finish_reason {
                FinishReason::Length => "length",
                FinishReason::ContentFilter => "content-filter",
                _ if self.called && !self.answer.said => "tool-calls",
                _ => "stop",
            };
            let Tokens { input, output, total, .. } = Tokens::of(&completed.usage);
            let usage = json!({"inputTokens": input, "outputTokens": output, "totalTokens": total});
            let metadata = json!({"usage": usage, "metadata": completed.metadata});
            part(&json!({"type": "finish", "finishReason": reason, "messageMetadata": metadata}), out);
        }
        self.done(out);
    }

    fn done(&mut self, out: &mut Vec<u8>) {
        data(out, |out| out.extend_from_slice(b"[DONE]"));
        self.over = true;
    }
}

impl Encoder for AiSdk {
    fn open(&mut self, _: bool, _: &str, out: &mut Vec<u8>) {
        let metadata = json!({"requestId": self.about.request, "model": self.about.model});
        part(&json!({"type": "start", "messageId": self.about.message, "messageMetadata": metadata}), out);
        part(&json!({"type": "start-step"}), out);
    }

    fn entry(&mut self, entry: &Entry<'_>, out: &mut Vec<u8>) {
        match Seen::new(entry) {
            Some(Seen::Phase { id, title }) => {
                self.close_phase(out);
                AiSdk::phase_data(id, &title, "streaming", out);
                let metadata = json!({"tambour": {"phase": id, "title": title}});
                let start = json!({"type": "reasoning-start", "id": format!("phase-{id}"), "providerMetadata": metadata});
                part(&start, out);
                self.phase = Some((id, title.into_owned()));
            }
            Some(Seen::PhaseText(text)) => {
                if let Some((id, _)) = &self.phase {
                    delta("reasoning-delta", &format!("phase-{id}"), text, out);
                }
            }
            Some(Seen::ThinkingEnd) => self.close_phase(out),
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
            Some(Seen::Summary(json)) => self.data("serp_summary", json, out),
            Some(Seen::Queries(json)) => self.data("serp_queries", json, out),
            Some(Seen::Beside(name, json)) => self.data(name, json, out),
            Some(Seen::Status(json)) => {
                let status: Value = serde_json::from_str(json).unwrap_or_default();
                let (kind, data) = match status["reask"].as_u64() {
                    Some(reask) => ("data-retry", json!({ "attempt": reask + 1 })),
                    None => ("data-status", status),
                };
                part(&json!({"type": kind, "data": data, "transient": true}), out);
            }
            Some(Seen::Completed(completed)) => self.end(&completed, out),
            Some(Seen::Error(failure)) => {
                self.close(out);
                part(&json!({"type": "error", "errorText": failure.message}), out);
                self.done(out);
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

fn part(part: &Value, out: &mut Vec<u8>) {
    data(out, |out| value(out, part));
}

/// Writes a text delta for the part `id`; `text` is a JSON string.
fn delta(kind: &str, id: &str, text: &str, out: &mut Vec<u8>) {
    data(out, |out| {
        out.extend_from_slice(format!("{{\"type\":\"{kind}\",\"id\":\"{id}\",\"delta\":").as_bytes());
        out.extend_from_slice(text.as_bytes());
        out.push(b'}');
    });
}
