//! Text before the structure of a reply: held until the structure begins or `limits.hold` is reached.

use std::ops::Range;

/// Held text before the structure.
#[derive(Clone, Debug)]
pub(super) struct Preface {
    /// The held text; `None` once the structure has begun or the text was taken.
    held_text: Option<String>,
    /// Difference between an offset in the reply and the offset of the same text in `held_text`. Valid for
    /// all later text, since only earlier text is removed from `held_text`.
    base_offset: usize,
    /// Ranges of thoughts in `held_text`, which are not text of the reply.
    thought_ranges: Vec<Range<usize>>,
    /// Total length of `thought_ranges`.
    thought_bytes: usize,
    /// Set if no structure arrived in time, so that the reply is emitted unchanged.
    is_plain: bool,
    /// Maximum number of bytes held, without thoughts (`limits.hold`).
    limit: usize,
}

/// Text of a reply that exceeds the limit before any structure.
pub(super) struct PrefaceOverflow<'a> {
    /// All held text, `fitting_text` included, without thoughts.
    pub(super) held_text: String,
    /// Part of the new text that was still held.
    pub(super) fitting_text: &'a str,
    /// Part of the new text beyond the limit.
    pub(super) excess_text: &'a str,
}

impl Preface {
    /// Creates an empty preface that holds at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Preface {
        let thought_ranges = Vec::new();
        Preface {
            held_text: Some(String::new()),
            base_offset: 0,
            thought_ranges,
            thought_bytes: 0,
            is_plain: false,
            limit,
        }
    }

    /// Sets the offset at which the held text begins in the reply.
    pub(super) fn start_at(&mut self, offset: usize) {
        self.base_offset = offset;
    }

    /// Returns whether the reply is emitted unchanged, because no structure arrived in time.
    pub(super) fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Returns the bytes held, without thoughts.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_text.as_ref().map_or(0, String::len) - self.thought_bytes
    }

    /// Takes the held text, without thoughts, at the end of the reply; `None` if the structure has begun or
    /// the text was taken before.
    pub(super) fn take_text(&mut self) -> Option<String> {
        self.compact();
        self.held_text.take()
    }

    /// Marks the offsets `from..to` of the reply as a thought, which is not part of its text. Calls come in
    /// order.
    pub(super) fn mark_thought(&mut self, from: usize, to: usize) {
        if self.held_text.is_none() {
            return;
        }
        let range = from - self.base_offset..to - self.base_offset;
        self.thought_bytes += range.len();
        match self.thought_ranges.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.thought_ranges.push(range),
        }
    }

    /// Marks everything before this offset as a thought; `out` receives the parts that were not marked yet.
    pub(super) fn mark_thought_before(&mut self, offset: usize, out: &mut dyn FnMut(&str)) {
        let Some(held_text) = &self.held_text else { return };
        let end = offset - self.base_offset;
        let mut from = 0;
        for thought in self.thought_ranges.drain(..) {
            if thought.start > from {
                out(&held_text[from..thought.start]);
            }
            from = thought.end;
        }
        if end > from {
            out(&held_text[from..end]);
        }
        self.thought_ranges.push(0..end);
        self.thought_bytes = end;
    }

    /// Passes text to `read`, which returns whether the structure has begun. Returns the overflow once the
    /// limit is reached.
    #[inline]
    pub(super) fn push<'a>(
        &mut self,
        text: &'a str,
        mut read: impl FnMut(&str, &mut Preface) -> bool,
    ) -> Option<PrefaceOverflow<'a>> {
        let mut from = 0;
        loop {
            // Once the structure has begun, nothing is held.
            let Some(buffer) = &mut self.held_text else {
                read(&text[from..], self);
                return None;
            };
            // Cut at the limit itself, so that the result does not depend on the chunks.
            let room = self.limit - (buffer.len() - self.thought_bytes);
            let to = text.floor_char_boundary(from + room);
            if to == from && from < text.len() {
                break;
            }
            buffer.push_str(&text[from..to]);
            if read(&text[from..to], self) {
                self.held_text = None;
                self.thought_ranges.clear();
                self.thought_bytes = 0;
            } else if self.held_text.as_ref().is_some_and(|buffer| buffer.len() >= 2 * self.limit) {
                // At least half of the text is thoughts, so the work of removing them stays linear.
                self.compact();
            }
            if to == text.len() {
                return None;
            }
            from = to;
        }
        self.is_plain = true;
        let held_text = self.take_text().unwrap_or_default();
        Some(PrefaceOverflow { held_text, fitting_text: &text[..from], excess_text: &text[from..] })
    }

    /// Removes thoughts from the held text.
    fn compact(&mut self) {
        let thoughts = std::mem::take(&mut self.thought_ranges);
        let Some(held_text) = self.held_text.as_mut().filter(|_| !thoughts.is_empty()) else { return };
        let mut reply_text = String::with_capacity(held_text.len() - self.thought_bytes);
        let mut from = 0;
        for thought in thoughts {
            reply_text.push_str(&held_text[from..thought.start]);
            from = thought.end;
        }
        reply_text.push_str(&held_text[from..]);
        *held_text = reply_text;
        self.base_offset += std::mem::take(&mut self.thought_bytes);
    }
}
