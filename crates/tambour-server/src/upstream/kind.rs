//! Kinds of upstreams: recordings, and services, each with its own interface. A new kind of service is a
//! folder beside this file, and a line in each match here.

use std::sync::Arc;

use axum::http::HeaderValue;
use axum::http::request::Builder;
use serde_json::Value;
use tambour::event::Failure;

use super::decode::FrameDecoder;
use super::{ModelRequest, anthropic, gemini, ollama, openai};

/// Kind of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceKind {
    /// Chat completions interface of OpenAI.
    OpenAi,
    /// Messages interface of Anthropic.
    Anthropic,
    /// Interface of Gemini.
    Gemini,
    /// Interface of Ollama.
    Ollama,
}

/// Adds a key, if there is one, in the header `name`. The value is marked as sensitive, so that it is not
/// logged.
pub(super) fn add_secret_header(request: Builder, name: &'static str, key: Option<&str>) -> Builder {
    let Some(Ok(mut value)) = key.map(HeaderValue::from_str) else { return request };
    value.set_sensitive(true);
    request.header(name, value)
}

/// Adds a key, if there is one, as a bearer token.
pub(super) fn add_bearer(request: Builder, key: Option<&str>) -> Builder {
    add_secret_header(request, "authorization", key.map(|key| format!("Bearer {key}")).as_deref())
}

/// HTTP request to a service.
pub(super) struct ServiceRequest {
    pub(super) url: String,
    pub(super) body: Value,
}

impl ServiceKind {
    /// All kinds.
    pub const ALL: [ServiceKind; 4] =
        [ServiceKind::OpenAi, ServiceKind::Anthropic, ServiceKind::Gemini, ServiceKind::Ollama];

    /// Returns the name in a configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ServiceKind::OpenAi => "openai",
            ServiceKind::Anthropic => "anthropic",
            ServiceKind::Gemini => "gemini",
            ServiceKind::Ollama => "ollama",
        }
    }

    /// Returns the kind with that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<ServiceKind> {
        ServiceKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns an example of a base URL.
    pub(crate) fn example_url(self) -> &'static str {
        match self {
            ServiceKind::OpenAi => "http://127.0.0.1:9100/v1",
            ServiceKind::Anthropic => "https://api.anthropic.com",
            ServiceKind::Gemini => "https://generativelanguage.googleapis.com",
            ServiceKind::Ollama => "http://127.0.0.1:11434",
        }
    }

    /// Returns the path that is appended to a base URL, as messages show it.
    pub(crate) fn path(self) -> &'static str {
        match self {
            ServiceKind::OpenAi => "/chat/completions",
            ServiceKind::Anthropic => "/v1/messages",
            ServiceKind::Gemini => "/v1beta/models/...",
            ServiceKind::Ollama => "/api/chat",
        }
    }

    /// Returns the name of the provider in traces, by the OpenTelemetry convention.
    pub(super) fn provider(self) -> &'static str {
        match self {
            ServiceKind::Gemini => "gcp.gemini",
            ServiceKind::OpenAi | ServiceKind::Anthropic | ServiceKind::Ollama => self.name(),
        }
    }

    /// Builds a request to a service of this kind at `base`, a URL without a trailing slash.
    ///
    /// # Errors
    /// The prompt cannot be converted for the service, or it needs a model and none is named.
    pub(super) fn build_request(
        self,
        base: &str,
        model: Option<&str>,
        request: &ModelRequest,
    ) -> Result<ServiceRequest, Failure> {
        match self {
            ServiceKind::OpenAi => Ok(openai::build_request(base, model, request)),
            ServiceKind::Anthropic => anthropic::build_request(base, model, request),
            ServiceKind::Gemini => gemini::build_request(base, model, request),
            ServiceKind::Ollama => ollama::build_request(base, model, request),
        }
    }

    /// Adds the headers of a request, with the key of the service.
    pub(super) fn add_headers(self, request: Builder, key: Option<&str>) -> Builder {
        match self {
            ServiceKind::OpenAi => openai::add_headers(request, key),
            ServiceKind::Anthropic => anthropic::add_headers(request, key),
            ServiceKind::Gemini => gemini::add_headers(request, key),
            ServiceKind::Ollama => ollama::add_headers(request, key),
        }
    }

    /// Returns `true` if responses are JSON lines instead of SSE.
    pub(super) fn has_lines(self) -> bool {
        self == ServiceKind::Ollama
    }

    /// Creates a decoder for the reply to the message of this id.
    pub(super) fn frame_decoder(self, message: &Arc<str>) -> Box<dyn FrameDecoder> {
        match self {
            ServiceKind::OpenAi => Box::new(openai::OpenAiFrames::new(message)),
            ServiceKind::Anthropic => Box::new(anthropic::AnthropicFrames::new(message)),
            ServiceKind::Gemini => Box::new(gemini::GeminiFrames::new(message)),
            ServiceKind::Ollama => Box::new(ollama::OllamaFrames::new(message)),
        }
    }
}

/// Kind of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamKind {
    /// Service over HTTP.
    Service(ServiceKind),
    /// Recordings in a file.
    Replay,
    /// Built-in recordings.
    Demo,
}

impl UpstreamKind {
    /// Returns all kinds, services first.
    pub fn all() -> impl Iterator<Item = UpstreamKind> {
        let services = ServiceKind::ALL.into_iter().map(UpstreamKind::Service);
        services.chain([UpstreamKind::Replay, UpstreamKind::Demo])
    }

    /// Returns the name in a configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            UpstreamKind::Service(kind) => kind.name(),
            UpstreamKind::Replay => "replay",
            UpstreamKind::Demo => "demo",
        }
    }

    /// Returns the kind with that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<UpstreamKind> {
        UpstreamKind::all().find(|kind| kind.name() == name)
    }

    /// Returns the form in which a flag or variable gives an upstream of this kind, such as `replay=FILE`.
    #[must_use]
    pub fn argument_form(self) -> String {
        match self {
            UpstreamKind::Service(kind) => format!("{}=URL", kind.name()),
            UpstreamKind::Replay => format!("{}=FILE", self.name()),
            UpstreamKind::Demo => self.name().to_owned(),
        }
    }

    /// Lists the forms of all kinds in one text, each between two `mark`s, such as backticks.
    #[must_use]
    pub fn list_argument_forms(mark: &str) -> String {
        let forms: Vec<String> =
            UpstreamKind::all().map(|kind| format!("{mark}{}{mark}", kind.argument_form())).collect();
        match forms.split_last() {
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => String::new(),
        }
    }
}
