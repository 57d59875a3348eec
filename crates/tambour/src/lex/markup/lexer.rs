//! Strict markup lexer: finds where tokens begin, reads them byte by byte, and buffers the unfinished one.

use super::step::{State, Step, Syntax};
use super::token::{COMMENT_BANG, COMMENT_CLOSE, Tag, Token};
use crate::lex::marks::{self, Word};
use crate::lex::scan;
use crate::lex::signs::Signs;
use crate::span::{At, Counter, Place};

/// The strict lexer.
#[derive(Clone, Debug)]
pub struct Markup {
    state: State,
    syntax: Syntax,
    carry: String,
    /// Start of the unfinished token, or the place after the last one.
    place: Counter,
    /// True if `<!--` begins a comment.
    comments: bool,
}

impl Markup {
    /// Creates a lexer at the start of a reply. `mark` is a literal that begins with `<<`, or empty; a tag
    /// longer than `limit` bytes is text.
    #[must_use]
    pub fn new(mark: &'static str, limit: usize) -> Markup {
        Markup::at(Place::START, mark, limit)
    }

    /// Creates a lexer that starts at `place`.
    #[must_use]
    pub fn at(place: Place, mark: &'static str, limit: usize) -> Markup {
        Markup {
            state: State::Text,
            syntax: Syntax { mark, limit, reasoning: false, in_comment: false, html: false },
            carry: String::new(),
            place: Counter::new(place),
            comments: true,
        }
    }

    /// Emits reasoning marks that are not tags, such as `[THINK]`, as [`Token::Reasoning`].
    #[must_use]
    pub fn with_reasoning(mut self) -> Markup {
        self.syntax.reasoning = true;
        self
    }

    /// Treats such marks as text from now on.
    pub fn leave_reasoning(&mut self) {
        self.syntax.reasoning = false;
    }

    /// Ends comments as HTML does: also at `--!>`, and `<!-->` and `<!--->` are empty ones.
    #[must_use]
    pub fn with_html_comments(mut self) -> Markup {
        self.syntax.html = true;
        self
    }

    /// Reads the text behind `<!--` like any other.
    #[must_use]
    pub fn without_comments(self) -> Markup {
        Markup { comments: false, ..self }
    }

    /// Most bytes of a tag, and whether `<!--` begins a comment.
    pub(super) fn reads(&self) -> (usize, bool) {
        (self.syntax.limit, self.comments)
    }

    /// Reads `text` and passes each token to `out` with the place it starts at.
    #[inline]
    pub fn push(&mut self, text: &str, out: &mut impl FnMut(Token<'_>, At<'_>)) {
        let bytes = text.as_bytes();
        // Start of the current token in this chunk; a carried token starts before the chunk.
        let mut from = 0;
        let mut at = 0;
        loop {
            if matches!(self.state, State::Text) {
                let Some(found) = self.find(&bytes[at..]) else {
                    self.text(&text[from..], out);
                    return;
                };
                at += found;
                self.text(&text[from..at], out);
                from = at;
                self.state = match bytes[at] {
                    b'<' => State::Lt,
                    b'-' => State::Dashes(1),
                    byte => State::Word(Word::default().after(byte)),
                };
                at += 1;
            }
            let Some(&byte) = bytes.get(at) else {
                self.carry.push_str(&text[from..]);
                return;
            };
            match self.state.step(byte, self.carry.len() + at - from, &self.syntax) {
                Step::Go(state) => {
                    self.state = state;
                    at += 1;
                }
                Step::Text => {
                    let first = self.carry.bytes().next().unwrap_or(bytes[from]);
                    let literal = matches!(self.state, State::Mark(_) | State::Word(_));
                    self.state = State::Text;
                    // A literal mark may fail inside a character.
                    at = text.floor_char_boundary(at);
                    if literal && first == b'<' {
                        (from, at) = self.split_mark(text, from, at, out);
                    } else {
                        self.token(&text[from..at], out, text_token);
                        from = at;
                    }
                }
                done => {
                    at += 1;
                    self.state = State::Text;
                    self.emit(&done, &text[from..at], out);
                    from = at;
                }
            }
        }
    }

