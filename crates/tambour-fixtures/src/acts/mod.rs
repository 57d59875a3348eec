//! Oracle of actions: nothing that was thought, quoted, guessed, cut, doubled or unregistered may act
//! (invariant 6).
//!
//! A random reply has blocks that act, such as tool calls. Each block has marker words, which tell it from
//! the other blocks, and a known zone: its surroundings, or a fault in its text. Blocks in plain text may
//! act; blocks in reasoning, code, quotations and the like must not, and neither may blocks with a fault. The
//! reply is damaged and perhaps cut. `verdict` then compares every action among the events with the places of its
//! marker words in the reply. The oracle knows no dialect. It knows only which block was put where, which parts
//! of each block are still intact, and which values the reply contains literally.
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
pub use replies::{Block, BlockZone, Reply, zones};
pub use trial::{ActionReading, ActionTrial, TrialOutcome, check_repair, make_action_trial};
pub use verdict::{Violation, ViolationKind};
