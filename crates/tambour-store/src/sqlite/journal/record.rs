//! Records of the journal: a header, by which a record is found and identified, and a body.
//!
//! A header consists of, in little-endian order: mark (4 bytes), checksum of the rest of the header (4),
//! length of the body (4), checksum of the body (4), number of the record within its segment from 1 (4),
//! numbers of the first and last entry (8 each), kind (1), length of the id (1), id of the message. Checksums
//! are CRC-32. Kinds are `M`, a new message with its row as JSON; `E`, log entries; `F`, the last entries and
//! the outcome: length and bytes of the entries, then JSON; `P`, a probe without content that checks whether
//! the journal can be written.

use serde::{Deserialize, Serialize};

use crate::{Batch, MessageOutcome, MessageRow};

/// First bytes of a record. None of them occurs in UTF-8, so no body contains them, whatever a user or model
/// writes: a reader that has lost its position finds the next record by them, and never a forged one.
pub(super) const RECORD_MARK: [u8; 4] = [0xff, 0xf5, 0xfe, 0xf8];
/// Bytes of a header before the id.
pub(super) const FIXED_HEADER_BYTES: usize = 38;

const MESSAGE: u8 = b'M';
const ENTRIES: u8 = b'E';
const END: u8 = b'F';
const PROBE: u8 = b'P';

/// Record to write.
pub(in crate::sqlite) enum JournalRecord<'a> {
    /// New message.
    Message(&'a MessageRow),
    /// Entries `first` to `last` of a message's log.
    Entries { message: &'a str, first: u64, last: u64, body: &'a [u8] },
    /// End of a log.
    End(LogEnd<'a>),
    /// Probe without content.
    Probe,
}

/// Last entries of a log, and the outcome of the message.
pub(in crate::sqlite) struct LogEnd<'a> {
    row: &'a MessageRow,
    last: &'a Batch,
}

/// Outcome of a message, as written.
#[derive(Serialize)]
struct WrittenEnd<'a> {
    conversation_id: &'a str,
    created: &'a str,
    status: &'a str,
    outcome: Option<&'a MessageOutcome>,
}

/// Outcome of a message, as read.
#[derive(Deserialize)]
struct ReadEnd {
    conversation_id: String,
    created: String,
    status: String,
    outcome: Option<MessageOutcome>,
}

/// Record that was read.
#[derive(Debug)]
pub(super) enum FoundRecord {
    Message(Box<MessageRow>),
    Entries(EntryRange),
    /// Last entries, none if the log already had its end, and the outcome of the message.
    End(EntryRange, Box<MessageRow>),
    /// Probe, or a kind written by a later version.
    Other,
}

/// Entries with consecutive numbers.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::sqlite) struct EntryRange {
    pub(in crate::sqlite) message: String,
    pub(in crate::sqlite) first: u64,
    pub(in crate::sqlite) last: u64,
    pub(in crate::sqlite) body: Vec<u8>,
}

/// Subject of a record whose body is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RecordSubject {
    Message(String),
    Entries {
        message: String,
        first: u64,
        last: u64,
    },
    /// Probe, which nobody needs.
    Probe,
}

/// Intact header.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordHeader<'a> {
    /// Number of the record in its segment, from 1.
    pub(super) number: u32,
    /// Length of the header in bytes.
    pub(super) length: usize,
    /// Length of the body in bytes.
    pub(super) body_length: usize,
    body_sum: u32,
    kind: u8,
    first: u64,
    last: u64,
    message: &'a str,
}

impl<'a> LogEnd<'a> {
    /// Creates the end of a message whose row has its outcome.
    pub(in crate::sqlite) fn new(row: &'a MessageRow, last: &'a Batch) -> LogEnd<'a> {
        LogEnd { row, last }
    }
}

