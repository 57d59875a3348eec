//! Dialogues: drives the library's dialogue machine with an upstream and the store. Its state is stored after
//! every step; a turn is a run with a log, which clients read like that of a message.

mod admission;
mod outlet;
mod templates;
mod turn;
mod turn_record;
mod under_way;

pub(crate) use admission::Admission;
pub(crate) use outlet::{Outlet, close};
pub(crate) use templates::{Prompts, ReadTemplates, hash};
pub(crate) use turn::{Asking, Input, died, machine, run, unwritten};
pub(crate) use turn_record::{Fork, Origin, TurnRecord, cover, each_turn, test};
pub(crate) use under_way::{Guard, Run, UnderWay};
