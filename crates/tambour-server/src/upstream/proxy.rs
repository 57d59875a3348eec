//! Connections to services, directly or through the proxies of the environment.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::http::Uri;
use futures_util::future::BoxFuture;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::Service;

/// Connector that uses a proxy where one is configured for the host.
#[derive(Clone)]
pub(super) struct ProxyConnector {
    direct: HttpConnector,
    /// Connects to the proxy itself, with TLS if needed.
    to_proxy: HttpsConnector<HttpConnector>,
    proxies: Arc<Matcher>,
}

/// Connection before TLS with the host.
pub(super) struct ProxiedStream {
    stream: MaybeHttpsStream<TokioIo<TcpStream>>,
    /// True if the peer is a proxy that reads the requests.
    is_forwarding: bool,
}

type ProxyError = Box<dyn Error + Send + Sync>;

impl ProxyConnector {
    pub(super) fn new(
        direct: HttpConnector,
        to_proxy: HttpsConnector<HttpConnector>,
        proxies: Arc<Matcher>,
    ) -> ProxyConnector {
        ProxyConnector { direct, to_proxy, proxies }
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
        if to.scheme_str() == Some("http") {
            let connection = self.to_proxy.call(proxy.uri().clone());
            return Box::pin(
                async move { Ok(ProxiedStream { stream: connection.await?, is_forwarding: true }) },
            );
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.to_proxy.clone());
        if let Some(name) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(name.clone());
        }
        let connection = tunnel.call(to);
        Box::pin(async move { Ok(ProxiedStream { stream: connection.await?, is_forwarding: false }) })
    }
}

impl Connection for ProxiedStream {
    fn connected(&self) -> Connected {
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
