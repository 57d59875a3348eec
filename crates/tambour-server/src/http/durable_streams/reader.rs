//! Reads a log in chunks and converts its entries to messages of a stream.

use tambour::encode::{Encoder, EncoderEntry, EncoderEntryKind, NativeEncoder};

use super::ReadError;
use super::query::{View, format_offset, unknown_offset};
use crate::base::problem::Problem;
use crate::http::app::App;
use crate::record;
use crate::store::{LogEntry, LogEntryKind, LogState};

/// Approximate maximum size in bytes of a chunk; an entry is never divided.
const CHUNK_BYTES: usize = 64 << 10;
/// Approximate maximum size in bytes of the batches read from the log at once.
const READ_BYTES: usize = 16 << 10;

/// Position in a log.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Position {
    /// Number of the last entry that is a message of the stream, which is the offset; 0 at the beginning.
    message: u64,
    /// Number of the last entry that was read. The entries after `message` up to this one are not messages.
    pub(super) read: u64,
}

impl Position {
    /// Returns the offset as clients see it.
    pub(super) fn offset(self) -> String {
        format_offset(self.message)
    }
}

/// Messages that follow a position.
#[derive(Debug)]
pub(super) struct Chunk {
    /// Text, or JSON messages separated by commas; empty if there is no message.
    pub(super) body: Vec<u8>,
    /// Position after these messages.
    pub(super) next: Position,
    /// True if nothing more could be read. False after a full chunk, when this is not known.
    pub(super) is_tail: bool,
    /// True if the message has ended and nothing follows.
    pub(super) is_closed: bool,
}

/// Reader of one log in one view.
pub(super) struct StreamReader {
    /// Id of the message or turn.
    run_id: String,
    view: View,
    /// Writes events as the client's request selects them.
    encoder: NativeEncoder,
    /// Frame of the entry being written.
    frame: Vec<u8>,
}

/// Entry at a position.
enum EntryAt {
    Missing,
    /// `completed` or `error`.
    End,
    /// Another entry; true if it is raw text that ends with a carriage return.
    Other(bool),
}

impl StreamReader {
    pub(super) fn new(run_id: &str, view: View, encoder: NativeEncoder) -> StreamReader {
        StreamReader { run_id: run_id.to_owned(), view, encoder, frame: Vec::new() }
    }

    /// Returns the id of the message or turn.
    pub(super) fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Returns the view of the stream.
    pub(super) fn view(&self) -> View {
        self.view
    }

    /// Returns the position of an offset. If a part of the store was lost, so that the client has seen more
    /// than the log now contains, the position is before the `error` that ends the log.
    ///
    /// # Errors
    /// The log has no such offset.
    pub(super) async fn start_at(&self, app: &App, offset: u64) -> Result<Position, Problem> {
        let start = Position { message: offset, read: offset };
        if offset == 0 {
            return Ok(start);
        }
        let (later_batches, state) = app.store.read(&self.run_id, offset, 1).await?;
        if !later_batches.is_empty() || !matches!(self.entry_at(app, offset).await?, EntryAt::Missing) {
            return Ok(start);
        }
        let error_entry_number = match state {
            LogState::Ended => record::fold_log(&*app.store, &self.run_id).await?.error_entry_number(),
            LogState::Open | LogState::Gone => None,
        };
        let number =
            error_entry_number.ok_or_else(|| unknown_offset(&format_offset(offset)))?.saturating_sub(1);
        Ok(Position { message: number, read: number })
    }

    /// Reads the messages after a position, about [`CHUNK_BYTES`] bytes of them.
    pub(super) async fn read(&mut self, app: &App, start: Position) -> Result<Chunk, ReadError> {
        let mut chunk = Chunk { body: Vec::new(), next: start, is_tail: false, is_closed: false };
        loop {
            let (batches, state) = app.store.read(&self.run_id, chunk.next.read, READ_BYTES).await?;
            if state == LogState::Gone {
                return Err(ReadError::Gone);
            }
            if batches.is_empty() {
                chunk.is_tail = true;
                chunk.is_closed = match self.entry_at(app, chunk.next.read).await? {
                    EntryAt::End => true,
                    EntryAt::Missing | EntryAt::Other(_) => false,
                };
                let lacks_end = state == LogState::Ended && !chunk.is_closed;
                if lacks_end && chunk.body.is_empty() {
                    return Err(ReadError::Damaged);
                }
                // The readable part of a damaged log is sent, as if more followed.
                chunk.is_tail &= !lacks_end;
                return Ok(chunk);
            }
            for batch in &batches {
                for entry in batch.entries().filter(|entry| entry.number > start.read) {
                    if entry.number <= chunk.next.read {
                        continue;
                    }
                    if chunk.body.len() >= CHUNK_BYTES {
                        return Ok(chunk);
                    }
                    let length_before = chunk.body.len();
                    self.write_message(app, &entry, &mut chunk.body).await?;
                    chunk.next.read = entry.number;
                    if chunk.body.len() > length_before {
                        chunk.next.message = entry.number;
                    }
                    if is_end(entry.kind) {
                        (chunk.is_tail, chunk.is_closed) = (true, true);
                        return Ok(chunk);
                    }
                }
                chunk.next.read = chunk.next.read.max(batch.last());
            }
        }
    }

