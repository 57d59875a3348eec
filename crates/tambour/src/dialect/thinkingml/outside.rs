//! Text outside the elements: held until it is known whether a structure makes it superfluous (X-013, T-015), and
//! the fence around a reply (T-018).

use crate::lex::fence::Fence;
use crate::lex::space::is_space;
use crate::span::Place;

/// Text outside the elements, from its first character that is not blank.
#[derive(Clone, Debug, Default)]
pub(super) struct Outside {
    text: String,
    /// The runs of `text`: what was taken out stood between them.
    runs: Vec<Run>,
    /// The place after `text`.
    end: Place,
    /// Where the text has come, so that it is not searched again for each element.
    reach: Reach,
    /// The same before the last `<!--`, which may belong to a queries block.
    comment: Option<(usize, Reach)>,
    /// The first byte after the first `<!--` that hides an element.
    hiding: Option<usize>,
    /// The same of the comment that is open, where the element stands in the middle of a line: it counts unless the comment
    /// is closed and stands beside text.
    mentioning: Option<usize>,
    /// The same of a comment that was closed with nothing before it, and the text up to its end.
    only: Option<(usize, usize)>,
    /// Whether something did not fit, what of it is not blank, and the offset after it.
    over: bool,
    beyond: Vec<(Place, usize)>,
    beyond_end: usize,
    beyond_gap: bool,
}

/// Most bytes of a line that opens a fence around the reply.
const FENCE_LINE: usize = 256;

const COMMENT: &str = "<!--";

/// How far a text has come.
#[derive(Clone, Copy, Debug, Default)]
struct Reach {
    /// Bytes up to the last character that is not blank, and where its line starts.
    filled: usize,
    line: usize,
    /// Where the last line starts.
    last_line: usize,
}

impl Reach {
    /// Text was added at `from`.
    fn add(&mut self, text: &str, from: usize) {
        let inner = text.trim_end_matches(is_space);
        if !inner.is_empty() {
            self.filled = from + inner.len();
            self.line = inner.rfind('\n').map_or(self.last_line, |at| from + at + 1);
        }
        if let Some(at) = text.rfind('\n') {
            self.last_line = from + at + 1;
        }
    }
}

/// A run of text without a gap.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Where it starts in the text outside.
    from: usize,
    /// Where it starts in the reply.
    at: Place,
}

/// The line that opens a fence around the reply.
#[derive(Clone, Debug)]
pub(super) struct FenceLine {
    marks: Fence,
    pub(super) place: Place,
    pub(super) end: usize,
    /// Whether it has been reported.
    pub(super) told: bool,
}

