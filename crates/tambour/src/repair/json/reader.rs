//! Incremental JSON reader: its state, and the dispatch of each chunk.
//!
//! The reader passes over the text once. If a decision needs bytes that have not arrived, it holds the text
//! back from that place on, at most [`MAX_HELD_BYTES`] bytes, and decides again when more arrives. Brackets
//! and punctuation, strings, unquoted text, and the text around values are in separate modules.

use crate::lex::json::QuoteKind;
use crate::limits::Limits;
use crate::span::{Extent, Place};

use super::event::{JsonEvent, JsonSink, ValueEnd, ValueStart};
use super::lookahead::WINDOW;
use super::state::{
    ExpectedToken, JsonFrame, OpenLexeme, ReadFlow, ReaderMode, StringState, TextCursor, TextSpot,
    ValueSuspicion,
};

/// Maximum length of a number in bytes; a longer one is read as a string.
pub(super) const MAX_NUMBER_LEN: usize = 1 << 10;

/// Maximum number of bytes held back at any time: the longest number and two windows of look-ahead. Comments,
/// and numbers of a reader that keeps all digits, may be longer.
pub const MAX_HELD_BYTES: usize = MAX_NUMBER_LEN + 2 * WINDOW;

/// Reads JSON values from text that arrives in chunks of any size, and repairs faults in the same pass.
///
/// ```
/// use tambour::limits::Limits;
/// use tambour::repair::json::{JsonReader, ValueCollector};
///
/// let (mut reader, mut values) = (JsonReader::new_chat(&Limits::default()), ValueCollector::default());
/// for piece in ["Sure: {'a", "': [1, 2,", "]} Bye"] {
///     reader.push(piece, &mut values);
/// }
/// reader.finish(&mut values);
/// assert_eq!(values.values[0].value.to_string(), r#"{"a":[1,2]}"#);
/// ```
#[derive(Clone, Debug)]
pub struct JsonReader {
    pub(super) mode: ReaderMode,
    /// Maximum number of brackets open at once.
    pub(super) max_depth: usize,
    /// Maximum length in bytes of a key, and of an HTML comment outside of values.
    pub(super) max_key_len: usize,
    /// Maximum number of repairs reported.
    pub(super) max_reports: usize,
    /// Text that was pushed but not read.
    held_text: String,
    /// Place of the start of the current text.
    pub(super) base_place: Place,
    /// Offset in the current text whose place was computed last, and that place.
    pub(super) known_place: (usize, Place),
    /// Open brackets, the outermost first.
    pub(super) stack: Vec<JsonFrame>,
    pub(super) expected: ExpectedToken,
    pub(super) lexeme: OpenLexeme,
    pub(super) string: StringState,
    /// Current key, as far as it had to be buffered.
    pub(super) key: String,
    /// Start of the current key.
    pub(super) key_spot: TextSpot,
    /// True if the current key was cut off at its limit.
    pub(super) is_key_truncated: bool,
    /// Offset after the last reported full-width mark.
    pub(super) odd_mark_end: usize,
    /// Place of the last comma.
    pub(super) comma_spot: TextSpot,
    /// Length of that comma in bytes; a full-width comma has more than one.
    pub(super) comma_length: usize,
    /// Number of open call brackets, as in `ObjectId(`.
    pub(super) open_calls: usize,
    /// True if there was a line break since the last token.
    pub(super) is_after_newline: bool,
    /// True if the last item ended with a bracket.
    pub(super) is_after_bracket: bool,
    /// Stray words just skipped.
    pub(super) stray_text: Option<Extent>,
    /// Start of the open comment; `None` while a line is skipped, after the depth limit.
    pub(super) comment_place: Option<Place>,
    /// Maximum length of a number in bytes.
    pub(super) max_number_len: usize,
    /// True if numbers are emitted as written.
    pub(super) keeps_digits: bool,
    /// Bytes of a held word that have been scanned already.
    pub(super) word_len: usize,
    pub(super) surrounding_text: super::surrounding_text::SurroundingText,
    /// Keys of objects that are sought ([`JsonReader::with_sought_keys`]).
    pub(super) sought_keys: &'static [&'static str],
    pub(super) suspicion: ValueSuspicion,
    /// Index of the next value in the text.
    value_index: usize,
    /// End of the current value, as far as it is known.
    pub(super) value_end: ValueEnd,
    /// Number of repairs, reported or not.
    pub(super) repair_count: usize,
    /// Bytes examined, look-ahead included.
    pub(super) work: u64,
}

