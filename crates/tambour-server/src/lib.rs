//! Tambour as a service: messages over HTTP, live event streams, upstream models, a log that survives.

mod app;
pub mod config;
mod drive;
mod http;
mod ids;
mod metrics;
mod record;
mod serve;
pub mod store;
pub mod upstream;

pub use config::{Config, ConfigError};
pub use serve::{Server, StartError};
