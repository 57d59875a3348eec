//! Sources of replies: model services and recordings, behind one interface.
//!
//! An [`Upstream`] opens an [`UpstreamReply`], whose items are text, reasoning, calls, usage and an end.
//! Retries, timeouts, a circuit breaker, prices, metrics and traces are the same for all; quirks of a service
//! stay in its folder, behind one trait. A dialect is the format in which a model writes a reply, such as the
//! XML of `thinkingml`.
//!
//! ```
//! use tambour_upstream::{Message, ModelRequest, ReplyItem, Timeouts, Upstream, UpstreamConfig};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Plays recorded replies. A service is given as, for example, `openai=http://127.0.0.1:9100/v1`.
//! let config = UpstreamConfig::from_argument("replay=../../fixtures/recorded/thinkingml.jsonl", None)?;
//! let upstream = Upstream::connect("model", &config, Timeouts::default())?;
//! let messages = vec![Message::new("user", "Hello!")];
//! let request = ModelRequest { messages, dialect: "thinkingml".into(), ..ModelRequest::default() };
//! let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! let text = runtime.block_on(async {
//!     let mut reply = upstream.open(&request).await.map_err(|failure| failure.message)?;
//!     let (mut text, mut items) = (String::new(), Vec::new());
//!     loop {
//!         reply.next(&mut items).await;
//!         for item in items.drain(..) {
//!             match item {
//!                 ReplyItem::Text(delta) => text.push_str(&delta),
//!                 ReplyItem::End(_) => return Ok::<_, String>(text),
//!                 _ => {}
//!             }
//!         }
//!     }
//! })?;
//! assert!(text.starts_with("<serp>"), "{text}");
//! # Ok(())
//! # }
//! ```

mod anthropic;
mod breaker;
mod call;
#[cfg(feature = "otel")]
mod chat_span;
#[cfg(not(feature = "otel"))]
mod chat_span_stub;
mod chat_turns;
mod client;
mod config;
mod constraint;
mod decode;
mod fields;
mod gemini;
#[cfg(feature = "otel")]
mod genai;
mod kind;
mod lines;
mod message;
mod metrics;
mod ollama;
mod openai;
pub mod origins;
#[doc(hidden)]
pub mod polled_when_woken;
mod price;
mod proxy;
mod reask;
mod redact;
mod replay;
mod retry;
#[doc(hidden)]
pub mod secrets;
mod service;
mod stream;
pub mod telemetry;
pub mod token_counts;
#[doc(hidden)]
pub mod urls;
mod worth;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use call::UpstreamCall;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tambour::InputEnd;
use tambour::event::Failure;
use tambour::texts::Language;

use crate::origins::ValueOrigins;
use crate::telemetry::TraceSpan;

pub use breaker::CircuitBreaker;
#[cfg(feature = "otel")]
pub(crate) use chat_span::ChatSpan;
#[cfg(not(feature = "otel"))]
pub(crate) use chat_span_stub::ChatSpan;
pub use config::{UPSTREAM_KEY, UpstreamConfig, UpstreamSection};
pub use constraint::{
    Constrain, Constraint, ConstraintForm, ConstraintForms, ConstraintProbes, ConstraintReport, FieldState,
    ProbedField, ProbedServer, UNCONSTRAINED_CODE, constraint_servers,
};
pub use decode::ResponseDecoder;
pub use kind::{ServiceKind, UpstreamKind};
pub use message::{CallExtras, Content, Function, Message, NativeCall};
pub use metrics::UpstreamMetrics;
pub use origins::ConfigError;
pub use price::Price;
pub use reask::reask_messages;
pub use redact::redact;
pub use replay::RecordedReplies;
pub use service::HttpService;
pub use worth::reply_worth;

/// Configured upstream.
pub struct Upstream {
    /// Name in the configuration.
    name: Arc<str>,
    source: ReplySource,
    metrics: UpstreamMetrics,
    breaker: Arc<CircuitBreaker>,
    /// Prices by model; `*` applies to all other models.
    prices: BTreeMap<String, Price>,
    /// Sending of contracts, if the configuration says so.
    constrain: Option<Constrain>,
}

/// Source of an upstream's replies.
pub enum ReplySource {
    /// Service over HTTP.
    Service(Box<HttpService>),
    /// Recorded replies.
    Replay(RecordedReplies),
}

