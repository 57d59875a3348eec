//! Checker of outgoing event streams against the contract of events. It also finds the fenced examples of
//! documents (feature `markdown`).
//!
//! The [`StreamChecker`] is written from the grammar of the specification, independently of the sequencer, so
//! that each can test the other. Events are put in order by the sequencer, not here.

mod check;
#[cfg(feature = "markdown")]
mod examples;
mod fields;
mod order;
mod rules;
mod transcript;

pub use check::{
    StreamCheckOptions, StreamChecker, TranscriptForm, check_events, check_transcript, check_values,
};
#[cfg(feature = "markdown")]
#[doc(hidden)]
pub use examples::{FencedExample, find_examples};
#[doc(hidden)]
pub use fields::check_queries;
pub(crate) use rules::RULES;
