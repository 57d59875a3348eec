//! When nothing that can be used came of one who was asked, and another one is asked.

use serde_json::json;
use tambour::End;
use tambour::event::{Failure, FinishReason};

use super::attempt::Attempt;
use super::{Choice, Log};
use crate::record;
use crate::store::{Batch, Written};

impl Attempt {
    /// Whether somebody else may be asked: the model gave nothing that can be used, and none of what it gave was delivered.
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

    /// Keeps what came of one who was asked in the record, and puts down that another one is asked.
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
