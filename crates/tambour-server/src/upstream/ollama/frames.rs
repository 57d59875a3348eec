//! Decoder for the lines of Ollama's interface.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tambour::End;
use tambour::event::FinishReason;
use tambour::lex::sse::Frame;

use crate::upstream::decode::{Progress, Reading};
use crate::upstream::service::error_text;
use crate::upstream::{Function, Item, NativeCall, failure};

/// Decoder for the lines.
pub(in crate::upstream) struct Frames {
    progress: Progress,
    calls: Vec<NativeCall>,
}

impl Frames {
    /// Creates a decoder for a message's reply.
    pub(in crate::upstream) fn new(message: &Arc<str>) -> Frames {
        Frames { progress: Progress::new(message), calls: Vec::new() }
    }

    /// Adds a complete call; `false` if it exceeds the limits.
    fn call(&mut self, call: Call<'_>, items: &mut Vec<Item>) -> bool {
        let Call { id, function } = call;
        let id = id.unwrap_or_default().into_owned();
        let Named { name, arguments } = function.unwrap_or_default();
        let name = name.unwrap_or_default().into_owned();
        let arguments = match arguments {
            None | Some(Value::Null) => "{}".to_owned(),
            Some(Value::String(text)) => text,
            Some(whole) => whole.to_string(),
        };
        if !self.progress.room(id.len() + name.len() + arguments.len(), items)
            || !self.progress.one_more(items)
        {
            return false;
        }
        let function = Function { name, arguments };
        self.calls.push(NativeCall { id, kind: "function".to_owned(), function, kept: None });
        true
    }
}

impl Reading for Frames {
    fn progress(&mut self) -> &mut Progress {
        &mut self.progress
    }

    fn calls(&mut self) -> Vec<NativeCall> {
        std::mem::take(&mut self.calls)
    }

    fn frame(&mut self, frame: &Frame<'_>, items: &mut Vec<Item>) {
        let Some(line) = self.progress.read::<Line<'_>>(frame.data) else { return };
        if let Some(error) = line.error.filter(|error| !error.is_null()) {
            let said = error_text(&json!({ "error": error })).unwrap_or_else(|| "no reason given".to_owned());
            let failed = failure("upstream_error", format!("the upstream failed: {said}"), true);
            return items.push(Item::End(End::Failed(failed)));
        }
        let Said { content, thinking, tool_calls } = line.message.unwrap_or_default();
        if let Some(text) = thinking.filter(|text| !text.is_empty()) {
            items.push(Item::Reasoning(text.into_owned()));
        }
        if let Some(text) = content.filter(|text| !text.is_empty()) {
            items.push(Item::Text(text.into_owned()));
        }
        for call in tool_calls.unwrap_or_default() {
            if !self.call(call, items) {
                return;
            }
        }
        if !line.done {
            return;
        }
        if line.prompt_eval_count.is_some() || line.eval_count.is_some() {
            let (input, output) =
                (line.prompt_eval_count.unwrap_or_default(), line.eval_count.unwrap_or_default());
            items.push(Item::Usage(json!({
                "prompt_tokens": input,
                "completion_tokens": output,
                "total_tokens": input.saturating_add(output),
            })));
        }
        self.progress.done = true;
        self.progress.finish = Some(End::Finished(match line.done_reason.as_deref() {
            Some("length") => FinishReason::Length,
            // The service has no finish reason for tool calls.
            _ if !self.calls.is_empty() => FinishReason::ToolCalls,
            _ => FinishReason::Stop,
        }));
    }
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default)]
    message: Option<Said<'a>>,
    #[serde(default)]
    done: bool,
    #[serde(borrow, default)]
    done_reason: Option<Cow<'a, str>>,
    #[serde(default)]
    prompt_eval_count: Option<u64>,
    #[serde(default)]
    eval_count: Option<u64>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Default, Deserialize)]
struct Said<'a> {
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    thinking: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<Call<'a>>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    function: Option<Named<'a>>,
}

#[derive(Default, Deserialize)]
struct Named<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(default)]
    arguments: Option<Value>,
}
