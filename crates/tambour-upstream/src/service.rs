//! Service over HTTP: requests, retries and refusals. The kind of the service determines the format of
//! requests and responses.

use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use serde_json::{Map, Value};
use tambour::event::{Failure, UpstreamRefusal};
use tokio::time::Instant;

use super::CallTarget;
use super::client::{ConnectError, ServiceClient};
use super::constraint::{ConstraintProbes, ConstraintServer, ServiceIdentity};
use super::fields::merge;
use super::kind::{ServiceKind, ServiceRequest};
use super::redact::redact;
use super::stream::HttpReply;
use super::{ModelRequest, Timeouts, new_failure, retry};

/// Configured service.
pub struct HttpService {
    kind: ServiceKind,
    client: ServiceClient,
    /// Server, if the configuration names it.
    server: Option<&'static ConstraintServer>,
    /// Results of the probes for constraints.
    probes: ConstraintProbes,
    /// Model of requests that name none.
    model: Option<String>,
    key: Option<String>,
    timeouts: Timeouts,
}

/// Failure of a request before its reply.
#[derive(Clone, Debug)]
pub(super) struct OpenFailure {
    pub(super) failure: Failure,
    /// Status of the response, if there was one that is an error.
    pub(super) status: Option<StatusCode>,
}

impl From<Failure> for OpenFailure {
    fn from(failure: Failure) -> OpenFailure {
        OpenFailure { failure, status: None }
    }
}

impl HttpService {
    /// Creates the client of a service at `base`, such as `http://127.0.0.1:9100/v1`.
    ///
    /// # Errors
    /// The client cannot be created.
    pub fn new(
        kind: ServiceKind,
        base: &str,
        model: Option<String>,
        key: Option<String>,
        timeouts: Timeouts,
    ) -> Result<HttpService, rustls::Error> {
        let client = ServiceClient::new(base, Duration::from_millis(timeouts.connect_ms))?;
        let (server, probes) = (None, ConstraintProbes::default());
        Ok(HttpService { kind, client, server, probes, model, key, timeouts })
    }

    /// Sets the server, if it is known, and the results of probes that all upstreams share.
    pub(super) fn with_constraints(
        self,
        server: Option<&'static ConstraintServer>,
        probes: ConstraintProbes,
    ) -> HttpService {
        HttpService { server, probes, ..self }
    }

    /// Returns the servers that the service can be, in the order in which they are probed.
    pub(super) fn constraint_servers(&self) -> Vec<&'static ConstraintServer> {
        let known = self.server.map(|server| vec![server]);
        known.unwrap_or_else(|| ConstraintServer::candidates(self.kind, self.client.base()))
    }

    /// Returns the results of the probes for constraints.
    pub(super) fn probes(&self) -> &ConstraintProbes {
        &self.probes
    }

    /// Returns the longest time from a request to the first byte of its reply.
    pub(super) fn first_byte_timeout(&self) -> Duration {
        self.timeouts.first_byte()
    }

    /// Returns the service as far as the result of a probe depends on it.
    pub(super) fn identity(&self) -> ServiceIdentity {
        let server = self.server.map(|server| server.name);
        ServiceIdentity::new(self.kind.name(), server, self.client.base(), self.key.as_deref())
    }

    /// Returns the model of requests that name none.
    pub(super) fn default_model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Returns `true` if requests carry a key.
    pub(super) fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// Returns provider, base URL and model of a request, for its span.
    pub(super) fn call_target<'a>(&'a self, request: &'a ModelRequest) -> CallTarget<'a> {
        let model = request.model.as_deref().or(self.model.as_deref());
        CallTarget { provider: self.kind.api().provider(), base: Some(self.client.base()), model }
    }

    /// Sends a request with these headers and these further members of its body, and again if an attempt fails
    /// before a reply has begun, unless `is_final` for its failure. `on_failure` is called for each failed
    /// attempt, with the pause before the next one, if any; after a final failure another request follows at
    /// once.
    ///
    /// # Errors
    /// The request cannot be built, or the last attempt failed.
    pub(super) async fn open(
        &self,
        model_request: &ModelRequest,
        headers: HeaderMap,
        members: &Map<String, Value>,
        is_final: impl Fn(&OpenFailure) -> bool,
        on_failure: impl FnMut(&Failure, Option<Duration>),
    ) -> Result<HttpReply, Failure> {
        let open_result = self.try_open(model_request, headers, members, is_final, on_failure).await;
        open_result.map_err(|failure| failure.failure)
    }

    /// Sends a request like [`HttpService::open`]; the error has the status of the response.
    pub(super) async fn try_open(
        &self,
        model_request: &ModelRequest,
        headers: HeaderMap,
        members: &Map<String, Value>,
        is_final: impl Fn(&OpenFailure) -> bool,
        mut on_failure: impl FnMut(&Failure, Option<Duration>),
    ) -> Result<HttpReply, OpenFailure> {
        let model = model_request.model.as_deref().or(self.model.as_deref());
        let mut request = self
            .kind
            .api()
            .build_request(self.client.base(), model, model_request)
            .inspect_err(|failure| on_failure(failure, None))?;
        if let Value::Object(body) = &mut request.body {
            merge(body, members.clone());
        }
        let request_time = Instant::now();
        let mut attempt = 1;
        loop {
            let next_pause = |headers: Option<&HeaderMap>| {
                retry::retry_pause(attempt + 1, headers, &self.timeouts, model_request.has_fallback)
            };
            let first_byte_deadline =
                (Instant::now() + self.timeouts.first_byte()).min(request_time + self.timeouts.total());
            let (failure, pause) = match self.send(&request, &headers, first_byte_deadline).await {
                Ok(response) if response.status().is_success() => {
                    return Ok(HttpReply::new(
                        self.kind,
                        response,
                        self.timeouts,
                        request_time,
                        first_byte_deadline,
                        model_request,
                    ));
                }
                Ok(response) => {
                    let status = response.status();
                    let pause =
                        retry::is_retryable(status).then(|| next_pause(Some(response.headers()))).flatten();
                    let failure = refusal_failure(status, response).await;
                    (OpenFailure { failure, status: Some(status) }, pause)
                }
                Err(failure) => {
                    let pause = failure.retryable.then(|| next_pause(None)).flatten();
                    (failure.into(), pause)
                }
            };
            if is_final(&failure) {
                on_failure(&failure.failure, Some(Duration::ZERO));
                return Err(failure);
            }
            on_failure(&failure.failure, pause);
            let Some(pause) = pause else { return Err(failure) };
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }

    /// Sends a request once, and waits until `deadline` for the head of the response.
    async fn send(
        &self,
        ServiceRequest { url, body }: &ServiceRequest,
        headers: &HeaderMap,
        deadline: Instant,
    ) -> Result<Response<Incoming>, Failure> {
        let mut request = http::Request::post(url).header(CONTENT_TYPE, "application/json");
        if let Some(request_headers) = request.headers_mut() {
            request_headers.extend(headers.clone());
        }
        let request = self.kind.api().add_headers(request, self.key.as_deref());
        let request = request.body(Full::from(body.to_string())).map_err(|error| {
            new_failure(
                "upstream_refused",
                format!("the request for the upstream cannot be built: {error}"),
                false,
            )
        })?;
        match tokio::time::timeout_at(deadline, self.client.send(request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(ConnectError::Timeout)) => Err(new_failure(
                "upstream_timeout",
                "the upstream did not accept the connection in time",
                true,
            )),
            Ok(Err(ConnectError::Unreachable)) => {
                Err(new_failure("upstream_unreachable", "the upstream cannot be reached", true))
            }
            Ok(Err(ConnectError::Closed)) => {
                Err(new_failure("upstream_closed", "the upstream closed the connection", true))
            }
            // Not retried: the service may still work on the request, and a second one would cost twice.
            Err(_) => Err(new_failure("upstream_timeout", "the upstream sent nothing in time", false)),
        }
    }
}

