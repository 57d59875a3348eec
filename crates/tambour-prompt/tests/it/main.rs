//! One test binary for prompts and dialogues.

mod cards;
mod jinja;
mod layers;
mod lore;
mod machine;
mod macros;
mod script;
mod skein;
mod templates;
