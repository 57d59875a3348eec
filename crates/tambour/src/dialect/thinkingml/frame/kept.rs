//! Text outside the elements: left out if a structure follows, otherwise the answer (X-013, T-015). A summary
//! after text may be an example in it, so it is held until a structure begins.

use super::super::context::{self, Line};
use super::super::outside::{FenceLine, Outside};
use super::super::rules;
use super::super::serp::{self, Outcome};
use super::super::structure::Name;
use super::{Frame, Mode};
use crate::dialect::{Action, Intent, Output, Written};
use crate::finding::Report;
use crate::lex::markup::{Tag, Token};
use crate::span::Place;

/// A `<serp>` after text, as written.
pub(super) struct Prose {
    /// Text outside before it, and the fence around the reply.
    before: Outside,
    fence: Option<FenceLine>,
    raw: String,
    /// Set if it began a line.
    line_start: bool,
}

/// A held summary after text: it is emitted when a structure begins, and is part of the text otherwise.
pub(super) struct Waiting {
    text: String,
    /// Extent of the element.
    at: Place,
    end: usize,
    /// Text outside without the element, and the fence that was removed.
    clean: Outside,
    fence: Option<FenceLine>,
    /// Length of the text outside up to the end of the element.
    len: usize,
    reports: Vec<Report>,
}

impl Waiting {
    pub(super) fn is_behind(&self, at: Place) -> bool {
        self.at.offset >= at.offset
    }

    pub(super) fn held(&self) -> usize {
        self.text.len()
    }
}

/// Most findings held with a summary; with more of them the element is taken as a summary.
const KEPT_BACK: usize = 64;

/// Output that holds findings and passes on everything else.
struct KeptBack<'a> {
    reports: &'a mut Vec<Report>,
    out: &'a mut dyn Output,
}

impl Output for KeptBack<'_> {
    fn intent(&mut self, intent: Intent<'_>) {
        self.out.intent(intent);
    }

    fn queries(&mut self, written: Written<'_>, place: Place, end: usize) -> Option<usize> {
        self.out.queries(written, place, end)
    }

    fn act(&mut self, action: Action) {
        self.out.act(action);
    }

    fn report(&mut self, report: Report) {
        self.reports.push(report);
    }

    fn fall_back(&mut self, reason: &'static str) {
        self.out.fall_back(reason);
    }

    fn fail(&mut self, code: &'static str, message: &str) {
        self.out.fail(code, message);
    }
}

impl Frame {
    /// Takes the text after a `<!--` that hides a structure, if the reply has ended without another
    /// structure.
    pub(in super::super) fn take_commented(&mut self) -> Vec<(String, Place)> {
        if self.mode != Mode::Outside || self.seen.has(Name::Final) {
            return Vec::new();
        }
        // The mark of the comment is markup: text after it counts as at the start of a line.
        (self.in_comment, self.context.line) = (false, Line::Tag);
        let runs = self.outside.take_commented();
        if let Some((_, at)) = runs.first()
            && self.waiting.as_ref().is_some_and(|waiting| waiting.is_behind(*at))
        {
            // The summary is read again together with the text before it.
            self.waiting = None;
            self.seen.forget(Name::Serp);
        }
        runs
    }

    pub(super) fn keep_outside(&mut self, token: &Token<'_>, at: Place, out: &mut dyn Output) {
        // Text is cut at the limit itself, so that the result does not depend on the chunks.
        let whole = !matches!(token, Token::Text(_));
        let Some((rest, at)) = self.outside.push(token.raw(), at, whole, self.context.options.limits.hold)
        else {
            return;
        };
        if self.seen.has(Name::Final) && !self.answer.is_empty() {
            // After the answer only the beginning matters, since everything is left out anyway.
            return self.outside.overflow(rest, at);
        }
        // Too much to hold: the text is the answer.
        self.drop_waiting(out);
        if !self.seen.has(Name::Thinking) {
            out.fall_back("structure_missing");
        }
        context::report(
            rules::LIMIT_EXCEEDED,
            at,
            0,
            "more text before the structure than `limits.hold`",
            "given as the answer",
            out,
        );
        self.seen.add(Name::Final);
        self.answer.imply();
        // The tag was examined already.
        self.give_outside_as_answer(at.offset + usize::from(whole), out);
        self.replay(rest, at, out);
    }

    /// Emits the text outside as the answer; its faults before offset `reported` were reported already.
    pub(super) fn give_outside_as_answer(&mut self, reported: usize, out: &mut dyn Output) {
        out.intent(Intent::ThinkingEnd);
        self.mode = Mode::Final;
        self.answer.begin_reported(reported);
        (self.in_comment, self.context.line) = (false, Line::Blank);
        for (text, at) in self.outside.take().runs() {
            self.replay(text, at, out);
        }
    }

    /// Drops and reports text before `<thinking>` or `<final>`.
    pub(super) fn drop_outside(&mut self, next: Name, out: &mut dyn Output) {
        if let Some(marker) = self.marker.take() {
            context::embedded_marker(marker, "left out", out);
        }
        for (start, end) in self.outside.ranges() {
            let between = next == Name::Final && self.seen.has(Name::Thinking);
            let (rule, message) = if between {
                (rules::FINAL_NOT_ADJACENT, "text between `</thinking>` and `<final>`")
            } else {
                (rules::TEXT_OUTSIDE_STRUCTURE, "text before the structure")
            };
            let repair = if next == Name::Final { "not used, unless `<final>` is empty" } else { "left out" };
            out.report(Report::new(rule, start, end, message).repaired(repair));
        }
        let dropped = self.outside.take();
        if next == Name::Final && !dropped.is_blank() {
            self.dropped = dropped;
        }
    }

