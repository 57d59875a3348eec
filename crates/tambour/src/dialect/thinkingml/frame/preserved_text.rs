//! Text outside the elements: left out if a structure follows, which begins with `<thinking>` or `<final>`,
//! otherwise the answer (X-013, T-015). A summary, `<serp>`, after text may be an example in that text, so it
//! is held until a structure begins.

use super::super::context::{self, LineContent};
use super::super::rules;
use super::super::serp::{self, SummaryOutcome};
use super::super::structure::ThinkingMlElement;
use super::super::top_level_text::{ReplyFence, TopLevelText};
use super::{FramePart, ReplyFrame};
use crate::dialect::{Intent, IntentSink, RawQueries, ReplyAction};
use crate::finding::FindingReport;
use crate::lex::markup::{MarkupTag, MarkupToken};
use crate::span::{Extent, Place};

/// Text before a `<serp>` that may be only an example in that text, and the `<serp>` element read so far.
pub(super) struct TextBeforeSummary {
    /// Text outside the elements before the summary.
    surrounding: TopLevelText,
    /// The fence around the reply before the summary.
    fence: Option<ReplyFence>,
    /// The `<serp>` element so far, as written.
    raw: String,
    /// Set if the element began a line.
    is_line_start: bool,
}

/// A held summary that comes after text: it is emitted when a structure begins, and otherwise becomes part of
/// that text.
pub(super) struct HeldSummary {
    /// Text of the summary.
    text: String,
    /// Place of the element.
    start: Place,
    /// Offset after the element.
    end: usize,
    /// Text outside the elements without the summary, used if a structure begins.
    surrounding_without_summary: TopLevelText,
    /// Fence around the reply, used if a structure begins.
    fence: Option<ReplyFence>,
    /// Length in bytes of the text outside the elements, the summary at its end included.
    text_len: usize,
    /// Findings about the summary.
    reports: Vec<FindingReport>,
}

impl HeldSummary {
    /// Returns whether the element begins at `at` or later.
    pub(super) fn is_after(&self, at: Place) -> bool {
        self.start.offset >= at.offset
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.text.len()
    }
}

/// Maximum number of findings held with a summary; with more of them the element is taken as a summary.
const MAX_HELD_REPORTS: usize = 64;

/// Sink that collects findings and passes on everything else.
struct ReportHolder<'a> {
    reports: &'a mut Vec<FindingReport>,
    out: &'a mut dyn IntentSink,
}

impl IntentSink for ReportHolder<'_> {
    fn emit_intent(&mut self, intent: Intent<'_>) {
        self.out.emit_intent(intent);
    }

    fn emit_queries(&mut self, raw_queries: RawQueries<'_>, place: Place, end: usize) -> Option<usize> {
        self.out.emit_queries(raw_queries, place, end)
    }

    fn emit_action(&mut self, action: ReplyAction) {
        self.out.emit_action(action);
    }

    fn report(&mut self, report: FindingReport) {
        self.reports.push(report);
    }

    fn fall_back(&mut self, reason: &'static str) {
        self.out.fall_back(reason);
    }

    fn fail(&mut self, code: &'static str, message: &str) {
        self.out.fail(code, message);
    }
}

impl ReplyFrame {
    /// Takes the text after a `<!--` that hides an element, if the reply has ended outside of elements and
    /// without a `<final>`.
    pub(in super::super) fn take_commented_text(&mut self) -> Vec<(String, Place)> {
        if self.part != FramePart::Surrounding || self.seen_elements.has(ThinkingMlElement::Final) {
            return Vec::new();
        }
        // Text after the `<!--` counts as at the start of a line.
        (self.is_in_comment, self.context.line) = (false, LineContent::Tag);
        let runs = self.surrounding.take_commented_text();
        if let Some((_, at)) = runs.first()
            && self.held_summary.as_ref().is_some_and(|held_summary| held_summary.is_after(*at))
        {
            // The summary is read again together with the text before it.
            self.held_summary = None;
            self.seen_elements.remove(ThinkingMlElement::Serp);
        }
        runs
    }

