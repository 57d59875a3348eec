//! Emitted text from which markup is removed: the text on both sides must not join into a tag.
//!
//! In `<scr</final>ipt>` the lexer finds text, a tag and text. Without the tag the text itself would be a
//! tag, and `<a b=` would become one with the text behind an escaped tag. An unfinished tag that another `<`
//! ends is a text token of its own that begins with `<`: from such a token on, emitted text is lexed a second
//! time.

use super::markup::{Markup, Token};
use crate::span::Place;

/// Lexes text as it is emitted. Markup removed between two calls needs no call of its own.
#[derive(Clone, Debug)]
pub struct Seam {
    /// Lexer, in an unfinished tag or before one.
    lexer: Markup,
    /// Start of the lexer's carry.
    at: Place,
    /// Unfinished tags directly before the carry. They may continue behind an escaped `<`, which does not end
    /// an attribute value.
    before: String,
    before_at: Place,
    /// Bytes of those tags that are emitted already, since no tag is that long.
    sent: usize,
    limit: usize,
}

/// Piece of emitted text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined<'a> {
    /// Plain text.
    Text(&'a str),
    /// An unfinished tag and its place. It would continue behind the tag escaped next, so it must be escaped
    /// too, unless it is code.
    Open(&'a str, Place),
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

impl Seam {
    /// Creates a reader at the start of a text, for the same mark and limit as the lexer of the reply.
    #[must_use]
    pub fn new(mark: &'static str, limit: usize) -> Seam {
        Seam {
            // A comment that arises here is not one of the reply.
            lexer: Markup::new(mark, limit).without_comments(),
            at: Place::START,
            before: String::new(),
            before_at: Place::START,
            sent: 0,
            limit,
        }
    }

    /// Reads an emitted text token of the reply.
    #[inline]
    pub fn text(&mut self, text: &str, at: Place, out: &mut impl FnMut(Joined<'_>)) {
        if self.passes(text) {
            return out(Joined::Text(text));
        }
        self.read(text, at, out);
    }

    /// Returns whether this text passes unchanged.
    #[inline]
    #[must_use]
    pub fn passes(&self, text: &str) -> bool {
        self.held() == 0 && text.as_bytes().first() != Some(&b'<')
    }

    fn read(&mut self, text: &str, here: Place, out: &mut impl FnMut(Joined<'_>)) {
        let Seam { lexer, at, before, before_at, sent, .. } = self;
        let carried = lexer.carry().len();
        if carried == 0 {
            *at = here;
        }
        let mut reading = Reading { at, before, before_at, sent, text, here, carried, read: 0 };
        lexer.push(text, &mut |token, _| reading.token(&token, out));
        self.shorten(out);
    }

    /// Prepares for a tag of the reply that is escaped unless it is code.
    pub fn tag(&mut self, out: &mut impl FnMut(Joined<'_>)) {
        let last = self.lexer.carry();
        if last.starts_with("<<") || !(last.is_empty() || last.contains('=')) {
            return self.finish(out);
        }
        open(&mut self.before, &mut self.sent, self.before_at, out);
        if !last.is_empty() {
            out(Joined::Open(last, self.at));
        }
        self.lexer.drop_carry();
    }

    /// Ends the text, or continues with something emitted verbatim: no tag can join over it.
    pub fn finish(&mut self, out: &mut impl FnMut(Joined<'_>)) {
        if !self.lexer.carry().is_empty() {
            // Half a mark may contain a whole tag.
            let Seam { lexer, at, before, before_at, sent, .. } = self;
            let (here, carried) = (*at, lexer.carry().len());
            let mut reading = Reading { at, before, before_at, sent, text: "", here, carried, read: 0 };
            lexer.finish(&mut |token, _| reading.token(&token, out));
        }
        release(&mut self.before, &mut self.sent, out);
    }

    /// Number of bytes held back.
    #[inline]
    #[must_use]
    pub fn held(&self) -> usize {
        self.before.len() - self.sent + self.lexer.carry().len()
    }

    /// Emits unfinished tags that have become longer than any tag may be.
    fn shorten(&mut self, out: &mut impl FnMut(Joined<'_>)) {
        while self.sent < self.before.len() && self.held() > self.limit {
            let next = self.before[self.sent + 1..].find('<');
            let next = next.map_or(self.before.len(), |at| self.sent + 1 + at);
            let tag = &self.before[self.sent..next];
            out(Joined::Text(tag));
            self.before_at.advance(tag);
            self.sent = next;
        }
        if self.sent > self.limit {
            self.before.drain(..self.sent);
            self.sent = 0;
        }
    }
}

/// State of reading one text token.
struct Reading<'a> {
    at: &'a mut Place,
    before: &'a mut String,
    before_at: &'a mut Place,
    sent: &'a mut usize,
    text: &'a str,
    here: Place,
    /// Bytes carried over from before this text, and bytes of tokens so far.
    carried: usize,
    read: usize,
}

impl Reading<'_> {
    fn token(&mut self, token: &Token<'_>, out: &mut impl FnMut(Joined<'_>)) {
        let raw = token.raw();
        self.read += raw.len();
        match token {
            Token::Text(raw) if raw.starts_with('<') && raw.contains('=') => {
                if self.before.is_empty() {
                    *self.before_at = *self.at;
                }
                self.before.push_str(raw);
            }
            Token::Tag(_) | Token::CommentOpen | Token::Mark(_) => {
                open(self.before, self.sent, *self.before_at, out);
                let end = if self.read < self.carried {
                    self.at.offset + raw.len()
                } else {
                    self.here.offset + self.read - self.carried
                };
                out(Joined::Tag { raw, at: *self.at, end });
            }
            _ => {
                release(self.before, self.sent, out);
                out(Joined::Text(raw));
            }
        }
        if self.read <= self.carried {
            self.at.advance(raw);
        } else {
            *self.at = self.here.after(&self.text[..self.read - self.carried]);
        }
    }
}

/// Emits unfinished tags that must be escaped.
fn open(before: &mut String, sent: &mut usize, at: Place, out: &mut impl FnMut(Joined<'_>)) {
    let (mut at, mut rest) = (at, &before[*sent..]);
    while !rest.is_empty() {
        let (tag, after) = rest.split_at(rest[1..].find('<').map_or(rest.len(), |next| next + 1));
        out(Joined::Open(tag, at));
        at.advance(tag);
        rest = after;
    }
    before.clear();
    *sent = 0;
}

/// Emits unfinished tags that end here as text.
fn release(before: &mut String, sent: &mut usize, out: &mut impl FnMut(Joined<'_>)) {
    if *sent < before.len() {
        out(Joined::Text(&before[*sent..]));
    }
    before.clear();
    *sent = 0;
}
