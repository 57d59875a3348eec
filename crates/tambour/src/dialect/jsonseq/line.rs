//! State of the value being read: one object while it arrives, the array that may hold it, and the parsed
//! object kept until its event is emitted.

use serde_json::{Map, Number, Value};

use super::order::DeltaTarget;
use super::rules;
use crate::finding::FindingReport;
use crate::repair::json::{
    BuiltValue, DuplicateKey, JsonEvent, MemberPlaces, TokenPlace, ValueBuilder, ValueEnd,
};
use crate::span::Place;

/// State of one object while it is read, with the facts about its event that are known so far.
#[derive(Default)]
pub(super) struct ObjectState {
    /// Start of the event (of the `event:` line in an SSE frame), and start of its object.
    pub(super) event_start: Place,
    pub(super) object_start: Place,
    /// Number of open brackets, including the object's own; 0 outside of objects.
    pub(super) depth: usize,
    /// Set if `data:` precedes the object, as in an SSE frame, whether or not an `event:` line named it.
    pub(super) is_framed: bool,
    /// Current key of the object, and current key of an object nested in it.
    top_key: String,
    nested_key: String,
    /// Number of top-level keys so far.
    key_count: usize,
    /// Name of the event as read so far, or from the `event:` line of its frame.
    pub(super) name: String,
    /// Set while the current string is the event's name.
    is_name_string: bool,
    /// Set if the last value under `event` is a string.
    pub(super) has_string_name: bool,
    /// The field `id`, if it came before the text.
    pub(super) id: Option<Value>,
    /// Text of an `id` that is a string.
    id_text: String,
    /// Set while the current string is the `id`.
    is_id_string: bool,
    /// Destination of a delta's text if it is streamed, which means emitted as it arrives; set when the text
    /// begins.
    pub(super) target: Option<DeltaTarget>,
    /// Set while the current string is the streamed text.
    is_streaming: bool,
    /// Set once the streamed text is not empty.
    pub(super) has_text: bool,
    /// Offsets of keys whose value came after text had been emitted, too late to change anything.
    late_keys: Vec<usize>,
    /// Nesting depth of the streamed text, and the offset of its key.
    pub(super) text_depth: usize,
    pub(super) text_at: usize,
    /// Bytes of text held back until the end of the object.
    pub(super) held_bytes: usize,
}

/// Keys under which a list of events may be nested.
const WRAPPER_KEYS: [&str; 6] = ["events", "stream", "output", "response", "reply", "result"];

/// Maximum number of late keys recorded.
const MAX_LATE_KEYS: usize = 16;

/// Largest buffer capacity, in bytes, that is reused.
const MAX_REUSED_CAPACITY: usize = 256;

impl ObjectState {
    /// Starts the object at `at`, after [`ObjectState::clear`].
    pub(super) fn begin(&mut self, at: Place, is_framed: bool) {
        (self.event_start, self.object_start, self.depth, self.is_framed) = (at, at, 1, is_framed);
    }

    /// Resets the state for the next object; small buffers are reused.
    pub(super) fn clear(&mut self) {
        let ObjectState { top_key, nested_key, name, id_text, late_keys, .. } = self;
        for buffer in [&mut *top_key, &mut *nested_key, &mut *name, &mut *id_text] {
            if buffer.capacity() > MAX_REUSED_CAPACITY {
                *buffer = String::new();
            }
            buffer.clear();
        }
        late_keys.clear();
        (self.event_start, self.object_start, self.depth, self.is_framed) =
            (Place::START, Place::START, 0, false);
        (self.is_name_string, self.has_string_name, self.is_id_string) = (false, false, false);
        (self.id, self.target, self.is_streaming, self.has_text) = (None, None, false, false);
        (self.text_depth, self.text_at, self.held_bytes, self.key_count) = (0, 0, 0, 0);
    }

    /// Records a key; `depth` is 1 for keys of the object itself.
    pub(super) fn push_key(&mut self, text: &str, depth: usize, place: TokenPlace<'_>) {
        let key = match depth {
            1 => {
                self.key_count += 1;
                self.nested_key.clear();
                &mut self.top_key
            }
            2 => &mut self.nested_key,
            _ => return,
        };
        key.clear();
        key.push_str(text);
        if self.target.is_none() && text == "text" {
            self.text_at = place.offset();
        } else if self.target.is_some()
            && matches!(text, "event" | "data" | "id" | "text")
            && self.late_keys.len() < MAX_LATE_KEYS
        {
            self.late_keys.push(place.offset());
        }
    }

