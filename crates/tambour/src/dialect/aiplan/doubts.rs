//! Doubts about the values of a plan: in which call of it they stand, or beside its calls.

use super::wrapped::Wrapper;
use crate::finding::Doubt;
use crate::repair::json::{Doubts, PathStep, ValueDoubt};
use crate::span::Place;

/// The doubts about an object that may be a plan.
#[derive(Debug, Default)]
pub(super) struct PlanDoubts {
    doubts: Doubts,
    /// Paths of the mode and of the calls.
    mode: Vec<PathStep>,
    calls: Vec<PathStep>,
}

impl PlanDoubts {
    /// Those of a value that holds the plan in this wrapper.
    pub(super) fn new(doubts: Doubts, wrapper: Option<&Wrapper>) -> PlanDoubts {
        let around = match wrapper {
            None => None,
            Some(Wrapper::List) => Some(PathStep::Index(0)),
            Some(Wrapper::Key(key)) => Some(PathStep::Key(key.clone())),
        };
        let path = |key: &str| around.iter().cloned().chain([PathStep::Key(key.to_owned())]).collect();
        PlanDoubts { doubts, mode: path("response_mode"), calls: path("tool_calls") }
    }

    /// Whether the mode stands twice.
    pub(super) fn mode_twice(&self) -> bool {
        self.doubts.iter().any(|one| one.doubt == Doubt::DuplicateKey && one.path == self.mode)
    }

    /// Whether anything was guessed that no call holds.
    pub(super) fn beside_calls(&self) -> bool {
        self.doubts.iter().any(|one| one.doubt != Doubt::DuplicateKey && !self.is_in_call(one))
    }

    /// Whether the key that stands at this place is one of a call that stands twice.
    pub(super) fn in_call(&self, key: Place) -> bool {
        self.doubts.iter().any(|one| one.place == key && self.is_in_call(one))
    }

    /// The first doubt about a call.
    pub(super) fn of_call(&self, index: usize) -> Option<&ValueDoubt> {
        let path: Vec<PathStep> = self.calls.iter().cloned().chain([PathStep::Index(index)]).collect();
        self.doubts.within(&path)
    }

    fn is_in_call(&self, one: &ValueDoubt) -> bool {
        one.path.len() > self.calls.len() && one.path.starts_with(&self.calls)
    }
}
