//! Events of the JSON reader.

use serde_json::Number;

use crate::finding::FindingReport;
use crate::span::Place;

/// One event of the reader. Its text borrows from the caller's chunk unless it had to be decoded.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum JsonEvent<'a> {
    /// Text outside of values, in pieces, white space included.
    Text(&'a str),
    /// A comment outside of values, in pieces: a closed HTML comment, or a line in a fence that begins with
    /// `//`. It is not searched for values, fences or thinking.
    Comment(&'a str),
    /// Thinking begins outside of values, with this mark. Thinking is not searched for values.
    ThoughtStart(ThoughtMark<'a>),
    /// Text of the open thinking, in pieces.
    Thought(&'a str),
    /// Thinking ends, with this mark. If none was open, all text so far was thinking.
    ThoughtEnd(ThoughtMark<'a>, ThoughtClosing),
    /// A value begins. With prose around it, it is only a candidate: it may be prose in brackets.
    ValueStart(ValueStart),
    /// `{`
    ObjectStart,
    /// A complete, decoded key of the innermost object. Keys beyond `limits.hold` are truncated and reported.
    Key {
        /// Decoded key.
        text: &'a str,
        /// Place of the key.
        place: TokenPlace<'a>,
        /// Number of open brackets around it: 1 for keys of the outermost object.
        depth: usize,
    },
    /// `}`
    ObjectEnd,
    /// `[`
    ArrayStart,
    /// `]`
    ArrayEnd,
    /// A string value begins.
    StringStart,
    /// Next piece of the string, decoded and not empty.
    StringDelta(&'a str),
    /// The string is complete.
    StringEnd,
    /// A number, parsed.
    Number(&'a Number),
    /// A number as written, in place of [`JsonEvent::Number`], from a reader that keeps all digits
    /// ([`JsonReader::with_exact_digits`](super::JsonReader::with_exact_digits)).
    Digits(&'a str),
    /// `true` or `false`.
    Bool(bool),
    /// `null`, also in place of a missing value.
    Null,
    /// The value is complete.
    ValueEnd(ValueEnd),
}

/// A mark that begins or ends thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThoughtMark<'a> {
    /// Text of the mark.
    pub text: &'a str,
    /// Place of the mark.
    pub place: Place,
}

impl ThoughtMark<'_> {
    /// Place after the mark.
    #[must_use]
    pub(crate) fn end(&self) -> Place {
        self.place.end_of(self.text)
    }
}

/// Relation of a closing mark to the thinking that it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThoughtClosing {
    /// Closes thinking that a mark of the same name began.
    SameName,
    /// Closes thinking that a mark of another name began.
    OtherName,
    /// No thinking was open.
    Unopened,
}

/// Place of a key or bracket, computed on request.
#[derive(Clone, Copy, Debug)]
pub struct TokenPlace<'a> {
    /// Known place before the token.
    pub(super) base: Place,
    /// Text from `base` to the token.
    pub(super) skipped: &'a str,
    /// Byte offset after the key; 0 for a bracket.
    pub(super) end: usize,
}

impl TokenPlace<'_> {
    /// Computes the place.
    #[must_use]
    #[inline]
    pub fn place(self) -> Place {
        if self.skipped.is_empty() { self.base } else { self.base.end_of(self.skipped) }
    }

    /// Byte offset of the place, without counting lines.
    pub(crate) fn offset(self) -> usize {
        self.base.offset + self.skipped.len()
    }

    /// Computes the place now, for repeated use.
    pub(crate) fn resolve(self) -> Self {
        TokenPlace { base: self.place(), skipped: "", end: self.end }
    }

    /// Byte offset after the key.
    pub(crate) fn end(self) -> usize {
        self.end
    }
}

impl PartialEq for TokenPlace<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

/// Start of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueStart {
    /// Index of the value in the text, from 0.
    pub index: usize,
    /// Place of its first character.
    pub place: Place,
    /// Context of the value.
    pub origin: ValueOrigin,
    /// True if an unclosed HTML comment precedes it, so that it may be commented out.
    pub is_in_open_comment: bool,
}

/// Context of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ValueOrigin {
    /// Plain text.
    #[default]
    Bare,
    /// A fence for JSON: its language is empty or begins with `json`.
    JsonFence,
    /// A fence for another language.
    OtherFence,
}

/// End of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueEnd {
    /// Byte offset of the end.
    pub offset: usize,
    /// Place of the end.
    pub place: Place,
    /// True if anything in the value was repaired.
    pub is_repaired: bool,
    /// True if the reader closed the value: a quote or bracket was added where the text, its fence or its
    /// line ended (P-027).
    pub is_auto_closed: bool,
    /// True if the value contains a quoted string or key. Without one it may be prose in brackets.
    pub has_quotes: bool,
}

/// Receives events and reports of the reader, in order.
pub trait JsonSink {
    /// Receives the next event; its text is borrowed for the call.
    fn event(&mut self, event: JsonEvent<'_>);

    /// Receives the next report.
    fn report(&mut self, report: FindingReport);

    /// Receives the place of an opening bracket, or the place after a closing one, before its event.
    #[doc(hidden)]
    fn bracket(&mut self, _place: TokenPlace<'_>) {}

    /// Receives the span of the next number, from `place` to the byte offset `end`, if the number has more
    /// digits than are kept. By RFC 8259 this is no fault.
    #[doc(hidden)]
    fn report_rounding(&mut self, _place: Place, _end: usize) {}
}

/// Tracks the key of the outermost object that is being read.
#[derive(Clone, Debug, Default)]
pub struct TopKeyTracker {
    depth: usize,
    /// Last key of the outermost object.
    key: String,
}

impl TopKeyTracker {
    /// Tracks an event: must receive every event of the reader, before the key is asked for.
    #[inline]
    pub fn push_event(&mut self, event: &JsonEvent<'_>) {
        match event {
            JsonEvent::ValueStart(_) => {
                self.depth = 0;
                self.key.clear();
            }
            JsonEvent::ObjectStart | JsonEvent::ArrayStart => self.depth += 1,
            JsonEvent::ObjectEnd | JsonEvent::ArrayEnd => self.depth = self.depth.saturating_sub(1),
            JsonEvent::Key { text, depth: 1, .. } => {
                self.key.clear();
                self.key.push_str(text);
            }
            _ => {}
        }
    }

    /// Last key of the outermost object, while the reader is directly in that object; `Some("")` before the
    /// first key and in an outermost array. `None` outside of all brackets and inside nested objects and
    /// arrays.
    #[inline]
    #[must_use]
    pub fn current_key(&self) -> Option<&str> {
        (self.depth == 1).then_some(self.key.as_str())
    }

    /// Like [`TopKeyTracker::current_key`], but also inside nested objects and arrays.
    #[must_use]
    pub fn enclosing_key(&self) -> Option<&str> {
        (self.depth >= 1).then_some(self.key.as_str())
    }

    /// Number of open brackets.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth
    }
}
