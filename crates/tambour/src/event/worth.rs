//! Rating of a reply's usefulness: the server and dialogues re-ask unless it is usable, and keep the best
//! attempt.

use super::{Event, Extension};
use crate::finding::{Finding, Severity};

/// Usefulness of a reply to a user who waits for an answer, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Worth {
    /// No answer: it failed, is empty, or repeats placeholders or an example; the fallback text replaces it.
    Nothing,
    /// Text that answers, but in another format than requested or with a fault that could not be repaired.
    Text,
    /// The answer in the requested format, or calls.
    Usable,
}

/// Rates one reply from its events and findings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Appraisal {
    called: bool,
    replaced: bool,
    broken: bool,
}

impl Appraisal {
    /// Observes the next event of the reply.
    pub fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Extension(extension) => self.called |= matches!(**extension, Extension::ToolCall(_)),
            Event::Completed(completed) => {
                self.replaced = completed.metadata.fallback_reason.is_some();
                self.broken |= completed.metadata.unused_reason.is_some();
            }
            Event::Error(_) => (self.replaced, self.called) = (true, false),
            _ => {}
        }
    }

    /// Observes the next finding of the reply.
    pub fn finding(&mut self, finding: &Finding) {
        self.broken |= finding.severity == Severity::Error;
    }

    /// Worth of the reply so far.
    #[must_use]
    pub fn worth(&self) -> Worth {
        match self {
            // A reply with tool calls needs no text.
            Appraisal { replaced: true, called: false, .. } => Worth::Nothing,
            Appraisal { broken: true, .. } => Worth::Text,
            _ => Worth::Usable,
        }
    }
}
