//! What the reader has to say while it reads.

use serde_json::Number;

use crate::finding::Report;
use crate::span::Place;

/// One step of reading. Text borrows from the caller's piece wherever nothing had to be decoded.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum JsonEvent<'a> {
    /// Text outside of values, in pieces. White space too.
    Text(&'a str),
    /// A comment outside of values, in pieces: an HTML comment that is closed, or a line of a fence that begins with `//`.
    /// It is text in which no value, fence or thinking is looked for.
    Comment(&'a str),
    /// Thinking begins outside of values, with this mark. No value is looked for in it.
    ThoughtStart(ThoughtMark<'a>),
    /// Text of the thinking under way, in pieces.
    Thought(&'a str),
    /// Thinking ends, with this mark. If it has not begun, the text so far was thinking.
    ThoughtEnd(ThoughtMark<'a>, Closing),
    /// A value begins (a *candidate* in chatty text).
    ValueStart(Start),
    /// `{`
    ObjectStart,
    /// A key of the innermost object, whole and decoded. Longer ones than `limits.hold` are cut, with a report.
    Key {
        /// The key.
        text: &'a str,
        /// Where it stands.
        place: KeyPlace<'a>,
        /// Open brackets around it: 1 for the keys of the outermost object.
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
    /// The next piece of the string, decoded, not empty.
    StringDelta(&'a str),
    /// The string is complete.
    StringEnd,
    /// A number.
    Number(&'a Number),
    /// A number as it is written, from a reader that keeps all digits ([`Reader::exact`](super::Reader::exact)).
    Digits(&'a str),
    /// `true` or `false`.
    Bool(bool),
    /// `null`, also in the place of a missing value.
    Null,
    /// The value is complete.
    ValueEnd(End),
}

/// A mark of thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThoughtMark<'a> {
    /// As it is written.
    pub text: &'a str,
    /// Where it stands.
    pub place: Place,
}

impl ThoughtMark<'_> {
    /// The place after it.
    #[must_use]
    pub fn end(&self) -> Place {
        self.place.after(self.text)
    }
}

/// What a mark closes that ends thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Closing {
    /// What began with a mark of the same name.
    Own,
    /// What began with a mark of another name.
    Foreign,
    /// Nothing that has begun.
    Unopened,
}

/// Where a key or bracket stands. Lines are counted only when asked for.
#[derive(Clone, Copy, Debug)]
pub struct KeyPlace<'a> {
    pub(super) from: Place,
    pub(super) over: &'a str,
    /// Offset after its text; 0 for a bracket.
    pub(super) end: usize,
}

impl KeyPlace<'_> {
    /// The place.
    #[must_use]
    #[inline]
    pub fn get(self) -> Place {
        if self.over.is_empty() { self.from } else { self.from.after(self.over) }
    }

    /// The offset of the place, for which nothing is counted.
    pub(crate) fn offset(self) -> usize {
        self.from.offset + self.over.len()
    }

    /// The same, counted now.
    pub(crate) fn counted(self) -> Self {
        KeyPlace { from: self.get(), over: "", end: self.end }
    }

    /// The offset after the text of a key.
    pub(crate) fn end(self) -> usize {
        self.end
    }
}

impl PartialEq for KeyPlace<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

/// The start of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Start {
    /// 0 for the first value of the text.
    pub index: usize,
    /// Where its first character stands.
    pub place: Place,
    /// What it stands in.
    pub origin: Origin,
    /// Whether an HTML comment before it is not closed: what is in it may only seem to be meant.
    pub commented: bool,
}

/// What a value stands in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// The text itself.
    #[default]
    Bare,
    /// A fence for JSON: its language tag is empty or begins with `json`.
    JsonFence,
    /// A fence for something else.
    OtherFence,
}

/// The end of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct End {
    /// Byte offset after its last character.
    pub offset: usize,
    /// The same place with line and column.
    pub place: Place,
    /// Whether anything was repaired in it.
    pub repaired: bool,
    /// Whether its end is ours: a quote or bracket was added where the text, its fence or its line ended (P-027).
    pub closed_by_us: bool,
    /// Whether a string or key in it stands in quotes. What has none may well be prose in brackets.
    pub quoted: bool,
}

/// Receives what the reader says, in order.
pub trait JsonSink {
    /// The next event; its text lives until the call returns.
    fn event(&mut self, event: JsonEvent<'_>);

    /// The next repair or limit.
    fn report(&mut self, report: Report);

    /// A bracket opens at this place, or closed before it; comes before its event.
    fn bracket(&mut self, _place: KeyPlace<'_>) {}

    /// The number that comes next has more digits than are kept; it stands from `place` to the offset `end`. By RFC 8259
    /// that is no fault.
    fn rounded(&mut self, _place: Place, _end: usize) {}
}

/// Knows at every moment which key of the outermost object is being read.
#[derive(Clone, Debug, Default)]
pub struct TopKey {
    depth: usize,
    key: String,
}

impl TopKey {
    /// Follows the reader; to be called with every event, before [`TopKey::get`].
    #[inline]
    pub fn see(&mut self, event: &JsonEvent<'_>) {
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

    /// The key whose own value is being read: `None` between values and inside nested ones.
    #[inline]
    #[must_use]
    pub fn get(&self) -> Option<&str> {
        (self.depth == 1).then_some(self.key.as_str())
    }

    /// The key of the outermost object under which something is being read, at any depth.
    #[must_use]
    pub fn under(&self) -> Option<&str> {
        (self.depth >= 1).then_some(self.key.as_str())
    }

    /// Open brackets.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth
    }
}
