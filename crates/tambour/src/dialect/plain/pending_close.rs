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
    text_behind: String,
}

impl PendingClose {
    pub(super) fn new(candidate: MarkCandidate, raw: &str, start: Place) -> PendingClose {
        PendingClose { candidate, raw: raw.to_owned(), start, text_behind: String::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.raw.len() + self.text_behind.len()
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
        closing.text_behind.push_str(text);
        let blank = closing.text_behind.trim_start_matches([' ', '\t']).is_empty();
        if blank && closing.text_behind.len() < tag_sentence::MAX_BLANK {
            self.pending_close = Some(closing);
        } else {
            let word = tag_sentence::is_within_sentence(&closing.text_behind);
            self.resolve_close(closing, word, out);
        }
        true
    }

    /// Decides such a mark: a `word` is text.
    fn resolve_close(&mut self, closing: PendingClose, word: bool, out: &mut dyn IntentSink) {
        let PendingClose { candidate, raw, start, text_behind } = closing;
        if word {
            // Even so, actions before it are not carried out.
            self.last_unopened = Some(start.offset);
            self.push_answer_text(&raw, start, out);
        } else {
            let mark = MarkupToken::Reasoning(&raw, candidate.mark);
            let fate = self.answer.push_token(&mark, Some(candidate), start, out);
            self.finish_removal(fate, out);
        }
        if !text_behind.is_empty() {
            self.push_token(MarkupToken::Text(&text_behind), start.end_of(&raw), out);
        }
    }

    /// Ends the reply after such a mark.
    pub(super) fn finish_close(&mut self, out: &mut dyn IntentSink) {
        if let Some(closing) = self.pending_close.take() {
            self.resolve_close(closing, false, out);
        }
    }
}
