//! Stub of `spans` for a build without the feature `otel`: nothing is traced. The check of the configuration
//! refuses an endpoint.

use axum::http::HeaderMap;
use serde_json::Value;

use super::{TelemetryConfig, ToolCallInfo};
use crate::base::origins::{ConfigError, ValueOrigins};

/// Tracer stub.
#[derive(Clone, Default)]
pub(crate) struct TraceHandle(());

/// Span stub.
#[derive(Clone, Debug, Default)]
pub struct TraceSpan(());

/// Parent span stub.
#[derive(Clone, Debug, Default)]
pub(crate) struct ParentSpan(());

impl TraceHandle {
    pub(crate) fn start(_: &TelemetryConfig, _: &ValueOrigins) -> Result<TraceHandle, ConfigError> {
        Ok(TraceHandle(()))
    }

    pub(crate) fn read_parent(&self, _: &HeaderMap) -> ParentSpan {
        ParentSpan(())
    }

    pub(crate) fn start_message(&self, _: &ParentSpan, _: &str, _: &str, _: &str) -> TraceSpan {
        TraceSpan(())
    }

    pub(crate) fn start_turn(&self, _: &ParentSpan, _: &str) -> TraceSpan {
        TraceSpan(())
    }

    pub(crate) async fn stop(&self) {}
}

impl TraceSpan {
    pub(crate) fn start_tool(&self, _: &ToolCallInfo<'_>) -> TraceSpan {
        TraceSpan(())
    }

    pub(crate) fn inject_headers(&self, _: &mut HeaderMap) {}

    pub(crate) fn record_result(&self, _: &Value) {}

    pub(crate) fn fail(&self, _: &str) {}

    pub(crate) fn end(&self, _: &str) {}
}
