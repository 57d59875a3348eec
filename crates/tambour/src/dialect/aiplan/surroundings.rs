//! Text around a plan: code fences, and text that should not be there (P-001, P-025).

use super::rules;
use crate::finding::FindingReport;
use crate::lex::fence::Fence;
use crate::lex::prose::{ProseLine, ProseTracker};
use crate::repair::json::{ValueEnd, ValueOrigin, ValueStart};
use crate::span::{Extent, Place};

/// Tracks the text outside JSON values.
#[derive(Clone, Debug, Default)]
pub(super) struct PlanSurroundings {
    /// Character and length of the current run of backticks or tildes; length 0 if there is none.
    fence_run: (char, usize),
    /// Start of that run.
    run_start: Place,
    /// Set while the current line has only white space.
    is_line_start: bool,
    /// The open fence.
    open_fence: Option<Fence>,
    /// Language of the last fence.
    language: FenceLanguage,
    /// Place after the text and values so far.
    place: Place,
    /// Set while the text is in a thought that is not closed.
    is_in_thought: bool,
    /// Extent of drafts before the plan.
    draft_extent: Option<Extent>,
    /// Extent of text before the object that may be the plan, without fences and white space.
    extent_before: Option<Extent>,
    /// Extent of text since that object, or since the start if there is none yet, without fences and white space.
    extent_after: Option<Extent>,
    /// Set if there is text besides fences and values.
    has_text: bool,
    /// Extent of plans with calls that were part of thoughts, with the text around them.
    thought_plans: Option<Extent>,
    /// Prose state of the text so far, without values.
    prose: ProseTracker,
    /// Set once the open fence contains text, so that values after the text count as code.
    is_code: bool,
    /// Set if the current line in the open fence begins with `/` or `#`, so that it is a comment.
    is_comment_line: bool,
    /// State of a block comment.
    comment: CodeComment,
    /// The last character of the text so far.
    previous_char: char,
    /// Sentence that continues after the likely plan.
    continuation: Continuation,
}

/// Language of a fence.
#[derive(Clone, Debug, Default)]
struct FenceLanguage {
    /// Its first [`MAX_LANGUAGE`] bytes; empty if there is none.
    text: String,
    /// Its extent; empty if there is none.
    extent: Extent,
    stage: FenceStage,
}

/// Progress of a fence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FenceStage {
    /// Its language is being read.
    Language,
    /// Its language is complete, and no value is in it.
    #[default]
    Unused,
    /// A value is in it.
    Used,
}

impl FenceLanguage {
    /// Completes the language where a value begins; `is_inside` is set if the value is in the fence.
    fn begin_value(&mut self, is_inside: bool) {
        if is_inside {
            self.stage = FenceStage::Used;
        } else if self.stage == FenceStage::Language {
            self.stage = FenceStage::Unused;
        }
    }

    /// Forgets the language at the end of its fence; its extent stays.
    fn forget(&mut self) {
        self.text.clear();
        if self.stage == FenceStage::Language {
            self.stage = FenceStage::Unused;
        }
    }
}

/// Sentence that continues on the line of the likely plan.
#[derive(Clone, Debug, Default)]
enum Continuation {
    /// No sentence continues.
    #[default]
    Absent,
    /// Undecided: holds the line up to the plan, and the text after the plan so far.
    Undecided(ProseLine, String),
    /// A sentence continues.
    Present,
}

/// State of a block comment in code, from `/*` at the start of a line to `*/`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum CodeComment {
    /// No comment is open, and none may begin on this line.
    #[default]
    Absent,
    /// No comment is open, but one may begin here.
    MayBegin,
    /// A comment is open.
    Open,
}

/// Position of a plan in its reply.
#[derive(Clone, Debug)]
pub(super) struct PlanContext {
    /// Start of the value that is or contains the plan.
    value_start: Place,
    /// Text or fence that the value is in.
    origin: ValueOrigin,
    /// Language of the fence around the value, and its extent.
    fence_language: String,
    language_extent: Extent,
    /// Set if the plan is in a thought or comment that is not closed.
    pub(super) is_in_thought: bool,
    /// Set if the plan is quoted, in a code span or in a sentence, judged by the text before it.
    pub(super) is_quoted: bool,
    /// Text before the value on its line.
    line: ProseLine,
    /// Extent of text before the value, without fences and white space.
    extent_before: Option<Extent>,
}

impl PlanContext {
    /// Returns the start of the value, or of its fence's language if the language is not `json`.
    pub(super) fn start(&self) -> Place {
        let extent = self.language_extent;
        // If more text follows the language on its line, the extent covers that text, too.
        let is_json = self.fence_language.trim().eq_ignore_ascii_case("json")
            && extent.end - extent.place.offset == "json".len();
        if extent.is_empty() || is_json { self.value_start } else { extent.place.min(self.value_start) }
    }
}

