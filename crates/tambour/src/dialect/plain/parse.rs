//! Parser of plain replies: separates the tokens into reasoning and answer.

use super::answer::{AnswerWriter, RemovedMark};
use super::held_reasoning::{HeldReasoning, MarkMention, NestedReasoning};
use super::lead_in::LeadIn;
use super::leading_mark::{BEGIN_TAG, LeadingMark, TURN_TAG};
use super::template_marks::EndMarks;
use super::{PlainOptions, ReasoningMode, new_lexer, rules};
use crate::dialect::draft::{mismatched_report, report_attributes};
use crate::dialect::{Intent, IntentSink};
use crate::event::AsideKind;
use crate::finding::FindingReport;
use crate::lex::marks::{self, MarkEffect, MarkKind, OpenReasoning, ReasoningMark};
use crate::lex::markup::{MarkupToken, TagKind};
use crate::lex::scan::SignMasks;
use crate::lex::space::is_blank;
use crate::lex::tag_sentence;
use crate::options::Options;
use crate::span::{LazyPlace, Place};

/// Separates reasoning from the answer.
pub(super) struct PlainParser {
    /// Part of the reply at the current place.
    pub(super) current_part: PlainPart,
    mode: ReasoningMode,
    /// The current or last reasoning, with the marks opened in it; `None` before any opening mark, even if
    /// the reply starts inside reasoning.
    pub(super) open_reasoning: Option<OpenReasoning>,
    /// Place of the mark that opened the reasoning; the start of the reply without one.
    pub(super) reasoning_start: Place,
    /// Set once the reasoning has text other than white space.
    has_reasoning_text: bool,
    /// The mark that ended the last reasoning, until a second closing mark follows it.
    pub(super) last_close: Option<ReasoningMark>,
    /// An undecided leading mark.
    pub(super) leading_mark: Option<LeadingMark>,
    /// Text before the leading mark, such as a role word.
    pub(super) lead_in: LeadIn,
    /// Reasoning that is held until its end.
    pub(super) held_reasoning: Option<HeldReasoning>,
    /// Held marks that end a message, unless text follows.
    pub(super) end_marks: Option<EndMarks>,
    /// A held mark that closes nothing and may be a word of a sentence.
    pending_close: Option<PendingClose>,
    /// Openings of the same mark inside the current reasoning.
    pub(super) nested: NestedReasoning,
    /// A mark that was read as text and has not been closed.
    pub(super) mention: Option<MarkMention>,
    /// Set once `<s>` was read as the HTML tag of struck-out text: `</s>` is then not a template mark.
    pub(super) has_strike_tag: bool,
    /// Set while text whose marks have been decided is read again: no mark in it opens reasoning.
    pub(super) ignores_opening_marks: bool,
    /// Offset of the last closing mark without an opening one: all text before it may have been reasoning.
    pub(super) last_unopened: Option<usize>,
    pub(super) answer: AnswerWriter,
    /// Maximum length of a tag in bytes (`limits.tag`).
    pub(super) tag_limit: usize,
    /// Maximum length of held reasoning in bytes (`limits.hold`).
    pub(super) hold_limit: usize,
}

/// Part of a plain reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlainPart {
    /// Only white space, or a possible lead-in such as a role word, so far.
    Start,
    /// In leading reasoning.
    Reasoning,
    /// In the answer.
    Answer,
}

/// A token that is a reasoning mark, if it counts at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MarkCandidate {
    pub(super) mark: ReasoningMark,
    /// Set for a self-closing tag: reasoning without text.
    pub(super) is_self_closing: bool,
}

/// Mark that begins a text or message in a template.
const TEMPLATE_BEGIN_MARK: ReasoningMark = marks::TEMPLATE_MARKS.0;

/// Mark that ends a text or message in a template.
const TEMPLATE_END_MARK: ReasoningMark = marks::TEMPLATE_MARKS.1;

/// End mark of some templates that is also the closing tag of struck-out text in HTML.
const STRIKE_END: &str = "</s>";

/// End marks of templates that are tags, but not of HTML.
const TEMPLATE_ENDS: &[&str] = &["<end_of_turn>", "<eos>"];

