//! Configuration of tracing.

use serde::{Deserialize, Serialize};
use url::Url;

use crate::origins::{ConfigError, ValueOrigins};
use crate::urls::mask_url;

/// Tracing to an OpenTelemetry collector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TelemetryConfig {
    /// Base URL of a collector that accepts OTLP over HTTP; `/v1/traces` is appended. Without it nothing is
    /// traced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otlp_endpoint: Option<String>,
    /// Service name in traces.
    pub service_name: String,
    /// Fraction of messages that is traced, 0 to 1. A `traceparent` of the request takes precedence.
    pub sample_ratio: f64,
    /// Includes prompts, replies, and arguments and results of tools in traces.
    pub content: bool,
}

impl Default for TelemetryConfig {
    fn default() -> TelemetryConfig {
        TelemetryConfig {
            otlp_endpoint: None,
            service_name: "tambour".to_owned(),
            sample_ratio: 1.0,
            content: false,
        }
    }
}

impl TelemetryConfig {
    /// Returns the endpoint of the collector, if there is one.
    pub fn endpoint(&self) -> Option<&str> {
        self.otlp_endpoint.as_deref().map(str::trim).filter(|endpoint| !endpoint.is_empty())
    }

    /// Masks possible secrets in the endpoint, to show the configuration.
    pub fn mask(&mut self) {
        self.otlp_endpoint = self.otlp_endpoint.take().map(|url| mask_url(&url));
    }

    /// Checks the configuration of tracing.
    ///
    /// # Errors
    /// The endpoint is not a base URL, the ratio is out of range, the service name is blank, or an endpoint
    /// is set although the server was built without tracing.
    pub fn check(&self, origins: &ValueOrigins) -> Result<(), ConfigError> {
        let telemetry_error =
            |field: &str, reason: &str| Err(origins.field_error(&format!("telemetry.{field}"), reason));
        if !(0.0..=1.0).contains(&self.sample_ratio) {
            return telemetry_error("sample_ratio", &format!("must be 0 to 1, not {}", self.sample_ratio));
        }
        if self.service_name.trim().is_empty() {
            return telemetry_error("service_name", "is empty");
        }
        let Some(endpoint) = self.endpoint() else { return Ok(()) };
        if cfg!(not(feature = "otel")) {
            return telemetry_error("otlp_endpoint", "needs a server that was built with the feature `otel`");
        }
        let masked_url = mask_url(endpoint);
        let hint = "it takes the base URL of a collector such as `http://127.0.0.1:4318`";
        match Url::parse(endpoint) {
            Ok(url) if !matches!(url.scheme(), "http" | "https") || !url.has_host() => {
                telemetry_error("otlp_endpoint", &format!("is `{masked_url}`; {hint}"))
            }
            Ok(url) if url.query().is_some() || url.fragment().is_some() => {
                telemetry_error("otlp_endpoint", &format!("is `{masked_url}`, with a query; {hint}"))
            }
            Ok(url) if url.path().trim_end_matches('/').ends_with("/v1/traces") => telemetry_error(
                "otlp_endpoint",
                &format!("is `{masked_url}`; leave out `/v1/traces`, which the server appends"),
            ),
            Ok(_) => Ok(()),
            Err(error) => telemetry_error(
                "otlp_endpoint",
                &format!("is `{masked_url}`, which is not a valid URL ({error}); {hint}"),
            ),
        }
    }
}
