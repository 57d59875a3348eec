//! Builder of values from reader events.

use serde_json::{Map, Value};

use crate::finding::{Doubt, Report, clip};
use crate::repair::rules;
use crate::span::Place;

use super::doubt::{Doubts, PathStep, STEPS, is_between};
use super::event::{End, JsonEvent, JsonSink, Start};
use super::keys::{self, Buffers, Duplicate, Keys};
use super::members::Members;

/// A value with information about how it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Built<V = Value> {
    /// The value.
    pub value: V,
    /// Start of the value.
    pub start: Start,
    /// End of the value.
    pub end: End,
    /// Duplicate keys; the value of the last one is kept (P-030).
    pub duplicates: Vec<Duplicate>,
    /// Values in it that are in doubt, if reports are passed to the builder ([`Builder::note`]).
    pub doubts: Doubts,
    /// Places of its members, if the builder records them.
    pub members: Members,
}

/// Builds values from events.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    open: Vec<Open>,
    /// Finished items of all open objects and arrays.
    items: Vec<Value>,
    /// Keys of all open objects, including those still without a value.
    keys: Vec<(String, Place)>,
    buffers: Buffers,
    root: Option<Value>,
    text: String,
    start: Option<Start>,
    duplicates: Vec<Duplicate>,
    doubts: Doubts,
    members: Option<Members>,
    /// Limits of bytes and items of one value, and what the current one has left of them.
    most: Option<(usize, usize)>,
    left: (usize, usize),
    over: bool,
    /// Only the keys of the current value are wanted.
    unasked: bool,
}

/// An open object or array.
#[derive(Clone, Debug)]
struct Open {
    object: bool,
    /// First indexes of its items and keys.
    items: usize,
    keys: usize,
    /// Index of its keys, once there are many.
    index: Option<Box<Keys>>,
}

/// Longest string that is copied to a buffer of exact size.
const SHORT: usize = 4 << 10;

impl Builder {
    /// Creates an empty builder.
    #[must_use]
    pub fn new() -> Builder {
        Builder::default()
    }

    /// Creates a builder of values with at most `bytes` of text and `items` values and keys. Larger values
    /// are discarded; [`Builder::over`] reports it at their end.
    #[must_use]
    pub fn limited(bytes: usize, items: usize) -> Builder {
        Builder { most: Some((bytes, items)), ..Builder::default() }
    }

    /// Records the places of members that are at most `depth` keys deep, their own key included.
    #[must_use]
    pub(crate) fn placing(mut self, depth: usize) -> Builder {
        self.members = Some(Members::to(depth));
        self
    }

    /// Discards the current value: [`Builder::see`] returns `null` for it. Its size, members and duplicate
    /// keys are still tracked.
    pub(crate) fn forget_value(&mut self) {
        self.unasked = true;
        self.items.clear();
        self.open.iter_mut().for_each(|open| open.items = 0);
    }

    /// Returns members of an earlier value, so that their buffers are reused.
    pub(crate) fn reuse(&mut self, members: Members) {
        if let Some(empty) = &mut self.members {
            empty.reuse(members);
        }
    }

    /// Returns whether the last value exceeded the limits.
    #[must_use]
    pub fn over(&self) -> bool {
        self.over
    }

