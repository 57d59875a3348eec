//! Strict markup lexer: finds where tokens begin, reads them byte by byte, and buffers the unfinished one.

use super::lexer_state::{LexerState, LexerStep, MarkupSyntax};
use super::token::{COMMENT_BANG, COMMENT_CLOSE, MarkupTag, MarkupToken};
use crate::lex::marks::{self, LiteralMatcher};
use crate::lex::scan::{self, SignMasks};
use crate::span::{LazyPlace, Place, PlaceCounter};

/// The strict lexer.
#[derive(Clone, Debug)]
pub struct MarkupLexer {
    state: LexerState,
    syntax: MarkupSyntax,
    /// Unfinished token.
    carry: String,
    /// Start of the unfinished token, or the place after the last one.
    place: PlaceCounter,
    /// True if `<!--` begins a comment.
    reads_comments: bool,
}

impl MarkupLexer {
    /// Creates a lexer at the start of a reply. `mark` is a literal that begins with `<<`, such as
    /// `<<ParsingError>>`, or empty. A tag longer than `limit` bytes is text.
    #[must_use]
    pub fn new(mark: &'static str, limit: usize) -> MarkupLexer {
        MarkupLexer::from_place(Place::START, mark, limit)
    }

    /// Creates a lexer that starts at `place`.
    #[must_use]
    pub fn from_place(place: Place, mark: &'static str, limit: usize) -> MarkupLexer {
        MarkupLexer {
            state: LexerState::Text,
            syntax: MarkupSyntax {
                mark,
                limit,
                reads_reasoning: false,
                is_in_comment: false,
                has_html_comments: false,
            },
            carry: String::new(),
            place: PlaceCounter::new(place),
            reads_comments: true,
        }
    }

    /// Emits reasoning marks that are not tags, such as `[THINK]`, as [`MarkupToken::Reasoning`].
    #[must_use]
    pub fn with_reasoning(mut self) -> MarkupLexer {
        self.syntax.reads_reasoning = true;
        self
    }

    /// Treats reasoning marks that are not tags as text from now on.
    pub fn leave_reasoning(&mut self) {
        self.syntax.reads_reasoning = false;
    }

    /// Ends comments as HTML does: also at `--!>`, and `<!-->` and `<!--->` are empty ones.
    #[must_use]
    pub fn with_html_comments(mut self) -> MarkupLexer {
        self.syntax.has_html_comments = true;
        self
    }

    /// Reads the text after `<!--` like any other.
    #[must_use]
    pub fn without_comments(self) -> MarkupLexer {
        MarkupLexer { reads_comments: false, ..self }
    }

    /// Maximum length of a tag in bytes.
    pub(super) fn tag_limit(&self) -> usize {
        self.syntax.limit
    }

    /// Returns whether `<!--` begins a comment.
    pub(super) fn reads_comments(&self) -> bool {
        self.reads_comments
    }

    /// Reads `text` and passes each token to `out` with the place it starts at.
    #[inline]
    pub fn push(&mut self, text: &str, out: &mut impl FnMut(MarkupToken<'_>, LazyPlace<'_>)) {
        let bytes = text.as_bytes();
        // Start of the current token in this chunk; a carried token starts before the chunk.
        let mut from = 0;
        let mut at = 0;
        loop {
            if matches!(self.state, LexerState::Text) {
                let Some(found) = self.find_token(&bytes[at..]) else {
                    self.emit_text(&text[from..], out);
                    return;
                };
                at += found;
                self.emit_text(&text[from..at], out);
                from = at;
                self.state = match bytes[at] {
                    b'<' => LexerState::Lt,
                    b'-' => LexerState::Dashes(1),
                    byte => LexerState::ReasoningMark(LiteralMatcher::default().with_byte(byte)),
                };
                at += 1;
            }
            let Some(&byte) = bytes.get(at) else {
                self.carry.push_str(&text[from..]);
                return;
            };
            match self.state.step(byte, self.carry.len() + at - from, &self.syntax) {
                LexerStep::Continue(state) => {
                    self.state = state;
                    at += 1;
                }
                LexerStep::Mismatch => {
                    let first = self.carry.bytes().next().unwrap_or(bytes[from]);
                    let is_mark = matches!(self.state, LexerState::Mark(_) | LexerState::ReasoningMark(_));
                    self.state = LexerState::Text;
                    // The mismatch with a mark may be inside a character, such as `◁`.
                    at = text.floor_char_boundary(at);
                    if is_mark && first == b'<' {
                        (from, at) = self.split_mark(text, from, at, out);
                    } else {
                        self.emit_token(&text[from..at], out, text_token);
                        from = at;
                    }
                }
                step => {
                    at += 1;
                    self.state = LexerState::Text;
                    self.emit_step(&step, &text[from..at], out);
                    from = at;
                }
            }
        }
    }

