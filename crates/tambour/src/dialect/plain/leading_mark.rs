//! Leading reasoning: the marks that begin it, elements and sentences after them, and the transition to the
//! answer.

use super::held_reasoning::{MarkMention, NestedReasoning, is_child_element};
use super::parse::{MarkCandidate, PlainParser, PlainPart, report_unopened};
use super::rules;
use super::template_marks::report_template_mark;
use crate::dialect::{Intent, IntentSink};
use crate::finding::FindingReport;
use crate::lex::marks::{self, MarkKind, OpenReasoning, ReasoningMark};
use crate::lex::markup::MarkupToken;
use crate::lex::space::is_blank;
use crate::lex::tag_sentence;
use crate::span::Place;

/// Most bytes held until a leading mark is decided.
const MAX_PENDING_BYTES: usize = 1023;

/// A leading mark and the text after it. An element after the mark makes it text, and so does a sentence
/// about it.
pub(super) struct LeadingMark {
    mark: ReasoningMark,
    pub(super) raw: String,
    /// Length of the tag.
    tag_len: usize,
    start: Place,
    /// Set in a sentence about the mark: the start and end of a closing mark in it, if any.
    sentence_close: Option<Option<(usize, usize)>>,
}

/// Mark that begins a text in some templates.
pub(super) const BEGIN_TAG: &str = "<s>";

/// Mark that begins a message in other templates, if the word of the model follows it.
pub(super) const TURN_TAG: &str = "<start_of_turn>";
const MODEL_WORD: &str = "model";

/// Returns whether a message of the model begins with this text; `None` if more text must arrive first.
fn is_model_turn(behind: &str, end: bool) -> Option<bool> {
    match behind.strip_prefix(MODEL_WORD) {
        Some("") => end.then_some(true),
        Some(rest) => Some(rest.starts_with(char::is_whitespace)),
        None => (end || !MODEL_WORD.starts_with(behind)).then_some(false),
    }
}

impl LeadingMark {
    /// Returns whether the mark is a word of the sentence after it; `None` if more text must arrive first.
    fn is_mention(&self, end: bool) -> Option<bool> {
        let (mark, behind) = self.raw.split_at(self.tag_len);
        if self.mark.kind != MarkKind::Open {
            if mark == TURN_TAG {
                return is_model_turn(behind, end).map(|begins| !begins);
            }
            // As an HTML tag it precedes text directly.
            let tag = mark == BEGIN_TAG && behind.starts_with(|c: char| !c.is_whitespace());
            return if tag { Some(true) } else { tag_sentence::continues_sentence(behind, end) };
        }
        match self.sentence_close {
            None => tag_sentence::continues_sentence(behind, end).filter(|speaks| !speaks || end),
            Some(None) => end.then_some(true),
            Some(Some((start, close))) => {
                tag_sentence::closes_sentence(&self.raw[self.tag_len..start], &self.raw[close..], end)
            }
        }
    }
}

impl PlainParser {
    /// Handles a mark with only white space, a role word or a fence before it.
    pub(super) fn handle_leading_mark(
        &mut self,
        found: MarkCandidate,
        token: &MarkupToken<'_>,
        start: Place,
        out: &mut dyn IntentSink,
    ) {
        let raw = token.raw();
        if self.lead_in.is_empty() {
            if found.is_self_closing {
                let report = FindingReport::new(
                    rules::THINK_SELF_CLOSING,
                    start,
                    start.offset + raw.len(),
                    "reasoning without text",
                );
                return out.report(report.with_repair("left out"));
            } else if found.mark.kind != MarkKind::Open {
                let raw = raw.to_owned();
                self.leading_mark = Some(LeadingMark {
                    mark: found.mark,
                    tag_len: raw.len(),
                    raw,
                    start,
                    sentence_close: None,
                });
                return;
            }
        }
        let tag = matches!(token, MarkupToken::Tag(_));
        if found.is_self_closing || found.mark.kind != MarkKind::Open || tag && marks::has_attributes(raw) {
            return self.begin_answer(Some((*token, start)), out);
        }
        if tag || !raw.starts_with("<|") {
            let raw = raw.to_owned();
            self.leading_mark =
                Some(LeadingMark { mark: found.mark, tag_len: raw.len(), raw, start, sentence_close: None });
        } else {
            self.begin_reasoning(found.mark, start, out);
        }
    }

