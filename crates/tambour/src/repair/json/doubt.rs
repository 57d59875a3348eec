//! Doubts about values: paths of values that may not be the ones that were meant.

use crate::finding::{Doubt, FindingReport};
use crate::repair::rules;
use crate::span::Place;

/// One step of a path from a value to a nested one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PathStep {
    /// Member of an object.
    Key(String),
    /// Item of an array.
    Index(usize),
}

/// A doubt about one value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueDoubt {
    /// Kind of doubt.
    pub doubt: Doubt,
    /// Path to the value, limited to 16 steps.
    pub path: Vec<PathStep>,
    /// Place of the fault.
    pub place: Place,
    /// Byte offset after the fault.
    pub end: usize,
    /// Description of the fault.
    pub message: String,
    /// True if the doubt concerns every value of the text.
    is_global: bool,
}

impl ValueDoubt {
    /// Doubt about the whole value because of a guess; the fault extends from `place` to byte offset `end`.
    pub(crate) fn guess(place: Place, end: usize, message: impl Into<String>) -> ValueDoubt {
        let message = message.into();
        ValueDoubt { doubt: Doubt::Guess, path: Vec::new(), place, end, message, is_global: false }
    }
}

/// Doubts about a value and its nested values.
///
/// An operation or call is refused if its value or a nested one is in doubt; [`ValueDoubts::find_within`]
/// returns that doubt for the path of the value. A fault between two items belongs to the array or object
/// that holds them, not to the items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueDoubts(Vec<ValueDoubt>);

/// Maximum number of doubts recorded. The last one also stands for those not recorded, so it concerns every
/// value.
const MAX_DOUBTS: usize = 64;

/// Maximum number of steps of a path.
pub(super) const MAX_PATH_STEPS: usize = 16;
/// Maximum length of a key in a path, in bytes; a doubt under a longer key concerns every value.
const MAX_KEY_LEN: usize = 256;

impl ValueDoubts {
    /// Returns whether there are no doubts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Doubts in order.
    pub fn iter(&self) -> impl Iterator<Item = &ValueDoubt> {
        self.0.iter()
    }

    /// First doubt about the value at `path`, a value nested in it, or every value.
    #[must_use]
    pub fn find_within(&self, path: &[PathStep]) -> Option<&ValueDoubt> {
        self.0.iter().find(|doubt| doubt.is_global || doubt.path.starts_with(path))
    }

    /// Returns the doubts as those of an array that holds the value at `index`: each path begins with this
    /// index.
    pub(super) fn into_item(self, index: usize) -> impl Iterator<Item = ValueDoubt> {
        self.0.into_iter().map(move |mut doubt| {
            doubt.path.insert(0, PathStep::Index(index));
            doubt
        })
    }

    /// Adds doubts.
    pub(super) fn extend(&mut self, doubts: impl IntoIterator<Item = ValueDoubt>) {
        doubts.into_iter().for_each(|doubt| self.push(doubt));
    }

    /// Adds the doubt of a report, if it has one, about the value at `path`.
    pub(super) fn add(&mut self, report: &FindingReport, path: impl FnOnce() -> Vec<PathStep>) {
        let Some(doubt) = report.doubt else { return };
        if self.is_full() {
            return;
        }
        let path = path();
        let is_long = path.iter().any(|step| matches!(step, PathStep::Key(key) if key.len() > MAX_KEY_LEN));
        // Repairs beyond the report limit may be anywhere.
        let is_global = is_long || report.rule.code == rules::LIMIT_EXCEEDED.code;
        let path = if is_global { Vec::new() } else { path };
        let message = report.message.clone();
        self.push(ValueDoubt { doubt, path, place: report.place, end: report.end, message, is_global });
    }

    fn push(&mut self, mut value_doubt: ValueDoubt) {
        if self.is_full() {
            return;
        }
        value_doubt.is_global |= self.0.len() + 1 == MAX_DOUBTS;
        self.0.push(value_doubt);
    }

    fn is_full(&self) -> bool {
        self.0.len() >= MAX_DOUBTS
    }
}

/// Returns whether the fault of a report is between the items of an array or object, not in one of them.
pub(super) fn is_between_items(report: &FindingReport) -> bool {
    let separator_rules = [
        &rules::EXTRA_COMMA,
        &rules::MISSING_COMMA,
        &rules::EXTRA_COLON,
        &rules::EXTRA_BRACKET,
        &rules::MISSING_BRACKET,
        &rules::ELLIPSIS,
        &rules::STRAY_TEXT,
    ];
    separator_rules.iter().any(|rule| rule.code == report.rule.code)
}
