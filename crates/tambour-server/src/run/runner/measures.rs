//! Measurements of a run, taken while it is in progress.

use std::time::Instant;

use super::spending::MessageSpending;
use crate::base::durations::millis;
use crate::record::Timings;
use crate::upstream::ReplyItem;

/// Durations of a run, and the spending of its model calls.
pub(super) struct RunMeasures {
    start_time: Instant,
    pub(super) timings: Timings,
    pub(super) spending: MessageSpending,
}

impl RunMeasures {
    /// Starts the measurement of a run.
    pub(super) fn start() -> RunMeasures {
        RunMeasures {
            start_time: Instant::now(),
            timings: Timings::default(),
            spending: MessageSpending::default(),
        }
    }

    /// Records the arrival of these items.
    pub(super) fn record_items(&mut self, items: &[ReplyItem]) {
        let start_time = self.start_time;
        self.timings.first_byte_ms.get_or_insert_with(|| millis(start_time.elapsed()));
        if items.iter().any(|item| matches!(item, ReplyItem::Text(_))) {
            self.timings.first_text_ms.get_or_insert_with(|| millis(start_time.elapsed()));
        }
    }

    /// Records the end of a reply or of its tool calls, as the end of the run unless more follows.
    pub(super) fn record_end(&mut self) {
        self.timings.total_ms = millis(self.start_time.elapsed());
    }
}