impl PlainParser {
    pub(super) fn new(options: &Options, is_detected: bool) -> PlainParser {
        let mode = options.section::<PlainOptions>().reasoning;
        let starts_in_reasoning = mode == ReasoningMode::Open;
        PlainParser {
            current_part: if starts_in_reasoning { PlainPart::Reasoning } else { PlainPart::Start },
            mode,
            open_reasoning: None,
            reasoning_start: Place::START,
            has_reasoning_text: false,
            last_close: None,
            leading_mark: None,
            lead_in: LeadIn::default(),
            held_reasoning: None,
            end_marks: None,
            pending_close: None,
            nested: NestedReasoning::default(),
            mention: None,
            has_strike_tag: false,
            ignores_opening_marks: false,
            last_unopened: None,
            answer: AnswerWriter::new(options, is_detected),
            tag_limit: options.limits.tag,
            hold_limit: options.limits.hold,
        }
    }

    /// Returns whether some mark is undecided.
    fn has_pending(&self) -> bool {
        self.leading_mark.is_some()
            || self.held_reasoning.is_some()
            || self.end_marks.is_some()
            || self.pending_close.is_some()
    }

    /// Returns whether text without tokens continues the current part.
    #[inline]
    pub(super) fn can_continue(&self) -> bool {
        let accepts_text = if self.current_part == PlainPart::Answer {
            self.answer.can_continue()
        } else {
            self.current_part != PlainPart::Start
        };
        accepts_text && !self.has_pending()
    }

    /// Emits text without tokens, where [`Self::can_continue`] allows it. `masks` mark the signs in the text
    /// that matter to Markdown, if they were computed.
    #[inline]
    pub(super) fn push_with_signs(
        &mut self,
        text: &str,
        masks: Option<SignMasks>,
        at: impl FnOnce() -> Place,
        out: &mut dyn IntentSink,
    ) {
        match self.current_part {
            PlainPart::Answer => self.answer.push_with_signs(text, masks, at, out),
            _ => {
                let may_break = masks.is_none_or(|masks| masks.line_feeds != 0);
                self.emit_reasoning_with(text, may_break, out);
            }
        }
    }

    /// Returns whether a mark of another dialect counts here.
    pub(super) fn admits_mark(&self) -> bool {
        let is_in_text = match self.current_part {
            PlainPart::Start => !self.lead_in.is_fence(),
            PlainPart::Answer => self.answer.admits_mark(),
            PlainPart::Reasoning => false,
        };
        is_in_text && !self.has_pending()
    }

    /// Returns whether neither text nor unfinished reasoning was read: the answer can begin here.
    pub(super) fn is_blank(&self) -> bool {
        self.current_part == PlainPart::Start && self.lead_in.is_empty()
            || self.current_part == PlainPart::Answer && self.answer.is_blank()
    }

    /// Returns whether the answer has begun.
    pub(super) fn has_answer(&self) -> bool {
        self.current_part == PlainPart::Answer && !self.answer.is_blank()
    }

    /// Returns whether an offset precedes a mark that closed reasoning without a beginning.
    pub(super) fn is_before_unopened(&self, offset: usize) -> bool {
        self.last_unopened.is_some_and(|mark| offset < mark)
    }

    /// Returns the writer of the answer.
    pub(super) fn answer(&mut self) -> &mut AnswerWriter {
        &mut self.answer
    }

    /// Flushes the answer at a boundary that no markup may span.
    pub(super) fn interrupt(&mut self, out: &mut dyn IntentSink) {
        self.answer.interrupt(out);
    }

