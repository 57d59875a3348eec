//! Basic types and helpers that the other modules use. Nothing here depends on another module of the server.

pub(crate) mod connection;
pub(crate) mod cpu_pool;
pub(crate) mod descriptors;
pub(crate) mod durations;
pub(crate) mod memory;
pub(crate) mod metrics;
pub(crate) mod owner_map;
pub(crate) mod problem;
pub(crate) mod restart_backoff;
pub(crate) mod rotation;
pub(crate) mod settings;
pub(crate) mod tokenizer;

pub use tambour_store::fail;
pub(crate) use tambour_store::{clock, data_folder, ids};
pub(crate) use tambour_upstream::{origins, polled_when_woken, secrets, token_counts, urls};
