//! Grammars agree with the contracts that they describe: llguidance, an engine that is not ours, accepts the
//! valid replies and refuses broken ones at the first wrong byte, and the strict checker passes what the
//! grammars generate.

mod engine;
mod forms;
mod fuzz;
mod gbnf;
mod generate;
mod mutations;
mod replies;
mod schemas;
