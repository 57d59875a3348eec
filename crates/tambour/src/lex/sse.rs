//! Reader of Server-Sent Events from an upstream: any chunking, any line ends, comments, several `data`
//! lines.

/// Reads frames. The data of one frame, and a line that arrives in several chunks, hold at most `limit`
/// bytes; the rest of longer ones is dropped and the frame flagged as truncated.
#[derive(Clone, Debug)]
pub struct SseReader {
    /// Unfinished line of earlier chunks.
    line: Vec<u8>,
    /// Name of the current frame.
    name: String,
    /// Data of the current frame.
    data: Vec<u8>,
    /// True if the current frame has a `data` line, even an empty one.
    has_data: bool,
    /// True if the last byte was a carriage return, so that a line feed at the start of the next chunk
    /// belongs to it.
    is_after_cr: bool,
    /// Maximum length in bytes of `line`, and of the data of a frame.
    limit: usize,
    /// True if part of the current frame was dropped.
    is_truncated: bool,
}

/// One frame: the lines up to a blank line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseFrame<'a> {
    /// Event name, from the `event` line; empty if there is none.
    pub name: &'a str,
    /// Data, several lines joined by line feeds.
    pub data: &'a [u8],
    /// True if part of the frame was dropped because of the limit.
    pub is_truncated: bool,
}

impl SseReader {
    /// Creates a reader at the start of a stream. `limit` is the maximum length in bytes of the data
    /// of a frame, and of a line that arrives in several chunks.
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
        let mut unread = chunk;
        if self.is_after_cr && unread.first() == Some(&b'\n') {
            unread = &unread[1..];
        }
        self.is_after_cr = false;
        while let Some(end) = memchr::memchr2(b'\n', b'\r', unread) {
            if self.line.is_empty() {
                // The line is complete in the chunk, so it needs no copy.
                self.read_field(&unread[..end], out);
            } else {
                self.append_line(&unread[..end]);
                let line = std::mem::take(&mut self.line);
                self.read_field(&line, out);
                self.line = line;
                self.line.clear();
            }
            let is_crlf = unread[end] == b'\r' && unread.get(end + 1) == Some(&b'\n');
            self.is_after_cr = unread[end] == b'\r' && end + 1 == unread.len();
            unread = &unread[end + 1 + usize::from(is_crlf)..];
        }
        self.append_line(unread);
    }

    /// Ends the stream. A last frame without its blank line is emitted too, since some servers leave it out.
    pub fn finish(&mut self, out: &mut impl FnMut(SseFrame<'_>)) {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.read_field(&line, out);
        }
        self.end_frame(out);
    }

    /// Appends bytes to the unfinished line, up to the limit.
    fn append_line(&mut self, bytes: &[u8]) {
        let fitting_len = bytes.len().min(self.limit.saturating_sub(self.line.len()));
        self.line.extend_from_slice(&bytes[..fitting_len]);
        self.is_truncated |= fitting_len < bytes.len();
    }

    /// Reads a complete line. A blank one ends the frame; fields other than `data` and `event`, and comments,
    /// are ignored.
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
                let fitting_len = value.len().min(self.limit.saturating_sub(self.data.len()));
                self.data.extend_from_slice(&value[..fitting_len]);
                self.is_truncated |= fitting_len < value.len();
                self.has_data = true;
            }
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            _ => {}
        }
    }

    /// Emits the current frame, unless it has no `data` line, and begins another.
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
