//! One test binary for the library.

mod checker;
mod chunking;
mod corpus;
mod dialogue;
mod encode;
mod examples;
mod fixtures;
mod fuzz;
mod hostile;
mod json;
mod layers;
mod lines;
mod plans;
mod privacy;
mod prompts;
mod properties;
mod queries;
mod received;
mod rewrite;
mod stream;
mod tool_loop;
mod updates;
mod verdicts;