    /// Fast path of most text, before [`Markup::push`]: whether `text` continues text and contains the start
    /// of no other token.
    #[inline]
    pub fn passes(&self, text: &str) -> bool {
        matches!(self.state, State::Text) && self.find(text.as_bytes()).is_none()
    }

    /// Like [`Markup::passes`], for text with known signs.
    #[inline]
    pub fn passes_with(&self, text: &str, signs: Signs) -> bool {
        if !matches!(self.state, State::Text) || self.syntax.in_comment {
            return false;
        }
        let mut marks = signs.marks;
        while marks != 0 {
            let at = marks.trailing_zeros() as usize;
            if begins(text.as_bytes(), at, self.syntax.reasoning) {
                return false;
            }
            marks &= marks - 1;
        }
        true
    }

    /// Skips text for which [`Markup::passes`] holds.
    #[inline]
    pub fn pass(&mut self, text: &str) {
        self.place.add(text);
    }

    /// Like [`Markup::pass`], for text with known signs.
    #[inline]
    pub fn pass_with(&mut self, text: &str, signs: Signs) {
        self.place.add_with(text, signs.lines, signs.ascii);
    }

    /// Offset where the next token other than text may begin.
    #[inline]
    fn find(&self, bytes: &[u8]) -> Option<usize> {
        match (self.syntax.in_comment, self.syntax.reasoning) {
            (false, false) => find_tag(bytes),
            (false, true) => find_mark(bytes),
            (true, _) => scan::find2(b'<', b'-', bytes),
        }
    }

    /// Splits a failed literal mark: its first `<` is text, a later one may begin a tag or mark.
    fn split_mark(
        &mut self,
        text: &str,
        from: usize,
        at: usize,
        out: &mut impl FnMut(Token<'_>, At<'_>),
    ) -> (usize, usize) {
        if self.carry.is_empty() {
            self.text(&text[from..=from], out);
            return (from + 1, from + 1);
        }
        // Rereads at most the length of the mark, and only its own characters.
        let mut held = std::mem::take(&mut self.carry);
        held.push_str(&text[from..at]);
        self.text(&held[..1], out);
        self.push(&held[1..], out);
        (at, at)
    }

    /// Ends the input. An unfinished token is emitted as text.
    pub fn finish(&mut self, out: &mut impl FnMut(Token<'_>, At<'_>)) {
        if matches!(self.state, State::Mark(_)) {
            // Half a mark may contain a whole tag: `<<ParsingError>`.
            let held = std::mem::take(&mut self.carry);
            self.state = State::Text;
            self.text(&held[..1], out);
            self.push(&held[1..], out);
        }
        self.state = State::Text;
        self.syntax.in_comment = false;
        self.token("", out, text_token);
    }

    /// Text of the unfinished token.
    #[must_use]
    pub fn carry(&self) -> &str {
        &self.carry
    }

    /// Discards the unfinished token and returns its start.
    pub fn drop_carry(&mut self) -> Place {
        let start = self.place.settle();
        self.place.add(&std::mem::take(&mut self.carry));
        self.state = State::Text;
        start
    }

    /// Place after the last token.
    #[must_use]
    pub fn place(&self) -> Place {
        self.place.get()
    }

    #[inline]
    fn text(&mut self, text: &str, out: &mut impl FnMut(Token<'_>, At<'_>)) {
        if !text.is_empty() {
            out(Token::Text(text), At::counted(&mut self.place));
            self.place.add(text);
        }
    }

