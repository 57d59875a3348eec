//! Sources of replies: model APIs and recordings.
//!
//!
//! An upstream opens a [`Reply`], whose items are text, reasoning, calls, usage and an end. Quirks of a
//! service stay in its adapter.

mod anthropic;
mod breaker;
mod call;
mod client;
mod decode;
mod fields;
mod gemini;
mod kind;
mod lines;
mod message;
mod ollama;
mod openai;
mod proxy;
mod redact;
mod replay;
mod retry;
mod service;
mod stream;
mod turns;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use breaker::Breaker;
use call::Call;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tambour::End;
use tambour::event::Failure;
use tambour::texts::Language;

use crate::app::upstreams;
use crate::config::{Config, ConfigError, Price};
use crate::metrics::{Calls, Metrics};
use crate::telemetry::{Asked, Span};

#[cfg(any(feature = "mcp", feature = "otel"))]
pub(crate) use client::is_local;
pub use decode::Decoder;
pub use kind::Kind;
pub use message::{Content, Function, Kept, Message, NativeCall};
#[cfg(feature = "mcp")]
pub(crate) use redact::redacted;
pub use replay::Replay;
pub use service::Service;

/// Configured upstream.
pub struct Upstream {
    pub(crate) name: Arc<str>,
    source: Source,
    calls: Calls,
    breaker: Arc<Breaker>,
    prices: BTreeMap<String, Price>,
}

/// Source of an upstream's replies.
pub enum Source {
    /// Service over HTTP.
    Service(Box<Service>),
    /// Recorded replies.
    Replay(Replay),
}

/// Request to a model.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// Id of the message, for log lines; not sent to the service.
    pub message: Arc<str>,
    /// Span of the message, the parent of the call's span.
    pub span: Span,
    /// Messages by role, the system prompt first.
    pub messages: Vec<Message>,
    /// Model; the upstream's default when absent. Selects a recording by its id.
    pub model: Option<String>,
    /// Dialect that the reply is read as; selects recordings.
    pub dialect: String,
    /// Round of an `ai_say`, from 1, and the language of its script; select recordings.
    pub round: Option<(u32, Language)>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Most tokens of the reply.
    pub max_tokens: Option<u32>,
    /// Nucleus sampling.
    pub top_p: Option<f64>,
    /// Stop sequences: a text or a list of texts.
    pub stop: Option<Value>,
    /// Random seed, where the model supports it.
    pub seed: Option<i64>,
    /// Response format enforced by the service.
    pub response_format: Option<Value>,
    /// Tools in the service's own form: functions with a name, a description and a schema.
    pub tools: Vec<Value>,
    /// Tool choice.
    pub tool_choice: Option<Value>,
    /// Further fields of the service's request, unchanged.
    pub more: Map<String, Value>,
    /// Avoids long waits, since a fallback remains.
    pub hurry: bool,
    /// Most bytes of the reply (`limits.input`); the default when absent.
    pub input: Option<usize>,
}

/// Timeouts and retries of an upstream.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// Milliseconds to connect.
    pub connect_ms: u64,
    /// Milliseconds from the request to the first byte.
    pub first_byte_ms: u64,
    /// Milliseconds without any byte.
    pub silence_ms: u64,
    /// Milliseconds without content: text, reasoning or calls. Comments that keep a connection open and empty
    /// deltas do not count.
    pub content_ms: u64,
    /// Milliseconds from the request to the end of the reply.
    pub total_ms: u64,
    /// Attempts in all, while nothing was received.
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

/// Item of a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// Text of the reply.
    Text(String),
    /// Reasoning from a separate field.
    Reasoning(String),
    /// Complete native tool call.
    Call(NativeCall),
    /// Token counts, as reported by the service.
    Usage(Value),
    /// End; nothing follows.
    End(End),
}

/// Reply being received.
pub struct Reply {
    arriving: Arriving,
    call: Call,
}

enum Arriving {
    /// From a model.
    Service(Box<stream::Stream>),
    /// From a recording.
    Replay(replay::Playing),
}

impl Upstream {
    /// Creates an upstream with prices by model; its calls are counted in `calls`.
    pub(crate) fn new(
        name: &str,
        source: Source,
        calls: &Calls,
        prices: BTreeMap<String, Price>,
    ) -> Upstream {
        Upstream { name: name.into(), source, calls: calls.clone(), breaker: Arc::default(), prices }
    }

    /// Creates the default upstream of a configuration, for callers without a server.
    ///
    /// # Errors
    /// There is no default upstream, or it cannot be used.
    pub fn of_config(config: &Config) -> Result<Arc<Upstream>, ConfigError> {
        let mut all = upstreams(config, &Metrics::new())?;
        let name = config.default_upstream().unwrap_or_default();
        all.remove(name).ok_or_else(|| ConfigError(format!("there is no upstream `{name}`")))
    }

    /// Returns its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the model for a request, if one is named.
    pub(crate) fn model<'a>(&'a self, ask: &'a Ask) -> Option<&'a str> {
        match &self.source {
            Source::Service(service) => service.asked(ask).model,
            Source::Replay(_) => ask.model.as_deref(),
        }
    }

    /// Returns the price of the model for a request, if there is one.
    pub(crate) fn price(&self, ask: &Ask) -> Option<&Price> {
        self.model(ask).and_then(|model| self.prices.get(model)).or_else(|| self.prices.get("*"))
    }

    /// Returns `true` if requests carry a key.
    pub(crate) fn has_key(&self) -> bool {
        matches!(&self.source, Source::Service(service) if service.has_key())
    }

    /// Returns its circuit breaker.
    pub(crate) fn breaker(&self) -> &Breaker {
        &self.breaker
    }

    /// Requests a reply.
    ///
    /// # Errors
    /// The upstream cannot be reached, or refuses; nothing of a reply was received.
    pub async fn open(&self, ask: &Ask) -> Result<Reply, Failure> {
        let asked = match &self.source {
            Source::Service(service) => service.asked(ask),
            Source::Replay(_) => Asked { provider: "replay", base: None, model: ask.model.as_deref() },
        };
        let span = ask.span.chat(&asked, ask);
        let mut call = Call::begin(&self.name, &ask.message, &self.calls, &self.breaker, span);
        let arriving = match &self.source {
            Source::Service(service) => {
                let headers = call.headers();
                let stream = service.open(ask, headers, |failure, wait| call.failed(failure, wait)).await?;
                Arriving::Service(Box::new(stream))
            }
            Source::Replay(replay) => {
                let playing = replay.open(ask).inspect_err(|failure| call.failed(failure, None))?;
                Arriving::Replay(playing)
            }
        };
        Ok(Reply { arriving, call })
    }
}

impl Reply {
    /// Waits for the next items and adds all that are available to `items`. The last item is [`Item::End`].
    pub async fn next(&mut self, items: &mut Vec<Item>) {
        let before = items.len();
        match &mut self.arriving {
            Arriving::Service(stream) => stream.next(items).await,
            Arriving::Replay(playing) => playing.next(items).await,
        }
        self.call.came(&items[before..]);
    }
}

/// Creates a failure with its stable code.
pub(crate) fn failure(code: &'static str, message: impl Into<String>, retryable: bool) -> Failure {
    Failure::new(code, message, retryable)
}
