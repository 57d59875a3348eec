//! Dialogues: drives the dialogue machine of `tambour-prompt` with an upstream and the store. The state of
//! the machine is stored when it takes an input, before each model call and at the end of the turn. A turn is
//! a run with a log, which clients read like the log of a message.

mod templates;
mod turn;
mod turn_log;
mod turn_quota;
mod turn_record;

pub(crate) use templates::{OwnerTemplates, ParsedTemplateCache, hash_text};
pub(crate) use turn::{
    TurnClient, TurnInput, TurnRequest, interrupted_call_failure, load_machine, log_problem, run_turn,
};
pub(crate) use turn_log::TurnLog;
pub(crate) use turn_quota::TurnQuota;
pub(crate) use turn_record::{
    DialogueOrigin, ForkOrigin, TurnRecord, add_coverage, build_script_test, for_each_turn,
};
