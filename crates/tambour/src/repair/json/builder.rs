//! Builder of values from reader events.

use serde_json::{Map, Value};

use crate::finding::{Doubt, FindingReport, clip};
use crate::repair::rules;
use crate::span::{Extent, Place};

use super::doubt::{MAX_PATH_STEPS, PathStep, ValueDoubts, is_between_items};
use super::event::{JsonEvent, JsonSink, ValueEnd, ValueStart};
use super::keys::{self, DuplicateKey, KeyBuffers, KeyIndex};
use super::members::MemberPlaces;

/// A value with information about how it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct BuiltValue<V = Value> {
    /// The value.
    pub value: V,
    /// Start of the value.
    pub start: ValueStart,
    /// End of the value.
    pub end: ValueEnd,
    /// Duplicate keys; the value keeps the last member of each (P-030).
    #[doc(hidden)]
    pub duplicates: Vec<DuplicateKey>,
    /// Doubts about the value and its nested values.
    pub doubts: ValueDoubts,
    /// Places of the members of the value, if the builder records them.
    #[doc(hidden)]
    pub members: MemberPlaces,
}

/// Builds values from events.
#[derive(Clone, Debug, Default)]
pub struct ValueBuilder {
    open_frames: Vec<BuilderFrame>,
    /// Finished items of all open objects and arrays.
    items: Vec<Value>,
    /// Keys of all open objects, including those still without a value.
    keys: Vec<(String, Place)>,
    buffers: KeyBuffers,
    /// The whole value, once it is complete.
    root: Option<Value>,
    /// Text of the current string.
    text: String,
    start: Option<ValueStart>,
    duplicates: Vec<DuplicateKey>,
    doubts: ValueDoubts,
    members: Option<MemberPlaces>,
    /// Maximum size of one value: bytes of text, and items (values and keys); `None` for no limits.
    limits: Option<(usize, usize)>,
    /// Bytes and items that the current value may still have.
    remaining: (usize, usize),
    is_over_limit: bool,
    /// True if the current value is discarded; its keys are still tracked.
    is_discarded: bool,
}

/// An open object or array.
#[derive(Clone, Debug)]
struct BuilderFrame {
    is_object: bool,
    /// Index in [`ValueBuilder::items`] of its first item.
    first_item: usize,
    /// Index in [`ValueBuilder::keys`] of its first key.
    first_key: usize,
    /// Hash index of its keys, once there are many.
    index: Option<Box<KeyIndex>>,
}

/// Maximum length in bytes of a string that is copied to a buffer of exact size.
const MAX_COPIED_STRING: usize = 4 << 10;

impl ValueBuilder {
    /// Creates an empty builder.
    #[must_use]
    pub fn new() -> ValueBuilder {
        ValueBuilder::default()
    }

    /// Creates a builder of values with at most `bytes` of text and `items` values and keys. Larger values
    /// are discarded; [`ValueBuilder::is_over_limit`] reports it at their end.
    #[must_use]
    pub fn with_limits(bytes: usize, items: usize) -> ValueBuilder {
        ValueBuilder { limits: Some((bytes, items)), ..ValueBuilder::default() }
    }

    /// Records the places of members that are at most `depth` keys deep, their own key included.
    #[must_use]
    pub(crate) fn with_member_places(mut self, depth: usize) -> ValueBuilder {
        self.members = Some(MemberPlaces::with_depth(depth));
        self
    }

    /// Discards the current value: [`ValueBuilder::push_event`] returns `null` for it. Its size, members and
    /// duplicate keys are still tracked.
    pub(crate) fn discard_value(&mut self) {
        self.is_discarded = true;
        self.items.clear();
        // No item is left, so the items of each frame begin at 0.
        self.open_frames.iter_mut().for_each(|frame| frame.first_item = 0);
    }

    /// Gives back the members of an earlier value, so that their buffers are reused.
    pub(crate) fn recycle_members(&mut self, members: MemberPlaces) {
        if let Some(own_members) = &mut self.members {
            own_members.recycle(members);
        }
    }

    /// Returns whether the last value exceeded the limits.
    #[must_use]
    pub fn is_over_limit(&self) -> bool {
        self.is_over_limit
    }

