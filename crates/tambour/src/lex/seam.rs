//! Emitted text from which markup is removed: the text on both sides must not join into a tag.
//!
//! In `<scr</final>ipt>` the lexer finds text, a tag and text. Without the tag the text itself would be a
//! tag, and `<a b=` would become one with the text behind an escaped tag. An unfinished tag that another `<`
//! ends is a text token of its own that begins with `<`: from such a token on, emitted text is lexed a second
//! time.

use super::markup::{MarkupLexer, MarkupToken};
use crate::span::Place;

/// Lexes text as it is emitted. Markup removed between two calls needs no call of its own.
#[derive(Clone, Debug)]
pub struct SeamReader {
    /// Lexer, in an unfinished tag or before one.
    lexer: MarkupLexer,
    /// Start of the lexer's carry.
    carry_place: Place,
    /// Unfinished tags directly before the carry. They may continue behind an escaped `<`, which does not end
    /// an attribute value.
    unfinished: String,
    unfinished_place: Place,
    /// Bytes of those tags that are emitted already, since no tag is that long.
    sent_len: usize,
    limit: usize,
}

/// Piece of emitted text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeamPiece<'a> {
    /// Plain text.
    Text(&'a str),
    /// An unfinished tag and its place. It would continue behind the tag escaped next, so it must be escaped
    /// too, unless it is code.
    UnfinishedTag(&'a str, Place),
    /// A tag or mark that the reply does not contain: must be escaped, unless it is code.
    Tag {
        /// Text of the tag.
        raw: &'a str,
        /// Place of its start.
        at: Place,
        /// Offset of its end.
        end: usize,
    },
}

impl SeamReader {
    /// Creates a reader at the start of a text, for the same mark and limit as the lexer of the reply.
    #[must_use]
    pub fn new(mark: &'static str, limit: usize) -> SeamReader {
        SeamReader {
            // A comment that arises here is not one of the reply.
            lexer: MarkupLexer::new(mark, limit).without_comments(),
            carry_place: Place::START,
            unfinished: String::new(),
            unfinished_place: Place::START,
            sent_len: 0,
            limit,
        }
    }

    /// Reads an emitted text token of the reply.
    #[inline]
    pub fn push_text(&mut self, text: &str, at: Place, out: &mut impl FnMut(SeamPiece<'_>)) {
        if self.passes_unchanged(text) {
            return out(SeamPiece::Text(text));
        }
        self.read(text, at, out);
    }

    /// Returns whether this text passes unchanged.
    #[inline]
    #[must_use]
    pub fn passes_unchanged(&self, text: &str) -> bool {
        self.held_bytes() == 0 && text.as_bytes().first() != Some(&b'<')
    }

    fn read(&mut self, text: &str, text_place: Place, out: &mut impl FnMut(SeamPiece<'_>)) {
        let SeamReader { lexer, carry_place, unfinished, unfinished_place, sent_len, .. } = self;
        let carry_len = lexer.carry().len();
        if carry_len == 0 {
            *carry_place = text_place;
        }
        let mut reader = SeamTokenReader {
            carry_place,
            unfinished,
            unfinished_place,
            sent_len,
            text,
            text_place,
            carry_len,
            read_len: 0,
        };
        lexer.push(text, &mut |token, _| reader.push_token(&token, out));
        self.release_overlong(out);
    }

    /// Prepares for a tag of the reply that is escaped unless it is code.
    pub fn prepare_for_tag(&mut self, out: &mut impl FnMut(SeamPiece<'_>)) {
        let last = self.lexer.carry();
        if last.starts_with("<<") || !(last.is_empty() || last.contains('=')) {
            return self.finish(out);
        }
        emit_unfinished(&mut self.unfinished, &mut self.sent_len, self.unfinished_place, out);
        if !last.is_empty() {
            out(SeamPiece::UnfinishedTag(last, self.carry_place));
        }
        self.lexer.drop_carry();
    }

    /// Ends the text, or continues with something emitted verbatim: no tag can join over it.
    pub fn finish(&mut self, out: &mut impl FnMut(SeamPiece<'_>)) {
        if !self.lexer.carry().is_empty() {
            // Half a mark may contain a whole tag.
            let SeamReader { lexer, carry_place, unfinished, unfinished_place, sent_len, .. } = self;
            let (text_place, carry_len) = (*carry_place, lexer.carry().len());
            let mut reader = SeamTokenReader {
                carry_place,
                unfinished,
                unfinished_place,
                sent_len,
                text: "",
                text_place,
                carry_len,
                read_len: 0,
            };
            lexer.finish(&mut |token, _| reader.push_token(&token, out));
        }
        emit_as_text(&mut self.unfinished, &mut self.sent_len, out);
    }

    /// Number of bytes held back.
    #[inline]
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.unfinished.len() - self.sent_len + self.lexer.carry().len()
    }

    /// Emits unfinished tags that have become longer than any tag may be.
    fn release_overlong(&mut self, out: &mut impl FnMut(SeamPiece<'_>)) {
        while self.sent_len < self.unfinished.len() && self.held_bytes() > self.limit {
            let next = self.unfinished[self.sent_len + 1..].find('<');
            let next = next.map_or(self.unfinished.len(), |at| self.sent_len + 1 + at);
            let tag = &self.unfinished[self.sent_len..next];
            out(SeamPiece::Text(tag));
            self.unfinished_place.advance(tag);
            self.sent_len = next;
        }
        if self.sent_len > self.limit {
            self.unfinished.drain(..self.sent_len);
            self.sent_len = 0;
        }
    }
}

/// State of reading one text token.
struct SeamTokenReader<'a> {
    carry_place: &'a mut Place,
    unfinished: &'a mut String,
    unfinished_place: &'a mut Place,
    sent_len: &'a mut usize,
    text: &'a str,
    text_place: Place,
    /// Bytes carried over from before this text, and bytes of tokens so far.
    carry_len: usize,
    read_len: usize,
}

impl SeamTokenReader<'_> {
    fn push_token(&mut self, token: &MarkupToken<'_>, out: &mut impl FnMut(SeamPiece<'_>)) {
        let raw = token.raw();
        self.read_len += raw.len();
        match token {
            MarkupToken::Text(raw) if raw.starts_with('<') && raw.contains('=') => {
                if self.unfinished.is_empty() {
                    *self.unfinished_place = *self.carry_place;
                }
                self.unfinished.push_str(raw);
            }
            MarkupToken::Tag(_) | MarkupToken::CommentOpen | MarkupToken::Mark(_) => {
                emit_unfinished(self.unfinished, self.sent_len, *self.unfinished_place, out);
                let end = if self.read_len < self.carry_len {
                    self.carry_place.offset + raw.len()
                } else {
                    self.text_place.offset + self.read_len - self.carry_len
                };
                out(SeamPiece::Tag { raw, at: *self.carry_place, end });
            }
            _ => {
                emit_as_text(self.unfinished, self.sent_len, out);
                out(SeamPiece::Text(raw));
            }
        }
        if self.read_len <= self.carry_len {
            self.carry_place.advance(raw);
        } else {
            *self.carry_place = self.text_place.end_of(&self.text[..self.read_len - self.carry_len]);
        }
    }
}

/// Emits unfinished tags that must be escaped.
fn emit_unfinished(
    before: &mut String,
    sent_len: &mut usize,
    at: Place,
    out: &mut impl FnMut(SeamPiece<'_>),
) {
    let (mut at, mut rest) = (at, &before[*sent_len..]);
    while !rest.is_empty() {
        let (tag, after) = rest.split_at(rest[1..].find('<').map_or(rest.len(), |next| next + 1));
        out(SeamPiece::UnfinishedTag(tag, at));
        at.advance(tag);
        rest = after;
    }
    before.clear();
    *sent_len = 0;
}

/// Emits unfinished tags that end here as text.
fn emit_as_text(before: &mut String, sent_len: &mut usize, out: &mut impl FnMut(SeamPiece<'_>)) {
    if *sent_len < before.len() {
        out(SeamPiece::Text(&before[*sent_len..]));
    }
    before.clear();
    *sent_len = 0;
}
