//! Records of the journal: a header, which identifies the record and lets a scan find it, and a body.
//!
//! A header consists of these fields, in little-endian byte order: mark (4 bytes), checksum of the rest of
//! the header (4), length of the body (4), checksum of the body (4), number of the record within its segment
//! from 1 (4), numbers of the first and last entry (8 each), kind (1), length of the message id (1), message
//! id. Checksums are CRC-32. Kinds are `M`, a new message with its row as JSON; `E`, log entries; `F`, the
//! last entries and the outcome: length (4) and bytes of the entries, then JSON; `P`, a probe without content
//! that checks whether the journal can be written.

use serde::{Deserialize, Serialize};

use crate::{Batch, MessageOutcome, MessageRow};

/// First bytes of a record. None of them occurs in UTF-8, so no body contains them, whatever a user or model
/// writes. A scan that has lost its position uses them to find the next record, and never finds a forged one.
pub(super) const RECORD_MARK: [u8; 4] = [0xff, 0xf5, 0xfe, 0xf8];
/// Bytes of a header before the message id.
pub(super) const FIXED_HEADER_BYTES: usize = 38;

// Kinds of records.
const MESSAGE: u8 = b'M';
const ENTRIES: u8 = b'E';
const END: u8 = b'F';
const PROBE: u8 = b'P';

/// Record to write.
pub(in crate::sqlite) enum JournalRecord<'a> {
    /// New message.
    Message(&'a MessageRow),
    /// Entries `first` to `last` of a message's log, with the encoded entries of a [`Batch`] as body.
    Entries { message: &'a str, first: u64, last: u64, body: &'a [u8] },
    /// End of a log.
    End(LogEnd<'a>),
    /// Probe without content.
    Probe,
}

/// Last entries of a log, and the outcome of the message.
pub(in crate::sqlite) struct LogEnd<'a> {
    /// Row of the message, with its outcome.
    row: &'a MessageRow,
    /// Last entries; empty if the log has its end already.
    last_entries: &'a Batch,
}

/// JSON of an end record, as it is written.
#[derive(Serialize)]
struct WrittenEnd<'a> {
    conversation_id: &'a str,
    created: &'a str,
    status: &'a str,
    outcome: Option<&'a MessageOutcome>,
}

/// JSON of an end record, as it is read.
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
    /// New message.
    Message(Box<MessageRow>),
    /// Entries of a message's log.
    Entries(EntryRange),
    /// Last entries (none if the log had its end before), and a row with the outcome of the message.
    End(EntryRange, Box<MessageRow>),
    /// Probe, or a kind written by a later version.
    Other,
}

/// Entries with consecutive numbers.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::sqlite) struct EntryRange {
    /// Id of the message.
    pub(in crate::sqlite) message: String,
    /// Number of the first entry.
    pub(in crate::sqlite) first: u64,
    /// Number of the last entry.
    pub(in crate::sqlite) last: u64,
    /// Encoded entries, as in the body of a [`Batch`].
    pub(in crate::sqlite) body: Vec<u8>,
}

/// Content of a record as its header describes it, known even if the body is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RecordSubject {
    /// New message with this id.
    Message(String),
    /// Entries `first` to `last` of a message's log.
    Entries { message: String, first: u64, last: u64 },
    /// Probe, which has no data to lose.
    Probe,
}

/// Header of a record, intact by its checksum.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordHeader<'a> {
    /// Number of the record in its segment, from 1.
    pub(super) number: u32,
    /// Length of the header in bytes.
    pub(super) length: usize,
    /// Length of the body in bytes.
    pub(super) body_length: usize,
    body_checksum: u32,
    kind: u8,
    /// Number of the first entry, 0 for a record without entries.
    first: u64,
    /// Number of the last entry.
    last: u64,
    /// Id of the message; empty for a probe.
    message: &'a str,
}

impl<'a> LogEnd<'a> {
    /// Creates the end of a message whose row has its outcome.
    pub(in crate::sqlite) fn new(row: &'a MessageRow, last_entries: &'a Batch) -> LogEnd<'a> {
        LogEnd { row, last_entries }
    }
}

