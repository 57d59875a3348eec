//! Dialogues: the machine of the library, driven against an upstream and the store. Its state is in the store after every step.

mod outlet;
mod templates;
mod turn;

pub(crate) use outlet::{Frames, Outlet};
pub(crate) use templates::{Prompts, hash};
pub(crate) use turn::{Input, machine, run};
