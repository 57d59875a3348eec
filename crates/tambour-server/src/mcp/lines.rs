//! Reader that limits the length of lines: an MCP server that runs as a program sends each message as a line.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

/// Reader that fails at a line that is too long. The line is not skipped: without its content it is unknown
/// which request the line answers, and that request would wait forever.
#[derive(Debug)]
pub struct BoundedLines<R> {
    inner: R,
    /// Maximum length of a line in bytes.
    max_bytes: usize,
    /// Bytes since the last line break.
    line_len: usize,
    too_long_flag: Arc<AtomicBool>,
}

impl<R> BoundedLines<R> {
    /// Limits lines to `max_bytes` bytes.
    pub fn new(inner: R, max_bytes: usize) -> BoundedLines<R> {
        BoundedLines { inner, max_bytes, line_len: 0, too_long_flag: Arc::default() }
    }

    /// Returns a flag that is set when a line was too long.
    #[must_use]
    pub fn too_long_flag(&self) -> Arc<AtomicBool> {
        self.too_long_flag.clone()
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedLines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let filled_before = buffer.filled().len();
        let read_result = Pin::new(&mut self.inner).poll_read(context, buffer);
        let new_bytes = &buffer.filled()[filled_before..];
        let first_line_len = self.line_len + memchr::memchr(b'\n', new_bytes).unwrap_or(new_bytes.len());
        let last_break = memchr::memrchr(b'\n', new_bytes);
        self.line_len = last_break.map_or(first_line_len, |offset| new_bytes.len() - offset - 1);
        // Only the first line is checked: later ones lie within this read, which is shorter than the limit.
        if first_line_len > self.max_bytes {
            self.too_long_flag.store(true, Ordering::Relaxed);
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        read_result
    }
}
