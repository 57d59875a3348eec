//! Values from events.

use serde_json::{Map, Value};

use crate::finding::Report;
use crate::repair::rules;
use crate::span::Place;

use super::event::{End, JsonEvent, JsonSink, Start};

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
    root: Option<Value>,
    text: String,
    start: Option<Start>,
    duplicates: Vec<Report>,
}

#[derive(Clone, Debug)]
enum Open {
    Object { map: Map<String, Value>, key: String },
    Array(Vec<Value>),
}

impl Builder {
    /// A builder that saw nothing yet.
    #[must_use]
    pub fn new() -> Builder {
        Builder::default()
    }

    /// Takes the next event; at [`JsonEvent::ValueEnd`] gives the value.
    #[inline]
    pub fn see(&mut self, event: &JsonEvent<'_>) -> Option<Built> {
        match *event {
            JsonEvent::Text(_) | JsonEvent::ThoughtEnd => {}
            JsonEvent::ValueStart(start) => {
                self.start = Some(start);
                self.open.clear();
            }
            JsonEvent::ObjectStart => {
                self.open.push(Open::Object { map: Map::new(), key: String::new() });
            }
            JsonEvent::ArrayStart => self.open.push(Open::Array(Vec::new())),
            JsonEvent::Key { text, place, .. } => self.key(text, place),
            JsonEvent::ObjectEnd | JsonEvent::ArrayEnd => {
                let value = match self.open.pop() {
                    Some(Open::Object { map, .. }) => Value::Object(map),
                    Some(Open::Array(items)) => Value::Array(items),
                    None => return None,
                };
                self.put(value);
            }
            JsonEvent::StringStart => self.text.clear(),
            JsonEvent::StringDelta(text) => self.text.push_str(text),
            JsonEvent::StringEnd => {
                let text = std::mem::take(&mut self.text);
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

    fn key(&mut self, text: &str, place: Place) {
        let Some(Open::Object { map, key }) = self.open.last_mut() else { return };
        if map.contains_key(text) {
            let message = format!("the key `{}` stands twice", shown(text));
            let report = Report::new(&rules::DUPLICATE_KEY, place, place.offset, message);
            self.duplicates.push(report.repaired("kept the last value"));
        }
        key.clear();
        key.push_str(text);
    }

    fn put(&mut self, value: Value) {
        match self.open.last_mut() {
            Some(Open::Object { map, key }) => {
                map.insert(std::mem::take(key), value);
            }
            Some(Open::Array(items)) => items.push(value),
            None => self.root = Some(value),
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
