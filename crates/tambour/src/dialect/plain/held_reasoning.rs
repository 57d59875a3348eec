//! Reasoning that is held until it is decided: reasoning after the beginning of the answer, which
//! counts only once its closing mark has arrived, and leading reasoning with a nested opening mark, which may
//! continue after the first closing mark.

use super::answer::AnswerWriter;
use super::new_lexer;
use super::parse::{MarkCandidate, PlainParser, report_in_answer};
use super::rules;
use crate::dialect::draft::{mismatched_report, report_attributes};
use crate::dialect::{Intent, IntentSink};
use crate::event::AsideKind;
use crate::lex::marks::{MarkEffect, MarkKind, OpenReasoning, ReasoningMark};
use crate::lex::markup::{MarkupToken, TagKind};
use crate::lex::space::is_blank;
use crate::lex::tag_sentence;
use crate::span::Place;

/// Reasoning held until its end.
pub(super) struct HeldReasoning {
    /// The opening mark, its source text and its place; `None` for leading reasoning, whose text before its
    /// first closing mark has been emitted.
    opening: Option<(MarkCandidate, String, Place)>,
    /// The opening mark, with the marks nested in it.
    open_reasoning: OpenReasoning,
    /// Held text after the opening mark; for leading reasoning, from its first closing mark on.
    text: String,
    /// Place of the held text.
    text_start: Place,
    /// Openings of the same mark inside the reasoning.
    pub(super) nested: NestedReasoning,
    /// Start in `text` and length of the last closing mark that may be the end.
    last_close: Option<(usize, usize)>,
    /// Set once a closing mark was read in a sentence about the opening mark.
    is_about_mark: bool,
}

/// Reasoning nested in reasoning of the same mark.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NestedReasoning {
    /// Number of nested openings that are not closed.
    depth: usize,
    /// Set once a nested opening was at the start of a line.
    has_line_start: bool,
    /// Set if text precedes the current place on its line.
    is_mid_line: bool,
}

impl NestedReasoning {
    /// Tracks text of the reasoning; `may_break` is `false` if it has no line break.
    #[inline]
    pub(super) fn track_text(&mut self, text: &str, may_break: bool) {
        if self.is_mid_line && !may_break {
            return;
        }
        let last_line = memchr::memrchr(b'\n', text.as_bytes()).map(|line_feed| line_feed + 1);
        self.is_mid_line =
            last_line.is_none() && self.is_mid_line || !is_blank(&text[last_line.unwrap_or(0)..]);
    }

    /// Records another opening of the same mark.
    pub(super) fn open_nested(&mut self) {
        self.depth += 1;
        self.has_line_start |= !self.is_mid_line;
    }

    /// Records the end of a nested opening; returns `false` if none is open.
    fn close_nested(&mut self) -> bool {
        let is_open = self.depth > 0;
        self.depth -= usize::from(is_open);
        is_open
    }

    /// Returns whether no nested opening is open.
    pub(super) fn is_empty(self) -> bool {
        self.depth == 0
    }
}

/// A reasoning mark that was read as text.
pub(super) struct MarkMention {
    /// Tracks the mark as if it had opened reasoning, to find its closing mark.
    pub(super) open_reasoning: OpenReasoning,
    /// Number of places that [`AnswerWriter::prose`] watched before the mark.
    pub(super) watched_count: usize,
    /// Set if the mark is an XML element around others: marks in it are text too.
    pub(super) is_element: bool,
}

impl MarkMention {
    /// Creates the mention of a mark that was just read as text.
    pub(super) fn new(mark: ReasoningMark, is_element: bool, answer: &mut AnswerWriter) -> MarkMention {
        MarkMention {
            open_reasoning: OpenReasoning::new(mark),
            watched_count: answer.prose().map_or(0, |prose| prose.watch_count()),
            is_element,
        }
    }
}

impl HeldReasoning {
    /// Holds reasoning that a mark opens after the beginning of the answer.
    pub(super) fn new(candidate: MarkCandidate, raw: &str, at: Place) -> HeldReasoning {
        HeldReasoning {
            opening: Some((candidate, raw.to_owned(), at)),
            open_reasoning: OpenReasoning::new(candidate.mark),
            text: String::new(),
            text_start: at.end_of(raw),
            nested: NestedReasoning::default(),
            last_close: None,
            is_about_mark: false,
        }
    }

    /// Holds leading reasoning with nested openings from its first closing mark on: `raw`, at `text_start`.
    pub(super) fn from_first_close(
        open_reasoning: OpenReasoning,
        nested: NestedReasoning,
        raw: &str,
        text_start: Place,
    ) -> HeldReasoning {
        let mut nested = nested;
        nested.close_nested();
        HeldReasoning {
            opening: None,
            open_reasoning,
            text: raw.to_owned(),
            text_start,
            nested,
            last_close: Some((0, raw.len())),
            is_about_mark: false,
        }
    }

