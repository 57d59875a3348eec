//! Structured replies of language models as one typed, repaired, contract-checked event stream.
//!
//! A reply goes in as it arrives, cut into chunks anywhere; events come out while the model is still writing,
//! in one grammar whatever dialect the model wrote. Faults are repaired and reported as a [`Finding`];
//! anything that acts (tool calls, state operations) waits until it is complete and valid. Text is emitted as
//! soon as its role is known. In this example closing tags are missing, so the role of the answer is known
//! only at its end.
//!
//! ```
//! use tambour::{InputEnd, Event, Options, Pipeline};
//!
//! let mut options = Options::default();
//! options.set("text_language", "en")?;
//!
//! let mut answer = String::new();
//! let mut sink = |event: Event<'_>| {
//!     if let Event::FinalDelta { text } = event {
//!         answer += &text;
//!     }
//! };
//! let mut pipeline = Pipeline::new("thinkingml", &options)?;
//! // The model forgot to close its phase and its thinking.
//! for chunk in ["<thinking><phase id=\"1\"><title>Sum</title>2 + 2", "<final>It is", " 4.</final>"] {
//!     pipeline.push(chunk.as_bytes(), &mut sink);
//! }
//! pipeline.finish(&InputEnd::stop(), &mut sink);
//!
//! assert!(pipeline.outcome().metadata.repairs > 0);
//! assert_eq!(answer, "It is 4.");
//! # Ok::<(), tambour::Error>(())
//! ```
//!
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
//! * **Options**, [`settings::all_settings`]: every option by its public name, with default and unit.
//! * [`Pipeline`] reads one reply; [`pipeline::ReplyOutcome`] is its result. [`verdict::Contract`] checks a
//!   reply against its rules, [`encode`] writes events as JSON Lines or SSE, [`contract::StreamChecker`]
//!   checks a stream of events.

pub mod catalogue;
pub mod contract;
pub mod dialect;
pub mod encode;
pub mod error;
pub mod event;
pub mod exit;
pub mod finding;
pub mod html;
pub mod limits;
pub mod options;
pub mod pipeline;
pub mod privacy;
pub mod protocol;
pub mod repair;
pub mod settings;
pub mod span;
pub mod state;
pub mod structure;
pub mod tool;
pub mod verdict;

// Internals: public only for this project's own tests and server; they may change at any time.
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
#[doc(hidden)]
pub mod yaml;

pub use error::{Error, Result};
pub use event::{Event, Sink};
pub use finding::{Finding, Profile, Severity};
pub use options::Options;
pub use pipeline::{InputEnd, Pipeline};
