//! Reader of Server-Sent Events from an upstream: any chunking, any line ends, comments, several `data`
//! lines.

/// Reads frames. A line, and the data of one frame, hold at most `limit` bytes; longer ones are truncated and
/// flagged.
#[derive(Clone, Debug)]
pub struct SseReader {
    line: Vec<u8>,
    name: String,
    data: Vec<u8>,
    has_data: bool,
    /// The last byte was a carriage return: a line feed now belongs to it.
    is_after_cr: bool,
    limit: usize,
    is_truncated: bool,
}

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseFrame<'a> {
    /// Name of its `event` line; empty when there is none.
    pub name: &'a str,
    /// Data, several lines joined by line feeds.
    pub data: &'a [u8],
    /// True if a part of it exceeded the limit.
    pub is_truncated: bool,
}

impl SseReader {
    /// Creates a reader at the start of a stream.
    #[must_use]
    pub fn new(limit: usize) -> SseReader {
        SseReader {
            line: Vec::new(),
            name: String::new(),
            data: Vec::new(),
            has_data: false,
            is_after_cr: false,
            limit,
            is_truncated: false,
        }
    }

    /// Reads bytes and passes each complete frame to `out`.
    pub fn push(&mut self, chunk: &[u8], out: &mut impl FnMut(SseFrame<'_>)) {
        let mut rest = chunk;
        if self.is_after_cr && rest.first() == Some(&b'\n') {
            rest = &rest[1..];
        }
        self.is_after_cr = false;
        while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
            if self.line.is_empty() {
                // The line is complete in the chunk, so it needs no copy.
                self.read_field(&rest[..end], out);
            } else {
                self.append_line(&rest[..end]);
                let line = std::mem::take(&mut self.line);
                self.read_field(&line, out);
                self.line = line;
                self.line.clear();
            }
            let pair = rest[end] == b'\r' && rest.get(end + 1) == Some(&b'\n');
            self.is_after_cr = rest[end] == b'\r' && end + 1 == rest.len();
            rest = &rest[end + 1 + usize::from(pair)..];
        }
        self.append_line(rest);
    }

    /// Ends the stream. A last frame without its blank line is emitted too, since some servers leave it out.
    pub fn finish(&mut self, out: &mut impl FnMut(SseFrame<'_>)) {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.read_field(&line, out);
        }
        self.end_frame(out);
    }

    fn append_line(&mut self, bytes: &[u8]) {
        let room = bytes.len().min(self.limit - self.line.len().min(self.limit));
        self.line.extend_from_slice(&bytes[..room]);
        self.is_truncated |= room < bytes.len();
    }

    fn read_field(&mut self, line: &[u8], out: &mut impl FnMut(SseFrame<'_>)) {
        if line.is_empty() {
            return self.end_frame(out);
        }
        let (name, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                let room = value.len().min(self.limit - self.data.len().min(self.limit));
                self.data.extend_from_slice(&value[..room]);
                self.is_truncated |= room < value.len();
                self.has_data = true;
            }
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            _ => {}
        }
    }

    fn end_frame(&mut self, out: &mut impl FnMut(SseFrame<'_>)) {
        if self.has_data {
            out(SseFrame { name: &self.name, data: &self.data, is_truncated: self.is_truncated });
        }
        self.name.clear();
        self.data.clear();
        self.has_data = false;
        self.is_truncated = false;
    }
}
