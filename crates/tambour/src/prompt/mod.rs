//! Everything sent to a model: templates of two layers, the Jinja environment, macros of imported texts,
//! cards and books of other programs, world info, and prompts made of blocks.
//!
//! A value inserted into a prompt is never interpreted again.

pub mod card;
pub mod jinja;
pub mod lore;
pub mod macros;
pub mod name;
pub mod print;
pub mod role;
pub mod skein;
pub mod template;
pub mod tokens;
