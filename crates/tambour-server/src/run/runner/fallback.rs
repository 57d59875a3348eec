//! Fallback to another upstream after an attempt without a usable reply.

use serde_json::json;
use tambour::InputEnd;
use tambour::event::{Failure, FinishReason};

use super::attempt::Attempt;
use super::{RunLog, UpstreamChoice};
use crate::record;
use crate::store::{Batch, WriteOutcome};

impl Attempt {
    /// Returns `true` if another upstream may be asked: the upstream failed, its reply exceeded a limit or is
    /// unusable, and nothing of the reply was delivered.
    pub(super) fn can_fall_back(&self, end: &InputEnd) -> bool {
        let has_failed = match end {
            InputEnd::Failed(Failure { code, .. }) => {
                code.starts_with("upstream") || matches!(&**code, "recording_not_found" | "input_too_large")
            }
            InputEnd::Finished(FinishReason::Cancelled) => false,
            _ => self.is_unusable(),
        };
        has_failed && !self.may_deliver
    }

    /// Adds log entries of the discarded attempt and of the upstream that is asked next.
    pub(super) async fn fall_back(
        &mut self,
        end: &InputEnd,
        choice: &UpstreamChoice,
        fallback: &UpstreamChoice,
        log: &mut RunLog,
    ) -> Result<(), WriteOutcome> {
        let (upstream, other) = (choice.upstream.name(), fallback.upstream.name());
        tracing::warn!(message_id = log.live_run.id, upstream, other, "asking another upstream");
        let mut batch = Batch::new(log.next_number());
        self.add_attempt_entry(json!({ "upstream": upstream }), end, &mut batch);
        record::add_fallback_entry(&fallback.request_fields(), &mut batch);
        log.append(batch).await
    }
}