impl JournalRecord<'_> {
    /// Appends the encoded record, whose number in the segment is `number`.
    pub(super) fn write(&self, number: u32, out: &mut Vec<u8>) {
        let start = out.len();
        let (kind, message, first, last) = match self {
            JournalRecord::Message(row) => (MESSAGE, row.id.as_str(), 0, 0),
            JournalRecord::Entries { message, first, last, .. } => (ENTRIES, *message, *first, *last),
            JournalRecord::End(LogEnd { row, last_entries }) => {
                (END, row.id.as_str(), last_entries.first(), last_entries.last())
            }
            JournalRecord::Probe => (PROBE, "", 0, 0),
        };
        out.extend_from_slice(&RECORD_MARK);
        // Checksums and length of the body are filled in below.
        out.extend_from_slice(&[0; 12]);
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&first.to_le_bytes());
        out.extend_from_slice(&last.to_le_bytes());
        out.push(kind);
        out.push(u8::try_from(message.len()).expect("ids are the server's own, and short"));
        out.extend_from_slice(message.as_bytes());
        let body_start = out.len();
        match self {
            JournalRecord::Message(row) => {
                serde_json::to_writer(&mut *out, row).expect("a row has only texts");
            }
            JournalRecord::Entries { body, .. } => out.extend_from_slice(body),
            JournalRecord::End(LogEnd { row, last_entries }) => {
                let entries_length =
                    u32::try_from(last_entries.body().len()).expect("limits keep batches below 4 GiB");
                out.extend_from_slice(&entries_length.to_le_bytes());
                out.extend_from_slice(last_entries.body());
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
        let (header, body) = out[start..].split_at_mut(body_start - start);
        let body_length = u32::try_from(body.len()).expect("limits keep records below 4 GiB");
        header[8..12].copy_from_slice(&body_length.to_le_bytes());
        header[12..16].copy_from_slice(&crc32fast::hash(body).to_le_bytes());
        let checksum = crc32fast::hash(&header[8..]);
        header[4..8].copy_from_slice(&checksum.to_le_bytes());
    }
}

impl<'a> RecordHeader<'a> {
    /// Parses the header at the start of `bytes`; `None` unless it is intact.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<RecordHeader<'a>> {
        let mut unread = bytes.strip_prefix(&RECORD_MARK)?;
        let checksum = read_u32(&mut unread)?;
        let after_checksum = unread;
        let (body_length, body_checksum) = (read_u32(&mut unread)?, read_u32(&mut unread)?);
        let number = read_u32(&mut unread)?;
        let (first, last) = (read_u64(&mut unread)?, read_u64(&mut unread)?);
        let (kind, id_length) = (*unread.split_off_first()?, *unread.split_off_first()?);
        let message = unread.split_off(..usize::from(id_length))?;
        if crc32fast::hash(&after_checksum[..after_checksum.len() - unread.len()]) != checksum {
            return None;
        }
        let length = FIXED_HEADER_BYTES + message.len();
        let (message, body_length) = (std::str::from_utf8(message).ok()?, usize::try_from(body_length).ok()?);
        Some(RecordHeader { number, length, body_length, body_checksum, kind, first, last, message })
    }

    /// Parses the record that has this header and body; `None` unless the body is intact.
    pub(super) fn parse_body(&self, body: &[u8]) -> Option<FoundRecord> {
        if crc32fast::hash(body) != self.body_checksum {
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
                let mut unread = body;
                let length = usize::try_from(read_u32(&mut unread)?).ok()?;
                let body = unread.split_off(..length)?.to_vec();
                let ReadEnd { conversation_id, created, status, outcome } =
                    serde_json::from_slice(unread).ok()?;
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

/// Takes a four-byte number off the start of `bytes`; `None` if there are fewer bytes.
pub(super) fn read_u32(bytes: &mut &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.split_off(..4)?.first_chunk()?))
}

/// Takes an eight-byte number off the start of `bytes`; `None` if there are fewer bytes.
pub(super) fn read_u64(bytes: &mut &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.split_off(..8)?.first_chunk()?))
}
