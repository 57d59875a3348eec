//! Text outside the elements. It is held because a structure that follows makes it superfluous (X-013,
//! T-015); without a structure it is the answer. The fence around a reply (T-018) is found in it too.

use crate::lex::fence::Fence;
use crate::lex::space::is_space;
use crate::span::{Extent, Place};

/// Text outside the elements, from its first non-blank character.
#[derive(Clone, Debug, Default)]
pub(super) struct TopLevelText {
    text: String,
    /// Runs of `text` that are contiguous in the reply; between two runs the reply has something else, such
    /// as an element.
    runs: Vec<TextRun>,
    /// The place after `text`.
    end: Place,
    /// Line state at the end of `text`, kept so that the text is not searched again for each element.
    tracker: LineTracker,
    /// Start of the last `<!--`, which may belong to a queries block, and the line state before it.
    last_comment: Option<(usize, LineTracker)>,
    /// Index after the first `<!--` that hides an element.
    hiding_comment: Option<usize>,
    /// Index after the `<!--` of a comment that is still open and contains an element that does not begin its
    /// line. The element is read at the end of the reply, unless the comment is closed by then and has text
    /// before or after it.
    midline_comment: Option<usize>,
    /// A closed comment with no text before it: the index after its `<!--` and the index after its `-->`.
    sole_comment: Option<(usize, usize)>,
    /// Set once text has exceeded the limit. That text, the overflow, is left out.
    has_overflow: bool,
    /// Non-blank extents of the overflow.
    overflow_extents: Vec<Extent>,
    /// Offset after the overflow so far.
    overflow_end: usize,
    /// Set if the next overflow begins a new extent.
    has_overflow_gap: bool,
}

/// Longest line, in bytes, that may open a fence around the reply.
const MAX_FENCE_LINE: usize = 256;

/// Mark that opens a comment; it is pushed as one text.
const COMMENT_OPEN: &str = "<!--";

/// Lines at the end of a growing text.
#[derive(Clone, Copy, Debug, Default)]
struct LineTracker {
    /// Index after the last non-blank character.
    nonblank_end: usize,
    /// Index where the line of that character starts.
    nonblank_line_start: usize,
    /// Index where the last line starts.
    last_line_start: usize,
}

impl LineTracker {
    /// Adds text that starts at index `from`.
    fn add(&mut self, text: &str, from: usize) {
        let inner = text.trim_end_matches(is_space);
        if !inner.is_empty() {
            self.nonblank_end = from + inner.len();
            self.nonblank_line_start = inner.rfind('\n').map_or(self.last_line_start, |at| from + at + 1);
        }
        if let Some(at) = text.rfind('\n') {
            self.last_line_start = from + at + 1;
        }
    }
}

/// A contiguous run of text.
#[derive(Clone, Copy, Debug)]
struct TextRun {
    /// Index of its start in the text outside the elements.
    index: usize,
    /// Place of its start in the reply.
    place: Place,
}

/// The line that opens a fence around the reply.
#[derive(Clone, Debug)]
pub(super) struct ReplyFence {
    fence: Fence,
    /// Start of the line, without indentation.
    pub(super) place: Place,
    /// Offset after the line.
    pub(super) end: usize,
    /// Set once the fence was reported.
    pub(super) is_reported: bool,
}

