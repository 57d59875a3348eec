//! Results of functions, as plain data.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use tambour::Finding;
use tambour::event::{ExitDecision, Failure, Metadata, StateOperation, ToolCall};

/// Result of checking a text against a contract.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Verdict {
    /// Name of the contract; in place of `auto`, that of the detected dialect.
    pub contract: String,
    /// True if no finding is an error.
    pub passed: bool,
    /// Findings in the order of the text.
    pub findings: Vec<Finding>,
    /// First error, which decides the verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_error: Option<Finding>,
}

/// A repaired reply.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Repair {
    /// Reply in its canonical form, which passes the strict check.
    pub text: String,
    /// Dialect the reply was read as.
    pub dialect: String,
    /// True if the fallback text replaced the answer.
    pub is_fallback: bool,
    /// Findings on the reply, in order.
    pub findings: Vec<Finding>,
}

/// Result of a reply.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Outcome {
    /// Metadata as in `completed`; before that event, the notices and exit decision so far.
    pub metadata: Metadata,
    /// Calls of the reply, in order.
    pub calls: Vec<ToolCall>,
    /// Updates of an attached state, in order.
    pub updates: Vec<AppliedUpdate>,
    /// Assessment of a dialogue round with the model's reasons, if the reply is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assessment: Option<Value>,
    /// Failure that ended the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// Operations of one block with their results.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AppliedUpdate {
    /// Id of the message.
    pub message: String,
    /// The model's reason for the operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analysis: Option<String>,
    /// The operations in order.
    pub operations: Vec<StateOperation>,
    /// Result of each operation.
    pub results: Vec<OperationResult>,
}

/// Result of one operation on a state.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OperationResult {
    /// Index of the operation in the block.
    pub index: usize,
    /// True if the operation was carried out.
    pub ok: bool,
    /// The previous value; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The new value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// Stable code of the refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Message of the refusal, with the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A value of a state that was added, removed or changed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StateDifference {
    /// Path of the value; empty if the entire state differs.
    pub path: String,
    /// The value before; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The value after; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// A message for a model.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PromptMessage {
    /// Role of the message, such as `system`.
    pub role: String,
    /// Text of the message.
    pub content: String,
}

/// A rendered prompt.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RenderedPrompt {
    /// Complete prompt as text.
    pub text: String,
    /// Complete prompt as messages. The parts without a role form the system message.
    pub messages: Vec<PromptMessage>,
    /// Tokens of the text.
    pub tokens: usize,
    /// True if the prompt is still too long although nothing more can be left out.
    pub is_over_limit: bool,
    /// Parts left out because the prompt was too long, in order of removal.
    pub dropped_parts: Vec<Value>,
    /// Titles of the active world info.
    pub lore_titles: Vec<String>,
    /// Timed effects of world info, for the next turn.
    pub timed_effects: Value,
    /// Effects that templates requested.
    pub effects: Vec<Value>,
    /// Warnings, in lower case.
    pub warnings: Vec<String>,
}

/// Content of an imported file of another program.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ImportedCard {
    /// `card`, `lorebook` or `preset`.
    pub kind: String,
    /// Version of a card (`v1`, `v2`, `v3`), or layout of a lorebook or preset.
    pub version: String,
    /// Name of the character or the book, or the file name without its extension.
    pub name: String,
    /// Character; absent if the file is not a card.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub card: Option<Value>,
    /// Entries of the book, each with the normal form of its text as `normalised`.
    pub entries: Vec<Value>,
    /// Prompt parts of a preset; absent if the file is not a preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<Value>,
    /// Problems found, and content that is kept but not used.
    pub warnings: Vec<String>,
    /// The same content as a Skein in YAML, for `render_prompt`.
    pub skein: String,
    /// The same content as JSON in the V3 form.
    pub v3: Value,
}

/// A text with its macros translated to Jinja.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MigratedText {
    /// The Jinja template.
    pub text: String,
    /// Warnings, in the order of the text.
    pub warnings: Vec<MacroWarning>,
    /// Number of macros translated to Jinja.
    pub translated: usize,
    /// Number of macros left as text.
    pub left: usize,
    /// Number of translated macros by row of the macro table.
    pub rules: BTreeMap<String, usize>,
}

/// A problem with a macro.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MacroWarning {
    /// Stable code, such as `macro_unknown`.
    pub code: String,
    /// Name of the macro, or the word in question.
    pub name: String,
    /// Line in the text, from 1.
    pub line: u32,
    /// Column in Unicode scalar values, from 1.
    pub column: u32,
    /// Description of the problem, in lower case.
    pub message: String,
}

/// A fault of a script.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ScriptProblem {
    /// Path of the field, such as `sessions[0].phases[1]`; empty for the entire script.
    pub path: String,
    /// Rule, place in the YAML text, and message.
    pub finding: Finding,
}

/// Request of a dialogue: call a model, and pass its reply to the dialogue.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ModelCall {
    /// Kind of the reply: `ai_say`, `ai_ask` or `ai_think`.
    pub kind: String,
    /// Messages that make up the prompt.
    pub messages: Vec<PromptMessage>,
    /// Sampling temperature.
    pub temperature: f64,
    /// Token limit of the reply.
    pub max_tokens: u32,
    /// Round that the reply answers, from 1.
    pub round: u32,
    /// Number of the last round; absent for `ai_think`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rounds: Option<u32>,
    /// Number of earlier attempts in this round.
    pub attempt: u32,
    /// Path of the action in the script.
    pub path: String,
    /// Id of the template of the prompt.
    pub template_id: String,
    /// JSON Schema of the reply, if it is one to be constrained by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Warnings from rendering the template.
    pub warnings: Vec<String>,
}

/// Request of a dialogue: wait for the user.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AwaitUser {
    /// True if an input without text brings the next message.
    pub continues: bool,
}

/// Request of a dialogue: wait for the answer of the client.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AwaitAnswer {
    /// Id of the request to be answered.
    pub call_id: String,
}

/// Request of a dialogue: nothing, it has ended.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Finished {}

/// Outcome of one input of a dialogue.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Turn {
    /// True if nothing failed.
    pub success: bool,
    /// True if the action or the dialogue has ended, and nothing failed.
    pub completed: bool,
    /// Message of the model to the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ai_message: Option<String>,
    /// `active`, `awaiting_ack`, `awaiting_answer`, `completed` or `failed`.
    pub status: String,
    /// The current or next action of the script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<Value>,
    /// Data about the action of the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// True if the dialogue continues without a message of the user.
    pub continues: bool,
    /// Failure of the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// Notices for the user.
    pub notices: Vec<tambour::event::Notice>,
    /// Request that the client has to answer, if one is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Value>,
}

/// Effect of one reply of a model on a dialogue.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ReplyEffect {
    /// True if the reply was not accepted and the model is asked again.
    pub asked_again: bool,
    /// Failure of the round, if the reply cannot be used and the model is not asked again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Exit decision of the round, for `ai_say`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_decision: Option<ExitDecision>,
    /// Assessment of the user's understanding, for `ai_say`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assessment: Option<Value>,
    /// Variables that were set.
    pub assigned: Map<String, Value>,
}
