//! Where replies come from: a model API, or a recording.
//!
//! An upstream opens a [`Reply`]; its items are text, reasoning, usage and an end. Quirks of a service stay in its adapter.

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

/// A configured upstream.
pub struct Upstream {
    pub(crate) name: Arc<str>,
    source: Source,
    calls: Calls,
    breaker: Arc<Breaker>,
    prices: BTreeMap<String, Price>,
}

/// Where its replies come from.
pub enum Source {
    /// A service over HTTP.
    Service(Box<Service>),
    /// Recorded replies.
    Replay(Replay),
}

/// What is asked of a model.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// Id of the message it is asked for, by which lines of the log name the call; no service is told.
    pub message: Arc<str>,
    /// The span of that message, in which the call has one of its own.
    pub span: Span,
    /// Messages by role, the system prompt first.
    pub messages: Vec<Message>,
    /// The model; the upstream's own when absent. Picks a recording by its id.
    pub model: Option<String>,
    /// The dialect the reply will be read as; recordings are chosen by it.
    pub dialect: String,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Most tokens of the reply.
    pub max_tokens: Option<u32>,
    /// Nucleus sampling.
    pub top_p: Option<f64>,
    /// Where the model stops: a text or a list of texts.
    pub stop: Option<Value>,
    /// Fixes the model's chance, where it can.
    pub seed: Option<i64>,
    /// What the service holds the reply to by itself.
    pub response_format: Option<Value>,
    /// Tools the model may call in the service's own form: functions with a name, a description and a schema.
    pub tools: Vec<Value>,
    /// Which of them it has to call.
    pub tool_choice: Option<Value>,
    /// Further fields of the service's request, as they are.
    pub more: Map<String, Value>,
    /// Whether somebody else can be asked instead, so that long waits are not worth it.
    pub hurry: bool,
    /// Bytes of the reply, `limits.input` of who reads it; its default when absent.
    pub input: Option<usize>,
}

/// How long to wait for an upstream.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// Milliseconds to connect.
    pub connect_ms: u64,
    /// Milliseconds from the request to the first byte.
    pub first_byte_ms: u64,
    /// Milliseconds without any byte.
    pub silence_ms: u64,
    /// Milliseconds without any content: bytes may come (comments that keep a connection open, deltas without text), but no text, reasoning
    /// or call.
    pub content_ms: u64,
    /// Milliseconds from the request to the end of the reply.
    pub total_ms: u64,
    /// Attempts in all, while nothing has come.
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

/// One item of a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// Text of the reply.
    Text(String),
    /// Reasoning in a field of its own.
    Reasoning(String),
    /// A call of a tool beside the text, whole.
    Call(NativeCall),
    /// Token counts, as the service gave them.
    Usage(Value),
    /// The end; nothing follows.
    End(End),
}

/// A reply that is arriving.
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
    /// An upstream of that name with prices by model, whose calls are counted.
    pub(crate) fn new(
        name: &str,
        source: Source,
        calls: &Calls,
        prices: BTreeMap<String, Price>,
    ) -> Upstream {
        Upstream { name: name.into(), source, calls: calls.clone(), breaker: Arc::default(), prices }
    }

    /// The upstream that a configuration uses when nothing else is said, for who wants replies and no server.
    ///
    /// # Errors
    /// There is none, or it cannot be used.
    pub fn of_config(config: &Config) -> Result<Arc<Upstream>, ConfigError> {
        let mut all = upstreams(config, &Metrics::new())?;
        let name = config.default_upstream().unwrap_or_default();
        all.remove(name).ok_or_else(|| ConfigError(format!("there is no upstream `{name}`")))
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The model that it is asked for with this, if one is named.
    pub(crate) fn model<'a>(&'a self, ask: &'a Ask) -> Option<&'a str> {
        match &self.source {
            Source::Service(service) => service.asked(ask).model,
            Source::Replay(_) => ask.model.as_deref(),
        }
    }

    /// Returns the price of the model that it is asked for with this, if there is one.
    pub(crate) fn price(&self, ask: &Ask) -> Option<&Price> {
        self.model(ask).and_then(|model| self.prices.get(model)).or_else(|| self.prices.get("*"))
    }

    /// Tells whether it is asked with a key.
    pub(crate) fn has_key(&self) -> bool {
        matches!(&self.source, Source::Service(service) if service.has_key())
    }

    /// How its calls went.
    pub(crate) fn breaker(&self) -> &Breaker {
        &self.breaker
    }

    /// Asks for a reply.
    ///
    /// # Errors
    /// The upstream cannot be reached, or refuses; nothing of a reply has come.
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
    /// Waits for what comes next, and adds all that is there to `items`. Ends with [`Item::End`].
    pub async fn next(&mut self, items: &mut Vec<Item>) {
        let before = items.len();
        match &mut self.arriving {
            Arriving::Service(stream) => stream.next(items).await,
            Arriving::Replay(playing) => playing.next(items).await,
        }
        self.call.came(&items[before..]);
    }
}

/// A failure with its stable code.
pub(crate) fn failure(code: &'static str, message: impl Into<String>, retryable: bool) -> Failure {
    Failure::new(code, message, retryable)
}
