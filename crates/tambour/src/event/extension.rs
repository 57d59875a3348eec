//! Data of the extension events.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Generates the enum of extension events; a new one needs one line here.
macro_rules! extensions {
    ($($(#[doc = $about:literal])+ $variant:ident($data:ty) = $name:literal,)+) => {
        /// A complete extension event. Removing it from a stream leaves a valid stream.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "event", content = "data")]
        #[non_exhaustive]
        pub enum Extension {
            $($(#[doc = $about])+ #[serde(rename = $name)] $variant($data),)+
        }

        impl Extension {
            /// Names of all extension events.
            pub const NAMES: &[&str] = &[$($name),+];

            /// Public name of the event.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $(Extension::$variant(_) => $name,)+
                }
            }

            /// Data of the event as JSON.
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
    /// `plan`: result of reading a plan.
    Plan(PlanOutcome) = "plan",
    /// `tool_call`: a call that may run.
    ToolCall(ToolCall) = "tool_call",
    /// `tool_start`: a call begins to run.
    ToolStart(ToolStart) = "tool_start",
    /// `tool_result`: result of a call.
    ToolResult(ToolResult) = "tool_result",
    /// `state_update`: operations on the state of the conversation.
    StateUpdate(StateUpdate) = "state_update",
    /// `status_bar`: items of a status bar.
    StatusBar(StatusBar) = "status_bar",
    /// `details`: text in a collapsible section.
    Details(Details) = "details",
    /// `choice`: options offered to the user.
    Choice(Choice) = "choice",
    /// `ui_component`: a component of the client.
    UiComponent(UiComponent) = "ui_component",
    /// `media`: an image, audio or video, by reference.
    Media(Media) = "media",
    /// `element`: an element of the caller's own structure.
    Element(OwnElement) = "element",
    /// `exit_decision`: decision whether a dialogue action is over (S-061).
    ExitDecision(ExitDecision) = "exit_decision",
    /// `notice`: information for the user that does not stop the reply.
    Notice(Notice) = "notice",
    /// `form`: a form that the client shows; its answer holds the entered values.
    Form(Form) = "form",
    /// `picture`: a picture that the client shows; it answers once the user has seen it.
    Picture(Picture) = "picture",
    /// `skill`: an operation that the client runs; its answer holds the result.
    Skill(Skill) = "skill",
}

impl Extension {
    /// Parses an extension event from its name and data; `None` if no extension event has this name or the
    /// data do not fit it.
    #[must_use]
    pub fn parse(name: &str, data: &Value) -> Option<Extension> {
        if !Extension::NAMES.contains(&name) {
            return None;
        }
        serde_json::from_value(serde_json::json!({ "event": name, "data": data })).ok()
    }

    /// JSON Schema of `{"event": NAME, "data": {...}}` for all extension events.
    #[must_use]
    pub fn schema() -> Value {
        let settings = schemars::generate::SchemaSettings::draft2020_12().with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        });
        Schema::to_value(settings.into_generator().into_root_schema_for::<Extension>())
    }
}

/// Kind of an `aside`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum AsideKind {
    /// An HTML comment.
    Comment,
    /// A thought.
    Thought,
}

/// Information for the user that does not stop the reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notice {
    /// Stable code.
    pub code: Cow<'static, str>,
    /// Text for the user.
    pub message: String,
    /// Subject of the notice, such as a call id.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none", default)]
    pub reference: Option<String>,
}

/// Request to the client of a dialogue. The dialogue waits for an answer that names the call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// Unique in its dialogue: `call_1`, `call_2`, ...
    pub call_id: String,
    /// Fields of the action, as its author wrote them.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// Data of `form`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Form(pub Request);

/// Data of `picture`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Picture(pub Request);

/// Data of `skill`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Skill(pub Request);

/// Data of `plan`: result of reading a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct PlanOutcome {
    /// Validated object of four fields, with unknown fields preserved (P-029), or the fallback (P-017).
    pub plan: Value,
    /// True if its calls may run.
    pub executable: bool,
    /// True if it is the fallback plan.
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
    /// Id of the call.
    pub call_id: String,
    /// Name of the tool.
    pub name: String,
}

/// Data of `tool_result`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// Id of the call.
    pub call_id: String,
    /// True if the tool succeeded.
    pub ok: bool,
    /// Result, if `ok`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub result: Option<Value>,
    /// Error, if not `ok`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<ToolError>,
    /// Milliseconds between start and result.
    pub elapsed_ms: u64,
}

/// Reason why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolError {
    /// Stable code.
    pub code: Cow<'static, str>,
    /// Description of the error.
    pub message: String,
}

