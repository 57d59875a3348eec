//! Format of the log: entries that arrived together, one per line.
//!
//! `R SEQ "text"` is raw text of the reply, with its sequence number among the raw entries; `T "text"` is
//! reasoning from a separate field; `E NAME {...}` is an event. JSON contains no line breaks, so neither does
//! a line.

use tambour::encode::EncoderEntryKind;

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEntryKind<'a> {
    /// Raw text, with its sequence number among the raw entries, from 1.
    Raw(u64),
    /// Reasoning from a separate field of the reply.
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

/// Entry of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry<'a> {
    /// Number of the entry in the message, from 1.
    pub number: u64,
    /// Kind of the entry.
    pub kind: LogEntryKind<'a>,
    /// JSON: a string for text, an object for an event.
    pub json: &'a str,
}

/// Name of placeholder entries for those lost with a part of the store, which keep their numbers from being
/// reused: clients may have seen them. Never sent to clients.
pub const LOST_ENTRY: &str = "lost";

/// Bytes around the text of a chunk: its raw entry and its event.
const CHUNK_OVERHEAD: usize = 160;

/// Entries with consecutive numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    first: u64,
    last: u64,
    body: Vec<u8>,
    /// Set when it contains `completed` or `error`.
    has_end: bool,
}

impl Batch {
    /// Creates an empty batch whose first entry will have number `first`.
    #[must_use]
    pub fn new(first: u64) -> Batch {
        Batch { first, last: first - 1, body: Vec::new(), has_end: false }
    }

    /// Creates a batch from its stored form.
    #[must_use]
    pub fn from_stored(first: u64, last: u64, body: Vec<u8>) -> Batch {
        Batch { first, last, body, has_end: false }
    }

    /// Creates placeholder entries for the lost ones from `first` to `last`.
    #[must_use]
    pub(super) fn placeholders(first: u64, last: u64) -> Batch {
        let mut batch = Batch::new(first);
        (first..=last).for_each(|_| batch.push_event(LOST_ENTRY, |out| out.extend_from_slice(b"{}")));
        batch
    }

    /// Returns the part after entry `after`.
    #[must_use]
    pub fn skip_through(mut self, after: u64) -> Batch {
        let skipped = usize::try_from((after + 1).saturating_sub(self.first)).unwrap_or(usize::MAX);
        if skipped > 0 {
            let at = memchr::memchr_iter(b'\n', &self.body).nth(skipped - 1);
            self.body.drain(..at.map_or(self.body.len(), |at| at + 1));
            self.first = (after + 1).min(self.last + 1);
        }
        self
    }

    /// Adds raw text.
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

    /// Adds an event; `data` appends its JSON object without line breaks.
    pub fn push_event(&mut self, name: &str, data: impl FnOnce(&mut Vec<u8>)) {
        self.reserve_chunk(0);
        self.has_end |= matches!(name, "completed" | "error");
        self.body.extend_from_slice(b"E ");
        self.body.extend_from_slice(name.as_bytes());
        self.body.push(b' ');
        data(&mut self.body);
        self.end_line();
    }

    /// Reserves memory for a whole chunk at once: growing step by step costs more than the writing.
    fn reserve_chunk(&mut self, text: usize) {
        if self.body.capacity() == 0 {
            self.body.reserve(CHUNK_OVERHEAD + text);
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

    /// Returns `true` if it contains the end of the message.
    #[must_use]
    pub fn has_end(&self) -> bool {
        self.has_end
    }

    /// Returns the encoded entries.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Iterates over the entries in order.
    pub fn entries(&self) -> impl Iterator<Item = LogEntry<'_>> {
        let mut at = self.first_position();
        std::iter::from_fn(move || self.next_entry(&mut at))
    }

    /// Returns the position of the first entry.
    #[must_use]
    pub fn first_position(&self) -> BatchPosition {
        BatchPosition { offset: 0, number: self.first }
    }

    /// Returns the entry at a position and advances it; `None` at the end. Lines that are no entry (damaged
    /// data) are skipped.
    pub fn next_entry(&self, at: &mut BatchPosition) -> Option<LogEntry<'_>> {
        while at.number <= self.last {
            let rest = self.body.get(at.offset..).filter(|rest| !rest.is_empty())?;
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let number = at.number;
            *at = BatchPosition { offset: at.offset + end + 1, number: number + 1 };
            if let Some((kind, json)) = parse_line(&rest[..end]) {
                return Some(LogEntry { number, kind, json });
            }
        }
        None
    }
}

/// Position between two entries of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchPosition {
    offset: usize,
    number: u64,
}

/// Parses a line into kind and JSON.
fn parse_line(line: &[u8]) -> Option<(LogEntryKind<'_>, &str)> {
    let line = std::str::from_utf8(line).ok()?;
    let (kind, rest) = line.split_once(' ')?;
    match kind {
        "R" => {
            let (seq, json) = rest.split_once(' ')?;
            Some((LogEntryKind::Raw(seq.parse().ok()?), json))
        }
        "T" => Some((LogEntryKind::Reasoning, rest)),
        "E" => {
            let (name, json) = rest.split_once(' ')?;
            Some((LogEntryKind::Event(name), json))
        }
        _ => None,
    }
}
