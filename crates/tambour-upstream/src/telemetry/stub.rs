//! Stub of `spans` for a build without the feature `otel`: nothing is traced. The check of the configuration
//! refuses an endpoint.

use http::HeaderMap;
use serde_json::Value;

use super::{TelemetryConfig, ToolCallInfo};
use crate::origins::{ConfigError, ValueOrigins};

/// Handle stub.
#[derive(Clone, Default)]
pub struct TraceHandle(());

/// Span stub.
#[derive(Clone, Debug, Default)]
pub struct TraceSpan(());

/// Parent span stub.
#[derive(Clone, Debug, Default)]
pub struct ParentSpan(());

impl TraceHandle {
    pub fn start(_: &TelemetryConfig, _: &ValueOrigins) -> Result<TraceHandle, ConfigError> {
        Ok(TraceHandle(()))
    }

    pub fn read_parent(&self, _: &HeaderMap) -> ParentSpan {
        ParentSpan(())
    }

    pub fn start_message(&self, _: &ParentSpan, _: &str, _: &str, _: &str) -> TraceSpan {
        TraceSpan(())
    }

    pub fn start_turn(&self, _: &ParentSpan, _: &str) -> TraceSpan {
        TraceSpan(())
    }

    pub async fn stop(&self) {}
}

impl TraceSpan {
    pub fn start_tool(&self, _: &ToolCallInfo<'_>) -> TraceSpan {
        TraceSpan(())
    }

    pub fn inject_headers(&self, _: &mut HeaderMap) {}

    pub fn record_result(&self, _: &Value) {}

    pub fn fail(&self, _: &str) {}

    pub fn end(&self, _: &str) {}
}
