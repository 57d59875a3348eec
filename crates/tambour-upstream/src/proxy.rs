//! Connections to services, directly or through the proxies of the environment.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::Service;

/// Connector that uses a proxy if one is configured for the host.
#[derive(Clone)]
pub(super) struct ProxyConnector {
    /// Connects to the host without a proxy.
    direct: HttpConnector,
    /// Connects to the proxy itself, with TLS if needed.
    proxy_connector: HttpsConnector<HttpConnector>,
    /// Proxies by host.
    proxies: Arc<Matcher>,
}

/// Connection to the host, directly or through a proxy; TLS with the host is added later.
pub(super) struct ProxiedStream {
    stream: MaybeHttpsStream<TokioIo<TcpStream>>,
    /// True if the peer is a proxy that reads and forwards the requests, not a tunnel to the host.
    is_forwarding: bool,
}

type ProxyError = Box<dyn Error + Send + Sync>;

impl ProxyConnector {
    /// Creates a connector from a connector to the host, a connector to a proxy, and the proxies by host.
    pub(super) fn new(
        direct: HttpConnector,
        proxy_connector: HttpsConnector<HttpConnector>,
        proxies: Arc<Matcher>,
    ) -> ProxyConnector {
        ProxyConnector { direct, proxy_connector, proxies }
    }
}

impl Service<Uri> for ProxyConnector {
    type Response = ProxiedStream;
    type Error = ProxyError;
    type Future = BoxFuture<'static, Result<ProxiedStream, ProxyError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ProxyError>> {
        self.direct.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let Some(proxy) = self.proxies.intercept(&to) else {
            let connection = self.direct.call(to);
            return Box::pin(async move {
                Ok(ProxiedStream { stream: MaybeHttpsStream::Http(connection.await?), is_forwarding: false })
            });
        };
        if !matches!(proxy.uri().scheme_str(), Some("http" | "https")) {
            let refusal = format!(
                "a proxy must be an HTTP proxy, not `{}`",
                proxy.uri().scheme_str().unwrap_or_default()
            );
            return Box::pin(async move { Err(refusal.into()) });
        }
        // Plain http is forwarded by the proxy; https goes through a tunnel.
        if to.scheme_str() == Some("http") {
            let connection = self.proxy_connector.call(proxy.uri().clone());
            return Box::pin(
                async move { Ok(ProxiedStream { stream: connection.await?, is_forwarding: true }) },
            );
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.proxy_connector.clone());
        if let Some(proxy_login) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(proxy_login.clone());
        }
        let connection = tunnel.call(to);
        Box::pin(async move { Ok(ProxiedStream { stream: connection.await?, is_forwarding: false }) })
    }
}

impl Connection for ProxiedStream {
    fn connected(&self) -> Connected {
        // To a forwarding proxy, requests are sent with their whole URL.
        self.stream.connected().proxy(self.is_forwarding)
    }
}

impl ProxiedStream {
    fn stream(self: Pin<&mut Self>) -> Pin<&mut MaybeHttpsStream<TokioIo<TcpStream>>> {
        Pin::new(&mut self.get_mut().stream)
    }
}

impl Read for ProxiedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream().poll_read(context, buffer)
    }
}

impl Write for ProxiedStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.stream().poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write_vectored(context, parts)
    }
}
