//! Structured replies of language models as one typed, repaired, contract-checked event stream.
//!
//! A reply goes in as it arrives, cut into chunks anywhere; events come out while the model is still writing,
//! in one grammar (the contract of events), whatever dialect the model wrote. Faults are repaired and
//! reported as a [`Finding`]; anything that acts (tool calls, state operations) waits until it is complete
//! and valid. Text is emitted as soon as its role is known.
//!
//! # Reading replies
//!
//! In this example closing tags are missing, so the role of the answer is known only at its end.
//!
//! ```
//! use tambour::{Event, InputEnd, Options, Pipeline};
//!
//! let mut answer = String::new();
//! let mut sink = |event: Event<'_>| match event {
//!     Event::FinalDelta { text } => answer += &text,
//!     _ => {}
//! };
//! let mut pipeline = Pipeline::new("thinkingml", &Options::default())?;
//! // The model forgot to close its phase and its thinking.
//! for chunk in ["<thinking><phase id=\"1\"><title>Sum</title>2 + 2", "<final>It is", " 4.</final>"] {
//!     pipeline.push(chunk.as_bytes(), &mut sink);
//! }
//! pipeline.finish(&InputEnd::stop(), &mut sink);
//! assert!(pipeline.outcome().metadata.repairs > 0);
//! assert_eq!(answer, "It is 4.");
//! # Ok::<(), tambour::Error>(())
//! ```
//!
//! * **Pipeline**, [`pipeline`]: [`Pipeline`] reads one reply; [`pipeline::ReplyOutcome`] is its result.
//! * **Dialects**, [`dialect::DIALECTS`]: the formats of replies. `thinkingml` (XML), `jsonseq` (JSON Lines
//!   of events), `aiplan` (a JSON plan with tool calls), `ai_say` (the JSON answer of a dialogue round),
//!   `filament` (tags with JSON, operations on a state), `toolcall` (text with the tool calls of model
//!   families), `json_value` (a value checked against its schema), `plain`, and `auto`, which detects one of
//!   them.
//! * **Events**, [`event::Event`]: `serp_summary`, `thinking_start`, `phase_start`, `phase_delta`,
//!   `thinking_end`, `final_delta`, `serp_queries`, `final_end`, then `completed` or `error`; with
//!   [`Pipeline::with_extensions`] also [`event::Extension`].
//! * **Sinks**, [`Sink`]: a closure receives events; [`event::EventCollector`] stores findings too, and
//!   [`Pipeline::with_findings`] sends findings as events.
//! * **Options**, [`options`]: [`settings::all_settings`] lists every option by its public name, with default
//!   and unit; [`limits`] bounds what is held and built.
//! * **What a model is asked for**: [`tool`] has the tools it may call, [`structure`] the elements of a
//!   reply, [`protocol`] instructions for optional elements, [`exit`] the end of a dialogue action.
//!
//! # Checking and repairing
//!
//! ```
//! use tambour::{Options, Profile, verdict::Contract};
//!
//! let mut options = Options::default();
//! options.profile = Profile::Strict;
//! let verdict = Contract::from_name("thinkingml")?.check(b"<final>\nHi.\n</final>", &options);
//! assert!(!verdict.passed());
//! assert!(verdict.findings.iter().any(|finding| finding.code == "thinking_missing"));
//! # Ok::<(), tambour::Error>(())
//! ```
//!
//! [`verdict::Contract`] checks a reply against the rules of its dialect, [`contract::StreamChecker`] a
//! stream of events. A [`finding`] names its rule, its place ([`span`]) and the repair; [`catalogue`] lists
//! all rules. [`privacy`] detects sensitive data.
//!
//! # State, HTML and JSON
//!
//! ```
//! use serde_json::json;
//! use tambour::html::{HtmlMode, sanitize};
//! use tambour::limits::Limits;
//! use tambour::repair::json::find;
//! use tambour::state::{ApplyOptions, Operation, apply};
//!
//! let found = find("As [1] shows:\n```json\n{'ok': True,}\n```", &Limits::default());
//! assert_eq!(found.value.unwrap().to_string(), r#"{"ok":true}"#);
//! let (text, _) = sanitize("<b onclick=\"x()\">1 < 2</b> <img src=x> `<img>`", HtmlMode::Escape);
//! assert_eq!(text, "<b>1 < 2</b> &lt;img src=x> `<img>`");
//! let mut state = json!({"Mana": {"trust": 5}});
//! let operations = Operation::parse_list(&json!([["ADD", "Mana.trust", 3]]))?;
//! assert!(apply(&mut state, &operations, &ApplyOptions::default())[0].ok);
//! assert_eq!(state.to_string(), r#"{"Mana":{"trust":8}}"#);
//! # Ok::<(), tambour::Error>(())
//! ```
//!
//! [`state`] keeps a JSON tree that replies change, with its history. [`html`] lets harmless markup through.
//! [`repair::json`] reads JSON as models write it, in one piece or as it arrives.
//!
//! # Encoding for clients
//!
//! ```
//! use tambour::{Event, encode::{jsonl, jsonseq, sse::Envelope}};
//!
//! let mut lines = Vec::new();
//! jsonl::write_line(&Event::FinalDelta { text: "a\nb".into() }, &mut lines);
//! assert_eq!(lines, b"{\"event\":\"final_delta\",\"data\":{\"text\":\"a\\nb\"}}\n");
//!
//! let mut frames = Vec::new();
//! jsonseq::write_event(&Event::FinalEnd, 7, &Envelope::new("m1", "r1"), &mut frames);
//! assert!(frames.starts_with(b"id: 7\nevent: final_end\ndata: {"));
//! ```
//!
//! [`encode`] writes events as JSON Lines, as Server-Sent Events, and in the protocols of other clients.
//!
//! # Features
//!
//! Both are on by default; turning one off leaves out a dependency. Only this project's own programs use
//! them: reading replies needs neither.
//!
//! * `markdown`: examples of replies in Markdown documents.
//! * `yaml`: reading and writing of YAML. `tambour-prompt` turns it on.

// Reading replies.
pub mod dialect;
pub mod error;
pub mod event;
pub mod exit;
pub mod grammar;
pub mod limits;
pub mod options;
pub mod pipeline;
pub mod protocol;
pub mod settings;
pub mod structure;
pub mod tool;

// Checking and repairing.
pub mod catalogue;
pub mod contract;
pub mod finding;
pub mod privacy;
pub mod span;
pub mod verdict;

// State, HTML and JSON.
pub mod html;
pub mod repair;
pub mod state;

// Encoding for clients.
pub mod encode;

// Internals: public only for this project's own tests and other crates; they may change at any time.
#[doc(hidden)]
pub mod lex;
#[doc(hidden)]
pub mod policy;
#[doc(hidden)]
pub mod schema;
#[doc(hidden)]
pub mod sequence;
#[doc(hidden)]
pub mod texts;
#[cfg(feature = "yaml")]
#[doc(hidden)]
pub mod yaml;

pub use error::{Error, Result};
pub use event::{Event, Sink};
pub use finding::{Finding, Profile, Severity};
pub use options::Options;
pub use pipeline::{InputEnd, Pipeline};