/// Maximum number of bytes kept of a fence's language.
const MAX_LANGUAGE: usize = 32;

impl PlanSurroundings {
    pub(super) fn new(place: Place) -> PlanSurroundings {
        PlanSurroundings {
            place,
            is_line_start: true,
            comment: CodeComment::MayBegin,
            ..PlanSurroundings::default()
        }
    }

    /// Records a draft at the beginning of the reply, from `draft_start` to the current place.
    pub(super) fn begin_with_draft(&mut self, draft_start: Place) {
        self.draft_extent = Some(Extent { place: draft_start, end: self.place.offset });
    }

    /// Records the end of a thought. `start` is its start if the thought precedes the plan and so is a draft;
    /// `None` for a later thought, and for text before an unopened closing mark.
    pub(super) fn end_thought(&mut self, start: Option<Place>, end: Place) {
        self.end_run();
        let thought = start.map(|start| Extent { place: start, end: end.offset });
        self.draft_extent = Extent::join_present([self.draft_extent, thought]);
        self.restart_language(end);
        self.place = end;
        self.is_line_start = false;
    }

    /// If the language of a fence is being read, discards what was read before the thought that ends at `place`:
    /// reading starts again there.
    fn restart_language(&mut self, place: Place) {
        if self.language.stage != FenceStage::Language {
            return;
        }
        self.language.text.clear();
        let extent = std::mem::replace(&mut self.language.extent, Extent::empty(place));
        if !extent.is_empty() {
            self.skip_extent(extent);
        }
    }

    /// Marks the text from here as part of a thought that is not closed.
    pub(super) fn begin_unclosed_thought(&mut self, place: Place) {
        self.end_run();
        self.restart_language(place);
        self.place = place;
        self.is_in_thought = true;
        self.is_line_start = true;
    }

    /// Treats everything so far as a draft, including the beginning of a fence.
    pub(super) fn mark_draft(&mut self) {
        self.forget_text();
        self.draft_extent =
            Extent::join_present([self.draft_extent, self.extent_before.take(), self.extent_after.take()]);
    }

    /// Forgets all text so far and the fence that it opened; recorded extents stay.
    fn forget_text(&mut self) {
        self.has_text = false;
        self.prose = ProseTracker::default();
        self.open_fence = None;
        self.language.forget();
    }

    /// Records a value and its fence language as not part of the plan.
    pub(super) fn skip_value(&mut self, context: &PlanContext, end: usize) {
        self.skip_extent(Extent { place: context.start(), end });
    }

    /// Records an extent as not part of the plan.
    pub(super) fn skip_extent(&mut self, extent: Extent) {
        self.extent_after = Extent::join_present([self.extent_after, Some(extent)]);
    }

    /// Records that a value counts as text, so that the reply is prose.
    pub(super) fn mark_text(&mut self) {
        self.has_text = true;
    }

    /// Returns true if there is text besides fences and values.
    pub(super) fn is_prose(&self) -> bool {
        self.has_text
    }

    /// Reads text outside of values.
    pub(super) fn push_text(&mut self, text: &str) {
        self.prose.push_text(text);
        self.track_context(text);
        // Index in `text` up to which `place` has been advanced, which happens only where the place is
        // needed.
        let mut counted_end = 0;
        for (at, c) in text.char_indices() {
            if c == '`' || (c == '~' && (self.is_line_start || self.fence_run.0 == '~')) {
                if self.fence_run.0 != c {
                    self.end_run();
                    self.place.advance(&text[counted_end..at]);
                    counted_end = at;
                    self.run_start = self.place;
                }
                self.fence_run = (c, self.fence_run.1 + 1);
                continue;
            }
            self.end_run();
            if self.language.stage == FenceStage::Language {
                let language = &mut self.language;
                if !c.is_whitespace() {
                    if language.text.is_empty() {
                        self.place.advance(&text[counted_end..at]);
                        counted_end = at;
                        language.extent.place = self.place;
                    }
                    language.extent.end = self.place.offset + at - counted_end + c.len_utf8();
                }
                let is_indent = language.text.is_empty() && c.is_whitespace();
                if c == '\n' {
                    language.stage = FenceStage::Unused;
                    self.is_line_start = true;
                    self.is_comment_line = false;
                } else if language.text.len() < MAX_LANGUAGE && !is_indent {
                    language.text.push(c);
                }
            } else if c == '\n' {
                self.is_line_start = true;
                self.is_comment_line = false;
            } else if !c.is_whitespace() && c != '\u{FEFF}' {
                self.is_comment_line |= self.is_line_start && matches!(c, '/' | '#');
                self.is_code |= self.open_fence.is_some() && !self.is_comment_line;
                self.is_line_start = false;
                self.has_text = true;
                let end = self.place.offset + at - counted_end + c.len_utf8();
                match &mut self.extent_after {
                    Some(extent) => extent.end = end,
                    None => {
                        self.place.advance(&text[counted_end..at]);
                        counted_end = at;
                        self.extent_after = Some(Extent { place: self.place, end });
                    }
                }
            }
        }
        self.place.advance(&text[counted_end..]);
    }