    /// Returns true if the array that begins now holds the events: it is under the first key of the object,
    /// and that key is a known wrapper key.
    pub(super) fn is_wrapper(&self) -> bool {
        self.depth == 1
            && self.key_count == 1
            && !self.is_framed
            && WRAPPER_KEYS.contains(&self.top_key.as_str())
    }

    /// Records whether the value under `event` is a string, if this JSON event begins that value.
    pub(super) fn begin_value(&mut self, event: &JsonEvent<'_>) {
        use JsonEvent::{ArrayStart, Bool, Digits, Null, Number, ObjectStart, StringStart};
        if self.depth == 1
            && matches!(
                event,
                StringStart | Number(_) | Digits(_) | Bool(_) | Null | ObjectStart | ArrayStart
            )
            && self.top_key == "event"
        {
            self.has_string_name = matches!(event, StringStart);
        }
    }

    /// Starts a string. Returns true if it is the field `text` and no text has been streamed.
    pub(super) fn begin_string(&mut self) -> bool {
        self.is_name_string =
            self.depth == 1 && self.top_key == "event" && !self.is_framed && self.name.is_empty();
        self.is_id_string = self.is_field("id") && self.target.is_none();
        self.target.is_none() && self.is_field("text")
    }

    /// Streams the current string to `target` while it arrives.
    pub(super) fn stream(&mut self, target: DeltaTarget) {
        self.target = Some(target);
        self.text_depth = self.depth;
        self.is_streaming = true;
    }

    /// Begins the next piece of the current string, and returns its destination if the string is streamed.
    #[inline]
    pub(super) fn begin_piece(&mut self) -> Option<DeltaTarget> {
        self.has_text |= self.is_streaming;
        self.target.filter(|_| self.is_streaming)
    }

    /// Buffers the next piece of a string that is not streamed.
    pub(super) fn push_string(&mut self, text: &str) {
        if self.is_name_string {
            self.name.push_str(text);
        } else if self.is_id_string {
            self.id_text.push_str(text);
        }
        self.held_bytes += text.len();
    }

    /// Ends the current string. The text of a string under `id` becomes the id.
    pub(super) fn end_string(&mut self) {
        self.is_name_string = false;
        self.is_streaming = false;
        if std::mem::take(&mut self.is_id_string) {
            self.id = Some(Value::from(std::mem::take(&mut self.id_text)));
        }
    }

    /// Records a number, which may be the id.
    pub(super) fn push_number(&mut self, number: &Number) {
        if self.is_field("id") && self.target.is_none() {
            self.id = Some(Value::Number(number.clone()));
        }
    }

    /// Returns true if the key at this offset came after text had been emitted, so that its value changes
    /// nothing.
    pub(super) fn is_late(&self, key_offset: usize) -> bool {
        self.late_keys.contains(&key_offset)
    }

    /// Returns true if the current value is the field `name` of the event.
    fn is_field(&self, name: &str) -> bool {
        match self.depth {
            1 => self.top_key == name && self.top_key != "event",
            2 => self.top_key == "data" && self.nested_key == name && !self.is_framed,
            _ => false,
        }
    }
}

/// A parsed object, kept with the [`ObjectState`] of the same object until its event is emitted.
pub(super) struct CompleteObject {
    /// Members of the object; `None` if it exceeds the limits, empty if its text was streamed.
    pub(super) value: Option<Map<String, Value>>,
    pub(super) duplicates: Vec<DuplicateKey>,
    pub(super) members: MemberPlaces,
    /// Offset after the object.
    pub(super) end: usize,
}

impl CompleteObject {
    /// Ends the object in `builder` and takes it; `end` is the offset after it.
    pub(super) fn new(builder: &mut ValueBuilder, end: usize) -> CompleteObject {
        let (value, duplicates, members) = match builder.push_event(&JsonEvent::ValueEnd(ValueEnd::default()))
        {
            Some(BuiltValue { value: Value::Object(object), duplicates, members, .. }) => {
                (Some(object), duplicates, members)
            }
            // `ValueBuilder::discard_value` replaced the value of a streamed delta with null.
            Some(BuiltValue { value: Value::Null, duplicates, members, .. }) => {
                (Some(Map::new()), duplicates, members)
            }
            _ => (None, Vec::new(), builder.take_members(0)),
        };
        CompleteObject { value, duplicates, members, end }
    }
}

