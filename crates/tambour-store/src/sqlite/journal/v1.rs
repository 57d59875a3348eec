//! Journals of version 1: length, checksum and payload, without marks. Read only, never written.

use memchr::memchr3_iter;

use super::record::{EntryRange, FoundRecord, read_u32, read_u64};
use super::scan::{DamagedRange, SegmentPart};

/// Name and version.
pub(super) const V1_HEADER: &[u8; 12] = b"tambour\n\x01\0\0\0";
/// Bytes before a payload.
const PREFIX_BYTES: usize = 8;
/// Longest plausible id in the search for the next record.
const MAX_ID_BYTES: usize = 128;

/// Iterator over the records.
pub(super) struct V1Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> V1Scan<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> V1Scan<'a> {
        V1Scan { bytes, at: V1_HEADER.len().min(bytes.len()) }
    }

    /// Finds the first record after `from` by its kind letter. A cheap check of its beginning comes first:
    /// texts contain no zeros, so no text is taken for a length, and checksums are rarely computed in vain.
    fn find_record(&self, from: usize) -> Option<usize> {
        let rest = self.bytes.get(from..)?;
        let letters = memchr3_iter(b'M', b'E', b'P', rest);
        letters.filter_map(|letter| (from + letter).checked_sub(PREFIX_BYTES)).find(|at| {
            *at >= from
                && self
                    .bytes
                    .get(*at..)
                    .is_some_and(|rest| is_plausible(rest) && parse_record(&mut &*rest).is_some())
        })
    }
}

impl Iterator for V1Scan<'_> {
    type Item = SegmentPart;

    fn next(&mut self) -> Option<SegmentPart> {
        let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        let mut lookahead = rest;
        if let Some(found) = parse_record(&mut lookahead) {
            self.at = self.bytes.len() - lookahead.len();
            return Some(SegmentPart::Record(found));
        }
        let offset = self.at;
        let next = self.find_record(self.at + 1);
        self.at = next.unwrap_or(self.bytes.len());
        let bytes = self.at - offset;
        let is_cut_off = read_u32(&mut &*rest).is_none_or(|length| {
            usize::try_from(length).map_or(true, |length| rest.len() < length.saturating_add(PREFIX_BYTES))
        });
        if next.is_none() && (is_cut_off || rest.iter().all(|byte| *byte == 0)) {
            return Some(SegmentPart::Torn { offset, bytes, end: None, subject: None });
        }
        Some(SegmentPart::Damage(DamagedRange { offset, bytes, records: 1, subject: None }))
    }
}

/// Returns `true` if bytes begin as a record does.
fn is_plausible(bytes: &[u8]) -> bool {
    let length = read_u32(&mut &*bytes).and_then(|length| usize::try_from(length).ok()).unwrap_or(usize::MAX);
    let Some(payload) = bytes.get(PREFIX_BYTES..PREFIX_BYTES.saturating_add(length)) else { return false };
    match payload {
        [b'M', b'{', ..] => payload.ends_with(b"}"),
        [b'E', rest @ ..] => read_u32(&mut &*rest)
            .and_then(|id| rest.get(4..4 + usize::try_from(id).ok().filter(|id| *id <= MAX_ID_BYTES)?))
            .is_some_and(|id| id.iter().all(u8::is_ascii_graphic)),
        [b'P'] => true,
        _ => false,
    }
}

/// Parses the first record if it is intact.
fn parse_record(rest: &mut &[u8]) -> Option<FoundRecord> {
    let mut lookahead = *rest;
    let (length, sum) = (read_u32(&mut lookahead)?, read_u32(&mut lookahead)?);
    let payload = lookahead.split_off(..usize::try_from(length).ok()?)?;
    if crc32fast::hash(payload) != sum {
        return None;
    }
    let (kind, mut payload) = payload.split_first()?;
    let found = match kind {
        b'M' => FoundRecord::Message(serde_json::from_slice(payload).ok()?),
        b'E' => {
            let length = usize::try_from(read_u32(&mut payload)?).ok()?;
            let message = String::from_utf8(payload.split_off(..length)?.to_vec()).ok()?;
            let (first, last) = (read_u64(&mut payload)?, read_u64(&mut payload)?);
            FoundRecord::Entries(EntryRange { message, first, last, body: payload.to_vec() })
        }
        _ => FoundRecord::Other,
    };
    *rest = lookahead;
    Some(found)
}
