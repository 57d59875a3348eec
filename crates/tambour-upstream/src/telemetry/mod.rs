//! Tracing for an OpenTelemetry collector: a span for each message and dialogue turn, with child spans for
//! model and tool calls. Nothing is traced unless `telemetry.otlp_endpoint` is set and the server is built
//! with the feature `otel`.

#[cfg(feature = "otel")]
mod collector;
mod config;
#[cfg(feature = "otel")]
pub mod genai;
#[cfg(feature = "otel")]
mod spans;
#[cfg(not(feature = "otel"))]
mod stub;

#[cfg(feature = "otel")]
use spans as implementation;
#[cfg(not(feature = "otel"))]
use stub as implementation;

pub use config::TelemetryConfig;
pub use implementation::TraceSpan;
pub use implementation::{ParentSpan, TraceHandle};

/// Tool call as its span describes it.
#[cfg_attr(not(feature = "otel"), expect(dead_code, reason = "only spans read it"))]
pub struct ToolCallInfo<'a> {
    /// Name of the tool.
    pub name: &'a str,
    /// Id of the call.
    pub call_id: &'a str,
    /// True if the client runs it instead of the server.
    pub is_client_call: bool,
    /// Arguments of the call.
    pub args: &'a serde_json::Value,
}
