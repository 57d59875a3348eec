//! The best reply so far of those that were asked for again: it stands where no better one comes.

use tambour::End;
use tambour::event::Worth;

use super::attempt::Attempt;
use super::{Choice, Run};
use crate::upstream::Item;

/// A reply that has text and could not be used, as it came.
pub(super) struct Best {
    heard: Vec<Item>,
    end: End,
    worth: Worth,
}

impl Best {
    /// The better one of a reply that is asked for again and of those before it; the earlier one where they are alike. `None` as long as
    /// none has text.
    pub(super) fn of(attempt: Attempt, end: &End, before: Option<Best>) -> Option<Best> {
        let worth = attempt.worth(end);
        let least = before.as_ref().map_or(Worth::Nothing, |before| before.worth);
        if worth <= least {
            return before;
        }
        Some(Best { heard: attempt.into_heard(), end: end.clone(), worth })
    }

    /// Tells whether the last reply, none of which was delivered, is no better.
    pub(super) fn beats(&self, last: &Attempt, end: &End) -> bool {
        !last.shown && last.worth(end) <= self.worth
    }

    /// Has it read once more; gives its end.
    pub(super) fn replay(self, attempt: &mut Attempt, choice: &Choice, run: &Run) -> End {
        attempt.replay(self.heard, choice, run);
        self.end
    }
}
