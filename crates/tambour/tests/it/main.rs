//! One test binary for the library.

mod checker;
mod chunking;
mod corpus;
mod dialogue;
mod encode;
mod fixtures;
mod fuzz;
mod helpers;
mod hostile;
mod json;
mod layers;
mod plans;
mod privacy;
mod prompts;
mod properties;
mod queries;
mod rewrite;
mod stream;
mod tool_loop;
mod verdicts;
