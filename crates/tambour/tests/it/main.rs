//! One test binary for the library.

mod checker;
mod corpus;
mod encode;
mod fixtures;
mod json;
mod layers;
mod privacy;
mod prompts;
mod queries;
mod rewrite;
mod stream;
mod verdicts;
