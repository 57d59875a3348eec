//! The value being read: facts that decide whether it is an answer, and state of its message.

use serde_json::{Map, Value};

use super::fields::{ANSWER_FIELDS, ASSESSMENT_FIELDS, ResponseShape};
use super::names;
use crate::repair::json::{JsonEvent, TokenPlace, ValueOrigin, ValueStart};
use crate::span::Place;

/// State of the value being read.
#[derive(Debug, Default)]
pub(super) struct AnswerObject {
    /// Start of the value.
    pub(super) place: Place,
    /// Text or fence that the value is in.
    pub(super) origin: ValueOrigin,
    /// Number of open brackets.
    pub(super) depth: usize,
    /// Nesting depth of the object in the value: 1 inside an array, else 0.
    pub(super) base_depth: usize,
    /// Set if the answer's fields continue inside its assessment, which was not closed before them.
    pub(super) is_shifted: bool,
    /// Set if the value looks like an answer.
    pub(super) is_recognized: bool,
    /// Set if a message had been emitted before the value began.
    pub(super) is_late: bool,
    /// Set if the object has ended and further items of its array follow.
    pub(super) has_ended: bool,
    /// The current key at the level of the answer's fields.
    pub(super) top_key: String,
    /// The current key one level below that, and the last key at that level or deeper.
    pub(super) response_key: String,
    pub(super) last_key: String,
    /// Set if the top-level key is the role or another name of the message, other than `response`.
    pub(super) is_message_key: bool,
    /// Place of the last key that is `response` or in it.
    pub(super) key_place: Place,
    /// Key of the first text in `response` under a role key; empty until such a text is read.
    pub(super) first_role: String,
    /// Set if the current string is text of `response`.
    pub(super) is_response_text: bool,
    /// Interpretation of `response`, and the fields of an answer that it contains as a string.
    pub(super) response_shape: ResponseShape,
    pub(super) inner_fields: Map<String, Value>,
    /// Place of the last bracket outside the fields, or the place after it if it is a closing bracket.
    bracket: Place,
    /// For an object in an array: its start and end.
    pub(super) object_bounds: (Place, Place),
    /// Offsets of `response` and role keys that came after a message had been emitted: of duplicates of such
    /// a key, the first value is kept.
    pub(super) keys_after_message: Vec<usize>,
    /// Places of the keys in `response` whose texts are placeholders.
    pub(super) placeholders: Vec<Place>,
    /// Bytes of text that may be the message although its key is not `response`.
    pub(super) held_bytes: usize,
    /// Set once these bytes have exceeded the hold limit.
    pub(super) is_overlong: bool,
    /// Place of the key of a list in `response`, and the depth of that list.
    open_list: Option<(Place, usize)>,
    /// Keys that are other spellings of a field.
    pub(super) renamed_keys: Vec<RenamedKey>,
}

/// A key that is another spelling of a field: its place, its spelling, and the field.
#[derive(Debug)]
pub(super) struct RenamedKey {
    pub(super) at: Place,
    pub(super) spelling: String,
    pub(super) field_name: &'static str,
}

/// Maximum number of renamed keys recorded.
const MAX_RENAMED_KEYS: usize = 16;

/// Maximum number of entries in [`AnswerObject::keys_after_message`].
const MAX_DUPLICATE_KEYS: usize = 16;

impl AnswerObject {
    pub(super) fn new(start: &ValueStart, is_late: bool) -> AnswerObject {
        AnswerObject { place: start.place, origin: start.origin, is_late, ..AnswerObject::default() }
    }

    /// Records an opening or closing bracket.
    #[inline]
    pub(super) fn set_bracket(&mut self, place: TokenPlace<'_>) {
        if self.base_depth > 0 && self.depth <= self.base_depth + 1 && !self.has_ended {
            self.bracket = place.place();
        }
    }

    /// Records a list that begins, if it may be the list of texts in `response` or under a key in it.
    pub(super) fn begin_list(&mut self) {
        let level = self.depth.saturating_sub(self.field_depth());
        if self.top_key == "response" && self.open_list.is_none() && matches!(level, 1 | 2) && !self.has_ended
        {
            self.open_list = Some((self.key_place, self.depth));
        }
    }

    /// Returns the place of the key of the list that contains the current text of `response`.
    pub(super) fn list_place(&self) -> Option<Place> {
        self.open_list.map(|(at, _)| at)
    }

