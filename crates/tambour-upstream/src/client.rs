//! HTTP client for services: pooled connections, TLS, proxies, and buffers that stay small even if a service
//! sends fast.

use std::error::Error;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{AUTHORIZATION, PROXY_AUTHORIZATION};
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use percent_encoding::percent_decode_str;
use rustls::{ClientConfig, RootCertStore};
use tower::Service;
use url::Url;

use super::proxy::{ProxiedStream, ProxyConnector};
use crate::urls::is_local_host;

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
    /// Proxies by host.
    proxies: Arc<Matcher>,
    /// Base URL of all requests, without a trailing slash.
    base: String,
    /// Header `Authorization` from the name and password in the base URL; a key takes precedence.
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
    /// Creates a client for a service at `base`, with a timeout for connecting.
    ///
    /// # Errors
    /// The system's certificates cannot be read.
    pub(super) fn new(base: &str, timeout: Duration) -> Result<ServiceClient, rustls::Error> {
        let is_local = Url::parse(base).is_ok_and(|base| base.host_str().is_some_and(is_local_host));
        // Proxies of the environment are not used for local hosts.
        let proxies = if is_local { Matcher::builder().build() } else { Matcher::from_env() };
        ServiceClient::with_proxies(proxies, base, timeout)
    }

    fn with_proxies(proxies: Matcher, base: &str, timeout: Duration) -> Result<ServiceClient, rustls::Error> {
        // The crypto provider is process-wide; later clients find it installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let proxies = Arc::new(proxies);
        let mut tcp = HttpConnector::new();
        // Also connects to `https` URLs: TLS is added on top.
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEPALIVE_TIME));
        let (base, login) = split_credentials(base);
        let tls = tls_config(&base, &proxies)?;
        let tls_builder = || HttpsConnectorBuilder::new().with_tls_config(tls.clone());
        let proxy_tls = tls_builder().https_or_http().enable_http1().wrap_connector(tcp.clone());
        let proxy_connector = ProxyConnector::new(tcp, proxy_tls, proxies.clone());
        let https = tls_builder().https_or_http().enable_all_versions().wrap_connector(proxy_connector);
        let inner = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .http1_max_buf_size(READ_BUFFER_BYTES)
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .build(TimedConnector { https, timeout });
        Ok(ServiceClient { inner, proxies, base, login })
    }

    /// Returns the base URL of requests, without credentials or a trailing slash.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// Sends a request and returns the head of the response, whose body is still to be read.
    pub(super) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, ConnectError> {
        if let Some(login) = &self.login {
            request.headers_mut().entry(AUTHORIZATION).or_insert_with(|| login.clone());
        }
        if request.uri().scheme_str() == Some("http") {
            // Plain http uses no tunnel: the proxy reads the request itself, with its credentials.
            let proxy = self.proxies.intercept(request.uri());
            if let Some(proxy_login) = proxy.as_ref().and_then(|proxy| proxy.basic_auth()) {
                request.headers_mut().insert(PROXY_AUTHORIZATION, proxy_login.clone());
            }
        }
        self.inner.request(request).await.map_err(|error| match find_source::<ConnectTimeout>(&error) {
            Some(ConnectTimeout) => ConnectError::Timeout,
            None if error.is_connect() => ConnectError::Unreachable,
            None => ConnectError::Closed,
        })
    }
}

/// Builds the TLS configuration. The root certificates of the system are loaded only if the service or its
/// proxy uses https.
fn tls_config(base: &str, proxies: &Matcher) -> Result<ClientConfig, rustls::Error> {
    let is_https = |uri: &Uri| uri.scheme_str() == Some("https");
    let needs_tls = base.parse::<Uri>().is_ok_and(|base| {
        is_https(&base) || proxies.intercept(&base).is_some_and(|proxy| is_https(proxy.uri()))
    });
    let config = ClientConfig::builder();
    let config = if needs_tls {
        config.try_with_platform_verifier()?
    } else {
        config.with_root_certificates(RootCertStore::empty())
    };
    Ok(config.with_no_client_auth())
}

/// Connector with one timeout for all of name resolution, proxy, connection and TLS.
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

