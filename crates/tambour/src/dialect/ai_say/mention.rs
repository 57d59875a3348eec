//! Unopened closing marks of reasoning after a complete answer: decides whether the answer was reasoning or
//! the text only mentions the mark.
//!
//! Models that end reasoning write the mark at the end of a line or of a sentence. In the middle of a
//! sentence or in quotes it is a mention. An answer before a mark that ends reasoning is a draft if another
//! answer follows it.

use crate::span::Place;

/// Facts about the text before a mark.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Before {
    last: Option<char>,
    /// The last non-blank character of the line.
    visible: Option<char>,
}

/// A mark that is undecided until more text follows.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) text: String,
    pub(super) place: Place,
    before: Before,
    /// Text after the mark.
    pub(super) behind: String,
}

/// Meaning of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// More text is needed.
    Open,
    /// The text only mentions the mark.
    Mention,
    /// The mark ends reasoning.
    End,
}

/// Bytes after a mark that are considered.
const BEHIND: usize = 16;

impl Before {
    /// Records text before a mark.
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

    /// Pushes text after the mark. Returns the bytes consumed and the meaning of the mark.
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
            // A new sentence would begin with a capital letter.
            Some(c) if c.is_alphanumeric() && !c.is_uppercase() => Reading::Mention,
            _ => Reading::End,
        }
    }
}
