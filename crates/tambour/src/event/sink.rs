//! Where events and findings go.

use super::{AsideKind, Event};
use crate::finding::Finding;

/// Receives what a reader of a reply has to say, in order. A closure over events is one; it hears of no findings.
pub trait Sink {
    /// The next event; its text lives until the call returns.
    fn event(&mut self, event: Event<'_>);

    /// The next finding.
    fn finding(&mut self, finding: Finding) {
        let _ = finding;
    }
}

impl<F: FnMut(Event<'_>)> Sink for F {
    fn event(&mut self, event: Event<'_>) {
        self(event);
    }
}

/// Keeps everything; the simplest sink.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
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
    /// The events with pieces of one text joined: the form in which two readings of the same reply are equal however it was
    /// cut (J-038).
    #[must_use]
    pub fn joined(&self) -> Vec<Event<'static>> {
        let mut out = Vec::new();
        self.events.iter().for_each(|event| push_joined(&mut out, event));
        out
    }
}

/// Adds an event to a list; a piece of the text that the last event began is joined to that.
pub fn push_joined(events: &mut Vec<Event<'static>>, event: &Event<'_>) {
    if !events.last_mut().is_some_and(|last| join(last, event)) {
        events.push(event.clone().into_owned());
    }
}

/// Joins a piece to the one before it, if both are of one text: of the answer, of a phase, of drafts or of thoughts.
/// Comments come whole, each as an event of its own.
fn join(last: &mut Event<'static>, event: &Event<'_>) -> bool {
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
