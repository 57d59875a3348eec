//! Scan of a segment past damage: finds every intact record and reports the rest.

use memchr::memmem;

use super::record::{FIXED, Found, Head, MARK, Subject};
use super::{HEAD, old};

/// Zeros at the end of a file that identify allocated but unwritten space.
const UNWRITTEN: usize = 16;

/// Part of a segment.
#[derive(Debug)]
pub(super) enum Piece {
    /// Intact record.
    Record(Found),
    /// Unreadable bytes.
    Damage(Damage),
    /// Beginning of a record whose writing was interrupted at the end of the file. `end` is the offset at
    /// which it would have ended, if its header is intact, and `subject` its subject.
    Torn { offset: usize, bytes: usize, end: Option<usize>, subject: Option<Subject> },
}

/// Unreadable range of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Damage {
    pub(super) offset: usize,
    pub(super) bytes: usize,
    /// Least number of records that it contained.
    pub(super) records: u32,
    /// Subject of the record, if its header is intact.
    pub(super) subject: Option<Subject>,
}

/// Splits a segment into its parts.
pub(super) fn pieces(bytes: &[u8]) -> Result<Vec<Piece>, UnknownVersion> {
    if HEAD.starts_with(bytes) || old::HEAD.starts_with(bytes) {
        // The process died while creating the file.
        return Ok(Vec::new());
    }
    // Marks and checksums are more reliable than a header that may be damaged itself.
    let name = bytes.len().min(HEAD.len());
    let is_new = Scan::new(bytes, name).head_from(name).is_some();
    let is_old = !is_new && old::Scan::new(bytes).any(|piece| matches!(piece, Piece::Record(_)));
    let damage = |bytes, records| Piece::Damage(Damage { offset: 0, bytes, records, subject: None });
    if is_new || (bytes.starts_with(HEAD) && !is_old) {
        let wrong = (!bytes.starts_with(HEAD)).then(|| damage(name, 0));
        return Ok(wrong.into_iter().chain(Scan::new(bytes, name)).collect());
    }
    if is_old || bytes.starts_with(old::HEAD) {
        let wrong = (!bytes.starts_with(old::HEAD)).then(|| damage(name, 0));
        return Ok(wrong.into_iter().chain(old::Scan::new(bytes)).collect());
    }
    if bytes.starts_with(&HEAD[..8]) {
        return Err(UnknownVersion);
    }
    if is_unwritten(bytes) {
        return Ok(vec![Piece::Torn { offset: 0, bytes: bytes.len(), end: None, subject: None }]);
    }
    Ok(vec![damage(bytes.len(), 1)])
}

/// Error: the file is a journal of an unsupported version.
#[derive(Debug)]
pub(super) struct UnknownVersion;

/// Iterator over the records of a segment.
pub(super) struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Number of the next record.
    next: u32,
}

impl<'a> Scan<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Scan<'a> {
        Scan { bytes, at, next: 1 }
    }

    /// Creates a scan that begins at a record with that number.
    #[cfg(test)]
    pub(super) fn within(bytes: &'a [u8], at: usize, next: u32) -> Scan<'a> {
        Scan { bytes, at, next }
    }

    /// Finds the first intact header at or after `from`. Ranges between two calls are searched once, so a
    /// scan is linear.
    fn head_from(&self, from: usize) -> Option<(usize, Head<'a>)> {
        let rest = self.bytes.get(from..)?;
        memmem::find_iter(rest, &MARK).find_map(|at| Some((from + at, Head::read(&rest[at..])?)))
    }

    /// Skips unreadable bytes up to the next intact header.
    fn damage(&mut self, head: Option<Head<'a>>, next: Option<(usize, Head<'a>)>, end: usize) -> Piece {
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
        Piece::Damage(Damage { offset, bytes: end - offset, records, subject })
    }
}

impl Iterator for Scan<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        let length = self.bytes.len();
        let Some(head) = Head::read(rest) else {
            let next = self.head_from(self.at + 1);
            if next.is_none() && is_begun(rest) {
                let offset = std::mem::replace(&mut self.at, length);
                return Some(Piece::Torn { offset, bytes: rest.len(), end: None, subject: None });
            }
            return Some(self.damage(None, next, length));
        };
        if head.number > self.next {
            // Records are missing without a gap in the file.
            let (offset, records) = (self.at, head.number - self.next);
            self.next = head.number;
            return Some(Piece::Damage(Damage { offset, bytes: 0, records, subject: None }));
        }
        let end = self.at.saturating_add(head.length).saturating_add(head.body);
        if let Some(found) = self.bytes.get(self.at + head.length..end).and_then(|body| head.record(body)) {
            self.at = end;
            self.next = head.number.saturating_add(1);
            return Some(Piece::Record(found));
        }
        let next = self.head_from(self.at + head.length);
        if next.is_none() && (end > length || is_unwritten(rest)) {
            let (offset, subject) = (std::mem::replace(&mut self.at, length), head.subject());
            return Some(Piece::Torn { offset, bytes: rest.len(), end: Some(end), subject });
        }
        Some(self.damage(Some(head), next, end.min(length)))
    }
}

/// Returns `true` if the rest of a file can be the beginning of a header, or was never written.
fn is_begun(rest: &[u8]) -> bool {
    let mark = &MARK[..rest.len().min(MARK.len())];
    let whole = rest.get(FIXED - 1).map_or(FIXED, |id| FIXED + usize::from(*id));
    (rest.starts_with(mark) && rest.len() < whole) || is_unwritten(rest) || rest.iter().all(|byte| *byte == 0)
}

/// Returns `true` if bytes end in unwritten space: neither headers nor bodies end so.
fn is_unwritten(bytes: &[u8]) -> bool {
    bytes.last_chunk::<UNWRITTEN>().is_some_and(|end| end.iter().all(|byte| *byte == 0))
}
