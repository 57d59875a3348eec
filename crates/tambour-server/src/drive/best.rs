//! Best unusable reply so far: used when no re-ask gives a better one.

use tambour::End;
use tambour::event::Worth;

use super::attempt::Attempt;
use super::{Choice, Run};
use crate::upstream::Item;

/// Unusable reply with text, as received.
pub(super) struct Best {
    heard: Vec<Item>,
    end: End,
    worth: Worth,
}

impl Best {
    /// Returns the better one of a re-asked reply and the best before it, the earlier one if they are equal.
    /// `None` if none has text.
    pub(super) fn of(attempt: Attempt, end: &End, before: Option<Best>) -> Option<Best> {
        let worth = attempt.worth(end);
        let least = before.as_ref().map_or(Worth::Nothing, |before| before.worth);
        if worth <= least {
            return before;
        }
        Some(Best { heard: attempt.into_heard(), end: end.clone(), worth })
    }

    /// Returns `true` if the last reply was not delivered and is no better.
    pub(super) fn beats(&self, last: &Attempt, end: &End) -> bool {
        !last.shown && last.worth(end) <= self.worth
    }

    /// Reads it again; returns its end.
    pub(super) fn replay(self, attempt: &mut Attempt, choice: &Choice, run: &Run) -> End {
        attempt.replay(self.heard, choice, run);
        self.end
    }
}
