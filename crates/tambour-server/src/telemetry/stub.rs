//! Stub without the feature `otel`: nothing is traced, and a configuration with an endpoint is refused.

use axum::http::HeaderMap;
use serde_json::Value;

use super::{Asked, ToolCalled};
use crate::config::{Config, ConfigError};
use crate::upstream::{Ask, Item};

/// Tracer stub.
#[derive(Clone, Default)]
pub(crate) struct Traces(());

/// Span stub.
#[derive(Clone, Debug, Default)]
pub struct Span(());

/// Parent span stub.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parent(());

/// Never constructed.
pub(crate) enum ChatSpan {}

impl Traces {
    pub(crate) fn start(_: &Config) -> Result<Traces, ConfigError> {
        Ok(Traces(()))
    }

    pub(crate) fn parent(&self, _: &HeaderMap) -> Parent {
        Parent(())
    }

    pub(crate) fn message(&self, _: &Parent, _: &str, _: &str, _: &str) -> Span {
        Span(())
    }

    pub(crate) fn turn(&self, _: &Parent, _: &str) -> Span {
        Span(())
    }

    pub(crate) async fn stop(&self) {}
}

impl Span {
    pub(crate) fn chat(&self, _: &Asked<'_>, _: &Ask) -> Option<Box<ChatSpan>> {
        None
    }

    pub(crate) fn tool(&self, _: &ToolCalled<'_>) -> Span {
        Span(())
    }

    pub(crate) fn headers(&self, _: &mut HeaderMap) {}

    pub(crate) fn result(&self, _: &Value) {}

    pub(crate) fn fail(&self, _: &str) {}

    pub(crate) fn end(&self, _: &str) {}
}

impl ChatSpan {
    pub(crate) fn headers(&self, _: &mut HeaderMap) {
        match *self {}
    }

    pub(crate) fn came(&mut self, _: &[Item]) {
        match *self {}
    }

    pub(crate) fn failed(&mut self, _: &str, _: bool) {
        match *self {}
    }
}
