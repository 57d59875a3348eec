//! State of one object while it is read, and the parsed object kept until its event is emitted.

use serde_json::{Map, Number, Value};

use super::order::Target;
use crate::repair::json::{Builder, Built, Duplicate, End, JsonEvent, KeyPlace, Members};
use crate::span::Place;

/// State of the object being read.
#[derive(Default)]
pub(super) struct Line {
    /// Start of the event, and start of its object.
    pub(super) at: Place,
    pub(super) start: Place,
    pub(super) depth: usize,
    /// Set if the object is the data of a named SSE frame.
    pub(super) framed: bool,
    top: String,
    sub: String,
    /// Number of top-level keys so far.
    keys: usize,
    pub(super) name: String,
    /// Set while the current string is the event's name.
    naming: bool,
    /// Set if the last value under `event` is a string.
    pub(super) named: bool,
    pub(super) id: Option<Value>,
    id_text: String,
    id_string: bool,
    /// Destination of a delta's text; set once, when the text begins.
    pub(super) target: Option<Target>,
    streaming: bool,
    pub(super) filled: bool,
    /// Offsets of keys whose value came after text had been emitted, too late to change anything.
    late: Vec<usize>,
    /// Nesting depth of the streamed text, and the offset of its key.
    pub(super) text_depth: usize,
    pub(super) text_at: usize,
    /// Bytes of text held back until the end of the object.
    pub(super) waiting: usize,
}

/// Keys under which a list of events may be nested.
const WRAPPERS: [&str; 6] = ["events", "stream", "output", "response", "reply", "result"];

/// Most late keys recorded.
const LATE: usize = 16;

/// Largest buffer capacity, in bytes, that is reused.
const BUFFER: usize = 256;

impl Line {
    /// Starts an object; no line may be open.
    pub(super) fn begin(&mut self, at: Place, framed: bool) {
        (self.at, self.start, self.depth, self.framed) = (at, at, 1, framed);
    }

    /// Closes the line; small buffers are reused.
    pub(super) fn clear(&mut self) {
        let Line { top, sub, name, id_text, late, .. } = self;
        for buffer in [&mut *top, &mut *sub, &mut *name, &mut *id_text] {
            if buffer.capacity() > BUFFER {
                *buffer = String::new();
            }
            buffer.clear();
        }
        late.clear();
        (self.at, self.start, self.depth, self.framed) = (Place::START, Place::START, 0, false);
        (self.naming, self.named, self.id_string) = (false, false, false);
        (self.id, self.target, self.streaming, self.filled) = (None, None, false, false);
        (self.text_depth, self.text_at, self.waiting, self.keys) = (0, 0, 0, 0);
    }

    pub(super) fn key(&mut self, text: &str, depth: usize, place: KeyPlace<'_>) {
        let key = match depth {
            1 => {
                self.keys += 1;
                self.sub.clear();
                &mut self.top
            }
            2 => &mut self.sub,
            _ => return,
        };
        key.clear();
        key.push_str(text);
        if self.target.is_none() && text == "text" {
            self.text_at = place.offset();
        } else if self.target.is_some()
            && matches!(text, "event" | "data" | "id" | "text")
            && self.late.len() < LATE
        {
            self.late.push(place.offset());
        }
    }

    /// Returns true if the array that begins now holds the events: it is under the first key of the object,
    /// and that key is a known wrapper key.
    pub(super) fn wraps(&self) -> bool {
        self.depth == 1 && self.keys == 1 && !self.framed && WRAPPERS.contains(&self.top.as_str())
    }

    /// Handles an event that may be the start of a value.
    pub(super) fn value_begins(&mut self, event: &JsonEvent<'_>) {
        use JsonEvent::{ArrayStart, Bool, Digits, Null, Number, ObjectStart, StringStart};
        if self.depth == 1
            && matches!(
                event,
                StringStart | Number(_) | Digits(_) | Bool(_) | Null | ObjectStart | ArrayStart
            )
            && self.top == "event"
        {
            self.named = matches!(event, StringStart);
        }
    }

    /// Starts a string. Returns true if it may be the text of a delta and none has been emitted.
    pub(super) fn string_begins(&mut self) -> bool {
        self.naming = self.depth == 1 && self.top == "event" && !self.framed && self.name.is_empty();
        self.id_string = self.is_field("id") && self.target.is_none();
        self.target.is_none() && self.is_field("text")
    }

    /// Streams the current string to `target` while it arrives.
    pub(super) fn stream(&mut self, target: Target) {
        self.target = Some(target);
        self.text_depth = self.depth;
        self.streaming = true;
    }

    /// Returns the destination of the next piece of the current string, if it is streamed.
    #[inline]
    pub(super) fn streamed(&mut self) -> Option<Target> {
        self.filled |= self.streaming;
        self.target.filter(|_| self.streaming)
    }

    /// Buffers the next piece of a string that is not streamed.
    pub(super) fn string(&mut self, text: &str) {
        if self.naming {
            self.name.push_str(text);
        } else if self.id_string {
            self.id_text.push_str(text);
        }
        self.waiting += text.len();
    }

    pub(super) fn string_ends(&mut self) {
        self.naming = false;
        self.streaming = false;
        if std::mem::take(&mut self.id_string) {
            self.id = Some(Value::from(std::mem::take(&mut self.id_text)));
        }
    }

    pub(super) fn number(&mut self, number: &Number) {
        if self.is_field("id") && self.target.is_none() {
            self.id = Some(Value::Number(number.clone()));
        }
    }

    /// Returns true if the key at this offset came after text had been emitted, so that its value changes
    /// nothing.
    pub(super) fn is_late(&self, key: usize) -> bool {
        self.late.contains(&key)
    }

    /// Returns true if the current value is the field `name` of the event.
    fn is_field(&self, name: &str) -> bool {
        match self.depth {
            1 => self.top == name && self.top != "event",
            2 => self.top == "data" && self.sub == name && !self.framed,
            _ => false,
        }
    }
}

/// A parsed object, kept beside its line.
pub(super) struct Done {
    /// `None` when the object exceeds the limits; empty when its text was streamed.
    pub(super) value: Option<Map<String, Value>>,
    pub(super) duplicates: Vec<Duplicate>,
    pub(super) members: Members,
    pub(super) end: usize,
}

impl Done {
    /// Takes the object from `builder`; `end` is its end.
    pub(super) fn new(builder: &mut Builder, end: usize) -> Done {
        let (value, duplicates, members) = match builder.see(&JsonEvent::ValueEnd(End::default())) {
            Some(Built { value: Value::Object(object), duplicates, members, .. }) => {
                (Some(object), duplicates, members)
            }
            // The builder was told to discard the value.
            Some(Built { value: Value::Null, duplicates, members, .. }) => {
                (Some(Map::new()), duplicates, members)
            }
            _ => (None, Vec::new(), builder.members(0)),
        };
        Done { value, duplicates, members, end }
    }
}
