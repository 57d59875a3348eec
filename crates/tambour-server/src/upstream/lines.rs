//! Splitter of a response into lines, in chunks of any size.

/// Line reader. A line holds at most `limit` bytes; a longer one is truncated and marked.
pub(super) struct LineReader {
    line: Vec<u8>,
    limit: usize,
    is_truncated: bool,
}

impl LineReader {
    pub(super) fn new(limit: usize) -> LineReader {
        LineReader { line: Vec::new(), limit, is_truncated: false }
    }

    /// Reads bytes; `out` receives each complete line, and whether it was truncated.
    pub(super) fn push(&mut self, chunk: &[u8], out: &mut impl FnMut(&[u8], bool)) {
        let mut rest = chunk;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            if self.line.is_empty() && end <= self.limit {
                // The whole line is in the chunk and needs no copy.
                out(&rest[..end], false);
            } else {
                self.push_part(&rest[..end]);
                self.finish(out);
            }
            rest = &rest[end + 1..];
        }
        self.push_part(rest);
    }

    /// Emits the line gathered so far, even if it is empty. At the end of the input this is a last line
    /// without a line break.
    pub(super) fn finish(&mut self, out: &mut impl FnMut(&[u8], bool)) {
        out(&self.line, std::mem::take(&mut self.is_truncated));
        self.line.clear();
    }

    fn push_part(&mut self, bytes: &[u8]) {
        let room = bytes.len().min(self.limit - self.line.len());
        self.line.extend_from_slice(&bytes[..room]);
        self.is_truncated |= room < bytes.len();
    }
}