    /// Fast path of most text, before [`MarkupLexer::push`]: whether `text` continues text and contains the
    /// start of no other token.
    #[inline]
    pub fn is_plain_text(&self, text: &str) -> bool {
        matches!(self.state, LexerState::Text) && self.find_token(text.as_bytes()).is_none()
    }

    /// Like [`MarkupLexer::is_plain_text`], for text whose masks are known.
    #[inline]
    pub fn is_plain_with_signs(&self, text: &str, signs: SignMasks) -> bool {
        if !matches!(self.state, LexerState::Text) || self.syntax.is_in_comment {
            return false;
        }
        let mut marks = signs.marks;
        while marks != 0 {
            let at = marks.trailing_zeros() as usize;
            if may_begin_token(text.as_bytes(), at, self.syntax.reads_reasoning) {
                return false;
            }
            marks &= marks - 1;
        }
        true
    }

    /// Skips text for which [`MarkupLexer::is_plain_text`] holds.
    #[inline]
    pub fn skip_text(&mut self, text: &str) {
        self.place.add(text);
    }

    /// Like [`MarkupLexer::skip_text`], for text whose masks are known.
    #[inline]
    pub fn skip_with_signs(&mut self, text: &str, signs: SignMasks) {
        self.place.add_with_signs(text.len(), signs.line_feeds, signs.continuations);
    }

    /// Offset where the next token other than text may begin.
    #[inline]
    fn find_token(&self, bytes: &[u8]) -> Option<usize> {
        match (self.syntax.is_in_comment, self.syntax.reads_reasoning) {
            (false, false) => find_tag(bytes),
            (false, true) => find_mark(bytes),
            (true, _) => scan::find2(b'<', b'-', bytes),
        }
    }

    /// Splits a failed mark, which ends at `at`: its first `<` is text, a later one may begin a tag or mark.
    /// Returns the new start of the current token, and the offset where reading continues.
    fn split_mark(
        &mut self,
        text: &str,
        from: usize,
        at: usize,
        out: &mut impl FnMut(MarkupToken<'_>, LazyPlace<'_>),
    ) -> (usize, usize) {
        if self.carry.is_empty() {
            self.emit_text(&text[from..=from], out);
            return (from + 1, from + 1);
        }
        // Reads the characters of the failed mark again: at most the length of a mark.
        let mut carry = std::mem::take(&mut self.carry);
        carry.push_str(&text[from..at]);
        self.emit_text(&carry[..1], out);
        self.push(&carry[1..], out);
        (at, at)
    }

    /// Ends the input. An unfinished token is emitted as text.
    pub fn finish(&mut self, out: &mut impl FnMut(MarkupToken<'_>, LazyPlace<'_>)) {
        if matches!(self.state, LexerState::Mark(_)) {
            // Half a mark may contain a complete tag: `<<ParsingError>`.
            let carry = std::mem::take(&mut self.carry);
            self.state = LexerState::Text;
            self.emit_text(&carry[..1], out);
            self.push(&carry[1..], out);
        }
        self.state = LexerState::Text;
        self.syntax.is_in_comment = false;
        self.emit_token("", out, text_token);
    }

    /// Text of the unfinished token.
    #[must_use]
    pub fn carry(&self) -> &str {
        &self.carry
    }

    /// Discards the unfinished token and returns its start.
    pub fn drop_carry(&mut self) -> Place {
        let start = self.place.count_pending();
        self.place.add(&std::mem::take(&mut self.carry));
        self.state = LexerState::Text;
        start
    }

    /// Place after the last token.
    #[must_use]
    pub fn place(&self) -> Place {
        self.place.place()
    }

    #[inline]
    fn emit_text(&mut self, text: &str, out: &mut impl FnMut(MarkupToken<'_>, LazyPlace<'_>)) {
        if !text.is_empty() {
            out(MarkupToken::Text(text), LazyPlace::from_counter(&mut self.place));
            self.place.add(text);
        }
    }