    /// Emits the carried bytes and `tail` as one token.
    fn token(
        &mut self,
        tail: &str,
        out: &mut impl FnMut(Token<'_>, At<'_>),
        make: impl for<'t> Fn(&'t str) -> Token<'t>,
    ) {
        if self.carry.is_empty() {
            if !tail.is_empty() {
                out(make(tail), At::counted(&mut self.place));
                self.place.add(tail);
            }
        } else {
            let mut whole = std::mem::take(&mut self.carry);
            whole.push_str(tail);
            out(make(&whole), At::counted(&mut self.place));
            self.place.add(&whole);
            whole.clear();
            self.carry = whole;
        }
    }

    fn emit(&mut self, done: &Step, tail: &str, out: &mut impl FnMut(Token<'_>, At<'_>)) {
        match done {
            Step::Tag => self.token(tail, out, |raw| Token::Tag(Tag::of(raw))),
            Step::CommentOpen => {
                self.syntax.in_comment = self.comments;
                if self.comments && self.syntax.html {
                    self.state = State::Opened(false);
                }
                self.token(tail, out, |_| Token::CommentOpen);
            }
            Step::CommentClose => self.comment_end(COMMENT_CLOSE.len(), tail, out, |_| Token::CommentClose),
            Step::CommentEnd => self.comment_end(COMMENT_BANG.len(), tail, out, end_token),
            Step::Mark => self.token(tail, out, mark_token),
            Step::Reasoning(mark) => {
                let mark = *mark;
                self.token(tail, out, |raw| Token::Reasoning(raw, mark));
            }
            Step::Go(_) | Step::Text => {}
        }
    }

    /// Emits the end of a comment, a token of at most `len` bytes. More dashes before it are text of the
    /// comment.
    fn comment_end(
        &mut self,
        len: usize,
        tail: &str,
        out: &mut impl FnMut(Token<'_>, At<'_>),
        make: impl for<'t> Fn(&'t str) -> Token<'t>,
    ) {
        self.syntax.in_comment = false;
        let surplus = (self.carry.len() + tail.len()).saturating_sub(len);
        if surplus > 0 {
            let mut whole = std::mem::take(&mut self.carry);
            whole.push_str(tail);
            self.text(&whole[..surplus], out);
            self.token(&whole[surplus..], out, make);
        } else {
            self.token(tail, out, make);
        }
    }
}

fn end_token(raw: &str) -> Token<'_> {
    Token::CommentEnd(raw)
}

fn text_token(raw: &str) -> Token<'_> {
    Token::Text(raw)
}

fn mark_token(raw: &str) -> Token<'_> {
    Token::Mark(raw)
}

/// Offset where a tag or a comment may begin.
#[inline]
fn find_tag(bytes: &[u8]) -> Option<usize> {
    let mut at = scan::find(b'<', bytes)?;
    while is_less(bytes, at) {
        at += 1 + scan::find(b'<', &bytes[at + 1..])?;
    }
    Some(at)
}

/// Returns whether the `<` at `at` is text whatever precedes it or is removed around it, so that it need not
/// split the text. A token of text that begins with `<` is an unfinished tag, hence `at > 0`.
fn is_less(bytes: &[u8], at: usize) -> bool {
    at > 0 && matches!(bytes.get(at + 1), Some(b' ' | b'=' | b'-' | b'\n' | b'0'..=b'9'))
}

/// Offset where a tag, a comment or a reasoning mark may begin.
#[inline]
fn find_mark(bytes: &[u8]) -> Option<usize> {
    let found = marks::find(bytes)?;
    begins_mark(bytes, found)
}

/// Offset of the next such byte from `at` on.
fn begins_mark(bytes: &[u8], mut at: usize) -> Option<usize> {
    while !begins(bytes, at, true) {
        at += 1;
        at += marks::find(&bytes[at..])?;
    }
    Some(at)
}

/// Returns whether the byte at `at` may begin a tag or comment or, if these are read, a reasoning mark.
#[inline]
fn begins(bytes: &[u8], at: usize, reasoning: bool) -> bool {
    match bytes[at] {
        b'<' => !is_less(bytes, at),
        _ if !reasoning => false,
        // Most brackets can be told from marks at once, so that they do not split the text. A bracket before
        // another mark is a token of its own.
        b'[' => matches!(bytes.get(at + 1), None | Some(b'T' | b'/' | b'<' | b'[' | 0xE2)),
        0xE2 => bytes[at..].starts_with("◁".as_bytes()),
        _ => false,
    }
}
