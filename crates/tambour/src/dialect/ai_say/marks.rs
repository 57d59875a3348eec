//! Unopened closing marks of reasoning after a complete answer. Decides whether a mark ends reasoning, which
//! then contains the answer, or is only mentioned in the text.
//!
//! Models that end reasoning write the mark at the end of a line or of a sentence. In the middle of a
//! sentence or in quotes it is a mention. An answer before a mark that ends reasoning is a draft if another
//! answer follows it.

use crate::span::Place;

/// Facts about the text before a mark.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MarkContext {
    /// The last character.
    last_char: Option<char>,
    /// The last non-blank character of the current line.
    last_visible: Option<char>,
}

/// A mark that is undecided until more text follows.
#[derive(Clone, Debug)]
pub(super) struct PendingMark {
    /// The mark as written.
    pub(super) text: String,
    pub(super) place: Place,
    /// Text before the mark.
    context: MarkContext,
    /// Text after the mark, as far as it was considered.
    pub(super) text_after: String,
}

/// Meaning of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkMeaning {
    /// More text is needed.
    Undecided,
    /// The text only mentions the mark.
    Mention,
    /// The mark ends reasoning.
    EndOfReasoning,
}

/// Maximum number of bytes considered after a mark.
const MAX_TEXT_AFTER: usize = 16;

impl MarkContext {
    /// Records text before a mark.
    pub(super) fn push(&mut self, text: &str) {
        self.last_char = text.chars().next_back();
        let line = text.rfind('\n').map_or(text, |at| &text[at + 1..]);
        let visible = line.chars().rev().find(|c| !c.is_whitespace());
        self.last_visible = visible.or(self.last_visible.filter(|_| line.len() == text.len()));
    }
}

impl PendingMark {
    pub(super) fn new(text: &str, place: Place, context: MarkContext) -> PendingMark {
        PendingMark { text: text.to_owned(), place, context, text_after: String::new() }
    }

    /// Pushes text after the mark. Returns the bytes consumed and the meaning of the mark.
    pub(super) fn push(&mut self, text: &str) -> (usize, MarkMeaning) {
        for (at, c) in text.char_indices() {
            self.text_after.push(c);
            let meaning = self.meaning();
            if meaning != MarkMeaning::Undecided {
                return (at + c.len_utf8(), meaning);
            }
        }
        (text.len(), MarkMeaning::Undecided)
    }

    /// Decides the meaning from the text read so far.
    fn meaning(&self) -> MarkMeaning {
        let is_quote =
            |c: char| matches!(c, '"' | '\'' | '“' | '”' | '‘' | '’' | '「' | '」' | '(' | ')' | '（' | '）');
        let is_after_quote = self.context.last_char.is_some_and(is_quote);
        let is_after_blank = self.context.last_char.is_some_and(|c| c == ' ' || c == '\t');
        let is_in_sentence = is_after_blank && self.context.last_visible.is_some_and(char::is_alphanumeric);
        let mut chars_after = self.text_after.chars();
        match chars_after.next() {
            None => return MarkMeaning::Undecided,
            Some(c) if is_after_quote && is_quote(c) => return MarkMeaning::Mention,
            Some('.' | ',' | ';' | ':' | '!' | '?' | '。' | '，' | '；' | '：' | '！' | '？')
                if is_in_sentence =>
            {
                return MarkMeaning::Mention;
            }
            Some(' ' | '\t') if is_in_sentence => {}
            Some(_) => return MarkMeaning::EndOfReasoning,
        }
        match chars_after.find(|c| *c != ' ' && *c != '\t') {
            None if self.text_after.len() < MAX_TEXT_AFTER => MarkMeaning::Undecided,
            // A new sentence would begin with a capital letter.
            Some(c) if c.is_alphanumeric() && !c.is_uppercase() => MarkMeaning::Mention,
            _ => MarkMeaning::EndOfReasoning,
        }
    }
}
