//! Records of the journal: a head, by which a record is found and known, and a body.
//!
//! A head is, with little-endian numbers: mark (4 bytes), sum of what follows in the head (4), length of the body (4), sum of the
//! body (4), number of the record within its segment from 1 (4), numbers of the first and last entry (8 each), kind (1), length
//! of the id (1), id of the message. Sums are CRC-32. Kinds are `M`, a new message whose body is its row as JSON; `E`, entries of
//! a log as the body has them; `F`, its last entries and what came of the message, which is length and bytes of entries, then
//! JSON; `P`, nothing, to see whether the journal can be written.

use serde::{Deserialize, Serialize};

use crate::store::{Batch, MessageRow, Outcome};

/// First bytes of a record. None of them occurs in UTF-8, so no body has them, whatever a user or a model writes: a reader that
/// has lost its place finds the next record by them, and never one that somebody made up.
pub(super) const MARK: [u8; 4] = [0xff, 0xf5, 0xfe, 0xf8];
/// Bytes of a head before the id.
pub(super) const FIXED: usize = 38;

const MESSAGE: u8 = b'M';
const ENTRIES: u8 = b'E';
const END: u8 = b'F';
const PROBE: u8 = b'P';

/// What goes on the journal.
pub(in crate::store::sqlite) enum Record<'a> {
    /// A new message.
    Message(&'a MessageRow),
    /// Entries `first` to `last` of the log of a message.
    Entries { message: &'a str, first: u64, last: u64, body: &'a [u8] },
    /// The end of a log.
    End(Ending<'a>),
    /// Nothing.
    Probe,
}

/// The last entries of a log, and what came of the message.
pub(in crate::store::sqlite) struct Ending<'a> {
    row: &'a MessageRow,
    last: &'a Batch,
}

/// What came of a message, as it is on the journal.
#[derive(Serialize)]
struct EndRow<'a> {
    conversation_id: &'a str,
    created: &'a str,
    status: &'a str,
    outcome: Option<&'a Outcome>,
}

/// The same as it is read.
#[derive(Deserialize)]
struct FoundRow {
    conversation_id: String,
    created: String,
    status: String,
    outcome: Option<Outcome>,
}

/// A record as it was read.
#[derive(Debug)]
pub(super) enum Found {
    Message(Box<MessageRow>),
    Entries(Entries),
    /// The last entries, none if the log had its end before, and what came of the message.
    End(Entries, Box<MessageRow>),
    /// A probe, or a kind that a later version writes.
    Other,
}

/// Entries with consecutive numbers.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::store::sqlite) struct Entries {
    pub(in crate::store::sqlite) message: String,
    pub(in crate::store::sqlite) first: u64,
    pub(in crate::store::sqlite) last: u64,
    pub(in crate::store::sqlite) body: Vec<u8>,
}

/// The subject of a record whose body is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Message(String),
    Entries {
        message: String,
        first: u64,
        last: u64,
    },
    /// Nothing that anybody needs.
    Probe,
}

/// A head that is intact.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head<'a> {
    /// Place of the record in its segment, from 1.
    pub(super) number: u32,
    /// Bytes of the head.
    pub(super) length: usize,
    /// Bytes of the body.
    pub(super) body: usize,
    sum: u32,
    kind: u8,
    first: u64,
    last: u64,
    message: &'a str,
}

impl<'a> Ending<'a> {
    /// The end of a message whose outcome is known.
    pub(in crate::store::sqlite) fn new(row: &'a MessageRow, last: &'a Batch) -> Ending<'a> {
        Ending { row, last }
    }
}

