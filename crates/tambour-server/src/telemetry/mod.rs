//! Tracing for an OpenTelemetry collector: a span for each message and dialogue turn, with child spans for
//! model and tool calls. Off unless `telemetry.otlp_endpoint` is set, and without the feature `otel`.

#[cfg(feature = "otel")]
mod chat;
#[cfg(feature = "otel")]
mod collector;
#[cfg(feature = "otel")]
mod genai;
#[cfg(feature = "otel")]
mod spans;
#[cfg(not(feature = "otel"))]
mod stub;

#[cfg(feature = "otel")]
pub(crate) use chat::ChatSpan;
#[cfg(feature = "otel")]
use spans as chosen;
#[cfg(not(feature = "otel"))]
use stub as chosen;
#[cfg(not(feature = "otel"))]
pub(crate) use stub::ChatSpan;

pub use chosen::TraceSpan;
pub(crate) use chosen::{ParentSpan, TraceHandle};

/// Target of a model call.
#[cfg_attr(not(feature = "otel"), expect(dead_code, reason = "only spans tell it"))]
pub(crate) struct CallTarget<'a> {
    /// Kind of the service, such as `openai`.
    pub(crate) provider: &'a str,
    /// Base URL, if it has one.
    pub(crate) base: Option<&'a str>,
    pub(crate) model: Option<&'a str>,
}

/// Tool call, as described to a span.
#[cfg_attr(not(feature = "otel"), expect(dead_code, reason = "only spans tell it"))]
pub(crate) struct ToolCallInfo<'a> {
    pub(crate) name: &'a str,
    pub(crate) call_id: &'a str,
    /// True if the client runs it instead of the server.
    pub(crate) is_client_call: bool,
    pub(crate) args: &'a serde_json::Value,
}
