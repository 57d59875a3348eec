//! Markdown whose tags may be in code (F-105): a tag is held until that is known, at most to the end of its
//! line.

use crate::lex::code::{Code, Inside, Stop};
use crate::lex::marks::Mark;
use crate::lex::markup::{Slips, Tag, TagKind, Token};
use crate::lex::scan;
use crate::lex::space::{is_blank, is_space};
use crate::span::Place;

/// Position of a tag, which decides whether it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stand {
    /// In text: the tag counts.
    Markup,
    /// In a code span.
    Span,
    /// In a fence.
    Fence,
    /// After an open backtick on its line.
    Undecided,
}

/// A held token.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    raw: String,
    place: Place,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    Text,
    Tag { name: (usize, usize), kind: TagKind, slips: Slips },
    CommentOpen,
    CommentClose,
    CommentEnd,
    Reasoning(Mark),
}

impl Kept {
    fn new(token: &Token<'_>, place: Place) -> Kept {
        let form = match token {
            Token::Tag(tag) => {
                let from = tag.name.as_ptr() as usize - tag.raw.as_ptr() as usize;
                Form::Tag { name: (from, from + tag.name.len()), kind: tag.kind, slips: tag.slips }
            }
            Token::CommentOpen => Form::CommentOpen,
            Token::CommentClose => Form::CommentClose,
            Token::CommentEnd(_) => Form::CommentEnd,
            Token::Reasoning(_, mark) => Form::Reasoning(*mark),
            _ => Form::Text,
        };
        Kept { raw: token.raw().to_owned(), place, form }
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

    pub(super) fn token(&self) -> Token<'_> {
        match self.form {
            Form::Text => Token::Text(&self.raw),
            Form::Tag { name: (from, to), kind, slips } => {
                Token::Tag(Tag { raw: &self.raw, name: &self.raw[from..to], kind, slips })
            }
            Form::CommentOpen => Token::CommentOpen,
            Form::CommentClose => Token::CommentClose,
            Form::CommentEnd => Token::CommentEnd(&self.raw),
            Form::Reasoning(mark) => Token::Reasoning(&self.raw, mark),
        }
    }
}

/// Code state of a Markdown text, and its held tokens.
#[derive(Clone, Debug)]
pub(super) struct Prose {
    code: Code,
    /// Set if only white space was read on the current line.
    line_blank: bool,
    /// Number of the first open backtick runs that do not close on this line.
    dead: usize,
    /// Index of the run that closes on this line: text after it is code.
    alive: Option<usize>,
    hold: Option<Hold>,
    limit: usize,
}

#[derive(Clone, Debug)]
struct Hold {
    kept: Vec<Kept>,
    len: usize,
    ahead: Ahead,
}

/// Condition that decides on a held tag.
#[derive(Clone, Debug)]
enum Ahead {
    /// One of this many open runs closes on the line: the tag is code.
    Span(Box<Code>, usize),
    /// The tag is alone on its line: it counts.
    Line,
    /// A JSON string that is open on the line closes on it: the tag is text.
    Quote(u8),
}

/// Result of adding a token to the held ones.
pub(super) enum Held {
    /// Nothing is decided.
    Open,
    /// The first of `kept` counts or not; `taken` bytes of the token belong to them.
    Decided { counts: bool, kept: Vec<Kept>, taken: usize },
}

impl Prose {
    /// Starts at the beginning of a text; at most `limit` bytes are held.
    pub(super) fn new(limit: usize) -> Prose {
        Prose { code: Code::default(), line_blank: true, dead: 0, alive: None, hold: None, limit }
    }

    /// Starts over with the next text, independent of the last.
    pub(super) fn restart(&mut self) {
        *self = Prose::new(self.limit);
    }

    pub(super) fn holds(&self) -> bool {
        self.hold.is_some()
    }

    /// Returns the bytes held back.
    pub(super) fn held(&self) -> usize {
        self.hold.as_ref().map_or(0, |hold| hold.len)
    }

    /// Returns whether only white space was read on this line.
    pub(super) fn line_blank(&self) -> bool {
        self.line_blank
    }

    /// Returns whether the tag last passed to [`Prose::stand`] is on a quoted line.
    pub(super) fn is_quoted(&self) -> bool {
        self.code.is_quoted()
    }

    /// Returns whether the place after all text so far is not code.
    pub(super) fn is_plain(&self) -> bool {
        self.code.inside() == Inside::Text
    }

    /// Tracks text.
    #[inline]
    pub(super) fn text(&mut self, text: &str) {
        self.line_blank = match text.as_bytes().last() {
            Some(b' ' | b'\n' | b'\t' | b'\r') => match scan::rfind(b'\n', text.as_bytes()) {
                Some(last) => is_blank(&text[last + 1..]),
                None => self.line_blank && is_blank(text),
            },
            Some(_) => false,
            None => self.line_blank,
        };
        if self.dead == 0 && self.alive.is_none() {
            self.code.skim(text, false);
            return;
        }
        let mut rest = text;
        while !rest.is_empty() {
            let (read, stop) = self.code.text(rest, false);
            self.follow(stop);
            rest = &rest[read..];
        }
    }

    fn follow(&mut self, stop: Option<Stop>) {
        match stop {
            Some(Stop::LineEnd) => (self.dead, self.alive) = (0, None),
            Some(Stop::Closed(run)) => {
                self.dead = self.dead.min(run);
                self.alive = self.alive.filter(|alive| *alive < run);
            }
            _ => {}
        }
    }

