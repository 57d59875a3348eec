//! Beginning and end of leading reasoning. The mark that seems to begin it is text if an element or a
//! sentence about the mark follows.

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

/// Maximum length in bytes of an undecided leading mark with the white space after it.
const MAX_PENDING_BYTES: usize = 1023;

/// An undecided leading mark, which opens or closes reasoning or belongs to a template, and the text after
/// it. An element after the mark, or a sentence about it, makes the mark text.
pub(super) struct LeadingMark {
    mark: ReasoningMark,
    /// Source text of the mark, and the text after it.
    pub(super) raw: String,
    /// Length of the mark in `raw`.
    tag_len: usize,
    start: Place,
    /// `Some` in a sentence about the mark: the start and end in `raw` of a closing mark in that sentence, if
    /// any.
    sentence_close: Option<Option<(usize, usize)>>,
}

/// Mark that begins a text in some templates.
pub(super) const BEGIN_TAG: &str = "<s>";

/// Mark that begins a message of the model in other templates, if [`MODEL_WORD`] follows it.
pub(super) const TURN_TAG: &str = "<start_of_turn>";

/// Role of the model after [`TURN_TAG`].
const MODEL_WORD: &str = "model";

/// Returns whether the text after [`TURN_TAG`] names the model; `None` if more text must arrive first.
/// `is_end` is set at the end of the reply.
fn is_model_turn(text_after: &str, is_end: bool) -> Option<bool> {
    match text_after.strip_prefix(MODEL_WORD) {
        Some("") => is_end.then_some(true),
        Some(rest) => Some(rest.starts_with(char::is_whitespace)),
        None => (is_end || !MODEL_WORD.starts_with(text_after)).then_some(false),
    }
}

impl LeadingMark {
    /// Returns whether the mark is a word of the sentence after it; `None` if more text must arrive first.
    /// `is_end` is set if no more text belongs to the sentence.
    fn is_mention(&self, is_end: bool) -> Option<bool> {
        let (tag, text_after) = self.raw.split_at(self.tag_len);
        if self.mark.kind != MarkKind::Open {
            if tag == TURN_TAG {
                return is_model_turn(text_after, is_end).map(|is_turn| !is_turn);
            }
            // Directly before text, `<s>` is the HTML tag of struck-out text.
            let is_html_tag = tag == BEGIN_TAG && text_after.starts_with(|c: char| !c.is_whitespace());
            return match is_html_tag {
                true => Some(true),
                false => tag_sentence::continues_sentence(text_after, is_end),
            };
        }
        match self.sentence_close {
            // A sentence is decided only at its end, since a closing mark may follow in it.
            None => tag_sentence::continues_sentence(text_after, is_end)
                .filter(|is_sentence| !is_sentence || is_end),
            Some(None) => is_end.then_some(true),
            Some(Some((close_start, close_end))) => {
                let (content, text_after_close) =
                    (&self.raw[self.tag_len..close_start], &self.raw[close_end..]);
                tag_sentence::closes_sentence(content, text_after_close, is_end)
            }
        }
    }
}

impl PlainParser {
    /// Handles a mark that only white space, a role word or a fence precedes.
    pub(super) fn handle_leading_mark(
        &mut self,
        candidate: MarkCandidate,
        token: &MarkupToken<'_>,
        start: Place,
        out: &mut dyn IntentSink,
    ) {
        let raw = token.raw();
        if self.lead_in.is_empty() {
            if candidate.is_self_closing {
                let report = FindingReport::new(
                    rules::THINK_SELF_CLOSING,
                    start,
                    start.offset + raw.len(),
                    "reasoning without text",
                );
                return out.report(report.with_repair("left out"));
            } else if candidate.mark.kind != MarkKind::Open {
                let raw = raw.to_owned();
                self.leading_mark = Some(LeadingMark {
                    mark: candidate.mark,
                    tag_len: raw.len(),
                    raw,
                    start,
                    sentence_close: None,
                });
                return;
            }
        }
        let is_tag = matches!(token, MarkupToken::Tag(_));
        if candidate.is_self_closing
            || candidate.mark.kind != MarkKind::Open
            || is_tag && marks::has_attributes(raw)
        {
            return self.begin_answer(Some((*token, start)), out);
        }
        // Marks such as `<|begin_of_thought|>` are never words of a sentence: they are decided at once.
        if is_tag || !raw.starts_with("<|") {
            let raw = raw.to_owned();
            self.leading_mark = Some(LeadingMark {
                mark: candidate.mark,
                tag_len: raw.len(),
                raw,
                start,
                sentence_close: None,
            });
        } else {
            self.begin_reasoning(candidate.mark, start, out);
        }
    }

