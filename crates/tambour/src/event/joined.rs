//! Events of a whole reply in little memory.

use super::{Event, Sink, push_joined};
use crate::finding::Finding;

/// Keeps everything, and joins the pieces of one text while they come: there may be as many of them as bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Joined {
    /// Events in order, neighbouring deltas joined.
    pub events: Vec<Event<'static>>,
    /// Findings in order.
    pub findings: Vec<Finding>,
}

impl Sink for Joined {
    fn event(&mut self, event: Event<'_>) {
        push_joined(&mut self.events, &event);
    }

    fn finding(&mut self, finding: Finding) {
        self.findings.push(finding);
    }
}
