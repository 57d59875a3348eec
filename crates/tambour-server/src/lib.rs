//! Tambour as a server: takes messages over HTTP, calls models, streams the events of their replies, and
//! keeps logs that survive crashes.

mod base;
pub mod config;
mod http;
pub mod mcp;
mod record;
mod run;
mod serve;
mod tools;

/// Fail points, for tests of crashes.
#[doc(hidden)]
pub use base::fail;
pub use base::tokenizer::Tokenizer;
pub use config::{Config, ConfigError};
pub use http::openapi::description as openapi;
pub use run::prompts;
pub use serve::logs;
pub use serve::reload::ReloadHandle;
pub use serve::{Server, ServerFailed, StartError};
pub use tambour_store as store;
pub use tambour_upstream as upstream;
pub(crate) use tambour_upstream::telemetry;
pub use tambour_upstream::telemetry::TraceSpan;
pub use tools::ToolLimits;