    /// Reports the fence around the reply.
    pub(super) fn tell_fence(&mut self, out: &mut dyn Output) {
        let Some(fence) = self.fence.as_mut().filter(|fence| !fence.told) else { return };
        fence.told = true;
        let message = "the reply is wrapped in a code fence";
        let report = Report::new(rules::FENCED_REPLY, fence.place, fence.end, message);
        out.report(report.repaired("fence removed"));
    }

    /// Begins a `<serp>`; text before it is saved unchanged.
    pub(super) fn begin_serp_tag(&mut self, exact: bool, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        // Only the first one counts, so that the text is copied once at most.
        let first = self.reads_marks() && !self.seen.has(Name::Serp);
        let prose = (first && !self.outside.is_blank()).then(|| Prose {
            before: self.outside.clone(),
            fence: self.fence.clone(),
            raw: tag.raw.to_owned(),
            line_start: self.context.line != Line::Text,
        });
        let mut reports = Vec::new();
        if prose.is_some() {
            let out = &mut KeptBack { reports: &mut reports, out: &mut *out };
            context::check_tag(Name::Serp, exact, tag, at, out);
        } else {
            context::check_tag(Name::Serp, exact, tag, at, out);
        }
        self.begin(Name::Serp, at, tag.raw.len(), out);
        if self.mode == Mode::Serp {
            // A fence alone is the one around the reply.
            self.prose = prose.filter(|_| !self.outside.is_blank());
        }
        self.keep_back(reports, out);
    }

    /// Holds findings about a summary as long as it may be text.
    fn keep_back(&mut self, reports: Vec<Report>, out: &mut dyn Output) {
        match &mut self.waiting {
            _ if self.mode == Mode::Serp && self.prose.is_some() && reports.len() < KEPT_BACK => {
                self.kept_back = reports;
            }
            Some(waiting) if self.mode == Mode::Outside => waiting.reports.extend(reports),
            _ => {
                self.prose = None;
                reports.into_iter().for_each(|report| out.report(report));
            }
        }
    }

    pub(super) fn serp_token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        if self.prose.is_none() {
            return self.serp_inside(token, at, out);
        }
        let mut reports = std::mem::take(&mut self.kept_back);
        self.serp_inside(token, at, &mut KeptBack { reports: &mut reports, out: &mut *out });
        self.keep_back(reports, out);
    }

    fn serp_inside(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        if let Some(prose) = &mut self.prose {
            prose.raw.push_str(token.raw());
            if prose.before.len() + prose.raw.len() > self.context.options.limits.hold {
                self.prose = None;
            }
        }
        match self.serp.token(token, at, out) {
            Outcome::Open => {}
            Outcome::Over => {
                if !self.serp_waits(at.offset + token.raw().len(), true) {
                    self.end_serp(at.offset, out);
                }
            }
            Outcome::Begins(name, exact) => {
                self.end_serp(at.offset, out);
                if let Token::Tag(tag) = token {
                    context::check_tag(name, exact, &tag, at, out);
                }
                self.begin(name, at, token.raw().len(), out);
            }
        }
    }

    /// Ends the summary together with the reply.
    pub(super) fn close_serp(&mut self, end: usize, out: &mut dyn Output) {
        if !self.serp_waits(end, false) {
            self.serp.left_open(end, out);
            self.end_serp(end, out);
        }
    }

    /// Holds the element that ends at `end` until a structure begins; returns whether it is held. An unclosed
    /// one is held only in the middle of a line.
    fn serp_waits(&mut self, end: usize, closed: bool) -> bool {
        let prose = self.prose.take().filter(|prose| closed || !prose.line_start);
        let Some(Prose { before, fence, raw, .. }) = prose.filter(|_| !self.serp.is_full()) else {
            return false;
        };
        self.mode = Mode::Outside;
        let (text, at) = self.serp.take();
        let clean = std::mem::replace(&mut self.outside, before);
        let fence = std::mem::replace(&mut self.fence, fence);
        self.outside.push(&raw, at, true, usize::MAX);
        let len = self.outside.len();
        let reports = std::mem::take(&mut self.kept_back);
        self.waiting = Some(Waiting { text, at, end, clean, fence, len, reports });
        true
    }

    /// Emits the held summary, because a structure begins.
    pub(super) fn send_waiting(&mut self, out: &mut dyn Output) {
        let Some(waiting) = self.waiting.take() else { return };
        let whole = std::mem::replace(&mut self.outside, waiting.clean);
        for (text, at) in whole.runs_from(waiting.len) {
            self.outside.push(text, at, false, usize::MAX);
        }
        self.fence = waiting.fence;
        self.tell_fence(out);
        waiting.reports.into_iter().for_each(|report| out.report(report));
        serp::send(&waiting.text, out);
    }

    /// Turns the held summary into text, because no structure began.
    pub(super) fn drop_waiting(&mut self, out: &mut dyn Output) {
        let Some(Waiting { at, end, .. }) = self.waiting.take() else { return };
        self.seen.forget(Name::Serp);
        let message = "`<serp>` stands in text without a structure";
        context::report(rules::TAG_MISPLACED, at, end - at.offset, message, "read as text", out);
    }

    fn end_serp(&mut self, end: usize, out: &mut dyn Output) {
        self.tell_fence(out);
        self.mode = Mode::Outside;
        self.prose = None;
        self.kept_back.drain(..).for_each(|report| out.report(report));
        self.serp.end(end, out);
    }
}
