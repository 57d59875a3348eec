//! Dialogues: the machine of the library, driven against an upstream and the store. Its state is in the store after every step.

mod outlet;
mod templates;
mod turn;
mod under_way;

pub(crate) use outlet::{Frames, Outlet};
pub(crate) use templates::{Prompts, ReadTemplates, hash};
pub(crate) use turn::{Input, machine, run};
pub(crate) use under_way::{Guard, UnderWay};
