//! Runs messages and turns of dialogues: from a valid request to the end of its log.

pub(crate) mod app;
pub(crate) mod dialogues;
pub(crate) mod keys;
pub(crate) mod live_run;
pub(crate) mod message_start;
pub mod prompts;
pub(crate) mod quotas;
pub(crate) mod runner;
pub(crate) mod skeins;
pub(crate) mod states;
pub(crate) mod turns;
