//! Data of the extension events.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Makes the type of the events that stand beside the contract: a line is all that a new one needs here.
macro_rules! extensions {
    ($($(#[doc = $about:literal])+ $variant:ident($data:ty) = $name:literal,)+) => {
        /// An event beside the contract that is known whole. Without it the stream is as valid.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "event", content = "data")]
        #[non_exhaustive]
        pub enum Extension {
            $($(#[doc = $about])+ #[serde(rename = $name)] $variant($data),)+
        }

        impl Extension {
            /// The names of all of them.
            pub const NAMES: &[&str] = &[$($name),+];

            /// The event's public name.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $(Extension::$variant(_) => $name,)+
                }
            }

            /// The event's data as JSON.
            #[must_use]
            pub fn data(&self) -> Value {
                match self {
                    $(Extension::$variant(data) => serde_json::to_value(data),)+
                }
                .expect("event data has string keys and no fallible parts")
            }
        }

        $(impl From<$data> for Extension {
            fn from(data: $data) -> Extension {
                Extension::$variant(data)
            }
        })+
    };
}

extensions! {
    /// `plan`: what a plan came to.
    Plan(PlanOutcome) = "plan",
    /// `tool_call`: a call that may run.
    ToolCall(ToolCall) = "tool_call",
    /// `tool_start`: a call begins to run.
    ToolStart(ToolStart) = "tool_start",
    /// `tool_result`: what a call gave.
    ToolResult(ToolResult) = "tool_result",
    /// `exit_decision`: whether a dialogue action is over (S-061).
    ExitDecision(ExitDecision) = "exit_decision",
    /// `notice`: what the user should be told without stopping.
    Notice(Notice) = "notice",
}

impl Extension {
    /// The event called `name` with this data, or `None` when it is none.
    #[must_use]
    pub fn parse(name: &str, data: &Value) -> Option<Extension> {
        if !Extension::NAMES.contains(&name) {
            return None;
        }
        serde_json::from_value(serde_json::json!({ "event": name, "data": data })).ok()
    }

    /// JSON Schema of `{"event": NAME, "data": {...}}`, all of them.
    #[must_use]
    pub fn schema() -> Value {
        let settings = schemars::generate::SchemaSettings::draft2020_12().with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        });
        Schema::to_value(settings.into_generator().into_root_schema_for::<Extension>())
    }
}

/// What an `aside` holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum AsideKind {
    /// An HTML comment.
    Comment,
    /// A thought.
    Thought,
}

/// Something the user should be told without stopping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notice {
    /// Stable word.
    pub code: Cow<'static, str>,
    /// Text for the user.
    pub message: String,
    /// What it is about, such as a call id.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none", default)]
    pub reference: Option<String>,
}

/// Data of `plan`: what a plan came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct PlanOutcome {
    /// The four-field object after validation, with unknown fields kept (P-029); or the fallback (P-017).
    pub plan: Value,
    /// Whether its calls may run.
    pub executable: bool,
    /// Whether it is the fallback.
    pub is_fallback: bool,
}

/// Data of `tool_call`: a call of a complete, valid plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// Unique in its message: `call_1`, `call_2`, ...
    pub call_id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments that satisfy the tool's schema.
    pub args: Value,
}

/// Data of `tool_start`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolStart {
    /// The call.
    pub call_id: String,
    /// Name of the tool.
    pub name: String,
}

/// Data of `tool_result`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// The call.
    pub call_id: String,
    /// Whether the tool did what it was asked.
    pub ok: bool,
    /// What it gave, when `ok`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub result: Option<Value>,
    /// What went wrong, when not `ok`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<ToolError>,
    /// Milliseconds between start and result.
    pub elapsed_ms: u64,
}

/// Why a call gave no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolError {
    /// Stable word.
    pub code: Cow<'static, str>,
    /// What happened.
    pub message: String,
}

/// Data of `exit_decision`: whether a dialogue action is over (S-061, S-070 to S-083).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ExitDecision {
    /// Whether the action ends.
    pub should_exit: bool,
    /// Why, as a text for people.
    pub reason: String,
    /// The rule that decided.
    pub decision_source: DecisionSource,
    /// Conditions of understanding that do not hold; empty when it was reached.
    pub unmet: Vec<Cow<'static, str>>,
    /// The round just answered, from 1.
    pub round: u32,
    /// Rounds after which the action ends in any case.
    pub max_rounds: u32,
    /// The assessment it rests on, with defaults in the place of what was missing (S-055).
    pub assessment: Value,
}

/// The rule behind an exit decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DecisionSource {
    /// The last round was answered (S-070).
    MaxRounds,
    /// The user has understood (S-071, S-072).
    ExitCriteria,
    /// Neither: the model's word is passed on (S-073).
    LlmSuggestion,
}
