//! Leading reasoning: the marks that begin it, elements and sentences after them, and the transition to the
//! answer.

use super::control::left_out;
use super::held::{Mention, Nested, is_child};
use super::parse::{Candidate, Part, Reader, unopened};
use super::rules;
use crate::dialect::{Intent, Output};
use crate::finding::Report;
use crate::lex::about;
use crate::lex::marks::{self, Kind, Mark, Open};
use crate::lex::markup::Token;
use crate::lex::space::is_blank;
use crate::span::Place;

/// Most bytes held until a leading mark is decided.
const PENDING: usize = 1023;

/// A leading mark and the text after it. An element after the mark makes it text, and so does a sentence
/// about it.
pub(super) struct Leading {
    mark: Mark,
    pub(super) raw: String,
    /// Length of the tag.
    tag: usize,
    at: Place,
    /// Set in a sentence about the mark: the start and end of a closing mark in it, if any.
    about: Option<Option<(usize, usize)>>,
}

/// Mark that begins a text in some templates.
pub(super) const BEGIN: &str = "<s>";

/// Mark that begins a message in other templates, if the word of the model follows it.
pub(super) const TURN: &str = "<start_of_turn>";
const MODEL: &str = "model";

/// Returns whether a message of the model begins with this text; `None` if more text must arrive first.
fn begins_turn(behind: &str, end: bool) -> Option<bool> {
    match behind.strip_prefix(MODEL) {
        Some("") => end.then_some(true),
        Some(rest) => Some(rest.starts_with(char::is_whitespace)),
        None => (end || !MODEL.starts_with(behind)).then_some(false),
    }
}

impl Leading {
    /// Returns whether the mark is a word of the sentence after it; `None` if more text must arrive first.
    fn is_word(&self, end: bool) -> Option<bool> {
        let (mark, behind) = self.raw.split_at(self.tag);
        if self.mark.kind != Kind::Open {
            if mark == TURN {
                return begins_turn(behind, end).map(|begins| !begins);
            }
            // As an HTML tag it precedes text directly.
            let tag = mark == BEGIN && behind.starts_with(|c: char| !c.is_whitespace());
            return if tag { Some(true) } else { about::speaks(behind, end) };
        }
        match self.about {
            None => about::speaks(behind, end).filter(|speaks| !speaks || end),
            Some(None) => end.then_some(true),
            Some(Some((start, close))) => about::ends(&self.raw[self.tag..start], &self.raw[close..], end),
        }
    }
}

impl Reader {
    /// Handles a mark with only white space, a role word or a fence before it.
    pub(super) fn lead(&mut self, found: Candidate, token: &Token<'_>, at: Place, out: &mut dyn Output) {
        let raw = token.raw();
        if self.lead_in.is_empty() {
            if found.empty {
                let report = Report::new(
                    rules::THINK_SELF_CLOSING,
                    at,
                    at.offset + raw.len(),
                    "reasoning without text",
                );
                return out.report(report.repaired("left out"));
            } else if found.mark.kind != Kind::Open {
                let raw = raw.to_owned();
                self.leading = Some(Leading { mark: found.mark, tag: raw.len(), raw, at, about: None });
                return;
            }
        }
        let tag = matches!(token, Token::Tag(_));
        if found.empty || found.mark.kind != Kind::Open || tag && marks::has_attributes(raw) {
            return self.begin_answer(Some((*token, at)), out);
        }
        if tag || !raw.starts_with("<|") {
            let raw = raw.to_owned();
            self.leading = Some(Leading { mark: found.mark, tag: raw.len(), raw, at, about: None });
        } else {
            self.begin(found.mark, at, out);
        }
    }

    /// Begins the answer, first with the lead-in of reasoning that did not follow.
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

    /// Ends leading reasoning at this mark.
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

