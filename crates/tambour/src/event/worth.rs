//! The one verdict on how useful a reply is: the server and dialogues ask again for what is not, and keep the best that came.

use super::{Event, Extension};
use crate::finding::{Finding, Severity};

/// Use of a reply to somebody who waits for an answer, from the least to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Worth {
    /// No answer: it has failed, is empty, or repeats placeholders or an example; the fallback text stands in for it.
    Nothing,
    /// Text that answers, in a form that was not asked for, or with a fault that could not be repaired.
    Text,
    /// The answer as it was asked for, or calls.
    Usable,
}

/// Reads the events and findings of one reply, and says what it is worth.
#[derive(Clone, Copy, Debug, Default)]
pub struct Appraisal {
    called: bool,
    replaced: bool,
    broken: bool,
}

impl Appraisal {
    /// The next event of the reply.
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

    /// The next finding of the reply.
    pub fn finding(&mut self, finding: &Finding) {
        self.broken |= finding.severity == Severity::Error;
    }

    /// Worth of the reply, as far as it is known.
    #[must_use]
    pub fn worth(&self) -> Worth {
        match self {
            // Who calls tools need not say anything.
            Appraisal { replaced: true, called: false, .. } => Worth::Nothing,
            Appraisal { broken: true, .. } => Worth::Text,
            _ => Worth::Usable,
        }
    }
}
