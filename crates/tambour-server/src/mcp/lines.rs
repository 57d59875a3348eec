//! Length limit for line-based messages.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

/// Reader that fails at a line that is too long. The line cannot be attributed to a request, and the caller
/// waiting for its response would otherwise wait for ever.
#[derive(Debug)]
pub struct BoundedLines<R> {
    inner: R,
    /// Most bytes of a line.
    max_bytes: usize,
    /// Bytes since the last line break.
    length: usize,
    too_long: Arc<AtomicBool>,
}

impl<R> BoundedLines<R> {
    /// Limits lines to `most` bytes.
    pub fn new(inner: R, max_bytes: usize) -> BoundedLines<R> {
        BoundedLines { inner, max_bytes, length: 0, too_long: Arc::default() }
    }

    /// Returns a flag that is set when a line was too long.
    #[must_use]
    pub fn too_long_flag(&self) -> Arc<AtomicBool> {
        self.too_long.clone()
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedLines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(context, buffer);
        let new_bytes = &buffer.filled()[before..];
        let first = self.length + memchr::memchr(b'\n', new_bytes).unwrap_or(new_bytes.len());
        self.length = memchr::memrchr(b'\n', new_bytes).map_or(first, |at| new_bytes.len() - at - 1);
        // A line within one read is no longer than that read, so only the first one needs the check.
        if first > self.max_bytes {
            self.too_long.store(true, Ordering::Relaxed);
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        polled
    }
}