    /// Handles the next token.
    #[inline]
    pub(super) fn push_token<'a>(
        &mut self,
        token: MarkupToken<'_>,
        at: impl Into<LazyPlace<'a>>,
        out: &mut dyn IntentSink,
    ) {
        match token {
            // Most text continues the current part. Its place is not needed then, and not computed.
            MarkupToken::Text(text)
                if !self.has_pending()
                    && self.current_part == PlainPart::Answer
                    && self.answer.can_pass(text) =>
            {
                self.answer.push_text(text, || at.into().resolve(), out);
            }
            MarkupToken::Text(text) if !self.has_pending() && self.current_part == PlainPart::Reasoning => {
                self.emit_reasoning(text, out)
            }
            _ => self.push_placed_token(token, at.into().resolve(), out),
        }
    }

    /// Handles a token whose place is known.
    fn push_placed_token(&mut self, token: MarkupToken<'_>, at: Place, out: &mut dyn IntentSink) {
        if self.leading_mark.is_some() && self.push_after_leading(&token, out)
            || self.held_reasoning.is_some() && self.push_held(&token, at, out)
            || self.end_marks.is_some() && self.push_after_end_marks(&token, at, out)
            || self.pending_close.is_some() && self.push_after_close(&token, out)
        {
            return;
        }
        match (self.current_part, token) {
            (PlainPart::Answer, MarkupToken::Text(text)) if self.answer.can_pass(text) => {
                self.answer.push_text(text, || at, out)
            }
            (PlainPart::Reasoning, MarkupToken::Text(text)) => self.emit_reasoning(text, out),
            (PlainPart::Start, MarkupToken::Text(text)) => {
                if let Some(at) = self.lead_in.push(text, at) {
                    let text = self.lead_in.take_text();
                    self.begin_answer(Some((MarkupToken::Text(&text), at)), out);
                }
            }
            (part, token) => match (part, self.find_candidate(&token)) {
                (PlainPart::Start, Some(candidate)) if candidate.mark.kind != MarkKind::CloseOwn => {
                    self.handle_leading_mark(candidate, &token, at, out);
                }
                (PlainPart::Start, _) => self.begin_answer(Some((token, at)), out),
                (PlainPart::Reasoning, Some(candidate)) if !candidate.is_self_closing => {
                    self.handle_inner_mark(candidate.mark, token.raw(), at, out);
                }
                (PlainPart::Reasoning, _) => self.emit_reasoning(token.raw(), out),
                (PlainPart::Answer, candidate) => self.push_answer_token(&token, candidate, at, out),
            },
        }
    }

    /// Examines text that was taken for a call: a mark in it that closes reasoning without a beginning makes
    /// all text before it reasoning.
    pub(super) fn track_marks(&mut self, raw: &str, at: Place) {
        let mut is_open = false;
        let mut last_unopened = None;
        let reads_marks = true;
        let mut lexer = new_lexer(at, self.tag_limit, reads_marks);
        let mut visit = |token: MarkupToken<'_>, place: Place| match self
            .find_candidate(&token)
            .filter(|candidate| !candidate.is_self_closing)
            .map(|candidate| candidate.mark.kind)
        {
            Some(MarkKind::Open) => is_open = true,
            Some(MarkKind::Close) if !std::mem::take(&mut is_open) => last_unopened = Some(place.offset),
            _ => {}
        };
        lexer.push(raw, &mut |token, place| visit(token, place.resolve()));
        lexer.finish(&mut |token, place| visit(token, place.resolve()));
        self.last_unopened = last_unopened.or(self.last_unopened);
    }

    /// Reads the source text of a tool call that is shown as text.
    pub(super) fn push_call_form(&mut self, raw: &str, at: Place, out: &mut dyn IntentSink) {
        if self.current_part == PlainPart::Start {
            self.begin_answer(None, out);
        }
        self.answer.set_call_form(true, out);
        self.push_token(MarkupToken::Text(raw), at, out);
        self.answer.set_call_form(false, out);
    }

    /// Reads text of the answer in which nothing is a mark.
    pub(super) fn push_answer_text(&mut self, text: &str, at: Place, out: &mut dyn IntentSink) {
        let removed_mark = self.answer.push_token(&MarkupToken::Text(text), None, at, out);
        self.finish_removal(removed_mark, out);
    }

    /// Reads a token as a reasoning or template mark; `None` for other tokens, and for all tokens if marks
    /// are text.
    pub(super) fn find_candidate(&self, token: &MarkupToken<'_>) -> Option<MarkCandidate> {
        let candidate = match token {
            MarkupToken::Tag(tag)
                if TEMPLATE_ENDS.contains(&tag.raw) || tag.raw == STRIKE_END && !self.has_strike_tag =>
            {
                MarkCandidate { mark: TEMPLATE_END_MARK, is_self_closing: false }
            }
            MarkupToken::Tag(tag)
                if matches!(tag.raw, BEGIN_TAG | TURN_TAG)
                    && self.current_part == PlainPart::Start
                    && self.lead_in.is_empty() =>
            {
                MarkCandidate { mark: TEMPLATE_BEGIN_MARK, is_self_closing: false }
            }
            MarkupToken::Tag(tag) => {
                let mark = marks::parse_tag_mark(tag.name, tag.kind == TagKind::Close)?;
                MarkCandidate { mark, is_self_closing: tag.kind == TagKind::SelfClosing }
            }
            MarkupToken::Reasoning(_, mark) => MarkCandidate { mark: *mark, is_self_closing: false },
            _ => return None,
        };
        (self.mode != ReasoningMode::None).then_some(candidate)
    }

    /// Handles a mark inside reasoning.
    fn handle_inner_mark(&mut self, mark: ReasoningMark, raw: &str, at: Place, out: &mut dyn IntentSink) {
        let effect = match &mut self.open_reasoning {
            Some(open) => {
                if mark.kind == MarkKind::Open && mark.is_same_family(open.mark()) && self.has_reasoning_text
                {
                    self.nested.open_nested();
                }
                open.apply(mark)
            }
            None if mark.kind == MarkKind::Close => MarkEffect::Close,
            // The template has written the opening mark already, but the model may write it again.
            None if mark.kind == MarkKind::Open && !self.has_reasoning_text => {
                report_attributes(rules::THINK_ATTRIBUTES, raw, at, out);
                return self.begin_reasoning(mark, at, out);
            }
            None => MarkEffect::Text,
        };
        match (effect, self.open_reasoning) {
            (MarkEffect::Text, _) => return self.emit_reasoning(raw, out),
            (MarkEffect::Close, Some(open)) if !self.nested.is_empty() => {
                self.held_reasoning =
                    Some(HeldReasoning::from_first_close(open, std::mem::take(&mut self.nested), raw, at));
                return;
            }
            (MarkEffect::Close, _) => {}
            (MarkEffect::CloseForeign, _) => out.report(mismatched_report(rules::THINK_MISMATCHED, raw, at)),
        }
        report_attributes(rules::THINK_ATTRIBUTES, raw, at, out);
        self.end_reasoning(mark, out);
    }

    /// Emits text of the reasoning.
    pub(super) fn emit_reasoning(&mut self, text: &str, out: &mut dyn IntentSink) {
        let may_break = true;
        self.emit_reasoning_with(text, may_break, out);
    }

    /// Like [`Self::emit_reasoning`]; `may_break` is `false` if the text has no line break.
    #[inline]
    fn emit_reasoning_with(&mut self, text: &str, may_break: bool, out: &mut dyn IntentSink) {
        self.has_reasoning_text = self.has_reasoning_text || !is_blank(text);
        self.nested.track_text(text, may_break);
        out.emit_intent(Intent::PhaseText(text));
    }

    /// Handles a token of the answer that may be a mark, or text that cannot be emitted at once.
    fn push_answer_token(
        &mut self,
        token: &MarkupToken<'_>,
        candidate: Option<MarkCandidate>,
        at: Place,
        out: &mut dyn IntentSink,
    ) {
        self.has_strike_tag |=
            matches!(token, MarkupToken::Tag(tag) if tag.kind == TagKind::Open && tag.name == "s");
        if let (Some(candidate), Some(last_close)) = (candidate, self.last_close)
            && candidate.mark.kind != MarkKind::Open
            && candidate.mark.is_same_family(last_close)
            && self.answer.is_blank()
        {
            // Some reasoning ends with two closing marks: anything between them belongs to the reasoning.
            self.last_close = None;
            self.last_unopened = Some(at.offset);
            report_attributes(rules::THINK_ATTRIBUTES, token.raw(), at, out);
            return;
        }
        let candidate = match candidate {
            Some(candidate) if self.handle_template_mark(candidate, token.raw(), at, out) => return,
            Some(candidate) if !candidate.mark.is_control() => self.filter_mark(candidate, token.raw()),
            _ => None,
        };
        match candidate {
            Some(candidate)
                if candidate.mark.kind == MarkKind::Close
                    && self.answer.admits_mark()
                    && self.answer.follows_blank() =>
            {
                self.pending_close = Some(PendingClose::new(candidate, token.raw(), at));
            }
            Some(candidate) if candidate.mark.kind == MarkKind::Open && !candidate.is_self_closing => {
                // No possible failure marker may be held before the held mark.
                self.answer.resolve_prefix(out);
                self.held_reasoning = Some(HeldReasoning::new(candidate, token.raw(), at));
            }
            candidate => {
                let removed_mark = self.answer.push_token(token, candidate, at, out);
                self.finish_removal(removed_mark, out);
            }
        }
    }

    /// Returns the mark if it counts at its place: an opening mark at the start of a line, a closing
    /// mark unless an opening one was read as text.
    fn filter_mark(&mut self, candidate: MarkCandidate, raw: &str) -> Option<MarkCandidate> {
        let mark = candidate.mark;
        let is_in_text = self.answer.admits_mark();
        if mark.kind == MarkKind::Open {
            let is_in_element = self.mention.as_ref().is_some_and(|mention| mention.is_element);
            let may_begin =
                !self.ignores_opening_marks && !is_in_element && is_in_text && self.answer.is_line_start();
            if may_begin && (raw.starts_with("<|") || !marks::has_attributes(raw)) {
                self.mention = None;
                return Some(candidate);
            }
            // The mark is text, and so is its closing mark: the mark is tracked to find the closing one.
            match &mut self.mention {
                _ if candidate.is_self_closing || !is_in_text => {}
                Some(mention) => _ = mention.open_reasoning.apply(mark),
                mention => {
                    let is_element = false;
                    *mention = Some(MarkMention::new(mark, is_element, &mut self.answer));
                }
            }
            return None;
        }
        let Some(mention) = self.mention.as_mut().filter(|_| is_in_text) else { return Some(candidate) };
        if mention.open_reasoning.apply(mark) != MarkEffect::Text {
            // Actions between the two marks are in reasoning that is shown as text.
            if let Some(prose) = self.answer.prose() {
                prose.mark_as_text(mention.watched_count);
            }
            self.mention = None;
        }
        None
    }

    /// Handles a mark removed from the answer, and reads the text held with it again.
    pub(super) fn finish_removal(&mut self, removed_mark: Option<RemovedMark>, out: &mut dyn IntentSink) {
        let Some(RemovedMark { candidate, raw, start, text_after, ignores_backticks }) = removed_mark else {
            return;
        };
        if candidate.is_self_closing {
            report_in_answer(&raw, start, out);
        } else if candidate.mark.kind != MarkKind::Open {
            self.last_unopened = Some(start.offset);
            report_unopened(&raw, start, out);
        }
        if text_after.is_empty() {
            return;
        }
        let ignored_backticks = self.answer.set_ignores_backticks(ignores_backticks);
        let reads_marks = true;
        let mut lexer = new_lexer(start.end_of(&raw), self.tag_limit, reads_marks);
        lexer.push(&text_after, &mut |token, at| self.push_token(token, at, out));
        lexer.finish(&mut |token, at| self.push_token(token, at, out));
        self.answer.set_ignores_backticks(ignored_backticks);
    }

    /// Reads reasoning that the upstream sent in a separate field; after text of the answer it is an aside.
    pub(super) fn push_reasoning(&mut self, text: &str, out: &mut dyn IntentSink) {
        if self.answer.has_text() {
            out.emit_intent(Intent::Aside { kind: AsideKind::Thought, text });
        } else {
            out.emit_intent(Intent::PhaseText(text));
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.answer.held_bytes()
            + self.lead_in.len()
            + self.leading_mark.as_ref().map_or(0, |mark| mark.raw.len())
            + self.held_reasoning.as_ref().map_or(0, HeldReasoning::len)
            + self.end_marks.as_ref().map_or(0, EndMarks::len)
            + self.pending_close.as_ref().map_or(0, PendingClose::len)
    }

    /// Returns whether the reply ends in reasoning with the beginning of a closing mark: `carry` is the
    /// unfinished token at its end.
    pub(super) fn is_partial_close(&self, carry: &str) -> bool {
        self.current_part == PlainPart::Reasoning
            && self.held_reasoning.is_none()
            && marks::is_half_close(carry)
    }

    /// Ends the reply at `end`. If it has no answer, `needs_no_answer` is called after all text was read; it
    /// returns whether the reply may lack an answer.
    pub(super) fn finish(
        &mut self,
        end: Place,
        needs_no_answer: &mut dyn FnMut(&mut PlainParser) -> bool,
        out: &mut dyn IntentSink,
    ) {
        self.finish_leading(out);
        if !self.lead_in.is_empty() {
            self.begin_answer(None, out);
        }
        loop {
            self.give_up_held(out);
            self.finish_end_marks(out);
            self.finish_close(out);
            let Some(removed_mark) = self.answer.finish(out) else { break };
            self.finish_removal(Some(removed_mark), out);
        }
        if self.current_part == PlainPart::Reasoning {
            let at = self.reasoning_start;
            let report = FindingReport::new(rules::THINK_UNCLOSED, at, end.offset, "reasoning is not closed");
            out.report(report.with_repair("closed at the end"));
        }
        if let Some((form, at)) = self.answer.failure_marker() {
            return rules::MARKER_RULES.report_marker(form, at, end.offset, out);
        }
        if !self.answer.has_text() && !needs_no_answer(self) {
            let report = FindingReport::new(
                rules::ANSWER_MISSING,
                Place::START,
                end.offset,
                "the reply has no answer",
            );
            out.report(report.with_repair("fallback text"));
        }
    }
}