    /// Ends the list if its bracket has closed.
    pub(super) fn end_list(&mut self) {
        self.open_list = self.open_list.filter(|(_, depth)| self.depth > *depth);
    }

    /// Returns the nesting depth of the answer's fields.
    pub(super) fn field_depth(&self) -> usize {
        self.base_depth + usize::from(self.is_shifted)
    }

    /// Returns the field that a key at this level stands for, if it is spelled differently, and
    /// records the spelling. Level 1 is the level of the answer's fields.
    pub(super) fn find_renamed_field(
        &mut self,
        text: &str,
        level: usize,
        place: TokenPlace<'_>,
    ) -> Option<&'static str> {
        let name = match level {
            1 => names::find_any_field(text),
            2 if self.top_key == "assessment" => names::find_assessment_field(text),
            _ => None,
        };
        let field_name = name.filter(|name| *name != text)?;
        if self.renamed_keys.len() < MAX_RENAMED_KEYS {
            self.renamed_keys.push(RenamedKey { at: place.place(), spelling: text.to_owned(), field_name });
        }
        Some(field_name)
    }

    /// Leaves the assessment if a key in it is a field of the answer, because the assessment was not closed
    /// before that key. Returns true if the assessment was left.
    pub(super) fn leave_unclosed_assessment(&mut self, text: &str, level: usize) -> bool {
        let is_answer_field = || names::find_answer_field(text).is_some_and(|name| name != "assessment");
        let is_shift = level == 2 && !self.is_shifted && self.top_key == "assessment" && is_answer_field();
        self.is_shifted |= is_shift;
        is_shift
    }

    /// Handles the opening bracket of an object.
    #[inline]
    pub(super) fn open_object(&mut self) {
        if self.depth == self.base_depth && !self.has_ended {
            self.object_bounds.0 = self.bracket;
        }
        self.depth += 1;
    }

    /// Handles the opening bracket of an array.
    #[inline]
    pub(super) fn open_array(&mut self) {
        if self.depth == 0 {
            self.base_depth = 1;
        }
        self.depth += 1;
    }

    /// Handles a closing bracket, after `depth` was lowered, and ends the object if the bracket is its own.
    pub(super) fn close_bracket(&mut self) {
        if self.depth == self.base_depth + 1 {
            // This bracket closes the assessment after all.
            self.is_shifted = false;
        }
        if self.depth == self.base_depth && self.depth > 0 && !self.has_ended {
            self.has_ended = true;
            self.object_bounds.1 = self.bracket;
        }
    }

    /// Counts text that may turn out to be the message, at most `limit` bytes.
    #[inline]
    pub(super) fn count_held(&mut self, event: &JsonEvent<'_>, limit: usize) {
        if let JsonEvent::StringDelta(text) = event
            && !self.is_overlong
            && self.is_message_key
        {
            self.held_bytes += text.len();
            if self.held_bytes > limit {
                (self.held_bytes, self.is_overlong) = (0, true);
            }
        }
    }

    /// Handles a key at this level; level 1 is the level of the answer's fields. `is_sent` is set once text
    /// of a message has been emitted, `is_role` if the key is one of the roles. Returns true if the key makes
    /// the object an answer.
    pub(super) fn push_key(
        &mut self,
        text: &str,
        level: usize,
        place: TokenPlace<'_>,
        is_sent: bool,
        is_role: bool,
    ) -> bool {
        self.last_key.clear();
        match level {
            1 => {
                self.is_message_key = is_role || text != "response" && names::is_message_key(text);
                self.top_key.clear();
                self.top_key.push_str(text);
                self.response_key.clear();
            }
            2 => {
                self.last_key.push_str(text);
                self.response_key.clear();
                self.response_key.push_str(text);
            }
            _ => self.last_key.push_str(text),
        }
        let is_in_response = level > 1 && self.top_key == "response";
        if level > 2 && !is_in_response {
            return false;
        }
        let at = place.place();
        let is_response = level == 1 && text == "response";
        if is_in_response || is_response {
            self.key_place = at;
            if is_sent
                && (is_response || level == 2 && is_role)
                && self.keys_after_message.len() < MAX_DUPLICATE_KEYS
            {
                self.keys_after_message.push(at.offset);
            }
        }
        // A lone `reasoning` is common in other objects.
        let is_field =
            ANSWER_FIELDS.contains(&text) || ASSESSMENT_FIELDS.contains(&text) && text != "reasoning";
        !self.is_recognized && level == 1 && (is_field || is_role)
    }
}
