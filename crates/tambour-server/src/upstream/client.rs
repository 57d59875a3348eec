//! HTTP client for services: pooled connections, TLS, proxies, and buffers that stay small however fast a
//! service is.

use std::error::Error;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::header::{AUTHORIZATION, PROXY_AUTHORIZATION};
use axum::http::{HeaderValue, Request, Response, Uri};
use base64::prelude::{BASE64_STANDARD, Engine};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use percent_encoding::percent_decode_str;
use reqwest::Url;
use rustls::{ClientConfig, RootCertStore};
use tower::Service;

use super::proxy::{ProxiedStream, ProxyConnector};
use crate::base::urls::is_local_host;

/// Read buffer of an HTTP/1 connection in bytes, including the response head.
const READ_BUFFER_BYTES: usize = 32 << 10;
/// Flow-control window of one HTTP/2 stream, in bytes.
const STREAM_WINDOW: u32 = 32 << 10;
/// Flow-control window of an HTTP/2 connection, in bytes.
const CONNECTION_WINDOW: u32 = 1 << 20;
/// Time that an idle connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// Idle time before TCP keep-alive probes.
const KEEPALIVE_TIME: Duration = Duration::from_secs(15);

/// Client of one service.
pub(super) struct ServiceClient {
    inner: legacy::Client<TimedConnector, Full<Bytes>>,
    proxies: Arc<Matcher>,
    /// Base URL of all requests, without a trailing slash.
    base: String,
    /// Authorization from name and password in the base URL.
    login: Option<HeaderValue>,
}

/// Reason why no response has begun.
#[derive(Debug)]
pub(super) enum ConnectError {
    /// No connection within the timeout.
    Timeout,
    /// The host cannot be reached or verified.
    Unreachable,
    /// The connection broke.
    Closed,
}

impl ServiceClient {
    /// Creates a client for a service at `base`.
    ///
    /// # Errors
    /// The system's certificates cannot be read.
    pub(super) fn new(base: &str, connect: Duration) -> Result<ServiceClient, rustls::Error> {
        let local = Url::parse(base).is_ok_and(|base| base.host_str().is_some_and(is_local_host));
        // Proxies of the environment are not used for local hosts.
        let proxies = if local { Matcher::builder().build() } else { Matcher::from_env() };
        ServiceClient::with_proxies(proxies, base, connect)
    }

    fn with_proxies(proxies: Matcher, base: &str, timeout: Duration) -> Result<ServiceClient, rustls::Error> {
        // The crypto provider is process-wide; later clients find it installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let proxies = Arc::new(proxies);
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEPALIVE_TIME));
        let (base, login) = split_credentials(base);
        let tls = tls_config(&base, &proxies)?;
        let secure = || HttpsConnectorBuilder::new().with_tls_config(tls.clone());
        let proxy_tls = secure().https_or_http().enable_http1().wrap_connector(tcp.clone());
        let proxy_connector = ProxyConnector::new(tcp, proxy_tls, proxies.clone());
        let https = secure().https_or_http().enable_all_versions().wrap_connector(proxy_connector);
        let inner = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .http1_max_buf_size(READ_BUFFER_BYTES)
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .build(TimedConnector { https, timeout });
        Ok(ServiceClient { inner, proxies, base, login })
    }

    /// Returns the base URL of requests.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// Sends a request and returns the response head.
    pub(super) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, ConnectError> {
        if let Some(login) = &self.login {
            request.headers_mut().entry(AUTHORIZATION).or_insert_with(|| login.clone());
        }
        if request.uri().scheme_str() == Some("http") {
            // Without a tunnel the proxy reads the request itself.
            let proxy = self.proxies.intercept(request.uri());
            if let Some(name) = proxy.as_ref().and_then(|proxy| proxy.basic_auth()) {
                request.headers_mut().insert(PROXY_AUTHORIZATION, name.clone());
            }
        }
        self.inner.request(request).await.map_err(|error| match find_source::<ConnectTimeout>(&error) {
            Some(ConnectTimeout) => ConnectError::Timeout,
            None if error.is_connect() => ConnectError::Unreachable,
            None => ConnectError::Closed,
        })
    }
}

/// Builds the TLS configuration. The system's roots are loaded only if https is needed: plain http to a local
/// service needs none.
fn tls_config(base: &str, proxies: &Matcher) -> Result<ClientConfig, rustls::Error> {
    let secure = |uri: &Uri| uri.scheme_str() == Some("https");
    let new_config = base
        .parse::<Uri>()
        .is_ok_and(|base| secure(&base) || proxies.intercept(&base).is_some_and(|proxy| secure(proxy.uri())));
    let config = ClientConfig::builder();
    let config = if new_config {
        config.try_with_platform_verifier()?
    } else {
        config.with_root_certificates(RootCertStore::empty())
    };
    Ok(config.with_no_client_auth())
}

/// Connector with one timeout for name resolution, proxy, connection and TLS.
#[derive(Clone)]
struct TimedConnector {
    https: HttpsConnector<ProxyConnector>,
    timeout: Duration,
}

/// Error of a connection that was not made in time.
#[derive(Debug, thiserror::Error)]
#[error("no connection in time")]
struct ConnectTimeout;