    /// Keeps a token as text outside the elements. If the limit is exceeded, all that text becomes the
    /// answer; after an answer, the token is left out.
    pub(super) fn keep_surrounding(&mut self, token: &MarkupToken<'_>, at: Place, out: &mut dyn IntentSink) {
        // Text is cut at the limit itself, so that the result does not depend on the chunks.
        let is_atomic = !matches!(token, MarkupToken::Text(_));
        let Some((rest, at)) =
            self.surrounding.push(token.raw(), at, is_atomic, self.context.options.limits.hold)
        else {
            return;
        };
        if self.seen_elements.has(ThinkingMlElement::Final) && !self.answer.is_empty() {
            // After the answer only the beginning matters, since everything is left out anyway.
            return self.surrounding.record_overflow(rest, at);
        }
        // Too much to hold: the text is the answer.
        self.drop_held_summary(out);
        if !self.seen_elements.has(ThinkingMlElement::Thinking) {
            out.fall_back("structure_missing");
        }
        context::report_at(
            rules::LIMIT_EXCEEDED,
            at,
            0,
            "more text before the structure than `limits.hold` allows",
            "sent as the answer",
            out,
        );
        self.seen_elements.add(ThinkingMlElement::Final);
        self.answer.imply();
        // A tag at `at` was examined already, so faults at its start count as reported.
        self.replay_surrounding_as_answer(at.offset + usize::from(is_atomic), out);
        self.replay(rest, at, out);
    }

    /// Emits the text outside the elements as the answer; faults before offset `reported_end` were reported
    /// already.
    pub(super) fn replay_surrounding_as_answer(&mut self, reported_end: usize, out: &mut dyn IntentSink) {
        out.emit_intent(Intent::ThinkingEnd);
        self.part = FramePart::Final;
        self.answer.set_reported_end(reported_end);
        (self.is_in_comment, self.context.line) = (false, LineContent::Blank);
        for (text, at) in self.surrounding.take().runs() {
            self.replay(text, at, out);
        }
    }

    /// Takes and reports text before `next`, which is `<thinking>` or `<final>`. Text before `<final>` is
    /// kept in case `<final>` is empty.
    pub(super) fn drop_surrounding(&mut self, next: ThinkingMlElement, out: &mut dyn IntentSink) {
        if let Some(place) = self.marker_place.take() {
            context::report_embedded_marker(place, "left out", out);
        }
        for Extent { place, end } in self.surrounding.extents() {
            let follows_thinking =
                next == ThinkingMlElement::Final && self.seen_elements.has(ThinkingMlElement::Thinking);
            let (rule, message) = if follows_thinking {
                (rules::FINAL_NOT_ADJACENT, "text between `</thinking>` and `<final>`")
            } else {
                (rules::TEXT_OUTSIDE_STRUCTURE, "text before the structure")
            };
            let repair = if next == ThinkingMlElement::Final {
                "not used, unless `<final>` is empty"
            } else {
                "left out"
            };
            out.report(FindingReport::new(rule, place, end, message).with_repair(repair));
        }
        let dropped_text = self.surrounding.take();
        if next == ThinkingMlElement::Final && !dropped_text.is_blank() {
            self.text_before_final = dropped_text;
        }
    }

    /// Reports the fence around the reply, once.
    pub(super) fn report_fence(&mut self, out: &mut dyn IntentSink) {
        let Some(fence) = self.fence.as_mut().filter(|fence| !fence.is_reported) else { return };
        fence.is_reported = true;
        let message = "the reply is wrapped in a code fence";
        let report = FindingReport::new(rules::FENCED_REPLY, fence.place, fence.end, message);
        out.report(report.with_repair("fence removed"));
    }

    /// Begins a `<serp>`; text before it is saved unchanged.
    pub(super) fn begin_summary_tag(
        &mut self,
        is_exact: bool,
        tag: &MarkupTag<'_>,
        at: Place,
        out: &mut dyn IntentSink,
    ) {
        // Only the first summary may be an example, so that the text is copied once at most.
        let is_first = self.accepts_marks() && !self.seen_elements.has(ThinkingMlElement::Serp);
        let text_before = (is_first && !self.surrounding.is_blank()).then(|| TextBeforeSummary {
            surrounding: self.surrounding.clone(),
            fence: self.fence.clone(),
            raw: tag.raw.to_owned(),
            is_line_start: self.context.line != LineContent::Text,
        });
        let mut reports = Vec::new();
        if text_before.is_some() {
            let out = &mut ReportHolder { reports: &mut reports, out: &mut *out };
            context::check_tag(ThinkingMlElement::Serp, is_exact, tag, at, out);
        } else {
            context::check_tag(ThinkingMlElement::Serp, is_exact, tag, at, out);
        }
        self.begin_element(ThinkingMlElement::Serp, at, tag.raw.len(), out);
        if self.part == FramePart::Summary {
            // If only a fence came before, it was the fence around the reply and is removed now.
            self.text_before_summary = text_before.filter(|_| !self.surrounding.is_blank());
        }
        self.hold_reports(reports, out);
    }

