//! Typed vocabulary of events, and their JSON names.
//!
//! Events of a running stream borrow their text from the chunk they arrived in; [`Event::into_owned`]
//! detaches them. The order of events does not belong here: `sequence` produces it, `contract` checks it.

mod extension;
mod sink;

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::finding::Finding;

pub use extension::{
    AsideKind, Choice, ChoiceOption, DecisionSource, Details, ExitDecision, Extension, Form, Media, Notice,
    OwnElement, Picture, PlanOutcome, Request, Skill, StateOperation, StateResult, StateUpdate, StatusBar,
    StatusItem, ToolCall, ToolError, ToolResult, ToolStart, UiComponent,
};
pub use sink::{EventCollector, ReplyAppraisal, ReplyWorth, Sink};
#[doc(hidden)]
pub use sink::{JoinedEvents, push_joined};

/// One item of the outgoing stream.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// `serp_summary`: one or two sentences before the thinking (J-002).
    SerpSummary {
        /// Plain text, not empty.
        text: Cow<'a, str>,
    },
    /// `thinking_start` (J-006).
    ThinkingStart,
    /// `phase_start` (J-007 to J-009).
    PhaseStart {
        /// 1, 2, 3, ...
        id: u32,
        /// Not blank.
        title: Cow<'a, str>,
    },
    /// `phase_delta` (J-010, J-011).
    PhaseDelta {
        /// Id of the most recent `phase_start`.
        id: u32,
        /// Not empty.
        text: Cow<'a, str>,
    },
    /// `thinking_end` (J-012).
    ThinkingEnd,
    /// `final_delta`: a piece of the Markdown answer (J-013).
    FinalDelta {
        /// Not empty.
        text: Cow<'a, str>,
    },
    /// `serp_queries` (J-003, J-004).
    SerpQueries {
        /// At most five, unique, nothing sensitive.
        queries: Vec<String>,
    },
    /// `final_end` (J-014).
    FinalEnd,
    /// `status`, a system event.
    Status {
        /// Word for the state, such as `running`.
        state: Cow<'a, str>,
    },
    /// `heartbeat`, a system event.
    Heartbeat {
        /// RFC 3339 time.
        ts: Cow<'a, str>,
    },
    /// `error`: ends a stream that failed.
    Error(Failure),
    /// `completed`: ends any other stream.
    Completed(Box<Completed>),
    /// `draft_delta`: reasoning that is not part of the contract. Extension.
    DraftDelta {
        /// Not empty.
        text: Cow<'a, str>,
    },
    /// `aside`: a comment, or a thought after the answer began. Extension.
    Aside {
        /// Kind of aside.
        kind: AsideKind,
        /// Text of the comment or thought.
        text: Cow<'a, str>,
    },
    /// Any other extension event; always complete. Extension.
    Extension(Box<Extension>),
    /// `finding`. Extension, sent only on request.
    Finding(Box<Finding>),
}

/// Data of `error`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Stable error code.
    pub code: Cow<'static, str>,
    /// Description of the failure.
    pub message: String,
    /// True if the same request may succeed later.
    pub retryable: bool,
    /// Refusal by the upstream, if the request itself was at fault.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub upstream: Option<Box<UpstreamRefusal>>,
}

impl Failure {
    /// Failure without a refusal by the upstream.
    #[must_use]
    pub fn new(code: impl Into<Cow<'static, str>>, message: impl Into<String>, retryable: bool) -> Failure {
        Failure { code: code.into(), message: message.into(), retryable, upstream: None }
    }
}

/// Refusal of a request, as the upstream reported it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UpstreamRefusal {
    /// HTTP status, such as 404.
    pub status: u16,
    /// Error code of the upstream, such as `context_length_exceeded`; absent if it gave none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub code: Option<String>,
}

/// Reason why a reply ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The model finished normally.
    #[default]
    Stop,
    /// Truncated by a token limit, or the stream ended without a reason.
    Length,
    /// Truncated by the provider's filter.
    ContentFilter,
    /// The model called tools.
    ToolCalls,
    /// Cancelled by the user.
    Cancelled,
}

/// Data of `completed`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Completed {
    /// Token counts as the upstream reported them; `null` if it gave none.
    pub usage: Value,
    /// Reason why the reply ended.
    pub finish_reason: FinishReason,
    /// Figures and reasons about the reply.
    pub metadata: Metadata,
    /// The whole raw reply; only in the legacy protocol.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reply: Option<String>,
}

