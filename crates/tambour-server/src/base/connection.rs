//! One client connection over HTTP/1.1. After the response, unread request bytes are drained for a while:
//! closing with unread bytes resets the connection, and a client that writes its whole request first would
//! lose the response.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::service::Service as _;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;

use crate::base::durations::millis;
use crate::base::polled_when_woken::PolledWhenWoken;

/// State of a connection, shared with its requests.
#[derive(Debug)]
pub(crate) struct Connection {
    opened_at: Instant,
    /// Time of the last finished write to the socket, in milliseconds since the connection was opened.
    last_write_ms: AtomicU64,
    /// Closes the connection at once when cancelled.
    pub(crate) cancel: CancellationToken,
    /// Set while the body of the current request is not fully read; unread input is then drained on close.
    has_unread_body: AtomicBool,
}

/// Longest time to drain the unread bytes of a request after its response.
const MAX_DRAIN_TIME: Duration = Duration::from_secs(10);
/// Longest wait for the next bytes while draining.
const MAX_DRAIN_IDLE: Duration = Duration::from_secs(2);
/// Maximum number of bytes that are drained.
const MAX_DRAIN_BYTES: usize = 64 << 20;

impl Connection {
    /// Returns the milliseconds since the connection was opened.
    pub(crate) fn elapsed_ms(&self) -> u64 {
        millis(self.opened_at.elapsed())
    }

    /// Skips draining the unread body after the response, for a client that has used up its time.
    pub(crate) fn skip_drain(&self) {
        self.has_unread_body.store(false, Ordering::Relaxed);
    }

    /// Returns the time of the last finished write, on the same clock as `elapsed_ms`.
    pub(crate) fn last_write_ms(&self) -> u64 {
        self.last_write_ms.load(Ordering::Relaxed)
    }
}

/// Serves one connection. Once `connection_stop` is cancelled, the connection takes no further request and
/// ends with the current one.
pub(crate) async fn serve(
    socket: TcpStream,
    service: TowerToHyperService<axum::Router>,
    connection_stop: CancellationToken,
) {
    // Without Nagle's delay, small frames are sent at once.
    let _ = socket.set_nodelay(true);
    let connection = Arc::new(Connection {
        opened_at: Instant::now(),
        last_write_ms: AtomicU64::new(0),
        cancel: CancellationToken::new(),
        has_unread_body: AtomicBool::new(false),
    });
    let request_connection = connection.clone();
    let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(request_connection.clone());
        service.call(request.map(|body| TrackedBody::new(body, request_connection.clone())))
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(30)).max_buf_size(16 << 10);
    let socket = TokioIo::new(TrackedSocket { socket, connection: connection.clone(), drain: None });
    let mut http_connection = std::pin::pin!(builder.serve_connection(socket, service));
    // A `PolledWhenWoken` future is polled only after its own wake-up; without it, each read or write of the
    // connection would poll these futures too.
    let mut cancelled = std::pin::pin!(PolledWhenWoken::new(connection.cancel.cancelled()));
    tokio::select! {
        biased;
        result = http_connection.as_mut() => {
            if let Err(error) = result {
                tracing::debug!(%error, "a connection ended");
            }
            return;
        }
        () = cancelled.as_mut() => return,
        () = PolledWhenWoken::new(connection_stop.cancelled()) => http_connection.as_mut().graceful_shutdown(),
    }
    tokio::select! {
        _ = http_connection => {}
        () = cancelled => {}
    }
}

/// Request body that notes in the connection whether it is read to its end.
struct TrackedBody {
    body: Incoming,
    connection: Arc<Connection>,
}

impl TrackedBody {
    fn new(body: Incoming, connection: Arc<Connection>) -> TrackedBody {
        connection.has_unread_body.store(!body.is_end_stream(), Ordering::Relaxed);
        TrackedBody { body, connection }
    }
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if frame.is_none() || self.body.is_end_stream() {
            self.connection.has_unread_body.store(false, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Socket that notes the time of each write and drains unread input before it closes.
struct TrackedSocket {
    socket: TcpStream,
    connection: Arc<Connection>,
    /// Progress of draining; set after the write side was shut down.
    drain: Option<SocketDrain>,
}

/// Remaining limits of draining.
struct SocketDrain {
    /// Timer that ends the draining: `MAX_DRAIN_IDLE` after the last bytes, but no later than `deadline`.
    alarm: Pin<Box<Sleep>>,
    deadline: tokio::time::Instant,
    remaining_bytes: usize,
}

impl SocketDrain {
    fn new() -> SocketDrain {
        let now = tokio::time::Instant::now();
        let alarm = Box::pin(tokio::time::sleep_until(now + MAX_DRAIN_IDLE));
        SocketDrain { alarm, deadline: now + MAX_DRAIN_TIME, remaining_bytes: MAX_DRAIN_BYTES }
    }

    /// Drains input; ready when the peer has closed, a read fails or a limit is reached.
    fn poll(&mut self, socket: &mut TcpStream, cx: &mut Context<'_>) -> Poll<()> {
        let mut buffer_space = [std::mem::MaybeUninit::uninit(); 16 << 10];
        loop {
            if self.alarm.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            let mut buf = ReadBuf::uninit(&mut buffer_space);
            let read_result = ready!(Pin::new(&mut *socket).poll_read(cx, &mut buf));
            let bytes = buf.filled().len();
            let is_end_of_input = bytes == 0;
            if read_result.is_err() || is_end_of_input || bytes > self.remaining_bytes {
                return Poll::Ready(());
            }
            self.remaining_bytes -= bytes;
            let idle_deadline = tokio::time::Instant::now() + MAX_DRAIN_IDLE;
            self.alarm.as_mut().reset(idle_deadline.min(self.deadline));
        }
    }
}

impl TrackedSocket {
    fn note_write(&self) {
        self.connection.last_write_ms.store(self.connection.elapsed_ms(), Ordering::Relaxed);
    }
}

impl AsyncRead for TrackedSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buf)
    }
}

impl AsyncWrite for TrackedSocket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.socket).poll_write(cx, buf));
        self.note_write();
        Poll::Ready(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.socket).poll_write_vectored(cx, bufs));
        self.note_write();
        Poll::Ready(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let TrackedSocket { socket, connection, drain } = &mut *self;
        if drain.is_none() {
            ready!(Pin::new(&mut *socket).poll_shutdown(cx))?;
        }
        if connection.has_unread_body.load(Ordering::Relaxed) {
            ready!(drain.get_or_insert_with(SocketDrain::new).poll(socket, cx));
        }
        Poll::Ready(Ok(()))
    }
}
