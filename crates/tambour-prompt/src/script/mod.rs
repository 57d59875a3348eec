//! Dialogue scripts: parses YAML to a typed model and reports every fault with its place (S-001 to S-014).
//!
//! ```
//! use tambour::limits::Limits;
//! use tambour_prompt::script::load;
//!
//! let text = "
//! sessions:
//!   - session: 介绍
//!     phases:
//!       - phase: 开场
//!         steps:
//!           - topic: ABC模型
//!             actions:
//!               - type: ai_say
//!                 content: A → B → C
//!                 max_round: 3
//! ";
//! let loaded = load(text, &Limits::default());
//! let script = loaded.script.expect("it can run");
//! assert_eq!(script.sessions[0].phases[0].steps[0].topic, "ABC模型");
//! assert_eq!(loaded.problems[0].path, "sessions[0].phases[0].steps[0].actions[0].max_round");
//! assert!(loaded.problems[0].report.message.contains("`max_rounds`"));
//! ```
//!
//! [`ScriptEditor`] changes fields in the text of a script and preserves everything else (feature
//! `script-editor`).
//!
//! Not here: running scripts, and checking them against templates, which `dialogue` does.

mod action;
mod answer;
#[cfg(feature = "script-editor")]
mod edit;
mod fields;
mod load;
mod model;
mod node;
mod problem;
pub(crate) mod rules;

pub(crate) use answer::parse_date;
pub use answer::{AnswerForm, AnswerKind};
#[cfg(feature = "script-editor")]
pub use edit::{ScriptEditor, edit_script};
pub use load::{LoadedScript, load, load_with_language};
pub use model::{
    AskAction, ClientAction, ClientActionKind, SayAction, Script, ScriptAction, ScriptActionKind,
    ScriptPhase, ScriptSession, ScriptStep, SourceSpot, ThinkAction, VariableDeclaration,
};
pub use problem::ScriptProblem;