impl Record<'_> {
    /// Appends the record, which is the one of that number in its segment.
    pub(super) fn write(&self, number: u32, out: &mut Vec<u8>) {
        let start = out.len();
        let (kind, message, first, last) = match self {
            Record::Message(row) => (MESSAGE, row.id.as_str(), 0, 0),
            Record::Entries { message, first, last, .. } => (ENTRIES, *message, *first, *last),
            Record::End(Ending { row, last }) => (END, row.id.as_str(), last.first(), last.last()),
            Record::Probe => (PROBE, "", 0, 0),
        };
        out.extend_from_slice(&MARK);
        out.extend_from_slice(&[0; 12]);
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&first.to_le_bytes());
        out.extend_from_slice(&last.to_le_bytes());
        out.push(kind);
        out.push(u8::try_from(message.len()).expect("ids are the server's own, and short"));
        out.extend_from_slice(message.as_bytes());
        let head = out.len();
        match self {
            Record::Message(row) => {
                serde_json::to_writer(&mut *out, row).expect("a row has only texts");
            }
            Record::Entries { body, .. } => out.extend_from_slice(body),
            Record::End(Ending { row, last }) => {
                let length = u32::try_from(last.body().len()).expect("limits keep batches below 4 GiB");
                out.extend_from_slice(&length.to_le_bytes());
                out.extend_from_slice(last.body());
                let row = EndRow {
                    conversation_id: &row.conversation_id,
                    created: &row.created,
                    status: &row.status,
                    outcome: row.outcome.as_ref(),
                };
                serde_json::to_writer(&mut *out, &row).expect("a row has only texts");
            }
            Record::Probe => {}
        }
        let (head, body) = out[start..].split_at_mut(head - start);
        let length = u32::try_from(body.len()).expect("limits keep records below 4 GiB");
        head[8..12].copy_from_slice(&length.to_le_bytes());
        head[12..16].copy_from_slice(&crc32fast::hash(body).to_le_bytes());
        let sum = crc32fast::hash(&head[8..]);
        head[4..8].copy_from_slice(&sum.to_le_bytes());
    }
}

impl<'a> Head<'a> {
    /// The head that `bytes` begin with, if it is intact.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Head<'a>> {
        let mut rest = bytes.strip_prefix(&MARK)?;
        let sum = number(&mut rest)?;
        let summed = rest;
        let (body, body_sum, number) = (number(&mut rest)?, number(&mut rest)?, number(&mut rest)?);
        let (first, last) = (long(&mut rest)?, long(&mut rest)?);
        let (kind, id) = (*rest.split_off_first()?, *rest.split_off_first()?);
        let message = rest.split_off(..usize::from(id))?;
        if crc32fast::hash(&summed[..summed.len() - rest.len()]) != sum {
            return None;
        }
        let length = FIXED + message.len();
        let (message, body) = (std::str::from_utf8(message).ok()?, usize::try_from(body).ok()?);
        Some(Head { number, length, body, sum: body_sum, kind, first, last, message })
    }

    /// The record with that body, if it is intact.
    pub(super) fn record(&self, body: &[u8]) -> Option<Found> {
        if crc32fast::hash(body) != self.sum {
            return None;
        }
        Some(match self.kind {
            MESSAGE => Found::Message(serde_json::from_slice(body).ok()?),
            ENTRIES => {
                let message = self.message.to_owned();
                Found::Entries(Entries { message, first: self.first, last: self.last, body: body.to_vec() })
            }
            END => {
                let mut rest = body;
                let length = usize::try_from(number(&mut rest)?).ok()?;
                let body = rest.split_off(..length)?.to_vec();
                let FoundRow { conversation_id, created, status, outcome } =
                    serde_json::from_slice(rest).ok()?;
                let id = self.message.to_owned();
                let entries = Entries { message: id.clone(), first: self.first, last: self.last, body };
                let row =
                    MessageRow { id, conversation_id, created, status, outcome, ..MessageRow::default() };
                Found::End(entries, Box::new(row))
            }
            _ => Found::Other,
        })
    }

    /// The subject of the record; `None` if a later version wrote it.
    pub(super) fn subject(&self) -> Option<Subject> {
        let message = self.message.to_owned();
        match self.kind {
            MESSAGE => Some(Subject::Message(message)),
            ENTRIES | END => Some(Subject::Entries { message, first: self.first, last: self.last }),
            PROBE => Some(Subject::Probe),
            _ => None,
        }
    }
}

/// Takes a number of four bytes off.
pub(super) fn number(rest: &mut &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(*rest.split_off(..4)?.first_chunk()?))
}

/// Takes a number of eight bytes off.
pub(super) fn long(rest: &mut &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(*rest.split_off(..8)?.first_chunk()?))
}