    /// Finds the tail of the log. Reads the whole log, since only entries that are messages count for the
    /// offset.
    pub(super) async fn find_tail(&mut self, app: &App) -> Result<Chunk, ReadError> {
        let mut chunk = self.read(app, Position::default()).await?;
        while !chunk.is_tail {
            chunk = self.read(app, chunk.next).await?;
        }
        Ok(chunk)
    }

    /// Returns whether the text before a position ends with a carriage return.
    pub(super) async fn has_return_at(&self, app: &App, position: Position) -> Result<bool, ReadError> {
        Ok(matches!(self.entry_at(app, position.message).await?, EntryAt::Other(true)))
    }

    /// Reads the entry with this number.
    async fn entry_at(&self, app: &App, number: u64) -> Result<EntryAt, crate::store::StoreError> {
        let Some(before) = number.checked_sub(1) else { return Ok(EntryAt::Missing) };
        let (batches, _) = app.store.read(&self.run_id, before, 1).await?;
        let Some(batch) = batches.iter().find(|batch| (batch.first()..=batch.last()).contains(&number))
        else {
            return Ok(EntryAt::Missing);
        };
        let entry = batch.entries().find(|entry| entry.number == number);
        Ok(match entry {
            Some(entry) if is_end(entry.kind) => EntryAt::End,
            Some(entry) => EntryAt::Other(is_raw(entry.kind) && ends_with_carriage_return(entry.json)),
            None => EntryAt::Other(false),
        })
    }

    /// Appends the message of an entry, if it has one.
    async fn write_message(
        &mut self,
        app: &App,
        entry: &LogEntry<'_>,
        body: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        if self.view == View::Text {
            if is_raw(entry.kind) {
                let text: String = serde_json::from_str(entry.json).unwrap_or_default();
                body.extend_from_slice(text.as_bytes());
            }
            return Ok(());
        }
        let kind = EncoderEntryKind::from(entry.kind);
        let reply = match self.encoder.wants_reply(kind) {
            true => Some(record::fold_log(&*app.store, &self.run_id).await?.reply),
            false => None,
        };
        self.frame.clear();
        let encoder_entry =
            EncoderEntry { number: entry.number, kind, json: entry.json, reply: reply.as_deref() };
        self.encoder.write_entry(&encoder_entry, &mut self.frame);
        write_json_message(&self.frame, body);
        Ok(())
    }
}

fn is_raw(kind: LogEntryKind<'_>) -> bool {
    matches!(kind, LogEntryKind::Raw(_))
}

/// Returns `true` if a JSON string ends with a carriage return, which the log writes as `\r`. After an escaped
/// backslash, `r` is a letter.
fn ends_with_carriage_return(json: &str) -> bool {
    let before_letter = json.strip_suffix("r\"");
    before_letter.is_some_and(|text| (text.len() - text.trim_end_matches('\\').len()) % 2 == 1)
}

fn is_end(kind: LogEntryKind<'_>) -> bool {
    matches!(kind, LogEntryKind::Event("completed" | "error"))
}

/// Appends the JSON message of an event's frame (J-034): `id` if it has a number, `event`, `data`.
fn write_json_message(frame: &[u8], body: &mut Vec<u8>) {
    let Some(frame) = frame.strip_suffix(b"\n\n") else { return };
    if !body.is_empty() {
        body.push(b',');
    }
    body.push(b'{');
    for (place, line) in frame.split(|byte| *byte == b'\n').enumerate() {
        if place > 0 {
            body.push(b',');
        }
        if let Some(number) = line.strip_prefix(b"id: ") {
            body.extend_from_slice(b"\"id\":");
            body.extend_from_slice(number);
        } else if let Some(name) = line.strip_prefix(b"event: ") {
            body.extend_from_slice(b"\"event\":\"");
            body.extend_from_slice(name);
            body.push(b'"');
        } else if let Some(data) = line.strip_prefix(b"data: ") {
            body.extend_from_slice(b"\"data\":");
            body.extend_from_slice(data);
        }
    }
    body.push(b'}');
}
