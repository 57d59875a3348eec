//! Fallback to another upstream after an attempt without a usable reply.

use serde_json::json;
use tambour::End;
use tambour::event::{Failure, FinishReason};

use super::attempt::Attempt;
use super::{Choice, Log};
use crate::record;
use crate::store::{Batch, Written};

impl Attempt {
    /// Returns `true` if another upstream may be asked: the reply is unusable and nothing of it was
    /// delivered.
    pub(super) fn may_be_given_up(&self, end: &End) -> bool {
        let failed = match end {
            End::Failed(Failure { code, .. }) => {
                code.starts_with("upstream") || matches!(&**code, "recording_not_found" | "input_too_large")
            }
            End::Finished(FinishReason::Cancelled) => false,
            _ => self.unusable(),
        };
        failed && !self.shown
    }

    /// Keeps the attempt in the record, and notes the upstream that is asked next.
    pub(super) async fn give_up(
        &mut self,
        end: &End,
        choice: &Choice,
        next: &Choice,
        log: &mut Log,
    ) -> Result<(), Written> {
        let (upstream, other) = (choice.upstream.name(), next.upstream.name());
        tracing::warn!(message_id = log.live.id, upstream, other, "another upstream is asked");
        let mut batch = Batch::new(log.next());
        self.keep_attempt(json!({ "upstream": upstream }), end, &mut batch);
        record::choice(&next.fields(), &mut batch);
        log.append(batch).await
    }
}
