//! What a reply came to.

use crate::event::{Event, Extension, Failure, Metadata, ToolCall};
use crate::exit::Answer;
use crate::state::Applied;

/// Notices that are kept of one message.
const NOTICES: usize = 64;

/// What a reply came to: a fold of what was sent, and of the answer that decisions rest on.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Outcome {
    /// As `completed` has it; before that what is known of it: notices and the exit decision.
    pub metadata: Metadata,
    /// Calls of the reply, in order.
    pub calls: Vec<ToolCall>,
    /// For each call that came beside the reply its place in `calls`, or why it does not act.
    pub beside: Vec<std::result::Result<usize, String>>,
    /// The answer of a dialogue round, with the assessment and its reasoning.
    pub answer: Option<Answer>,
    /// Updates of the state, as they were applied; only where one is attached.
    pub applied: Vec<Applied>,
    /// Why the stream ended with `error`.
    pub failure: Option<Failure>,
}

impl Outcome {
    /// What stays of the message when another reply goes on with it.
    pub(super) fn go_on(&mut self, before: &Outcome) {
        self.metadata.notices.clone_from(&before.metadata.notices);
    }

    /// Something was sent.
    pub(super) fn observe(&mut self, event: &Event<'_>) {
        match event {
            Event::Completed(completed) => self.metadata.clone_from(&completed.metadata),
            Event::Error(failure) => self.failure = Some(failure.clone()),
            Event::Extension(extension) => match &**extension {
                Extension::ToolCall(_) | Extension::ExitDecision(_) | Extension::Notice(_) => {
                    self.keep(Extension::clone(extension));
                }
                _ => {}
            },
            _ => {}
        }
    }

    /// What stands beside the contract and nobody else wants.
    pub(super) fn keep(&mut self, extension: Extension) {
        match extension {
            Extension::ToolCall(call) => self.calls.push(call),
            Extension::ExitDecision(decision) => self.metadata.exit_decision = Some(decision),
            Extension::Notice(notice) if self.metadata.notices.len() < NOTICES => {
                self.metadata.notices.push(notice);
            }
            _ => {}
        }
    }
}
