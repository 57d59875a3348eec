//! Journals of version 1: length, checksum and payload, without marks. Read only, never written.

use memchr::memchr3_iter;

use super::record::{Entries, Found, long, number};
use super::scan::{Damage, Piece};

/// Name and version.
pub(super) const HEAD: &[u8; 12] = b"tambour\n\x01\0\0\0";
/// Bytes before a payload.
const BEFORE: usize = 8;
/// Longest plausible id in the search for the next record.
const LONGEST_ID: usize = 128;

/// Iterator over the records.
pub(super) struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Scan<'a> {
        Scan { bytes, at: HEAD.len().min(bytes.len()) }
    }

    /// Finds the first record after `from` by its kind letter. A cheap check of its beginning comes first:
    /// texts contain no zeros, so no text is taken for a length, and checksums are rarely computed in vain.
    fn record_from(&self, from: usize) -> Option<usize> {
        let rest = self.bytes.get(from..)?;
        let letters = memchr3_iter(b'M', b'E', b'P', rest);
        letters.filter_map(|letter| (from + letter).checked_sub(BEFORE)).find(|at| {
            *at >= from
                && self.bytes.get(*at..).is_some_and(|rest| is_likely(rest) && read(&mut &*rest).is_some())
        })
    }
}

impl Iterator for Scan<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        let mut ahead = rest;
        if let Some(found) = read(&mut ahead) {
            self.at = self.bytes.len() - ahead.len();
            return Some(Piece::Record(found));
        }
        let offset = self.at;
        let next = self.record_from(self.at + 1);
        self.at = next.unwrap_or(self.bytes.len());
        let bytes = self.at - offset;
        let short = number(&mut &*rest).is_none_or(|length| {
            usize::try_from(length).map_or(true, |length| rest.len() < length.saturating_add(BEFORE))
        });
        if next.is_none() && (short || rest.iter().all(|byte| *byte == 0)) {
            return Some(Piece::Torn { offset, bytes, end: None, subject: None });
        }
        Some(Piece::Damage(Damage { offset, bytes, records: 1, subject: None }))
    }
}

/// Returns `true` if bytes begin as a record does.
fn is_likely(bytes: &[u8]) -> bool {
    let length = number(&mut &*bytes).and_then(|length| usize::try_from(length).ok()).unwrap_or(usize::MAX);
    let Some(payload) = bytes.get(BEFORE..BEFORE.saturating_add(length)) else { return false };
    match payload {
        [b'M', b'{', ..] => payload.ends_with(b"}"),
        [b'E', rest @ ..] => number(&mut &*rest)
            .and_then(|id| rest.get(4..4 + usize::try_from(id).ok().filter(|id| *id <= LONGEST_ID)?))
            .is_some_and(|id| id.iter().all(u8::is_ascii_graphic)),
        [b'P'] => true,
        _ => false,
    }
}

/// Parses the first record if it is intact.
fn read(rest: &mut &[u8]) -> Option<Found> {
    let mut ahead = *rest;
    let (length, sum) = (number(&mut ahead)?, number(&mut ahead)?);
    let payload = ahead.split_off(..usize::try_from(length).ok()?)?;
    if crc32fast::hash(payload) != sum {
        return None;
    }
    let (kind, mut payload) = payload.split_first()?;
    let found = match kind {
        b'M' => Found::Message(serde_json::from_slice(payload).ok()?),
        b'E' => {
            let length = usize::try_from(number(&mut payload)?).ok()?;
            let message = String::from_utf8(payload.split_off(..length)?.to_vec()).ok()?;
            let (first, last) = (long(&mut payload)?, long(&mut payload)?);
            Found::Entries(Entries { message, first, last, body: payload.to_vec() })
        }
        _ => Found::Other,
    };
    *rest = ahead;
    Some(found)
}