    /// Bytes of text and items of the current or last value; zeros if the builder has no limits.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        let (bytes, items) = self.limits.unwrap_or_default();
        (bytes - self.remaining.0.min(bytes), items - self.remaining.1.min(items))
    }

    /// Bytes of text that the current value may still have.
    #[must_use]
    pub fn remaining_bytes(&self) -> usize {
        if self.limits.is_some() { self.remaining.0 } else { usize::MAX }
    }

    /// Counts an event against the limits; returns whether it fits.
    fn consume_budget(&mut self, event: &JsonEvent<'_>) -> bool {
        if let JsonEvent::ValueStart(_) = event {
            self.is_over_limit = false;
            self.remaining = self.limits.unwrap_or_default();
        }
        if self.limits.is_none() || self.is_over_limit {
            return !self.is_over_limit;
        }
        let (bytes, items) = match event {
            JsonEvent::StringDelta(text) => (text.len(), 0),
            JsonEvent::Key { text, .. } => (text.len(), 1),
            JsonEvent::StringStart | JsonEvent::ObjectStart | JsonEvent::ArrayStart => (0, 1),
            JsonEvent::Number(_) | JsonEvent::Digits(_) | JsonEvent::Bool(_) | JsonEvent::Null => (0, 1),
            _ => (0, 0),
        };
        match (self.remaining.0.checked_sub(bytes), self.remaining.1.checked_sub(items)) {
            (Some(bytes), Some(items)) => self.remaining = (bytes, items),
            _ => {
                // The value is dropped; only the places of its members are still recorded.
                let members = self.members.take();
                let is_discarded = self.is_discarded;
                *self = ValueBuilder {
                    limits: self.limits,
                    is_over_limit: true,
                    members,
                    is_discarded,
                    ..ValueBuilder::default()
                };
            }
        }
        !self.is_over_limit
    }

    /// Reads the next event; returns the value at [`JsonEvent::ValueEnd`].
    #[inline]
    pub fn push_event(&mut self, event: &JsonEvent<'_>) -> Option<BuiltValue> {
        match *event {
            // The place is needed more than once, so it is computed here.
            JsonEvent::Key { text, place, depth } => {
                self.apply_event(&JsonEvent::Key { text, place: place.resolve(), depth })
            }
            _ => self.apply_event(event),
        }
    }

    fn apply_event(&mut self, event: &JsonEvent<'_>) -> Option<BuiltValue> {
        if let Some(members) = &mut self.members {
            members.push_event(event);
        }
        if !self.consume_budget(event) {
            return None;
        }
        match *event {
            JsonEvent::Text(_)
            | JsonEvent::Comment(_)
            | JsonEvent::ThoughtStart(_)
            | JsonEvent::Thought(_)
            | JsonEvent::ThoughtEnd(..) => {}
            JsonEvent::ValueStart(start) => {
                self.is_discarded = false;
                self.start = Some(start);
                self.doubts = ValueDoubts::default();
                self.open_frames.clear();
                self.items.clear();
                self.keys.clear();
            }
            JsonEvent::ObjectStart => self.open_frame(true),
            JsonEvent::ArrayStart => self.open_frame(false),
            JsonEvent::Key { text, place, .. } => self.push_key(text, place.place()),
            JsonEvent::ObjectEnd | JsonEvent::ArrayEnd => self.close_frame(),
            JsonEvent::StringStart => self.text.clear(),
            JsonEvent::StringDelta(text) if !self.is_discarded => self.text.push_str(text),
            JsonEvent::StringDelta(_) => {}
            JsonEvent::StringEnd | JsonEvent::Number(_) | JsonEvent::Digits(_) if self.is_discarded => {
                self.push_value(Value::Null);
            }
            JsonEvent::StringEnd => {
                // Short strings get a buffer of their length, a long one keeps the buffer it was collected
                // in.
                let is_short = self.text.len() <= MAX_COPIED_STRING;
                let text =
                    if is_short { self.text.as_str().to_owned() } else { std::mem::take(&mut self.text) };
                self.push_value(Value::String(text));
            }
            JsonEvent::Number(number) => self.push_value(Value::Number(number.clone())),
            // A number with all its digits. A `Value` has only integers of 64 bits and doubles; a number
            // beyond their range becomes `null`.
            JsonEvent::Digits(digits) => self.push_value(serde_json::from_str(digits).unwrap_or_default()),
            JsonEvent::Bool(value) => self.push_value(Value::Bool(value)),
            JsonEvent::Null => self.push_value(Value::Null),
            JsonEvent::ValueEnd(end) => {
                let value = self.root.take()?;
                let start = self.start.take()?;
                let mut duplicates = std::mem::take(&mut self.duplicates);
                keys::end_duplicates(&mut duplicates, 0, end.offset);
                let doubts = std::mem::take(&mut self.doubts);
                let members = self.take_members(end.offset);
                return Some(BuiltValue { value, start, end, duplicates, doubts, members });
            }
        }
        None
    }

    /// Records a report on the current value, for [`BuiltValue::doubts`].
    pub fn note_report(&mut self, report: &FindingReport) {
        if self.start.is_some() && report.doubt.is_some() {
            let mut doubts = std::mem::take(&mut self.doubts);
            // A report between items concerns the open object or array, any other report its next item.
            let concerns_next_item = !is_between_items(report);
            doubts.add(report, || self.path(concerns_next_item));
            self.doubts = doubts;
        }
    }

    /// Path to the innermost open object or array; with `to_next_item`, path to its next item.
    fn path(&self, to_next_item: bool) -> Vec<PathStep> {
        let mut path = Vec::new();
        for (at, frame) in self.open_frames.iter().enumerate().take(MAX_PATH_STEPS) {
            let inner = self.open_frames.get(at + 1);
            if inner.is_none() && !to_next_item {
                break;
            }
            let key_end = inner.map_or(self.keys.len(), |inner| inner.first_key);
            let item_end = inner.map_or(self.items.len(), |inner| inner.first_item);
            path.push(match (frame.is_object, self.keys[frame.first_key..key_end].last()) {
                (true, Some((key, _))) => PathStep::Key(key.clone()),
                (true, None) => break,
                (false, _) => PathStep::Index(item_end - frame.first_item),
            });
        }
        path
    }

    /// Takes the places of the members of the last value, even if it was too large. `end` is the byte offset
    /// after the value; 0 if the caller sets the ends later.
    pub(crate) fn take_members(&mut self, end: usize) -> MemberPlaces {
        let mut members = self.members.as_mut().map(MemberPlaces::take).unwrap_or_default();
        if end > 0 {
            members.end_members(end);
        }
        members
    }

    fn open_frame(&mut self, is_object: bool) {
        self.open_frames.push(BuilderFrame {
            is_object,
            first_item: self.items.len(),
            first_key: self.keys.len(),
            index: None,
        });
    }

    fn push_key(&mut self, text: &str, place: Place) {
        let depth = self.open_frames.len();
        keys::end_duplicates(&mut self.duplicates, depth, place.offset);
        let Some(frame) = self.open_frames.last_mut() else { return };
        let keys = &self.keys[frame.first_key..];
        // The last value of a key is kept.
        let replaces_earlier = true;
        let key_at = |at: usize| keys[at].0.as_str();
        let duplicate = keys::find_key(keys.len(), key_at, text, &mut frame.index, replaces_earlier);
        if let Some(at) = duplicate {
            let end = keys.get(at + 1).map_or(place.offset, |(_, next_place)| next_place.offset);
            let first = Extent { place: keys[at].1, end };
            DuplicateKey::add(&mut self.duplicates, text, first, place, depth);
        }
        self.keys.push((self.buffers.fill(text), place));
        if duplicate.is_some() {
            let message = format!("the key `{}` occurs twice", clip(text, 40));
            let report = FindingReport::new(&rules::DUPLICATE_KEY, place, place.offset + text.len(), message);
            self.note_report(&report.with_doubt(Doubt::DuplicateKey));
        }
    }

    fn close_frame(&mut self) {
        let Some(frame) = self.open_frames.pop() else { return };
        if self.is_discarded {
            self.buffers.recycle(self.keys.drain(frame.first_key..).map(|(key, _)| key));
            return self.push_value(Value::Null);
        }
        let items = self.items.drain(frame.first_item..);
        let value = if frame.is_object {
            let keys = self.keys.drain(frame.first_key..).map(|(key, _)| key);
            let mut map = Map::with_capacity(items.len());
            map.extend(keys.zip(items));
            Value::Object(map)
        } else {
            Value::Array(items.collect())
        };
        self.push_value(value);
    }

    fn push_value(&mut self, value: Value) {
        if self.open_frames.is_empty() {
            self.root = Some(value);
        } else if !self.is_discarded {
            self.items.push(value);
        }
    }
}

/// Simplest sink: stores all values, reports and surrounding text.
#[derive(Clone, Debug, Default)]
pub struct ValueCollector {
    builder: ValueBuilder,
    /// The values, in order.
    pub values: Vec<BuiltValue>,
    /// Repairs and duplicate keys.
    pub reports: Vec<FindingReport>,
    /// Text outside of values, joined.
    pub text: String,
}

impl JsonSink for ValueCollector {
    fn event(&mut self, event: JsonEvent<'_>) {
        match &event {
            JsonEvent::Text(text) | JsonEvent::Comment(text) | JsonEvent::Thought(text) => {
                self.text.push_str(text);
            }
            JsonEvent::ThoughtStart(mark) | JsonEvent::ThoughtEnd(mark, _) => self.text.push_str(mark.text),
            _ => {}
        }
        if let Some(built_value) = self.builder.push_event(&event) {
            self.reports.extend(built_value.duplicates.iter().map(DuplicateKey::report_last_kept));
            self.values.push(built_value);
        }
    }

    fn report(&mut self, report: FindingReport) {
        self.builder.note_report(&report);
        self.reports.push(report);
    }
}
