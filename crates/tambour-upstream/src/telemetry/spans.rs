//! Tracing spans, and the handle that starts them.

use std::sync::Arc;

use http::HeaderMap;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{
    SpanBuilder, SpanContext, SpanKind, Status, TraceContextExt, Tracer, TracerProvider,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{HeaderExtractor, HeaderInjector};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use serde_json::Value;

use super::TelemetryConfig;
use super::{ToolCallInfo, collector, genai};
use crate::origins::{ConfigError, ValueOrigins};

/// Starts spans; `None` if tracing is not configured. Clones share the tracer.
#[derive(Clone, Default)]
pub struct TraceHandle(Option<Arc<SpanFactory>>);

/// Tracer with its settings.
struct SpanFactory {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    /// True if prompts, replies, arguments and results are traced too.
    traces_content: bool,
}

/// Span of a message, a turn or a call; `None` where nothing is traced. Clones share the span.
#[derive(Clone, Default)]
pub struct TraceSpan(Option<Arc<OpenSpan>>);

/// Started span.
struct OpenSpan {
    factory: Arc<SpanFactory>,
    /// Context of child spans, which contains this span as their parent.
    context: Context,
}

/// Span of the client, from the header `traceparent` of its request: the parent of the spans of the request.
/// `None` without a valid header, or if tracing is not configured.
#[derive(Clone, Debug, Default)]
pub struct ParentSpan(Option<Box<SpanContext>>);

impl std::fmt::Debug for TraceSpan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Span")
            .field(&self.0.as_ref().map(|open_span| open_span.context.span().span_context().clone()))
            .finish()
    }
}

impl TraceHandle {
    /// Starts tracing if the configuration has an endpoint.
    ///
    /// # Errors
    /// The client of the collector cannot be created.
    pub fn start(config: &TelemetryConfig, origins: &ValueOrigins) -> Result<TraceHandle, ConfigError> {
        let Some(endpoint) = config.endpoint() else { return Ok(TraceHandle::default()) };
        let provider = collector::build_provider(endpoint, config).map_err(|error| {
            origins.field_error("telemetry.otlp_endpoint", &format!("cannot be used: {error}"))
        })?;
        let tracer = provider.tracer("tambour");
        Ok(TraceHandle(Some(Arc::new(SpanFactory { provider, tracer, traces_content: config.content }))))
    }

    /// Reads the span of the client from the headers of its request.
    pub fn read_parent(&self, headers: &HeaderMap) -> ParentSpan {
        if self.0.is_none() {
            return ParentSpan::default();
        }
        let context =
            TraceContextPropagator::new().extract_with_context(&Context::new(), &HeaderExtractor(headers));
        let span = context.span().span_context().clone();
        ParentSpan(span.is_valid().then(|| Box::new(span)))
    }

    /// Starts the span of the message with this id.
    pub fn start_message(
        &self,
        parent: &ParentSpan,
        id: &str,
        conversation: &str,
        dialect: &str,
    ) -> TraceSpan {
        self.start_root(parent, "message", || {
            vec![
                KeyValue::new("tambour.message.id", id.to_owned()),
                KeyValue::new("tambour.dialect", dialect.to_owned()),
                KeyValue::new(genai::CONVERSATION_ID, conversation.to_owned()),
            ]
        })
    }

    /// Starts the span of a dialogue turn.
    pub fn start_turn(&self, parent: &ParentSpan, dialogue: &str) -> TraceSpan {
        self.start_root(parent, "dialogue turn", || {
            vec![KeyValue::new(genai::CONVERSATION_ID, dialogue.to_owned())]
        })
    }

    /// Starts a span that is a root in this server; its parent is the span of the client, if there is one.
    fn start_root(
        &self,
        ParentSpan(parent): &ParentSpan,
        name: &'static str,
        attributes: impl FnOnce() -> Vec<KeyValue>,
    ) -> TraceSpan {
        let Some(factory) = &self.0 else { return TraceSpan::default() };
        let context = match parent {
            Some(parent) => Context::new().with_remote_span_context((**parent).clone()),
            None => Context::new(),
        };
        start_span(
            factory,
            &context,
            SpanBuilder::from_name(name).with_kind(SpanKind::Server).with_attributes(attributes()),
        )
    }

    /// Sends the remaining spans and stops tracing.
    pub async fn stop(&self) {
        let Some(factory) = self.0.clone() else { return };
        // The shutdown blocks until the collector has answered.
        let shutdown = tokio::task::spawn_blocking(move || {
            factory.provider.shutdown_with_timeout(collector::EXPORT_TIMEOUT)
        });
        if let Ok(Err(error)) = shutdown.await {
            tracing::warn!(%error, "the last traces were not sent");
        }
    }
}

fn start_span(factory: &Arc<SpanFactory>, parent: &Context, builder: SpanBuilder) -> TraceSpan {
    let span = factory.tracer.build_with_context(builder, parent);
    TraceSpan(Some(Arc::new(OpenSpan { factory: factory.clone(), context: parent.with_span(span) })))
}

impl TraceSpan {
    /// Starts a child span for a call to another service.
    pub fn start_client(&self, name: String, attributes: Vec<KeyValue>) -> TraceSpan {
        self.start_child(SpanBuilder::from_name(name).with_kind(SpanKind::Client).with_attributes(attributes))
    }

    /// Starts a child span for a tool call.
    pub fn start_tool(&self, tool: &ToolCallInfo<'_>) -> TraceSpan {
        let Some(with_content) = self.traces_content() else { return TraceSpan::default() };
        let builder = SpanBuilder::from_name(genai::tool_span_name(tool)).with_kind(SpanKind::Internal);
        self.start_child(builder.with_attributes(genai::tool_attributes(tool, with_content)))
    }

    fn start_child(&self, builder: SpanBuilder) -> TraceSpan {
        let Some(open_span) = &self.0 else { return TraceSpan::default() };
        start_span(&open_span.factory, &open_span.context, builder)
    }

    /// Returns `true` if this span records prompts, replies, arguments and results; `None` if tracing is not
    /// configured. A span that was not sampled records nothing, so the result is `Some(false)`.
    pub fn traces_content(&self) -> Option<bool> {
        let open_span = self.0.as_ref()?;
        Some(open_span.factory.traces_content && open_span.context.span().is_recording())
    }

    /// Sets attributes of the span.
    pub fn set_attributes(&self, attributes: impl IntoIterator<Item = KeyValue>) {
        if let Some(open_span) = &self.0 {
            open_span.context.span().set_attributes(attributes);
        }
    }

    /// Adds the trace context to the headers of an outgoing request.
    pub fn inject_headers(&self, headers: &mut HeaderMap) {
        if let Some(open_span) = &self.0 {
            TraceContextPropagator::new().inject_context(&open_span.context, &mut HeaderInjector(headers));
        }
    }

    /// Records the result of a tool call, if content is traced.
    pub fn record_result(&self, result: &Value) {
        if self.traces_content() == Some(true) {
            self.set_attributes([genai::result_attribute(result)]);
        }
    }

    /// Records a failure by its code.
    pub fn fail(&self, code: &str) {
        let Some(open_span) = &self.0 else { return };
        let span = open_span.context.span();
        span.set_attribute(KeyValue::new(genai::ERROR_TYPE, code.to_owned()));
        span.set_status(Status::error(code.to_owned()));
    }

    /// Ends the span; `outcome` becomes an attribute.
    pub fn end(&self, outcome: &str) {
        let Some(open_span) = &self.0 else { return };
        let span = open_span.context.span();
        span.set_attribute(KeyValue::new("tambour.outcome", outcome.to_owned()));
        span.end();
    }
}
