//! Rounds of a dialogue: what is decided after each, as pure functions of what is known.
//!
//! What does not belong here: how a model writes its answer (`dialect::ai_say`), and waiting for anything.

mod criteria;
mod exit;

pub use criteria::{Criteria, Round};
pub use exit::{Answer, Assessment, Status, decide, status};
