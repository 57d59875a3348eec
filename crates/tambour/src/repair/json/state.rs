//! State of the JSON reader: open brackets, expected token, current lexeme.

use crate::lex::json::Quote;
use crate::span::Place;

/// Kind of source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Values with any text around them.
    Chat,
    /// Like `Chat`, one value a line: a line that begins like an object ends an open value.
    Lines,
    /// Nothing but values.
    Document,
}

/// An open bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Object,
    Array,
    /// An array in round brackets.
    Tuple,
}

/// Expected token between brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    /// First item, or the closing bracket.
    First,
    /// Item after a comma.
    Item,
    /// Colon after a key.
    Colon,
    /// Value after a colon.
    Value,
    /// Comma or closing bracket.
    Next,
}

/// Lexeme the reader is inside of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lexeme {
    None,
    String,
    Bare,
    LineComment,
    BlockComment,
}

/// State of the current string, quoted or not.
#[derive(Clone, Copy, Debug)]
pub(super) struct StringState {
    pub(super) quote: Quote,
    pub(super) in_key: bool,
    /// True if nothing of it has been read.
    pub(super) empty: bool,
    /// True if it began with two quotes.
    pub(super) doubled: bool,
    /// True if the number of inner quotes so far is odd.
    pub(super) inner: bool,
    /// True if a raw control character was reported.
    pub(super) control: bool,
    /// True if it contains opening brackets.
    pub(super) brackets: bool,
    /// Open `{` and `[` in an unquoted string.
    pub(super) open: (u32, u32),
}

impl StringState {
    /// State at the start of a string.
    pub(super) fn new(quote: Quote, in_key: bool) -> StringState {
        StringState {
            quote,
            in_key,
            empty: true,
            doubled: false,
            inner: false,
            control: false,
            brackets: false,
            open: (0, 0),
        }
    }
}

/// A place that may be requested later, so that lines are counted only then.
#[derive(Clone, Copy, Debug)]
pub(super) enum Spot {
    /// Offset in the current text.
    At(usize),
    /// Place before the current text.
    Was(Place),
}

/// Evidence against the current value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Suspicion {
    /// True if it began in the middle of a sentence.
    pub(super) loose: bool,
    /// True if repairs went beyond the spelling of its tokens.
    pub(super) broken: bool,
    /// True if an object in it is complete.
    pub(super) holds: bool,
}

/// Result of a reading step.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Go,
    Wait,
}

/// The current text, and the offset read so far.
pub(super) struct Cursor<'b> {
    pub(super) text: &'b str,
    pub(super) at: usize,
    /// True if `text` is the last of the input.
    pub(super) last: bool,
}

impl<'b> Cursor<'b> {
    pub(super) fn bytes(&self) -> &'b [u8] {
        self.text.as_bytes()
    }
}
