//! Rating of a reply's usefulness: the server and dialogues re-ask unless it is usable, and keep the best
//! attempt.

use super::{Event, Extension};
use crate::finding::{Finding, Severity};

/// Usefulness of a reply to a user who waits for an answer, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ReplyWorth {
    /// No answer: it failed, is empty, or repeats placeholders or an example; the fallback text replaces it.
    Useless,
    /// Text that answers, but in another format than requested or with a fault that could not be repaired.
    Text,
    /// The answer in the requested format, or calls.
    Usable,
}

/// Rates one reply from its events and findings.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReplyAppraisal {
    has_calls: bool,
    is_replaced: bool,
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
