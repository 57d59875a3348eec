//! Text before the structure of a reply: held until the structure begins or `limits.hold` is reached.

use std::ops::Range;

/// Held text before the structure.
#[derive(Clone, Debug)]
pub(super) struct Preface {
    /// The held text; `None` once the structure has begun or the text was taken.
    held: Option<String>,
    /// Offset in the reply that corresponds to index 0 of `held`, in bytes. Text removed from `held` always
    /// precedes the unread text, so that this holds for all later offsets.
    before: usize,
    /// Ranges of thoughts in `held`, which are not text of the reply, and their total bytes.
    thoughts: Vec<Range<usize>>,
    thinking: usize,
    plain: bool,
    limit: usize,
}

/// Overflow of the limit before any structure: the held text, the part of the new text that still fitted, and
/// the rest.
pub(super) struct Overflow<'a> {
    pub(super) held: String,
    pub(super) last: &'a str,
    pub(super) rest: &'a str,
}

impl Preface {
    pub(super) fn new(limit: usize) -> Preface {
        let thoughts = Vec::new();
        Preface { held: Some(String::new()), before: 0, thoughts, thinking: 0, plain: false, limit }
    }

    /// Sets the offset in the reply of the first text.
    pub(super) fn start_at(&mut self, offset: usize) {
        self.before = offset;
    }

    /// Returns whether the reply is emitted unchanged, because no structure arrived in time.
    pub(super) fn is_plain(&self) -> bool {
        self.plain
    }

    /// Returns the bytes held, without thoughts.
    pub(super) fn held(&self) -> usize {
        self.held.as_ref().map_or(0, String::len) - self.thinking
    }

    /// Takes the held text, without thoughts, at the end of the reply.
    pub(super) fn take(&mut self) -> Option<String> {
        self.compact();
        self.held.take()
    }

    /// Marks the offsets `from..to` of the reply as a thought, which is not text of it. Calls come in order.
    pub(super) fn thought(&mut self, from: usize, to: usize) {
        if self.held.is_none() {
            return;
        }
        let range = from - self.before..to - self.before;
        self.thinking += range.len();
        match self.thoughts.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.thoughts.push(range),
        }
    }

    /// Marks everything before this offset as a thought; `out` receives the parts that were not marked yet.
    pub(super) fn thought_before(&mut self, offset: usize, out: &mut dyn FnMut(&str)) {
        let Some(held) = &self.held else { return };
        let end = offset - self.before;
        let mut from = 0;
        for thought in self.thoughts.drain(..) {
            if thought.start > from {
                out(&held[from..thought.start]);
            }
            from = thought.end;
        }
        if end > from {
            out(&held[from..end]);
        }
        self.thoughts.push(0..end);
        self.thinking = end;
    }

    /// Passes text to `read`, which returns whether the structure has begun. Returns the overflow once the
    /// limit is reached.
    #[inline]
    pub(super) fn push<'a>(
        &mut self,
        text: &'a str,
        mut read: impl FnMut(&str, &mut Preface) -> bool,
    ) -> Option<Overflow<'a>> {
        let mut from = 0;
        loop {
            let Some(held) = &mut self.held else {
                read(&text[from..], self);
                return None;
            };
            // Cut at the limit itself, so that the result does not depend on the chunks.
            let room = self.limit - (held.len() - self.thinking);
            let to = text.floor_char_boundary(from + room);
            if to == from && from < text.len() {
                break;
            }
            held.push_str(&text[from..to]);
            if read(&text[from..to], self) {
                self.held = None;
                self.thoughts.clear();
                self.thinking = 0;
            } else if self.held.as_ref().is_some_and(|held| held.len() >= 2 * self.limit) {
                self.compact();
            }
            if to == text.len() {
                return None;
            }
            from = to;
        }
        self.plain = true;
        let held = self.take().unwrap_or_default();
        Some(Overflow { held, last: &text[..from], rest: &text[from..] })
    }

    /// Removes thoughts from the held text.
    fn compact(&mut self) {
        let thoughts = std::mem::take(&mut self.thoughts);
        let Some(held) = self.held.as_mut().filter(|_| !thoughts.is_empty()) else { return };
        let mut kept = String::with_capacity(held.len() - self.thinking);
        let mut from = 0;
        for thought in thoughts {
            kept.push_str(&held[from..thought.start]);
            from = thought.end;
        }
        kept.push_str(&held[from..]);
        *held = kept;
        self.before += std::mem::take(&mut self.thinking);
    }
}
