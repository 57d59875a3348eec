//! Kinds of services, each with its own interface. A new one is a folder, and a line in each match here.

use std::sync::Arc;

use axum::http::HeaderValue;
use axum::http::request::Builder;
use serde_json::Value;
use tambour::event::Failure;

use super::decode::Reading;
use super::{Ask, anthropic, gemini, ollama, openai};

/// Kind of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Chat completions interface of OpenAI.
    OpenAi,
    /// Messages interface of Anthropic.
    Anthropic,
    /// Interface of Gemini.
    Gemini,
    /// Interface of Ollama.
    Ollama,
}

/// Adds a key in the header `name`, marked as sensitive.
pub(super) fn secret(request: Builder, name: &'static str, key: Option<&str>) -> Builder {
    let Some(Ok(mut value)) = key.map(HeaderValue::from_str) else { return request };
    value.set_sensitive(true);
    request.header(name, value)
}

/// Adds a key as a bearer token.
pub(super) fn bearer(request: Builder, key: Option<&str>) -> Builder {
    secret(request, "authorization", key.map(|key| format!("Bearer {key}")).as_deref())
}

/// Request to send.
pub(super) struct Request {
    pub(super) url: String,
    pub(super) body: Value,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 4] = [Kind::OpenAi, Kind::Anthropic, Kind::Gemini, Kind::Ollama];

    /// Returns its name in a configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::OpenAi => "openai",
            Kind::Anthropic => "anthropic",
            Kind::Gemini => "gemini",
            Kind::Ollama => "ollama",
        }
    }

    /// Returns the kind with that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns an example of a base URL.
    pub(crate) fn example(self) -> &'static str {
        match self {
            Kind::OpenAi => "http://127.0.0.1:9100/v1",
            Kind::Anthropic => "https://api.anthropic.com",
            Kind::Gemini => "https://generativelanguage.googleapis.com",
            Kind::Ollama => "http://127.0.0.1:11434",
        }
    }

    /// Returns the path that is appended to a base URL.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Kind::OpenAi => "/chat/completions",
            Kind::Anthropic => "/v1/messages",
            Kind::Gemini => "/v1beta/models/...",
            Kind::Ollama => "/api/chat",
        }
    }

    /// Builds a request to a service of the kind at `base`, which has no trailing slash.
    pub(super) fn request(self, base: &str, model: Option<&str>, ask: &Ask) -> Result<Request, Failure> {
        match self {
            Kind::OpenAi => Ok(openai::request(base, model, ask)),
            Kind::Anthropic => anthropic::request(base, model, ask),
            Kind::Gemini => gemini::request(base, model, ask),
            Kind::Ollama => ollama::request(base, model, ask),
        }
    }

    /// Adds the headers of a request.
    pub(super) fn headers(self, request: Builder, key: Option<&str>) -> Builder {
        match self {
            Kind::OpenAi => openai::headers(request, key),
            Kind::Anthropic => anthropic::headers(request, key),
            Kind::Gemini => gemini::headers(request, key),
            Kind::Ollama => ollama::headers(request, key),
        }
    }

    /// Returns `true` if responses are JSON lines instead of SSE.
    pub(super) fn has_lines(self) -> bool {
        self == Kind::Ollama
    }

    /// Returns the frame decoder of the kind.
    pub(super) fn reading(self, message: &Arc<str>) -> Box<dyn Reading> {
        match self {
            Kind::OpenAi => Box::new(openai::Frames::new(message)),
            Kind::Anthropic => Box::new(anthropic::Frames::new(message)),
            Kind::Gemini => Box::new(gemini::Frames::new(message)),
            Kind::Ollama => Box::new(ollama::Frames::new(message)),
        }
    }
}
