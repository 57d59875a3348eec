//! The value around the event objects: a lone object, or an array with objects as items.

use super::rules;
use crate::finding::FindingReport;
use crate::span::Place;

/// The top-level value being read.
#[derive(Default)]
pub(super) struct OuterValue {
    pub(super) place: Place,
    /// Set if the object is the data of an `event:` line.
    pub(super) is_framed: bool,
    /// Open arrays around the current object.
    pub(super) array_depth: usize,
    /// The last bracket, if it belongs to an item.
    bracket: Place,
    /// Set once an object was read.
    pub(super) has_objects: bool,
    /// Set if other items were read since the last object.
    has_other_items: bool,
    /// End of the last object.
    gap_start: Place,
    pub(super) is_array: bool,
    /// Set if the array is under a key of an object.
    is_wrapped: bool,
}

impl OuterValue {
    pub(super) fn new(place: Place, is_framed: bool) -> OuterValue {
        OuterValue { place, is_framed, ..OuterValue::default() }
    }

    pub(super) fn begin_array(&mut self) {
        if !std::mem::replace(&mut self.is_array, true) {
            self.gap_start = self.place;
        }
        self.array_depth += 1;
    }

    /// Starts an array of events inside the current object.
    pub(super) fn begin_wrapper(&mut self) {
        self.begin_array();
        self.begin_array();
        self.is_wrapped = true;
    }

    pub(super) fn end_array(&mut self) {
        self.array_depth = self.array_depth.saturating_sub(1);
    }

    /// Records the opening or closing bracket of an item.
    pub(super) fn set_bracket(&mut self, place: Place) {
        self.bracket = place;
    }

    /// Records an item that is neither object nor array.
    pub(super) fn mark_other_item(&mut self) {
        self.has_other_items = true;
    }

    /// Starts an object. Returns a finding on the items before it in the array.
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
        let value_report = match (self.has_objects, self.is_array) {
            (false, _) => value_report(rules::LINE_NOT_OBJECT, "this is not a JSON object", "left out"),
            (true, true) => {
                let message = match self.is_wrapped {
                    true => "events in an array under a key",
                    false => "events as items of an array",
                };
                value_report(rules::LINES_IN_ARRAY, message, "read one after the other")
            }
            (true, false) => None,
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