type ConnectorError = Box<dyn Error + Send + Sync>;

impl Service<Uri> for TimedConnector {
    type Response = MaybeHttpsStream<ProxiedStream>;
    type Error = ConnectorError;
    type Future = BoxFuture<'static, Result<MaybeHttpsStream<ProxiedStream>, ConnectorError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectorError>> {
        self.https.poll_ready(context)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let connection = tokio::time::timeout(self.timeout, self.https.call(to));
        Box::pin(async move { connection.await.unwrap_or_else(|_| Err(ConnectTimeout.into())) })
    }
}

/// Finds an error of type `T` in the source chain.
fn find_source<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    std::iter::successors(error.source(), |error| (*error).source()).find_map(|error| error.downcast_ref())
}

/// Splits a base URL into the URL without credentials and the header for them.
fn split_credentials(base: &str) -> (String, Option<HeaderValue>) {
    let bare = |base: &str| base.trim_end_matches('/').to_owned();
    let Ok(mut url) = Url::parse(base) else { return (bare(base), None) };
    if url.username().is_empty() && url.password().is_none() {
        return (bare(base), None);
    }
    let credentials = [url.username(), url.password().unwrap_or_default()];
    let credentials = credentials.map(|text| percent_decode_str(text).collect::<Vec<u8>>()).join(&b':');
    let mut login = HeaderValue::from_str(&format!("Basic {}", BASE64_STANDARD.encode(credentials))).ok();
    login.iter_mut().for_each(|login| login.set_sensitive(true));
    // A URL with a user name has a host, so these do not fail.
    let _ = (url.set_username(""), url.set_password(None));
    (bare(url.as_str()), login)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::http::Request;
    use bytes::Bytes;
    use http_body_util::{BodyExt, Full};
    use hyper_util::client::proxy::matcher::Matcher;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::{ConnectError, ServiceClient};

    /// Sends a request through a proxy; returns the proxy's view of it and the client's result.
    async fn send_through_proxy(
        base: &str,
        login: &str,
        answer: &'static str,
    ) -> (String, Result<String, ConnectError>) {
        let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = proxy.local_addr().unwrap();
        let server_task = tokio::spawn(async move {
            let (mut socket, _) = proxy.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                assert_ne!(socket.read_buf(&mut head).await.unwrap(), 0, "{head:?}");
            }
            socket.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8(head).unwrap()
        });
        let proxies = Matcher::builder().all(format!("http://{login}{address}")).no("near.example").build();
        let client = ServiceClient::with_proxies(proxies, base, Duration::from_secs(30)).unwrap();
        let request = Request::get(format!("{}/x", client.base())).body(Full::<Bytes>::default()).unwrap();
        let response = match client.send(request).await {
            Ok(answer) => {
                let body = answer.into_body().collect().await.unwrap().to_bytes();
                Ok(String::from_utf8(body.to_vec()).unwrap())
            }
            Err(error) => Err(error),
        };
        (server_task.await.unwrap().to_lowercase(), response)
    }

    #[tokio::test]
    async fn a_proxy_is_asked_in_the_place_of_the_service() {
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";
        let (head, response) = send_through_proxy("http://models.example/v1", "ada:s3cret@", answer).await;
        assert!(head.starts_with("get http://models.example/v1/x http/1.1\r\n"), "{head}");
        assert!(head.contains("\r\nhost: models.example\r\n"), "{head}");
        // Encodes `ada:s3cret`.
        assert!(head.contains("\r\nproxy-authorization: basic ywrhonmzy3jlda==\r\n"), "{head}");
        assert_eq!(response.unwrap(), "hi");
    }

    #[tokio::test]
    async fn a_tunnel_is_asked_for_where_there_is_tls() {
        let answer = "HTTP/1.1 403 Forbidden\r\n\r\n";
        let (head, response) = send_through_proxy("https://models.example/v1", "ada:s3cret@", answer).await;
        assert!(head.starts_with("connect models.example:443 http/1.1\r\n"), "{head}");
        assert!(head.contains("\r\nproxy-authorization: basic ywrhonmzy3jlda==\r\n"), "{head}");
        assert!(matches!(response, Err(ConnectError::Unreachable)), "{response:?}");
    }

    #[tokio::test]
    async fn name_and_password_of_a_url_are_sent_and_not_shown() {
        let answer = "HTTP/1.1 204 No Content\r\n\r\n";
        let (head, _) = send_through_proxy("http://b%C3%B6b:p%40ss@models.example", "", answer).await;
        assert!(head.starts_with("get http://models.example/x "), "{head}");
        // Encodes `böb:p@ss`.
        assert!(head.contains("\r\nauthorization: basic yso2yjpwqhnz\r\n"), "{head}");
        assert!(!head.contains("proxy-authorization"), "{head}");
    }

    #[tokio::test]
    async fn a_connection_that_is_not_made_in_time_is_late() {
        // The server accepts, and sends no TLS handshake.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("https://{}", listener.local_addr().unwrap());
        let client = ServiceClient::new(&base, Duration::from_millis(50)).unwrap();
        let request = Request::get(format!("{}/x", client.base())).body(Full::<Bytes>::default()).unwrap();
        assert!(matches!(client.send(request).await, Err(ConnectError::Timeout)));
    }
}
