//! A mark that closes nothing and may be a word of a sentence, as when a model writes `</think>` twice: the
//! text after it decides.

use super::parse::{Candidate, Reader};
use crate::dialect::Output;
use crate::lex::about;
use crate::lex::markup::Token;
use crate::span::Place;

/// A mark that closes nothing, after a blank in the answer: the text after it tells whether a sentence
/// continues.
pub(super) struct Closing {
    found: Candidate,
    raw: String,
    at: Place,
    behind: String,
}

impl Closing {
    pub(super) fn new(found: Candidate, raw: &str, at: Place) -> Closing {
        Closing { found, raw: raw.to_owned(), at, behind: String::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.raw.len() + self.behind.len()
    }
}

impl Reader {
    /// Handles a token after such a mark; returns whether the token is consumed.
    pub(super) fn behind_closing(&mut self, token: &Token<'_>, out: &mut dyn Output) -> bool {
        let Some(mut closing) = self.closing.take() else { return false };
        let Token::Text(text) = token else {
            self.closes(closing, false, out);
            return false;
        };
        closing.behind.push_str(text);
        let blank = closing.behind.trim_start_matches([' ', '\t']).is_empty();
        if blank && closing.behind.len() < about::BLANK {
            self.closing = Some(closing);
        } else {
            let word = about::within(&closing.behind);
            self.closes(closing, word, out);
        }
        true
    }

    /// Decides such a mark: a `word` is text.
    fn closes(&mut self, closing: Closing, word: bool, out: &mut dyn Output) {
        let Closing { found, raw, at, behind } = closing;
        if word {
            // Even so, actions before it are not carried out.
            self.unopened = Some(at.offset);
            self.answer_text(&raw, at, out);
        } else {
            let mark = Token::Reasoning(&raw, found.mark);
            let fate = self.answer.token(&mark, Some(found), at, out);
            self.carry_out(fate, out);
        }
        if !behind.is_empty() {
            self.token(Token::Text(&behind), at.after(&raw), out);
        }
    }

    /// Ends the reply after such a mark.
    pub(super) fn finish_closing(&mut self, out: &mut dyn Output) {
        if let Some(closing) = self.closing.take() {
            self.closes(closing, false, out);
        }
    }
}
