//! Result of a reply: its calls, notices, decisions and state updates.

use crate::event::{Event, Extension, Failure, Metadata, ToolCall};
use crate::exit::RoundAnswer;
use crate::state::AppliedBlock;

/// Maximum number of notices recorded for one message.
const MAX_NOTICES: usize = 64;

/// Result of a reply, collected from the events that were sent and the actions that were applied.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ReplyOutcome {
    /// Metadata as in `completed`; before that event, the notices and exit decision so far.
    pub metadata: Metadata,
    /// Calls of the reply, in order.
    pub calls: Vec<ToolCall>,
    /// For each native call of the upstream, its index in `calls`, or the reason why it does not act.
    pub native_calls: Vec<std::result::Result<usize, String>>,
    /// The answer of a dialogue round, with the assessment and its reasoning.
    pub answer: Option<RoundAnswer>,
    /// State updates that were applied; only with an attached state.
    pub applied_updates: Vec<AppliedBlock>,
    /// Failure that ended the stream with `error`.
    pub failure: Option<Failure>,
}

impl ReplyOutcome {
    /// Takes over the notices of the previous reply of the same message.
    pub(super) fn carry_over(&mut self, previous_outcome: &ReplyOutcome) {
        self.metadata.notices.clone_from(&previous_outcome.metadata.notices);
    }

    /// Records an event that is sent.
    pub(super) fn observe(&mut self, event: &Event<'_>) {
        match event {
            Event::Completed(completed) => self.metadata.clone_from(&completed.metadata),
            Event::Error(failure) => self.failure = Some(failure.clone()),
            Event::Extension(extension) => match &**extension {
                Extension::ToolCall(_) | Extension::ExitDecision(_) | Extension::Notice(_) => {
                    self.record(Extension::clone(extension));
                }
                _ => {}
            },
            _ => {}
        }
    }

    /// Records an extension event, whether or not it is sent.
    pub(super) fn record(&mut self, extension: Extension) {
        match extension {
            Extension::ToolCall(call) => self.calls.push(call),
            Extension::ExitDecision(decision) => self.metadata.exit_decision = Some(decision),
            Extension::Notice(notice) if self.metadata.notices.len() < MAX_NOTICES => {
                self.metadata.notices.push(notice);
            }
            _ => {}
        }
    }
}
