//! Stub of `chat_span` for a build without the feature `otel`: no call is traced.

use http::HeaderMap;

use super::{CallTarget, ModelRequest, ReplyItem};
use crate::telemetry::TraceSpan;

/// Type without a value, in place of the span of the feature `otel`.
pub(crate) enum ChatSpan {}

impl TraceSpan {
    pub(crate) fn start_chat(&self, _: &CallTarget<'_>, _: &ModelRequest) -> Option<Box<ChatSpan>> {
        None
    }
}

impl ChatSpan {
    pub(crate) fn inject_headers(&self, _: &mut HeaderMap) {
        match *self {}
    }

    pub(crate) fn record_items(&mut self, _: &[ReplyItem]) {
        match *self {}
    }

    pub(crate) fn record_failure(&mut self, _: &str, _: bool) {
        match *self {}
    }
}
