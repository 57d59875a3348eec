//! Decision whether a dialogue action ends: the criteria, and the decision after each round, as pure
//! functions.
//!
//! Not here: how a model writes its answer (`dialect::ai_say`), and any waiting or I/O.

mod criteria;
mod decision;

pub use criteria::{ExitCriteria, ExitRound};
pub use decision::{ActionStatus, Assessment, RoundAnswer, action_status, decide};
