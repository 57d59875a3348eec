//! Leading reasoning: what begins it, what an element behind its mark makes of it, and the answer behind it.

use super::control::left_out;
use super::held::{Mention, Nested, is_child};
use super::parse::{Candidate, Part, Reader, unopened};
use super::rules;
use crate::dialect::{Intent, Output};
use crate::finding::Report;
use crate::lex::marks::{self, Kind, Mark, Open};
use crate::lex::markup::Token;
use crate::lex::space::is_blank;
use crate::span::Place;

/// Bytes kept until it is known what a `<thinking>` is.
const PENDING: usize = 1023;

/// A leading mark and the white space after it: an element behind it makes it text.
pub(super) struct Leading {
    mark: Mark,
    pub(super) raw: String,
    /// Bytes of the tag.
    tag: usize,
    at: Place,
}

impl Reader {
    /// A mark that nothing but white space, the word of a role or a fence stands before.
    pub(super) fn lead(&mut self, found: Candidate, token: &Token<'_>, at: Place, out: &mut dyn Output) {
        let raw = token.raw();
        if self.lead_in.is_empty() {
            if found.mark.is_control() {
                return left_out(raw, at, out);
            } else if found.empty {
                let report = Report::new(
                    rules::THINK_SELF_CLOSING,
                    at,
                    at.offset + raw.len(),
                    "reasoning without text",
                );
                return out.report(report.repaired("left out"));
            } else if found.mark.kind != Kind::Open {
                self.unopened = Some(at.offset);
                return unopened(raw, at, out);
            }
        }
        let tag = matches!(token, Token::Tag(_));
        if found.empty || found.mark.kind != Kind::Open || tag && marks::has_attributes(raw) {
            return self.begin_answer(Some((*token, at)), out);
        }
        if tag {
            let raw = raw.to_owned();
            self.leading = Some(Leading { mark: found.mark, tag: raw.len(), raw, at });
        } else {
            self.begin(found.mark, at, out);
        }
    }

    /// The answer begins, with what stands before reasoning that did not come.
    pub(super) fn begin_answer(&mut self, token: Option<(Token<'_>, Place)>, out: &mut dyn Output) {
        self.part = Part::Answer;
        let lead_in = self.lead_in.place();
        let text = self.lead_in.take();
        if !text.is_empty() {
            self.token(Token::Text(&text), lead_in, out);
        }
        if let Some((token, at)) = token {
            self.token(token, at, out);
        }
    }

    /// Leading reasoning ends with this mark.
    pub(super) fn end_reasoning(&mut self, mark: Mark, out: &mut dyn Output) {
        out.intent(Intent::ThinkingEnd);
        self.closed = Some(mark);
        self.begin_answer(None, out);
    }

    pub(super) fn begin(&mut self, mark: Mark, at: Place, out: &mut dyn Output) {
        (self.part, self.open, self.opened_at) = (Part::Reasoning, Some(Open::new(mark)), at);
        self.nested = Nested::default();
        self.lead_in.leave_out(out);
    }

    /// A token after a leading mark, of which nothing is known yet. Whether it is used up.
    pub(super) fn after_leading(&mut self, token: &Token<'_>, out: &mut dyn Output) -> bool {
        let Some(mut leading) = self.leading.take() else { return false };
        match token {
            Token::Text(text) if is_blank(text) && leading.raw.len() + text.len() <= PENDING => {
                leading.raw.push_str(text);
                self.leading = Some(leading);
                return true;
            }
            // It is an element around others.
            _ if is_child(token) => {
                let Leading { mark, raw, tag, at } = leading;
                let thinking = matches!(token, Token::Tag(tag) if tag.name.eq_ignore_ascii_case("phase"));
                let (tag, blank) = raw.split_at(tag);
                self.begin_answer(None, out);
                if thinking && mark.is_thinking() {
                    self.answer.keep_thinking(tag, at, out);
                } else {
                    self.answer_text(tag, at, out);
                    self.mention = Some(Mention::new(mark, true, &mut self.answer));
                }
                if !blank.is_empty() {
                    self.token(Token::Text(blank), at.after(tag), out);
                }
            }
            _ => self.leading_begins(&leading, out),
        }
        false
    }

    pub(super) fn leading_begins(&mut self, leading: &Leading, out: &mut dyn Output) {
        let Leading { mark, raw, tag, at } = leading;
        self.begin(*mark, *at, out);
        if raw.len() > *tag {
            self.reason(&raw[*tag..], out);
        }
    }
}
