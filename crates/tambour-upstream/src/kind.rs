//! Kinds of upstreams: recordings, and services, each with its own interface. A new service needs a folder
//! with its [`ServiceApi`], and a variant of [`ServiceKind`].

use std::sync::Arc;

use http::HeaderValue;
use http::request::Builder;
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
/// logged. A key that is not valid in a header is left out; the configuration refuses such keys.
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

/// Interface of one kind of service: it builds requests and reads responses.
pub(super) trait ServiceApi: Sync {
    /// Returns the name of the kind in a configuration.
    fn name(&self) -> &'static str;

    /// Returns an example of a base URL.
    fn example_url(&self) -> &'static str;

    /// Returns the path that is appended to a base URL, for error messages about the base URL.
    fn path(&self) -> &'static str;

    /// Returns the name of the provider in traces, in the OpenTelemetry convention.
    fn provider(&self) -> &'static str {
        self.name()
    }

    /// Builds a request to a service at `base`, which has no trailing slash.
    ///
    /// # Errors
    /// The request cannot be sent to this kind of service: no model is named, or a part of a message cannot
    /// be converted.
    fn build_request(
        &self,
        base: &str,
        model: Option<&str>,
        request: &ModelRequest,
    ) -> Result<ServiceRequest, Failure>;

    /// Adds the headers of a request, with the key if there is one.
    fn add_headers(&self, request: Builder, key: Option<&str>) -> Builder;

    /// Returns `true` if responses are JSON lines instead of SSE.
    fn sends_json_lines(&self) -> bool {
        false
    }

    /// Creates a decoder of frames for the reply to a message.
    fn frame_decoder(&self, message_id: &Arc<str>) -> Box<dyn FrameDecoder>;
}

impl ServiceKind {
    /// All kinds.
    pub const ALL: [ServiceKind; 4] =
        [ServiceKind::OpenAi, ServiceKind::Anthropic, ServiceKind::Gemini, ServiceKind::Ollama];

    /// Returns the interface of services of this kind.
    pub(super) fn api(self) -> &'static dyn ServiceApi {
        match self {
            ServiceKind::OpenAi => &openai::OpenAiApi,
            ServiceKind::Anthropic => &anthropic::AnthropicApi,
            ServiceKind::Gemini => &gemini::GeminiApi,
            ServiceKind::Ollama => &ollama::OllamaApi,
        }
    }

    /// Returns the name of the kind in a configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.api().name()
    }

    /// Returns the kind with that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<ServiceKind> {
        ServiceKind::ALL.into_iter().find(|kind| kind.name() == name)
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

    /// Returns the form in which a flag or variable defines an upstream of this kind, such as `replay=FILE`.
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
