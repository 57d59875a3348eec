//! Splitter of a response, which arrives in chunks of any size, into lines.

/// Line reader. A line has at most `limit` bytes; bytes beyond the limit are dropped.
pub(super) struct LineReader {
    /// Beginning of the line that is not complete yet.
    line: Vec<u8>,
    limit: usize,
    /// True if bytes of this line were dropped.
    is_truncated: bool,
}

impl LineReader {
    /// Creates a reader of lines of at most `limit` bytes.
    pub(super) fn new(limit: usize) -> LineReader {
        LineReader { line: Vec::new(), limit, is_truncated: false }
    }

    /// Reads bytes. `out` receives each complete line without its line break, and `true` if it was truncated.
    pub(super) fn push(&mut self, chunk: &[u8], out: &mut impl FnMut(&[u8], bool)) {
        let mut remaining = chunk;
        while let Some(end) = memchr::memchr(b'\n', remaining) {
            if self.line.is_empty() && end <= self.limit {
                // The line lies in the chunk completely, so it is not copied.
                out(&remaining[..end], false);
            } else {
                self.push_part(&remaining[..end]);
                self.finish(out);
            }
            remaining = &remaining[end + 1..];
        }
        self.push_part(remaining);
    }

    /// Passes the line gathered so far to `out`, even if it is empty. At the end of the input, this is the
    /// last line, which has no line break.
    pub(super) fn finish(&mut self, out: &mut impl FnMut(&[u8], bool)) {
        out(&self.line, std::mem::take(&mut self.is_truncated));
        self.line.clear();
    }

    /// Adds bytes to the line, up to the limit.
    fn push_part(&mut self, bytes: &[u8]) {
        let accepted_bytes = bytes.len().min(self.limit - self.line.len());
        self.line.extend_from_slice(&bytes[..accepted_bytes]);
        self.is_truncated |= accepted_bytes < bytes.len();
    }
}
