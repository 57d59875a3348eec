//! Prompts for language models, and the dialogues that scripts describe: everything that is sent to a model, on top of
//! [`tambour`], which reads the replies.
//!
//! ```
//! use serde_json::json;
//! use tambour_prompt::jinja::{Assembly, Engine, PromptContext, UndefinedMode};
//!
//! let engine = Engine::new(UndefinedMode::Lenient);
//! let context = PromptContext::from_json(&json!({"hero": "Ada"}))?;
//! let text = Assembly::new(&engine, context, 1).render("greeting", "Hello, {{ hero }}!")?;
//! assert_eq!(text, "Hello, Ada!");
//! # Ok::<(), tambour::Error>(())
//! ```
//!
//! * **Templates**: [`template`] has two layers, `{name}` and `{%name%}`; [`jinja`] runs Jinja within a
//!   budget; [`macros`] translates SillyTavern's macros to Jinja.
//! * **Files of other programs**: [`card`] imports characters, lorebooks and presets; [`lore`] activates
//!   world info.
//! * **Prompts of blocks**: [`skein`].
//! * **Dialogues**: [`script`] loads them from YAML, [`dialogue`] runs them.
//! * **Rules**: [`catalogue`] lists those of this crate and of [`tambour`].
//! * **Shared parts**: [`name`] (tag names), [`print`] (values as text), [`role`] (roles of messages),
//!   [`tokens`] (an estimate).
//!
//! A value that is put into a prompt is never interpreted again.

pub mod card;
pub mod catalogue;
pub mod dialogue;
pub mod jinja;
pub mod lore;
pub mod macros;
mod name;
mod print;
#[doc(hidden)]
pub mod role;
pub mod script;
pub mod skein;
pub mod template;
pub mod tokens;
