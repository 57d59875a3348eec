//! Actions: nothing acts that was thought, quoted, guessed, cut, doubled or unregistered.
//!
//! Replies hold blocks that act, each with marker words of its own, in zones that are known when the reply is made: plain ones
//! may act, those in reasoning, in code, in a quotation and the like must not, nor those whose own text is at fault. The reply
//! is damaged and perhaps cut; `Verdict` holds every action among the events against where its words stood. It knows nothing of
//! how a dialect reads: only what was put where, what of it is still intact, and what stands in the reply literally.
//!
//! A new dialect adds its replies to the table in `replies`.

mod action;
mod blocks;
mod literal;
mod replies;
mod trial;
mod verdict;

pub use action::{Action, ActionKind, actions};
pub use blocks::FORMS;
pub use replies::{Block, BlockCondition, Reply, zones};
pub use trial::{ActionReading, ActionTrial, TrialOutcome, make_action_trial, repair};
pub use verdict::{Violation, ViolationKind};
