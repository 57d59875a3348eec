//! A mark that ends reasoning behind a complete answer, without one that began it: whether the answer stood in reasoning,
//! or the mark is only spoken of.
//!
//! Where models end reasoning, the mark stands at the end of a line or of a sentence. In the middle of a sentence, or in
//! quotes, it is a mention. An answer in front of a mark that ends reasoning is a draft if another answer follows it.

use crate::span::Place;

/// The text in front of a mark, as far as it tells.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Before {
    last: Option<char>,
    /// The last character on the line that is not blank.
    visible: Option<char>,
}

/// A mark that waits for the text behind it.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) text: String,
    pub(super) place: Place,
    before: Before,
    /// What came behind it.
    pub(super) behind: String,
}

/// What a mark is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// More text is needed.
    Open,
    /// It is only spoken of.
    Mention,
    /// It ends reasoning.
    End,
}

/// Bytes behind a mark that are looked at.
const BEHIND: usize = 16;

impl Before {
    /// Text came.
    pub(super) fn text(&mut self, text: &str) {
        self.last = text.chars().next_back();
        let line = text.rfind('\n').map_or(text, |at| &text[at + 1..]);
        let visible = line.chars().rev().find(|c| !c.is_whitespace());
        self.visible = visible.or(self.visible.filter(|_| line.len() == text.len()));
    }
}

impl Pending {
    pub(super) fn new(text: &str, place: Place, before: Before) -> Pending {
        Pending { text: text.to_owned(), place, before, behind: String::new() }
    }

    /// Text behind the mark; how much of it was needed, and what the mark is now.
    pub(super) fn push(&mut self, text: &str) -> (usize, Reading) {
        for (at, c) in text.char_indices() {
            self.behind.push(c);
            let reading = self.read();
            if reading != Reading::Open {
                return (at + c.len_utf8(), reading);
            }
        }
        (text.len(), Reading::Open)
    }

    fn read(&self) -> Reading {
        let quote =
            |c: char| matches!(c, '"' | '\'' | '“' | '”' | '‘' | '’' | '「' | '」' | '(' | ')' | '（' | '）');
        let quoted = self.before.last.is_some_and(quote);
        let blank = self.before.last.is_some_and(|c| c == ' ' || c == '\t');
        let sentence = blank && self.before.visible.is_some_and(char::is_alphanumeric);
        let mut behind = self.behind.chars();
        match behind.next() {
            None => return Reading::Open,
            Some(c) if quoted && quote(c) => return Reading::Mention,
            Some('.' | ',' | ';' | ':' | '!' | '?' | '。' | '，' | '；' | '：' | '！' | '？') if sentence =>
            {
                return Reading::Mention;
            }
            Some(' ' | '\t') if sentence => {}
            Some(_) => return Reading::End,
        }
        match behind.find(|c| *c != ' ' && *c != '\t') {
            None if self.behind.len() < BEHIND => Reading::Open,
            // Another sentence would begin with a capital letter.
            Some(c) if c.is_alphanumeric() && !c.is_uppercase() => Reading::Mention,
            _ => Reading::End,
        }
    }
}