impl Outside {
    /// Adds text that starts at `place`, up to `limit` bytes in all, and returns what does not fit; a tag is `whole`
    /// and never cut. White space before anything else is not kept.
    pub(super) fn push<'a>(
        &mut self,
        text: &'a str,
        mut place: Place,
        whole: bool,
        limit: usize,
    ) -> Option<(&'a str, Place)> {
        let mut text = text;
        if self.text.is_empty() && !self.over {
            let kept = text.trim_start_matches([' ', '\t', '\r', '\n', '\u{FEFF}']);
            place.advance(&text[..text.len() - kept.len()]);
            text = kept;
        }
        let room = if self.over { 0 } else { limit.saturating_sub(self.text.len()) };
        let fits = if whole && text.len() > room { 0 } else { text.floor_char_boundary(room) };
        let (kept, rest) = text.split_at(fits);
        if !kept.is_empty() {
            if self.text.is_empty() || self.end != place {
                self.runs.push(Run { from: self.text.len(), at: place });
            }
            self.add(kept);
            place.advance(kept);
            self.end = place;
        }
        (!rest.is_empty()).then_some((rest, place))
    }

    fn add(&mut self, text: &str) {
        let from = self.text.len();
        if text == COMMENT {
            self.comment = Some((from, self.reach));
            // A comment in a comment: the outer one was left open.
            self.hiding = self.hiding.or(self.mentioning.take());
        }
        self.text.push_str(text);
        self.reach.add(text, from);
    }

    /// Notes text that did not fit and is left out: only its place matters.
    pub(super) fn overflow(&mut self, rest: &str, place: Place) {
        self.over = true;
        self.beyond_gap |= self.beyond_end != place.offset;
        self.beyond_end = place.offset + rest.len();
        let Some((at, end)) = inner(rest, place) else { return };
        match self.beyond.last_mut() {
            Some((_, last)) if !self.beyond_gap => *last = end,
            _ => {
                self.beyond.push((at, end));
                self.beyond_gap = false;
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn is_blank(&self) -> bool {
        self.reach.filled == 0 && self.beyond.is_empty()
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The runs of text, each with its place.
    pub(super) fn runs(&self) -> impl Iterator<Item = (&str, Place)> {
        let ends = self.runs.iter().skip(1).map(|run| run.from).chain([self.text.len()]);
        self.runs.iter().zip(ends).map(|(run, end)| (&self.text[run.from..end], run.at))
    }

    /// The text from a byte on, run by run.
    pub(super) fn runs_from(&self, byte: usize) -> impl Iterator<Item = (&str, Place)> {
        let ends = self.runs.iter().skip(1).map(|run| run.from).chain([self.text.len()]);
        self.runs.iter().zip(ends).filter(move |(_, end)| *end > byte).map(move |(run, end)| {
            let from = run.from.max(byte);
            (&self.text[from..end], run.at.after(&self.text[run.from..from]))
        })
    }

    /// The run that holds a byte of the text.
    fn run(&self, byte: usize) -> Run {
        let found = self.runs.iter().rev().find(|run| run.from <= byte);
        found.copied().unwrap_or(Run { from: 0, at: self.end })
    }

    /// What is not blank, run by run: start, and offset after it.
    pub(super) fn ranges(&self) -> Vec<(Place, usize)> {
        let mut ranges: Vec<Option<(Place, usize)>> = self.runs().map(|(text, at)| inner(text, at)).collect();
        let mut beyond = self.beyond.iter().copied().peekable();
        if let Some(Some((_, last))) = ranges.last_mut()
            && let Some((_, end)) = beyond.next_if(|(at, _)| *at == self.end)
        {
            // What did not fit of the last run.
            *last = end;
        }
        ranges.into_iter().flatten().chain(beyond).collect()
    }

    /// Takes everything.
    pub(super) fn take(&mut self) -> Outside {
        std::mem::take(self)
    }

    /// Takes an open `<!--` from the end: it belongs to a queries block. Where it starts, or `at`.
    pub(super) fn take_comment(&mut self, at: Place) -> (String, Place) {
        let last = |&(from, _): &(usize, Reach)| from + COMMENT.len() == self.reach.filled;
        let Some((from, reach)) = self.comment.take().filter(last).filter(|_| !self.over) else {
            return (String::new(), at);
        };
        let at = self.place(from);
        (self.split_off(from, at, reach), at)
    }

    /// The comment that is open holds what begins the structure, at the start of a line or in the middle.
    pub(super) fn hides_structure(&mut self, at_start: bool) {
        let Some((from, _)) = self.comment else { return };
        let place = if at_start { &mut self.hiding } else { &mut self.mentioning };
        place.get_or_insert(from + COMMENT.len());
    }

    /// Whether a comment that is over hides an element, which is read if no other one comes.
    pub(super) fn is_hiding(&self) -> bool {
        self.hiding.is_some() && !self.over
    }

    /// The comment that is open ends behind the text so far.
    pub(super) fn comment_closes(&mut self) {
        if let Some(from) = self.mentioning.take()
            && self.comment.is_some_and(|(_, before)| before.filled == 0)
        {
            self.only = Some((from, self.text.len() + "-->".len()));
        }
    }

    /// Takes everything behind the first `<!--` that hides an element, run by run.
    pub(super) fn take_commented(&mut self) -> Vec<(String, Place)> {
        let only = self.only.take().filter(|(_, end)| self.reach.filled <= *end).map(|(from, _)| from);
        let mentioned = [self.hiding.take(), self.mentioning.take(), only].into_iter().flatten().min();
        let Some(from) = mentioned.filter(|from| *from <= self.text.len() && !self.over) else {
            return Vec::new();
        };
        let place = self.place(from);
        let mut reach = Reach::default();
        reach.add(&self.text[..from], 0);
        let first = (self.text[from..self.run_end(from)].to_owned(), place);
        let later = self.runs().filter(|(_, at)| at.offset > place.offset);
        let runs = [first].into_iter().chain(later.map(|(text, at)| (text.to_owned(), at))).collect();
        self.split_off(from, place, reach);
        runs
    }

    /// Where the run of a byte ends.
    fn run_end(&self, byte: usize) -> usize {
        let next = self.runs.iter().map(|run| run.from).find(|from| *from > byte);
        next.unwrap_or(self.text.len())
    }

    /// The last line that is not blank, if it is short enough for a fence: it is looked at for each element.
    fn last_line(&self) -> Option<&str> {
        let Reach { filled, line, .. } = self.reach;
        (filled - line <= FENCE_LINE).then(|| &self.text[line..filled])
    }

    /// Removes a fence that opens on the last line, and returns it.
    pub(super) fn take_fence(&mut self) -> Option<FenceLine> {
        let line_at = self.reach.line;
        let line = self.last_line()?.trim_end();
        let indent = line.len() - line.trim_start().len();
        let line = line.trim_start();
        let (marks, info) = Fence::of(line)?;
        if info.contains(char::from(marks.mark)) || info.trim().contains(char::is_whitespace) {
            return None;
        }
        let place = self.place(line_at + indent);
        let end = place.offset + line.len();
        let mut reach = Reach::default();
        reach.add(&self.text[..line_at], 0);
        self.split_off(line_at, place, reach);
        Some(FenceLine { marks, place, end, told: false })
    }

    /// The place of a byte of the text.
    fn place(&self, byte: usize) -> Place {
        let run = self.run(byte);
        run.at.after(&self.text[run.from..byte])
    }

    /// Removes the text from a byte on, which stands at `place`, and returns it. More text does not follow it directly.
    fn split_off(&mut self, byte: usize, place: Place, reach: Reach) -> String {
        let rest = self.text.split_off(byte);
        while self.runs.last().is_some_and(|run| run.from >= byte) {
            self.runs.pop();
        }
        (self.end, self.reach) = (place, reach);
        rest
    }

    /// Removes the line that closes `fence` behind all text.
    pub(super) fn take_last_closing(&mut self, fence: &FenceLine) {
        let body = self.text.trim_end();
        let line = body.rfind('\n').map_or(0, |at| at + 1);
        if !fence.marks.is_closed_by_line(&body[line..]) || self.over {
            return;
        }
        let mut room = line;
        let old = self.take();
        for (text, at) in old.runs() {
            let kept = room.min(text.len());
            room -= kept;
            self.push(&text[..kept], at, false, usize::MAX);
        }
    }

    /// Removes the line that closes `fence`; whether there was one.
    pub(super) fn take_closing(&mut self, fence: &FenceLine) -> bool {
        let closes = fence.marks.is_closed_by_line(self.text.lines().next().unwrap_or(""));
        if closes {
            let mut skip = self.text.find('\n').map_or(self.text.len(), |at| at + 1);
            let old = self.take();
            for (text, at) in old.runs() {
                let skipped = skip.min(text.len());
                skip -= skipped;
                self.push(&text[skipped..], at.after(&text[..skipped]), false, usize::MAX);
            }
            (self.over, self.beyond) = (old.over, old.beyond);
            (self.beyond_end, self.beyond_gap) = (old.beyond_end, old.beyond_gap);
        }
        closes
    }
}

/// Where text that is not blank stands without the blanks around it.
fn inner(text: &str, at: Place) -> Option<(Place, usize)> {
    let body = text.trim_matches(is_space);
    let before = text.len() - text.trim_start_matches(is_space).len();
    (!body.is_empty()).then(|| (at.after(&text[..before]), at.offset + before + body.len()))
}
