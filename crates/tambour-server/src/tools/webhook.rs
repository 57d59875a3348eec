//! Webhook calls: signed, bounded in time and size, and only to checked addresses.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::http::HeaderMap;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use ring::hmac;
use serde::Serialize;
use serde_json::Value;

use super::guard::WebhookRefusal;
use super::{CallError, HiddenText, SECRET_ENV_PREFIX, ToolLimits, WebhookGuard};
use crate::base::clock;
use crate::telemetry::TraceSpan;

/// Client that calls webhooks, as far as its access rule allows.
pub(crate) struct WebhookClient {
    guard: WebhookGuard,
    limits: ToolLimits,
    /// HTTP client, created on first use.
    client: OnceLock<reqwest::Client>,
}

/// Body of a webhook call.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct WebhookRequest<'a> {
    pub(crate) message_id: &'a str,
    pub(crate) call_id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) args: &'a Value,
    /// Caller on whose behalf the tool runs (P-033).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) caller: Option<&'a str>,
}

/// Maximum number of bytes read of an error response.
const MAX_ERROR_BYTES: usize = 4 << 10;
/// Maximum number of characters of an error response that are quoted in the error of the call.
const MAX_ERROR_CHARS: usize = 500;

impl WebhookClient {
    pub(crate) fn new(limits: &ToolLimits) -> WebhookClient {
        WebhookClient { guard: WebhookGuard::new(limits), limits: limits.clone(), client: OnceLock::new() }
    }

    /// Returns the access rule for URLs and addresses.
    pub(crate) fn guard(&self) -> &WebhookGuard {
        &self.guard
    }

    /// Sends a call once; returns the response of the webhook. A secret signs the call: that from the
    /// environment variable `secret_env`, if it is given, otherwise `secret`, if any. Without `timeout_ms`,
    /// the default timeout applies.
    pub(crate) async fn call(
        &self,
        url: &str,
        (secret, secret_env): (Option<&HiddenText>, Option<&str>),
        timeout_ms: Option<u64>,
        request: &WebhookRequest<'_>,
        span: &TraceSpan,
    ) -> Result<Value, CallError> {
        let url = self.guard.check_url(url).map_err(CallError::Host)?;
        let from_env = secret_env.map(secret_from_env).transpose()?;
        let secret = from_env.as_ref().or(secret);
        let timeout_ms = timeout_ms.unwrap_or(self.limits.timeout_ms).min(self.limits.max_timeout_ms);
        let body = serde_json::to_string(request).unwrap_or_default();
        let idempotency_key = format!("{}:{}", request.message_id, request.call_id);
        let mut call = self.client()?.post(url).header("content-type", "application/json");
        call = call.header("accept", "application/json").header("idempotency-key", idempotency_key);
        let mut headers = HeaderMap::new();
        span.inject_headers(&mut headers);
        call = call.headers(headers);
        if let Some(secret) = secret {
            let unix_seconds = u64::try_from(clock::now().as_second()).unwrap_or_default();
            call = call.header("x-tambour-timestamp", unix_seconds);
            call = call.header("x-tambour-signature", sign_body(secret, unix_seconds, &body));
        }
        let response = tokio::time::timeout(Duration::from_millis(timeout_ms), self.send(call.body(body)));
        response.await.unwrap_or(Err(CallError::Timeout(timeout_ms)))
    }

    /// Sends a request and reads the response: JSON, or else text; `null` if it is empty.
    async fn send(&self, call: reqwest::RequestBuilder) -> Result<Value, CallError> {
        let mut response = call.send().await.map_err(|error| request_error(&error))?;
        let status = response.status();
        let max_bytes = if status.is_success() { self.limits.max_answer } else { MAX_ERROR_BYTES };
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| request_error(&error))? {
            body.extend_from_slice(&chunk);
            if body.len() > max_bytes {
                break;
            }
        }
        if !status.is_success() {
            let body_text = String::from_utf8_lossy(&body);
            let body_text: String = body_text.trim().chars().take(MAX_ERROR_CHARS).collect();
            return Err(CallError::Status(status.as_u16(), body_text));
        }
        if body.len() > max_bytes {
            return Err(CallError::TooLarge(max_bytes));
        }
        if body.trim_ascii().is_empty() {
            return Ok(Value::Null);
        }
        Ok(serde_json::from_slice(&body)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&body).into_owned())))
    }

    /// Returns the HTTP client of all calls. It uses no proxies, redirects or kept connections, so that each
    /// call goes to an address that was just checked.
    fn client(&self) -> Result<&reqwest::Client, CallError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        // Fails if a crypto provider is installed already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let result = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .pool_max_idle_per_host(0)
            .tcp_nodelay(true)
            .user_agent(concat!("tambour/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(Arc::new(GuardedResolver(self.guard.clone())))
            .build();
        match result {
            Ok(client) => Ok(self.client.get_or_init(|| client)),
            Err(build_error) => {
                tracing::error!(error = %build_error, "the HTTP client for webhooks cannot be created");
                Err(CallError::NoClient)
            }
        }
    }
}

/// DNS resolver that fails unless every address of the host may be called. The connection uses the checked
/// addresses.
struct GuardedResolver(WebhookGuard);

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.0.clone();
        Box::pin(async move {
            let addresses: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            for address in &addresses {
                guard.check_address(address.ip())?;
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// Reads a secret from an environment variable whose name has the prefix for secrets.
pub(crate) fn secret_from_env(name: &str) -> Result<HiddenText, CallError> {
    let is_allowed = name.starts_with(SECRET_ENV_PREFIX);
    let value = is_allowed.then(|| std::env::var(name).ok()).flatten().filter(|value| !value.is_empty());
    value.map(HiddenText).ok_or_else(|| CallError::NoSecret(name.to_owned()))
}

/// Computes the value of the signature header: HMAC-SHA256 over `TIMESTAMP.BODY`.
fn sign_body(secret: &HiddenText, timestamp: u64, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.0.as_bytes());
    let tag = hmac::sign(&key, format!("{timestamp}.{body}").as_bytes());
    let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={hex}")
}

/// Converts the error of a request: refused by the resolver's access rule, unreachable or broken off.
fn request_error(error: &reqwest::Error) -> CallError {
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if let Some(refusal) = inner.downcast_ref::<WebhookRefusal>() {
            return CallError::Address(refusal.clone());
        }
        source = inner.source();
    }
    if error.is_connect() { CallError::Unreachable } else { CallError::ConnectionBroken }
}

#[cfg(test)]
mod tests {
    use super::{HiddenText, sign_body};

    #[test]
    fn a_signature_matches_that_of_another_implementation() {
        let signature =
            sign_body(&HiddenText("key".into()), 1, "The quick brown fox jumps over the lazy dog");
        assert_eq!(signature, "sha256=3ff4d3cc115b639a16dc5b217aa5c89be41d1e4b54efc356d63d0cd2a65b30f1");
    }
}
