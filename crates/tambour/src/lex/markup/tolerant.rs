//! Tolerant lexer: reads text tokens of the strict lexer again and finds misspelled tags of known names in
//! them.
//!
//! Each tag of the strict syntax stays one, whatever its name, and no byte is read more than twice. In
//! comments only strict tags count.

use super::head::{Head, Next};
use super::lexer::Markup;
use super::names::Names;
use super::token::{Tag, Token};
use crate::lex::scan;
use crate::span::{At, Counter, Place};

/// Lexer that also accepts tags of known names with blanks inside, in another letter case, with full-width
/// brackets and slashes, or without the closing bracket; each has its [`Slips`](super::Slips).
#[derive(Clone, Debug)]
pub struct Tolerant {
    strict: Markup,
    reader: Reader,
}

/// Reads the tokens of the strict lexer. Only one of the two has an unfinished token at a time.
#[derive(Clone, Debug)]
struct Reader {
    names: Names,
    limit: usize,
    comments: bool,
    in_comment: bool,
    /// The unfinished tag, and the part of it from earlier text.
    head: Option<Head>,
    carry: String,
    /// True if only blanks and tags precede on this line, up to the last token.
    leads: bool,
    /// Start of the unfinished token, or the place after the last one.
    place: Counter,
}

impl Markup {
    /// Continues with tolerance for tags of these names. Reasoning marks that are not tags are text.
    #[must_use]
    pub fn tolerant(mut self, names: Names) -> Tolerant {
        self.leave_reasoning();
        let (limit, comments) = self.reads();
        let place = Counter::new(self.place());
        let reader = Reader {
            names,
            limit,
            comments,
            in_comment: false,
            head: None,
            carry: String::new(),
            leads: true,
            place,
        };
        Tolerant { strict: self, reader }
    }
}

impl Tolerant {
    /// Reads `text` and passes each token to `out` with the place it starts at.
    pub fn push(&mut self, text: &str, out: &mut impl FnMut(Token<'_>, At<'_>)) {
        let Tolerant { strict, reader } = self;
        strict.push(text, &mut |token, _| reader.token(token, out));
        if !strict.carry().is_empty() {
            reader.stop(out);
        }
    }

    /// Fast path of most text, before [`Tolerant::push`]: whether `text` continues text and contains the
    /// start of no other token.
    #[inline]
    pub fn passes(&self, text: &str) -> bool {
        // A `<` that the strict lexer skips as a less-than sign may begin a tag with blanks inside.
        self.reader.head.is_none() && self.strict.passes(text) && find(text).is_none()
    }

    /// Skips text for which [`Tolerant::passes`] holds.
    #[inline]
    pub fn pass(&mut self, text: &str) {
        self.strict.pass(text);
        self.reader.leads = leads(self.reader.leads, text);
        self.reader.place.add(text);
    }

    /// Ends the input. An unfinished token is emitted as text.
    pub fn finish(&mut self, out: &mut impl FnMut(Token<'_>, At<'_>)) {
        let Tolerant { strict, reader } = self;
        strict.finish(&mut |token, _| reader.token(token, out));
        reader.fail(out);
        reader.in_comment = false;
    }

    /// Text of the unfinished token.
    #[must_use]
    pub fn carry(&self) -> &str {
        if self.reader.carry.is_empty() { self.strict.carry() } else { &self.reader.carry }
    }

    /// The unfinished token if it is the beginning of a tag of a known name; at the end of a reply that is no
    /// text (F-204).
    #[must_use]
    pub fn half(&self) -> Option<&str> {
        let half = self.carry();
        (!self.reader.in_comment && self.reader.names.begin(half)).then_some(half)
    }

    /// Discards the unfinished token and returns its start.
    pub fn drop_carry(&mut self) -> Place {
        let start = self.reader.place.settle();
        self.reader.place.add(self.strict.carry());
        self.strict.drop_carry();
        self.reader.place.add(&std::mem::take(&mut self.reader.carry));
        self.reader.head = None;
        start
    }

    /// Place after the last token.
    #[must_use]
    pub fn place(&self) -> Place {
        self.reader.place.get()
    }
}