/// Number of repairs that are always reported, even if the limit of findings is lower.
const MIN_REPORTS: usize = 64;

impl JsonReader {
    /// Creates a reader for objects and arrays among prose, fences and thinking.
    #[must_use]
    pub fn new_chat(limits: &Limits) -> JsonReader {
        JsonReader::new(limits, ReaderMode::Chat)
    }

    /// Creates a reader for JSON Lines: like [`JsonReader::new_chat`], but a line that begins like an object
    /// (`{"key":`) ends a value left open on the lines before.
    #[must_use]
    pub fn new_lines(limits: &Limits) -> JsonReader {
        JsonReader::new(limits, ReaderMode::Lines)
    }

    /// Creates a reader for a text that contains nothing but values, scalars and unquoted words included.
    #[must_use]
    pub fn new_document(limits: &Limits) -> JsonReader {
        JsonReader::new(limits, ReaderMode::Document)
    }

    fn new(limits: &Limits, mode: ReaderMode) -> JsonReader {
        JsonReader {
            mode,
            max_depth: limits.depth,
            max_key_len: limits.hold,
            max_reports: limits.findings.max(MIN_REPORTS),
            held_text: String::new(),
            base_place: Place::START,
            known_place: (0, Place::START),
            stack: Vec::new(),
            expected: ExpectedToken::FirstItemOrEnd,
            lexeme: OpenLexeme::None,
            // Replaced when a string begins.
            string: StringState::new(QuoteKind::Double, false),
            key: String::new(),
            key_spot: TextSpot::Known(Place::START),
            is_key_truncated: false,
            odd_mark_end: 0,
            comma_spot: TextSpot::Known(Place::START),
            comma_length: 1,
            open_calls: 0,
            is_after_newline: false,
            is_after_bracket: false,
            stray_text: None,
            comment_place: None,
            max_number_len: MAX_NUMBER_LEN,
            keeps_digits: false,
            word_len: 0,
            surrounding_text: super::surrounding_text::SurroundingText::default(),
            sought_keys: &[],
            suspicion: ValueSuspicion::default(),
            value_index: 0,
            value_end: ValueEnd::default(),
            repair_count: 0,
            work: 0,
        }
    }

    /// Starts counting places at `place`. Must be called before the first push.
    #[must_use]
    pub(crate) fn with_start(mut self, place: Place) -> JsonReader {
        self.set_start(place);
        self
    }

    /// Like [`JsonReader::with_start`], on an existing reader.
    pub(crate) fn set_start(&mut self, place: Place) {
        self.base_place = place;
        self.known_place = (0, place);
    }

    /// Treats marks of thinking as text, and searches for values everywhere.
    #[must_use]
    pub(crate) fn without_thoughts(mut self) -> JsonReader {
        self.surrounding_text.ignores_marks = true;
        self
    }

