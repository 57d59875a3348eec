//! Incremental JSON reader: its state, and the dispatch of each chunk.
//!
//! The reader passes over the text once. If a decision needs bytes that have not arrived, it holds the text
//! back from that place on, at most [`HELD`] bytes, and decides again when more arrives. Brackets and
//! punctuation, strings, unquoted text, and the text around values have modules of their own.

use crate::lex::json::Quote;
use crate::limits::Limits;
use crate::span::Place;

use super::event::{End, JsonEvent, JsonSink, Start};
use super::peek::WINDOW;
use super::state::{Cursor, Expect, Flow, Frame, Lexeme, Mode, Spot, StringState, Suspicion};

/// Most bytes of a number; a longer one is read as a string.
pub(super) const NUMBER: usize = 1 << 10;

/// Most bytes held back at any time, except for comments: the longest number and one look-ahead.
pub const HELD: usize = NUMBER + 2 * WINDOW;

/// Reads JSON values from text that arrives in chunks of any size, and repairs faults in the same pass.
///
/// ```
/// use tambour::limits::Limits;
/// use tambour::repair::json::{Reader, Values};
///
/// let (mut reader, mut values) = (Reader::chat(&Limits::default()), Values::default());
/// for piece in ["Sure: {'a", "': [1, 2,", "]} Bye"] {
///     reader.push(piece, &mut values);
/// }
/// reader.finish(&mut values);
/// assert_eq!(values.values[0].value.to_string(), r#"{"a":[1,2]}"#);
/// ```
#[derive(Clone, Debug)]
pub struct Reader {
    pub(super) mode: Mode,
    pub(super) depth: usize,
    pub(super) hold: usize,
    pub(super) findings: usize,
    /// Text that was pushed but not read.
    held: String,
    pub(super) base: Place,
    /// Offset in the current text and its place, as computed last.
    pub(super) known: (usize, Place),
    pub(super) stack: Vec<Frame>,
    pub(super) expect: Expect,
    pub(super) lexeme: Lexeme,
    pub(super) string: StringState,
    pub(super) key: String,
    pub(super) key_at: Spot,
    pub(super) key_cut: bool,
    /// Offset after the last reported full-width mark.
    pub(super) odd_end: usize,
    pub(super) comma: Spot,
    /// Length of that comma in bytes; a full-width one has more than one.
    pub(super) comma_length: usize,
    /// Number of open call brackets, as in `ObjectId(`.
    pub(super) calls: usize,
    /// True if a line break came since the last token.
    pub(super) newline: bool,
    /// True if the last item ended with a bracket.
    pub(super) bracketed: bool,
    /// Stray words just skipped: their place, and the offset after them.
    pub(super) stray: Option<(Place, usize)>,
    /// Start of the open comment; `None` while a line is skipped.
    pub(super) comment_at: Option<Place>,
    /// Most bytes of a number, and whether numbers are emitted as written.
    pub(super) number: usize,
    pub(super) exact: bool,
    /// Bytes of a held word that have been scanned already.
    pub(super) seen: usize,
    pub(super) outside: super::outside::Outside,
    /// Sought keys of objects.
    pub(super) keys: &'static [&'static str],
    pub(super) suspicion: Suspicion,
    index: usize,
    pub(super) end: End,
    pub(super) reports: usize,
    pub(super) work: u64,
}

/// Least number of repairs that are reported, even if the limit of findings is lower.
const FEW: usize = 64;

impl Reader {
    /// Creates a reader for chatty text: objects and arrays with prose, fences and a leading `<think>` around
    /// them.
    #[must_use]
    pub fn chat(limits: &Limits) -> Reader {
        Reader::new(limits, Mode::Chat)
    }

    /// Creates a reader for JSON Lines: like [`Reader::chat`], but a line that begins like an object
    /// (`{"key":`) ends a value left open on the lines before.
    #[must_use]
    pub fn lines(limits: &Limits) -> Reader {
        Reader::new(limits, Mode::Lines)
    }

    /// Creates a reader for a text that contains nothing but values, scalars and unquoted words included.
    #[must_use]
    pub fn document(limits: &Limits) -> Reader {
        Reader::new(limits, Mode::Document)
    }

    fn new(limits: &Limits, mode: Mode) -> Reader {
        Reader {
            mode,
            depth: limits.depth,
            hold: limits.hold,
            findings: limits.findings.max(FEW),
            held: String::new(),
            base: Place::START,
            known: (0, Place::START),
            stack: Vec::new(),
            expect: Expect::First,
            lexeme: Lexeme::None,
            string: StringState::new(Quote::Double, false),
            key: String::new(),
            key_at: Spot::Was(Place::START),
            key_cut: false,
            odd_end: 0,
            comma: Spot::Was(Place::START),
            comma_length: 1,
            calls: 0,
            newline: false,
            bracketed: false,
            stray: None,
            comment_at: None,
            number: NUMBER,
            exact: false,
            seen: 0,
            outside: super::outside::Outside::default(),
            keys: &[],
            suspicion: Suspicion::default(),
            index: 0,
            end: End::default(),
            reports: 0,
            work: 0,
        }
    }

    /// Starts counting places at `place`. Must be called before the first push.
    #[must_use]
    pub fn starting_at(mut self, place: Place) -> Reader {
        self.start_at(place);
        self
    }

    /// Like [`Reader::starting_at`].
    pub fn start_at(&mut self, place: Place) {
        self.base = place;
        self.known = (0, place);
    }