    /// Returns the bytes held back.
    pub(super) fn len(&self) -> usize {
        self.text.len() + self.opening.as_ref().map_or(0, |(_, raw, _)| raw.len())
    }

    /// Returns whether the opening mark is a word of a sentence that continues after the last closing mark;
    /// `None` if there is no sentence about the mark, or more text must arrive first.
    fn is_mention(&self) -> Option<bool> {
        let (close_start, close_len) = self.last_close.filter(|_| self.is_about_mark)?;
        let (content, text_after) = (&self.text[..close_start], &self.text[close_start + close_len..]);
        let is_end = false;
        tag_sentence::closes_sentence(content, text_after, is_end)
    }

    /// Returns whether the reasoning ended at the last closing mark, as far as the text after it shows: the
    /// line ends there, and no nested mark was at the start of a line.
    fn is_over(&self) -> bool {
        let text_after = self.last_close.map(|(close_start, close_len)| {
            self.text[close_start + close_len..].trim_start_matches([' ', '\t'])
        });
        !self.nested.has_line_start
            && text_after.is_some_and(|text_after| text_after.starts_with(['\n', '\r']))
    }
}

impl PlainParser {
    /// Handles a token while reasoning is held; returns whether the token is consumed.
    pub(super) fn push_held(&mut self, token: &MarkupToken<'_>, at: Place, out: &mut dyn IntentSink) -> bool {
        let candidate = self.find_candidate(token).filter(|candidate| !candidate.is_self_closing);
        let Some(reasoning) = self.held_reasoning.as_mut() else { return false };
        let raw = token.raw();
        if reasoning.text.len() + raw.len() > self.hold_limit {
            // Cut at the limit itself, so that the result does not depend on the chunks: the text within the
            // limit may decide on the mark.
            if let (MarkupToken::Text(text), true) = (token, reasoning.is_about_mark)
                && let fitting_len =
                    text.floor_char_boundary(self.hold_limit.saturating_sub(reasoning.text.len()))
                && fitting_len > 0
            {
                self.push_held(&MarkupToken::Text(&text[..fitting_len]), at, out);
                self.push_token(
                    MarkupToken::Text(&text[fitting_len..]),
                    at.end_of(&text[..fitting_len]),
                    out,
                );
                return true;
            }
            self.give_up_held(out);
            return false;
        }
        if reasoning.opening.is_some() && is_child_element(token) && is_blank(&reasoning.text) {
            self.read_as_element(token, out);
            return false;
        }
        let Some(candidate) = candidate else {
            reasoning.text.push_str(raw);
            let may_break = true;
            reasoning.nested.track_text(raw, may_break);
            match reasoning.is_mention() {
                Some(true) => self.read_as_mention(out),
                Some(false) => self.give_up_held(out),
                None if reasoning.is_over() => self.give_up_held(out),
                None => {}
            }
            return true;
        };
        let mark = candidate.mark;
        let is_own_family = mark.is_same_family(reasoning.open_reasoning.mark());
        if mark.kind == MarkKind::Open && is_own_family && !is_blank(&reasoning.text) {
            reasoning.nested.open_nested();
        }
        let effect = reasoning.open_reasoning.apply(mark);
        if effect == MarkEffect::Text || effect == MarkEffect::Close && reasoning.nested.close_nested() {
            if effect == MarkEffect::Close {
                reasoning.last_close = Some((reasoning.text.len(), raw.len()));
            }
            reasoning.text.push_str(raw);
            let may_break = true;
            reasoning.nested.track_text(raw, may_break);
            return true;
        }
        let is_end = true;
        if reasoning.opening.is_some()
            && tag_sentence::continues_sentence(&reasoning.text, is_end) == Some(true)
        {
            // A sentence about the mark: the text after the closing mark decides.
            reasoning.is_about_mark = true;
            reasoning.last_close = Some((reasoning.text.len(), raw.len()));
            reasoning.text.push_str(raw);
            return true;
        }
        self.end_held_reasoning(raw, candidate, effect, at, out);
        true
    }

    /// Reads the opening mark as a word of the sentence that follows it.
    fn read_as_mention(&mut self, out: &mut dyn IntentSink) {
        let Some(HeldReasoning { opening: Some((_, raw, place)), text, .. }) = self.held_reasoning.take()
        else {
            return;
        };
        let ignores_marks = true;
        self.replay(&(raw + &text), place, ignores_marks, out);
    }

