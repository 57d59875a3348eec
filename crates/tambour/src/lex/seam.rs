//! Check of emitted text from which markup is removed: the text on both sides of the removed markup (the
//! seam) must not join into a tag.
//!
//! In `<scr</final>ipt>` the lexer finds the text `<scr`, a tag and the text `ipt>`. Without the tag the
//! output would be `<script>`. Likewise an unfinished `<a b=` and an escaped tag after it would form the tag
//! `<a b=&lt;final>`. When another `<` ends an unfinished tag, the lexer emits it as a separate text token
//! that begins with `<`. From this token on, emitted text is lexed a second time, until nothing is
//! unfinished.

use super::markup::{MarkupLexer, MarkupToken};
use crate::span::Place;

/// Lexes text as it is emitted. Markup removed between two calls is not passed in.
#[derive(Clone, Debug)]
pub struct SeamReader {
    /// Lexer, in an unfinished tag or before one.
    lexer: MarkupLexer,
    /// Place where the lexer's unfinished token (its carry) starts.
    carry_place: Place,
    /// Unfinished tags directly before the carry. They may continue after an escaped `<`, which does not end
    /// an attribute value.
    unfinished: String,
    /// Start of the part of `unfinished` that is not emitted yet.
    unfinished_place: Place,
    /// Length in bytes of the start of `unfinished` that was emitted already, because the whole had become
    /// longer than any tag.
    sent_len: usize,
    /// Maximum length of a tag in bytes.
    limit: usize,
}

/// Piece of emitted text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeamPiece<'a> {
    /// Plain text.
    Text(&'a str),
    /// An unfinished tag and its place. It would continue in the tag that is escaped next, so it must be
    /// escaped too, unless it is code.
    UnfinishedTag(&'a str, Place),
    /// A tag or mark that arises at a seam and is not in the reply: must be escaped, unless it is code.
    Tag {
        /// Text of the tag.
        raw: &'a str,
        /// Place of its start.
        at: Place,
        /// Offset of its end in the reply.
        end: usize,
    },
}

impl SeamReader {
    /// Creates a reader at the start of a text, with the same literal mark and limit as the lexer of the
    /// reply.
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

    /// Reads an emitted text token of the reply, which starts at `at`, and passes its pieces to `out`.
    #[inline]
    pub fn push_text(&mut self, text: &str, at: Place, out: &mut impl FnMut(SeamPiece<'_>)) {
        if self.passes_unchanged(text) {
            return out(SeamPiece::Text(text));
        }
        self.read(text, at, out);
    }

    /// Returns whether this text token is emitted unchanged: nothing is unfinished, and it begins no tag.
    #[inline]
    #[must_use]
    pub fn passes_unchanged(&self, text: &str) -> bool {
        self.held_bytes() == 0 && text.as_bytes().first() != Some(&b'<')
    }

    /// Lexes a text token again.
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
        let carry = self.lexer.carry();
        // Only an attribute value can continue in the escaped tag. `<<` begins a literal mark, which cannot.
        let can_continue = carry.is_empty() || carry.contains('=') && !carry.starts_with("<<");
        if !can_continue {
            return self.finish(out);
        }
        emit_unfinished(&mut self.unfinished, &mut self.sent_len, self.unfinished_place, out);
        if !carry.is_empty() {
            out(SeamPiece::UnfinishedTag(carry, self.carry_place));
        }
        self.lexer.drop_carry();
    }

    /// Ends the text. Also called before something that is emitted verbatim, since no tag can join across
    /// that.
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
            let next_tag = self.unfinished[self.sent_len + 1..].find('<');
            let tag_end = next_tag.map_or(self.unfinished.len(), |at| self.sent_len + 1 + at);
            let tag = &self.unfinished[self.sent_len..tag_end];
            out(SeamPiece::Text(tag));
            self.unfinished_place.advance(tag);
            self.sent_len = tag_end;
        }
        // Removing the emitted bytes only now and then keeps the work linear.
        if self.sent_len > self.limit {
            self.unfinished.drain(..self.sent_len);
            self.sent_len = 0;
        }
    }
}

/// Reader of the tokens that the second lexing finds in one text token. The references are fields of the
/// [`SeamReader`].
struct SeamTokenReader<'a> {
    carry_place: &'a mut Place,
    unfinished: &'a mut String,
    unfinished_place: &'a mut Place,
    sent_len: &'a mut usize,
    /// The text token and the place where it starts.
    text: &'a str,
    text_place: Place,
    /// Bytes that the lexer carried over from before this text.
    carry_len: usize,
    /// Bytes of the tokens so far, counted from the start of the carry.
    read_len: usize,
}

impl SeamTokenReader<'_> {
    /// Emits a token, or collects it if it is an unfinished tag.
    fn push_token(&mut self, token: &MarkupToken<'_>, out: &mut impl FnMut(SeamPiece<'_>)) {
        let raw = token.raw();
        self.read_len += raw.len();
        match token {
            // An unfinished tag that may end in an attribute value.
            MarkupToken::Text(raw) if raw.starts_with('<') && raw.contains('=') => {
                if self.unfinished.is_empty() {
                    *self.unfinished_place = *self.carry_place;
                }
                self.unfinished.push_str(raw);
            }
            MarkupToken::Tag(_) | MarkupToken::CommentOpen | MarkupToken::Mark(_) => {
                emit_unfinished(self.unfinished, self.sent_len, *self.unfinished_place, out);
                // The token ends in the carried text or in the new one.
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
        // The next token starts where this one ends.
        if self.read_len <= self.carry_len {
            self.carry_place.advance(raw);
        } else {
            *self.carry_place = self.text_place.end_of(&self.text[..self.read_len - self.carry_len]);
        }
    }
}

/// Emits unfinished tags that must be escaped.
fn emit_unfinished(
    unfinished: &mut String,
    sent_len: &mut usize,
    at: Place,
    out: &mut impl FnMut(SeamPiece<'_>),
) {
    let (mut at, mut rest) = (at, &unfinished[*sent_len..]);
    while !rest.is_empty() {
        // Each of the tags begins with `<` and contains no other.
        let (tag, after) = rest.split_at(rest[1..].find('<').map_or(rest.len(), |next| next + 1));
        out(SeamPiece::UnfinishedTag(tag, at));
        at.advance(tag);
        rest = after;
    }
    unfinished.clear();
    *sent_len = 0;
}

/// Emits unfinished tags that end here as text.
fn emit_as_text(unfinished: &mut String, sent_len: &mut usize, out: &mut impl FnMut(SeamPiece<'_>)) {
    if *sent_len < unfinished.len() {
        out(SeamPiece::Text(&unfinished[*sent_len..]));
    }
    unfinished.clear();
    *sent_len = 0;
}
