//! Markup tokens: text, tags, comment marks and literal marks; on request also the marks of reasoning that are no tags.
//!
//! `<` starts a tag only if `/` or an ASCII letter follows directly and `>` closes valid tag syntax (T-028);
//! anything else is text. A tag holds no second `<`, so no byte is ever read twice.

use super::marks::{self, Mark, Seen, Word, is_name};
use super::scan;
use super::space::is_space;
use crate::span::{At, Counter, Place};

/// One token, borrowed from the chunk or from the lexer's own small buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// A run of text; neighbouring runs belong together.
    Text(&'a str),
    /// A complete tag.
    Tag(Tag<'a>),
    /// `<!--`
    CommentOpen,
    /// `-->` inside a comment.
    CommentClose,
    /// The literal mark the lexer was given.
    Mark(&'a str),
    /// A mark of reasoning that is no tag, outside of comments.
    Reasoning(&'a str, Mark),
}

impl<'a> Token<'a> {
    /// The token as it was written.
    #[must_use]
    pub fn raw(&self) -> &'a str {
        match self {
            Token::Text(text) | Token::Mark(text) | Token::Reasoning(text, _) => text,
            Token::Tag(tag) => tag.raw,
            Token::CommentOpen => COMMENT_OPEN,
            Token::CommentClose => COMMENT_CLOSE,
        }
    }
}

/// A complete tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag<'a> {
    /// As it was written, from `<` to `>`.
    pub raw: &'a str,
    /// Its name, case as written.
    pub name: &'a str,
    /// Opening, closing or both.
    pub kind: TagKind,
}

/// Opening, closing or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagKind {
    /// `<name ...>`
    Open,
    /// `</name>`
    Close,
    /// `<name ... />`
    SelfClosing,
}

/// One attribute of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its value without quotes; `None` for a bare name.
    pub value: Option<&'a str>,
    /// The quote around the value, if there is one.
    pub quote: Option<char>,
}

impl<'a> Tag<'a> {
    /// Reads a tag out of text that is known to be exactly one.
    fn of(raw: &'a str) -> Tag<'a> {
        let close = raw.as_bytes()[1] == b'/';
        let start = 1 + usize::from(close);
        let len = raw[start..].bytes().take_while(|&b| is_name(b)).count();
        let kind = if close {
            TagKind::Close
        } else if raw.ends_with("/>") {
            TagKind::SelfClosing
        } else {
            TagKind::Open
        };
        Tag { raw, name: &raw[start..start + len], kind }
    }

    /// What stands between the name and the end of the tag, as it was written.
    #[must_use]
    pub fn rest(&self) -> &'a str {
        let start = self.raw.find(self.name).map_or(0, |at| at + self.name.len());
        let end = self.raw.len() - if self.kind == TagKind::SelfClosing { 2 } else { 1 };
        &self.raw[start..end.max(start)]
    }

    /// The attributes in order.
    pub fn attributes(&self) -> impl Iterator<Item = Attribute<'a>> {
        let mut rest = self.rest();
        std::iter::from_fn(move || {
            rest = rest.trim_start_matches(is_space);
            let len = rest.bytes().take_while(|&b| is_attribute_name(b)).count();
            if len == 0 {
                return None;
            }
            let name = &rest[..len];
            rest = rest[len..].trim_start_matches(is_space);
            let Some(value) = rest.strip_prefix('=') else {
                return Some(Attribute { name, value: None, quote: None });
            };
            let value = value.trim_start_matches(is_space);
            let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
            let end;
            (end, rest) = match quote {
                Some(quote) => {
                    let end = value[1..].find(quote).map_or(value.len(), |at| at + 1);
                    (&value[1..end], value.get(end + 1..).unwrap_or(""))
                }
                None => value.split_at(value.find(is_space).unwrap_or(value.len())),
            };
            Some(Attribute { name, value: Some(end), quote })
        })
    }
}

const COMMENT_OPEN: &str = "<!--";
const COMMENT_CLOSE: &str = "-->";

/// Where the lexer is inside an unfinished token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Text,
    Lt,
    Bang(u8),
    Mark(usize),
    Word(Word),
    Slash,
    Name,
    Space,
    AttributeName,
    AfterAttributeName,
    Equals,
    Quoted(u8),
    Unquoted,
    SelfSlash,
    Dashes(u8),
}

enum Step {
    Go(State),
    /// The byte ends the token and belongs to it.
    Tag,
    CommentOpen,
    CommentClose,
    Mark,
    Reasoning(Mark),
    /// The byte does not fit: what came before it is text.
    Text,
}

/// The lexer.
#[derive(Clone, Debug)]
pub struct Markup {
    state: State,
    in_comment: bool,
    carry: String,
    /// Start of the unfinished token, or the place after the last token.
    place: Counter,
    mark: &'static str,
    limit: usize,
    /// Whether marks of reasoning are told that are no tags.
    reasoning: bool,
    /// Whether `<!--` begins a comment.
    comments: bool,
}