/// Request to a model.
#[derive(Clone, Debug, Default)]
pub struct ModelRequest {
    /// Id of the message, for log lines; not sent to the service.
    pub message_id: Arc<str>,
    /// Owner of the message: models that clients name are probed only so often for one owner. Not sent to the
    /// service.
    pub owner: Arc<str>,
    /// Span of the message, the parent of the call's span.
    pub span: TraceSpan,
    /// Messages, each with its role; the system prompt is the first.
    pub messages: Vec<Message>,
    /// Model; the upstream's default when absent. Selects a recording by its id.
    pub model: Option<String>,
    /// Dialect that the reply is read as; selects recordings.
    pub dialect: String,
    /// Round of a dialogue's `ai_say` action, from 1, and the language of the texts; they select recordings.
    pub round: Option<(u32, Language)>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Maximum number of tokens of the reply.
    pub max_tokens: Option<u32>,
    /// Nucleus sampling.
    pub top_p: Option<f64>,
    /// Stop sequences: a text or a list of texts.
    pub stop: Option<Value>,
    /// Random seed, where the model supports it.
    pub seed: Option<i64>,
    /// Response format that the service enforces, in the form of OpenAI's chat completions interface.
    pub response_format: Option<Value>,
    /// Tools, in the form of OpenAI's chat completions interface.
    pub tools: Vec<Value>,
    /// Tool choice, in the form of OpenAI's chat completions interface.
    pub tool_choice: Option<Value>,
    /// Contract to send along, if the reply is to be constrained.
    pub constraint: Option<Constraint>,
    /// Further fields of the client's request, passed on to the service.
    pub extra_fields: Map<String, Value>,
    /// True if a fallback remains, so that long pauses before a retry are avoided.
    pub has_fallback: bool,
    /// Maximum length of the reply in bytes (`limits.input`); the default when absent.
    pub max_reply_bytes: Option<usize>,
}

/// Timeouts and retries of an upstream.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// Milliseconds to connect.
    pub connect_ms: u64,
    /// Milliseconds from the request of an attempt to the first byte of the reply.
    pub first_byte_ms: u64,
    /// Milliseconds that may pass without any byte.
    pub silence_ms: u64,
    /// Milliseconds that may pass without content: text, reasoning or calls. Comments that keep a connection
    /// open and empty deltas do not count.
    pub content_ms: u64,
    /// Milliseconds from the first attempt to the end of the reply.
    pub total_ms: u64,
    /// Maximum number of attempts, including the first. Once a reply has begun, no other attempt follows.
    pub attempts: u32,
    /// Milliseconds before the second attempt; doubled for each further one.
    pub retry_ms: u64,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            connect_ms: 10_000,
            first_byte_ms: 120_000,
            silence_ms: 60_000,
            content_ms: 300_000,
            total_ms: 3_600_000,
            attempts: 3,
            retry_ms: 250,
        }
    }
}

impl Timeouts {
    fn first_byte(&self) -> Duration {
        Duration::from_millis(self.first_byte_ms)
    }

    fn silence(&self) -> Duration {
        Duration::from_millis(self.silence_ms)
    }

    fn content(&self) -> Duration {
        Duration::from_millis(self.content_ms)
    }

    fn total(&self) -> Duration {
        Duration::from_millis(self.total_ms)
    }
}

/// Target of a model call, for its span.
#[cfg_attr(not(feature = "otel"), expect(dead_code, reason = "only spans read it"))]
pub(crate) struct CallTarget<'a> {
    /// Provider of the model, such as `openai`.
    pub(crate) provider: &'a str,
    /// Base URL; `None` for recordings.
    pub(crate) base: Option<&'a str>,
    /// Model; `None` if neither the request nor the upstream names one.
    pub(crate) model: Option<&'a str>,
}

/// Item of a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplyItem {
    /// Text of the reply.
    Text(String),
    /// Reasoning from a separate field.
    Reasoning(String),
    /// Complete native tool call.
    Call(NativeCall),
    /// Token counts, in the form of OpenAI's chat completions interface.
    Usage(Value),
    /// End; nothing follows.
    End(InputEnd),
}

/// Reply being received.
pub struct UpstreamReply {
    source: ReplyStream,
    call: UpstreamCall,
    constraint: ConstraintReport,
}

/// Reply being received, from either source.
enum ReplyStream {
    /// From a service.
    Service(Box<stream::HttpReply>),
    /// From a recording.
    Replay(replay::RecordingPlayer),
}

impl Upstream {
    /// Creates an upstream from a configuration, with its own metrics.
    ///
    /// # Errors
    /// The configuration is invalid: an unknown kind, no base URL, an unreadable file of recordings, no key.
    pub fn connect(name: &str, config: &UpstreamConfig, timeouts: Timeouts) -> Result<Upstream, ConfigError> {
        let section = UpstreamSection {
            upstreams: &BTreeMap::new(),
            timeouts: &timeouts,
            origins: &ValueOrigins::default(),
        };
        section.build_upstream(name, config, &UpstreamMetrics::default(), &ConstraintProbes::default())
    }

