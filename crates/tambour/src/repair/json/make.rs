//! Forms of a value: a tree, within the limits, or its text.

use serde_json::Value;

use crate::finding::Report;
use crate::limits::Limits;

use super::build::{Builder, Built};
use super::event::JsonEvent;
use super::print::Printer;

/// Builds values from events.
pub(super) trait Make {
    /// Form of a value.
    type Made: Clone;
    /// Form of several values.
    type List: Default;
    /// True if numbers are kept as written.
    const EXACT: bool;

    fn new(limits: &Limits) -> Self;
    fn see(&mut self, event: &JsonEvent<'_>) -> Option<Built<Self::Made>>;
    /// Records a report on the current value.
    fn note(&mut self, report: &Report);
    /// Returns whether the last value exceeded the limits.
    fn over(&self) -> bool;
    fn size(&self) -> (usize, usize);
    fn add(list: &mut Self::List, made: Self::Made);
    /// Finishes the list as one value, an array.
    fn array(list: Self::List) -> Self::Made;
}

impl Make for Builder {
    type Made = Value;
    type List = Vec<Value>;
    const EXACT: bool = false;

    fn new(limits: &Limits) -> Builder {
        Builder::limited(limits.value, limits.items)
    }

    fn see(&mut self, event: &JsonEvent<'_>) -> Option<Built> {
        Builder::see(self, event)
    }

    fn note(&mut self, report: &Report) {
        Builder::note(self, report);
    }

    fn over(&self) -> bool {
        Builder::over(self)
    }

    fn size(&self) -> (usize, usize) {
        Builder::size(self)
    }

    fn add(list: &mut Vec<Value>, value: Value) {
        list.push(value);
    }

    fn array(list: Vec<Value>) -> Value {
        Value::Array(list)
    }
}

impl Make for Printer {
    type Made = String;
    type List = String;
    const EXACT: bool = true;

    fn new(_: &Limits) -> Printer {
        Printer::default()
    }

    fn see(&mut self, event: &JsonEvent<'_>) -> Option<Built<String>> {
        Printer::see(self, event)
    }

    fn note(&mut self, _: &Report) {}

    fn over(&self) -> bool {
        Printer::over(self)
    }

    fn size(&self) -> (usize, usize) {
        (0, 0)
    }

    fn add(list: &mut String, text: String) {
        list.push(if list.is_empty() { '[' } else { ',' });
        list.push_str(&text);
    }

    fn array(mut list: String) -> String {
        list.push(']');
        list
    }
}