    /// Handles a token after an undecided leading mark; returns whether the token is consumed.
    pub(super) fn after_leading(&mut self, token: &Token<'_>, out: &mut dyn Output) -> bool {
        let Some(mut leading) = self.leading.take() else { return false };
        match token {
            _ if leading.mark.kind != Kind::Open => return self.behind_control(leading, token, out),
            _ if leading.about.is_some() || !is_blank(&leading.raw[leading.tag..]) => {
                return self.in_sentence(leading, token, out);
            }
            Token::Text(text) if is_blank(text) && leading.raw.len() + text.len() <= PENDING => {
                leading.raw.push_str(text);
                self.leading = Some(leading);
                return true;
            }
            Token::Text(text)
                if about::speaks(&[&leading.raw[leading.tag..], text].concat(), false) != Some(false) =>
            {
                return self.in_sentence(leading, token, out);
            }
            // The mark is an element around others.
            _ if leading.raw.starts_with('<') && is_child(token) => {
                let Leading { mark, raw, tag, at, .. } = leading;
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

    /// Handles a token after a leading mark that does not open reasoning; returns whether the token is
    /// consumed.
    fn behind_control(&mut self, leading: Leading, token: &Token<'_>, out: &mut dyn Output) -> bool {
        let mut leading = leading;
        let Token::Text(text) = token else {
            self.leave_sentence(&leading, leading.is_word(true) == Some(true), out);
            return false;
        };
        leading.raw.push_str(text);
        match leading.is_word(false) {
            Some(word) => self.leave_sentence(&leading, word, out),
            None => {
                self.leading = Some(leading);
                true
            }
        }
    }

    /// Handles a token of a possible sentence about the mark before it. Returns whether the token is
    /// consumed.
    fn in_sentence(&mut self, leading: Leading, token: &Token<'_>, out: &mut dyn Output) -> bool {
        let mut leading = leading;
        let closes = self.candidate(token).is_some_and(|found| found.mark.kind != Kind::Open && !found.empty);
        let start = leading.raw.len();
        leading.raw.push_str(token.raw());
        if leading.about.is_none() {
            match about::speaks(&leading.raw[leading.tag..], !matches!(token, Token::Text(_))) {
                Some(true) => leading.about = Some(None),
                Some(false) => return self.leave_sentence(&leading, false, out),
                None => {}
            }
        }
        if closes && leading.about == Some(None) {
            leading.about = Some(Some((start, leading.raw.len())));
        }
        match leading.is_word(false) {
            Some(word) => self.leave_sentence(&leading, word, out),
            // Without a closing mark it is not reasoning.
            None if leading.raw.len() > self.most => self.leave_sentence(&leading, true, out),
            None => {
                self.leading = Some(leading);
                true
            }
        }
    }

    /// Decides a leading mark and reads the text after it again: as text that mentions the mark, or as
    /// reasoning.
    fn leave_sentence(&mut self, leading: &Leading, word: bool, out: &mut dyn Output) -> bool {
        let turn = !word && leading.raw[..leading.tag] == *TURN;
        let tag = leading.tag + if turn { MODEL.len() } else { 0 };
        let (tag, behind) = leading.raw.split_at(tag);
        let control = leading.mark.kind != Kind::Open;
        if control && !word {
            if leading.mark.is_control() {
                left_out(tag, leading.at, out);
            } else {
                self.unopened = Some(leading.at.offset);
                unopened(tag, leading.at, out);
            }
            self.replay(behind, leading.at.after(tag), false, out);
        } else if control {
            self.struck |= tag == BEGIN;
            self.begin_answer(None, out);
            self.answer_text(tag, leading.at, out);
            self.replay(behind, leading.at.after(tag), false, out);
        } else if word {
            self.begin_answer(None, out);
            self.answer_text(tag, leading.at, out);
            self.mention = Some(Mention::new(leading.mark, false, &mut self.answer));
            self.replay(behind, leading.at.after(tag), true, out);
        } else {
            self.begin(leading.mark, leading.at, out);
            self.replay(behind, leading.at.after(tag), false, out);
        }
        true
    }

    pub(super) fn leading_begins(&mut self, leading: &Leading, out: &mut dyn Output) {
        let Leading { mark, raw, tag, at, .. } = leading;
        self.begin(*mark, *at, out);
        if raw.len() > *tag {
            self.reason(&raw[*tag..], out);
        }
    }

    /// Ends the reply after a leading mark.
    pub(super) fn finish_leading(&mut self, out: &mut dyn Output) {
        if let Some(leading) = self.leading.take() {
            let word = leading.is_word(true) == Some(true);
            self.leave_sentence(&leading, word, out);
        }
    }
}
