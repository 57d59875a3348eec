//! Scan of a segment past damage: finds every intact record, and reports all other bytes.

use memchr::memmem;

use super::record::{FIXED_HEADER_BYTES, FoundRecord, RECORD_MARK, RecordHeader, RecordSubject};
use super::{SEGMENT_HEADER, v1};

/// Number of zero bytes at the end of a file that mark allocated space to which nothing was written.
const UNWRITTEN_ZEROS: usize = 16;

/// Part of a segment.
#[derive(Debug)]
pub(super) enum SegmentPart {
    /// Intact record.
    Record(FoundRecord),
    /// Unreadable bytes.
    Damage(DamagedRange),
    /// Incomplete record at the end of the file, left by an interrupted write: `bytes` bytes from `offset`
    /// on. If its header is intact, `end` is the offset at which the record would have ended.
    Torn { offset: usize, bytes: usize, end: Option<usize>, subject: Option<RecordSubject> },
}

/// Unreadable range of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DamagedRange {
    /// Offset in the file.
    pub(super) offset: usize,
    /// Length in bytes; 0 if records are missing without a gap.
    pub(super) bytes: usize,
    /// Minimum number of records that the range contained.
    pub(super) records: u32,
    /// Subject of the only record in the range, if the header of that record is intact.
    pub(super) subject: Option<RecordSubject>,
}

/// Splits a segment into its parts, in order.
///
/// # Errors
/// A later version of the store wrote the segment.
pub(super) fn scan_segment(bytes: &[u8]) -> Result<Vec<SegmentPart>, UnknownVersion> {
    if SEGMENT_HEADER.starts_with(bytes) || v1::V1_HEADER.starts_with(bytes) {
        // The process died while creating the file.
        return Ok(Vec::new());
    }
    // Marks and checksums are more reliable than a header that may be damaged itself.
    let header_length = bytes.len().min(SEGMENT_HEADER.len());
    let has_current_record = SegmentScan::new(bytes, header_length).find_header(header_length).is_some();
    let has_v1_record =
        !has_current_record && v1::V1Scan::new(bytes).any(|part| matches!(part, SegmentPart::Record(_)));
    let damage =
        |bytes, records| SegmentPart::Damage(DamagedRange { offset: 0, bytes, records, subject: None });
    if has_current_record || (bytes.starts_with(SEGMENT_HEADER) && !has_v1_record) {
        let header_damage = (!bytes.starts_with(SEGMENT_HEADER)).then(|| damage(header_length, 0));
        return Ok(header_damage.into_iter().chain(SegmentScan::new(bytes, header_length)).collect());
    }
    if has_v1_record || bytes.starts_with(v1::V1_HEADER) {
        let header_damage = (!bytes.starts_with(v1::V1_HEADER)).then(|| damage(header_length, 0));
        return Ok(header_damage.into_iter().chain(v1::V1Scan::new(bytes)).collect());
    }
    // The file begins with the name of a journal, but with neither of the known versions.
    if bytes.starts_with(&SEGMENT_HEADER[..8]) {
        return Err(UnknownVersion);
    }
    if ends_in_unwritten_space(bytes) {
        return Ok(vec![SegmentPart::Torn { offset: 0, bytes: bytes.len(), end: None, subject: None }]);
    }
    Ok(vec![damage(bytes.len(), 1)])
}

/// Error: a later version of the store wrote the file.
#[derive(Debug)]
pub(super) struct UnknownVersion;

/// Iterator over the parts of a segment after its header.
pub(super) struct SegmentScan<'a> {
    /// The whole segment.
    bytes: &'a [u8],
    /// Offset of the next part.
    offset: usize,
    /// Number that the next record should have.
    next_number: u32,
}