/// `completed.metadata`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Metadata {
    /// Dialect the reply was read as.
    pub dialect: String,
    /// Number of repairs.
    pub repairs: u32,
    /// Number of findings of severity warning or error.
    pub warnings: u32,
    /// Number of re-asks.
    pub reasks: u32,
    /// Step that gave the answer; only from callers that ask models.
    #[serde(rename = "yield", skip_serializing_if = "Option::is_none", default)]
    pub answer_yield: Option<AnswerYield>,
    /// Reason why the answer was replaced by the fallback, such as `parsing_error`; absent if it was not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fallback_reason: Option<Cow<'static, str>>,
    /// Reason why the reply was not used as requested, although its text was preserved, such as
    /// `plan_missing`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unused_reason: Option<Cow<'static, str>>,
    /// True if the reply was truncated by a limit, a filter, a failure or an end without a reason (X-014,
    ///
    pub truncated: bool,
    /// Notices of the reply.
    pub notices: Vec<Notice>,
    /// Decision whether a dialogue action is over; only if a round was given.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit_decision: Option<ExitDecision>,
}

/// Step of the ladder that gave an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum AnswerYield {
    /// A reply that was constrained to its contract, without repairs.
    Constrained,
    /// A reply under instructions alone, without repairs.
    Plain,
    /// A repaired reply.
    Repaired,
    /// The reply to a re-ask.
    Reasked,
    /// The fallback text, or text that was kept although it does not have the requested format.
    Fallback,
}

impl AnswerYield {
    /// All steps, from the best to the fallback.
    pub const ALL: [AnswerYield; 5] = [
        AnswerYield::Constrained,
        AnswerYield::Plain,
        AnswerYield::Repaired,
        AnswerYield::Reasked,
        AnswerYield::Fallback,
    ];

    /// Public name, such as `constrained`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            AnswerYield::Constrained => "constrained",
            AnswerYield::Plain => "plain",
            AnswerYield::Repaired => "repaired",
            AnswerYield::Reasked => "reasked",
            AnswerYield::Fallback => "fallback",
        }
    }
}

impl Metadata {
    /// Step that gave the answer. `is_constrained` if the reply was constrained, `is_reask` if it is the reply
    /// to a re-ask.
    #[must_use]
    pub fn step(&self, is_constrained: bool, is_reask: bool) -> AnswerYield {
        if self.fallback_reason.is_some() || self.unused_reason.is_some() {
            AnswerYield::Fallback
        } else if is_reask {
            AnswerYield::Reasked
        } else if self.repairs > 0 {
            AnswerYield::Repaired
        } else if is_constrained {
            AnswerYield::Constrained
        } else {
            AnswerYield::Plain
        }
    }
}

