//! Values from events.

use serde_json::{Map, Value};

use crate::finding::Report;
use crate::repair::rules;

use super::event::{End, JsonEvent, JsonSink, KeyPlace, Start};

/// A value that was read, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Built {
    /// The value.
    pub value: Value,
    /// Where it starts.
    pub start: Start,
    /// How it ended.
    pub end: End,
    /// Keys that stand twice in one object; the last one's value is kept (P-030).
    pub duplicates: Vec<Report>,
}

/// Builds the value of the events it sees.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    open: Vec<Open>,
    /// Finished items of all open objects and arrays, each with its key.
    items: Vec<(String, Value)>,
    /// Keys whose value has not come.
    keys: Vec<String>,
    root: Option<Value>,
    text: String,
    start: Option<Start>,
    duplicates: Vec<Report>,
    /// Bytes and items that one value may have, and what is left of them for the one under way.
    most: Option<(usize, usize)>,
    left: (usize, usize),
    over: bool,
}

/// An open object or array.
#[derive(Clone, Debug)]
struct Open {
    /// Where its items start.
    first: usize,
    object: bool,
    /// The items so far of an object that has many.
    large: Option<Map<String, Value>>,
}

/// Keys of an object up to which each new one is compared with all before.
const FEW: usize = 16;

/// Bytes of a string up to which it is copied into a buffer of its length.
const SHORT: usize = 4 << 10;

impl Builder {
    /// A builder that saw nothing yet.
    #[must_use]
    pub fn new() -> Builder {
        Builder::default()
    }

    /// A builder of values with at most so many bytes of text and so many items (keys count too). Larger ones are
    /// thrown away: at their end [`Builder::over`] says so.
    #[must_use]
    pub fn limited(bytes: usize, items: usize) -> Builder {
        Builder { most: Some((bytes, items)), ..Builder::default() }
    }

    /// Whether the last value was larger than the limits.
    #[must_use]
    pub fn over(&self) -> bool {
        self.over
    }

    /// Counts what an event adds. Whether there is still room.
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
            JsonEvent::Number(_) | JsonEvent::Bool(_) | JsonEvent::Null => (0, 1),
            _ => (0, 0),
        };
        match (self.left.0.checked_sub(bytes), self.left.1.checked_sub(items)) {
            (Some(bytes), Some(items)) => self.left = (bytes, items),
            _ => *self = Builder { most: self.most, over: true, ..Builder::default() },
        }
        !self.over
    }

    /// Takes the next event; at [`JsonEvent::ValueEnd`] gives the value.
    #[inline]
    pub fn see(&mut self, event: &JsonEvent<'_>) -> Option<Built> {
        if !self.has_room(event) {
            return None;
        }
        match *event {
            JsonEvent::Text(_) | JsonEvent::ThoughtEnd => {}
            JsonEvent::ValueStart(start) => {
                self.start = Some(start);
                self.open.clear();
                self.items.clear();
                self.keys.clear();
            }
            JsonEvent::ObjectStart => self.open(true),
            JsonEvent::ArrayStart => self.open(false),
            JsonEvent::Key { text, place, .. } => self.key(text, place),
            JsonEvent::ObjectEnd | JsonEvent::ArrayEnd => self.close(),
            JsonEvent::StringStart => self.text.clear(),
            JsonEvent::StringDelta(text) => self.text.push_str(text),
            JsonEvent::StringEnd => {
                // A short string gets a buffer of its length, a long one the buffer it was collected in.
                let short = self.text.len() <= SHORT;
                let text = if short { self.text.as_str().to_owned() } else { std::mem::take(&mut self.text) };
                self.put(Value::String(text));
            }
            JsonEvent::Number(number) => self.put(Value::Number(number.clone())),
            JsonEvent::Bool(value) => self.put(Value::Bool(value)),
            JsonEvent::Null => self.put(Value::Null),
            JsonEvent::ValueEnd(end) => {
                let value = self.root.take()?;
                let start = self.start.take()?;
                return Some(Built { value, start, end, duplicates: std::mem::take(&mut self.duplicates) });
            }
        }
        None
    }

    fn open(&mut self, object: bool) {
        self.open.push(Open { first: self.items.len(), object, large: None });
    }

    fn key(&mut self, text: &str, at: KeyPlace<'_>) {
        let Some(open) = self.open.last_mut() else { return };
        let few = &self.items[open.first..];
        let twice = match &open.large {
            Some(map) => map.contains_key(text),
            None => few.iter().any(|(key, _)| key == text),
        };
        if twice && self.duplicates.len() < FEW {
            let message = format!("the key `{}` stands twice", shown(text));
            let place = at.get();
            let report = Report::new(&rules::DUPLICATE_KEY, place, place.offset, message);
            self.duplicates.push(report.repaired("kept the last value"));
        }
        if open.large.is_none() && few.len() >= FEW {
            open.large = Some(self.items.drain(open.first..).collect());
        }
        self.keys.push(text.to_owned());
    }

    fn close(&mut self) {
        let Some(open) = self.open.pop() else { return };
        let value = match open.large {
            Some(map) => Value::Object(map),
            None if open.object => {
                let mut map = Map::with_capacity(self.items.len() - open.first);
                map.extend(self.items.drain(open.first..));
                Value::Object(map)
            }
            None => Value::Array(self.items.drain(open.first..).map(|(_, item)| item).collect()),
        };
        self.put(value);
    }

    fn put(&mut self, value: Value) {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(value);
            return;
        };
        let key = if open.object { self.keys.pop().unwrap_or_default() } else { String::new() };
        match &mut open.large {
            Some(map) => {
                map.insert(key, value);
            }
            None => self.items.push((key, value)),
        }
    }
}

/// A key, short enough for a message.
fn shown(key: &str) -> String {
    if key.chars().count() <= 40 { key.to_owned() } else { key.chars().take(39).chain(['…']).collect() }
}

/// Keeps every value, every report and the text around; the simplest sink.
#[derive(Clone, Debug, Default)]
pub struct Values {
    builder: Builder,
    /// The values, in order.
    pub values: Vec<Built>,
    /// Repairs and duplicate keys.
    pub reports: Vec<Report>,
    /// The text outside of values, joined.
    pub text: String,
}

impl JsonSink for Values {
    fn event(&mut self, event: JsonEvent<'_>) {
        if let JsonEvent::Text(text) = event {
            self.text.push_str(text);
        }
        if let Some(built) = self.builder.see(&event) {
            self.reports.extend(built.duplicates.iter().cloned());
            self.values.push(built);
        }
    }

    fn report(&mut self, report: Report) {
        self.reports.push(report);
    }
}
