//! A mark that closes nothing and may be a word of a sentence, as when a model writes `</think>` twice: the
//! text after it decides.

use super::parse::{MarkCandidate, PlainParser};
use crate::dialect::IntentSink;
use crate::lex::markup::MarkupToken;
use crate::lex::tag_sentence;
use crate::span::Place;

/// A mark that closes nothing, after a blank in the answer: the text after it tells whether a sentence
/// continues.
pub(super) struct PendingClose {
    candidate: MarkCandidate,
    raw: String,
    start: Place,
    text_after: String,
}

impl PendingClose {
    pub(super) fn new(candidate: MarkCandidate, raw: &str, start: Place) -> PendingClose {
        PendingClose { candidate, raw: raw.to_owned(), start, text_after: String::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.raw.len() + self.text_after.len()
    }
}

impl PlainParser {
    /// Handles a token after such a mark; returns whether the token is consumed.
    pub(super) fn push_after_close(&mut self, token: &MarkupToken<'_>, out: &mut dyn IntentSink) -> bool {
        let Some(mut closing) = self.pending_close.take() else { return false };
        let MarkupToken::Text(text) = token else {
            self.resolve_close(closing, false, out);
            return false;
        };
        closing.text_after.push_str(text);
        let is_blank_text = closing.text_after.trim_start_matches([' ', '\t']).is_empty();
        if is_blank_text && closing.text_after.len() < tag_sentence::MAX_BLANK {
            self.pending_close = Some(closing);
        } else {
            let word = tag_sentence::is_within_sentence(&closing.text_after);
            self.resolve_close(closing, word, out);
        }
        true
    }

    /// Decides such a mark: a `is_word` is text.
    fn resolve_close(&mut self, closing: PendingClose, is_word: bool, out: &mut dyn IntentSink) {
        let PendingClose { candidate, raw, start, text_after } = closing;
        if is_word {
            // Even so, actions before it are not carried out.
            self.last_unopened = Some(start.offset);
            self.push_answer_text(&raw, start, out);
        } else {
            let mark = MarkupToken::Reasoning(&raw, candidate.mark);
            let removed_mark = self.answer.push_token(&mark, Some(candidate), start, out);
            self.finish_removal(removed_mark, out);
        }
        if !text_after.is_empty() {
            self.push_token(MarkupToken::Text(&text_after), start.end_of(&raw), out);
        }
    }

    /// Ends the reply after such a mark.
    pub(super) fn finish_close(&mut self, out: &mut dyn IntentSink) {
        if let Some(closing) = self.pending_close.take() {
            self.resolve_close(closing, false, out);
        }
    }
}