/// Reports reasoning in the answer that begins with this mark.
pub(super) fn report_in_answer(raw: &str, at: Place, out: &mut dyn IntentSink) {
    let message = format!("`{raw}` is in the answer");
    let report = FindingReport::new(rules::THINK_IN_ANSWER, at, at.offset + raw.len(), message);
    out.report(report.with_repair("taken out of the answer"));
}

/// Reports a closing mark without an opening one.
pub(super) fn report_unopened(raw: &str, at: Place, out: &mut dyn IntentSink) {
    let message = format!("`{raw}` closes nothing");
    out.report(
        FindingReport::new(rules::THINK_UNOPENED, at, at.offset + raw.len(), message).with_repair("left out"),
    );
}

/// A closing mark without an opening one, after a blank in the answer. The text after it decides whether it
/// is a word of a sentence.
struct PendingClose {
    candidate: MarkCandidate,
    raw: String,
    start: Place,
    /// Text after the mark so far.
    text_after: String,
}

impl PendingClose {
    fn new(candidate: MarkCandidate, raw: &str, start: Place) -> PendingClose {
        PendingClose { candidate, raw: raw.to_owned(), start, text_after: String::new() }
    }

    fn len(&self) -> usize {
        self.raw.len() + self.text_after.len()
    }
}

