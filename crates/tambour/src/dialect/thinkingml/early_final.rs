//! What `<thinking>` comes to: the top level again, or an answer that stands inside it.

use super::context::{self, Quote};
use super::late::Late;
use super::parse::{Mode, Reader};
use super::rules;
use super::structure::Name;
use super::thinking::Outcome;
use crate::dialect::{MARKER, Output};
use crate::lex::markup::{Markup, TagKind, Token};
use crate::span::Place;

impl Reader {
    pub(super) fn thinking_token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        let (token, at) = match self.thinking.token(token, at, &self.context, out) {
            Outcome::Open => return,
            Outcome::Outside => {
                self.mode = Mode::Outside;
                return;
            }
            Outcome::Final { at, len, rest } => {
                self.mode = Mode::Outside;
                self.begin(Name::Final, at, len, out);
                let Some(rest) = rest else { return };
                rest
            }
            Outcome::Answer { answer, rest } => {
                self.answer_inside(answer, out);
                rest
            }
            Outcome::Release { hold, rest } => {
                let (text, at) = hold.text();
                self.replay(text, at, out);
                self.thinking.released(hold);
                rest
            }
            Outcome::Held { blanks: (text, at), rest } => {
                if !text.is_empty() {
                    self.token(Token::Text(&text), at, out);
                }
                rest
            }
            Outcome::Serp => return self.serp_in_thinking(token, at, out),
        };
        self.token(token, at, out);
    }

    /// A summary that stands directly in `<thinking>`, which goes on after it.
    fn serp_in_thinking(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        let len = token.raw().len();
        let message = "`<serp>` stands before `<thinking>`".to_owned();
        let late = Late::new(Name::Serp, rules::SERP_AFTER_THINKING, message, at, len);
        self.begin_late(late.in_thinking());
        if matches!(token, Token::Tag(tag) if tag.kind == TagKind::SelfClosing) {
            self.end_late(at.offset + len, out);
        }
    }

    /// Reads text again, now that it is known what it is.
    pub(super) fn replay(&mut self, raw: &str, at: Place, out: &mut dyn Output) {
        let mut lexer = Markup::at(at, MARKER, self.context.options.limits.tag);
        lexer.push(raw, &mut |token, at| self.token(token, at, out));
        lexer.finish(&mut |token, at| self.token(token, at, out));
    }

    /// The answer interrupts a phase or `<thinking>`.
    pub(super) fn answer_inside(&mut self, answer: Quote, out: &mut dyn Output) {
        self.answer.interrupt();
        self.read_quote(answer, out);
    }

    /// `<final>` that has been told as text of `place` is the answer too.
    pub(super) fn answer_too(&mut self, place: &str, quote: Quote, out: &mut dyn Output) {
        let message = format!("`<final>` begins inside {place}, and no other one comes");
        let repair = "read as the answer too";
        context::report(rules::FINAL_INSIDE_THINKING, quote.at, quote.raw.len(), message, repair, out);
        self.read_quote(quote, out);
    }

    fn read_quote(&mut self, Quote { raw, tag_len, at }: Quote, out: &mut dyn Output) {
        self.mode = Mode::Outside;
        self.begin(Name::Final, at, tag_len, out);
        self.replay(&raw[tag_len..], at.after(&raw[..tag_len]), out);
    }
}
