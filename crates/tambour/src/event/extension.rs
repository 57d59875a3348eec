//! Data of the extension events.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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
    /// `state_update`: operations on the state of the conversation.
    StateUpdate(StateUpdate) = "state_update",
    /// `status_bar`: what a status bar shows.
    StatusBar(StatusBar) = "status_bar",
    /// `details`: text that is folded.
    Details(Details) = "details",
    /// `choice`: a choice for the user.
    Choice(Choice) = "choice",
    /// `ui_component`: a component of the client.
    UiComponent(UiComponent) = "ui_component",
    /// `media`: an image, audio or video, by reference.
    Media(Media) = "media",
    /// `element`: a tag of the caller's own.
    Element(OwnElement) = "element",
    /// `exit_decision`: whether a dialogue action is over (S-061).
    ExitDecision(ExitDecision) = "exit_decision",
    /// `notice`: what the user should be told without stopping.
    Notice(Notice) = "notice",
    /// `form`: the client shows a form and answers with what was filled in.
    Form(Form) = "form",
    /// `picture`: the client shows a picture and answers when it was seen.
    Picture(Picture) = "picture",
    /// `skill`: the client runs something of its own and answers with what came of it.
    Skill(Skill) = "skill",
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

/// What the client of a dialogue is asked to do. The dialogue waits for its answer, which names the call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// Unique in its dialogue: `call_1`, `call_2`, ...
    pub call_id: String,
    /// The fields of the action, as its author wrote them.
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

/// Data of `state_update` (F-110).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateUpdate {
    /// Why, in the model's words; empty when it gave no reason.
    pub analysis: String,
    /// The operations in order, those that can never be carried out among them.
    pub operations: Vec<StateOperation>,
    /// What came of each; only where a state is attached.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub results: Option<Vec<StateResult>>,
}

/// One operation on the state (F-111).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateOperation {
    /// Its name in upper case; as it was written if there is none such.
    pub op: String,
    /// Its path as it was written.
    pub path: String,
    /// Its value, if it has one.
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "given")]
    pub value: Option<Value>,
    /// Why nobody carries it out, whatever the state is: a stable word. Its value is left out then.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub refused: Option<String>,
}

/// What came of one operation (F-113).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateResult {
    /// Its index in the block.
    pub index: usize,
    /// Whether it was carried out.
    pub ok: bool,
    /// The value that was there.
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "given")]
    pub before: Option<Value>,
    /// The value that is there now.
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "given")]
    pub after: Option<Value>,
    /// Why it was refused: a stable word.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

/// A field that is given, also if it is null.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Data of `status_bar` (F-130).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusBar {
    /// What it shows, in order.
    pub items: Vec<StatusItem>,
}

/// One item of a status bar. Deeper ones than the schema describes are of the same form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusItem {
    /// Its name as it was written; empty for text outside of tags.
    pub name: String,
    /// Its own text.
    pub text: String,
    /// Those inside of it.
    pub items: Vec<StatusItem>,
}

impl JsonSchema for StatusItem {
    fn schema_name() -> Cow<'static, str> {
        "StatusItem".into()
    }

    fn inline_schema() -> bool {
        true
    }

    // Schemas are written without references: items of items are not described once more.
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
    /// Its heading; may be empty.
    pub summary: String,
    /// Markdown with inline HTML of the list.
    pub text: String,
}

/// Data of `choice` (F-132).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// What is asked; may be empty.
    pub prompt: String,
    /// What can be chosen, at least one.
    pub options: Vec<ChoiceOption>,
}

/// One option of a choice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChoiceOption {
    /// Unique in its choice.
    pub id: String,
    /// Its text.
    pub text: String,
}

/// Data of `ui_component` (F-133).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UiComponent {
    /// Its name, `namespace.component`.
    pub view: String,
    /// What it is made with.
    pub props: Value,
    /// What is shown by who cannot draw it; absent when the model gave none and the client draws the view.
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
    /// What it shows; may be empty.
    pub alt: String,
}

/// Data of `element`: a tag of a structure of the caller's own, which is no reply tag of Filament (F-200).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwnElement {
    /// Name of the tag in the structure.
    pub name: String,
    /// Its attributes.
    pub attributes: std::collections::BTreeMap<String, String>,
    /// Its text; of a JSON body none.
    pub text: String,
    /// The value of a JSON body.
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "given")]
    pub value: Option<Value>,
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
