//! Parts that the packages of Tambour for other languages share: options from names and values, results as
//! plain values, state, scripts and dialogues in terms of JSON. Pure, as the libraries below it: no files,
//! sockets, clock, environment or global state.
//!
//! * [`types`] describes every event and result, from the definitions in Rust; packages generate their own
//!   types from it.
//! * [`options`] and [`input_end`] read arguments; [`json`], [`replies`], [`batch`], [`prompts`], [`state`] and
//!   [`dialogue`] do what the commands of the same names do.
//!
//! Conversion of values of another language does not belong here.

pub mod batch;
#[cfg(feature = "prompts")]
pub mod dialogue;
pub mod input_end;
pub mod json;
pub mod options;
pub mod partial;
#[cfg(feature = "prompts")]
pub mod prompts;
pub mod records;
pub mod replies;
pub mod state;
pub mod types;