    /// Seeks objects with one of these keys. Such an object at the start of a line ends an earlier value that
    /// began in a sentence; at the start of a fence it ends a value that was left open before the fence.
    #[doc(hidden)]
    #[must_use]
    pub fn with_sought_keys(mut self, keys: &'static [&'static str]) -> JsonReader {
        self.sought_keys = keys;
        self
    }

    /// Emits numbers of any length as written, as [`JsonEvent::Digits`]. A number is held back until its end.
    #[must_use]
    pub fn with_exact_digits(mut self) -> JsonReader {
        self.max_number_len = usize::MAX;
        self.keeps_digits = true;
        self
    }

    /// Reads the next chunk.
    pub fn push<S: JsonSink + ?Sized>(&mut self, text: &str, sink: &mut S) {
        if text.is_empty() {
            return;
        }
        let is_last = false;
        if self.held_text.is_empty() {
            let read_len = self.read_chunk(text, is_last, sink);
            self.held_text.push_str(&text[read_len..]);
            return;
        }
        // The held text is read in one buffer with as much of the new text as its decision needs; the
        // remainder of a long chunk is read in place.
        let (mut held_text, mut unread) = (std::mem::take(&mut self.held_text), text);
        while !unread.is_empty() {
            let old_len = held_text.len();
            let mut piece_len = unread.len().min(2 * WINDOW);
            while !unread.is_char_boundary(piece_len) {
                piece_len += 1;
            }
            held_text.push_str(&unread[..piece_len]);
            let read_len = self.read_chunk(&held_text, is_last, sink);
            if read_len >= old_len {
                held_text.clear();
                unread = &unread[read_len - old_len..];
                let read_len = self.read_chunk(unread, is_last, sink);
                held_text.push_str(&unread[read_len..]);
                break;
            }
            held_text.drain(..read_len);
            unread = &unread[piece_len..];
        }
        self.held_text = held_text;
    }

    /// Reads the held text and closes open values. The reader must not be used afterwards.
    pub fn finish<S: JsonSink + ?Sized>(&mut self, sink: &mut S) {
        let held_text = std::mem::take(&mut self.held_text);
        let is_last = true;
        self.read_chunk(&held_text, is_last, sink);
    }

    /// Bytes held back for a decision: at most [`MAX_HELD_BYTES`], or `limits.hold` for an HTML comment
    /// outside of values; a number that is kept with all its digits has no limit. A key of up to
    /// `limits.hold` bytes is buffered separately.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.held_text.len()
    }

    /// Place of the next unread byte.
    #[must_use]
    pub fn place(&self) -> Place {
        self.base_place
    }

    /// Number of open brackets.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.stack.len()
    }

    /// Bytes examined so far, for tests of linearity.
    #[doc(hidden)]
    #[must_use]
    pub fn work(&self) -> u64 {
        self.work
    }

    /// Reads `text` as far as it can be decided; returns the number of bytes read.
    fn read_chunk<S: JsonSink + ?Sized>(&mut self, text: &str, is_last: bool, sink: &mut S) -> usize {
        let cursor = &mut TextCursor { text, offset: 0, is_last };
        loop {
            let flow = match self.lexeme {
                OpenLexeme::String => self.read_string(cursor, sink),
                OpenLexeme::BareString => self.read_bare_string(cursor, sink),
                OpenLexeme::LineComment | OpenLexeme::BlockComment => self.skip_comment(cursor, sink),
                OpenLexeme::None if self.stack.is_empty() && self.mode != ReaderMode::Document => {
                    self.read_text(cursor, sink)
                }
                OpenLexeme::None => self.read_structure(cursor, sink),
            };
            if flow == ReadFlow::NeedsInput {
                break;
            }
        }
        let read_len = cursor.offset;
        self.save_places(text);
        self.base_place = self.place_at(text, read_len);
        self.known_place = (0, self.base_place);
        self.work += read_len as u64 + 1;
        read_len
    }

    /// Begins a value at `at`.
    pub(super) fn begin_value<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &TextCursor<'_>,
        at: usize,
        sink: &mut S,
    ) {
        let place = self.place_at(cursor.text, at);
        let (origin, is_in_open_comment) =
            (self.surrounding_text.origin(), self.surrounding_text.has_open_comment());
        self.value_end = ValueEnd::default();
        self.suspicion = ValueSuspicion {
            is_in_sentence: self.surrounding_text.is_in_sentence(),
            ..ValueSuspicion::default()
        };
        sink.event(JsonEvent::ValueStart(ValueStart {
            index: self.value_index,
            place,
            origin,
            is_in_open_comment,
        }));
        self.value_index += 1;
    }

    /// Ends the value before `at`.
    pub(super) fn end_value<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &TextCursor<'_>,
        at: usize,
        sink: &mut S,
    ) {
        self.value_end.place = self.place_at(cursor.text, at);
        self.value_end.offset = self.base_place.offset + at;
        self.expected = ExpectedToken::CommaOrEnd;
        self.is_after_newline = false;
        self.open_calls = 0;
        sink.event(JsonEvent::ValueEnd(self.value_end));
        self.value_end = ValueEnd::default();
    }

    /// Moves on after an item that ends before `at`; ends the value if the item was the whole value.
    pub(super) fn finish_item<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &TextCursor<'_>,
        at: usize,
        sink: &mut S,
    ) {
        self.report_stray_text(sink);
        self.expected = ExpectedToken::CommaOrEnd;
        self.is_after_newline = false;
        self.is_after_bracket = false;
        if self.stack.is_empty() {
            self.end_value(cursor, at, sink);
        }
    }

    /// Maximum length of a key in bytes.
    pub(super) fn max_key_len(&self) -> usize {
        self.max_key_len
    }

    /// Appends to the current key up to the limit; once text was cut off, nothing more is appended.
    pub(super) fn add_to_key(&mut self, text: &str) {
        if self.is_key_truncated {
            return;
        }
        let room = self.max_key_len.saturating_sub(self.key.len());
        let kept_len = text.floor_char_boundary(room);
        self.key.push_str(&text[..kept_len]);
        self.is_key_truncated = kept_len < text.len();
    }
}
