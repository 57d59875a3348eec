//! The value under way: whether it looks like an answer, and what is read of it.

use serde_json::{Map, Value};

use super::fields::{ASSESSMENT, Response, TOP};
use super::names;
use crate::repair::json::{JsonEvent, KeyPlace, Origin, Start};
use crate::span::Place;

/// What is known of the value under way.
#[derive(Debug, Default)]
pub(super) struct AnswerObject {
    pub(super) at: Place,
    pub(super) origin: Origin,
    pub(super) depth: usize,
    /// Open brackets of an array around the object.
    pub(super) base: usize,
    /// Whether the fields of the answer go on in its assessment, which is not closed before them.
    pub(super) shifted: bool,
    /// Whether it looks like an answer.
    pub(super) known: bool,
    /// Whether a message had been sent before it began.
    pub(super) late: bool,
    /// Whether the object is over and further items of its array follow.
    pub(super) over: bool,
    pub(super) top: String,
    /// The key of `response` under way, and the last key in it at any depth.
    pub(super) sub: String,
    pub(super) last: String,
    /// Whether the top key is that of the role or another name of the message, outside of `response`.
    pub(super) spoken: bool,
    pub(super) key_at: Place,
    /// The role under which a text of `response` stood first.
    pub(super) role: String,
    /// Whether the string under way is text of `response`.
    pub(super) text: bool,
    /// What `response` was, and an answer that stood in it as a string.
    pub(super) response: Response,
    pub(super) inner: Map<String, Value>,
    /// The last bracket outside of the fields.
    bracket: Place,
    /// In an array: where the object begins and ends.
    pub(super) edges: (Place, Place),
    /// Keys that came again after their text had been sent.
    pub(super) kept: Vec<usize>,
    pub(super) placeholders: Vec<Place>,
    /// Bytes of text under another name of `response`, and whether they are more than may wait.
    pub(super) waiting: usize,
    pub(super) overlong: bool,
    /// Where the key of a list in `response` stands, and the brackets above that list.
    list: Option<(Place, usize)>,
    /// Keys that mean a field and are written otherwise.
    pub(super) renamed: Vec<Renamed>,
}

/// A key that means a field: where it stands, how it is written, and the field.
#[derive(Debug)]
pub(super) struct Renamed {
    pub(super) at: Place,
    pub(super) written: String,
    pub(super) name: &'static str,
}

/// Such keys that are kept.
const RENAMED: usize = 16;

/// Keys that came again of which the places are kept.
const KEPT: usize = 16;

impl AnswerObject {
    pub(super) fn new(start: &Start, late: bool) -> AnswerObject {
        AnswerObject { at: start.place, origin: start.origin, late, ..AnswerObject::default() }
    }

    /// A bracket opens or closes.
    #[inline]
    pub(super) fn bracket(&mut self, place: KeyPlace<'_>) {
        if self.base > 0 && self.depth <= self.base + 1 && !self.over {
            self.bracket = place.get();
        }
    }

    /// A list begins: perhaps that of the texts of `response`, or of a key in it.
    pub(super) fn lists(&mut self) {
        let level = self.depth.saturating_sub(self.above());
        if self.top == "response" && self.list.is_none() && matches!(level, 1 | 2) && !self.over {
            self.list = Some((self.key_at, self.depth));
        }
    }

    /// Where the key of the list stands in which a text of `response` does.
    pub(super) fn listed(&self) -> Option<Place> {
        self.list.map(|(at, _)| at)
    }

    /// A bracket has closed: perhaps that of the list.
    pub(super) fn list_ends(&mut self) {
        self.list = self.list.filter(|(_, depth)| self.depth > *depth);
    }

    /// Brackets above the fields of the answer.
    pub(super) fn above(&self) -> usize {
        self.base + usize::from(self.shifted)
    }

    /// The field that a key at this level means, where it is written otherwise.
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

    /// Whether a key in the assessment is a field of the answer: those go on where it is not closed before them.
    pub(super) fn shifts(&mut self, text: &str, level: usize) -> bool {
        let field = || names::top(text).is_some_and(|name| name != "assessment");
        let shifts = level == 2 && !self.shifted && self.top == "assessment" && field();
        self.shifted |= shifts;
        shifts
    }

    /// A bracket has opened.
    #[inline]
    pub(super) fn open(&mut self, object: bool) {
        if self.depth == 0 && !object {
            self.base = 1;
        } else if object && self.depth == self.base && !self.over {
            self.edges.0 = self.bracket;
        }
        self.depth += 1;
    }

    /// The object is over, if the bracket that has closed is its own.
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

    /// Counts text that may turn out to be the message, and waits until then; `limit` bytes may.
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

    /// A key at this level. Whether it makes an answer of the object.
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
