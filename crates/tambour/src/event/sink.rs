//! Receivers of events and findings: sinks that store them, and the appraisal of a whole reply.

use super::{AsideKind, Event, Extension};
use crate::finding::{Finding, Severity};

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
/// are never joined, since each is complete.
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

/// Sink that stores everything and joins adjacent deltas of one text as they arrive, since there may be one
/// delta per byte.
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

/// Usefulness of a reply to a user who waits for an answer, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ReplyWorth {
    /// No answer: the reply ended with an error, or it is empty or repeats placeholders or an example, so
    /// that the fallback text replaces it.
    Useless,
    /// Text that answers, but in a format other than the requested one, or with a fault that could not be
    /// repaired.
    Text,
    /// The answer in the requested format, or tool calls.
    Usable,
}

/// Rates one reply from its events and findings.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReplyAppraisal {
    /// True if the reply has tool calls and did not end with an error.
    has_calls: bool,
    /// True if the answer is the fallback text, or the reply ended with an error.
    is_replaced: bool,
    /// True if the reply was not read in the requested format, or has a finding of severity error.
    has_faults: bool,
}

impl ReplyAppraisal {
    /// Observes the next event of the reply.
    pub fn observe_event(&mut self, event: &Event<'_>) {
        match event {
            Event::Extension(extension) => self.has_calls |= matches!(**extension, Extension::ToolCall(_)),
            Event::Completed(completed) => {
                self.is_replaced = completed.metadata.fallback_reason.is_some();
                self.has_faults |= completed.metadata.unused_reason.is_some();
            }
            Event::Error(_) => (self.is_replaced, self.has_calls) = (true, false),
            _ => {}
        }
    }

    /// Observes the next finding of the reply.
    pub fn observe_finding(&mut self, finding: &Finding) {
        self.has_faults |= finding.severity == Severity::Error;
    }

    /// Worth of the reply so far.
    #[must_use]
    pub fn worth(&self) -> ReplyWorth {
        match self {
            // A reply with tool calls needs no text.
            ReplyAppraisal { is_replaced: true, has_calls: false, .. } => ReplyWorth::Useless,
            ReplyAppraisal { has_faults: true, .. } => ReplyWorth::Text,
            _ => ReplyWorth::Usable,
        }
    }
}