    /// Bytes and items of the current or last value, as counted by a limited builder.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        let (bytes, items) = self.most.unwrap_or_default();
        (bytes - self.left.0.min(bytes), items - self.left.1.min(items))
    }

    /// Bytes of text that the current value may still have.
    #[must_use]
    pub fn room(&self) -> usize {
        if self.most.is_some() { self.left.0 } else { usize::MAX }
    }

    /// Counts an event against the limits; returns whether it fits.
    fn has_room(&mut self, event: &JsonEvent<'_>) -> bool {
        if let JsonEvent::ValueStart(_) = event {
            self.over = false;
            self.left = self.most.unwrap_or_default();
        }
        if self.most.is_none() || self.over {
            return !self.over;
        }
        let (bytes, items) = match event {
            JsonEvent::StringDelta(text) => (text.len(), 0),
            JsonEvent::Key { text, .. } => (text.len(), 1),
            JsonEvent::StringStart | JsonEvent::ObjectStart | JsonEvent::ArrayStart => (0, 1),
            JsonEvent::Number(_) | JsonEvent::Digits(_) | JsonEvent::Bool(_) | JsonEvent::Null => (0, 1),
            _ => (0, 0),
        };
        match (self.left.0.checked_sub(bytes), self.left.1.checked_sub(items)) {
            (Some(bytes), Some(items)) => self.left = (bytes, items),
            _ => {
                let members = self.members.take();
                let unasked = self.unasked;
                *self = Builder { most: self.most, over: true, members, unasked, ..Builder::default() };
            }
        }
        !self.over
    }

    /// Reads the next event; returns the value at [`JsonEvent::ValueEnd`].
    #[inline]
    pub fn see(&mut self, event: &JsonEvent<'_>) -> Option<Built> {
        match *event {
            // The place is needed more than once, so it is computed here.
            JsonEvent::Key { text, place, depth } => {
                self.read(&JsonEvent::Key { text, place: place.counted(), depth })
            }
            _ => self.read(event),
        }
    }

    fn read(&mut self, event: &JsonEvent<'_>) -> Option<Built> {
        if let Some(members) = &mut self.members {
            members.see(event);
        }
        if !self.has_room(event) {
            return None;
        }
        match *event {
            JsonEvent::Text(_)
            | JsonEvent::Comment(_)
            | JsonEvent::ThoughtStart(_)
            | JsonEvent::Thought(_)
            | JsonEvent::ThoughtEnd(..) => {}
            JsonEvent::ValueStart(start) => {
                self.unasked = false;
                self.start = Some(start);
                self.doubts = Doubts::default();
                self.open.clear();
                self.items.clear();
                self.keys.clear();
            }
            JsonEvent::ObjectStart => self.open(true),
            JsonEvent::ArrayStart => self.open(false),
            JsonEvent::Key { text, place, .. } => self.key(text, place.get()),
            JsonEvent::ObjectEnd | JsonEvent::ArrayEnd => self.close(),
            JsonEvent::StringStart => self.text.clear(),
            JsonEvent::StringDelta(text) if !self.unasked => self.text.push_str(text),
            JsonEvent::StringDelta(_) => {}
            JsonEvent::StringEnd | JsonEvent::Number(_) | JsonEvent::Digits(_) if self.unasked => {
                self.put(Value::Null);
            }
            JsonEvent::StringEnd => {
                // Short strings get a buffer of their length, a long one keeps the buffer it was collected
                // in.
                let short = self.text.len() <= SHORT;
                let text = if short { self.text.as_str().to_owned() } else { std::mem::take(&mut self.text) };
                self.put(Value::String(text));
            }
            JsonEvent::Number(number) => self.put(Value::Number(number.clone())),
            // As a double, like any reader of values.
            JsonEvent::Digits(digits) => self.put(serde_json::from_str(digits).unwrap_or_default()),
            JsonEvent::Bool(value) => self.put(Value::Bool(value)),
            JsonEvent::Null => self.put(Value::Null),
            JsonEvent::ValueEnd(end) => {
                let value = self.root.take()?;
                let start = self.start.take()?;
                let mut duplicates = std::mem::take(&mut self.duplicates);
                keys::ended(&mut duplicates, 0, end.offset);
                let doubts = std::mem::take(&mut self.doubts);
                let members = self.members(end.offset);
                return Some(Built { value, start, end, duplicates, doubts, members });
            }
        }
        None
    }

    /// Records a report on the current value, for [`Built::doubts`].
    pub fn note(&mut self, report: &Report) {
        if self.start.is_some() && report.doubt.is_some() {
            let mut doubts = std::mem::take(&mut self.doubts);
            doubts.add(report, || self.path(!is_between(report)));
            self.doubts = doubts;
        }
    }

    /// Path to the innermost open value, or to its next item.
    fn path(&self, item: bool) -> Vec<PathStep> {
        let mut path = Vec::new();
        for (at, open) in self.open.iter().enumerate().take(STEPS) {
            let inner = self.open.get(at + 1);
            if inner.is_none() && !item {
                break;
            }
            let keys = inner.map_or(self.keys.len(), |inner| inner.keys);
            let items = inner.map_or(self.items.len(), |inner| inner.items);
            path.push(match (open.object, self.keys[open.keys..keys].last()) {
                (true, Some((key, _))) => PathStep::Key(key.clone()),
                (true, None) => break,
                (false, _) => PathStep::Index(items - open.items),
            });
        }
        path
    }

    /// Places of the members of the last value, even if it was too large. `end` is the offset of its end; 0
    /// if that is reported later.
    pub(crate) fn members(&mut self, end: usize) -> Members {
        let mut members = self.members.as_mut().map(Members::take).unwrap_or_default();
        if end > 0 {
            members.ended(end);
        }
        members
    }

    fn open(&mut self, object: bool) {
        self.open.push(Open { object, items: self.items.len(), keys: self.keys.len(), index: None });
    }

    fn key(&mut self, text: &str, place: Place) {
        let depth = self.open.len();
        keys::ended(&mut self.duplicates, depth, place.offset);
        let Some(open) = self.open.last_mut() else { return };
        let keys = &self.keys[open.keys..];
        let twice = keys::find(keys.len(), |at| keys[at].0.as_str(), text, &mut open.index, true);
        if let Some(at) = twice {
            let end = keys.get(at + 1).map_or(place.offset, |(_, next)| next.offset);
            Duplicate::add(&mut self.duplicates, text, (keys[at].1, end), place, depth);
        }
        self.keys.push((self.buffers.fill(text), place));
        if twice.is_some() {
            let message = format!("the key `{}` stands twice", clip(text, 40));
            let report = Report::new(&rules::DUPLICATE_KEY, place, place.offset + text.len(), message);
            self.note(&report.doubtful(Doubt::DuplicateKey));
        }
    }

    fn close(&mut self) {
        let Some(open) = self.open.pop() else { return };
        if self.unasked {
            self.buffers.keep(self.keys.drain(open.keys..).map(|(key, _)| key));
            return self.put(Value::Null);
        }
        let items = self.items.drain(open.items..);
        let value = if open.object {
            let keys = self.keys.drain(open.keys..).map(|(key, _)| key);
            let mut map = Map::with_capacity(items.len());
            map.extend(keys.zip(items));
            Value::Object(map)
        } else {
            Value::Array(items.collect())
        };
        self.put(value);
    }

    fn put(&mut self, value: Value) {
        if self.open.is_empty() {
            self.root = Some(value);
        } else if !self.unasked {
            self.items.push(value);
        }
    }
}

/// Simplest sink: stores all values, reports and surrounding text.
#[derive(Clone, Debug, Default)]
pub struct Values {
    builder: Builder,
    /// The values, in order.
    pub values: Vec<Built>,
    /// Repairs and duplicate keys.
    pub reports: Vec<Report>,
    /// Text outside of values, joined.
    pub text: String,
}

impl JsonSink for Values {
    fn event(&mut self, event: JsonEvent<'_>) {
        match &event {
            JsonEvent::Text(text) | JsonEvent::Comment(text) | JsonEvent::Thought(text) => {
                self.text.push_str(text);
            }
            JsonEvent::ThoughtStart(mark) | JsonEvent::ThoughtEnd(mark, _) => self.text.push_str(mark.text),
            _ => {}
        }
        if let Some(built) = self.builder.see(&event) {
            self.reports.extend(built.duplicates.iter().map(Duplicate::last_kept));
            self.values.push(built);
        }
    }

    fn report(&mut self, report: Report) {
        self.builder.note(&report);
        self.reports.push(report);
    }
}
