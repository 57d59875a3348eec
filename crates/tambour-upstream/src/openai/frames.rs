//! Decoder for the frames of OpenAI's chat completions interface, as different services send them.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tambour::InputEnd;
use tambour::event::FinishReason;
use tambour::lex::sse::SseFrame;

use crate::decode::{DecodeProgress, FrameDecoder};
use crate::service::error_text;
use crate::{Function, NativeCall, ReplyItem, new_failure};

/// Decoder for the frames.
pub(crate) struct OpenAiFrames {
    progress: DecodeProgress,
    /// Calls received so far, complete or not.
    calls: Vec<PartialCall>,
}

/// Call being received in parts.
struct PartialCall {
    /// Number that the service gave the call, if any.
    index: Option<u64>,
    call: NativeCall,
}

impl OpenAiFrames {
    /// Creates a decoder for the reply to a message.
    pub(crate) fn new(message_id: &Arc<str>) -> OpenAiFrames {
        OpenAiFrames { progress: DecodeProgress::new(message_id), calls: Vec::new() }
    }
}

impl FrameDecoder for OpenAiFrames {
    fn progress(&mut self) -> &mut DecodeProgress {
        &mut self.progress
    }

    fn take_calls(&mut self) -> Vec<NativeCall> {
        std::mem::take(&mut self.calls).into_iter().map(|partial_call| partial_call.call).collect()
    }

    fn decode_frame(&mut self, frame: &SseFrame<'_>, items: &mut Vec<ReplyItem>) {
        let data = frame.data;
        if data == b"[DONE]" {
            self.progress.is_done = true;
            return;
        }
        let Some(chunk) = self.progress.parse::<OpenAiChunk<'_>>(data) else { return };
        let error = chunk.error.filter(|error| error.get() != "null");
        if error.is_some() || frame.name == "error" {
            // An error is final, even if `[DONE]` follows.
            let error_reason = match error {
                Some(error) => error_text(&json!({ "error": error })),
                None => serde_json::from_slice(data)
                    .ok()
                    .and_then(|body: Value| error_text(&json!({ "error": body }))),
            };
            let error_reason = error_reason.unwrap_or_else(|| "no reason given".to_owned());
            let failure = new_failure("upstream_error", format!("the upstream failed: {error_reason}"), true);
            items.push(ReplyItem::End(InputEnd::Failed(failure)));
            return;
        }
        if let Some(usage) = chunk.usage.filter(Value::is_object) {
            items.push(ReplyItem::Usage(usage));
        }
        let Some(choice) = chunk.choices.0 else { return };
        let delta = choice.delta.or(choice.message).unwrap_or_default();
        let OpenAiDelta {
            content,
            refusal,
            reasoning_content,
            reasoning,
            reasoning_details,
            tool_calls,
            function_call,
        } = delta;
        // Reasoning has several names; a service that sends more than one sends the same text in each.
        let reasoning_field =
            [reasoning_content, reasoning].into_iter().flatten().find(|text| !text.is_empty());
        let reasoning = reasoning_field.map(Cow::into_owned).or_else(|| reasoning_text(&reasoning_details?));
        if let Some(text) = reasoning {
            items.push(ReplyItem::Reasoning(text));
        }
        // A refusal is a part of the reply.
        for text in [content, refusal].into_iter().flatten().filter(|text| !text.is_empty()) {
            items.push(ReplyItem::Text(text.into_owned()));
        }
        // The older field, from before `tool_calls` existed: at most one call, without an id.
        let old_call = function_call
            .map(|function| CallFragment { function: Some(function), ..CallFragment::default() });
        for fragment in tool_calls.unwrap_or_default().into_iter().chain(old_call) {
            if !self.add_fragment(fragment, items) {
                return;
            }
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            self.progress.reported_end = Some(InputEnd::Finished(match reason.as_ref() {
                "length" | "max_tokens" => FinishReason::Length,
                "content_filter" => FinishReason::ContentFilter,
                "tool_calls" | "function_call" => FinishReason::ToolCalls,
                _ => FinishReason::Stop,
            }));
        }
    }
}

