//! Text around a plan: code fences, and text that should not be there (P-001, P-025).

use super::rules;
use crate::finding::Report;
use crate::lex::fence::Fence;
use crate::lex::prose::{Line, Prose};
use crate::repair::json::{End, Origin, Start};
use crate::span::Place;

/// Extent of something left out: its first place, and the offset after it.
pub(super) type Left = Option<(Place, usize)>;

/// Returns the smallest extent that covers both.
pub(super) fn join(a: Left, b: Left) -> Left {
    match (a, b) {
        (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
        (a, b) => a.or(b),
    }
}

/// Tracks the text outside JSON values.
#[derive(Clone, Debug, Default)]
pub(super) struct Outside {
    /// The current run of backticks or tildes.
    run: (char, usize),
    run_at: Place,
    /// Set while the line has only white space.
    line_start: bool,
    /// The open fence.
    fence: Option<Fence>,
    /// Language of the fence being opened.
    language: Option<String>,
    /// Language of the last fence.
    said: String,
    /// Extent of that language.
    said_at: (Place, usize),
    /// Set if a value is in that fence.
    used: bool,
    at: Place,
    /// Set while the text is in a thought that is not closed.
    thinking: bool,
    /// Extent of drafts before the plan.
    draft: Left,
    /// Extent of text before the object that may be the plan, other than fences and blanks.
    before: Left,
    /// Extent of such text after that object.
    since: Left,
    /// Set if there is text besides fences and values.
    filled: bool,
    /// Extent of acting plans that were thoughts, with the text around them.
    aside: Left,
    /// Prose state of the text so far, without values.
    prose: Prose,
    /// Set by text in the open fence, which makes its other content code.
    code: bool,
    /// Set by a comment on the current line in the open fence.
    remark: bool,
    /// Set inside a comment from `/*` at the start of a line to `*/`.
    comment: bool,
    /// Set if a comment may begin here.
    starts: bool,
    /// The character before.
    previous: char,
    /// Line of the last value and the text after it, while a sentence may continue there.
    behind: Option<(Line, String)>,
    /// Set if a sentence continues after the likely plan.
    goes_on: bool,
}

/// Position of a plan in its reply.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    start: Place,
    origin: Origin,
    language: String,
    language_at: (Place, usize),
    /// Set if the plan is in a thought or comment that is not closed.
    pub(super) thinking: bool,
    /// Set if the plan is quoted, in a code span or in a sentence, judged by the text before it.
    pub(super) aside: bool,
    line: Line,
    before: Left,
}

impl Frame {
    /// Returns the place where the value begins, including an unusual fence language.
    pub(super) fn begins(&self) -> Place {
        let (place, last) = self.language_at;
        let json = self.language.trim().eq_ignore_ascii_case("json") && last - place.offset == "json".len();
        if last > place.offset && !json { place.min(self.start) } else { self.start }
    }
}

/// Bytes of a fence's language that are kept.
const LANGUAGE: usize = 32;

impl Outside {
    pub(super) fn starting_at(place: Place) -> Outside {
        Outside { at: place, line_start: true, starts: true, ..Outside::default() }
    }

    /// Records a draft at the beginning.
    pub(super) fn led_by(&mut self, draft: Place) {
        self.draft = Some((draft, self.at.offset));
    }

    /// Records the end of a thought; `start` is its beginning if it precedes the plan.
    pub(super) fn thought(&mut self, start: Option<Place>, end: Place) {
        self.end_run();
        self.draft = join(self.draft, start.map(|start| (start, end.offset)));
        self.end_language(end);
        self.at = end;
        self.line_start = false;
    }

    /// Restarts the language of the fence at `place`: the text before that names nothing.
    fn end_language(&mut self, place: Place) {
        let Some(language) = &mut self.language else { return };
        language.clear();
        let (first, last) = std::mem::replace(&mut self.said_at, (place, place.offset));
        if last > first.offset {
            self.passed(first, last);
        }
    }

    /// Marks the text from here as part of a thought that is not closed.
    pub(super) fn in_thought(&mut self, place: Place) {
        self.end_run();
        self.end_language(place);
        self.at = place;
        self.thinking = true;
        self.line_start = true;
    }

    /// Treats everything so far as a draft, including the beginning of a fence.
    pub(super) fn drafted(&mut self) {
        self.filled = false;
        self.prose = Prose::default();
        (self.fence, self.language) = (None, None);
        self.said.clear();
        self.draft = join(join(self.draft, self.before.take()), self.since.take());
    }