impl Reader {
    fn token(&mut self, token: Token<'_>, out: &mut impl FnMut(Token<'_>, At<'_>)) {
        match token {
            Token::Text(text) if !self.in_comment => return self.text(text, out),
            Token::CommentOpen => self.in_comment = self.comments,
            Token::CommentClose | Token::CommentEnd(_) => self.in_comment = false,
            _ => {}
        }
        self.stop(out);
        let token = match token {
            Token::Tag(tag) => Token::Tag(Tag { slips: self.names.case(tag.name), ..tag }),
            other => other,
        };
        self.emit(token, out);
    }

    fn text(&mut self, text: &str, out: &mut impl FnMut(Token<'_>, At<'_>)) {
        // `from`: start of the text not emitted yet; `begin`: start of the current tag, if it is not carried.
        let (mut from, mut begin, mut at) = (0, 0, 0);
        loop {
            let Some(head) = &mut self.head else {
                let Some(found) = find(&text[at..]) else { return self.plain(&text[from..], out) };
                begin = at + found;
                let bracket = if text.as_bytes()[begin] == b'<' { '<' } else { '＜' };
                let leads = leads(self.leads, &text[from..begin]);
                self.head = Some(Head::new(bracket, leads, &self.names));
                at = begin + bracket.len_utf8();
                continue;
            };
            let Some(c) = text[at..].chars().next() else {
                self.plain(&text[from..begin], out);
                self.carry.push_str(&text[begin..]);
                return;
            };
            let (next, len) = (head.step(c, &self.names), self.carry.len() + at - begin + c.len_utf8());
            match next {
                Next::Go | Next::End if len > self.limit => self.fail(out),
                Next::Go => at += c.len_utf8(),
                Next::Text => self.fail(out),
                Next::End | Next::Missing => {
                    at += if next == Next::End { c.len_utf8() } else { 0 };
                    self.plain(&text[from..begin], out);
                    self.tag(&text[begin..at], out);
                    (from, begin) = (at, at);
                }
            }
        }
    }

    /// Ends a tag before a token that begins with `<`.
    fn stop(&mut self, out: &mut impl FnMut(Token<'_>, At<'_>)) {
        match self.head.as_mut().map(|head| head.step('<', &self.names)) {
            Some(Next::Missing) => self.tag("", out),
            _ => self.fail(out),
        }
    }

    /// Treats the current tag as text, and emits the part of it from earlier text.
    fn fail(&mut self, out: &mut impl FnMut(Token<'_>, At<'_>)) {
        self.head = None;
        if !self.carry.is_empty() {
            let mut text = std::mem::take(&mut self.carry);
            self.plain(&text, out);
            text.clear();
            self.carry = text;
        }
    }

    /// Emits the current tag, which ends with `tail`.
    fn tag(&mut self, tail: &str, out: &mut impl FnMut(Token<'_>, At<'_>)) {
        let Some(head) = self.head.take() else { return };
        let mut whole = std::mem::take(&mut self.carry);
        let raw = if whole.is_empty() {
            tail
        } else {
            whole.push_str(tail);
            &whole
        };
        let mut tag = Tag::loose(raw, head.close, head.name_len());
        tag.slips = head.slips.and(self.names.case(tag.name));
        self.emit(Token::Tag(tag), out);
        whole.clear();
        self.carry = whole;
    }

    fn plain(&mut self, text: &str, out: &mut impl FnMut(Token<'_>, At<'_>)) {
        if !text.is_empty() {
            self.leads = leads(self.leads, text);
            self.emit(Token::Text(text), out);
        }
    }

    fn emit(&mut self, token: Token<'_>, out: &mut impl FnMut(Token<'_>, At<'_>)) {
        let raw = token.raw();
        out(token, At::counted(&mut self.place));
        self.place.add(raw);
    }
}

/// Returns whether the last line of `text` has only blanks; `before` is the answer for the line it continues.
fn leads(before: bool, text: &str) -> bool {
    match text.bytes().rev().find(|byte| !matches!(byte, b' ' | b'\t')) {
        Some(last) => matches!(last, b'\n' | b'\r'),
        None => before,
    }
}

/// Offset of the next opening bracket.
fn find(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        at += scan::find2(b'<', "＜".as_bytes()[0], &bytes[at..])?;
        if bytes[at] == b'<' || text[at..].starts_with('＜') {
            return Some(at);
        }
        // Many Chinese characters begin with the same byte.
        at += "＜".len();
    }
}
