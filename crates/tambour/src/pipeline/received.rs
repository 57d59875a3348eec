//! From places in the decoded text to places in the reply as it was received.
//!
//! Readers count what they read, where each piece that is no UTF-8 stands as U+FFFD, three bytes. Findings count the
//! bytes of the reply.

use crate::finding::Finding;
use crate::lex::utf8::REPLACEMENT;

/// Where decoded text and reply differ in length. There may be as many such places as half the bytes of the reply, so
/// that all but the last are kept in few bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Received {
    /// Bytes of decoded text so far.
    decoded: usize,
    /// Runs before the last: the distance from the one before, then how many characters of how many bytes each.
    packed: Vec<u8>,
    runs: usize,
    /// Decoded offset after the last of them.
    end: usize,
    /// Every so many of them, where one starts.
    checkpoints: Vec<Checkpoint>,
    last: Option<Run>,
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
    each: usize,
}

/// Where a packed run starts, and where it is packed.
#[derive(Clone, Copy, Debug)]
struct Checkpoint {
    start: usize,
    received: usize,
    at: usize,
}

/// Packed runs from one checkpoint to the next.
const STRIDE: usize = 64;

impl Run {
    /// The decoded offset after the last.
    fn end(&self) -> usize {
        self.start + self.count * REPLACEMENT.len()
    }

    /// Where a decoded offset not before the run was received.
    fn received(&self, decoded: usize) -> usize {
        let within = (decoded - self.start).div_ceil(REPLACEMENT.len()).min(self.count);
        let behind = decoded.saturating_sub(self.end());
        self.received + within * self.each + behind
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
        // Characters stand for one to three bytes.
        for mut number in [run.start - self.end, run.count << 2 | run.each] {
            while number > 0x7F {
                self.packed.push(number as u8 | 0x80);
                number >>= 7;
            }
            self.packed.push(number as u8);
        }
        self.end = run.end();
    }

    /// The number packed at `at`, which moves behind it.
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

    /// The offset in the reply of an offset in the decoded text.
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

    /// A finding with its places in the reply.
    pub(super) fn locate(&self, mut finding: Finding) -> Finding {
        if self.last.is_some() {
            finding.span.start = self.received(finding.span.start);
            finding.span.end = self.received(finding.span.end);
        }
        finding
    }
}
