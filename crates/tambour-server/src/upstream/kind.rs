//! The kinds of services, each with its own interface.

use std::sync::Arc;

use reqwest::RequestBuilder;
use serde_json::Value;
use tambour::event::Failure;

use super::decode::Reading;
use super::{Ask, openai};

/// What a service speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The chat completions interface.
    OpenAi,
}

/// A request as it is sent.
pub(super) struct Request {
    pub(super) url: String,
    pub(super) body: Value,
}

impl Kind {
    /// What is sent to a service of the kind below `base`.
    pub(super) fn request(self, base: &str, model: Option<&str>, ask: &Ask) -> Result<Request, Failure> {
        match self {
            Kind::OpenAi => Ok(openai::request(base, model, ask)),
        }
    }

    /// The headers of a request.
    pub(super) fn headers(self, request: RequestBuilder, key: Option<&str>) -> RequestBuilder {
        match self {
            Kind::OpenAi => {
                let request = request.header("accept", "text/event-stream");
                key.into_iter().fold(request, RequestBuilder::bearer_auth)
            }
        }
    }

    /// What reads an answer.
    pub(super) fn reading(self, message: &Arc<str>) -> Box<dyn Reading> {
        match self {
            Kind::OpenAi => Box::new(openai::Frames::new(message)),
        }
    }
}
