//! The one typed event vocabulary and its JSON names.
//!
//! Events of a running stream borrow their text from the chunk they arrived in; [`Event::into_owned`] keeps them.
//! What does not belong here: the order of events (`sequence` makes it, `contract` checks it).

mod extension;
mod joined;
mod sink;
mod worth;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::finding::Finding;

pub use extension::{
    AsideKind, Choice, ChoiceOption, DecisionSource, Details, ExitDecision, Extension, Form, Media, Notice,
    OwnElement, Picture, PlanOutcome, Request, Skill, StateOperation, StateResult, StateUpdate, StatusBar,
    StatusItem, ToolCall, ToolError, ToolResult, ToolStart, UiComponent,
};
pub use joined::Joined;
pub use sink::{Collected, Sink, push_joined};
pub use worth::{Appraisal, Worth};

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
        /// Word for what is happening.
        state: Cow<'a, str>,
    },
    /// `heartbeat`, a system event.
    Heartbeat {
        /// RFC 3339 time.
        ts: Cow<'a, str>,
    },
    /// `error`, one of the two ends of a stream.
    Error(Failure),
    /// `completed`, the other end.
    Completed(Box<Completed>),
    /// `draft_delta`: reasoning that is not part of the contract. Extension.
    DraftDelta {
        /// Not empty.
        text: Cow<'a, str>,
    },
    /// `aside`: a comment, or a thought after the answer began. Extension.
    Aside {
        /// Which of the two.
        kind: AsideKind,
        /// Its text.
        text: Cow<'a, str>,
    },
    /// Anything else beside the contract, known whole. Extension.
    Extension(Box<Extension>),
    /// `finding`. Extension, only when asked for.
    Finding(Box<Finding>),
}

/// Data of `error`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Stable word.
    pub code: Cow<'static, str>,
    /// What happened.
    pub message: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// Refusal of the service that was asked, where the request itself was at fault.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub upstream: Option<Box<Refusal>>,
}

impl Failure {
    /// A failure of ours.
    #[must_use]
    pub fn new(code: impl Into<Cow<'static, str>>, message: impl Into<String>, retryable: bool) -> Failure {
        Failure { code: code.into(), message: message.into(), retryable, upstream: None }
    }
}

/// Refusal of a service, as it told it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// HTTP status, such as 404.
    pub status: u16,
    /// Its own word for the error, such as `context_length_exceeded`; absent when it has none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub code: Option<String>,
}

/// Why a reply ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The model was done.
    #[default]
    Stop,
    /// Cut by a token limit, or the stream ended without a reason.
    Length,
    /// Cut by the provider's filter.
    ContentFilter,
    /// The model called tools.
    ToolCalls,
    /// Cancelled by the user.
    Cancelled,
}

/// Data of `completed`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Completed {
    /// Token counts as the upstream gave them; `null` when it gave none.
    pub usage: Value,
    /// Why the reply ended.
    pub finish_reason: FinishReason,
    /// What happened on the way.
    pub metadata: Metadata,
    /// The whole raw reply; only in the legacy protocol.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reply: Option<String>,
}

/// `completed.metadata`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// Why the answer was replaced by the fallback, such as `parsing_error`; absent when it was not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fallback_reason: Option<Cow<'static, str>>,
    /// Why a reply whose text was kept could not be read as asked, such as `plan_missing`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unused_reason: Option<Cow<'static, str>>,
    /// Whether the reply was cut by a limit, a filter, a failure or an end without a reason.
    pub truncated: bool,
    /// Notices of the reply.
    pub notices: Vec<Notice>,
    /// Whether a dialogue action is over; only where a round was given.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit_decision: Option<ExitDecision>,
}

impl<'a> Event<'a> {
    /// The event's public name.
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

    /// The event's data as JSON, without the envelope (`message_id`, `request_id`).
    #[must_use]
    pub fn data(&self) -> Value {
        fn plain<T: Serialize>(value: &T) -> Value {
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
            Event::Error(failure) => plain(failure),
            Event::Completed(completed) => plain(completed),
            Event::Aside { kind, text } => json!({ "kind": kind, "text": text }),
            Event::Extension(extension) => extension.data(),
            Event::Finding(finding) => plain(finding),
        }
    }

    /// The contract event called `name` with this data, or `None` when it is none. Others: [`Extension::parse`].
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

    /// What stands beside the contract and is known whole.
    #[must_use]
    pub fn extension(&self) -> Option<&Extension> {
        match self {
            Event::Extension(extension) => Some(extension),
            _ => None,
        }
    }

    /// The kind of event, for filters and checks.
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

    /// The same event, independent of the chunk it came from.
    #[must_use]
    pub fn into_owned(self) -> Event<'static> {
        fn own(text: Cow<'_, str>) -> Cow<'static, str> {
            Cow::Owned(text.into_owned())
        }
        match self {
            Event::SerpSummary { text } => Event::SerpSummary { text: own(text) },
            Event::ThinkingStart => Event::ThinkingStart,
            Event::PhaseStart { id, title } => Event::PhaseStart { id, title: own(title) },
            Event::PhaseDelta { id, text } => Event::PhaseDelta { id, text: own(text) },
            Event::ThinkingEnd => Event::ThinkingEnd,
            Event::FinalDelta { text } => Event::FinalDelta { text: own(text) },
            Event::SerpQueries { queries } => Event::SerpQueries { queries },
            Event::FinalEnd => Event::FinalEnd,
            Event::Status { state } => Event::Status { state: own(state) },
            Event::Heartbeat { ts } => Event::Heartbeat { ts: own(ts) },
            Event::Error(failure) => Event::Error(failure),
            Event::Completed(completed) => Event::Completed(completed),
            Event::DraftDelta { text } => Event::DraftDelta { text: own(text) },
            Event::Aside { kind, text } => Event::Aside { kind, text: own(text) },
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
    /// As `{"event": NAME, "data": {...}}`.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut object = serializer.serialize_struct("Event", 2)?;
        object.serialize_field("event", self.name())?;
        object.serialize_field("data", &self.data())?;
        object.end()
    }
}

/// What an event is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// Part of the JSONSeq contract (J-001).
    Contract,
    /// `status`, `heartbeat`, `error`, `completed`.
    System,
    /// Only when asked for; removing it leaves a valid stream.
    Extension,
}

/// The events of the contract (J-001).
pub(crate) const CONTRACT: &[&str] = &[
    "serp_summary",
    "thinking_start",
    "phase_start",
    "phase_delta",
    "thinking_end",
    "final_delta",
    "serp_queries",
    "final_end",
];

/// The kind of the event called `name`, or `None` when there is none of that name (J-001, X-010).
#[must_use]
pub fn kind_of(name: &str) -> Option<EventKind> {
    Some(match name {
        _ if CONTRACT.contains(&name) => EventKind::Contract,
        "status" | "heartbeat" | "error" | "completed" => EventKind::System,
        "draft_delta" | "aside" | "finding" => EventKind::Extension,
        _ if Extension::NAMES.contains(&name) => EventKind::Extension,
        _ => return None,
    })
}
