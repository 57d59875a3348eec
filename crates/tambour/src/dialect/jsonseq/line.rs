//! One object: what is known of it while it is read, and what is kept of it until its event is.

use serde_json::{Map, Number, Value};

use super::order::Target;
use crate::repair::json::{Builder, Built, Duplicate, End, JsonEvent, KeyPlace, Members};
use crate::span::Place;

/// What is known of the object under way.
#[derive(Default)]
pub(super) struct Line {
    /// Where the event begins, and where its object does.
    pub(super) at: Place,
    pub(super) start: Place,
    pub(super) depth: usize,
    /// The object is the data of a named frame.
    pub(super) framed: bool,
    top: String,
    sub: String,
    /// Keys of the object so far.
    keys: usize,
    pub(super) name: String,
    /// Whether the string under way is the event's name, and whether the last value under `event` is a string.
    naming: bool,
    pub(super) named: bool,
    pub(super) id: Option<Value>,
    id_text: String,
    id_string: bool,
    /// Where the text of a delta goes; set once, when the text begins.
    pub(super) target: Option<Target>,
    streaming: bool,
    pub(super) filled: bool,
    /// Keys whose value came after text had been sent, and so late that it changes nothing.
    late: Vec<usize>,
    /// Open brackets around the text that goes out, and the offset of its key.
    pub(super) text_depth: usize,
    pub(super) text_at: usize,
    /// Bytes of text that wait for the end of the object.
    pub(super) waiting: usize,
}

/// Keys under which a list of events may stand.
const WRAPPERS: [&str; 6] = ["events", "stream", "output", "response", "reply", "result"];

/// Keys that are looked at for what came too late.
const LATE: usize = 16;

/// Bytes of a buffer that is used again.
const BUFFER: usize = 256;

impl Line {
    /// An object begins here; no line was under way.
    pub(super) fn begin(&mut self, at: Place, framed: bool) {
        (self.at, self.start, self.depth, self.framed) = (at, at, 1, framed);
    }

    /// No line is under way; its buffers are used again, where they are small.
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

    /// Whether a list that begins now holds the events: it stands under the first key of the object, which says so.
    pub(super) fn wraps(&self) -> bool {
        self.depth == 1 && self.keys == 1 && !self.framed && WRAPPERS.contains(&self.top.as_str())
    }

    /// An event that may be the beginning of a value.
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

    /// A string begins. Whether it may be the text of a delta, none of which was sent.
    pub(super) fn string_begins(&mut self) -> bool {
        self.naming = self.depth == 1 && self.top == "event" && !self.framed && self.name.is_empty();
        self.id_string = self.is_field("id") && self.target.is_none();
        self.target.is_none() && self.is_field("text")
    }

    /// The string that has begun goes there while it arrives.
    pub(super) fn stream(&mut self, target: Target) {
        self.target = Some(target);
        self.text_depth = self.depth;
        self.streaming = true;
    }

    /// Where the next piece of the string under way goes, if it is sent.
    #[inline]
    pub(super) fn streamed(&mut self) -> Option<Target> {
        self.filled |= self.streaming;
        self.target.filter(|_| self.streaming)
    }

    /// The next piece of a string that waits.
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

    /// Whether a key came after text had been sent, so that its value changes nothing.
    pub(super) fn is_late(&self, key: usize) -> bool {
        self.late.contains(&key)
    }

    /// Whether the value under way is that field of the event.
    fn is_field(&self, name: &str) -> bool {
        match self.depth {
            1 => self.top == name && self.top != "event",
            2 => self.top == "data" && self.sub == name && !self.framed,
            _ => false,
        }
    }
}

/// An object that has been read, beside its line.
pub(super) struct Done {
    /// `None` when it is larger than the limits; empty when its text was handed on.
    pub(super) value: Option<Map<String, Value>>,
    pub(super) duplicates: Vec<Duplicate>,
    pub(super) members: Members,
    pub(super) end: usize,
}

impl Done {
    /// The object that `builder` has up to its end.
    pub(super) fn new(builder: &mut Builder, end: usize) -> Done {
        let (value, duplicates, members) = match builder.see(&JsonEvent::ValueEnd(End::default())) {
            Some(Built { value: Value::Object(object), duplicates, members, .. }) => {
                (Some(object), duplicates, members)
            }
            // Nothing of it is asked for.
            Some(Built { value: Value::Null, duplicates, members, .. }) => {
                (Some(Map::new()), duplicates, members)
            }
            _ => (None, Vec::new(), builder.members(0)),
        };
        Done { value, duplicates, members, end }
    }
}