    /// Begins the answer with the lead-in, if there is one, and then with `token`.
    pub(super) fn begin_answer(&mut self, token: Option<(MarkupToken<'_>, Place)>, out: &mut dyn IntentSink) {
        self.current_part = PlainPart::Answer;
        let lead_in_place = self.lead_in.place();
        let text = self.lead_in.take_text();
        if !text.is_empty() {
            self.push_token(MarkupToken::Text(&text), lead_in_place, out);
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

    /// Begins leading reasoning at this mark.
    pub(super) fn begin_reasoning(&mut self, mark: ReasoningMark, at: Place, out: &mut dyn IntentSink) {
        self.current_part = PlainPart::Reasoning;
        self.open_reasoning = Some(OpenReasoning::new(mark));
        self.reasoning_start = at;
        self.nested = NestedReasoning::default();
        self.lead_in.drop_role_word(out);
    }

    /// Handles a token after an undecided leading mark; returns whether the token is consumed.
    pub(super) fn push_after_leading(&mut self, token: &MarkupToken<'_>, out: &mut dyn IntentSink) -> bool {
        let Some(mut leading_mark) = self.leading_mark.take() else { return false };
        let is_end = false;
        match token {
            _ if leading_mark.mark.kind != MarkKind::Open => {
                return self.push_after_nonopening(leading_mark, token, out);
            }
            _ if leading_mark.sentence_close.is_some()
                || !is_blank(&leading_mark.raw[leading_mark.tag_len..]) =>
            {
                return self.push_sentence_token(leading_mark, token, out);
            }
            MarkupToken::Text(text)
                if is_blank(text) && leading_mark.raw.len() + text.len() <= MAX_PENDING_BYTES =>
            {
                leading_mark.raw.push_str(text);
                self.leading_mark = Some(leading_mark);
                return true;
            }
            MarkupToken::Text(text)
                if tag_sentence::continues_sentence(
                    &[&leading_mark.raw[leading_mark.tag_len..], text].concat(),
                    is_end,
                ) != Some(false) =>
            {
                return self.push_sentence_token(leading_mark, token, out);
            }
            // The mark is an XML element around another element.
            _ if leading_mark.raw.starts_with('<') && is_child_element(token) => {
                let LeadingMark { mark, raw, tag_len, start, .. } = leading_mark;
                let is_phase =
                    matches!(token, MarkupToken::Tag(tag) if tag.name.eq_ignore_ascii_case("phase"));
                let (tag, blank_text) = raw.split_at(tag_len);
                self.begin_answer(None, out);
                // A `<thinking>` around phases begins the structure of ThinkingML.
                if is_phase && mark.is_thinking() {
                    self.answer.keep_thinking(tag, start, out);
                } else {
                    self.push_answer_text(tag, start, out);
                    let is_element = true;
                    self.mention = Some(MarkMention::new(mark, is_element, &mut self.answer));
                }
                if !blank_text.is_empty() {
                    self.push_token(MarkupToken::Text(blank_text), start.end_of(tag), out);
                }
            }
            _ => self.begin_leading_reasoning(&leading_mark, out),
        }
        false
    }

    /// Handles a token after a leading mark that does not open reasoning; returns whether the token is
    /// consumed.
    fn push_after_nonopening(
        &mut self,
        leading_mark: LeadingMark,
        token: &MarkupToken<'_>,
        out: &mut dyn IntentSink,
    ) -> bool {
        let mut leading_mark = leading_mark;
        let MarkupToken::Text(text) = token else {
            let is_end = true;
            let is_word = leading_mark.is_mention(is_end) == Some(true);
            self.resolve_leading(&leading_mark, is_word, out);
            return false;
        };
        leading_mark.raw.push_str(text);
        let is_end = false;
        match leading_mark.is_mention(is_end) {
            Some(is_word) => self.resolve_leading(&leading_mark, is_word, out),
            None => {
                self.leading_mark = Some(leading_mark);
                true
            }
        }
    }

    /// Handles a token of a possible sentence about the mark before it. Returns whether the token is
    /// consumed.
    fn push_sentence_token(
        &mut self,
        leading_mark: LeadingMark,
        token: &MarkupToken<'_>,
        out: &mut dyn IntentSink,
    ) -> bool {
        let mut leading_mark = leading_mark;
        let is_closing = self
            .find_candidate(token)
            .is_some_and(|candidate| candidate.mark.kind != MarkKind::Open && !candidate.is_self_closing);
        let start = leading_mark.raw.len();
        leading_mark.raw.push_str(token.raw());
        if leading_mark.sentence_close.is_none() {
            // A sentence ends before markup.
            let is_end = !matches!(token, MarkupToken::Text(_));
            match tag_sentence::continues_sentence(&leading_mark.raw[leading_mark.tag_len..], is_end) {
                Some(true) => leading_mark.sentence_close = Some(None),
                Some(false) => {
                    let is_word = false;
                    return self.resolve_leading(&leading_mark, is_word, out);
                }
                None => {}
            }
        }
        if is_closing && leading_mark.sentence_close == Some(None) {
            leading_mark.sentence_close = Some(Some((start, leading_mark.raw.len())));
        }
        let is_end = false;
        match leading_mark.is_mention(is_end) {
            Some(is_word) => self.resolve_leading(&leading_mark, is_word, out),
            // A text over the limit without a closing mark is not reasoning.
            None if leading_mark.raw.len() > self.hold_limit => {
                let is_word = true;
                self.resolve_leading(&leading_mark, is_word, out)
            }
            None => {
                self.leading_mark = Some(leading_mark);
                true
            }
        }
    }

    /// Decides a leading mark and reads the text after it again. As a word of a sentence the mark is text;
    /// otherwise it begins reasoning, or is dropped if it does not open any. Always returns true: the last
    /// token is consumed.
    fn resolve_leading(
        &mut self,
        leading_mark: &LeadingMark,
        is_word: bool,
        out: &mut dyn IntentSink,
    ) -> bool {
        // The word that names the model after a turn mark belongs to the mark.
        let is_turn = !is_word && leading_mark.raw[..leading_mark.tag_len] == *TURN_TAG;
        let tag_len = leading_mark.tag_len + if is_turn { MODEL_WORD.len() } else { 0 };
        let (tag, text_after) = leading_mark.raw.split_at(tag_len);
        let opens_reasoning = leading_mark.mark.kind == MarkKind::Open;
        // A sentence about a mark may mention it again.
        let ignores_marks = opens_reasoning && is_word;
        if !opens_reasoning && !is_word {
            if leading_mark.mark.is_control() {
                report_template_mark(tag, leading_mark.start, out);
            } else {
                self.last_unopened = Some(leading_mark.start.offset);
                report_unopened(tag, leading_mark.start, out);
            }
            self.replay(text_after, leading_mark.start.end_of(tag), ignores_marks, out);
        } else if !opens_reasoning {
            self.has_strike_tag |= tag == BEGIN_TAG;
            self.begin_answer(None, out);
            self.push_answer_text(tag, leading_mark.start, out);
            self.replay(text_after, leading_mark.start.end_of(tag), ignores_marks, out);
        } else if is_word {
            self.begin_answer(None, out);
            self.push_answer_text(tag, leading_mark.start, out);
            let is_element = false;
            self.mention = Some(MarkMention::new(leading_mark.mark, is_element, &mut self.answer));
            self.replay(text_after, leading_mark.start.end_of(tag), ignores_marks, out);
        } else {
            self.begin_reasoning(leading_mark.mark, leading_mark.start, out);
            self.replay(text_after, leading_mark.start.end_of(tag), ignores_marks, out);
        }
        true
    }

    /// Begins reasoning at a leading mark, with the text after it.
    pub(super) fn begin_leading_reasoning(&mut self, leading_mark: &LeadingMark, out: &mut dyn IntentSink) {
        let LeadingMark { mark, raw, tag_len, start, .. } = leading_mark;
        self.begin_reasoning(*mark, *start, out);
        if raw.len() > *tag_len {
            self.emit_reasoning(&raw[*tag_len..], out);
        }
    }

    /// Decides a leading mark at the end of the reply.
    pub(super) fn finish_leading(&mut self, out: &mut dyn IntentSink) {
        if let Some(leading_mark) = self.leading_mark.take() {
            let is_end = true;
            let is_word = leading_mark.is_mention(is_end) == Some(true);
            self.resolve_leading(&leading_mark, is_word, out);
        }
    }
}
