//! Doubts about the values of a plan, by call or outside its calls.

use super::wrapped::Wrapper;
use crate::finding::Doubt;
use crate::repair::json::{Doubts, PathStep, ValueDoubt};
use crate::span::Place;

/// Doubts about an object that may be a plan.
#[derive(Debug, Default)]
pub(super) struct PlanDoubts {
    doubts: Doubts,
    /// Paths of the mode and of the calls.
    mode: Vec<PathStep>,
    calls: Vec<PathStep>,
}

impl PlanDoubts {
    /// Creates the doubts of a value that contains the plan in this wrapper.
    pub(super) fn new(doubts: Doubts, wrapper: Option<&Wrapper>) -> PlanDoubts {
        let around = match wrapper {
            None => None,
            Some(Wrapper::List) => Some(PathStep::Index(0)),
            Some(Wrapper::Key(key)) => Some(PathStep::Key(key.clone())),
        };
        let path = |key: &str| around.iter().cloned().chain([PathStep::Key(key.to_owned())]).collect();
        PlanDoubts { doubts, mode: path("response_mode"), calls: path("tool_calls") }
    }

    /// Returns true if the mode is given twice.
    pub(super) fn mode_twice(&self) -> bool {
        self.doubts.iter().any(|one| one.doubt == Doubt::DuplicateKey && one.path == self.mode)
    }

    /// Returns true if a value outside the calls was guessed.
    pub(super) fn beside_calls(&self) -> bool {
        self.doubts.iter().any(|one| one.doubt != Doubt::DuplicateKey && !self.is_in_call(one))
    }

    /// Returns true if the key at this place is a duplicate inside a call.
    pub(super) fn in_call(&self, key: Place) -> bool {
        self.doubts.iter().any(|one| one.place == key && self.is_in_call(one))
    }

    /// Returns the first doubt about a call.
    pub(super) fn of_call(&self, index: usize) -> Option<&ValueDoubt> {
        let path: Vec<PathStep> = self.calls.iter().cloned().chain([PathStep::Index(index)]).collect();
        self.doubts.within(&path)
    }

    fn is_in_call(&self, one: &ValueDoubt) -> bool {
        one.path.len() > self.calls.len() && one.path.starts_with(&self.calls)
    }
}