    /// Records a value and its fence language as not part of the plan.
    pub(super) fn passed_value(&mut self, frame: &Frame, end: usize) {
        self.passed(frame.begins(), end);
    }

    /// Records an extent as not part of the plan.
    pub(super) fn passed(&mut self, start: Place, end: usize) {
        self.since = join(self.since, Some((start, end)));
    }

    /// Records that a likely value is text.
    pub(super) fn prose(&mut self) {
        self.filled = true;
    }

    /// Returns true if there is text besides fences and values.
    pub(super) fn is_prose(&self) -> bool {
        self.filled
    }

    pub(super) fn text(&mut self, text: &str) {
        self.prose.text(text);
        self.follow(text);
        // Offset in `text` up to which the place is advanced.
        let mut counted = 0;
        for (at, c) in text.char_indices() {
            if c == '`' || (c == '~' && (self.line_start || self.run.0 == '~')) {
                if self.run.0 != c {
                    self.end_run();
                    self.at.advance(&text[counted..at]);
                    counted = at;
                    self.run_at = self.at;
                }
                self.run = (c, self.run.1 + 1);
                continue;
            }
            self.end_run();
            if let Some(language) = &mut self.language {
                if !c.is_whitespace() {
                    if language.is_empty() {
                        self.at.advance(&text[counted..at]);
                        counted = at;
                        self.said_at.0 = self.at;
                    }
                    self.said_at.1 = self.at.offset + at - counted + c.len_utf8();
                }
                if c == '\n' {
                    self.said = std::mem::take(language);
                    self.language = None;
                    self.line_start = true;
                    self.remark = false;
                } else if language.len() < LANGUAGE && !(language.is_empty() && c.is_whitespace()) {
                    language.push(c);
                }
            } else if c == '\n' {
                self.line_start = true;
                self.remark = false;
            } else if !c.is_whitespace() && c != '\u{FEFF}' {
                self.remark |= self.line_start && matches!(c, '/' | '#');
                self.code |= self.fence.is_some() && !self.remark;
                self.line_start = false;
                self.filled = true;
                let end = self.at.offset + at - counted + c.len_utf8();
                match &mut self.since {
                    Some((_, last)) => *last = end,
                    None => {
                        self.at.advance(&text[counted..at]);
                        counted = at;
                        self.since = Some((self.at, end));
                    }
                }
            }
        }
        self.at.advance(&text[counted..]);
    }

    /// Tracks comments in code, and the line after a value.
    fn follow(&mut self, text: &str) {
        for c in text.chars() {
            match (self.previous, c) {
                ('/', '*') if self.starts => self.comment = true,
                ('*', '/') => self.comment = false,
                _ => {}
            }
            // A slash at the start of a line may be followed by the rest of a comment mark.
            self.starts = c == '\n' || self.starts && (c.is_whitespace() || c == '/' && self.previous != '/');
            self.previous = c;
        }
        if let Some((line, behind)) = &mut self.behind {
            behind.push_str(text);
            let adjoins = behind.chars().next().is_some_and(|c| c.is_alphabetic() && !c.is_uppercase());
            if let Some(goes_on) = line.goes_on(behind, false) {
                self.goes_on |= goes_on || adjoins;
                self.behind = None;
            }
        }
    }

    /// Handles a comment: it is text, and fence marks inside it do not count.
    pub(super) fn comment(&mut self, text: &str) {
        self.end_run();
        let start = self.at;
        self.at.advance(text);
        self.filled = true;
        self.passed(start, self.at.offset);
    }

    /// Ends a run of backticks or tildes and classifies it.
    fn end_run(&mut self) {
        let (mark, length) = std::mem::take(&mut self.run);
        if length == 0 {
            return;
        }
        self.line_start = false;
        let Some(run) = Fence::new(mark as u8, length) else {
            self.filled = true;
            return self.passed(self.run_at, self.run_at.offset + length);
        };
        match self.fence {
            Some(open) if open.is_closed_by(run) => {
                self.fence = None;
                self.end_fence();
            }
            Some(_) => {}
            None => {
                self.fence = Some(run);
                self.language = Some(String::new());
                (self.code, self.remark) = (false, false);
                let mut after = self.run_at;
                (0..length).for_each(|_| after.advance(&String::from(mark)));
                self.said_at = (after, after.offset);
                self.used = false;
            }
        }
    }