    /// Creates an upstream with prices by model; its calls are counted in `metrics`.
    pub(crate) fn new(
        name: &str,
        source: ReplySource,
        metrics: &UpstreamMetrics,
        prices: BTreeMap<String, Price>,
    ) -> Upstream {
        Upstream {
            name: name.into(),
            source,
            metrics: metrics.clone(),
            breaker: Arc::default(),
            prices,
            constrain: None,
        }
    }

    /// Returns the name in the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the model of a request: the one that it names or the upstream's default; `None` if there is
    /// neither.
    pub fn model<'a>(&'a self, request: &'a ModelRequest) -> Option<&'a str> {
        match &self.source {
            ReplySource::Service(service) => service.call_target(request).model,
            ReplySource::Replay(_) => request.model.as_deref(),
        }
    }

    /// Returns the price of the model of a request, otherwise the price of `*`; `None` if there is neither.
    pub fn price(&self, request: &ModelRequest) -> Option<&Price> {
        self.model(request).and_then(|model| self.prices.get(model)).or_else(|| self.prices.get("*"))
    }

    /// Returns `true` if requests carry a key.
    pub fn has_key(&self) -> bool {
        matches!(&self.source, ReplySource::Service(service) if service.has_key())
    }

    /// Sets whether contracts are sent along.
    pub(crate) fn with_constrain(self, constrain: Option<Constrain>) -> Upstream {
        Upstream { constrain, ..self }
    }

    /// Returns whether contracts are sent along, if the configuration says so.
    pub fn constrain(&self) -> Option<Constrain> {
        self.constrain
    }

    /// Returns the models that were probed for constraints.
    pub fn probed_servers(&self) -> Vec<ProbedServer> {
        match &self.source {
            ReplySource::Service(service) => service.probes().probed_servers(&service.identity()),
            ReplySource::Replay(_) => Vec::new(),
        }
    }

    /// Returns the circuit breaker.
    pub fn breaker(&self) -> &CircuitBreaker {
        &self.breaker
    }

    /// Requests a reply.
    ///
    /// # Errors
    /// The request cannot be sent to this kind of service, the upstream cannot be reached or refuses the
    /// request, or there is no such recording. No part of a reply has been received.
    pub async fn open(&self, request: &ModelRequest) -> Result<UpstreamReply, Failure> {
        let target = match &self.source {
            ReplySource::Service(service) => service.call_target(request),
            ReplySource::Replay(_) => {
                let provider = UpstreamKind::Replay.name();
                CallTarget { provider, base: None, model: request.model.as_deref() }
            }
        };
        let span = request.span.start_chat(&target, request);
        let mut call =
            UpstreamCall::begin(&self.name, &request.message_id, &self.metrics, &self.breaker, span);
        let (source, constraint) = match &self.source {
            ReplySource::Service(service) => {
                let headers = call.trace_headers();
                let record_failure = |failure: &Failure, pause| call.record_failure(failure, pause);
                let (stream, constraint) = service
                    .open_constrained(request, headers, (&self.name, &self.metrics), record_failure)
                    .await?;
                (ReplyStream::Service(Box::new(stream)), constraint)
            }
            ReplySource::Replay(_) if request.constraint.as_ref().is_some_and(|one| one.is_required) => {
                let failure = constraint::unconstrained_failure("recordings cannot be", false);
                call.record_failure(&failure, None);
                return Err(failure);
            }
            ReplySource::Replay(replay) => {
                let player =
                    replay.open(request).inspect_err(|failure| call.record_failure(failure, None))?;
                (ReplyStream::Replay(player), ConstraintReport::default())
            }
        };
        Ok(UpstreamReply { source, call, constraint })
    }
}

impl UpstreamReply {
    /// Returns what became of the request's constraint.
    pub fn constraint(&self) -> &ConstraintReport {
        &self.constraint
    }

    /// Waits for the next items and adds all that are available to `items`. The last item is
    /// [`ReplyItem::End`].
    pub async fn next(&mut self, items: &mut Vec<ReplyItem>) {
        let old_len = items.len();
        match &mut self.source {
            ReplyStream::Service(stream) => stream.next(items).await,
            ReplyStream::Replay(replay) => replay.next(items).await,
        }
        self.call.record_items(&items[old_len..]);
    }
}

/// Creates a failure with a stable code; `retryable` if the same request may succeed later.
pub fn new_failure(code: &'static str, message: impl Into<String>, retryable: bool) -> Failure {
    Failure::new(code, message, retryable)
}