impl<'a> SegmentScan<'a> {
    /// Creates a scan that begins at `offset` with record 1.
    pub(super) fn new(bytes: &'a [u8], offset: usize) -> SegmentScan<'a> {
        SegmentScan { bytes, offset, next_number: 1 }
    }

    /// Creates a scan that begins at `offset` with the record of that number.
    #[cfg(test)]
    pub(super) fn from_record(bytes: &'a [u8], offset: usize, number: u32) -> SegmentScan<'a> {
        SegmentScan { bytes, offset, next_number: number }
    }

    /// Finds the first intact header at or after `from`, with its offset. The scan continues at that header,
    /// so no byte is searched twice and a scan is linear.
    fn find_header(&self, from: usize) -> Option<(usize, RecordHeader<'a>)> {
        let searched = self.bytes.get(from..)?;
        memmem::find_iter(searched, &RECORD_MARK)
            .find_map(|at| Some((from + at, RecordHeader::parse(&searched[at..])?)))
    }

    /// Skips unreadable bytes up to the next intact header or, if there is none, up to `end`. `header` is the
    /// header of the unreadable record, if it is intact.
    fn skip_damage(
        &mut self,
        header: Option<RecordHeader<'a>>,
        next_header: Option<(usize, RecordHeader<'a>)>,
        end: usize,
    ) -> SegmentPart {
        let offset = self.offset;
        let number = header.map_or(self.next_number, |header| header.number);
        // The numbers of records tell how many are missing.
        let (end, records) = match next_header {
            Some((at, next)) => (at, next.number.saturating_sub(self.next_number).max(1)),
            None => (end, number.saturating_sub(self.next_number).saturating_add(1)),
        };
        // The header names the subject of only one of several lost records.
        let subject = header.filter(|_| records == 1).and_then(|header| header.subject());
        self.offset = end;
        self.next_number = self.next_number.saturating_add(records);
        SegmentPart::Damage(DamagedRange { offset, bytes: end - offset, records, subject })
    }
}

impl Iterator for SegmentScan<'_> {
    type Item = SegmentPart;

    fn next(&mut self) -> Option<SegmentPart> {
        let unread = self.bytes.get(self.offset..).filter(|unread| !unread.is_empty())?;
        let length = self.bytes.len();
        let Some(header) = RecordHeader::parse(unread) else {
            let next_header = self.find_header(self.offset + 1);
            if next_header.is_none() && is_partial_header(unread) {
                let offset = std::mem::replace(&mut self.offset, length);
                return Some(SegmentPart::Torn { offset, bytes: unread.len(), end: None, subject: None });
            }
            return Some(self.skip_damage(None, next_header, length));
        };
        if header.number > self.next_number {
            // Records are missing without a gap in the file.
            let (offset, records) = (self.offset, header.number - self.next_number);
            self.next_number = header.number;
            return Some(SegmentPart::Damage(DamagedRange { offset, bytes: 0, records, subject: None }));
        }
        let body_start = self.offset + header.length;
        let end = self.offset.saturating_add(header.length).saturating_add(header.body_length);
        if let Some(found) = self.bytes.get(body_start..end).and_then(|body| header.parse_body(body)) {
            self.offset = end;
            self.next_number = header.number.saturating_add(1);
            return Some(SegmentPart::Record(found));
        }
        let next_header = self.find_header(body_start);
        if next_header.is_none() && (end > length || ends_in_unwritten_space(unread)) {
            let (offset, subject) = (std::mem::replace(&mut self.offset, length), header.subject());
            return Some(SegmentPart::Torn { offset, bytes: unread.len(), end: Some(end), subject });
        }
        Some(self.skip_damage(Some(header), next_header, end.min(length)))
    }
}

/// Returns `true` if the last bytes of a file can be the beginning of a header, or were never written.
fn is_partial_header(bytes: &[u8]) -> bool {
    let mark = &RECORD_MARK[..bytes.len().min(RECORD_MARK.len())];
    // The last byte of the fixed part is the length of the id that follows it.
    let header_length = bytes
        .get(FIXED_HEADER_BYTES - 1)
        .map_or(FIXED_HEADER_BYTES, |id_length| FIXED_HEADER_BYTES + usize::from(*id_length));
    (bytes.starts_with(mark) && bytes.len() < header_length)
        || ends_in_unwritten_space(bytes)
        || bytes.iter().all(|byte| *byte == 0)
}

/// Returns `true` if bytes end in unwritten space: no header or body ends in that many zeros.
fn ends_in_unwritten_space(bytes: &[u8]) -> bool {
    bytes.last_chunk::<UNWRITTEN_ZEROS>().is_some_and(|end| end.iter().all(|byte| *byte == 0))
}
