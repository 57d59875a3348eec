//! Reader of Server-Sent Events from an upstream: any chunking, any line ends, comments, several `data`
//! lines.

/// Reads frames. A line, and the data of one frame, hold at most `limit` bytes; longer ones are truncated and
/// flagged.
#[derive(Clone, Debug)]
pub struct Frames {
    line: Vec<u8>,
    name: String,
    data: Vec<u8>,
    filled: bool,
    /// The last byte was a carriage return: a line feed now belongs to it.
    returned: bool,
    limit: usize,
    cut: bool,
}

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Name of its `event` line; empty when there is none.
    pub name: &'a str,
    /// Data, several lines joined by line feeds.
    pub data: &'a [u8],
    /// True if a part of it exceeded the limit.
    pub cut: bool,
}

impl Frames {
    /// Creates a reader at the start of a stream.
    #[must_use]
    pub fn new(limit: usize) -> Frames {
        Frames {
            line: Vec::new(),
            name: String::new(),
            data: Vec::new(),
            filled: false,
            returned: false,
            limit,
            cut: false,
        }
    }

    /// Reads bytes and passes each complete frame to `out`.
    pub fn push(&mut self, chunk: &[u8], out: &mut impl FnMut(Frame<'_>)) {
        let mut rest = chunk;
        if self.returned && rest.first() == Some(&b'\n') {
            rest = &rest[1..];
        }
        self.returned = false;
        while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
            if self.line.is_empty() {
                // The line is complete in the chunk, so it needs no copy.
                self.field(&rest[..end], out);
            } else {
                self.keep(&rest[..end]);
                let line = std::mem::take(&mut self.line);
                self.field(&line, out);
                self.line = line;
                self.line.clear();
            }
            let pair = rest[end] == b'\r' && rest.get(end + 1) == Some(&b'\n');
            self.returned = rest[end] == b'\r' && end + 1 == rest.len();
            rest = &rest[end + 1 + usize::from(pair)..];
        }
        self.keep(rest);
    }

    /// Ends the stream. A last frame without its blank line is emitted too, since some servers leave it out.
    pub fn finish(&mut self, out: &mut impl FnMut(Frame<'_>)) {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.field(&line, out);
        }
        self.end(out);
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = bytes.len().min(self.limit - self.line.len().min(self.limit));
        self.line.extend_from_slice(&bytes[..room]);
        self.cut |= room < bytes.len();
    }

    fn field(&mut self, line: &[u8], out: &mut impl FnMut(Frame<'_>)) {
        if line.is_empty() {
            return self.end(out);
        }
        let (name, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if self.filled {
                    self.data.push(b'\n');
                }
                let room = value.len().min(self.limit - self.data.len().min(self.limit));
                self.data.extend_from_slice(&value[..room]);
                self.cut |= room < value.len();
                self.filled = true;
            }
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            _ => {}
        }
    }

    fn end(&mut self, out: &mut impl FnMut(Frame<'_>)) {
        if self.filled {
            out(Frame { name: &self.name, data: &self.data, cut: self.cut });
        }
        self.name.clear();
        self.data.clear();
        self.filled = false;
        self.cut = false;
    }
}
