//! A mark after an open backtick: held until the end of the span, or the end of the line, together with the
//! text after it.

use super::{AnswerWriter, RemovedMark};
use crate::dialect::IntentSink;
use crate::dialect::plain::parse::MarkCandidate;
use crate::lex::code::{CodeStop, CodeTracker};
use crate::lex::markup::MarkupToken;
use crate::span::Place;

/// A mark after an open backtick, and the text after it.
pub(super) struct HeldMark {
    pub(super) candidate: MarkCandidate,
    pub(super) start: Place,
    pub(super) text: String,
    /// Length of the unfinished markup before the mark, and of both together.
    pub(super) before_len: usize,
    pub(super) mark_end: usize,
    /// Number of open backtick runs, and the code state before the mark.
    pub(super) open_runs: usize,
    pub(super) code: CodeTracker,
}

impl AnswerWriter {
    /// Handles a token while a mark is held.
    pub(super) fn push_held(
        &mut self,
        token: &MarkupToken<'_>,
        found: Option<MarkCandidate>,
        at: Place,
        out: &mut dyn IntentSink,
    ) -> Option<RemovedMark> {
        let raw = token.raw();
        let held_mark = self.held_mark.as_mut()?;
        if let Some(found) = found {
            if held_mark.text.len() + raw.len() > self.line_limit {
                return Some(self.remove_held_mark(true, raw, out));
            }
            if let Some(removed_mark) = self.push_second_mark(found, raw, at, out) {
                return removed_mark;
            }
            return None;
        }
        let mut rest = raw;
        while let Some(held_mark) = self.held_mark.as_mut().filter(|_| !rest.is_empty()) {
            // Cut at the limit itself, so that the result does not depend on the chunks.
            let room = rest.floor_char_boundary(self.line_limit.saturating_sub(held_mark.text.len()));
            if room == 0 {
                return Some(self.remove_held_mark(true, rest, out));
            }
            let (read, stop) = self.code.read_to_stop(&rest[..room], false);
            held_mark.text.push_str(&rest[..read]);
            rest = &rest[read..];
            match stop {
                Some(CodeStop::Closed(run)) if run < held_mark.open_runs => self.emit_as_code(out),
                Some(CodeStop::LineEnd) => return Some(self.remove_held_mark(false, rest, out)),
                _ => {}
            }
        }
        if !rest.is_empty() {
            let at = at.end_of(&raw[..raw.len() - rest.len()]);
            return self.push_token(&MarkupToken::Text(rest), None, at, out);
        }
        None
    }

    /// Handles another mark while one is held. Returns `None` if it is held too.
    fn push_second_mark(
        &mut self,
        found: MarkCandidate,
        raw: &str,
        at: Place,
        out: &mut dyn IntentSink,
    ) -> Option<Option<RemovedMark>> {
        let before = self.code.clone();
        let stop = self.code.end_line_start();
        let held_mark = self.held_mark.as_mut()?;
        if matches!(stop, Some(CodeStop::Closed(run)) if run < held_mark.open_runs) {
            self.code = before;
            self.emit_as_code(out);
            return Some(self.push_mark(found, raw, at, out));
        }
        held_mark.text.push_str(raw);
        self.track_line_break(raw);
        if raw.contains('\n') {
            return Some(Some(self.remove_held_mark(false, "", out)));
        }
        None
    }

    /// Emits the held mark as code, with all text after it.
    pub(super) fn emit_as_code(&mut self, out: &mut dyn IntentSink) {
        if let Some(HeldMark { text, start, .. }) = self.held_mark.take() {
            self.emit(&text, &text, || start, out);
        }
    }

    /// Removes the held mark, which is not code; `rest` follows the held text. With `ignores_backticks`, later marks in
    /// it are not code either.
    pub(super) fn remove_held_mark(
        &mut self,
        ignores_backticks: bool,
        rest: &str,
        out: &mut dyn IntentSink,
    ) -> RemovedMark {
        let held_mark = self.held_mark.take().expect("a mark waits");
        let HeldMark { candidate, start, text, before_len, mark_end, code, .. } = held_mark;
        self.code = code;
        text[..before_len].clone_into(&mut self.unfinished_text);
        self.unfinished_at = start;
        let text_after = [&text[mark_end..], rest].concat();
        let mut removed_mark = self.remove_mark(
            candidate,
            &text[before_len..mark_end],
            start.end_of(&text[..before_len]),
            text_after,
            out,
        );
        removed_mark.ignores_backticks |= ignores_backticks;
        removed_mark
    }
}
