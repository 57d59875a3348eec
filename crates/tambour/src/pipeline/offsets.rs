//! Map from offsets in the decoded text to offsets in the reply as received.
//!
//! Readers count decoded text, where each invalid UTF-8 sequence is a U+FFFD of three bytes. Findings count
//! the bytes of the reply.

use crate::finding::Finding;
use crate::lex::utf8::REPLACEMENT;

/// Positions where decoded text and reply differ in length. There may be one for every two bytes of the
/// reply, so all but the last run are stored packed.
#[derive(Clone, Debug, Default)]
pub(super) struct OffsetMap {
    /// Bytes of decoded text so far.
    decoded_len: usize,
    /// Runs before the last, each packed as two variable-length numbers: the distance from the end of the
    /// previous run, then `count << 2 | bytes_each`.
    packed_runs: Vec<u8>,
    /// Number of packed runs.
    packed_count: usize,
    /// Decoded offset after the last packed run.
    packed_end: usize,
    /// Start of every [`CHECKPOINT_STRIDE`]th packed run.
    checkpoints: Vec<RunCheckpoint>,
    /// The last run, not packed because it may still grow.
    last_run: Option<ReplacementRun>,
}

/// Consecutive replacement characters, each for the same number of bytes.
#[derive(Clone, Copy, Debug)]
struct ReplacementRun {
    /// Decoded offset of the first replacement character.
    start: usize,
    /// Offset in the reply of the bytes that the first character replaces.
    reply_offset: usize,
    /// Number of replacement characters.
    count: usize,
    /// Bytes of the reply that each character replaces.
    bytes_each: usize,
}

/// Offsets at which a packed run starts, and the index of its first byte in `packed_runs`.
#[derive(Clone, Copy, Debug)]
struct RunCheckpoint {
    start: usize,
    reply_offset: usize,
    packed_index: usize,
}

/// Number of packed runs for each checkpoint.
const CHECKPOINT_STRIDE: usize = 64;

impl ReplacementRun {
    /// Returns the decoded offset after the last character.
    fn end(&self) -> usize {
        self.start + self.count * REPLACEMENT.len()
    }

    /// Translates a decoded offset, at or after the start of the run, to the offset in the reply.
    fn translate(&self, decoded_offset: usize) -> usize {
        // An offset inside a replacement character counts as the one after it.
        let replacement_count = (decoded_offset - self.start).div_ceil(REPLACEMENT.len()).min(self.count);
        let distance = decoded_offset.saturating_sub(self.end());
        self.reply_offset + replacement_count * self.bytes_each + distance
    }
}

impl OffsetMap {
    /// Counts valid text.
    #[inline]
    pub(super) fn push_text(&mut self, text: &str) {
        self.decoded_len += text.len();
    }

    /// Counts a replacement character for `len` bytes.
    pub(super) fn push_replacement(&mut self, len: usize) {
        let start = self.decoded_len;
        self.decoded_len += REPLACEMENT.len();
        let reply_offset = match &mut self.last_run {
            Some(run) if run.end() == start && run.bytes_each == len => {
                run.count += 1;
                return;
            }
            Some(run) => run.translate(start),
            None => start,
        };
        if let Some(run) =
            self.last_run.replace(ReplacementRun { start, reply_offset, count: 1, bytes_each: len })
        {
            self.pack(run);
        }
    }

    /// Appends a run to the packed runs.
    fn pack(&mut self, run: ReplacementRun) {
        if self.packed_count.is_multiple_of(CHECKPOINT_STRIDE) {
            self.checkpoints.push(RunCheckpoint {
                start: run.start,
                reply_offset: run.reply_offset,
                packed_index: self.packed_runs.len(),
            });
        }
        self.packed_count += 1;
        // A replacement character replaces one to three bytes, so two bits hold the length.
        for mut number in [run.start - self.packed_end, run.count << 2 | run.bytes_each] {
            while number > 0x7F {
                self.packed_runs.push(number as u8 | 0x80);
                number >>= 7;
            }
            self.packed_runs.push(number as u8);
        }
        self.packed_end = run.end();
    }

    /// Unpacks the number at `at` and moves `at` past it.
    fn read_varint(&self, at: &mut usize) -> usize {
        let mut number = 0;
        for shift in (0..usize::BITS).step_by(7) {
            let byte = self.packed_runs[*at];
            *at += 1;
            number |= usize::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                break;
            }
        }
        number
    }

    /// Translates an offset in the decoded text to the offset in the reply.
    fn translate(&self, decoded_offset: usize) -> usize {
        if let Some(last) = self.last_run.filter(|last| last.start < decoded_offset) {
            return last.translate(decoded_offset);
        }
        let checkpoints_before =
            self.checkpoints.partition_point(|checkpoint| checkpoint.start < decoded_offset);
        let Some(&RunCheckpoint { start, reply_offset, mut packed_index }) =
            checkpoints_before.checked_sub(1).map(|index| &self.checkpoints[index])
        else {
            return decoded_offset;
        };
        // The checkpoint has the start already, so the distance is skipped.
        self.read_varint(&mut packed_index);
        let make_run = |start, reply_offset, packed: usize| ReplacementRun {
            start,
            reply_offset,
            count: packed >> 2,
            bytes_each: packed & 3,
        };
        let mut current_run = make_run(start, reply_offset, self.read_varint(&mut packed_index));
        while packed_index < self.packed_runs.len() {
            let start = current_run.end() + self.read_varint(&mut packed_index);
            if start >= decoded_offset {
                break;
            }
            current_run = make_run(start, current_run.translate(start), self.read_varint(&mut packed_index));
        }
        current_run.translate(decoded_offset)
    }

    /// Translates the span of a finding to the reply.
    pub(super) fn locate(&self, mut finding: Finding) -> Finding {
        if self.last_run.is_some() {
            finding.span.start = self.translate(finding.span.start);
            finding.span.end = self.translate(finding.span.end);
        }
        finding
    }
}
