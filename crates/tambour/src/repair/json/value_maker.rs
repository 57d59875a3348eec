//! [`ValueMaker`]: makes values from events, either as trees within limits or as JSON text of any size.

use serde_json::Value;

use crate::finding::FindingReport;
use crate::limits::Limits;

use super::builder::{BuiltValue, ValueBuilder};
use super::event::JsonEvent;
use super::printer::JsonPrinter;

/// Makes values from events, in one representation.
pub(super) trait ValueMaker {
    /// A finished value.
    type Representation: Clone;
    /// Several values that will be one array.
    type List: Default;
    /// True if numbers are kept as written.
    const EXACT: bool;

    /// Creates a maker of values within the limits.
    fn new(limits: &Limits) -> Self;
    /// Reads the next event; returns the value at its end, unless it exceeded the limits.
    fn push_event(&mut self, event: &JsonEvent<'_>) -> Option<BuiltValue<Self::Representation>>;
    /// Records a report on the current value.
    fn note_report(&mut self, report: &FindingReport);
    /// Returns whether the last value exceeded the limits.
    fn is_over_limit(&self) -> bool;
    /// Bytes and items of the last value; 0 if they are not limited.
    fn size(&self) -> (usize, usize);
    /// Appends a value to a list.
    fn push_item(list: &mut Self::List, item: Self::Representation);
    /// Finishes the list as one value, an array.
    fn finish_array(list: Self::List) -> Self::Representation;
}

impl ValueMaker for ValueBuilder {
    type Representation = Value;
    type List = Vec<Value>;
    const EXACT: bool = false;

    fn new(limits: &Limits) -> ValueBuilder {
        ValueBuilder::with_limits(limits.value, limits.items)
    }

    fn push_event(&mut self, event: &JsonEvent<'_>) -> Option<BuiltValue> {
        ValueBuilder::push_event(self, event)
    }

    fn note_report(&mut self, report: &FindingReport) {
        ValueBuilder::note_report(self, report);
    }

    fn is_over_limit(&self) -> bool {
        ValueBuilder::is_over_limit(self)
    }

    fn size(&self) -> (usize, usize) {
        ValueBuilder::size(self)
    }

    fn push_item(list: &mut Vec<Value>, value: Value) {
        list.push(value);
    }

    fn finish_array(list: Vec<Value>) -> Value {
        Value::Array(list)
    }
}

impl ValueMaker for JsonPrinter {
    type Representation = String;
    type List = String;
    const EXACT: bool = true;

    fn new(_: &Limits) -> JsonPrinter {
        JsonPrinter::default()
    }

    fn push_event(&mut self, event: &JsonEvent<'_>) -> Option<BuiltValue<String>> {
        JsonPrinter::push_event(self, event)
    }

    fn note_report(&mut self, _: &FindingReport) {}

    fn is_over_limit(&self) -> bool {
        JsonPrinter::is_too_large(self)
    }

    fn size(&self) -> (usize, usize) {
        (0, 0)
    }

    fn push_item(list: &mut String, text: String) {
        list.push(if list.is_empty() { '[' } else { ',' });
        list.push_str(&text);
    }

    fn finish_array(mut list: String) -> String {
        list.push(']');
        list
    }
}
