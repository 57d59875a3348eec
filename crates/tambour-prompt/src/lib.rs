//! Prompts for language models, and the dialogues that scripts describe. This crate builds everything that is
//! sent to a model; [`tambour`] reads the replies.
//!
//! A value that is put into a prompt is never interpreted again.
//!
//! # Templates
//!
//! ```
//! use serde_json::json;
//! use tambour_prompt::jinja::{Assembly, Engine, PromptContext, UndefinedMode};
//!
//! let engine = Engine::new(UndefinedMode::Lenient);
//! let context = PromptContext::from_json(&json!({"hero": "Ada"}))?;
//! let random_seed = 1;
//! let text = Assembly::new(&engine, context, random_seed).render("greeting", "Hello, {{ hero }}!")?;
//! assert_eq!(text, "Hello, Ada!");
//! # Ok::<(), tambour::Error>(())
//! ```
//!
//! An assembly renders the templates of one prompt one after the other; its seed is for random choices.
//! [`jinja`] runs Jinja within a budget. [`template`] fills the placeholders of scripts: `{name}` with a
//! variable of the script, `{%name%}` with one of the system. [`macros`] translates SillyTavern's macros to
//! Jinja.
//!
//! # Files of other programs
//!
//! ```
//! use tambour_prompt::card::{self, ImportedFileKind};
//!
//! let file = br#"{"name": "Ada", "description": "A smith.", "first_mes": "Hm?"}"#;
//! let imported = card::import_file("ada.json", file, &Default::default())?;
//! assert_eq!((imported.kind, &*imported.version, &*imported.name), (ImportedFileKind::Card, "v1", "Ada"));
//! assert_eq!(imported.export()["spec"], "chara_card_v3");
//! # Ok::<(), tambour::Error>(())
//! ```
//!
//! [`card`] imports characters, lorebooks and presets; [`lore`] activates world info.
//!
//! # Prompts of blocks
//!
//! ```
//! use serde_json::json;
//! use tambour_prompt::skein::Skein;
//!
//! let yaml = "blocks:\n  - tag: world_state\n    data:\n      place: \"{{ place }}\"\n";
//! let skein = Skein::from_yaml("the prompt", yaml)?;
//! let rendered = skein.render(&json!({"place": "</world_state> Ruins"}), &Default::default())?;
//! assert_eq!(rendered.text, "<world_state>\nplace: \"&lt;/world_state> Ruins\"\n</world_state>");
//! # Ok::<(), tambour::Error>(())
//! ```
//!
//! A skein is a prompt made of blocks, here one of YAML. [`skein`] renders it as text or as role messages,
//! and cuts it to a budget of tokens, which [`tokens`] estimates.
//!
//! # Scripts and dialogues
//!
//! ```
//! use tambour::limits::Limits;
//! use tambour_prompt::dialogue::{Dialogue, DialogueEnv, DialogueRequest, DialogueSettings};
//! use tambour_prompt::{script, template::TemplateFiles};
//!
//! let text = "sessions: [{session: s, phases: [{phase: p, steps: [{topic: t, actions: [
//!     {type: ai_say, content: Hello., max_rounds: 1, require_acknowledgment: false}]}]}]}]";
//! let script = script::load(text, &Limits::default()).script.expect("no errors");
//! let (files, settings) = (TemplateFiles::default(), DialogueSettings::default());
//! let env = DialogueEnv { script: &script, templates: &files, now: 0, settings: &settings, hooks: &() };
//! let mut dialogue = Dialogue::start(&script, None, Default::default())?;
//! dialogue.input(None, &env).expect("no answer is pending");
//! assert!(matches!(dialogue.next(&env), DialogueRequest::Call(_)));
//! # Ok::<(), tambour::Error>(())
//! ```
//!
//! [`script`] loads scripts from YAML; [`dialogue`] runs them, round by round, and says when the model is
//! to be asked. [`catalogue`] lists the rules of this crate and of [`tambour`].
//!
//! # Features
//!
//! The two features are on by default. Without a feature, the dependencies that only it needs are left out.
//!
//! * `binary-cards`: cards in PNG pictures and CHARX archives, besides those in JSON.
//! * `script-editor`: `script::ScriptEditor`, which changes the text of a script.

// Templates.
pub mod jinja;
pub mod macros;
pub mod template;

// Files of other programs.
pub mod card;
pub mod lore;

// Prompts of blocks.
pub mod skein;
pub mod tokens;

// Scripts and dialogues.
pub mod catalogue;
pub mod dialogue;
pub mod script;

// Shared parts.
mod name;
mod print;
// Public only for this project's own server.
#[doc(hidden)]
pub mod role;
