//! The value around the event objects: a lone object, or an array with objects as items.

use super::rules;
use crate::finding::Report;
use crate::span::Place;

/// The top-level value being read.
#[derive(Default)]
pub(super) struct Outer {
    pub(super) at: Place,
    /// Set if the object is the data of an `event:` line.
    pub(super) framed: bool,
    /// Open arrays around the current object.
    pub(super) arrays: usize,
    /// The last bracket, if it belongs to an item.
    bracket: Place,
    /// Set once an object was read.
    pub(super) objects: bool,
    /// Set if other items were read since the last object.
    others: bool,
    /// End of the last object.
    gap: Place,
    pub(super) array: bool,
    /// Set if the array is under a key of an object.
    wrapped: bool,
}

impl Outer {
    pub(super) fn new(at: Place, framed: bool) -> Outer {
        Outer { at, framed, ..Outer::default() }
    }

    pub(super) fn array_begins(&mut self) {
        if !std::mem::replace(&mut self.array, true) {
            self.gap = self.at;
        }
        self.arrays += 1;
    }

    /// Starts an array of events inside the current object.
    pub(super) fn wrapper_begins(&mut self) {
        self.array_begins();
        self.array_begins();
        self.wrapped = true;
    }

    pub(super) fn array_ends(&mut self) {
        self.arrays = self.arrays.saturating_sub(1);
    }

    /// Records the opening or closing bracket of an item.
    pub(super) fn bracket(&mut self, place: Place) {
        self.bracket = place;
    }

    /// Records an item that is neither object nor array.
    pub(super) fn other(&mut self) {
        self.others = true;
    }

    /// Starts an object. Returns a finding on the items before it in the array.
    pub(super) fn object_begins(&mut self) -> Option<Report> {
        self.gap_ends(self.bracket.offset)
    }

    /// Returns the place at which the current object begins.
    pub(super) fn object_at(&self) -> Place {
        if self.arrays > 0 { self.bracket } else { self.at }
    }

    /// Ends the current object and returns the offset after it.
    pub(super) fn object_ends(&mut self) -> usize {
        self.objects = true;
        self.gap = self.bracket;
        self.bracket.offset
    }

    /// Ends the value. Returns findings on the items after the last object of an array and on the value
    /// itself.
    pub(super) fn ends(&mut self, end: usize) -> [Option<Report>; 2] {
        let behind = if self.objects { self.gap_ends(end) } else { None };
        let whole = |rule, message, repair| Some(Report::new(rule, self.at, end, message).repaired(repair));
        let whole = match (self.objects, self.array) {
            (false, _) => whole(rules::LINE_NOT_OBJECT, "this is not a JSON object", "left out"),
            (true, true) => {
                let message = match self.wrapped {
                    true => "events in an array under a key",
                    false => "events as items of an array",
                };
                whole(rules::LINES_IN_ARRAY, message, "read one after the other")
            }
            (true, false) => None,
        };
        [behind, whole]
    }

    /// Ends the gap between objects of an array; returns a finding if it held other items.
    fn gap_ends(&mut self, end: usize) -> Option<Report> {
        let message = "items that are no JSON objects";
        let report = || Report::new(rules::LINE_NOT_OBJECT, self.gap, end, message).repaired("left out");
        std::mem::take(&mut self.others).then(report)
    }
}
