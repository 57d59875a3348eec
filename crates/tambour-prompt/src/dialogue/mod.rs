//! A dialogue: one execution of a session of a script, as a state machine without I/O (S-060 to S-067).
//!
//! [`Dialogue`] is plain data: it can be saved and restored with serde at any point. [`Dialogue::next`]
//! returns a request; the caller carries it out and passes the result back:
//!
//! | request | task of the caller |
//! | --- | --- |
//! | [`DialogueRequest::Call`] | calls the model, reads its reply with [`ModelCall::reader`], and passes the result to [`Dialogue::reply`] or [`Dialogue::fail`] |
//! | [`DialogueRequest::Event`] | passes the event to the client, and calls [`Dialogue::next`] again |
//! | [`DialogueRequest::User`] | calls [`Dialogue::input`] once the user has written something, or lets the model continue |
//! | [`DialogueRequest::Answer`] | calls [`Dialogue::answer`] when the client has answered |
//! | [`DialogueRequest::Finished`] | does nothing: the dialogue has ended |
//!
//! After each input, [`Dialogue::turn`] returns its outcome.
//!
//! ```
//! use tambour_prompt::dialogue::{Dialogue, DialogueEnv, DialogueRequest, DialogueSettings};
//! use tambour::event::EventCollector;
//! use tambour::limits::Limits;
//! use tambour_prompt::template::TemplateFiles;
//! use tambour::{InputEnd, Options};
//! use tambour_prompt::script;
//!
//! let text = "sessions: [{session: s, phases: [{phase: p, steps: [{topic: t, actions: [
//!     {type: ai_say, content: Hello., max_rounds: 1, require_acknowledgment: false}]}]}]}]";
//! let script = script::load(text, &Limits::default()).script.expect("no errors");
//! let (files, settings) = (TemplateFiles::default(), DialogueSettings::default());
//! let env = DialogueEnv { script: &script, templates: &files, now: 0, settings: &settings, hooks: &() };
//!
//! let mut dialogue = Dialogue::start(&script, None, Default::default())?;
//! // An input without text lets the model speak first.
//! dialogue.input(None, &env).expect("no answer is pending");
//! let DialogueRequest::Call(call) = dialogue.next(&env) else { panic!("a model is asked first") };
//! let mut events = EventCollector::default();
//! let mut reader = call.reader(&Options::default());
//! // The key of the message is the role that the model plays; 咨询师 (counsellor) by default.
//! reader.push(r#"{"response": {"咨询师": "Hi!"}}"#, &mut events);
//! let reply = reader.finish(&InputEnd::stop(), &mut events).expect("it did not fail");
//! dialogue.reply(&call, &reply, &env);
//! assert_eq!(dialogue.next(&env), DialogueRequest::Finished);
//! assert_eq!(dialogue.turn(&script).ai_message.as_deref(), Some("Hi!"));
//! # Ok::<(), tambour::Error>(())
//! ```
//!
//! Not here: calling models, time, storage.

mod answers;
mod call;
pub mod check;
mod condition;
mod coverage;
mod fit;
mod hooks;
mod machine;
mod messages;
mod reader;
pub(crate) mod rules;
pub mod script_test;
mod state;
mod turn;
mod types;

#[doc(hidden)]
pub use answers::{AskAnswer, read_ask, read_think};
pub use call::{CallMessage, ModelCall, ReplyKind};
pub use coverage::{ActionCoverage, Coverage, CoveredCall, ExitCount};
pub use hooks::{HookContext, HookProposal, Hooks};
pub use machine::{DialogueEnv, DialogueRequest, DialogueSettings, InputRefusal, TemplateSource};
pub use reader::{ModelReply, ReplyContent, ReplyReader};
pub use state::{Dialogue, DialogueStatus, HistoryMessage};
pub use turn::{DialoguePosition, DialogueTurn, ReplyEffect, TurnMetadata};
