//! Format of the log: batches of entries that are written together, one entry per line.
//!
//! `R SEQ "text"` is raw text of the reply, with its sequence number among the raw entries; `T "text"` is
//! reasoning that the upstream sent in a separate field; `E NAME {...}` is an event. The JSON is
//! written without line breaks, so a line break always ends an entry.

use tambour::encode::EncoderEntryKind;

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEntryKind<'a> {
    /// Raw text, with its sequence number among the raw entries, from 1.
    Raw(u64),
    /// Reasoning that the upstream sent in a separate field.
    Reasoning,
    /// Event, by name.
    Event(&'a str),
}

impl<'a> From<LogEntryKind<'a>> for EncoderEntryKind<'a> {
    /// Converts to the kind that encoders use.
    fn from(kind: LogEntryKind<'a>) -> EncoderEntryKind<'a> {
        match kind {
            LogEntryKind::Raw(seq) => EncoderEntryKind::Raw(seq),
            LogEntryKind::Reasoning => EncoderEntryKind::Reasoning,
            LogEntryKind::Event(name) => EncoderEntryKind::Event(name),
        }
    }
}

/// Entry of a message's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry<'a> {
    /// Number of the entry in the log, from 1.
    pub number: u64,
    /// Kind of the entry.
    pub kind: LogEntryKind<'a>,
    /// JSON: a string for text, an object for an event.
    pub json: &'a str,
}

/// Event name of the placeholders for entries that were lost with a part of the store. Clients may have seen
/// the lost entries, so their numbers must not be used again. A placeholder is never sent to clients.
pub const LOST_ENTRY: &str = "lost";

/// Approximate bytes that the two entries of a chunk, raw text and event, need in addition to the text.
const CHUNK_OVERHEAD: usize = 160;

/// Entries with consecutive numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Number of the first entry.
    first: u64,
    /// Number of the last entry; one less than `first` if there is none.
    last: u64,
    /// Encoded entries, one line each.
    body: Vec<u8>,
    /// Set when `completed` or `error` was pushed; stays `false` in a batch made from its stored form.
    has_end: bool,
}

impl Batch {
    /// Creates an empty batch whose first entry will have number `first`, from 1.
    #[must_use]
    pub fn new(first: u64) -> Batch {
        Batch { first, last: first - 1, body: Vec::new(), has_end: false }
    }

    /// Creates a batch from its stored form: entries `first` to `last`, one line each in `body`.
    #[must_use]
    pub fn from_stored(first: u64, last: u64, body: Vec<u8>) -> Batch {
        Batch { first, last, body, has_end: false }
    }

    /// Creates placeholders for the lost entries `first` to `last`.
    #[must_use]
    pub(super) fn placeholders(first: u64, last: u64) -> Batch {
        let mut batch = Batch::new(first);
        (first..=last).for_each(|_| batch.push_event(LOST_ENTRY, |out| out.extend_from_slice(b"{}")));
        batch
    }

    /// Removes the entries up to and including number `last_skipped`.
    #[must_use]
    pub fn skip_through(mut self, last_skipped: u64) -> Batch {
        let skipped = usize::try_from((last_skipped + 1).saturating_sub(self.first)).unwrap_or(usize::MAX);
        if skipped > 0 {
            let line_end = memchr::memchr_iter(b'\n', &self.body).nth(skipped - 1);
            self.body.drain(..line_end.map_or(self.body.len(), |line_end| line_end + 1));
            self.first = (last_skipped + 1).min(self.last + 1);
        }
        self
    }

    /// Adds raw text with sequence number `seq`.
    pub fn push_raw(&mut self, seq: u64, text: &str) {
        self.reserve_chunk(text.len());
        self.body.extend_from_slice(b"R ");
        tambour::encode::write_number(seq, &mut self.body);
        self.body.push(b' ');
        self.push_text(text);
    }

    /// Adds reasoning.
    pub fn push_reasoning(&mut self, text: &str) {
        self.reserve_chunk(text.len());
        self.body.extend_from_slice(b"T ");
        self.push_text(text);
    }

    /// Adds an event; `write_json` appends its JSON object without line breaks.
    pub fn push_event(&mut self, name: &str, write_json: impl FnOnce(&mut Vec<u8>)) {
        self.reserve_chunk(0);
        self.has_end |= matches!(name, "completed" | "error");
        self.body.extend_from_slice(b"E ");
        self.body.extend_from_slice(name.as_bytes());
        self.body.push(b' ');
        write_json(&mut self.body);
        self.end_line();
    }

    /// Reserves memory for all entries of a chunk with that much text, if the batch is new: growing step by
    /// step would cost more than the writing.
    fn reserve_chunk(&mut self, text_bytes: usize) {
        if self.body.capacity() == 0 {
            self.body.reserve(CHUNK_OVERHEAD + text_bytes);
        }
    }

    fn push_text(&mut self, text: &str) {
        tambour::encode::write_string(text, &mut self.body);
        self.end_line();
    }

    fn end_line(&mut self) {
        self.body.push(b'\n');
        self.last += 1;
    }

    /// Returns the number of the first entry.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Returns the number of the last entry, or one less than the first if there is none.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Returns `true` if there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.last < self.first
    }

    /// Returns `true` if the end of the message, `completed` or `error`, was pushed. Always `false` for a
    /// batch from [`Batch::from_stored`].
    #[must_use]
    pub fn has_end(&self) -> bool {
        self.has_end
    }

    /// Returns the encoded entries, one line each.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Iterates over the entries in order.
    pub fn entries(&self) -> impl Iterator<Item = LogEntry<'_>> {
        let mut position = self.first_position();
        std::iter::from_fn(move || self.next_entry(&mut position))
    }

    /// Returns the position before the first entry.
    #[must_use]
    pub fn first_position(&self) -> BatchPosition {
        BatchPosition { offset: 0, number: self.first }
    }

    /// Returns the entry after the position `at` and moves `at` past this entry; `None` at the end. Lines that
    /// are not entries (damaged data) are skipped, but each uses up a number.
    pub fn next_entry(&self, at: &mut BatchPosition) -> Option<LogEntry<'_>> {
        while at.number <= self.last {
            let remaining = self.body.get(at.offset..).filter(|remaining| !remaining.is_empty())?;
            let end = memchr::memchr(b'\n', remaining).unwrap_or(remaining.len());
            let number = at.number;
            *at = BatchPosition { offset: at.offset + end + 1, number: number + 1 };
            if let Some((kind, json)) = parse_line(&remaining[..end]) {
                return Some(LogEntry { number, kind, json });
            }
        }
        None
    }
}

/// Position between two entries of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchPosition {
    /// Offset in the body.
    offset: usize,
    /// Number of the entry after the position.
    number: u64,
}

/// Parses a line into kind and JSON; `None` if it is not an entry.
fn parse_line(line: &[u8]) -> Option<(LogEntryKind<'_>, &str)> {
    let line = std::str::from_utf8(line).ok()?;
    let (kind, content) = line.split_once(' ')?;
    match kind {
        "R" => {
            let (seq, json) = content.split_once(' ')?;
            Some((LogEntryKind::Raw(seq.parse().ok()?), json))
        }
        "T" => Some((LogEntryKind::Reasoning, content)),
        "E" => {
            let (name, json) = content.split_once(' ')?;
            Some((LogEntryKind::Event(name), json))
        }
        _ => None,
    }
}
