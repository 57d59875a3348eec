//! Scan of a segment past damage: finds every intact record and reports the rest.

use memchr::memmem;

use super::record::{FIXED_HEADER_BYTES, FoundRecord, RECORD_MARK, RecordHeader, RecordSubject};
use super::{SEGMENT_HEADER, v1};

/// Zeros at the end of a file that identify allocated but unwritten space.
const UNWRITTEN_ZEROS: usize = 16;

/// Part of a segment.
#[derive(Debug)]
pub(super) enum SegmentPart {
    /// Intact record.
    Record(FoundRecord),
    /// Unreadable bytes.
    Damage(DamagedRange),
    /// Beginning of a record whose writing was interrupted at the end of the file. `end` is the offset at
    /// which it would have ended, if its header is intact, and `subject` its subject.
    Torn { offset: usize, bytes: usize, end: Option<usize>, subject: Option<RecordSubject> },
}

/// Unreadable range of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DamagedRange {
    pub(super) offset: usize,
    pub(super) bytes: usize,
    /// Least number of records that it contained.
    pub(super) records: u32,
    /// Subject of the record, if its header is intact.
    pub(super) subject: Option<RecordSubject>,
}

/// Splits a segment into its parts.
pub(super) fn scan_segment(bytes: &[u8]) -> Result<Vec<SegmentPart>, UnknownVersion> {
    if SEGMENT_HEADER.starts_with(bytes) || v1::V1_HEADER.starts_with(bytes) {
        // The process died while creating the file.
        return Ok(Vec::new());
    }
    // Marks and checksums are more reliable than a header that may be damaged itself.
    let name = bytes.len().min(SEGMENT_HEADER.len());
    let is_new = SegmentScan::new(bytes, name).find_header(name).is_some();
    let is_old = !is_new && v1::V1Scan::new(bytes).any(|piece| matches!(piece, SegmentPart::Record(_)));
    let damage =
        |bytes, records| SegmentPart::Damage(DamagedRange { offset: 0, bytes, records, subject: None });
    if is_new || (bytes.starts_with(SEGMENT_HEADER) && !is_old) {
        let header_damage = (!bytes.starts_with(SEGMENT_HEADER)).then(|| damage(name, 0));
        return Ok(header_damage.into_iter().chain(SegmentScan::new(bytes, name)).collect());
    }
    if is_old || bytes.starts_with(v1::V1_HEADER) {
        let header_damage = (!bytes.starts_with(v1::V1_HEADER)).then(|| damage(name, 0));
        return Ok(header_damage.into_iter().chain(v1::V1Scan::new(bytes)).collect());
    }
    if bytes.starts_with(&SEGMENT_HEADER[..8]) {
        return Err(UnknownVersion);
    }
    if ends_unwritten(bytes) {
        return Ok(vec![SegmentPart::Torn { offset: 0, bytes: bytes.len(), end: None, subject: None }]);
    }
    Ok(vec![damage(bytes.len(), 1)])
}

/// Error: the file is a journal of an unsupported version.
#[derive(Debug)]
pub(super) struct UnknownVersion;

/// Iterator over the records of a segment.
pub(super) struct SegmentScan<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Number of the next record.
    next: u32,
}

impl<'a> SegmentScan<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> SegmentScan<'a> {
        SegmentScan { bytes, at, next: 1 }
    }

    /// Creates a scan that begins at a record with that number.
    #[cfg(test)]
    pub(super) fn from_record(bytes: &'a [u8], at: usize, next: u32) -> SegmentScan<'a> {
        SegmentScan { bytes, at, next }
    }

    /// Finds the first intact header at or after `from`. Ranges between two calls are searched once, so a
    /// scan is linear.
    fn find_header(&self, from: usize) -> Option<(usize, RecordHeader<'a>)> {
        let rest = self.bytes.get(from..)?;
        memmem::find_iter(rest, &RECORD_MARK)
            .find_map(|at| Some((from + at, RecordHeader::parse(&rest[at..])?)))
    }

    /// Skips unreadable bytes up to the next intact header.
    fn skip_damage(
        &mut self,
        head: Option<RecordHeader<'a>>,
        next: Option<(usize, RecordHeader<'a>)>,
        end: usize,
    ) -> SegmentPart {
        let offset = self.at;
        let number = head.map_or(self.next, |head| head.number);
        let (end, records) = match next {
            Some((at, next)) => (at, next.number.saturating_sub(self.next).max(1)),
            None => (end, number.saturating_sub(self.next).saturating_add(1)),
        };
        // If more records are lost, its subject is not the only one.
        let subject = head.filter(|_| records == 1).and_then(|head| head.subject());
        self.at = end;
        self.next = self.next.saturating_add(records);
        SegmentPart::Damage(DamagedRange { offset, bytes: end - offset, records, subject })
    }
}

impl Iterator for SegmentScan<'_> {
    type Item = SegmentPart;

    fn next(&mut self) -> Option<SegmentPart> {
        let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        let length = self.bytes.len();
        let Some(head) = RecordHeader::parse(rest) else {
            let next = self.find_header(self.at + 1);
            if next.is_none() && is_partial_header(rest) {
                let offset = std::mem::replace(&mut self.at, length);
                return Some(SegmentPart::Torn { offset, bytes: rest.len(), end: None, subject: None });
            }
            return Some(self.skip_damage(None, next, length));
        };
        if head.number > self.next {
            // Records are missing without a gap in the file.
            let (offset, records) = (self.at, head.number - self.next);
            self.next = head.number;
            return Some(SegmentPart::Damage(DamagedRange { offset, bytes: 0, records, subject: None }));
        }
        let end = self.at.saturating_add(head.length).saturating_add(head.body_length);
        if let Some(found) = self.bytes.get(self.at + head.length..end).and_then(|body| head.parse_body(body))
        {
            self.at = end;
            self.next = head.number.saturating_add(1);
            return Some(SegmentPart::Record(found));
        }
        let next = self.find_header(self.at + head.length);
        if next.is_none() && (end > length || ends_unwritten(rest)) {
            let (offset, subject) = (std::mem::replace(&mut self.at, length), head.subject());
            return Some(SegmentPart::Torn { offset, bytes: rest.len(), end: Some(end), subject });
        }
        Some(self.skip_damage(Some(head), next, end.min(length)))
    }
}

/// Returns `true` if the rest of a file can be the beginning of a header, or was never written.
fn is_partial_header(rest: &[u8]) -> bool {
    let mark = &RECORD_MARK[..rest.len().min(RECORD_MARK.len())];
    let complete_header = rest
        .get(FIXED_HEADER_BYTES - 1)
        .map_or(FIXED_HEADER_BYTES, |id| FIXED_HEADER_BYTES + usize::from(*id));
    (rest.starts_with(mark) && rest.len() < complete_header)
        || ends_unwritten(rest)
        || rest.iter().all(|byte| *byte == 0)
}

/// Returns `true` if bytes end in unwritten space: neither headers nor bodies end so.
fn ends_unwritten(bytes: &[u8]) -> bool {
    bytes.last_chunk::<UNWRITTEN_ZEROS>().is_some_and(|end| end.iter().all(|byte| *byte == 0))
}