    /// Returns the position of a tag at the current place.
    pub(super) fn stand(&mut self) -> Stand {
        let stop = self.code.boundary();
        self.follow(stop);
        match self.code.inside() {
            Inside::Text => Stand::Markup,
            Inside::Fence => Stand::Fence,
            Inside::Undecided(runs) if self.alive.is_some_and(|alive| alive < runs) => Stand::Span,
            Inside::Undecided(runs) if runs <= self.dead => Stand::Markup,
            Inside::Undecided(_) => Stand::Undecided,
        }
    }

    /// Holds a token after an open backtick.
    pub(super) fn hold_span(&mut self, token: &Token<'_>, place: Place) {
        let Inside::Undecided(runs) = self.code.inside() else { return };
        let mut ahead = self.code.clone();
        // The content of a tag decides nothing, except that it may end the line.
        ahead.text(&token.raw().replace('`', " "), false);
        self.hold(token, place, Ahead::Span(Box::new(ahead), runs));
    }

    /// Holds a tag that counts if it is alone on its line.
    pub(super) fn hold_line(&mut self, token: &Token<'_>, place: Place) {
        self.hold(token, place, Ahead::Line);
    }

    /// Holds a tag that is text if this quote follows on its line.
    pub(super) fn hold_quote(&mut self, token: &Token<'_>, place: Place, quote: u8) {
        self.hold(token, place, Ahead::Quote(quote));
    }

    fn hold(&mut self, token: &Token<'_>, place: Place, ahead: Ahead) {
        self.hold = Some(Hold { kept: vec![Kept::new(token, place)], len: token.raw().len(), ahead });
    }

    /// Adds a token to the held ones.
    pub(super) fn add(&mut self, token: &Token<'_>, place: Place) -> Held {
        let limit = self.limit;
        let Some(hold) = &mut self.hold else { return Held::Open };
        let raw = token.raw();
        let text = matches!(token, Token::Text(_));
        let room = limit.saturating_sub(hold.len);
        // Cut at the limit itself, so that the result does not depend on the chunks.
        let most = if text { raw.floor_char_boundary(room) } else { raw.len() };
        let over = most < raw.len() || raw.len() > room;
        let (taken, counts) = hold.ahead.read(&raw[..most], text);
        let decided = counts.or((over && taken == most).then_some(!matches!(hold.ahead, Ahead::Line)));
        // A tag is taken whole, or handled again.
        let taken = if text || taken == raw.len() { taken } else { 0 };
        if taken > 0 {
            let kept = if text { Token::Text(&raw[..taken]) } else { *token };
            match (hold.kept.last_mut(), text) {
                (Some(Kept { raw: last, form: Form::Text, .. }), true) => last.push_str(&raw[..taken]),
                _ => hold.kept.push(Kept::new(&kept, place)),
            }
            hold.len += taken;
        }
        match decided {
            None => Held::Open,
            Some(counts) => self.decide(counts, taken),
        }
    }

    /// Ends the text: decides on the held tokens.
    pub(super) fn end(&mut self) -> Option<(bool, Vec<Kept>)> {
        let hold = self.hold.as_mut()?;
        let counts = match &mut hold.ahead {
            Ahead::Line | Ahead::Quote(_) => true,
            Ahead::Span(code, runs) => !matches!(code.boundary(), Some(Stop::Closed(run)) if run < *runs),
        };
        match self.decide(counts, 0) {
            Held::Decided { counts, kept, .. } => Some((counts, kept)),
            Held::Open => None,
        }
    }

    fn decide(&mut self, counts: bool, taken: usize) -> Held {
        let Some(Hold { kept, ahead, .. }) = self.hold.take() else { return Held::Open };
        if let Ahead::Span(_, runs) = ahead {
            if counts {
                self.dead = runs;
            } else {
                self.alive = Some(runs.saturating_sub(1));
            }
        }
        Held::Decided { counts, kept, taken }
    }
}

impl Ahead {
    /// Reads more text. Returns the bytes read, and whether the tag counts once that is decided.
    fn read(&mut self, raw: &str, text: bool) -> (usize, Option<bool>) {
        match self {
            Ahead::Line if !text => (0, Some(false)),
            Ahead::Line => match raw.char_indices().find(|(_, c)| !is_space(*c) || *c == '\n') {
                Some((at, '\n')) => (at, Some(true)),
                Some((at, _)) => (at, Some(false)),
                None => (raw.len(), None),
            },
            Ahead::Quote(quote) => match raw.find([char::from(*quote), '\n']) {
                Some(at) => (at, Some(raw.as_bytes()[at] == b'\n')),
                None => (raw.len(), None),
            },
            Ahead::Span(code, runs) => {
                let mut at = 0;
                while at < raw.len() {
                    let (read, stop) = code.text(&raw[at..], false);
                    at += read;
                    match stop {
                        Some(Stop::LineEnd) => return (at, Some(true)),
                        Some(Stop::Closed(run)) if run < *runs => {
                            // Runs after the closing one are text inside the span.
                            *runs = run + 1;
                            return (at, Some(false));
                        }
                        _ => {}
                    }
                }
                (at, None)
            }
        }
    }
}
