//! Tambour as a service: messages over HTTP, live event streams, upstream models, a log that survives.

mod app;
mod aside;
mod ask;
pub mod config;
mod data_folder;
mod descriptors;
mod drive;
#[doc(hidden)]
pub mod fail;
mod history;
mod http;
mod ids;
mod keys;
pub mod logs;
mod metrics;
mod reading;
mod record;
mod reload;
mod serve;
pub mod store;
mod sweep;

mod tools;
mod turns;
pub mod upstream;

pub use config::{Config, ConfigError};
pub use reload::Reload;
pub use serve::{Server, StartError};
pub use tools::ToolLimits;