impl TopLevelText {
    /// Adds text that starts at `place`, up to `limit` bytes in total, and returns the part that does not
    /// fit. Text that is `is_atomic`, such as a tag, is never cut. Leading white space is dropped.
    pub(super) fn push<'a>(
        &mut self,
        text: &'a str,
        mut place: Place,
        is_atomic: bool,
        limit: usize,
    ) -> Option<(&'a str, Place)> {
        let mut text = text;
        if self.text.is_empty() && !self.has_overflow {
            let trimmed = text.trim_start_matches([' ', '\t', '\r', '\n', '\u{FEFF}']);
            place.advance(&text[..text.len() - trimmed.len()]);
            text = trimmed;
        }
        let room = if self.has_overflow { 0 } else { limit.saturating_sub(self.text.len()) };
        let fitting_len = if is_atomic && text.len() > room { 0 } else { text.floor_char_boundary(room) };
        let (fitting_text, rest) = text.split_at(fitting_len);
        if !fitting_text.is_empty() {
            if self.text.is_empty() || self.end != place {
                self.runs.push(TextRun { index: self.text.len(), place });
            }
            self.append(fitting_text);
            place.advance(fitting_text);
            self.end = place;
        }
        (!rest.is_empty()).then_some((rest, place))
    }

    /// Adds text that was within the limit before, without cutting it.
    pub(super) fn push_unlimited(&mut self, text: &str, place: Place) {
        let is_atomic = false;
        self.push(text, place, is_atomic, usize::MAX);
    }

    /// Appends text that fits.
    fn append(&mut self, text: &str) {
        let from = self.text.len();
        if text == COMMENT_OPEN {
            self.last_comment = Some((from, self.tracker));
            // A comment began while another was open, so the earlier one was never closed and hides its
            // element.
            self.hiding_comment = self.hiding_comment.or(self.midline_comment.take());
        }
        self.text.push_str(text);
        self.tracker.add(text, from);
    }

    /// Records the extent of text that did not fit and is left out.
    pub(super) fn record_overflow(&mut self, rest: &str, place: Place) {
        self.has_overflow = true;
        self.has_overflow_gap |= self.overflow_end != place.offset;
        self.overflow_end = place.offset + rest.len();
        let Some(extent) = trimmed_extent(rest, place) else { return };
        match self.overflow_extents.last_mut() {
            Some(last) if !self.has_overflow_gap => last.end = extent.end,
            _ => {
                self.overflow_extents.push(extent);
                self.has_overflow_gap = false;
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Returns whether there is no text but white space, overflow included.
    pub(super) fn is_blank(&self) -> bool {
        self.tracker.nonblank_end == 0 && self.overflow_extents.is_empty()
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the runs of text with their places.
    pub(super) fn runs(&self) -> impl Iterator<Item = (&str, Place)> {
        let run_ends = self.runs.iter().skip(1).map(|run| run.index).chain([self.text.len()]);
        self.runs.iter().zip(run_ends).map(|(run, end)| (&self.text[run.index..end], run.place))
    }

    /// Returns the runs of the text from `index` on, with their places.
    pub(super) fn runs_from(&self, index: usize) -> impl Iterator<Item = (&str, Place)> {
        let run_ends = self.runs.iter().skip(1).map(|run| run.index).chain([self.text.len()]);
        self.runs.iter().zip(run_ends).filter(move |(_, end)| *end > index).map(move |(run, end)| {
            let from = run.index.max(index);
            (&self.text[from..end], run.place.end_of(&self.text[run.index..from]))
        })
    }

    /// Returns the run that holds the byte at an index.
    fn run_at(&self, index: usize) -> TextRun {
        let run = self.runs.iter().rev().find(|run| run.index <= index);
        run.copied().unwrap_or(TextRun { index: 0, place: self.end })
    }

    /// Returns the non-blank extent of each run.
    pub(super) fn extents(&self) -> Vec<Extent> {
        let mut extents: Vec<Option<Extent>> =
            self.runs().map(|(text, at)| trimmed_extent(text, at)).collect();
        let mut overflow = self.overflow_extents.iter().copied().peekable();
        if let Some(Some(last)) = extents.last_mut()
            && let Some(overflow_extent) = overflow.next_if(|extent| extent.place == self.end)
        {
            // Overflow that directly follows the last run belongs to it.
            last.end = overflow_extent.end;
        }
        extents.into_iter().flatten().chain(overflow).collect()
    }

    /// Takes all text.
    pub(super) fn take(&mut self) -> TopLevelText {
        std::mem::take(self)
    }

    /// Takes an open `<!--` with the white space after it from the end of the text, because it belongs to a
    /// queries block. Returns the text taken and its place; without an open `<!--`, an empty text and `at`.
    pub(super) fn take_comment(&mut self, at: Place) -> (String, Place) {
        let is_at_end =
            |&(from, _): &(usize, LineTracker)| from + COMMENT_OPEN.len() == self.tracker.nonblank_end;
        let Some((from, tracker)) = self.last_comment.take().filter(is_at_end).filter(|_| !self.has_overflow)
        else {
            return (String::new(), at);
        };
        let at = self.place_at(from);
        (self.split_off(from, at, tracker), at)
    }

    /// Records that the open comment hides an element; `is_line_start` is set if the element begins a line.
    pub(super) fn record_hidden(&mut self, is_line_start: bool) {
        let Some((from, _)) = self.last_comment else { return };
        let comment = if is_line_start { &mut self.hiding_comment } else { &mut self.midline_comment };
        comment.get_or_insert(from + COMMENT_OPEN.len());
    }

    /// Returns whether a comment hides an element that will be read if no element follows outside a comment.
    pub(super) fn has_hidden_element(&self) -> bool {
        self.hiding_comment.is_some() && !self.has_overflow
    }

    /// Records that the open comment ends after the text so far, with a `-->` that is added next.
    pub(super) fn end_comment(&mut self) {
        if let Some(from) = self.midline_comment.take()
            && self.last_comment.is_some_and(|(_, before)| before.nonblank_end == 0)
        {
            self.sole_comment = Some((from, self.text.len() + "-->".len()));
        }
    }

    /// Takes all text after the first `<!--` that hides an element, run by run.
    pub(super) fn take_commented_text(&mut self) -> Vec<(String, Place)> {
        let nonblank_end = self.tracker.nonblank_end;
        // A closed comment counts only if no text follows it.
        let sole_start =
            self.sole_comment.take().filter(|(_, end)| nonblank_end <= *end).map(|(from, _)| from);
        let hidden_start =
            [self.hiding_comment.take(), self.midline_comment.take(), sole_start].into_iter().flatten().min();
        let Some(from) = hidden_start.filter(|from| *from <= self.text.len() && !self.has_overflow) else {
            return Vec::new();
        };
        let place = self.place_at(from);
        let mut tracker = LineTracker::default();
        tracker.add(&self.text[..from], 0);
        let first = (self.text[from..self.run_end(from)].to_owned(), place);
        let later_runs = self.runs().filter(|(_, at)| at.offset > place.offset);
        let runs = [first].into_iter().chain(later_runs.map(|(text, at)| (text.to_owned(), at))).collect();
        self.split_off(from, place, tracker);
        runs
    }

    /// Returns the end of the run that holds the byte at an index.
    fn run_end(&self, index: usize) -> usize {
        let next_run = self.runs.iter().map(|run| run.index).find(|from| *from > index);
        next_run.unwrap_or(self.text.len())
    }

    /// Returns the last non-blank line if it is short enough for a fence. The limit bounds the work, since
    /// the line is examined for each element.
    fn last_line(&self) -> Option<&str> {
        let LineTracker { nonblank_end: end, nonblank_line_start: start, .. } = self.tracker;
        (end - start <= MAX_FENCE_LINE).then(|| &self.text[start..end])
    }

    /// Removes a fence that opens on the last line, and returns it.
    pub(super) fn take_fence(&mut self) -> Option<ReplyFence> {
        let line_start = self.tracker.nonblank_line_start;
        let line = self.last_line()?.trim_end();
        let indent = line.len() - line.trim_start().len();
        let line = line.trim_start();
        let (fence, info) = Fence::parse(line)?;
        if info.contains(char::from(fence.mark)) || info.trim().contains(char::is_whitespace) {
            return None;
        }
        let place = self.place_at(line_start + indent);
        let end = place.offset + line.len();
        let mut tracker = LineTracker::default();
        tracker.add(&self.text[..line_start], 0);
        self.split_off(line_start, place, tracker);
        Some(ReplyFence { fence, place, end, is_reported: false })
    }

    /// Returns the place of the byte at an index.
    fn place_at(&self, index: usize) -> Place {
        let run = self.run_at(index);
        run.place.end_of(&self.text[run.index..index])
    }

    /// Removes the text from `index` on, which starts at `place`, and returns it. `tracker` is the line state
    /// before the removed text. Later text starts a new run.
    fn split_off(&mut self, index: usize, place: Place, tracker: LineTracker) -> String {
        let removed_text = self.text.split_off(index);
        while self.runs.last().is_some_and(|run| run.index >= index) {
            self.runs.pop();
        }
        (self.end, self.tracker) = (place, tracker);
        removed_text
    }

    /// Removes the line that closes `fence` at the end of the text.
    pub(super) fn remove_trailing_fence_line(&mut self, fence: &ReplyFence) {
        let body = self.text.trim_end();
        let line_start = body.rfind('\n').map_or(0, |at| at + 1);
        if !fence.fence.is_closed_by_line(&body[line_start..]) || self.has_overflow {
            return;
        }
        let mut remaining_len = line_start;
        let previous = self.take();
        for (text, at) in previous.runs() {
            let kept_len = remaining_len.min(text.len());
            remaining_len -= kept_len;
            self.push_unlimited(&text[..kept_len], at);
        }
    }

    /// Removes the line that closes `fence` at the beginning of the text. Returns whether there was one.
    pub(super) fn remove_leading_fence_line(&mut self, fence: &ReplyFence) -> bool {
        let is_closed = fence.fence.is_closed_by_line(self.text.lines().next().unwrap_or(""));
        if is_closed {
            let mut skip_len = self.text.find('\n').map_or(self.text.len(), |at| at + 1);
            let previous = self.take();
            for (text, at) in previous.runs() {
                let skipped_len = skip_len.min(text.len());
                skip_len -= skipped_len;
                self.push_unlimited(&text[skipped_len..], at.end_of(&text[..skipped_len]));
            }
            (self.has_overflow, self.overflow_extents) = (previous.has_overflow, previous.overflow_extents);
            (self.overflow_end, self.has_overflow_gap) = (previous.overflow_end, previous.has_overflow_gap);
        }
        is_closed
    }
}

/// Returns the extent of a text without surrounding white space; `None` if it is blank.
fn trimmed_extent(text: &str, at: Place) -> Option<Extent> {
    let body = text.trim_matches(is_space);
    let indent = text.len() - text.trim_start_matches(is_space).len();
    let end = at.offset + indent + body.len();
    (!body.is_empty()).then(|| Extent { place: at.end_of(&text[..indent]), end })
}