    /// Tracks comments in code, and the line after a value.
    fn track_context(&mut self, text: &str) {
        for c in text.chars() {
            self.comment = match (self.comment, self.previous_char, c) {
                (CodeComment::Open, '*', '/') => CodeComment::Absent,
                (CodeComment::Open, ..) | (CodeComment::MayBegin, '/', '*') => CodeComment::Open,
                (_, _, '\n') => CodeComment::MayBegin,
                (CodeComment::MayBegin, _, c) if c.is_whitespace() => CodeComment::MayBegin,
                // A slash at the start of a line may be followed by the rest of a comment mark.
                (CodeComment::MayBegin, previous, '/') if previous != '/' => CodeComment::MayBegin,
                _ => CodeComment::Absent,
            };
            self.previous_char = c;
        }
        if let Continuation::Undecided(line, text_after) = &mut self.continuation {
            text_after.push_str(text);
            // A word directly after the plan continues the sentence, unless it has a capital letter.
            let is_adjacent_word =
                text_after.chars().next().is_some_and(|c| c.is_alphabetic() && !c.is_uppercase());
            let is_end = false;
            if let Some(is_continuation) = line.continues_with(text_after, is_end) {
                self.continuation = if is_continuation || is_adjacent_word {
                    Continuation::Present
                } else {
                    Continuation::Absent
                };
            }
        }
    }

    /// Handles a comment: it is text, and fence marks inside it do not count.
    pub(super) fn push_comment(&mut self, text: &str) {
        self.end_run();
        let start = self.place;
        self.place.advance(text);
        self.has_text = true;
        self.skip_extent(Extent { place: start, end: self.place.offset });
    }

    /// Ends a run of backticks or tildes and classifies it.
    fn end_run(&mut self) {
        let (mark, length) = std::mem::take(&mut self.fence_run);
        if length == 0 {
            return;
        }
        self.is_line_start = false;
        let Some(run) = Fence::new(mark as u8, length) else {
            self.has_text = true;
            let end = self.run_start.offset + length;
            return self.skip_extent(Extent { place: self.run_start, end });
        };
        match self.open_fence {
            Some(open) if open.is_closed_by(run) => {
                self.open_fence = None;
                self.end_fence();
            }
            Some(_) => {}
            None => {
                self.open_fence = Some(run);
                (self.is_code, self.is_comment_line) = (false, false);
                let mut run_end = self.run_start;
                (0..length).for_each(|_| run_end.advance(&String::from(mark)));
                let extent = Extent::empty(run_end);
                self.language = FenceLanguage { text: String::new(), extent, stage: FenceStage::Language };
            }
        }
    }

    /// Ends a fence. Its language counts as text if no value was in it.
    fn end_fence(&mut self) {
        let extent = std::mem::take(&mut self.language.extent);
        if !extent.is_empty() && self.language.stage != FenceStage::Used {
            self.skip_extent(extent);
        }
        self.language.forget();
    }

    /// Begins a value and returns its position.
    pub(super) fn begin_value(&mut self, start: &ValueStart) -> PlanContext {
        self.end_run();
        // The language of a fence is complete when the first value in it begins; further values share it.
        self.language.begin_value(start.origin != ValueOrigin::Bare);
        let extent_before = Extent::join_present([self.extent_before, self.extent_after]);
        let ValueStart { place: value_start, origin, is_in_open_comment, .. } = *start;
        let line = self.prose.line();
        let is_bare = origin == ValueOrigin::Bare;
        let is_in_text = if is_bare {
            line.is_in_sentence() || self.prose.is_in_span()
        } else {
            self.is_code || self.is_comment_line
        };
        let is_quoted = line.is_quoted() || is_in_text || self.comment == CodeComment::Open;
        if matches!(self.continuation, Continuation::Undecided(..)) {
            self.continuation = Continuation::Absent;
        }
        self.previous_char = ' ';
        if self.comment == CodeComment::MayBegin {
            self.comment = CodeComment::Absent;
        }
        PlanContext {
            value_start,
            origin,
            fence_language: self.language.text.clone(),
            language_extent: self.language.extent,
            is_in_thought: self.is_in_thought || is_in_open_comment,
            is_quoted,
            line,
            extent_before,
        }
    }