/// Splits a base URL into the URL without credentials or a trailing slash, and the `Authorization` header for
/// the credentials.
fn split_credentials(base: &str) -> (String, Option<HeaderValue>) {
    let without_slash = |base: &str| base.trim_end_matches('/').to_owned();
    // A URL that cannot be parsed fails later, when it is used.
    let Ok(mut url) = Url::parse(base) else { return (without_slash(base), None) };
    if url.username().is_empty() && url.password().is_none() {
        return (without_slash(base), None);
    }
    let credentials = [url.username(), url.password().unwrap_or_default()];
    let credentials = credentials.map(|text| percent_decode_str(text).collect::<Vec<u8>>()).join(&b':');
    let mut login = HeaderValue::from_str(&format!("Basic {}", BASE64_STANDARD.encode(credentials))).ok();
    login.iter_mut().for_each(|login| login.set_sensitive(true));
    // A URL with a user name has a host, so these do not fail.
    let _ = (url.set_username(""), url.set_password(None));
    (without_slash(url.as_str()), login)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use http::Request;
    use http_body_util::{BodyExt, Full};
    use hyper_util::client::proxy::matcher::Matcher;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::{ConnectError, ServiceClient};

    /// Sends a request through a proxy that responds with `response_text`. Returns the head of the request,
    /// as the proxy received it in lower case, and the body of the response.
    async fn send_through_proxy(
        base: &str,
        login: &str,
        response_text: &'static str,
    ) -> (String, Result<String, ConnectError>) {
        let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = proxy.local_addr().unwrap();
        let proxy_task = tokio::spawn(async move {
            let (mut socket, _) = proxy.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                assert_ne!(socket.read_buf(&mut head).await.unwrap(), 0, "{head:?}");
            }
            socket.write_all(response_text.as_bytes()).await.unwrap();
            String::from_utf8(head).unwrap()
        });
        let proxies = Matcher::builder().all(format!("http://{login}{address}")).no("near.example").build();
        let client = ServiceClient::with_proxies(proxies, base, Duration::from_secs(30)).unwrap();
        let request = Request::get(format!("{}/x", client.base())).body(Full::<Bytes>::default()).unwrap();
        let response = match client.send(request).await {
            Ok(response) => {
                let body = response.into_body().collect().await.unwrap().to_bytes();
                Ok(String::from_utf8(body.to_vec()).unwrap())
            }
            Err(error) => Err(error),
        };
        (proxy_task.await.unwrap().to_lowercase(), response)
    }

    #[tokio::test]
    async fn plain_http_is_sent_to_the_proxy() {
        let response_text = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";
        let (head, response) =
            send_through_proxy("http://models.example/v1", "ada:s3cret@", response_text).await;
        assert!(head.starts_with("get http://models.example/v1/x http/1.1\r\n"), "{head}");
        assert!(head.contains("\r\nhost: models.example\r\n"), "{head}");
        // Encodes `ada:s3cret`.
        assert!(head.contains("\r\nproxy-authorization: basic ywrhonmzy3jlda==\r\n"), "{head}");
        assert_eq!(response.unwrap(), "hi");
    }

    #[tokio::test]
    async fn https_uses_a_tunnel_through_the_proxy() {
        let response_text = "HTTP/1.1 403 Forbidden\r\n\r\n";
        let (head, response) =
            send_through_proxy("https://models.example/v1", "ada:s3cret@", response_text).await;
        assert!(head.starts_with("connect models.example:443 http/1.1\r\n"), "{head}");
        assert!(head.contains("\r\nproxy-authorization: basic ywrhonmzy3jlda==\r\n"), "{head}");
        assert!(matches!(response, Err(ConnectError::Unreachable)), "{response:?}");
    }

    #[tokio::test]
    async fn name_and_password_of_a_url_are_sent_as_a_header() {
        let response_text = "HTTP/1.1 204 No Content\r\n\r\n";
        let (head, _) = send_through_proxy("http://b%C3%B6b:p%40ss@models.example", "", response_text).await;
        assert!(head.starts_with("get http://models.example/x "), "{head}");
        // Encodes `böb:p@ss`.
        assert!(head.contains("\r\nauthorization: basic yso2yjpwqhnz\r\n"), "{head}");
        assert!(!head.contains("proxy-authorization"), "{head}");
    }

    #[tokio::test]
    async fn connecting_times_out() {
        // The server accepts, and sends no TLS handshake.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("https://{}", listener.local_addr().unwrap());
        let client = ServiceClient::new(&base, Duration::from_millis(50)).unwrap();
        let request = Request::get(format!("{}/x", client.base())).body(Full::<Bytes>::default()).unwrap();
        assert!(matches!(client.send(request).await, Err(ConnectError::Timeout)));
    }
}
