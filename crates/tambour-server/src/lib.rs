//! Tambour as a service: messages over HTTP, live event streams, upstream models, a log that survives.

mod apart;
mod app;
mod aside;
mod ask;
mod by_owner;
pub mod config;
mod connection;
mod data_folder;
mod descriptors;
mod dialogues;
mod drive;
#[doc(hidden)]
pub mod fail;
mod history;
mod http;
mod ids;
mod keys;
mod live;
pub mod logs;
pub mod mcp;
mod memory;
mod metrics;
pub mod prompts;
mod quotas;
mod reading;
mod record;
mod reload;
mod rotation;
mod serve;
mod skeins;
mod states;
pub mod store;
mod streams;
mod studio;
mod supervise;
mod sweep;
mod telemetry;
mod tools;
mod turns;
pub mod upstream;

pub use config::{Config, ConfigError};
pub use http::openapi::description as openapi;
pub use reload::Reload;
pub use serve::{Broken, Server, StartError};
pub use telemetry::Span;
pub use tools::ToolLimits;
