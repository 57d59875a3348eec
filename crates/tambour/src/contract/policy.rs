//! The policy stage: what happens to intents before they are put in order, so that nothing can make a sequenced
//! stream invalid again.

use std::borrow::Cow;

use crate::dialect::{Intent, Written};
use crate::finding::Report;
use crate::options::Options;
use crate::span::Place;

/// Queries, privacy and counts of one reply.
pub struct Policy {
    phases: usize,
    limit: usize,
}

impl Policy {
    /// A policy with these options.
    #[must_use]
    pub fn new(options: &Options) -> Policy {
        Policy { phases: 0, limit: options.limits.phases }
    }

    /// A phase begins; past the limit its title is text.
    pub fn phase<'a>(&mut self, title: Cow<'a, str>, _report: &mut dyn FnMut(Report)) -> Intent<'a> {
        self.phases += 1;
        Intent::Phase(title)
    }

    /// Queries as the model wrote them; the cleaned ones, or `None` when there are none to use.
    pub fn queries(
        &mut self,
        written: Written<'_>,
        _place: Place,
        _end: usize,
        _report: &mut dyn FnMut(Report),
    ) -> Option<Vec<String>> {
        match written {
            Written::Text(text) => serde_json::from_str(text).ok(),
            Written::Value(value) => serde_json::from_value(value.clone()).ok(),
        }
    }
}
