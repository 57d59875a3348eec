//! Export of spans to an OpenTelemetry collector, in batches in the background. Batches that the collector
//! does not accept in time are dropped.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry::KeyValue;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tokio::runtime::Handle;

use super::TelemetryConfig;
use crate::urls::is_local_host;

/// Timeout for sending a batch, and for sending the last batches at shutdown.
pub(super) const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of bytes read from a response of the collector.
const MAX_RESPONSE_BYTES: usize = 64 << 10;

/// Creates the provider of spans that are sent to a collector.
pub(super) fn build_provider(
    endpoint: &str,
    config: &TelemetryConfig,
) -> Result<SdkTracerProvider, HttpError> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(ExportClient::new(endpoint)?)
        .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(EXPORT_TIMEOUT)
        .build()?;
    let resource = Resource::builder()
        .with_service_name(config.service_name.clone())
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(config.sample_ratio)));
    Ok(SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_sampler(sampler)
        .with_resource(resource)
        .build())
}

/// HTTP client that sends batches on the server's async runtime: the thread of the exporter has no runtime.
#[derive(Debug)]
struct ExportClient {
    client: reqwest::Client,
    runtime: Handle,
    /// True if the last batch was refused or not sent.
    is_failing: AtomicBool,
}

impl ExportClient {
    fn new(endpoint: &str) -> Result<ExportClient, HttpError> {
        // Fails if a crypto provider is installed already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .timeout(EXPORT_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("tambour/", env!("CARGO_PKG_VERSION")));
        if url::Url::parse(endpoint)?.host_str().is_some_and(is_local_host) {
            // Proxies of the environment are not used for local hosts.
            builder = builder.no_proxy();
        }
        Ok(ExportClient {
            client: builder.build()?,
            runtime: Handle::current(),
            is_failing: AtomicBool::new(false),
        })
    }
}

#[async_trait]
impl HttpClient for ExportClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let result = match self.runtime.spawn(send(self.client.clone(), request)).await {
            Ok(result) => result,
            Err(error) => Err(error.into()),
        };
        let error_text = match &result {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!("it answered {}", response.status().as_u16())),
            Err(error) => Some(error.to_string()),
        };
        // Only changes are logged, not each batch.
        let was_failing = self.is_failing.swap(error_text.is_some(), Ordering::Relaxed);
        match error_text {
            Some(error) if !was_failing => tracing::warn!(error, "the collector does not accept traces"),
            None if was_failing => tracing::info!("the collector accepts traces again"),
            _ => {}
        }
        result
    }
}

/// Sends a batch and reads the response.
async fn send(client: reqwest::Client, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    // The URL may contain a password.
    let mut answer = client.execute(request.try_into()?).await.map_err(reqwest::Error::without_url)?;
    let mut response = Response::builder().status(answer.status());
    if let Some(headers) = response.headers_mut() {
        headers.clone_from(answer.headers());
    }
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(reqwest::Error::without_url)? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_RESPONSE_BYTES {
            return Err("the collector's answer is too long".into());
        }
    }
    Ok(response.body(body.into())?)
}
