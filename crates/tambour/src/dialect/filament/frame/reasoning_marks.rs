//! Reasoning marks that are not tags, such as `[THINK]`, in a thought or outside of tags.

use super::super::rules;
use super::super::tags::ElementKind;
use super::draft::InnerEnd;
use super::{FilamentFrame, OpenElementState, OpenPart, report_at};
use crate::dialect::IntentSink;
use crate::finding::FindingReport;
use crate::lex::marks::{
    self, HARMONY_MARK, LiteralMatcher, MarkEffect, MarkKind, MarkMatch, OpenReasoning, ReasoningMark,
};
use crate::lex::markup::MarkupToken;
use crate::span::{LazyPlace, Place};

/// Possible beginning of a mark at the end of the text so far.
#[derive(Default)]
pub(super) struct MarkCarry {
    /// Held text.
    text: String,
    /// Place of the held text.
    start: Place,
}

impl MarkCarry {
    /// Returns the bytes held back.
    pub(super) fn held_bytes(&self) -> usize {
        self.text.len()
    }
}

impl FilamentFrame {
    /// Handles the next token of the reply, whose text may contain marks.
    pub(in super::super) fn read_token(
        &mut self,
        token: MarkupToken<'_>,
        at: LazyPlace<'_>,
        out: &mut dyn IntentSink,
    ) {
        match token {
            MarkupToken::Text(text) if self.accepts_marks() => {
                let place = at.resolve();
                self.push_marked_text(text, place, out);
            }
            MarkupToken::Text(_) => self.push_token(token, at, out),
            _ => {
                self.flush_mark_carry(out);
                self.push_token(token, at, out);
            }
        }
    }

    /// Returns whether marks count at the next text.
    fn accepts_marks(&self) -> bool {
        match &self.open_element {
            OpenElementState::Outside | OpenElementState::Thought(_) => true,
            OpenElementState::Content(part) => part.tag.is_none(),
            OpenElementState::Block(_) => false,
        }
    }

    /// Returns whether text may contain a mark, or the end of one.
    #[inline]
    pub(super) fn may_contain_mark(&self, text: &str) -> bool {
        !self.mark_carry.text.is_empty() || marks::find(text.as_bytes()).is_some()
    }

    /// Reads text that may contain marks, after the held text.
    fn push_marked_text(&mut self, text: &str, place: Place, out: &mut dyn IntentSink) {
        if self.mark_carry.text.is_empty() {
            return self.split_marks(text, place, out);
        }
        let mut full_text = std::mem::take(&mut self.mark_carry.text);
        full_text.push_str(text);
        self.split_marks(&full_text, self.mark_carry.start, out);
    }

    /// Splits text at `place` into marks and other text, and handles each. A possible beginning of a mark at
    /// the end is held.
    fn split_marks(&mut self, text: &str, place: Place, out: &mut dyn IntentSink) {
        let bytes = text.as_bytes();
        // Start of the text not handled yet, whose place is `place`, and start of the search for the next
        // mark.
        let (mut text_start, mut search_start, mut place) = (0, 0, place);
        while let Some(mark_start) = marks::find(&bytes[search_start..]).map(|offset| search_start + offset) {
            let (mut matcher, mut mark_match) = (LiteralMatcher::default(), MarkMatch::Prefix);
            let mut len = 0;
            while mark_match == MarkMatch::Prefix && mark_start + len < bytes.len() {
                mark_match = matcher.push(bytes[mark_start + len]);
                len += 1;
            }
            if mark_match == MarkMatch::Mismatch {
                search_start = mark_start + 1;
                continue;
            }
            if mark_start > text_start {
                let text_before = &text[text_start..mark_start];
                self.push_token(MarkupToken::Text(text_before), LazyPlace::from(place), out);
                place.advance(text_before);
            }
            let MarkMatch::Mark(mark, _) = mark_match else {
                (self.mark_carry.text, self.mark_carry.start) = (text[mark_start..].to_owned(), place);
                return;
            };
            let raw = &text[mark_start..mark_start + len];
            self.push_token(MarkupToken::Reasoning(raw, mark), LazyPlace::from(place), out);
            place.advance(raw);
            (text_start, search_start) = (mark_start + len, mark_start + len);
            if !self.accepts_marks() {
                break;
            }
        }
        if text_start < text.len() {
            self.push_token(MarkupToken::Text(&text[text_start..]), LazyPlace::from(place), out);
        }
    }

    /// Turns an incomplete mark into text.
    pub(super) fn flush_mark_carry(&mut self, out: &mut dyn IntentSink) {
        let carry = std::mem::take(&mut self.mark_carry.text);
        if !carry.is_empty() {
            self.push_token(MarkupToken::Text(&carry), LazyPlace::from(self.mark_carry.start), out);
        }
    }

    /// Handles a mark in a thought or outside of tags, but not in code.
    pub(super) fn handle_mark(
        &mut self,
        raw: &str,
        mark: ReasoningMark,
        at: Place,
        out: &mut dyn IntentSink,
    ) {
        let OpenElementState::Thought(part) = &mut self.open_element else {
            if mark.kind == MarkKind::Open {
                return self.begin_marked_thought(raw, mark, at, out);
            }
            let message = format!("`{raw}` closes nothing");
            report_at(rules::TAG_UNOPENED, at, raw.len(), message, "left out", out);
            // The closing mark of Harmony ends any message, so the text before it need not be reasoning.
            if !mark.is_same_family(HARMONY_MARK) {
                self.refuse_held_calls(raw, out);
            }
            return;
        };
        let effect = part.open_reasoning.apply(mark);
        if effect == MarkEffect::Text {
            match mark.kind {
                MarkKind::Open => {
                    let stays_open = true;
                    self.open_inner_thought(stays_open);
                }
                MarkKind::Close => _ = self.close_inner_thought(),
                _ => {}
            }
            return self.push_text(raw, LazyPlace::from(at), out);
        }
        if !self.try_end_thought(raw, InnerEnd::Text, at, out) {
            return;
        }
        let OpenElementState::Thought(part) = &self.open_element else { return };
        let index = part.index;
        if let (MarkEffect::CloseForeign, Some((name, ..))) = (effect, &part.tag) {
            let message = format!("`{raw}` closes `{name}`");
            report_at(rules::TAG_MISMATCHED, at, raw.len(), message, "closed", out);
        }
        let is_closed = true;
        self.close_part(is_closed, at.offset, out);
        self.last_closed = Some(index);
    }

    /// Begins a thought at an opening mark.
    fn begin_marked_thought(&mut self, raw: &str, mark: ReasoningMark, at: Place, out: &mut dyn IntentSink) {
        self.close_unclosed(at.offset, out);
        self.has_begun = true;
        // There is always a thought: the table adds one if the structure has none.
        let index = self.tags.any_of_kind(ElementKind::Thought).unwrap_or_default();
        let name = &*self.tags.element(index).name;
        let message = format!("`{raw}` is another mark for `{name}`");
        let report =
            FindingReport::new(rules::TAG_ALIAS, at, at.offset + raw.len(), message).with_row("R-69");
        out.report(report.with_repair(format!("read as `{name}`")));
        if !self.seen_elements.contains(&index) {
            self.seen_elements.push(index);
        }
        let tag = Some((raw.to_owned(), at, raw.len()));
        let part = OpenPart {
            index,
            tag,
            text_start: at.end_of(raw),
            is_head: false,
            open_reasoning: OpenReasoning::new(mark),
            has_phase: false,
        };
        self.last_closed = None;
        let is_joined = false;
        self.open_part(ElementKind::Thought, part, is_joined, out);
    }
}
