//! The incremental reader: its state, and what is done with each piece of text.
//!
//! The reader walks over the text once. Where a decision needs bytes that have not arrived, it keeps those from the
//! place of the decision on, at most [`HELD`], and asks again when more came. What stands between brackets is in
//! `structure`, strings are in `string` and `quote`, what has no quotes is in `word`, `bare_key` and `bare`, text around values
//! in `outside`.

use crate::lex::json::Quote;
use crate::limits::Limits;
use crate::span::Place;

use super::event::{End, JsonEvent, JsonSink, Start};
use super::peek::WINDOW;
use super::state::{Cursor, Expect, Flow, Frame, Lexeme, Mode, Spot, StringState, Suspicion};

/// Bytes of the longest number; what is longer is read as a string.
pub(super) const NUMBER: usize = 1 << 10;

/// The most bytes that are kept back at any time but for comments: the longest number and one look-ahead.
pub const HELD: usize = NUMBER + 2 * WINDOW;

/// Reads JSON values from a text that arrives in pieces of any size, mending faults on the way.
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
    /// Text that was pushed and not read, from the place `base` on.
    held: String,
    pub(super) base: Place,
    /// An offset into the text being read and its place: the last one that was asked for.
    pub(super) known: (usize, Place),
    pub(super) stack: Vec<Frame>,
    pub(super) expect: Expect,
    pub(super) lexeme: Lexeme,
    pub(super) string: StringState,
    pub(super) key: String,
    pub(super) key_at: Spot,
    pub(super) key_cut: bool,
    /// Offset after the last full-width mark that was reported.
    pub(super) odd_end: usize,
    pub(super) comma: Spot,
    /// Bytes of that comma: a full-width one has more than one.
    pub(super) comma_length: usize,
    /// Brackets of calls such as `ObjectId(` that are open.
    pub(super) calls: usize,
    /// A line break came since the last token.
    pub(super) newline: bool,
    /// The last item ended with its bracket.
    pub(super) bracketed: bool,
    /// Words that are neither key nor value and were just skipped: where they begin, and the offset after them.
    pub(super) stray: Option<(Place, usize)>,
    /// Where the comment under way begins; `None` while a line is skipped.
    pub(super) comment_at: Option<Place>,
    /// Bytes of the longest number, and whether numbers are handed out as they are written.
    pub(super) number: usize,
    pub(super) exact: bool,
    /// Bytes from the start of a held word that are known to belong to it.
    pub(super) seen: usize,
    pub(super) outside: super::outside::Outside,
    /// Keys of the objects that are looked for.
    pub(super) keys: &'static [&'static str],
    pub(super) suspicion: Suspicion,
    index: usize,
    pub(super) end: End,
    pub(super) reports: usize,
    pub(super) work: u64,
}

/// Repairs that are always reported: whoever lists fewer counts the rest.
const FEW: usize = 64;

impl Reader {
    /// A reader of values in chatty text: objects and arrays with prose, fences and a leading `<think>` around them.
    #[must_use]
    pub fn chat(limits: &Limits) -> Reader {
        Reader::new(limits, Mode::Chat)
    }

    /// A reader of JSON Lines: like [`Reader::chat`], and a line that begins like an object (`{"key":`) ends a value
    /// that was left open on the lines before it.
    #[must_use]
    pub fn lines(limits: &Limits) -> Reader {
        Reader::new(limits, Mode::Lines)
    }

    /// A reader of a text that is nothing but values, scalars and words without quotes among them.
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

    /// Starts counting places at `place` instead of the first one. To be called before the first push.
    #[must_use]
    pub fn starting_at(mut self, place: Place) -> Reader {
        self.start_at(place);
        self
    }

    /// As [`Reader::starting_at`].
    pub fn start_at(&mut self, place: Place) {
        self.base = place;
        self.known = (0, place);
    }

    /// Takes marks of thinking for text, and looks for values everywhere.
    #[must_use]
    pub fn without_thoughts(mut self) -> Reader {
        self.outside.unmarked = true;
        self
    }

    /// Looks for objects with these keys: one that stands alone on its line or begins a fence ends a value before it that
    /// was begun by a bracket in a sentence, or left open in front of the fence.
    #[must_use]
    pub fn seeking(mut self, keys: &'static [&'static str]) -> Reader {
        self.keys = keys;
        self
    }

    /// Hands out numbers of any length as they are written, as [`JsonEvent::Digits`]. A number is held until its end.
    #[must_use]
    pub fn exact(mut self) -> Reader {
        self.number = usize::MAX;
        self.exact = true;
        self
    }

    /// Reads the next piece.
    pub fn push<S: JsonSink + ?Sized>(&mut self, text: &str, sink: &mut S) {
        if text.is_empty() {
            return;
        }
        if self.held.is_empty() {
            let read = self.read(text, false, sink);
            self.held.push_str(&text[read..]);
            return;
        }
        // The held text and as much of the new one as decides about it are read from one buffer; the rest of
        // a long piece is read where it is.
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

    /// Reads what was held and closes what is open. The reader must not be used afterwards.
    pub fn finish<S: JsonSink + ?Sized>(&mut self, sink: &mut S) {
        let held = std::mem::take(&mut self.held);
        self.read(&held, true, sink);
    }

    /// Bytes kept back for a decision; never more than [`HELD`]; an HTML comment outside of values, at most
    /// `limits.hold`. A key is kept besides, as many at most.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Where the next unread byte stands.
    #[must_use]
    pub fn place(&self) -> Place {
        self.base
    }

    /// Open brackets.
    #[must_use]
    pub fn open(&self) -> usize {
        self.stack.len()
    }

    /// Whether a value is being read.
    #[must_use]
    pub fn in_value(&self) -> bool {
        !self.stack.is_empty() || matches!(self.lexeme, Lexeme::String | Lexeme::Bare)
    }

    /// Bytes looked at so far, for tests of linearity.
    #[doc(hidden)]
    #[must_use]
    pub fn work(&self) -> u64 {
        self.work
    }

    /// Reads `text` as far as it decides; how far.
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

    /// Goes on after a value whose last byte is before `at`.
    pub(super) fn after_value<S: JsonSink + ?Sized>(&mut self, c: &Cursor<'_>, at: usize, sink: &mut S) {
        self.stray_over(sink);
        self.expect = Expect::Next;
        self.newline = false;
        self.bracketed = false;
        if self.stack.is_empty() {
            self.complete(c, at, sink);
        }
    }

    /// The most bytes of a key.
    pub(super) fn hold(&self) -> usize {
        self.hold
    }

    /// Adds to the key being read, up to the limit; nothing after it, however small.
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
