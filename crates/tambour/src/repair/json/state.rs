//! State of the JSON reader: open brackets, expected token, current lexeme.

use crate::lex::json::QuoteKind;
use crate::span::Place;

/// Kind of source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReaderMode {
    /// Values with any text around them.
    Chat,
    /// Like `Chat`, one value a line: a line that begins like an object ends an open value.
    Lines,
    /// Nothing but values.
    Document,
}

/// An open bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JsonFrame {
    Object,
    Array,
    /// An array in round brackets.
    Tuple,
}

/// Expected token between brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpectedToken {
    /// First item, or the closing bracket.
    FirstItemOrEnd,
    /// Item after a comma.
    Item,
    /// Colon after a key.
    Colon,
    /// Value after a colon.
    Value,
    /// Comma or closing bracket.
    CommaOrEnd,
}

/// Lexeme that the reader is in the middle of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenLexeme {
    /// Between lexemes, or outside of values.
    None,
    /// A quoted string or key.
    String,
    /// A string without quotes.
    BareString,
    /// A comment after `//` or `#`, or a line that is skipped.
    LineComment,
    /// A comment after `/*`.
    BlockComment,
}

/// State of the current string, quoted or not.
#[derive(Clone, Copy, Debug)]
pub(super) struct StringState {
    /// Kind of the opening quote; `Double` without quotes.
    pub(super) quote: QuoteKind,
    pub(super) is_key: bool,
    /// True if neither text nor a second opening quote has been read.
    pub(super) is_empty: bool,
    /// True if the string began with two quotes.
    pub(super) has_double_opening: bool,
    /// True if the number of inner quotes so far is odd.
    pub(super) is_in_inner_quotes: bool,
    /// True if a raw control character was reported.
    pub(super) has_reported_control: bool,
    /// True if the string contains opening brackets.
    pub(super) has_brackets: bool,
    /// Numbers of `{` and of `[` that are open in an unquoted string.
    pub(super) open_brackets: (u32, u32),
}

impl StringState {
    /// State at the start of a string.
    pub(super) fn new(quote: QuoteKind, is_key: bool) -> StringState {
        StringState {
            quote,
            is_key,
            is_empty: true,
            has_double_opening: false,
            is_in_inner_quotes: false,
            has_reported_control: false,
            has_brackets: false,
            open_brackets: (0, 0),
        }
    }
}

/// A place that may be requested later, so that lines are counted only then.
#[derive(Clone, Copy, Debug)]
pub(super) enum TextSpot {
    /// Offset in the current text, whose place is not computed yet.
    Current(usize),
    /// A computed place.
    Known(Place),
}

/// Evidence on whether the current value is damaged, or only prose in brackets. If so, an object with a
/// sought key ends it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ValueSuspicion {
    /// True if the value began in the middle of a sentence.
    pub(super) is_in_sentence: bool,
    /// True if a repair since the last complete quoted key was by a rule whose repairs are guesses.
    pub(super) is_damaged: bool,
    /// True if an object in the value is complete.
    pub(super) has_object: bool,
}

/// Result of a reading step.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadFlow {
    /// Reading continues with the current text.
    Continue,
    /// More text is needed.
    NeedsInput,
}

/// The current text, and the offset read so far.
pub(super) struct TextCursor<'b> {
    pub(super) text: &'b str,
    pub(super) offset: usize,
    /// True if `text` is the last of the input.
    pub(super) is_last: bool,
}

impl<'b> TextCursor<'b> {
    pub(super) fn bytes(&self) -> &'b [u8] {
        self.text.as_bytes()
    }
}