impl Markup {
    /// A lexer at the start of a reply. `mark` is a literal that begins with `<<`, or empty; a tag longer than
    /// `limit` bytes is text.
    #[must_use]
    pub fn new(mark: &'static str, limit: usize) -> Markup {
        Markup::at(Place::START, mark, limit)
    }

    /// A lexer that goes on at `place`.
    #[must_use]
    pub fn at(place: Place, mark: &'static str, limit: usize) -> Markup {
        Markup {
            state: State::Text,
            in_comment: false,
            carry: String::new(),
            place: Counter::new(place),
            mark,
            limit,
            reasoning: false,
            comments: true,
        }
    }

    /// Tells marks of reasoning that are no tags, such as `[THINK]`, as [`Token::Reasoning`].
    #[must_use]
    pub fn with_reasoning(self) -> Markup {
        Markup { reasoning: true, ..self }
    }

    /// From now on such marks are text.
    pub fn leave_reasoning(&mut self) {
        self.reasoning = false;
    }

    /// Reads what follows `<!--` like any text.
    #[must_use]
    pub fn without_comments(self) -> Markup {
        Markup { comments: false, ..self }
    }

    /// Reads `text`; `out` gets each token with the place it starts at.
    #[inline]
    pub fn push(&mut self, text: &str, out: &mut impl FnMut(Token<'_>, At<'_>)) {
        let bytes = text.as_bytes();
        // `from` is where the token under way starts in this chunk; a carried one starts before it.
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
            match self.step(byte, self.carry.len() + at - from) {
                Step::Go(state) => {
                    self.state = state;
                    at += 1;
                }
                Step::Text => {
                    let first = self.carry.bytes().next().unwrap_or(bytes[from]);
                    let literal = matches!(self.state, State::Mark(_) | State::Word(_));
                    self.state = State::Text;
                    // A word may fail inside of a character.
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

    /// Where the next token but text may begin.
    #[inline]
    fn find(&self, bytes: &[u8]) -> Option<usize> {
        match (self.in_comment, self.reasoning) {
            (false, false) => find_tag(bytes),
            (false, true) => find_mark(bytes),
            (true, _) => scan::find2(b'<', b'-', bytes),
        }
    }

    /// A failed literal mark: its first `<` is text, a later one may begin a tag or a mark again.
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
        // At most the mark's length is read again, and only its own characters.
        let mut held = std::mem::take(&mut self.carry);
        held.push_str(&text[from..at]);
        self.text(&held[..1], out);
        self.push(&held[1..], out);
        (at, at)
    }

    /// Ends the input. An unfinished token is text; `out` gets it as the last token.
    pub fn finish(&mut self, out: &mut impl FnMut(Token<'_>, At<'_>)) {
        if matches!(self.state, State::Mark(_)) {
            // Half a mark may hold a whole tag: `<<ParsingError>`.
            let held = std::mem::take(&mut self.carry);
            self.state = State::Text;
            self.text(&held[..1], out);
            self.push(&held[1..], out);
        }
        self.state = State::Text;
        self.in_comment = false;
        self.token("", out, text_token);
    }

    /// The unfinished token.
    #[must_use]
    pub fn carry(&self) -> &str {
        &self.carry
    }

    /// Forgets the unfinished token and returns its start.
    pub fn drop_carry(&mut self) -> Place {
        let start = self.place.settle();
        self.place.add(&std::mem::take(&mut self.carry));
        self.state = State::Text;
        start
    }

    /// The place after the last token.
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

    /// Hands on the carried bytes and `tail` as one token.
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
                self.in_comment = self.comments;
                self.token(tail, out, |_| Token::CommentOpen);
            }
            Step::CommentClose => {
                self.in_comment = false;
                // More than two dashes: the surplus is text of the comment.
                let surplus = self.carry.len() + tail.len() - COMMENT_CLOSE.len();
                if surplus > 0 {
                    let mut whole = std::mem::take(&mut self.carry);
                    whole.push_str(tail);
                    self.text(&whole[..surplus], out);
                    self.token(COMMENT_CLOSE, out, |_| Token::CommentClose);
                } else {
                    self.token(tail, out, |_| Token::CommentClose);
                }
            }
            Step::Mark => self.token(tail, out, mark_token),
            Step::Reasoning(mark) => {
                let mark = *mark;
                self.token(tail, out, |raw| Token::Reasoning(raw, mark));
            }
            Step::Go(_) | Step::Text => {}
        }
    }

    /// One byte of an unfinished token that is `len` bytes long.
    #[inline]
    fn step(&self, byte: u8, len: usize) -> Step {
        let inside_character = (0x80..0xC0).contains(&byte);
        if len >= self.limit && !inside_character {
            return Step::Text;
        }
        let space = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        match self.state {
            State::Text => Step::Text,
            State::Lt => match byte {
                b'/' => Step::Go(State::Slash),
                b'!' => Step::Go(State::Bang(0)),
                b'<' if !self.mark.is_empty() => Step::Go(State::Mark(2)),
                b'|' if self.reasoning && !self.in_comment => {
                    Step::Go(State::Word(Word::default().after(b'<').after(b'|')))
                }
                b if b.is_ascii_alphabetic() => Step::Go(State::Name),
                _ => Step::Text,
            },
            State::Bang(dashes) => match (byte, dashes) {
                (b'-', 0) => Step::Go(State::Bang(1)),
                (b'-', _) => Step::CommentOpen,
                _ => Step::Text,
            },
            State::Mark(matched) => {
                if self.mark.as_bytes().get(matched) != Some(&byte) {
                    Step::Text
                } else if matched + 1 == self.mark.len() {
                    Step::Mark
                } else {
                    Step::Go(State::Mark(matched + 1))
                }
            }
            State::Word(mut word) => match word.byte(byte) {
                Seen::No => Step::Text,
                Seen::Part => Step::Go(State::Word(word)),
                Seen::Mark(mark, _) => Step::Reasoning(mark),
            },
            State::Slash if byte.is_ascii_alphabetic() => Step::Go(State::Name),
            State::Slash => Step::Text,
            State::Name => match byte {
                b'>' => Step::Tag,
                b'/' => Step::Go(State::SelfSlash),
                // `-->` ends a comment also right after a name.
                b'-' if self.in_comment => Step::Text,
                b if is_name(b) => Step::Go(State::Name),
                _ if space => Step::Go(State::Space),
                _ => Step::Text,
            },
            State::Space | State::AfterAttributeName => match byte {
                b'>' => Step::Tag,
                b'/' => Step::Go(State::SelfSlash),
                b'=' if self.state == State::AfterAttributeName => Step::Go(State::Equals),
                b if is_attribute_start(b) => Step::Go(State::AttributeName),
                _ if space => Step::Go(self.state),
                _ => Step::Text,
            },
            State::AttributeName => match byte {
                b'>' => Step::Tag,
                b'/' => Step::Go(State::SelfSlash),
                b'=' => Step::Go(State::Equals),
                b'-' if self.in_comment => Step::Text,
                b if is_attribute_name(b) => Step::Go(State::AttributeName),
                _ if space => Step::Go(State::AfterAttributeName),
                _ => Step::Text,
            },
            State::Equals => match byte {
                b'"' | b'\'' => Step::Go(State::Quoted(byte)),
                b'<' | b'>' | b'=' | b'`' => Step::Text,
                _ if space => Step::Go(State::Equals),
                _ => Step::Go(State::Unquoted),
            },
            State::Quoted(quote) => match byte {
                b if b == quote => Step::Go(State::Space),
                b'<' => Step::Text,
                _ => Step::Go(self.state),
            },
            State::Unquoted => match byte {
                b'>' => Step::Tag,
                b'<' | b'"' | b'\'' | b'=' | b'`' => Step::Text,
                _ if space => Step::Go(State::Space),
                _ => Step::Go(State::Unquoted),
            },
            State::SelfSlash if byte == b'>' => Step::Tag,
            State::SelfSlash => Step::Text,
            State::Dashes(seen) => match byte {
                b'-' => Step::Go(State::Dashes(2)),
                b'>' if seen == 2 => Step::CommentClose,
                _ => Step::Text,
            },
        }
    }
}

