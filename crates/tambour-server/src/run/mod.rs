//! Runs messages and turns of dialogues: from a valid request to the end of its log.

pub(crate) mod contract_forms;
pub(crate) mod dialogues;
pub(crate) mod engine;
pub(crate) mod keys;
pub(crate) mod live_run;
pub(crate) mod loaded_config;
pub(crate) mod message_start;
pub mod prompts;
pub(crate) mod quotas;
pub(crate) mod request_repeats;
pub(crate) mod run_registry;
pub(crate) mod runner;
pub(crate) mod skeins;
pub(crate) mod states;
pub(crate) mod turns;