impl<'a> Event<'a> {
    /// Public name of the event.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Event::SerpSummary { .. } => "serp_summary",
            Event::ThinkingStart => "thinking_start",
            Event::PhaseStart { .. } => "phase_start",
            Event::PhaseDelta { .. } => "phase_delta",
            Event::ThinkingEnd => "thinking_end",
            Event::FinalDelta { .. } => "final_delta",
            Event::SerpQueries { .. } => "serp_queries",
            Event::FinalEnd => "final_end",
            Event::Status { .. } => "status",
            Event::Heartbeat { .. } => "heartbeat",
            Event::Error(_) => "error",
            Event::Completed(_) => "completed",
            Event::DraftDelta { .. } => "draft_delta",
            Event::Aside { .. } => "aside",
            Event::Extension(extension) => extension.name(),
            Event::Finding(_) => "finding",
        }
    }

    /// Data of the event as JSON, without the envelope (`message_id`, `request_id`).
    #[must_use]
    pub fn data(&self) -> Value {
        fn to_value<T: Serialize>(value: &T) -> Value {
            serde_json::to_value(value).expect("event data has string keys and no fallible parts")
        }
        match self {
            Event::SerpSummary { text } | Event::FinalDelta { text } | Event::DraftDelta { text } => {
                json!({ "text": text })
            }
            Event::ThinkingStart | Event::ThinkingEnd | Event::FinalEnd => json!({}),
            Event::PhaseStart { id, title } => json!({ "id": id, "title": title }),
            Event::PhaseDelta { id, text } => json!({ "id": id, "text": text }),
            Event::SerpQueries { queries } => json!({ "queries": queries }),
            Event::Status { state } => json!({ "state": state }),
            Event::Heartbeat { ts } => json!({ "ts": ts }),
            Event::Error(failure) => to_value(failure),
            Event::Completed(completed) => to_value(completed),
            Event::Aside { kind, text } => json!({ "kind": kind, "text": text }),
            Event::Extension(extension) => extension.data(),
            Event::Finding(finding) => to_value(finding),
        }
    }

    /// Parses a contract event from its name and data; `None` if the name is not that of a contract event, or
    /// a field is missing or has another type. [`Extension::parse`] parses extension events.
    #[must_use]
    pub fn parse(name: &str, data: &Value) -> Option<Event<'static>> {
        let text = |field: &str| Some(Cow::Owned(data.get(field)?.as_str()?.to_owned()));
        let id = || data.get("id")?.as_u64()?.try_into().ok();
        Some(match name {
            "serp_summary" => Event::SerpSummary { text: text("text")? },
            "thinking_start" => Event::ThinkingStart,
            "phase_start" => Event::PhaseStart { id: id()?, title: text("title")? },
            "phase_delta" => Event::PhaseDelta { id: id()?, text: text("text")? },
            "thinking_end" => Event::ThinkingEnd,
            "final_delta" => Event::FinalDelta { text: text("text")? },
            "serp_queries" => {
                let queries = data.get("queries")?.as_array()?;
                Event::SerpQueries {
                    queries: queries.iter().filter_map(|q| q.as_str().map(str::to_owned)).collect(),
                }
            }
            "final_end" => Event::FinalEnd,
            _ => return None,
        })
    }

    /// Data of the event if it is an [`Event::Extension`].
    #[must_use]
    pub fn extension(&self) -> Option<&Extension> {
        match self {
            Event::Extension(extension) => Some(extension),
            _ => None,
        }
    }

    /// Kind of event, for filters and checks.
    #[must_use]
    #[inline]
    pub fn kind(&self) -> EventKind {
        match self {
            Event::SerpSummary { .. }
            | Event::ThinkingStart
            | Event::PhaseStart { .. }
            | Event::PhaseDelta { .. }
            | Event::ThinkingEnd
            | Event::FinalDelta { .. }
            | Event::SerpQueries { .. }
            | Event::FinalEnd => EventKind::Contract,
            Event::Status { .. } | Event::Heartbeat { .. } | Event::Error(_) | Event::Completed(_) => {
                EventKind::System
            }
            Event::DraftDelta { .. } | Event::Aside { .. } | Event::Extension(_) | Event::Finding(_) => {
                EventKind::Extension
            }
        }
    }

    /// Detaches the event from the chunk it came from.
    #[must_use]
    pub fn into_owned(self) -> Event<'static> {
        fn into_static(text: Cow<'_, str>) -> Cow<'static, str> {
            Cow::Owned(text.into_owned())
        }
        match self {
            Event::SerpSummary { text } => Event::SerpSummary { text: into_static(text) },
            Event::ThinkingStart => Event::ThinkingStart,
            Event::PhaseStart { id, title } => Event::PhaseStart { id, title: into_static(title) },
            Event::PhaseDelta { id, text } => Event::PhaseDelta { id, text: into_static(text) },
            Event::ThinkingEnd => Event::ThinkingEnd,
            Event::FinalDelta { text } => Event::FinalDelta { text: into_static(text) },
            Event::SerpQueries { queries } => Event::SerpQueries { queries },
            Event::FinalEnd => Event::FinalEnd,
            Event::Status { state } => Event::Status { state: into_static(state) },
            Event::Heartbeat { ts } => Event::Heartbeat { ts: into_static(ts) },
            Event::Error(failure) => Event::Error(failure),
            Event::Completed(completed) => Event::Completed(completed),
            Event::DraftDelta { text } => Event::DraftDelta { text: into_static(text) },
            Event::Aside { kind, text } => Event::Aside { kind, text: into_static(text) },
            Event::Extension(extension) => Event::Extension(extension),
            Event::Finding(finding) => Event::Finding(finding),
        }
    }
}

impl<T: Into<Extension>> From<T> for Event<'_> {
    fn from(data: T) -> Self {
        Event::Extension(Box::new(data.into()))
    }
}

impl Serialize for Event<'_> {
    /// Serializes the event as `{"event": NAME, "data": {...}}`.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut object = serializer.serialize_struct("Event", 2)?;
        object.serialize_field("event", self.name())?;
        object.serialize_field("data", &self.data())?;
        object.end()
    }
}

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// Part of the JSONSeq contract (J-001).
    Contract,
    /// `status`, `heartbeat`, `error`, `completed`.
    System,
    /// Sent only on request; removing it leaves a valid stream.
    Extension,
}

/// Names of the contract events (J-001).
pub(crate) const CONTRACT_EVENTS: &[&str] = &[
    "serp_summary",
    "thinking_start",
    "phase_start",
    "phase_delta",
    "thinking_end",
    "final_delta",
    "serp_queries",
    "final_end",
];

/// Kind of the event called `name`, or `None` for an unknown name (J-001, X-010).
#[doc(hidden)]
#[must_use]
pub fn parse_kind(name: &str) -> Option<EventKind> {
    Some(match name {
        _ if CONTRACT_EVENTS.contains(&name) => EventKind::Contract,
        "status" | "heartbeat" | "error" | "completed" => EventKind::System,
        "draft_delta" | "aside" | "finding" => EventKind::Extension,
        _ if Extension::NAMES.contains(&name) => EventKind::Extension,
        _ => return None,
    })
}