impl JournalRecord<'_> {
    /// Appends the encoded record, whose number in the segment is `number`.
    pub(super) fn write(&self, number: u32, out: &mut Vec<u8>) {
        let start = out.len();
        let (kind, message, first, last) = match self {
            JournalRecord::Message(row) => (MESSAGE, row.id.as_str(), 0, 0),
            JournalRecord::Entries { message, first, last, .. } => (ENTRIES, *message, *first, *last),
            JournalRecord::End(LogEnd { row, last }) => (END, row.id.as_str(), last.first(), last.last()),
            JournalRecord::Probe => (PROBE, "", 0, 0),
        };
        out.extend_from_slice(&RECORD_MARK);
        out.extend_from_slice(&[0; 12]);
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&first.to_le_bytes());
        out.extend_from_slice(&last.to_le_bytes());
        out.push(kind);
        out.push(u8::try_from(message.len()).expect("ids are the server's own, and short"));
        out.extend_from_slice(message.as_bytes());
        let head = out.len();
        match self {
            JournalRecord::Message(row) => {
                serde_json::to_writer(&mut *out, row).expect("a row has only texts");
            }
            JournalRecord::Entries { body, .. } => out.extend_from_slice(body),
            JournalRecord::End(LogEnd { row, last }) => {
                let length = u32::try_from(last.body().len()).expect("limits keep batches below 4 GiB");
                out.extend_from_slice(&length.to_le_bytes());
                out.extend_from_slice(last.body());
                let row = WrittenEnd {
                    conversation_id: &row.conversation_id,
                    created: &row.created,
                    status: &row.status,
                    outcome: row.outcome.as_ref(),
                };
                serde_json::to_writer(&mut *out, &row).expect("a row has only texts");
            }
            JournalRecord::Probe => {}
        }
        let (head, body) = out[start..].split_at_mut(head - start);
        let length = u32::try_from(body.len()).expect("limits keep records below 4 GiB");
        head[8..12].copy_from_slice(&length.to_le_bytes());
        head[12..16].copy_from_slice(&crc32fast::hash(body).to_le_bytes());
        let sum = crc32fast::hash(&head[8..]);
        head[4..8].copy_from_slice(&sum.to_le_bytes());
    }
}

impl<'a> RecordHeader<'a> {
    /// Parses the header at the start of `bytes`; `None` unless it is intact.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<RecordHeader<'a>> {
        let mut rest = bytes.strip_prefix(&RECORD_MARK)?;
        let sum = read_u32(&mut rest)?;
        let summed_bytes = rest;
        let (body, body_sum, number) = (read_u32(&mut rest)?, read_u32(&mut rest)?, read_u32(&mut rest)?);
        let (first, last) = (read_u64(&mut rest)?, read_u64(&mut rest)?);
        let (kind, id) = (*rest.split_off_first()?, *rest.split_off_first()?);
        let message = rest.split_off(..usize::from(id))?;
        if crc32fast::hash(&summed_bytes[..summed_bytes.len() - rest.len()]) != sum {
            return None;
        }
        let length = FIXED_HEADER_BYTES + message.len();
        let (message, body_length) = (std::str::from_utf8(message).ok()?, usize::try_from(body).ok()?);
        Some(RecordHeader { number, length, body_length, body_sum, kind, first, last, message })
    }

    /// Parses the record with this body; `None` unless it is intact.
    pub(super) fn parse_body(&self, body: &[u8]) -> Option<FoundRecord> {
        if crc32fast::hash(body) != self.body_sum {
            return None;
        }
        Some(match self.kind {
            MESSAGE => FoundRecord::Message(serde_json::from_slice(body).ok()?),
            ENTRIES => {
                let message = self.message.to_owned();
                FoundRecord::Entries(EntryRange {
                    message,
                    first: self.first,
                    last: self.last,
                    body: body.to_vec(),
                })
            }
            END => {
                let mut rest = body;
                let length = usize::try_from(read_u32(&mut rest)?).ok()?;
                let body = rest.split_off(..length)?.to_vec();
                let ReadEnd { conversation_id, created, status, outcome } =
                    serde_json::from_slice(rest).ok()?;
                let id = self.message.to_owned();
                let entries = EntryRange { message: id.clone(), first: self.first, last: self.last, body };
                let row =
                    MessageRow { id, conversation_id, created, status, outcome, ..MessageRow::default() };
                FoundRecord::End(entries, Box::new(row))
            }
            _ => FoundRecord::Other,
        })
    }

    /// Returns the subject of the record; `None` for a kind of a later version.
    pub(super) fn subject(&self) -> Option<RecordSubject> {
        let message = self.message.to_owned();
        match self.kind {
            MESSAGE => Some(RecordSubject::Message(message)),
            ENTRIES | END => Some(RecordSubject::Entries { message, first: self.first, last: self.last }),
            PROBE => Some(RecordSubject::Probe),
            _ => None,
        }
    }
}

/// Reads a four-byte number.
pub(super) fn read_u32(rest: &mut &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(*rest.split_off(..4)?.first_chunk()?))
}

/// Reads an eight-byte number.
pub(super) fn read_u64(rest: &mut &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(*rest.split_off(..8)?.first_chunk()?))
}