impl PlainParser {
    /// Handles a token after a pending closing mark; returns whether the token is consumed.
    fn push_after_close(&mut self, token: &MarkupToken<'_>, out: &mut dyn IntentSink) -> bool {
        let Some(mut pending) = self.pending_close.take() else { return false };
        let MarkupToken::Text(text) = token else {
            let is_word = false;
            self.resolve_close(pending, is_word, out);
            return false;
        };
        pending.text_after.push_str(text);
        let is_blank_text = pending.text_after.trim_start_matches([' ', '\t']).is_empty();
        if is_blank_text && pending.text_after.len() <= tag_sentence::MAX_BLANK {
            self.pending_close = Some(pending);
        } else {
            let is_word = tag_sentence::is_within_sentence(&pending.text_after);
            self.resolve_close(pending, is_word, out);
        }
        true
    }

    /// Decides a pending closing mark: as a word of a sentence it is text, otherwise it is removed.
    fn resolve_close(&mut self, pending: PendingClose, is_word: bool, out: &mut dyn IntentSink) {
        let PendingClose { candidate, raw, start, text_after } = pending;
        if is_word {
            // Although the mark is text, actions before it do not run.
            self.last_unopened = Some(start.offset);
            self.push_answer_text(&raw, start, out);
        } else {
            let mark = MarkupToken::Reasoning(&raw, candidate.mark);
            let removed_mark = self.answer.push_token(&mark, Some(candidate), start, out);
            self.finish_removal(removed_mark, out);
        }
        if !text_after.is_empty() {
            self.push_token(MarkupToken::Text(&text_after), start.end_of(&raw), out);
        }
    }

    /// Decides a pending closing mark at the end of the reply.
    fn finish_close(&mut self, out: &mut dyn IntentSink) {
        if let Some(pending) = self.pending_close.take() {
            let is_word = false;
            self.resolve_close(pending, is_word, out);
        }
    }
}
