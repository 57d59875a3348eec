//! Template marks that end a message, or begin one that is not reasoning: between messages and at the end of
//! the reply they are not text of the answer.

use super::parse::{Candidate, Part, Reader};
use super::rules;
use crate::dialect::Output;
use crate::finding::Report;
use crate::lex::marks::{HARMONY, Kind, Mark};
use crate::lex::markup::Token;
use crate::lex::space::is_blank;
use crate::span::Place;

/// Most bytes of such marks, with the white space around them.
const MOST: usize = 1023;

/// Marks that end a message, unless text follows them.
pub(super) struct Ends {
    raw: String,
    at: Place,
    /// Length up to the end of the last mark.
    marks: usize,
}

impl Ends {
    pub(super) fn len(&self) -> usize {
        self.raw.len()
    }
}

impl Reader {
    /// Handles a template mark in the answer; returns whether it is consumed.
    pub(super) fn control(&mut self, found: Candidate, raw: &str, at: Place, out: &mut dyn Output) -> bool {
        // The mark that ends any message of Harmony ends the last one too.
        let stop = found.mark.kind == Kind::Stop || found.mark == HARMONY.as_own();
        let header = is_header(found.mark);
        if !(stop || header)
            || !self.answer.admits()
            || self.mention.as_ref().is_some_and(|mention| mention.element)
        {
            return false;
        }
        if header {
            let begins = self.answer.begins_line();
            if begins {
                left_out(raw, at, out);
                self.next_message(at, out);
            }
            return begins;
        }
        self.ends = Some(Ends { raw: raw.to_owned(), at, marks: raw.len() });
        true
    }

    /// Handles a token after marks that end a message; returns whether the token is consumed.
    pub(super) fn behind_ends(&mut self, token: &Token<'_>, at: Place, out: &mut dyn Output) -> bool {
        let Some(mut ends) = self.ends.take() else { return false };
        let raw = token.raw();
        let found = self.candidate(token).map(|found| found.mark);
        let fits = ends.raw.len() + raw.len() <= MOST;
        match found {
            Some(mark) if fits && (mark.kind == Kind::Stop || mark == HARMONY.as_own()) => {
                ends.raw.push_str(raw);
                ends.marks = ends.raw.len();
                self.ends = Some(ends);
            }
            Some(mark) if is_header(mark) => {
                left_out(&(ends.raw + raw), ends.at, out);
                self.next_message(at, out);
            }
            Some(mark) if mark.kind == Kind::Open && mark.same(HARMONY) => {
                left_out(&ends.raw[..ends.marks], ends.at, out);
                self.answer.break_off(out);
                return false;
            }
            None if fits && matches!(token, Token::Text(text) if is_blank(text)) => {
                ends.raw.push_str(raw);
                self.ends = Some(ends);
            }
            _ => {
                self.answer_text(&ends.raw, ends.at, out);
                return false;
            }
        }
        true
    }

    /// Begins the next message of the answer, as a paragraph of its own.
    pub(super) fn next_message(&mut self, at: Place, out: &mut dyn Output) {
        self.answer.break_off(out);
        if self.part == Part::Answer && self.answer.is_sent() && !self.answer.ends_line() {
            self.token(Token::Text("\n\n"), at, out);
        }
    }

    /// Ends the reply after such marks.
    pub(super) fn finish_ends(&mut self, out: &mut dyn Output) {
        if let Some(ends) = self.ends.take() {
            left_out(&ends.raw[..ends.marks], ends.at, out);
        }
    }
}

/// Returns whether a mark begins a message that is not reasoning.
fn is_header(mark: Mark) -> bool {
    mark.kind == Kind::Header || mark == HARMONY.as_closing()
}

/// Reports template marks that are left out.
pub(super) fn left_out(raw: &str, at: Place, out: &mut dyn Output) {
    let message = format!("`{}` belongs to the template of the model", raw.trim_end());
    out.report(Report::new(rules::CONTROL_MARK, at, at.offset + raw.len(), message).repaired("left out"));
}
