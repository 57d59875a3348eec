//! Spans, and the tracer that creates them.

use std::sync::Arc;

use axum::http::HeaderMap;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{
    SpanBuilder, SpanContext, SpanKind, Status, TraceContextExt, Tracer, TracerProvider,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{HeaderExtractor, HeaderInjector};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use serde_json::Value;

use super::{ToolCalled, collector, genai};
use crate::config::{Config, ConfigError};

/// Creates spans if tracing is configured. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Traces(Option<Arc<Tracing>>);

struct Tracing {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    /// True if texts are traced.
    content: bool,
}

/// Span of a message, a turn or a call; empty where nothing is traced. Clones share it.
#[derive(Clone, Default)]
pub struct Span(Option<Arc<Begun>>);

struct Begun {
    traces: Arc<Tracing>,
    context: Context,
}

/// Parent span of the caller, from `traceparent`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parent(Option<Box<SpanContext>>);

impl std::fmt::Debug for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Span")
            .field(&self.0.as_ref().map(|begun| begun.context.span().span_context().clone()))
            .finish()
    }
}

impl Traces {
    /// Starts tracing if the configuration has an endpoint.
    ///
    /// # Errors
    /// The client of the collector cannot be created.
    pub(crate) fn start(config: &Config) -> Result<Traces, ConfigError> {
        let Some(endpoint) = config.telemetry.endpoint() else { return Ok(Traces::default()) };
        let provider = collector::provider(endpoint, &config.telemetry)
            .map_err(|error| config.wrong("telemetry.otlp_endpoint", &format!("cannot be used: {error}")))?;
        let tracer = provider.tracer("tambour");
        Ok(Traces(Some(Arc::new(Tracing { provider, tracer, content: config.telemetry.content }))))
    }

    /// Reads the caller's span from the request headers.
    pub(crate) fn parent(&self, headers: &HeaderMap) -> Parent {
        if self.0.is_none() {
            return Parent::default();
        }
        let found =
            TraceContextPropagator::new().extract_with_context(&Context::new(), &HeaderExtractor(headers));
        let span = found.span().span_context().clone();
        Parent(span.is_valid().then(|| Box::new(span)))
    }

    /// Starts the span of a message.
    pub(crate) fn message(&self, parent: &Parent, id: &str, conversation: &str, dialect: &str) -> Span {
        self.root(parent, "message", || {
            vec![
                KeyValue::new("tambour.message.id", id.to_owned()),
                KeyValue::new("tambour.dialect", dialect.to_owned()),
                KeyValue::new(genai::CONVERSATION, conversation.to_owned()),
            ]
        })
    }

    /// Starts the span of a dialogue turn.
    pub(crate) fn turn(&self, parent: &Parent, dialogue: &str) -> Span {
        self.root(parent, "dialogue turn", || vec![KeyValue::new(genai::CONVERSATION, dialogue.to_owned())])
    }

    fn root(
        &self,
        Parent(parent): &Parent,
        name: &'static str,
        known: impl FnOnce() -> Vec<KeyValue>,
    ) -> Span {
        let Some(traces) = &self.0 else { return Span::default() };
        let context = match parent {
            Some(parent) => Context::new().with_remote_span_context((**parent).clone()),
            None => Context::new(),
        };
        begin(
            traces,
            &context,
            SpanBuilder::from_name(name).with_kind(SpanKind::Server).with_attributes(known()),
        )
    }

    /// Sends the remaining spans.
    pub(crate) async fn stop(&self) {
        let Some(traces) = self.0.clone() else { return };
        // Blocks until the collector has answered.
        let stopped =
            tokio::task::spawn_blocking(move || traces.provider.shutdown_with_timeout(collector::PATIENCE));
        if let Ok(Err(error)) = stopped.await {
            tracing::warn!(%error, "the last traces were not sent");
        }
    }
}

fn begin(traces: &Arc<Tracing>, parent: &Context, span: SpanBuilder) -> Span {
    let span = traces.tracer.build_with_context(span, parent);
    Span(Some(Arc::new(Begun { traces: traces.clone(), context: parent.with_span(span) })))
}

impl Span {
    /// Starts a child span for a call to another service.
    pub(super) fn client(&self, name: String, known: Vec<KeyValue>) -> Span {
        self.within(SpanBuilder::from_name(name).with_kind(SpanKind::Client).with_attributes(known))
    }

    /// Starts a child span for a tool call.
    pub(crate) fn tool(&self, tool: &ToolCalled<'_>) -> Span {
        let Some(content) = self.content() else { return Span::default() };
        let span = SpanBuilder::from_name(genai::tool_name(tool)).with_kind(SpanKind::Internal);
        self.within(span.with_attributes(genai::tool(tool, content)))
    }

    fn within(&self, span: SpanBuilder) -> Span {
        let Some(begun) = &self.0 else { return Span::default() };
        begin(&begun.traces, &begun.context, span)
    }

    /// Returns whether texts are traced; `None` if nothing is.
    pub(super) fn content(&self) -> Option<bool> {
        self.0.as_ref().map(|begun| begun.traces.content && begun.context.span().is_recording())
    }

    pub(super) fn set(&self, known: impl IntoIterator<Item = KeyValue>) {
        if let Some(begun) = &self.0 {
            begun.context.span().set_attributes(known);
        }
    }

    /// Adds the trace context to the headers of an outgoing request.
    pub(crate) fn headers(&self, headers: &mut HeaderMap) {
        if let Some(begun) = &self.0 {
            TraceContextPropagator::new().inject_context(&begun.context, &mut HeaderInjector(headers));
        }
    }

    /// Records a tool's result.
    pub(crate) fn result(&self, result: &Value) {
        if self.content() == Some(true) {
            self.set([genai::result(result)]);
        }
    }

    /// Records a failure by its code.
    pub(crate) fn fail(&self, code: &str) {
        let Some(begun) = &self.0 else { return };
        let span = begun.context.span();
        span.set_attribute(KeyValue::new(genai::ERROR, code.to_owned()));
        span.set_status(Status::error(code.to_owned()));
    }

    /// Ends the span.
    pub(crate) fn end(&self, outcome: &str) {
        let Some(begun) = &self.0 else { return };
        let span = begun.context.span();
        span.set_attribute(KeyValue::new("tambour.outcome", outcome.to_owned()));
        span.end();
    }
}
