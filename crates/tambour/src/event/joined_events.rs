//! Sink that stores the events of a whole reply compactly.

use super::{Event, Sink, push_joined};
use crate::finding::Finding;

/// Sink that stores everything and joins deltas of one text as they arrive; there may be one per byte.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JoinedEvents {
    /// Events in order, adjacent deltas joined.
    pub events: Vec<Event<'static>>,
    /// Findings in order.
    pub findings: Vec<Finding>,
}

impl Sink for JoinedEvents {
    fn event(&mut self, event: Event<'_>) {
        push_joined(&mut self.events, &event);
    }

    fn finding(&mut self, finding: Finding) {
        self.findings.push(finding);
    }
}