    /// Ends a value.
    pub(super) fn end_value(&mut self, end: &ValueEnd) {
        self.place = end.place;
        self.is_line_start = false;
        self.prose.skip_value();
    }

    /// Marks the last value, which has this context, as the likely plan: later text counts as text after it.
    pub(super) fn mark_plan(&mut self, context: &PlanContext) {
        self.continuation = Continuation::Undecided(context.line, String::new());
        self.extent_before = Extent::join_present([self.extent_before, self.extent_after.take()]);
    }

    /// Treats everything so far as left out, including the likely plan.
    pub(super) fn skip_all(&mut self) {
        self.forget_text();
        self.extent_after = Extent::join_present([self.extent_before.take(), self.extent_after]);
    }

    /// Returns true if a sentence continues after the likely plan, on its line.
    pub(super) fn is_continued(&self) -> bool {
        matches!(self.continuation, Continuation::Present)
    }

    /// Returns the extent of the text after the likely plan.
    pub(super) fn extent_after(&self) -> Option<Extent> {
        self.extent_after
    }

    /// Treats everything so far as a thought that contains a plan with calls.
    pub(super) fn mark_thought_plan(&mut self) {
        self.thought_plans =
            Extent::join_present([self.thought_plans, self.extent_before.take(), self.extent_after.take()]);
    }

    /// Reports the text around a plan that is not used because it was part of a thought. `plan_start` is the
    /// start of the plan, `extent_after` the extent of the text between the plan and the end of the thought.
    pub(super) fn report_around_thought(
        &mut self,
        plan_start: Place,
        extent_after: Option<Extent>,
        emit: &mut dyn FnMut(FindingReport),
    ) {
        self.end_run();
        self.end_fence();
        let earlier_thoughts = self.thought_plans.filter(|extent| extent.place.offset < plan_start.offset);
        let extent_before = earlier_thoughts.map(|extent| Extent { end: plan_start.offset, ..extent });
        for extent in [extent_before, extent_after, self.extent_after].into_iter().flatten() {
            emit(surrounding_text_report(extent));
        }
    }

    /// Ends the reply and reports faults around the plan; `context` is the context of the plan.
    pub(super) fn finish(
        &mut self,
        context: &PlanContext,
        is_truncated: bool,
        emit: &mut dyn FnMut(FindingReport),
    ) {
        self.end_run();
        self.end_fence();
        let at = context.value_start;
        if let Some(Extent { place, end }) = self.draft_extent {
            let report =
                FindingReport::new(rules::TEXT_OUTSIDE, place, end, "there is a draft before the plan");
            emit(report.with_repair("sent as a draft"));
        }
        let extent_before = Extent::join_present([self.thought_plans, context.extent_before]);
        for extent in [extent_before, self.extent_after].into_iter().flatten() {
            emit(surrounding_text_report(extent));
        }
        match context.origin {
            ValueOrigin::Bare => {
                let report = FindingReport::new(
                    rules::PLAN_NOT_FENCED,
                    at,
                    at.offset,
                    "the plan is not in a code fence",
                );
                return emit(report.with_repair("read as it is"));
            }
            ValueOrigin::JsonFence | ValueOrigin::OtherFence => {
                let language = context.fence_language.trim();
                let Extent { place, end } = context.language_extent;
                if !language.eq_ignore_ascii_case("json") || end - place.offset > language.len() {
                    let (message, repair) = match language {
                        "" => ("the fence around the plan names no language".to_owned(), "read as JSON"),
                        word => (
                            format!("the fence around the plan says `{word}`"),
                            "word left out, read as JSON",
                        ),
                    };
                    emit(FindingReport::new(rules::FENCE_LANGUAGE, place, end, message).with_repair(repair));
                }
            }
        }
        if self.open_fence.is_some() && !is_truncated {
            let report = FindingReport::new(
                rules::FENCE_UNCLOSED,
                self.place,
                self.place.offset,
                "the fence is not closed",
            );
            emit(report.with_repair("closed at the end"));
        }
    }
}

/// Returns the finding on text outside the plan.
fn surrounding_text_report(Extent { place, end }: Extent) -> FindingReport {
    FindingReport::new(rules::TEXT_OUTSIDE, place, end, "there is text beside the plan")
        .with_repair("not used")
}
