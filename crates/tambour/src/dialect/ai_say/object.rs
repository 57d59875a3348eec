//! The value being read: facts that decide whether it is an answer, and state of its message.

use serde_json::{Map, Value};

use super::fields::{ASSESSMENT, Response, TOP};
use super::names;
use crate::repair::json::{JsonEvent, KeyPlace, Origin, Start};
use crate::span::Place;

/// State of the value being read.
#[derive(Debug, Default)]
pub(super) struct AnswerObject {
    pub(super) at: Place,
    pub(super) origin: Origin,
    pub(super) depth: usize,
    /// Nesting depth of the object: 1 inside an array, else 0.
    pub(super) base: usize,
    /// Set if the answer's fields continue inside its assessment, which was not closed before them.
    pub(super) shifted: bool,
    /// Set if the value looks like an answer.
    pub(super) known: bool,
    /// Set if a message had been emitted before the value began.
    pub(super) late: bool,
    /// Set if the object has ended and further items of its array follow.
    pub(super) over: bool,
    pub(super) top: String,
    /// The current key in `response`, and the last key in it at any depth.
    pub(super) sub: String,
    pub(super) last: String,
    /// Set if the top-level key is the role or another name of the message, other than `response`.
    pub(super) spoken: bool,
    pub(super) key_at: Place,
    /// The role key of the first text in `response`.
    pub(super) role: String,
    /// Set if the current string is text of `response`.
    pub(super) text: bool,
    /// Interpretation of `response`, and the fields of an answer that it contains as a string.
    pub(super) response: Response,
    pub(super) inner: Map<String, Value>,
    /// The last bracket outside the fields.
    bracket: Place,
    /// In an array: place of the start and of the end of the object.
    pub(super) edges: (Place, Place),
    /// Offsets of duplicate keys whose first text had been emitted.
    pub(super) kept: Vec<usize>,
    pub(super) placeholders: Vec<Place>,
    /// Bytes of text under another name of `response`.
    pub(super) waiting: usize,
    /// Set if these bytes exceed the hold limit.
    pub(super) overlong: bool,
    /// Place of the key of a list in `response`, and the depth of that list.
    list: Option<(Place, usize)>,
    /// Keys that are other spellings of a field.
    pub(super) renamed: Vec<Renamed>,
}

/// A key that is another spelling of a field: its place, its spelling, and the field.
#[derive(Debug)]
pub(super) struct Renamed {
    pub(super) at: Place,
    pub(super) written: String,
    pub(super) name: &'static str,
}

/// Most such keys recorded.
const RENAMED: usize = 16;

/// Most duplicate keys whose places are recorded.
const KEPT: usize = 16;

impl AnswerObject {
    pub(super) fn new(start: &Start, late: bool) -> AnswerObject {
        AnswerObject { at: start.place, origin: start.origin, late, ..AnswerObject::default() }
    }

    /// Records an opening or closing bracket.
    #[inline]
    pub(super) fn bracket(&mut self, place: KeyPlace<'_>) {
        if self.base > 0 && self.depth <= self.base + 1 && !self.over {
            self.bracket = place.get();
        }
    }

    /// Begins a list, which may be the list of texts in `response` or under a key in it.
    pub(super) fn lists(&mut self) {
        let level = self.depth.saturating_sub(self.above());
        if self.top == "response" && self.list.is_none() && matches!(level, 1 | 2) && !self.over {
            self.list = Some((self.key_at, self.depth));
        }
    }

    /// Returns the place of the key of the list that contains the current text of `response`.
    pub(super) fn listed(&self) -> Option<Place> {
        self.list.map(|(at, _)| at)
    }

    /// Ends the list if its bracket has closed.
    pub(super) fn list_ends(&mut self) {
        self.list = self.list.filter(|(_, depth)| self.depth > *depth);
    }

    /// Returns the nesting depth of the answer's fields.
    pub(super) fn above(&self) -> usize {
        self.base + usize::from(self.shifted)
    }

    /// Returns the field that a key at this level stands for, if it is spelled differently.
    pub(super) fn field(&mut self, text: &str, level: usize, place: KeyPlace<'_>) -> Option<&'static str> {
        let name = match level {
            1 => names::beside(text),
            2 if self.top == "assessment" => names::assessed(text),
            _ => None,
        };
        let name = name.filter(|name| *name != text)?;
        if self.renamed.len() < RENAMED {
            self.renamed.push(Renamed { at: place.get(), written: text.to_owned(), name });
        }
        Some(name)
    }

    /// Returns true if a key in the assessment is a field of the answer: the assessment was not closed before
    /// it.
    pub(super) fn shifts(&mut self, text: &str, level: usize) -> bool {
        let field = || names::top(text).is_some_and(|name| name != "assessment");
        let shifts = level == 2 && !self.shifted && self.top == "assessment" && field();
        self.shifted |= shifts;
        shifts
    }

    /// Handles an opening bracket.
    #[inline]
    pub(super) fn open(&mut self, object: bool) {
        if self.depth == 0 && !object {
            self.base = 1;
        } else if object && self.depth == self.base && !self.over {
            self.edges.0 = self.bracket;
        }
        self.depth += 1;
    }

    /// Handles a closing bracket and ends the object if it is the object's own.
    pub(super) fn closed(&mut self) {
        if self.depth == self.base + 1 {
            // The assessment is closed after all.
            self.shifted = false;
        }
        if self.depth == self.base && self.depth > 0 && !self.over {
            self.over = true;
            self.edges.1 = self.bracket;
        }
    }

    /// Counts text that may turn out to be the message, at most `limit` bytes.
    #[inline]
    pub(super) fn wait(&mut self, event: &JsonEvent<'_>, limit: usize) {
        if let JsonEvent::StringDelta(text) = event
            && !self.overlong
            && self.spoken
        {
            self.waiting += text.len();
            if self.waiting > limit {
                (self.waiting, self.overlong) = (0, true);
            }
        }
    }

    /// Handles a key at this level. Returns true if it makes the object an answer.
    pub(super) fn key(
        &mut self,
        text: &str,
        level: usize,
        place: KeyPlace<'_>,
        sent: bool,
        role: bool,
    ) -> bool {
        self.last.clear();
        match level {
            1 => {
                self.spoken = role || text != "response" && names::is_message(text);
                self.top.clear();
                self.top.push_str(text);
                self.sub.clear();
            }
            2 => {
                self.last.push_str(text);
                self.sub.clear();
                self.sub.push_str(text);
            }
            _ => self.last.push_str(text),
        }
        let in_response = level > 1 && self.top == "response";
        if level > 2 && !in_response {
            return false;
        }
        let at = place.get();
        let response = level == 1 && text == "response";
        if in_response || response {
            self.key_at = at;
            if sent && (response || level == 2 && role) && self.kept.len() < KEPT {
                self.kept.push(at.offset);
            }
        }
        // A lone `reasoning` is common in other objects.
        let known = TOP.contains(&text) || ASSESSMENT.contains(&text) && text != "reasoning";
        !self.known && level == 1 && (known || role)
    }
}