    /// Emits the carried bytes and `tail` as one token.
    fn emit_token(
        &mut self,
        tail: &str,
        out: &mut impl FnMut(MarkupToken<'_>, LazyPlace<'_>),
        make_token: impl for<'t> Fn(&'t str) -> MarkupToken<'t>,
    ) {
        if self.carry.is_empty() {
            if !tail.is_empty() {
                out(make_token(tail), LazyPlace::from_counter(&mut self.place));
                self.place.add(tail);
            }
        } else {
            let mut token_text = std::mem::take(&mut self.carry);
            token_text.push_str(tail);
            out(make_token(&token_text), LazyPlace::from_counter(&mut self.place));
            self.place.add(&token_text);
            token_text.clear();
            self.carry = token_text;
        }
    }

    /// Emits the token that `step` ends: the carried bytes and `tail`.
    fn emit_step(
        &mut self,
        step: &LexerStep,
        tail: &str,
        out: &mut impl FnMut(MarkupToken<'_>, LazyPlace<'_>),
    ) {
        match step {
            LexerStep::Tag => self.emit_token(tail, out, |raw| MarkupToken::Tag(MarkupTag::parse(raw))),
            LexerStep::CommentOpen => {
                self.syntax.is_in_comment = self.reads_comments;
                if self.reads_comments && self.syntax.has_html_comments {
                    self.state = LexerState::CommentStart { has_dash: false };
                }
                self.emit_token(tail, out, |_| MarkupToken::CommentOpen);
            }
            LexerStep::CommentClose => {
                self.emit_comment_end(COMMENT_CLOSE.len(), tail, out, |_| MarkupToken::CommentClose)
            }
            LexerStep::HtmlCommentClose => {
                self.emit_comment_end(COMMENT_BANG.len(), tail, out, html_comment_close_token)
            }
            LexerStep::Mark => self.emit_token(tail, out, mark_token),
            LexerStep::Reasoning(mark) => {
                let mark = *mark;
                self.emit_token(tail, out, |raw| MarkupToken::Reasoning(raw, mark));
            }
            // Steps that end no token; `push` handles them.
            LexerStep::Continue(_) | LexerStep::Mismatch => {}
        }
    }

    /// Emits the end of a comment, a token of at most `len` bytes. More dashes before it are text of the
    /// comment.
    fn emit_comment_end(
        &mut self,
        len: usize,
        tail: &str,
        out: &mut impl FnMut(MarkupToken<'_>, LazyPlace<'_>),
        make_token: impl for<'t> Fn(&'t str) -> MarkupToken<'t>,
    ) {
        self.syntax.is_in_comment = false;
        let surplus_len = (self.carry.len() + tail.len()).saturating_sub(len);
        if surplus_len > 0 {
            let mut token_text = std::mem::take(&mut self.carry);
            token_text.push_str(tail);
            self.emit_text(&token_text[..surplus_len], out);
            self.emit_token(&token_text[surplus_len..], out, make_token);
        } else {
            self.emit_token(tail, out, make_token);
        }
    }
}

fn html_comment_close_token(raw: &str) -> MarkupToken<'_> {
    MarkupToken::HtmlCommentClose(raw)
}

fn text_token(raw: &str) -> MarkupToken<'_> {
    MarkupToken::Text(raw)
}

fn mark_token(raw: &str) -> MarkupToken<'_> {
    MarkupToken::Mark(raw)
}

/// Offset where a tag or a comment may begin.
#[inline]
fn find_tag(bytes: &[u8]) -> Option<usize> {
    let mut at = scan::find(b'<', bytes)?;
    while is_less_than(bytes, at) {
        at += 1 + scan::find(b'<', &bytes[at + 1..])?;
    }
    Some(at)
}

/// Returns whether the `<` at `at` is a less-than sign, which begins no tag even if markup before it is
/// removed, so that it need not split the text. Not at offset 0: a text token that begins with `<` is an
/// unfinished tag (see `seam`).
fn is_less_than(bytes: &[u8], at: usize) -> bool {
    at > 0 && matches!(bytes.get(at + 1), Some(b' ' | b'=' | b'-' | b'\n' | b'0'..=b'9'))
}

/// Offset where a tag, a comment or a reasoning mark may begin.
#[inline]
fn find_mark(bytes: &[u8]) -> Option<usize> {
    let found = marks::find(bytes)?;
    find_mark_from(bytes, found)
}

/// Like [`find_mark`], from the candidate byte at `at` on.
fn find_mark_from(bytes: &[u8], mut at: usize) -> Option<usize> {
    while !may_begin_token(bytes, at, true) {
        at += 1;
        at += marks::find(&bytes[at..])?;
    }
    Some(at)
}

/// Returns whether the byte at `at` may begin a tag, a comment or, with `reads_reasoning`, a reasoning mark.
#[inline]
fn may_begin_token(bytes: &[u8], at: usize, reads_reasoning: bool) -> bool {
    match bytes[at] {
        b'<' => !is_less_than(bytes, at),
        _ if !reads_reasoning => false,
        // The byte after most brackets shows that they begin no mark, so that they do not split the text. A
        // bracket before the beginning of another mark does split it.
        b'[' => matches!(bytes.get(at + 1), None | Some(b'T' | b'/' | b'<' | b'[' | 0xE2)),
        0xE2 => bytes[at..].starts_with("◁".as_bytes()),
        _ => false,
    }
}
