//! Tokens and cost of a message's model calls, by upstream.

use serde_json::Value;

use super::UpstreamChoice;
use crate::record::spending::UpstreamSpending;
use crate::upstream::token_counts::add_usage;

/// Tokens and cost of a message so far, in total and by upstream.
#[derive(Debug, Default)]
pub(crate) struct MessageSpending {
    /// Token counts of all calls together, in the form of `ReplyItem::Usage`.
    pub(crate) usage: Value,
    /// Spending by upstream; the last one produced the reply.
    pub(crate) calls: Vec<UpstreamSpending>,
}

impl MessageSpending {
    /// Adds a call; `usage` has its token counts, if the upstream reported any.
    pub(super) fn add(&mut self, choice: &UpstreamChoice, usage: Option<Value>) {
        let call = UpstreamSpending::from_call(
            &choice.upstream,
            &choice.request,
            usage.as_ref().unwrap_or(&Value::Null),
        );
        match self.calls.iter().position(|entry| entry.upstream == call.upstream) {
            // Moved to the end: the last upstream produced the reply.
            Some(index) => {
                let mut sum = self.calls.remove(index);
                sum.add(&call);
                self.calls.push(sum);
            }
            None => self.calls.push(call),
        }
        add_usage(&mut self.usage, usage);
    }
}