    /// Begins the answer, first with the lead-in of reasoning that did not follow.
    pub(super) fn begin_answer(&mut self, token: Option<(MarkupToken<'_>, Place)>, out: &mut dyn IntentSink) {
        self.part = PlainPart::Answer;
        let lead_in = self.lead_in.place();
        let text = self.lead_in.take_text();
        if !text.is_empty() {
            self.push_token(MarkupToken::Text(&text), lead_in, out);
        }
        if let Some((token, at)) = token {
            self.push_token(token, at, out);
        }
    }

    /// Ends leading reasoning at this mark.
    pub(super) fn end_reasoning(&mut self, mark: ReasoningMark, out: &mut dyn IntentSink) {
        out.emit_intent(Intent::ThinkingEnd);
        self.last_close = Some(mark);
        self.begin_answer(None, out);
    }

    pub(super) fn begin_reasoning(&mut self, mark: ReasoningMark, at: Place, out: &mut dyn IntentSink) {
        (self.part, self.open_reasoning, self.reasoning_start) =
            (PlainPart::Reasoning, Some(OpenReasoning::new(mark)), at);
        self.nested = NestedReasoning::default();
        self.lead_in.drop_role_word(out);
    }

    /// Handles a token after an undecided leading mark; returns whether the token is consumed.
    pub(super) fn push_after_leading(&mut self, token: &MarkupToken<'_>, out: &mut dyn IntentSink) -> bool {
        let Some(mut leading) = self.leading_mark.take() else { return false };
        match token {
            _ if leading.mark.kind != MarkKind::Open => return self.push_after_control(leading, token, out),
            _ if leading.sentence_close.is_some() || !is_blank(&leading.raw[leading.tag_len..]) => {
                return self.push_sentence_token(leading, token, out);
            }
            MarkupToken::Text(text)
                if is_blank(text) && leading.raw.len() + text.len() <= MAX_PENDING_BYTES =>
            {
                leading.raw.push_str(text);
                self.leading_mark = Some(leading);
                return true;
            }
            MarkupToken::Text(text)
                if tag_sentence::continues_sentence(
                    &[&leading.raw[leading.tag_len..], text].concat(),
                    false,
                ) != Some(false) =>
            {
                return self.push_sentence_token(leading, token, out);
            }
            // The mark is an element around others.
            _ if leading.raw.starts_with('<') && is_child_element(token) => {
                let LeadingMark { mark, raw, tag_len, start, .. } = leading;
                let thinking =
                    matches!(token, MarkupToken::Tag(tag) if tag.name.eq_ignore_ascii_case("phase"));
                let (tag, blank) = raw.split_at(tag_len);
                self.begin_answer(None, out);
                if thinking && mark.is_thinking() {
                    self.answer.keep_thinking(tag, start, out);
                } else {
                    self.push_answer_text(tag, start, out);
                    self.mention = Some(MarkMention::new(mark, true, &mut self.answer));
                }
                if !blank.is_empty() {
                    self.push_token(MarkupToken::Text(blank), start.end_of(tag), out);
                }
            }
            _ => self.begin_leading_reasoning(&leading, out),
        }
        false
    }

    /// Handles a token after a leading mark that does not open reasoning; returns whether the token is
    /// consumed.
    fn push_after_control(
        &mut self,
        leading: LeadingMark,
        token: &MarkupToken<'_>,
        out: &mut dyn IntentSink,
    ) -> bool {
        let mut leading = leading;
        let MarkupToken::Text(text) = token else {
            self.resolve_leading(&leading, leading.is_mention(true) == Some(true), out);
            return false;
        };
        leading.raw.push_str(text);
        match leading.is_mention(false) {
            Some(word) => self.resolve_leading(&leading, word, out),
            None => {
                self.leading_mark = Some(leading);
                true
            }
        }
    }

    /// Handles a token of a possible sentence about the mark before it. Returns whether the token is
    /// consumed.
    fn push_sentence_token(
        &mut self,
        leading: LeadingMark,
        token: &MarkupToken<'_>,
        out: &mut dyn IntentSink,
    ) -> bool {
        let mut leading = leading;
        let closes = self
            .find_candidate(token)
            .is_some_and(|found| found.mark.kind != MarkKind::Open && !found.is_self_closing);
        let start = leading.raw.len();
        leading.raw.push_str(token.raw());
        if leading.sentence_close.is_none() {
            match tag_sentence::continues_sentence(
                &leading.raw[leading.tag_len..],
                !matches!(token, MarkupToken::Text(_)),
            ) {
                Some(true) => leading.sentence_close = Some(None),
                Some(false) => return self.resolve_leading(&leading, false, out),
                None => {}
            }
        }
        if closes && leading.sentence_close == Some(None) {
            leading.sentence_close = Some(Some((start, leading.raw.len())));
        }
        match leading.is_mention(false) {
            Some(word) => self.resolve_leading(&leading, word, out),
            // Without a closing mark it is not reasoning.
            None if leading.raw.len() > self.hold_limit => self.resolve_leading(&leading, true, out),
            None => {
                self.leading_mark = Some(leading);
                true
            }
        }
    }

    /// Decides a leading mark and reads the text after it again: as text that mentions the mark, or as
    /// reasoning.
    fn resolve_leading(&mut self, leading: &LeadingMark, word: bool, out: &mut dyn IntentSink) -> bool {
        let turn = !word && leading.raw[..leading.tag_len] == *TURN_TAG;
        let tag = leading.tag_len + if turn { MODEL_WORD.len() } else { 0 };
        let (tag, behind) = leading.raw.split_at(tag);
        let control = leading.mark.kind != MarkKind::Open;
        if control && !word {
            if leading.mark.is_control() {
                report_template_mark(tag, leading.start, out);
            } else {
                self.last_unopened = Some(leading.start.offset);
                report_unopened(tag, leading.start, out);
            }
            self.replay(behind, leading.start.end_of(tag), false, out);
        } else if control {
            self.has_strike_tag |= tag == BEGIN_TAG;
            self.begin_answer(None, out);
            self.push_answer_text(tag, leading.start, out);
            self.replay(behind, leading.start.end_of(tag), false, out);
        } else if word {
            self.begin_answer(None, out);
            self.push_answer_text(tag, leading.start, out);
            self.mention = Some(MarkMention::new(leading.mark, false, &mut self.answer));
            self.replay(behind, leading.start.end_of(tag), true, out);
        } else {
            self.begin_reasoning(leading.mark, leading.start, out);
            self.replay(behind, leading.start.end_of(tag), false, out);
        }
        true
    }

    pub(super) fn begin_leading_reasoning(&mut self, leading: &LeadingMark, out: &mut dyn IntentSink) {
        let LeadingMark { mark, raw, tag_len, start, .. } = leading;
        self.begin_reasoning(*mark, *start, out);
        if raw.len() > *tag_len {
            self.emit_reasoning(&raw[*tag_len..], out);
        }
    }

    /// Ends the reply after a leading mark.
    pub(super) fn finish_leading(&mut self, out: &mut dyn IntentSink) {
        if let Some(leading) = self.leading_mark.take() {
            let word = leading.is_mention(true) == Some(true);
            self.resolve_leading(&leading, word, out);
        }
    }
}
