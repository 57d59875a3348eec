//! Checker of outgoing event streams against the contract of events. It also finds the fenced examples of
//! documents (feature `markdown`).
//!
//! The [`StreamChecker`] is written from the grammar of the specification, independently of the sequencer, so
//! that each can test the other. Producing the order of events does not belong here.

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

use crate::span::Place;

/// Extent of an event or a line in the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Place of the start.
    pub(crate) place: Place,
    /// Offset of the end.
    pub(crate) end: usize,
}

impl Extent {
    /// Empty extent at `place`.
    pub(crate) fn empty(place: Place) -> Extent {
        Extent { place, end: place.offset }
    }
}