/// Layout of the event objects in the top-level value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ObjectLayout {
    /// The value is the object.
    #[default]
    Alone,
    /// Items of an array.
    Array,
    /// Items of an array under a key of an object.
    WrappedArray,
}

/// The top-level value being read: a lone object, an array with objects as items, or an object around such
/// an array.
#[derive(Default)]
pub(super) struct OuterValue {
    /// Start of the value.
    pub(super) place: Place,
    /// Set if `data:` precedes the value, as in an SSE frame.
    pub(super) is_framed: bool,
    /// Open brackets around the current object: of arrays, and of a wrapper object.
    pub(super) array_depth: usize,
    /// Last bracket of an item: the start of an open object, or the place after a closed one.
    bracket: Place,
    /// Set once an object was read.
    has_objects: bool,
    /// Set if other items were read since the last object.
    has_other_items: bool,
    /// Start of the items since the last object: the end of that object, or the start of the value.
    gap_start: Place,
    layout: ObjectLayout,
}

impl OuterValue {
    pub(super) fn new(place: Place, is_framed: bool) -> OuterValue {
        OuterValue { place, is_framed, ..OuterValue::default() }
    }

    /// Starts an array around objects.
    pub(super) fn begin_array(&mut self) {
        if self.layout == ObjectLayout::Alone {
            self.layout = ObjectLayout::Array;
            self.gap_start = self.place;
        }
        self.array_depth += 1;
    }

    /// Turns the current object into a wrapper, when an array of events begins in it.
    pub(super) fn begin_wrapper(&mut self) {
        // One bracket for the object and one for the array.
        self.begin_array();
        self.begin_array();
        self.layout = ObjectLayout::WrappedArray;
    }

    /// Returns true if the value is the object, not an array of objects.
    pub(super) fn is_lone_object(&self) -> bool {
        self.layout == ObjectLayout::Alone
    }

    pub(super) fn end_array(&mut self) {
        self.array_depth = self.array_depth.saturating_sub(1);
    }

    /// Records the bracket that opens or closes an item.
    pub(super) fn set_bracket(&mut self, place: Place) {
        self.bracket = place;
    }

    /// Records an item that is neither object nor array.
    pub(super) fn mark_other_item(&mut self) {
        self.has_other_items = true;
    }

    /// Starts an object. Returns a finding on the items before it in the array, if they are not objects.
    pub(super) fn begin_object(&mut self) -> Option<FindingReport> {
        self.end_gap(self.bracket.offset)
    }

    /// Returns the place at which the current object begins.
    pub(super) fn object_start(&self) -> Place {
        if self.array_depth > 0 { self.bracket } else { self.place }
    }

    /// Ends the current object and returns the offset after it.
    pub(super) fn end_object(&mut self) -> usize {
        self.has_objects = true;
        self.gap_start = self.bracket;
        self.bracket.offset
    }

    /// Ends the value. Returns findings on the items after the last object of an array and on the value
    /// itself.
    pub(super) fn finish(&mut self, end: usize) -> [Option<FindingReport>; 2] {
        let gap = if self.has_objects { self.end_gap(end) } else { None };
        let value_report = |rule, message, repair| {
            Some(FindingReport::new(rule, self.place, end, message).with_repair(repair))
        };
        let value_report = match (self.has_objects, self.layout) {
            (false, _) => value_report(rules::LINE_NOT_OBJECT, "this is not a JSON object", "left out"),
            (true, ObjectLayout::WrappedArray) => value_report(
                rules::LINES_IN_ARRAY,
                "events in an array under a key",
                "read one after the other",
            ),
            (true, ObjectLayout::Array) => {
                value_report(rules::LINES_IN_ARRAY, "events as items of an array", "read one after the other")
            }
            (true, ObjectLayout::Alone) => None,
        };
        [gap, value_report]
    }

    /// Ends the gap between objects of an array; returns a finding if it held other items.
    fn end_gap(&mut self, end: usize) -> Option<FindingReport> {
        let message = "items that are not JSON objects";
        let report = || {
            FindingReport::new(rules::LINE_NOT_OBJECT, self.gap_start, end, message).with_repair("left out")
        };
        std::mem::take(&mut self.has_other_items).then(report)
    }
}
