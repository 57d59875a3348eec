//! Reasoning marks that are not tags, such as `[THINK]`, in text outside of the content and of blocks.

use super::super::rules;
use super::super::tags::ElementKind;
use super::draft::InnerEnd;
use super::{FilamentFrame, OpenElementState, OpenPart, report_at};
use crate::dialect::IntentSink;
use crate::finding::FindingReport;
use crate::lex::marks::{
    self, HARMONY_MARK, LiteralMatcher, MarkEffect, MarkKind, MarkMatch, OpenReasoning as Marks,
    ReasoningMark,
};
use crate::lex::markup::MarkupToken;
use crate::span::{LazyPlace, Place};

/// Possible beginning of a mark, and its place.
#[derive(Default)]
pub(super) struct MarkCarry {
    carry: String,
    start: Place,
}

impl MarkCarry {
    /// Returns the bytes held back.
    pub(super) fn held_bytes(&self) -> usize {
        self.carry.len()
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
        match &self.mode {
            OpenElementState::Outside | OpenElementState::Thought(_) => true,
            OpenElementState::Content(open) => open.tag.is_none(),
            OpenElementState::Block(_) => false,
        }
    }

    /// Returns whether text contains no mark that may count.
    #[inline]
    pub(super) fn has_no_mark(&self, text: &str) -> bool {
        self.words.carry.is_empty() && marks::find(text.as_bytes()).is_none()
    }

    fn push_marked_text(&mut self, text: &str, place: Place, out: &mut dyn IntentSink) {
        if self.words.carry.is_empty() {
            return self.split_marks(text, place, out);
        }
        let mut full_text = std::mem::take(&mut self.words.carry);
        full_text.push_str(text);
        self.split_marks(&full_text, self.words.start, out);
    }

    fn split_marks(&mut self, text: &str, place: Place, out: &mut dyn IntentSink) {
        let bytes = text.as_bytes();
        let (mut from, mut at, mut place) = (0, 0, place);
        while let Some(found) = marks::find(&bytes[at..]).map(|found| at + found) {
            let (mut word, mut mark_match) = (LiteralMatcher::default(), MarkMatch::Prefix);
            let mut len = 0;
            while mark_match == MarkMatch::Prefix && found + len < bytes.len() {
                mark_match = word.push(bytes[found + len]);
                len += 1;
            }
            if mark_match == MarkMatch::Mismatch {
                at = found + 1;
                continue;
            }
            if found > from {
                self.push_token(MarkupToken::Text(&text[from..found]), LazyPlace::from(place), out);
                place.advance(&text[from..found]);
            }
            let MarkMatch::Mark(mark, _) = mark_match else {
                (self.words.carry, self.words.start) = (text[found..].to_owned(), place);
                return;
            };
            let raw = &text[found..found + len];
            self.push_token(MarkupToken::Reasoning(raw, mark), LazyPlace::from(place), out);
            place.advance(raw);
            (from, at) = (found + len, found + len);
            if !self.accepts_marks() {
                break;
            }
        }
        if from < text.len() {
            self.push_token(MarkupToken::Text(&text[from..]), LazyPlace::from(place), out);
        }
    }

    /// Turns an incomplete mark into text.
    pub(super) fn flush_mark_carry(&mut self, out: &mut dyn IntentSink) {
        let carry = std::mem::take(&mut self.words.carry);
        if !carry.is_empty() {
            self.push_token(MarkupToken::Text(&carry), LazyPlace::from(self.words.start), out);
        }
    }

    /// Handles a mark that is not code, in a thought or where one may begin.
    pub(super) fn handle_mark(
        &mut self,
        raw: &str,
        mark: ReasoningMark,
        at: Place,
        out: &mut dyn IntentSink,
    ) {
        let OpenElementState::Thought(open) = &mut self.mode else {
            if mark.kind == MarkKind::Open {
                return self.begin_marked_thought(raw, mark, at, out);
            }
            let message = format!("`{raw}` closes nothing");
            report_at(rules::TAG_UNOPENED, at, raw.len(), message, "left out", out);
            if !mark.is_same_family(HARMONY_MARK) {
                self.refuse_held_calls(raw, out);
            }
            return;
        };
        let effect = open.marks.apply(mark);
        if effect == MarkEffect::Text {
            match mark.kind {
                MarkKind::Open => self.open_inner_thought(true),
                MarkKind::Close => _ = self.close_inner_thought(),
                _ => {}
            }
            return self.push_text(raw, LazyPlace::from(at), out);
        }
        if !self.try_end_thought(raw, InnerEnd::Text, at, out) {
            return;
        }
        let OpenElementState::Thought(open) = &self.mode else { return };
        let element = open.index;
        if let (MarkEffect::CloseForeign, Some((name, ..))) = (effect, &open.tag) {
            let message = format!("`{raw}` closes `{name}`");
            report_at(rules::TAG_MISMATCHED, at, raw.len(), message, "closed", out);
        }
        self.close_part(true, at.offset, out);
        self.last_closed = Some(element);
    }

    fn begin_marked_thought(&mut self, raw: &str, mark: ReasoningMark, at: Place, out: &mut dyn IntentSink) {
        self.close_unclosed(at.offset, out);
        self.has_begun = true;
        let element = self.tags.any_of_kind(ElementKind::Thought).unwrap_or_default();
        let name = &*self.tags.element(element).name;
        let message = format!("`{raw}` is another mark for `{name}`");
        let found = FindingReport::new(rules::TAG_ALIAS, at, at.offset + raw.len(), message).with_row("R-69");
        out.report(found.with_repair(format!("read as `{name}`")));
        if !self.seen_elements.contains(&element) {
            self.seen_elements.push(element);
        }
        let tag = Some((raw.to_owned(), at, raw.len()));
        let open = OpenPart {
            index: element,
            tag,
            text_start: at.end_of(raw),
            is_head: false,
            marks: Marks::new(mark),
            has_phase: false,
        };
        self.last_closed = None;
        self.open_part(ElementKind::Thought, open, false, out);
    }
}
