//! Where events and findings go.

use super::{AsideKind, Event};
use crate::finding::Finding;

/// Receives what a reader of a reply has to say, in order.
pub trait Sink {
    /// The next event; its text lives until the call returns.
    fn event(&mut self, event: Event<'_>);

    /// The next finding.
    fn finding(&mut self, finding: Finding);
}

/// Keeps everything; the simplest sink.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Collected {
    /// Events in order.
    pub events: Vec<Event<'static>>,
    /// Findings in order.
    pub findings: Vec<Finding>,
}

impl Sink for Collected {
    fn event(&mut self, event: Event<'_>) {
        self.events.push(event.into_owned());
    }

    fn finding(&mut self, finding: Finding) {
        self.findings.push(finding);
    }
}

impl Collected {
    /// The events with neighbouring deltas of one section (and pieces of thoughts) joined: the form in which two readings of the same
    /// reply are equal however it was cut (J-038).
    #[must_use]
    pub fn joined(&self) -> Vec<Event<'static>> {
        let mut out: Vec<Event<'static>> = Vec::new();
        for event in &self.events {
            match (out.last_mut(), event) {
                (Some(Event::FinalDelta { text: before }), Event::FinalDelta { text })
                | (Some(Event::DraftDelta { text: before }), Event::DraftDelta { text }) => {
                    before.to_mut().push_str(text);
                }
                (Some(Event::PhaseDelta { id: a, text: before }), Event::PhaseDelta { id: b, text })
                    if a == b =>
                {
                    before.to_mut().push_str(text);
                }
                // Thoughts stream; comments come whole.
                (
                    Some(Event::Aside { kind: AsideKind::Thought, text: before }),
                    Event::Aside { kind: AsideKind::Thought, text },
                ) => before.to_mut().push_str(text),
                _ => out.push(event.clone()),
            }
        }
        out
    }
}
