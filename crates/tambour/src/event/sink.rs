//! Receivers of events and findings.

use super::{AsideKind, Event};
use crate::finding::Finding;

/// Receives the events and findings of a reply, in order. A closure over events is a sink that ignores
/// findings.
pub trait Sink {
    /// Receives the next event; its text is borrowed for the call.
    fn event(&mut self, event: Event<'_>);

    /// Receives the next finding.
    fn finding(&mut self, finding: Finding) {
        let _ = finding;
    }
}

impl<F: FnMut(Event<'_>)> Sink for F {
    fn event(&mut self, event: Event<'_>) {
        self(event);
    }
}

/// Simplest sink: stores everything.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct EventCollector {
    /// Events in order.
    pub events: Vec<Event<'static>>,
    /// Findings in order.
    pub findings: Vec<Finding>,
}

impl Sink for EventCollector {
    fn event(&mut self, event: Event<'_>) {
        self.events.push(event.into_owned());
    }

    fn finding(&mut self, finding: Finding) {
        self.findings.push(finding);
    }
}

impl EventCollector {
    /// Events with adjacent deltas of one text joined: two readings of the same reply are equal in this form,
    /// whatever its chunks (J-038).
    #[must_use]
    pub fn join_deltas(&self) -> Vec<Event<'static>> {
        let mut out = Vec::new();
        self.events.iter().for_each(|event| push_joined(&mut out, event));
        out
    }
}

/// Appends an event to a list; a delta of the same text is joined to the last event.
pub fn push_joined(events: &mut Vec<Event<'static>>, event: &Event<'_>) {
    if !events.last_mut().is_some_and(|last| join_delta(last, event)) {
        events.push(event.clone().into_owned());
    }
}

/// Joins a delta to the event before it if both belong to one text: answer, phase, draft or thought. Comments
/// are complete events of their own.
fn join_delta(last: &mut Event<'static>, event: &Event<'_>) -> bool {
    let (before, text) = match (last, event) {
        (Event::FinalDelta { text: before }, Event::FinalDelta { text })
        | (Event::DraftDelta { text: before }, Event::DraftDelta { text })
        | (
            Event::Aside { kind: AsideKind::Thought, text: before },
            Event::Aside { kind: AsideKind::Thought, text },
        ) => (before, text),
        (Event::PhaseDelta { id: a, text: before }, Event::PhaseDelta { id: b, text }) if a == b => {
            (before, text)
        }
        _ => return false,
    };
    before.to_mut().push_str(text);
    true
}
