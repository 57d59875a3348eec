//! A service over HTTP: asking it, asking it again where that is worth it, and what its refusals mean. What it is sent and what its
//! answer says is its kind's.

use std::time::Duration;

use reqwest::Url;
use serde_json::Value;
use tambour::event::Failure;
use tokio::time::Instant;

use super::kind::{Kind, Request};
use super::redact::redacted;
use super::stream::Stream;
use super::{Ask, Timeouts, failure, retry};

/// One configured service.
pub struct Service {
    kind: Kind,
    client: reqwest::Client,
    base: String,
    model: Option<String>,
    key: Option<String>,
    timeouts: Timeouts,
}

impl Service {
    /// A service below `base`, such as `http://127.0.0.1:9100/v1`.
    ///
    /// # Errors
    /// The client cannot be made.
    pub fn new(
        kind: Kind,
        base: &str,
        model: Option<String>,
        key: Option<String>,
        timeouts: Timeouts,
    ) -> Result<Service, reqwest::Error> {
        // The one provider of the process; a second client in it finds it installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client = reqwest::Client::builder()
            .connect_timeout(Duration::from_millis(timeouts.connect_ms))
            .tcp_nodelay(true)
            .redirect(reqwest::redirect::Policy::none());
        let host = Url::parse(base).ok().and_then(|url| url.host_str().map(str::to_owned));
        if host.is_some_and(|host| is_local(&host)) {
            // A proxy of the environment is for the world outside.
            client = client.no_proxy();
        }
        let client = client.build()?;
        Ok(Service { kind, client, base: base.trim_end_matches('/').to_owned(), model, key, timeouts })
    }

    /// Asks, and asks again while nothing has come and it is worth it. Each attempt that fails is told, with the time until the
    /// next one, if there is one.
    pub(super) async fn open(
        &self,
        ask: &Ask,
        mut failed: impl FnMut(&Failure, Option<Duration>),
    ) -> Result<Stream, Failure> {
        let model = ask.model.as_deref().or(self.model.as_deref());
        let request =
            self.kind.request(&self.base, model, ask).inspect_err(|failure| failed(failure, None))?;
        let mut attempt = 1;
        loop {
            let deadline = Instant::now() + self.timeouts.first_byte();
            let (failure, wait) = match self.send(&request, deadline).await {
                Ok(response) if response.status().is_success() => {
                    return Ok(Stream::new(self.kind, response, self.timeouts, deadline, &ask.message));
                }
                Ok(response) => {
                    let status = response.status();
                    let wait = retry::worth(status)
                        .then(|| retry::wait(attempt + 1, Some(response.headers()), &self.timeouts))
                        .flatten()
                        .filter(|wait| !ask.hurry || *wait <= retry::SHORT);
                    (refused(status, response).await, wait)
                }
                Err(failure) => {
                    let wait =
                        failure.retryable.then(|| retry::wait(attempt + 1, None, &self.timeouts)).flatten();
                    (failure, wait)
                }
            };
            failed(&failure, wait);
            let Some(wait) = wait else { return Err(failure) };
            tokio::time::sleep(wait).await;
            attempt += 1;
        }
    }

    async fn send(
        &self,
        Request { url, body }: &Request,
        deadline: Instant,
    ) -> Result<reqwest::Response, Failure> {
        let request = self.kind.headers(self.client.post(url), self.key.as_deref()).json(body);
        match tokio::time::timeout_at(deadline, request.send()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) if error.is_connect() && error.is_timeout() => {
                Err(failure("upstream_timeout", "the upstream did not accept the connection in time", true))
            }
            Ok(Err(error)) if error.is_connect() => {
                Err(failure("upstream_unreachable", "the upstream cannot be reached", true))
            }
            Ok(Err(_)) => Err(failure("upstream_closed", "the upstream closed the connection", true)),
            // The request may be at work: asking again could pay twice.
            Err(_) => Err(failure("upstream_timeout", "the upstream sent nothing in time", false)),
        }
    }
}

/// The failure behind an error status. The service's own words are kept, shortened and without secrets.
async fn refused(status: reqwest::StatusCode, response: reqwest::Response) -> Failure {
    let body = tokio::time::timeout(Duration::from_secs(5), limited(response)).await.unwrap_or_default();
    let said = serde_json::from_slice::<Value>(&body).ok().and_then(|body| error_text(&body));
    let (code, retryable) = match status.as_u16() {
        401 | 403 => ("upstream_unauthorized", false),
        429 => ("upstream_rate_limited", true),
        500.. => ("upstream_error", true),
        _ => ("upstream_refused", false),
    };
    let said = said.map_or_else(String::new, |said| format!(": {said}"));
    failure(code, format!("the upstream answered {}{said}", status.as_u16()), retryable)
}

/// At most 16 KiB of an error body.
async fn limited(mut response: reqwest::Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() > 16 << 10 {
            break;
        }
    }
    body
}

/// The message of `{"error": {...}}` or `{"error": "..."}`, also of the first in a list of such.
pub(super) fn error_text(body: &Value) -> Option<String> {
    let body = body.get(0).unwrap_or(body);
    let error = body.get("error")?;
    let text = error.as_str().or_else(|| error.get("message")?.as_str())?;
    Some(redacted(text))
}

/// Whether a host is this machine.
pub(crate) fn is_local(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
