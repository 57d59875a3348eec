//! The kinds of services, each with its own interface. A new one is a folder, and a line in each match here.

use std::sync::Arc;

use axum::http::HeaderValue;
use axum::http::request::Builder;
use serde_json::Value;
use tambour::event::Failure;

use super::decode::Reading;
use super::{Ask, anthropic, gemini, ollama, openai};

/// What a service speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The chat completions interface.
    OpenAi,
    /// The Messages interface of Anthropic.
    Anthropic,
    /// The interface of Gemini.
    Gemini,
    /// The interface of Ollama.
    Ollama,
}

/// Puts a key into a header of its own, which is shown nowhere.
pub(super) fn secret(request: Builder, name: &'static str, key: Option<&str>) -> Builder {
    let Some(Ok(mut value)) = key.map(HeaderValue::from_str) else { return request };
    value.set_sensitive(true);
    request.header(name, value)
}

/// Puts a key into the header that most services read.
pub(super) fn bearer(request: Builder, key: Option<&str>) -> Builder {
    secret(request, "authorization", key.map(|key| format!("Bearer {key}")).as_deref())
}

/// A request as it is sent.
pub(super) struct Request {
    pub(super) url: String,
    pub(super) body: Value,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 4] = [Kind::OpenAi, Kind::Anthropic, Kind::Gemini, Kind::Ollama];

    /// Its name in a configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::OpenAi => "openai",
            Kind::Anthropic => "anthropic",
            Kind::Gemini => "gemini",
            Kind::Ollama => "ollama",
        }
    }

    /// The kind of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// A base URL of such a service.
    pub(crate) fn example(self) -> &'static str {
        match self {
            Kind::OpenAi => "http://127.0.0.1:9100/v1",
            Kind::Anthropic => "https://api.anthropic.com",
            Kind::Gemini => "https://generativelanguage.googleapis.com",
            Kind::Ollama => "http://127.0.0.1:11434",
        }
    }

    /// What is put behind a base URL.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Kind::OpenAi => "/chat/completions",
            Kind::Anthropic => "/v1/messages",
            Kind::Gemini => "/v1beta/models/...",
            Kind::Ollama => "/api/chat",
        }
    }

    /// What is sent to a service of the kind below `base`, which does not end with a slash.
    pub(super) fn request(self, base: &str, model: Option<&str>, ask: &Ask) -> Result<Request, Failure> {
        match self {
            Kind::OpenAi => Ok(openai::request(base, model, ask)),
            Kind::Anthropic => anthropic::request(base, model, ask),
            Kind::Gemini => gemini::request(base, model, ask),
            Kind::Ollama => ollama::request(base, model, ask),
        }
    }

    /// The headers of a request.
    pub(super) fn headers(self, request: Builder, key: Option<&str>) -> Builder {
        match self {
            Kind::OpenAi => openai::headers(request, key),
            Kind::Anthropic => anthropic::headers(request, key),
            Kind::Gemini => gemini::headers(request, key),
            Kind::Ollama => ollama::headers(request, key),
        }
    }

    /// Whether an answer is lines of JSON, and not frames of a stream.
    pub(super) fn has_lines(self) -> bool {
        self == Kind::Ollama
    }

    /// What reads an answer.
    pub(super) fn reading(self, message: &Arc<str>) -> Box<dyn Reading> {
        match self {
            Kind::OpenAi => Box::new(openai::Frames::new(message)),
            Kind::Anthropic => Box::new(anthropic::Frames::new(message)),
            Kind::Gemini => Box::new(gemini::Frames::new(message)),
            Kind::Ollama => Box::new(ollama::Frames::new(message)),
        }
    }
}