/// Longest time to read the body of an error response.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of bytes of an error response after which its body is read no further.
const MAX_ERROR_BYTES: usize = 16 << 10;

/// Returns the failure for an error status, with the error text of the service, shortened and redacted.
async fn refusal_failure(status: StatusCode, response: Response<Incoming>) -> Failure {
    let body = tokio::time::timeout(ERROR_BODY_TIMEOUT, read_error_body(response)).await.unwrap_or_default();
    let body = serde_json::from_slice::<Value>(&body).unwrap_or_default();
    let reason = error_text(&body);
    let (code, retryable) = match status.as_u16() {
        401 | 403 => ("upstream_unauthorized", false),
        429 => ("upstream_rate_limited", true),
        500.. => ("upstream_error", true),
        _ => ("upstream_refused", false),
    };
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    let mut failure =
        new_failure(code, format!("the upstream answered {}{reason}", status.as_u16()), retryable);
    if code == "upstream_refused" && status.is_client_error() {
        failure.upstream =
            Some(Box::new(UpstreamRefusal { status: status.as_u16(), code: error_code(&body) }));
    }
    failure
}

/// Reads the body of an error response, up to the chunk in which it exceeds `MAX_ERROR_BYTES`.
async fn read_error_body(mut response: Response<Incoming>) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(Ok(frame)) = response.frame().await {
        body.extend_from_slice(&frame.into_data().unwrap_or_default());
        if body.len() > MAX_ERROR_BYTES {
            break;
        }
    }
    body
}

/// Returns the redacted message of an error body: `{"error": {"message": ...}}` or `{"error": "..."}`, also
/// as the first element of a list.
pub(super) fn error_text(body: &Value) -> Option<String> {
    let body = body.get(0).unwrap_or(body);
    let error = body.get("error")?;
    let text = error.as_str().or_else(|| error.get("message")?.as_str())?;
    Some(redact(text))
}

/// Returns the code of an error body, such as `context_length_exceeded`, unless it may be a secret.
fn error_code(body: &Value) -> Option<String> {
    let body = body.get(0).unwrap_or(body);
    let error = body.get("error")?;
    let code = ["code", "status", "type"].iter().find_map(|name| error.get(*name)?.as_str())?;
    let is_code_char = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let is_plain = (1..=64).contains(&code.len()) && code.chars().all(is_code_char) && redact(code) == code;
    is_plain.then(|| code.to_owned())
}
