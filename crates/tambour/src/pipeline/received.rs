//! From places in the decoded text to places in the reply as it was received.
//!
//! Readers count what they read, where each piece that is no UTF-8 stands as U+FFFD, three bytes. Findings count the
//! bytes of the reply.

use crate::finding::Report;
use crate::lex::utf8::REPLACEMENT;

/// Where decoded text and reply differ in length.
#[derive(Clone, Debug, Default)]
pub(super) struct Received {
    /// Bytes of decoded text so far.
    decoded: usize,
    runs: Vec<Run>,
}

/// Replacement characters that follow each other, each for as many bytes.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Decoded offset of the first.
    start: usize,
    /// Offset of its bytes in the reply.
    received: usize,
    count: usize,
    /// Bytes each stands for.
    each: u8,
}

impl Run {
    /// The decoded offset after the last.
    fn end(&self) -> usize {
        self.start + self.count * REPLACEMENT.len()
    }

    /// Where a decoded offset not before the run was received.
    fn received(&self, decoded: usize) -> usize {
        let within = (decoded - self.start).div_ceil(REPLACEMENT.len()).min(self.count);
        let behind = decoded.saturating_sub(self.end());
        self.received + within * usize::from(self.each) + behind
    }
}

impl Received {
    /// Text came.
    #[inline]
    pub(super) fn text(&mut self, text: &str) {
        self.decoded += text.len();
    }

    /// A replacement character came for `len` bytes.
    pub(super) fn bad(&mut self, len: usize) {
        let (start, each) = (self.decoded, len as u8);
        self.decoded += REPLACEMENT.len();
        match self.runs.last_mut() {
            Some(run) if run.end() == start && run.each == each => run.count += 1,
            _ => self.runs.push(Run { start, received: self.received(start), count: 1, each }),
        }
    }

    /// The offset in the reply of an offset in the decoded text.
    fn received(&self, decoded: usize) -> usize {
        let before = self.runs.partition_point(|run| run.start < decoded);
        before.checked_sub(1).map_or(decoded, |last| self.runs[last].received(decoded))
    }

    /// A report with its places in the reply.
    pub(super) fn locate(&self, mut report: Report) -> Report {
        if !self.runs.is_empty() {
            let end = report.end.max(report.place.offset);
            report.place.offset = self.received(report.place.offset);
            report.end = self.received(end);
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use super::Received;

    #[test]
    fn counts_bytes_of_the_reply() {
        // "a", two bytes that are one bad piece, a lone bad byte twice, "bc"
        let mut received = Received::default();
        received.text("a");
        for len in [2, 1, 1] {
            received.bad(len);
        }
        received.text("bc");
        let found: Vec<usize> = [0, 1, 4, 7, 10, 11, 12].map(|decoded| received.received(decoded)).to_vec();
        assert_eq!(found, [0, 1, 3, 4, 5, 6, 7]);
        assert_eq!(received.runs.len(), 2);
    }
}
