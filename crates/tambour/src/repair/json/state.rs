//! Where the reader is: in what brackets, what is due next, what it is in the middle of.

use crate::lex::json::Quote;
use crate::span::Place;

/// What a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Values with anything around them.
    Chat,
    /// The same, a value a line: a line that begins like an object ends whatever was open.
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

/// What may come next between brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    /// The first item, or the closing bracket.
    First,
    /// The item after a comma.
    Item,
    /// The colon after a key.
    Colon,
    /// The value after a colon.
    Value,
    /// A comma or the closing bracket.
    Next,
}

/// What the reader is in the middle of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lexeme {
    None,
    String,
    Bare,
    LineComment,
    BlockComment,
}

/// The string being read, in quotes or not.
#[derive(Clone, Copy, Debug)]
pub(super) struct StringState {
    pub(super) quote: Quote,
    pub(super) in_key: bool,
    /// Nothing of it was read yet.
    pub(super) empty: bool,
    /// It began with two quotes.
    pub(super) doubled: bool,
    /// An odd number of inner quotes came.
    pub(super) inner: bool,
    /// A raw control character was reported.
    pub(super) control: bool,
    /// Opening brackets came.
    pub(super) brackets: bool,
    /// `{` and `[` open in a string without quotes.
    pub(super) open: (u32, u32),
}

impl StringState {
    /// At the start of a string.
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

/// A place that may be asked for: counting lines waits until it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Spot {
    /// In the text being read.
    At(usize),
    /// Before it.
    Was(Place),
}

/// Signs against the value under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Suspicion {
    /// It began in a sentence.
    pub(super) loose: bool,
    /// More of it was mended than how its tokens are written.
    pub(super) broken: bool,
    /// An object in it is complete.
    pub(super) holds: bool,
}

/// What a step ended with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Go,
    Wait,
}

/// The text being read and how far.
pub(super) struct Cursor<'b> {
    pub(super) text: &'b str,
    pub(super) at: usize,
    /// Nothing comes after `text`.
    pub(super) last: bool,
}

impl<'b> Cursor<'b> {
    pub(super) fn bytes(&self) -> &'b [u8] {
        self.text.as_bytes()
    }
}