/// Data of `state_update` (F-110).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateUpdate {
    /// Reason in the model's words; empty if it gave none.
    pub analysis: String,
    /// Operations in order, including those that can never be carried out.
    pub operations: Vec<StateOperation>,
    /// Result of each operation; only with an attached state.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub results: Option<Vec<StateResult>>,
}

/// One operation on the state (F-111).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateOperation {
    /// Name of the operation in upper case; an unknown one as written.
    pub op: String,
    /// Path as written.
    pub path: String,
    /// Value of the operation, if it has one.
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "deserialize_present")]
    pub value: Option<Value>,
    /// Stable code of the reason why the operation can never be carried out, whatever the state. Its value is
    /// left out then.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub refused: Option<String>,
}

/// Result of one operation (F-113).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateResult {
    /// Index of the operation in its block.
    pub index: usize,
    /// True if it was carried out.
    pub ok: bool,
    /// Value before the operation.
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "deserialize_present")]
    pub before: Option<Value>,
    /// Value after the operation.
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "deserialize_present")]
    pub after: Option<Value>,
    /// Stable code of the reason why it was refused.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

/// Deserializes a field that is present, `null` included.
fn deserialize_present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Data of `status_bar` (F-130).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusBar {
    /// Items in order.
    pub items: Vec<StatusItem>,
}

/// One item of a status bar. Items below the depth that the schema describes have the same form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusItem {
    /// Name as written; empty for text outside of tags.
    pub name: String,
    /// Text directly in the item.
    pub text: String,
    /// Nested items.
    pub items: Vec<StatusItem>,
}

impl JsonSchema for StatusItem {
    fn schema_name() -> Cow<'static, str> {
        "StatusItem".into()
    }

    fn inline_schema() -> bool {
        true
    }

    // Schemas are written without references, so nested items are not described again.
    fn json_schema(_: &mut schemars::SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "type": "object",
            "description": "One item of a status bar; `items` are of the same form.",
            "properties": {
                "name": {"type": "string"},
                "text": {"type": "string"},
                "items": {"type": "array", "items": {"type": "object"}}
            },
            "required": ["name", "text", "items"]
        })
    }
}

/// Data of `details` (F-131).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Details {
    /// Heading; may be empty.
    pub summary: String,
    /// Markdown with allowed inline HTML.
    pub text: String,
}

/// Data of `choice` (F-132).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// Question; may be empty.
    pub prompt: String,
    /// Options, at least one.
    pub options: Vec<ChoiceOption>,
}

/// One option of a choice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChoiceOption {
    /// Unique in its choice.
    pub id: String,
    /// Label of the option.
    pub text: String,
}

/// Data of `ui_component` (F-133).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UiComponent {
    /// Name of the view, `namespace.component`.
    pub view: String,
    /// Properties of the component.
    pub props: Value,
    /// Text for clients that cannot draw the view; absent if the model gave none and the client can.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fallback_text: Option<String>,
}

/// Data of `media` (F-134).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Media {
    /// `image`, `audio` or `video`.
    #[serde(rename = "type")]
    pub kind: String,
    /// A relative path, or an address with `https:` or `asset:`.
    pub src: String,
    /// Alternative text; may be empty.
    pub alt: String,
}

/// Data of `element`: an element of the caller's own structure that is no reply tag of Filament (F-200).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwnElement {
    /// Tag name in the structure.
    pub name: String,
    /// Attributes of the tag.
    pub attributes: std::collections::BTreeMap<String, String>,
    /// Text of the element; empty for a JSON body.
    pub text: String,
    /// Value of a JSON body.
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "deserialize_present")]
    pub value: Option<Value>,
}

/// Data of `exit_decision`: decision whether a dialogue action is over (S-061, S-070 to S-083).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ExitDecision {
    /// True if the action ends.
    pub should_exit: bool,
    /// Reason, as text for people.
    pub reason: String,
    /// Rule that decided.
    pub decision_source: DecisionSource,
    /// Names of the conditions that are not met: `should_exit` and the criteria of understanding.
    /// Empty if all are.
    pub unmet: Vec<Cow<'static, str>>,
    /// Round just answered, from 1.
    pub round: u32,
    /// Rounds after which the action ends in any case.
    pub max_rounds: u32,
    /// Assessment the decision rests on, with defaults for missing values (S-055).
    pub assessment: Value,
}

/// Rule behind an exit decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DecisionSource {
    /// The last round was answered (S-070).
    MaxRounds,
    /// The user has understood (S-071, S-072).
    ExitCriteria,
    /// Neither applies: the model's suggestion is used (S-073).
    LlmSuggestion,
}
