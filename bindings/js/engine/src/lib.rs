//! Calls of the JavaScript packages: JSON and bytes in, JSON out. The addon for Node and the WebAssembly modules
//! only pass them on, so that both do the same; the TypeScript above them gives the calls their names and types.
//!
//! * [`call`] is a function on whole texts, [`render_prompt`] the one that calls back.
//! * [`Session`] is an object that lives on: a pipeline, a state, a script, a dialogue.
//!
//! JSON is the boundary since `JSON.parse` makes objects faster than single calls into the JavaScript engine, and
//! since a batch of events crosses at once. Numbers are doubles there: whole numbers beyond 2^53 lose digits.

mod answer;
mod functions;
#[cfg(feature = "prompts")]
mod prompts;
mod session;

pub use answer::Answer;
pub use functions::call;
#[cfg(feature = "prompts")]
pub use prompts::{Clock, TokenCounter, render_prompt};
pub use session::{Chunk, Session};
