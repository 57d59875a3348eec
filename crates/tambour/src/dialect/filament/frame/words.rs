//! Reasoning marks that are not tags, such as `[THINK]`, in text outside of the content and of blocks.

use super::super::rules;
use super::super::tags::Kind;
use super::draft::InnerEnd;
use super::{Frame, Mode, Open, report};
use crate::dialect::Output;
use crate::finding::Report;
use crate::lex::marks::{self, Effect, HARMONY, Kind as MarkKind, Mark, Open as Marks, Seen, Word};
use crate::lex::markup::Token;
use crate::span::{At, Place};

/// Possible beginning of a mark, and its place.
#[derive(Default)]
pub(super) struct Words {
    carry: String,
    at: Place,
}

impl Words {
    /// Returns the bytes held back.
    pub(super) fn held(&self) -> usize {
        self.carry.len()
    }
}

impl Frame {
    /// Handles the next token of the reply, whose text may contain marks.
    pub(in super::super) fn read(&mut self, token: Token<'_>, at: At<'_>, out: &mut dyn Output) {
        match token {
            Token::Text(text) if self.has_words() => {
                let place = at.get();
                self.words(text, place, out);
            }
            Token::Text(_) => self.token(token, at, out),
            _ => {
                self.words_end(out);
                self.token(token, at, out);
            }
        }
    }

    /// Returns whether marks count at the next text.
    fn has_words(&self) -> bool {
        match &self.mode {
            Mode::Outside | Mode::Thought(_) => true,
            Mode::Content(open) => open.tag.is_none(),
            Mode::Block(_) => false,
        }
    }

    /// Returns whether text contains no mark that may count.
    #[inline]
    pub(super) fn passes_words(&self, text: &str) -> bool {
        self.words.carry.is_empty() && marks::find(text.as_bytes()).is_none()
    }

    fn words(&mut self, text: &str, place: Place, out: &mut dyn Output) {
        if self.words.carry.is_empty() {
            return self.split_words(text, place, out);
        }
        let mut whole = std::mem::take(&mut self.words.carry);
        whole.push_str(text);
        self.split_words(&whole, self.words.at, out);
    }

    fn split_words(&mut self, text: &str, place: Place, out: &mut dyn Output) {
        let bytes = text.as_bytes();
        let (mut from, mut at, mut place) = (0, 0, place);
        while let Some(found) = marks::find(&bytes[at..]).map(|found| at + found) {
            let (mut word, mut seen) = (Word::default(), Seen::Part);
            let mut len = 0;
            while seen == Seen::Part && found + len < bytes.len() {
                seen = word.byte(bytes[found + len]);
                len += 1;
            }
            if seen == Seen::No {
                at = found + 1;
                continue;
            }
            if found > from {
                self.token(Token::Text(&text[from..found]), At::from(place), out);
                place.advance(&text[from..found]);
            }
            let Seen::Mark(mark, _) = seen else {
                (self.words.carry, self.words.at) = (text[found..].to_owned(), place);
                return;
            };
            let raw = &text[found..found + len];
            self.token(Token::Reasoning(raw, mark), At::from(place), out);
            place.advance(raw);
            (from, at) = (found + len, found + len);
            if !self.has_words() {
                break;
            }
        }
        if from < text.len() {
            self.token(Token::Text(&text[from..]), At::from(place), out);
        }
    }

    /// Turns an incomplete mark into text.
    pub(super) fn words_end(&mut self, out: &mut dyn Output) {
        let carry = std::mem::take(&mut self.words.carry);
        if !carry.is_empty() {
            self.token(Token::Text(&carry), At::from(self.words.at), out);
        }
    }

    /// Handles a mark that is not code, in a thought or where one may begin.
    pub(super) fn word(&mut self, raw: &str, mark: Mark, at: Place, out: &mut dyn Output) {
        let Mode::Thought(open) = &mut self.mode else {
            if mark.kind == MarkKind::Open {
                return self.begin_word(raw, mark, at, out);
            }
            let message = format!("`{raw}` closes nothing");
            report(rules::TAG_UNOPENED, at, raw.len(), message, "left out", out);
            if !mark.same(HARMONY) {
                self.withdraw_calls(raw, out);
            }
            return;
        };
        let effect = open.marks.see(mark);
        if effect == Effect::Text {
            match mark.kind {
                MarkKind::Open => self.opens_inside(true),
                MarkKind::Close => _ = self.closes_inside(),
                _ => {}
            }
            return self.plain(raw, At::from(at), out);
        }
        if !self.ends_thought(raw, InnerEnd::Text, at, out) {
            return;
        }
        let Mode::Thought(open) = &self.mode else { return };
        let element = open.at;
        if let (Effect::CloseForeign, Some((name, ..))) = (effect, &open.tag) {
            let message = format!("`{raw}` closes `{name}`");
            report(rules::TAG_MISMATCHED, at, raw.len(), message, "closed", out);
        }
        self.close_prose_at(true, at.offset, out);
        self.closed = Some(element);
    }

    fn begin_word(&mut self, raw: &str, mark: Mark, at: Place, out: &mut dyn Output) {
        self.leave(at.offset, out);
        self.begun = true;
        let element = self.tags.any(Kind::Thought).unwrap_or_default();
        let name = &*self.tags.element(element).name;
        let message = format!("`{raw}` is another mark of `{name}`");
        let found = Report::new(rules::TAG_ALIAS, at, at.offset + raw.len(), message).row("R-69");
        out.report(found.repaired(format!("read as `{name}`")));
        if !self.seen.contains(&element) {
            self.seen.push(element);
        }
        let tag = Some((raw.to_owned(), at, raw.len()));
        let open = Open {
            at: element,
            tag,
            from: at.after(raw),
            head: false,
            marks: Marks::new(mark),
            begun: false,
        };
        self.closed = None;
        self.open(Kind::Thought, open, false, out);
    }
}
