//! The value that objects stand in: an object alone, or an array with objects as items.

use super::rules;
use crate::finding::Report;
use crate::span::Place;

/// The value under way.
#[derive(Default)]
pub(super) struct Outer {
    pub(super) at: Place,
    /// The object is the data of an `event:` line.
    pub(super) framed: bool,
    /// Arrays that are open around the object under way.
    pub(super) arrays: usize,
    /// The last bracket, where it is the bracket of an item.
    bracket: Place,
    /// Whether objects came, and other items since the place after the last of them.
    pub(super) objects: bool,
    others: bool,
    gap: Place,
    pub(super) array: bool,
    /// Whether the array stands under a key of an object.
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

    /// The object under way holds an array of events, which begins.
    pub(super) fn wrapper_begins(&mut self) {
        self.array_begins();
        self.array_begins();
        self.wrapped = true;
    }

    pub(super) fn array_ends(&mut self) {
        self.arrays = self.arrays.saturating_sub(1);
    }

    /// The bracket of an item, which opens or has closed there.
    pub(super) fn bracket(&mut self, place: Place) {
        self.bracket = place;
    }

    /// An item that is neither object nor array.
    pub(super) fn other(&mut self) {
        self.others = true;
    }

    /// An object begins. Gives what stands before it in the array.
    pub(super) fn object_begins(&mut self) -> Option<Report> {
        self.gap_ends(self.bracket.offset)
    }

    /// Where the object under way begins.
    pub(super) fn object_at(&self) -> Place {
        if self.arrays > 0 { self.bracket } else { self.at }
    }

    /// The object under way has ended; gives the offset after it.
    pub(super) fn object_ends(&mut self) -> usize {
        self.objects = true;
        self.gap = self.bracket;
        self.bracket.offset
    }

    /// The value ends. Gives what stands behind the last object of an array, and what is wrong with the whole.
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

    /// What stands between the objects of an array ends here.
    fn gap_ends(&mut self, end: usize) -> Option<Report> {
        let message = "items that are no JSON objects";
        let report = || Report::new(rules::LINE_NOT_OBJECT, self.gap, end, message).repaired("left out");
        std::mem::take(&mut self.others).then(report)
    }
}