    /// Ends a fence, or begins another one: its language belongs to no value in it.
    fn end_fence(&mut self) {
        let (place, end) = std::mem::take(&mut self.said_at);
        if end > place.offset && !self.used {
            self.passed(place, end);
        }
        self.language = None;
        self.said.clear();
    }

    /// Begins a value and returns its position.
    pub(super) fn value(&mut self, start: &Start) -> Frame {
        self.end_run();
        // The language of a fence was judged with the first value in it.
        let language = self.language.take().unwrap_or_else(|| self.said.clone());
        self.said.clone_from(&language);
        let before = join(self.before, self.since);
        self.used |= start.origin != Origin::Bare;
        let Start { place: start, origin, commented, .. } = *start;
        let line = self.prose.line();
        let bare = origin == Origin::Bare;
        let sentence =
            if bare { line.in_sentence() || self.prose.in_span() } else { self.code || self.remark };
        let aside = line.is_quoted() || sentence || self.comment;
        (self.behind, self.previous, self.starts) = (None, ' ', false);
        Frame {
            start,
            origin,
            language,
            language_at: self.said_at,
            thinking: self.thinking || commented,
            aside,
            line,
            before,
        }
    }

    /// Ends a value.
    pub(super) fn value_end(&mut self, end: &End) {
        self.at = end.place;
        self.line_start = false;
        self.prose.pass_over();
    }

    /// Marks the last value as the likely plan: later text is after it.
    pub(super) fn split(&mut self, frame: &Frame) {
        (self.behind, self.goes_on) = (Some((frame.line, String::new())), false);
        self.before = join(self.before, self.since.take());
    }

    /// Treats everything so far as left out.
    pub(super) fn forget(&mut self) {
        self.filled = false;
        self.prose = Prose::default();
        (self.fence, self.language) = (None, None);
        self.said.clear();
        self.since = join(self.before.take(), self.since);
    }

    /// Returns true if a sentence continues after the likely plan, on its line.
    pub(super) fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Returns the extent of the text since the last value.
    pub(super) fn behind(&self) -> Left {
        self.since
    }

    /// Treats everything left out so far as a thought with a plan.
    pub(super) fn set_aside(&mut self) {
        self.aside = join(self.aside, join(self.before.take(), self.since.take()));
    }

    /// Reports the text around a plan that was set aside; `behind` is the extent between it and the end of
    /// its thought.
    pub(super) fn finish_aside(&mut self, plan: Place, behind: Left, report: &mut dyn FnMut(Report)) {
        self.end_run();
        self.end_fence();
        let before = self.aside.filter(|(first, _)| first.offset < plan.offset);
        for (place, end) in
            [before.map(|(first, _)| (first, plan.offset)), behind, self.since].into_iter().flatten()
        {
            report(outside(place, end));
        }
    }

    /// Reports faults around the plan that is used.
    pub(super) fn finish(&mut self, frame: &Frame, cut: bool, report: &mut dyn FnMut(Report)) {
        self.end_run();
        self.end_fence();
        let at = frame.start;
        if let Some((place, end)) = self.draft {
            let found = Report::new(rules::TEXT_OUTSIDE, place, end, "there is a draft before the plan");
            report(found.repaired("told as a draft"));
        }
        for (place, end) in [join(self.aside, frame.before), self.since].into_iter().flatten() {
            report(outside(place, end));
        }
        match frame.origin {
            Origin::Bare => {
                let found =
                    Report::new(rules::PLAN_NOT_FENCED, at, at.offset, "the plan is not in a code fence");
                return report(found.repaired("read as it is"));
            }
            Origin::JsonFence | Origin::OtherFence => {
                let word = frame.language.trim();
                let (place, end) = frame.language_at;
                if !word.eq_ignore_ascii_case("json") || end - place.offset > word.len() {
                    let (message, repair) = match word {
                        "" => ("the fence around the plan names no language".to_owned(), "read as JSON"),
                        word => {
                            (format!("the fence around the plan says `{word}`"), "left out, and read as JSON")
                        }
                    };
                    report(Report::new(rules::FENCE_LANGUAGE, place, end, message).repaired(repair));
                }
            }
        }
        if self.fence.is_some() && !cut {
            let found =
                Report::new(rules::FENCE_UNCLOSED, self.at, self.at.offset, "the fence is not closed");
            report(found.repaired("closed at the end"));
        }
    }
}

fn outside(place: Place, end: usize) -> Report {
    Report::new(rules::TEXT_OUTSIDE, place, end, "there is text beside the plan").repaired("not used")
}