fn text_token(raw: &str) -> Token<'_> {
    Token::Text(raw)
}

fn mark_token(raw: &str) -> Token<'_> {
    Token::Mark(raw)
}

/// Where a tag or a comment may begin.
#[inline]
fn find_tag(bytes: &[u8]) -> Option<usize> {
    let mut at = scan::find(b'<', bytes)?;
    while is_less(bytes, at) {
        at += 1 + scan::find(b'<', &bytes[at + 1..])?;
    }
    Some(at)
}

/// Whether the `<` at `at` is text whatever comes before it or is taken out around it, so that it does not cut the text.
/// Text that begins with `<` is a token of its own: what came to no end begins with it.
fn is_less(bytes: &[u8], at: usize) -> bool {
    at > 0 && matches!(bytes.get(at + 1), Some(b' ' | b'=' | b'-' | b'\n' | b'0'..=b'9'))
}

/// Where a tag, a comment or a mark of reasoning may begin.
fn find_mark(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += marks::find(&bytes[at..])?;
        let next = bytes.get(at + 1);
        let begins = match bytes[at] {
            b'<' => !is_less(bytes, at),
            // Most brackets are told from marks at once, so that they do not cut the text. One in front of another mark
            // is a token of its own.
            b'[' => matches!(next, None | Some(b'T' | b'/' | b'<' | b'[' | 0xE2)),
            _ => bytes[at..].starts_with("◁".as_bytes()),
        };
        if begins {
            return Some(at);
        }
        at += 1;
    }
}

fn is_attribute_start(b: u8) -> bool {
    b.is_ascii_alphabetic() || matches!(b, b'_' | b':')
}

fn is_attribute_name(b: u8) -> bool {
    is_name(b)
}
