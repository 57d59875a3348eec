//! The records of the journal: length, checksum, payload.
//!
//! A payload is a letter and what it stands for: `M` a new message (JSON), `E` entries of a log, `P` nothing, to see whether
//! there is room. Numbers are little-endian.

use crate::store::MessageRow;

/// What goes on the journal.
pub(in crate::store::sqlite) enum Record<'a> {
    /// A new message.
    Message(&'a MessageRow),
    /// Entries `first` to `last` of the log of a message.
    Entries { message: &'a str, first: u64, last: u64, body: &'a [u8] },
    /// Nothing.
    Probe,
}

/// What was read from it.
#[derive(Debug)]
pub(super) enum Found {
    Message(Box<MessageRow>),
    Entries(Entries),
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

/// Bytes before a payload.
const HEAD: usize = 8;

impl Record<'_> {
    /// Appends the record.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; HEAD]);
        match self {
            Record::Message(row) => {
                out.push(b'M');
                serde_json::to_writer(&mut *out, row).expect("a row has only texts");
            }
            Record::Entries { message, first, last, body } => {
                out.push(b'E');
                out.extend_from_slice(&length(message.len()));
                out.extend_from_slice(message.as_bytes());
                out.extend_from_slice(&first.to_le_bytes());
                out.extend_from_slice(&last.to_le_bytes());
                out.extend_from_slice(body);
            }
            Record::Probe => out.push(b'P'),
        }
        let (head, payload) = out[start..].split_at_mut(HEAD);
        head[..4].copy_from_slice(&length(payload.len()));
        head[4..].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
    }
}

fn length(length: usize) -> [u8; 4] {
    u32::try_from(length).expect("limits keep records below 4 GiB").to_le_bytes()
}

/// Takes the first record off; `None` at the end, or where a damaged one begins.
pub(super) fn next(rest: &mut &[u8]) -> Option<Found> {
    let mut ahead = *rest;
    let (length, sum) = (number(&mut ahead)?, number(&mut ahead)?);
    let payload = ahead.split_off(..usize::try_from(length).ok()?)?;
    if crc32fast::hash(payload) != sum {
        return None;
    }
    let found = read(payload)?;
    *rest = ahead;
    Some(found)
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(*rest.split_off(..4)?.first_chunk()?))
}

fn read(payload: &[u8]) -> Option<Found> {
    let (kind, mut rest) = payload.split_first()?;
    Some(match kind {
        b'M' => Found::Message(serde_json::from_slice(rest).ok()?),
        b'E' => {
            let length = usize::try_from(number(&mut rest)?).ok()?;
            let message = String::from_utf8(rest.split_off(..length)?.to_vec()).ok()?;
            let first = u64::from_le_bytes(*rest.split_off(..8)?.first_chunk()?);
            let last = u64::from_le_bytes(*rest.split_off(..8)?.first_chunk()?);
            Found::Entries(Entries { message, first, last, body: rest.to_vec() })
        }
        _ => Found::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written_and_a_torn_or_changed_one_is_none() {
        let row =
            MessageRow { id: "msg_1".into(), request: "{\"text\":\"é\"}".into(), ..MessageRow::default() };
        let mut out = Vec::new();
        Record::Message(&row).write(&mut out);
        let first = out.len();
        Record::Entries { message: "msg_1", first: 1, last: 2, body: b"T \"a\"\nT \"b\"\n" }.write(&mut out);
        Record::Probe.write(&mut out);
        let mut rest = out.as_slice();
        assert!(matches!(next(&mut rest), Some(Found::Message(read)) if read.request == row.request));
        let Some(Found::Entries(entries)) = next(&mut rest) else { panic!("entries") };
        assert_eq!((entries.first, entries.last, entries.body.len()), (1, 2, 12));
        assert!(matches!(next(&mut rest), Some(Found::Other)));
        assert!(next(&mut rest).is_none() && rest.is_empty());
        for cut in 0..first {
            assert!(next(&mut &out[..cut]).is_none(), "{cut}");
        }
        for at in 0..first {
            let mut changed = out[..first].to_vec();
            changed[at] ^= 1;
            assert!(next(&mut changed.as_slice()).is_none(), "{at}");
        }
    }
}
