//! Segments of version 1, which are read and never written.
//!
//! A record has the length of its payload (4 bytes), a CRC-32 of it (4) and the payload, which begins with
//! the letter of its kind. Records have neither marks nor numbers.

use memchr::memchr3_iter;

use super::record::{EntryRange, FoundRecord, read_u32, read_u64};
use super::scan::{DamagedRange, SegmentPart};

/// Header of a segment: name and version.
pub(super) const V1_HEADER: &[u8; 12] = b"tambour\n\x01\0\0\0";
/// Bytes before a payload.
const PREFIX_BYTES: usize = 8;
/// Maximum length, in bytes, of an id that the search for the next record accepts as plausible.
const MAX_ID_BYTES: usize = 128;

/// Iterator over the parts of a segment after its header.
pub(super) struct V1Scan<'a> {
    /// The whole segment.
    bytes: &'a [u8],
    /// Offset of the next part.
    offset: usize,
}

impl<'a> V1Scan<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> V1Scan<'a> {
        V1Scan { bytes, offset: V1_HEADER.len().min(bytes.len()) }
    }

    /// Finds the offset of the first intact record at or after `from`, by the letter of its kind. A cheap
    /// check of the record's beginning comes first, so that needless checksums are rare: the length of a
    /// record has zero bytes, which texts do not have.
    fn find_record(&self, from: usize) -> Option<usize> {
        let searched = self.bytes.get(from..)?;
        let letters = memchr3_iter(b'M', b'E', b'P', searched);
        letters.filter_map(|letter| (from + letter).checked_sub(PREFIX_BYTES)).find(|start| {
            *start >= from
                && self
                    .bytes
                    .get(*start..)
                    .is_some_and(|record| is_plausible(record) && parse_record(&mut &*record).is_some())
        })
    }
}

impl Iterator for V1Scan<'_> {
    type Item = SegmentPart;

    fn next(&mut self) -> Option<SegmentPart> {
        let unread = self.bytes.get(self.offset..).filter(|unread| !unread.is_empty())?;
        let mut after_record = unread;
        if let Some(found) = parse_record(&mut after_record) {
            self.offset = self.bytes.len() - after_record.len();
            return Some(SegmentPart::Record(found));
        }
        let offset = self.offset;
        let next_record = self.find_record(self.offset + 1);
        self.offset = next_record.unwrap_or(self.bytes.len());
        let bytes = self.offset - offset;
        let is_cut_off = read_u32(&mut &*unread).is_none_or(|length| {
            usize::try_from(length).map_or(true, |length| unread.len() < length.saturating_add(PREFIX_BYTES))
        });
        if next_record.is_none() && (is_cut_off || unread.iter().all(|byte| *byte == 0)) {
            return Some(SegmentPart::Torn { offset, bytes, end: None, subject: None });
        }
        Some(SegmentPart::Damage(DamagedRange { offset, bytes, records: 1, subject: None }))
    }
}

/// Returns `true` if bytes begin like a record, checked without its checksum.
fn is_plausible(bytes: &[u8]) -> bool {
    let length = read_u32(&mut &*bytes).and_then(|length| usize::try_from(length).ok()).unwrap_or(usize::MAX);
    let Some(payload) = bytes.get(PREFIX_BYTES..PREFIX_BYTES.saturating_add(length)) else { return false };
    match payload {
        [b'M', b'{', ..] => payload.ends_with(b"}"),
        [b'E', content @ ..] => read_u32(&mut &*content)
            .and_then(|length| usize::try_from(length).ok().filter(|length| *length <= MAX_ID_BYTES))
            .and_then(|id_length| content.get(4..4 + id_length))
            .is_some_and(|id| id.iter().all(u8::is_ascii_graphic)),
        [b'P'] => true,
        _ => false,
    }
}

/// Parses the record at the start of `bytes` and moves `bytes` behind it; `None`, with `bytes` unchanged,
/// unless it is intact.
fn parse_record(bytes: &mut &[u8]) -> Option<FoundRecord> {
    let mut unread = *bytes;
    let (length, checksum) = (read_u32(&mut unread)?, read_u32(&mut unread)?);
    let payload = unread.split_off(..usize::try_from(length).ok()?)?;
    if crc32fast::hash(payload) != checksum {
        return None;
    }
    let (kind, mut payload) = payload.split_first()?;
    let found = match kind {
        b'M' => FoundRecord::Message(serde_json::from_slice(payload).ok()?),
        b'E' => {
            let id_length = usize::try_from(read_u32(&mut payload)?).ok()?;
            let message = String::from_utf8(payload.split_off(..id_length)?.to_vec()).ok()?;
            let (first, last) = (read_u64(&mut payload)?, read_u64(&mut payload)?);
            FoundRecord::Entries(EntryRange { message, first, last, body: payload.to_vec() })
        }
        _ => FoundRecord::Other,
    };
    *bytes = unread;
    Some(found)
}
