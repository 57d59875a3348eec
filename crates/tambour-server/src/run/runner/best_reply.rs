//! Best unusable reply so far: used when no re-ask gives a better one.

use tambour::InputEnd;
use tambour::event::ReplyWorth;

use super::attempt::Attempt;
use super::{MessageRun, UpstreamChoice};
use crate::upstream::{ConstraintReport, ReplyItem};

/// Unusable reply with text, as received.
pub(super) struct BestReply {
    /// Items that the upstream sent.
    items: Vec<ReplyItem>,
    /// Form of its constraint that was sent, and those refused.
    constraint: ConstraintReport,
    /// True if it is the reply to a re-ask.
    pub(super) is_reask: bool,
    end: InputEnd,
    worth: ReplyWorth,
}

impl BestReply {
    /// Returns the better of a reply that will be re-asked and the best one before it; the earlier one if
    /// both are equal. `None` if neither has text.
    pub(super) fn choose(
        attempt: Attempt,
        end: &InputEnd,
        best_before: Option<BestReply>,
    ) -> Option<BestReply> {
        let worth = attempt.worth(end);
        let worth_to_exceed = best_before.as_ref().map_or(ReplyWorth::Useless, |best| best.worth);
        if worth <= worth_to_exceed {
            return best_before;
        }
        let is_reask = attempt.is_reask();
        let (items, constraint) = attempt.into_kept_items();
        Some(BestReply { items, constraint, is_reask, end: end.clone(), worth })
    }

    /// Returns `true` if the last reply was not delivered and is not better than this one.
    pub(super) fn beats(&self, last: &Attempt, end: &InputEnd) -> bool {
        !last.may_deliver && last.worth(end) <= self.worth
    }

    /// Reads this reply again, in a new attempt; returns its end.
    pub(super) fn replay(self, attempt: &mut Attempt, choice: &UpstreamChoice, run: &MessageRun) -> InputEnd {
        attempt.note_constraint(self.constraint, &choice.options);
        attempt.replay(self.items, choice, run);
        self.end
    }
}
