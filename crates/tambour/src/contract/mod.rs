//! The contract: what an outgoing stream must look like.
//!
//! The [`Checker`] is written from the specification's grammar and knows nothing of the machine that produces
//! streams, so that each can be tested with the other. What does not belong here: the making of an order.

mod check;
mod examples;
mod fields;
mod lines;
mod order;
mod queries;
mod rules;
mod transcript;

pub use check::{CheckOptions, Checker, Form, check_events, check_transcript, check_values};
pub use examples::{Example, examples};
pub use queries::check as check_queries;
pub(crate) use rules::RULES;

use crate::span::Place;

/// Where an event or a line stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Where it starts.
    pub(crate) place: Place,
    /// Offset after its end.
    pub(crate) end: usize,
}

impl Extent {
    /// Nothing, at `place`.
    pub(crate) fn empty(place: Place) -> Extent {
        Extent { place, end: place.offset }
    }
}
