//! One test binary for the library.

mod checker;
mod chunking;
mod corpus;
mod dialogue;
mod encode;
mod findings;
mod fixtures;
mod frames;
mod fuzz;
mod helpers;
mod hostile;
mod json;
mod layers;
mod limits;
mod plans;
mod privacy;
mod prompts;
mod properties;
mod queries;
mod rewrite;
mod stream;
mod tool_loop;
mod verdicts;