    /// Treats marks of thinking as text, and searches for values everywhere.
    #[must_use]
    pub fn without_thoughts(mut self) -> Reader {
        self.outside.unmarked = true;
        self
    }

    /// Seeks objects with these keys: one that begins a line or a fence ends an earlier value which a bracket
    /// in a sentence began, or which was left open before the fence.
    #[must_use]
    pub fn seeking(mut self, keys: &'static [&'static str]) -> Reader {
        self.keys = keys;
        self
    }

    /// Emits numbers of any length as written, as [`JsonEvent::Digits`]. A number is held back until its end.
    #[must_use]
    pub fn exact(mut self) -> Reader {
        self.number = usize::MAX;
        self.exact = true;
        self
    }

    /// Reads the next chunk.
    pub fn push<S: JsonSink + ?Sized>(&mut self, text: &str, sink: &mut S) {
        if text.is_empty() {
            return;
        }
        if self.held.is_empty() {
            let read = self.read(text, false, sink);
            self.held.push_str(&text[read..]);
            return;
        }
        // Reads the held text, with as much of the new text as its decision needs, from one buffer; the rest
        // of a long chunk is read in place.
        let (mut held, mut rest) = (std::mem::take(&mut self.held), text);
        while !rest.is_empty() {
            let old = held.len();
            let mut cut = rest.len().min(2 * WINDOW);
            while !rest.is_char_boundary(cut) {
                cut += 1;
            }
            held.push_str(&rest[..cut]);
            let read = self.read(&held, false, sink);
            if read >= old {
                held.clear();
                rest = &rest[read - old..];
                let read = self.read(rest, false, sink);
                held.push_str(&rest[read..]);
                break;
            }
            held.drain(..read);
            rest = &rest[cut..];
        }
        self.held = held;
    }

    /// Reads the held text and closes open values. The reader must not be used afterwards.
    pub fn finish<S: JsonSink + ?Sized>(&mut self, sink: &mut S) {
        let held = std::mem::take(&mut self.held);
        self.read(&held, true, sink);
    }

    /// Bytes held back for a decision: at most [`HELD`], or `limits.hold` for an HTML comment outside of
    /// values. A key of up to `limits.hold` bytes is buffered separately.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Place of the next unread byte.
    #[must_use]
    pub fn place(&self) -> Place {
        self.base
    }

    /// Number of open brackets.
    #[must_use]
    pub fn open(&self) -> usize {
        self.stack.len()
    }

    /// Returns whether a value is being read.
    #[must_use]
    pub fn in_value(&self) -> bool {
        !self.stack.is_empty() || matches!(self.lexeme, Lexeme::String | Lexeme::Bare)
    }

    /// Bytes examined so far, for tests of linearity.
    #[doc(hidden)]
    #[must_use]
    pub fn work(&self) -> u64 {
        self.work
    }

    /// Reads `text` as far as it can be decided; returns the bytes read.
    fn read<S: JsonSink + ?Sized>(&mut self, text: &str, last: bool, sink: &mut S) -> usize {
        let mut cursor = Cursor { text, at: 0, last };
        let c = &mut cursor;
        loop {
            let flow = match self.lexeme {
                Lexeme::String => self.string(c, sink),
                Lexeme::Bare => self.bare_text(c, sink),
                Lexeme::LineComment | Lexeme::BlockComment => self.comment(c, sink),
                Lexeme::None if self.stack.is_empty() && self.mode != Mode::Document => self.text(c, sink),
                Lexeme::None => self.structure(c, sink),
            };
            if flow == Flow::Wait {
                break;
            }
        }
        let read = cursor.at;
        self.settle(text);
        self.base = self.place_at(text, read);
        self.known = (0, self.base);
        self.work += read as u64 + 1;
        read
    }

    /// Begins a value at `at`.
    pub(super) fn begin<S: JsonSink + ?Sized>(&mut self, c: &Cursor<'_>, at: usize, sink: &mut S) {
        let place = self.place_at(c.text, at);
        let (origin, commented) = (self.outside.origin(), self.outside.is_commented());
        self.end = End::default();
        self.suspicion = Suspicion { loose: self.outside.in_sentence(), ..Suspicion::default() };
        sink.event(JsonEvent::ValueStart(Start { index: self.index, place, origin, commented }));
        self.index += 1;
    }

    /// Ends the value at `at`.
    pub(super) fn complete<S: JsonSink + ?Sized>(&mut self, c: &Cursor<'_>, at: usize, sink: &mut S) {
        self.end.place = self.place_at(c.text, at);
        self.end.offset = self.base.offset + at;
        self.expect = Expect::Next;
        self.newline = false;
        self.calls = 0;
        sink.event(JsonEvent::ValueEnd(self.end));
        self.end = End::default();
    }

    /// Continues behind an item that ends before `at`.
    pub(super) fn after_value<S: JsonSink + ?Sized>(&mut self, c: &Cursor<'_>, at: usize, sink: &mut S) {
        self.stray_over(sink);
        self.expect = Expect::Next;
        self.newline = false;
        self.bracketed = false;
        if self.stack.is_empty() {
            self.complete(c, at, sink);
        }
    }

    /// Most bytes of a key.
    pub(super) fn hold(&self) -> usize {
        self.hold
    }

    /// Appends to the current key up to the limit; once text was cut off, nothing more is appended.
    pub(super) fn add_to_key(&mut self, part: &str) {
        if self.key_cut {
            return;
        }
        let room = self.hold.saturating_sub(self.key.len());
        let kept = part.floor_char_boundary(room);
        self.key.push_str(&part[..kept]);
        self.key_cut = kept < part.len();
    }
}
