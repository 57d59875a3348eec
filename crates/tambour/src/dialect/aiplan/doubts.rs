//! Doubts about the values of a plan, by call or outside its calls.

use super::wrapper::PlanWrapper;
use crate::finding::Doubt;
use crate::repair::json::{PathStep, ValueDoubt, ValueDoubts};
use crate::span::Place;

/// Doubts about an object that may be a plan.
#[derive(Debug, Default)]
pub(super) struct PlanDoubts {
    doubts: ValueDoubts,
    /// Paths of the mode and of the calls.
    mode_path: Vec<PathStep>,
    calls_path: Vec<PathStep>,
}

impl PlanDoubts {
    /// Creates the doubts of a value that contains the plan in this wrapper.
    pub(super) fn new(doubts: ValueDoubts, wrapper: Option<&PlanWrapper>) -> PlanDoubts {
        let wrapper_path = match wrapper {
            None => None,
            Some(PlanWrapper::List) => Some(PathStep::Index(0)),
            Some(PlanWrapper::Key(key)) => Some(PathStep::Key(key.clone())),
        };
        let path = |key: &str| wrapper_path.iter().cloned().chain([PathStep::Key(key.to_owned())]).collect();
        PlanDoubts { doubts, mode_path: path("response_mode"), calls_path: path("tool_calls") }
    }

    /// Returns true if the mode is given twice.
    pub(super) fn has_two_modes(&self) -> bool {
        self.doubts.iter().any(|entry| entry.doubt == Doubt::DuplicateKey && entry.path == self.mode_path)
    }

    /// Returns true if a value outside the calls was guessed.
    pub(super) fn has_guess_outside_calls(&self) -> bool {
        self.doubts.iter().any(|entry| entry.doubt != Doubt::DuplicateKey && !self.is_in_call(entry))
    }

    /// Returns true if the key at this place is a duplicate inside a call.
    pub(super) fn is_duplicate_in_call(&self, key: Place) -> bool {
        self.doubts.iter().any(|entry| entry.place == key && self.is_in_call(entry))
    }

    /// Returns the first doubt about a call.
    pub(super) fn find_in_call(&self, index: usize) -> Option<&ValueDoubt> {
        let path: Vec<PathStep> = self.calls_path.iter().cloned().chain([PathStep::Index(index)]).collect();
        self.doubts.find_within(&path)
    }

    fn is_in_call(&self, entry: &ValueDoubt) -> bool {
        entry.path.len() > self.calls_path.len() && entry.path.starts_with(&self.calls_path)
    }
}