impl OpenAiFrames {
    /// Adds a part of a call, to the call that it continues or as a new one; returns `false` if it exceeds
    /// the limits. Some services number the calls, some send each call complete, some give all the same
    /// number.
    fn add_fragment(
        &mut self,
        CallFragment { index, id, function }: CallFragment<'_>,
        items: &mut Vec<ReplyItem>,
    ) -> bool {
        let OpenAiFunction { name, arguments } = function.unwrap_or_default();
        let name = name.filter(|name| !name.is_empty());
        let arguments = match arguments {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text,
            Some(value) => value.to_string(),
        };
        let id = id.filter(|id| !id.is_empty());
        let bytes = name.as_ref().map_or(0, |name| name.len())
            + arguments.len()
            + id.as_ref().map_or(0, |id| id.len());
        if !self.progress.count_bytes(bytes, items) {
            return false;
        }
        let is_same_call = |partial: &&mut PartialCall| match (index, &id) {
            // Calls may share a number: a name with another id begins the next call.
            (Some(_), Some(id)) => {
                partial.index == index
                    && (partial.call.id == **id || partial.call.id.is_empty() || name.is_none())
            }
            (Some(_), None) => partial.index == index,
            (None, Some(id)) => partial.call.id == **id,
            // Without number and id, a name begins the next call.
            (None, None) => name.is_none(),
        };
        match self.calls.iter_mut().rev().find(is_same_call) {
            Some(PartialCall { call, .. }) => {
                // Some services repeat name and id in each part.
                if let Some(name) = name.filter(|_| call.function.name.is_empty()) {
                    call.function.name = name.into_owned();
                }
                if let Some(id) = id.filter(|_| call.id.is_empty()) {
                    call.id = id.into_owned();
                }
                call.function.arguments.push_str(&arguments);
            }
            None => {
                if !self.progress.count_call(items) {
                    return false;
                }
                let function = Function { name: name.unwrap_or_default().into_owned(), arguments };
                let id = id.unwrap_or_default().into_owned();
                self.calls.push(PartialCall {
                    index,
                    call: NativeCall { id, kind: "function".to_owned(), function, extras: None },
                });
            }
        }
        true
    }
}

/// Returns the text of the field `reasoning_details`, a list of objects.
fn reasoning_text(details: &Value) -> Option<String> {
    let parts =
        details.as_array()?.iter().filter_map(|part| part["text"].as_str().or(part["summary"].as_str()));
    Some(parts.collect::<String>()).filter(|text| !text.is_empty())
}

/// First element of a list, if any. The others are skipped without allocation.
struct FirstElement<T>(Option<T>);

impl<T> Default for FirstElement<T> {
    fn default() -> FirstElement<T> {
        FirstElement(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for FirstElement<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FirstElement<T>, D::Error> {
        struct ListVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
            type Value = FirstElement<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list")
            }

            // `null` is accepted like an empty list.
            fn visit_unit<E>(self) -> Result<FirstElement<T>, E> {
                Ok(FirstElement(None))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<FirstElement<T>, A::Error> {
                let first = list.next_element()?;
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(FirstElement(first))
            }
        }

        deserializer.deserialize_any(ListVisitor(PhantomData))
    }
}

/// Frame of a stream, or a whole reply.
#[derive(Deserialize)]
struct OpenAiChunk<'a> {
    #[serde(borrow, default)]
    choices: FirstElement<OpenAiChoice<'a>>,
    #[serde(default)]
    usage: Option<Value>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// One of the replies that the service may send for a request; only the first is read.
#[derive(Deserialize)]
struct OpenAiChoice<'a> {
    /// Part of the reply, in a stream.
    #[serde(borrow, default)]
    delta: Option<OpenAiDelta<'a>>,
    /// Whole reply, instead of a stream.
    #[serde(borrow, default)]
    message: Option<OpenAiDelta<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<Cow<'a, str>>,
}

/// Part of a reply, or a whole one. Services differ in the name of the reasoning field.
#[derive(Default, Deserialize)]
struct OpenAiDelta<'a> {
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    refusal: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    reasoning_content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    reasoning: Option<Cow<'a, str>>,
    #[serde(default)]
    reasoning_details: Option<Value>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<CallFragment<'a>>>,
    #[serde(borrow, default)]
    function_call: Option<OpenAiFunction<'a>>,
}

/// Part of a call.
#[derive(Default, Deserialize)]
struct CallFragment<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    function: Option<OpenAiFunction<'a>>,
}

/// Name and arguments of a call, or a part of them.
#[derive(Default, Deserialize)]
struct OpenAiFunction<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    /// JSON text; an object from some services.
    #[serde(default)]
    arguments: Option<Value>,
}