    /// Ends held reasoning at a closing mark, whose source text is `raw`.
    fn end_held_reasoning(
        &mut self,
        raw: &str,
        candidate: MarkCandidate,
        effect: MarkEffect,
        at: Place,
        out: &mut dyn IntentSink,
    ) {
        let Some(HeldReasoning { opening, text, .. }) = self.held_reasoning.take() else { return };
        let is_leading = opening.is_none();
        if let Some((opening_candidate, opening_raw, place)) = opening {
            self.remove_opening(opening_candidate, &opening_raw, place, out);
        }
        if is_leading && !text.is_empty() {
            self.emit_reasoning(&text, out);
        } else if !text.is_empty() {
            out.emit_intent(Intent::Aside { kind: AsideKind::Thought, text: &text });
        }
        if effect == MarkEffect::CloseForeign {
            out.report(mismatched_report(rules::THINK_MISMATCHED, raw, at));
        }
        report_attributes(rules::THINK_ATTRIBUTES, raw, at, out);
        if is_leading {
            self.end_reasoning(candidate.mark, out);
        }
    }

    /// Removes the opening mark from the answer; no other mark is held before it.
    fn remove_opening(&mut self, candidate: MarkCandidate, raw: &str, at: Place, out: &mut dyn IntentSink) {
        let previous = self.answer.set_ignores_backticks(true);
        let mark = MarkupToken::Reasoning(raw, candidate.mark);
        let removed_mark = self.answer.push_token(&mark, Some(candidate), at, out);
        debug_assert!(removed_mark.is_some(), "no code is open at the start of a line");
        self.answer.set_ignores_backticks(previous);
        report_in_answer(raw, at, out);
    }

    /// Gives up waiting for a closing mark: the reasoning ended at the last one that was read, or, if there
    /// was none, the held text is text of the answer.
    pub(super) fn give_up_held(&mut self, out: &mut dyn IntentSink) {
        let Some(reasoning) = self.held_reasoning.as_mut() else { return };
        let Some((close_start, close_len)) = reasoning.last_close else {
            let Some(HeldReasoning { opening: Some((candidate, raw, place)), text, .. }) =
                self.held_reasoning.take()
            else {
                return;
            };
            let is_element = false;
            return self.read_as_text(candidate, &(raw + &text), place, is_element, out);
        };
        let text_after = reasoning.text.split_off(close_start + close_len);
        let raw = reasoning.text.split_off(close_start);
        let at = reasoning.text_start.end_of(&reasoning.text);
        let mark = reasoning.open_reasoning.mark().as_closing();
        self.end_held_reasoning(
            &raw,
            MarkCandidate { mark, is_self_closing: false },
            MarkEffect::Close,
            at,
            out,
        );
        let ignores_marks = true;
        self.replay(&text_after, at.end_of(&raw), ignores_marks, out);
    }

    /// Reads the held reasoning as an XML element, because the element `child` follows the opening mark.
    fn read_as_element(&mut self, child: &MarkupToken<'_>, out: &mut dyn IntentSink) {
        let Some(HeldReasoning { opening: Some((candidate, raw, place)), text, .. }) =
            self.held_reasoning.take()
        else {
            return;
        };
        // A `<thinking>` around phases begins the structure of ThinkingML.
        let is_phase = matches!(child, MarkupToken::Tag(tag) if tag.name.eq_ignore_ascii_case("phase"));
        if candidate.mark.is_thinking() && is_phase {
            self.answer.keep_thinking(&raw, place, out);
            let ignores_marks = true;
            return self.replay(&text, place.end_of(&raw), ignores_marks, out);
        }
        let is_element = true;
        self.read_as_text(candidate, &(raw + &text), place, is_element, out);
    }

    /// Reads `text` as text of the answer: the source of an opening mark and the text after it.
    fn read_as_text(
        &mut self,
        candidate: MarkCandidate,
        text: &str,
        at: Place,
        is_element: bool,
        out: &mut dyn IntentSink,
    ) {
        let ignores_marks = true;
        self.replay(text, at, ignores_marks, out);
        self.mention = Some(MarkMention::new(candidate.mark, is_element, &mut self.answer));
    }

    /// Reads text again; with `ignores_marks`, no mark in it opens reasoning.
    pub(super) fn replay(&mut self, text: &str, at: Place, ignores_marks: bool, out: &mut dyn IntentSink) {
        let previous = std::mem::replace(&mut self.ignores_opening_marks, ignores_marks);
        let reads_marks = true;
        let mut lexer = new_lexer(at, self.tag_limit, reads_marks);
        lexer.push(text, &mut |token, at| self.push_token(token, at, out));
        lexer.finish(&mut |token, at| self.push_token(token, at, out));
        self.ignores_opening_marks = previous;
    }
}

/// Tags of calls. Reasoning may begin with one, so a mark before it is not an XML element.
const CALL_TAGS: &[&str] =
    &["tool_call", "tool_calls", "function_call", "function_calls", "invoke", "function"];

/// Returns whether a token opens an element that is not reasoning.
pub(super) fn is_child_element(token: &MarkupToken<'_>) -> bool {
    matches!(token, MarkupToken::Tag(tag) if tag.kind != TagKind::Close
        && crate::lex::marks::parse_tag_mark(tag.name, false).is_none()
        && !CALL_TAGS.iter().any(|name| name.eq_ignore_ascii_case(tag.name)))
}
