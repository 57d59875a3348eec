//! Whether an action of a dialogue is over: the criteria, and the decision after each round, as pure functions of what is known.
//!
//! What does not belong here: how a model writes its answer (`dialect::ai_say`), and waiting for anything.

mod criteria;
mod decision;

pub use criteria::{Criteria, Round};
pub use decision::{Answer, Assessment, Status, decide, status};
