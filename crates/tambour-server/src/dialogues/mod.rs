//! Dialogues: drives the library's dialogue machine with an upstream and the store. Its state is stored after
//! every step; a turn is a run with a log, which clients read like that of a message.

mod turn_quota;
mod turn_log;
mod templates;
mod turn;
mod turn_record;
mod turn_claims;

pub(crate) use turn_quota::TurnQuota;
pub(crate) use turn_log::{TurnLog, close};
pub(crate) use templates::{OwnerTemplates, ParsedTemplateCache, hash_text};
pub(crate) use turn::{TurnClient, TurnInput, interrupted_call, load_machine, run_turn, log_problem};
pub(crate) use turn_record::{ForkOrigin, DialogueOrigin, TurnRecord, add_coverage, for_each_turn, build_test};
pub(crate) use turn_claims::{TurnClaim, TurnRun, TurnClaims};
