//! Lines of an answer, in pieces of any size.

/// Reads lines. One holds at most `limit` bytes; what is longer is cut and told.
pub(super) struct Lines {
    line: Vec<u8>,
    limit: usize,
    cut: bool,
}

impl Lines {
    pub(super) fn new(limit: usize) -> Lines {
        Lines { line: Vec::new(), limit, cut: false }
    }

    /// Reads bytes; `out` gets each complete line, and whether something of it is missing.
    pub(super) fn push(&mut self, chunk: &[u8], out: &mut impl FnMut(&[u8], bool)) {
        let mut rest = chunk;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            if self.line.is_empty() && end <= self.limit {
                // The whole line is in the chunk: it is read where it is.
                out(&rest[..end], false);
            } else {
                self.keep(&rest[..end]);
                self.finish(out);
            }
            rest = &rest[end + 1..];
        }
        self.keep(rest);
    }

    /// Ends the last line, which need not have an end of its own.
    pub(super) fn finish(&mut self, out: &mut impl FnMut(&[u8], bool)) {
        out(&self.line, std::mem::take(&mut self.cut));
        self.line.clear();
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = bytes.len().min(self.limit - self.line.len());
        self.line.extend_from_slice(&bytes[..room]);
        self.cut |= room < bytes.len();
    }
}
