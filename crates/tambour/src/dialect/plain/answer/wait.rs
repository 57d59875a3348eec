//! A mark after an open backtick: held until the end of the span, or the end of the line, together with the
//! text after it.

use super::{Answer, Fate};
use crate::dialect::Output;
use crate::dialect::plain::parse::Candidate;
use crate::lex::code::{Code, Stop};
use crate::lex::markup::Token;
use crate::span::Place;

/// A mark after an open backtick, and the text after it.
pub(super) struct Waiting {
    pub(super) found: Candidate,
    pub(super) at: Place,
    pub(super) text: String,
    /// Length of the unfinished markup before the mark, and of both together.
    pub(super) before: usize,
    pub(super) mark: usize,
    /// Number of open backtick runs, and the code state before the mark.
    pub(super) runs: usize,
    pub(super) code: Code,
}

impl Answer {
    /// Handles a token while a mark is held.
    pub(super) fn wait(
        &mut self,
        token: &Token<'_>,
        found: Option<Candidate>,
        at: Place,
        out: &mut dyn Output,
    ) -> Option<Fate> {
        let raw = token.raw();
        let hold = self.hold.as_mut()?;
        if let Some(found) = found {
            if hold.text.len() + raw.len() > self.line {
                return Some(self.not_code(true, raw, out));
            }
            if let Some(fate) = self.stop_mark(found, raw, at, out) {
                return fate;
            }
            return None;
        }
        let mut rest = raw;
        while let Some(hold) = self.hold.as_mut().filter(|_| !rest.is_empty()) {
            // Cut at the limit itself, so that the result does not depend on the chunks.
            let room = rest.floor_char_boundary(self.line.saturating_sub(hold.text.len()));
            if room == 0 {
                return Some(self.not_code(true, rest, out));
            }
            let (read, stop) = self.code.text(&rest[..room], false);
            hold.text.push_str(&rest[..read]);
            rest = &rest[read..];
            match stop {
                Some(Stop::Closed(run)) if run < hold.runs => self.is_code(out),
                Some(Stop::LineEnd) => return Some(self.not_code(false, rest, out)),
                _ => {}
            }
        }
        if !rest.is_empty() {
            let at = at.after(&raw[..raw.len() - rest.len()]);
            return self.token(&Token::Text(rest), None, at, out);
        }
        None
    }

    /// Handles another mark while one is held. Returns `None` if it is held too.
    fn stop_mark(
        &mut self,
        found: Candidate,
        raw: &str,
        at: Place,
        out: &mut dyn Output,
    ) -> Option<Option<Fate>> {
        let before = self.code.clone();
        let stop = self.code.boundary();
        let hold = self.hold.as_mut()?;
        if matches!(stop, Some(Stop::Closed(run)) if run < hold.runs) {
            self.code = before;
            self.is_code(out);
            return Some(self.mark(found, raw, at, out));
        }
        hold.text.push_str(raw);
        self.line_break(raw);
        if raw.contains('\n') {
            return Some(Some(self.not_code(false, "", out)));
        }
        None
    }

    /// Emits the held mark as code, with all text after it.
    pub(super) fn is_code(&mut self, out: &mut dyn Output) {
        if let Some(Waiting { text, at, .. }) = self.hold.take() {
            self.send(&text, &text, || at, out);
        }
    }

    /// Removes the held mark, which is not code; `rest` follows the held text. With `decided`, later marks in
    /// it are not code either.
    pub(super) fn not_code(&mut self, decided: bool, rest: &str, out: &mut dyn Output) -> Fate {
        let hold = self.hold.take().expect("a mark waits");
        let Waiting { found, at, text, before, mark, code, .. } = hold;
        self.code = code;
        text[..before].clone_into(&mut self.tail);
        self.tail_at = at;
        let behind = [&text[mark..], rest].concat();
        let mut fate = self.take_out(found, &text[before..mark], at.after(&text[..before]), behind, out);
        fate.decided |= decided;
        fate
    }
}
