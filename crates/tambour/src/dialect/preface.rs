//! Text that comes before the structure of a reply: held until the structure begins or `limits.hold` is reached.

use std::ops::Range;

/// The text so far, and what became of it.
#[derive(Clone, Debug)]
pub(super) struct Preface {
    /// `None` once the structure has begun, or the text was given away.
    held: Option<String>,
    /// What was in front of the text that is held, in bytes: offsets in the reply less this are places in it. What is
    /// taken out of it always stands before what is still to be read.
    before: usize,
    /// Thoughts in it, which are no text of the reply, and their bytes.
    thoughts: Vec<Range<usize>>,
    thinking: usize,
    plain: bool,
    limit: usize,
}

/// No structure came in time: what was held, the place in the new text behind which nothing fits, and what comes there.
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

    /// The text starts at this offset of the reply.
    pub(super) fn start_at(&mut self, offset: usize) {
        self.before = offset;
    }

    /// Whether the reply is given as it stands, since no structure came in time.
    pub(super) fn is_plain(&self) -> bool {
        self.plain
    }

    /// Bytes held.
    pub(super) fn held(&self) -> usize {
        self.held.as_ref().map_or(0, String::len) - self.thinking
    }

    /// What is held, at the end of the reply, without thoughts.
    pub(super) fn take(&mut self) -> Option<String> {
        self.compact();
        self.held.take()
    }

    /// From here to there the reply thinks: that is no text of it. Thoughts are told in order.
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

    /// Everything before this offset of the reply was a thought; `out` gets what was not known as one.
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

    /// Hands text to `read`, which says whether the structure has begun.
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

    /// Takes thoughts out of what is held.
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
