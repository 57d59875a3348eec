//! Maps offsets in the decoded text to offsets in the reply as received.
//!
//! Readers count decoded text, where each invalid UTF-8 sequence is a U+FFFD of three bytes. Findings count
//! the bytes of the reply.

use crate::finding::Finding;
use crate::lex::utf8::REPLACEMENT;

/// Positions where decoded text and reply differ in length. There may be one for every two bytes of the
/// reply, so all but the last run are stored packed.
#[derive(Clone, Debug, Default)]
pub(super) struct Received {
    /// Bytes of decoded text so far.
    decoded: usize,
    /// Runs before the last, packed as variable-length numbers: distance from the run before, then count and
    /// bytes each.
    packed: Vec<u8>,
    runs: usize,
    /// Decoded offset after the last packed run.
    end: usize,
    /// Start of every [`STRIDE`]th packed run.
    checkpoints: Vec<Checkpoint>,
    last: Option<Run>,
}

/// Consecutive replacement characters, each for the same number of bytes.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Decoded offset of the first.
    start: usize,
    /// Offset of its bytes in the reply.
    received: usize,
    count: usize,
    /// Bytes of the reply that each stands for.
    each: usize,
}

/// Offsets of a packed run, and its index in `packed`.
#[derive(Clone, Copy, Debug)]
struct Checkpoint {
    start: usize,
    received: usize,
    at: usize,
}

/// Packed runs between checkpoints.
const STRIDE: usize = 64;

impl Run {
    /// Decoded offset after the last character.
    fn end(&self) -> usize {
        self.start + self.count * REPLACEMENT.len()
    }

    /// Offset in the reply of a decoded offset at or after the start of the run.
    fn received(&self, decoded: usize) -> usize {
        let within = (decoded - self.start).div_ceil(REPLACEMENT.len()).min(self.count);
        let behind = decoded.saturating_sub(self.end());
        self.received + within * self.each + behind
    }
}

impl Received {
    /// Counts valid text.
    #[inline]
    pub(super) fn text(&mut self, text: &str) {
        self.decoded += text.len();
    }

    /// Counts a replacement character for `len` bytes.
    pub(super) fn bad(&mut self, len: usize) {
        let start = self.decoded;
        self.decoded += REPLACEMENT.len();
        let received = match &mut self.last {
            Some(run) if run.end() == start && run.each == len => {
                run.count += 1;
                return;
            }
            Some(run) => run.received(start),
            None => start,
        };
        if let Some(run) = self.last.replace(Run { start, received, count: 1, each: len }) {
            self.pack(run);
        }
    }

    fn pack(&mut self, run: Run) {
        if self.runs.is_multiple_of(STRIDE) {
            self.checkpoints.push(Checkpoint {
                start: run.start,
                received: run.received,
                at: self.packed.len(),
            });
        }
        self.runs += 1;
        // A replacement character stands for one to three bytes, so two bits hold the length.
        for mut number in [run.start - self.end, run.count << 2 | run.each] {
            while number > 0x7F {
                self.packed.push(number as u8 | 0x80);
                number >>= 7;
            }
            self.packed.push(number as u8);
        }
        self.end = run.end();
    }

    /// Unpacks the number at `at` and moves `at` past it.
    fn number(&self, at: &mut usize) -> usize {
        let mut number = 0;
        for shift in (0..usize::BITS).step_by(7) {
            let byte = self.packed[*at];
            *at += 1;
            number |= usize::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                break;
            }
        }
        number
    }

    /// Offset in the reply of an offset in the decoded text.
    fn received(&self, decoded: usize) -> usize {
        if let Some(last) = self.last.filter(|last| last.start < decoded) {
            return last.received(decoded);
        }
        let before = self.checkpoints.partition_point(|mark| mark.start < decoded);
        let Some(&Checkpoint { start, received, mut at }) =
            before.checked_sub(1).map(|mark| &self.checkpoints[mark])
        else {
            return decoded;
        };
        self.number(&mut at);
        let run =
            |start, received, packed: usize| Run { start, received, count: packed >> 2, each: packed & 3 };
        let mut known = run(start, received, self.number(&mut at));
        while at < self.packed.len() {
            let start = known.end() + self.number(&mut at);
            if start >= decoded {
                break;
            }
            known = run(start, known.received(start), self.number(&mut at));
        }
        known.received(decoded)
    }

    /// Translates the span of a finding to the reply.
    pub(super) fn locate(&self, mut finding: Finding) -> Finding {
        if self.last.is_some() {
            finding.span.start = self.received(finding.span.start);
            finding.span.end = self.received(finding.span.end);
        }
        finding
    }
}