    /// Holds findings about a summary as long as the summary may be text; otherwise reports them.
    fn hold_reports(&mut self, reports: Vec<FindingReport>, out: &mut dyn IntentSink) {
        match &mut self.held_summary {
            _ if self.part == FramePart::Summary
                && self.text_before_summary.is_some()
                && reports.len() < MAX_HELD_REPORTS =>
            {
                self.held_reports = reports;
            }
            Some(held_summary) if self.part == FramePart::Surrounding => held_summary.reports.extend(reports),
            _ => {
                self.text_before_summary = None;
                reports.into_iter().for_each(|report| out.report(report));
            }
        }
    }

    /// Handles a token of a summary; its findings are held if the summary may be an example.
    pub(super) fn push_summary_token(&mut self, token: MarkupToken<'_>, at: Place, out: &mut dyn IntentSink) {
        if self.text_before_summary.is_none() {
            return self.read_summary_token(token, at, out);
        }
        let mut reports = std::mem::take(&mut self.held_reports);
        self.read_summary_token(token, at, &mut ReportHolder { reports: &mut reports, out: &mut *out });
        self.hold_reports(reports, out);
    }

    /// Reads a token of a summary and reports to `out`.
    fn read_summary_token(&mut self, token: MarkupToken<'_>, at: Place, out: &mut dyn IntentSink) {
        if let Some(text_before) = &mut self.text_before_summary {
            text_before.raw.push_str(token.raw());
            if text_before.surrounding.len() + text_before.raw.len() > self.context.options.limits.hold {
                self.text_before_summary = None;
            }
        }
        match self.summary.push_token(token, at, out) {
            SummaryOutcome::Open => {}
            SummaryOutcome::Ended => {
                let (end, is_closed) = (at.offset + token.raw().len(), true);
                if !self.hold_summary(end, is_closed) {
                    self.end_summary(at.offset, out);
                }
            }
            SummaryOutcome::OtherBegins(name, is_exact) => {
                self.end_summary(at.offset, out);
                if let MarkupToken::Tag(tag) = token {
                    context::check_tag(name, is_exact, &tag, at, out);
                }
                self.begin_element(name, at, token.raw().len(), out);
            }
        }
    }

    /// Ends the summary together with the reply.
    pub(super) fn close_summary(&mut self, end: usize, out: &mut dyn IntentSink) {
        let is_closed = false;
        if !self.hold_summary(end, is_closed) {
            self.summary.report_unclosed(end, out);
            self.end_summary(end, out);
        }
    }

    /// Holds the element that ends at `end` until a structure begins; returns whether it is held. An unclosed
    /// element is held only if it began in the middle of a line.
    fn hold_summary(&mut self, end: usize, is_closed: bool) -> bool {
        let text_before = self
            .text_before_summary
            .take()
            .filter(|text_before| is_closed || !text_before.is_line_start)
            .filter(|_| !self.summary.is_full());
        let Some(TextBeforeSummary { surrounding, fence, raw, .. }) = text_before else {
            return false;
        };
        self.part = FramePart::Surrounding;
        let (text, start) = self.summary.take();
        let surrounding_without_summary = std::mem::replace(&mut self.surrounding, surrounding);
        let fence = std::mem::replace(&mut self.fence, fence);
        self.surrounding.push_unlimited(&raw, start);
        let text_len = self.surrounding.len();
        let reports = std::mem::take(&mut self.held_reports);
        self.held_summary =
            Some(HeldSummary { text, start, end, surrounding_without_summary, fence, text_len, reports });
        true
    }

    /// Emits the held summary, because a structure begins.
    pub(super) fn emit_held_summary(&mut self, out: &mut dyn IntentSink) {
        let Some(held_summary) = self.held_summary.take() else { return };
        let full_text = std::mem::replace(&mut self.surrounding, held_summary.surrounding_without_summary);
        for (text, at) in full_text.runs_from(held_summary.text_len) {
            self.surrounding.push_unlimited(text, at);
        }
        self.fence = held_summary.fence;
        self.report_fence(out);
        held_summary.reports.into_iter().for_each(|report| out.report(report));
        serp::emit_summary(&held_summary.text, out);
    }

    /// Turns the held summary into text, because no structure began.
    pub(super) fn drop_held_summary(&mut self, out: &mut dyn IntentSink) {
        let Some(HeldSummary { start, end, .. }) = self.held_summary.take() else { return };
        self.seen_elements.remove(ThinkingMlElement::Serp);
        let message = "`<serp>` is in text without a structure";
        context::report_at(rules::TAG_MISPLACED, start, end - start.offset, message, "read as text", out);
    }

    /// Ends, at `end`, a summary that is not an example: emits it and its findings.
    fn end_summary(&mut self, end: usize, out: &mut dyn IntentSink) {
        self.report_fence(out);
        self.part = FramePart::Surrounding;
        self.text_before_summary = None;
        self.held_reports.drain(..).for_each(|report| out.report(report));
        self.summary.finish(end, out);
    }
}
