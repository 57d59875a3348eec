//! Tokens and cost of a message's model calls, by upstream.

use serde_json::Value;

use super::UpstreamChoice;
use crate::record::spending::UpstreamSpending;

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

/// Adds token counts to a sum, field by field and at any depth, whatever their names. Values that are not
/// numbers replace those of the sum.
fn add_usage(sum: &mut Value, usage: Option<Value>) {
    match (sum, usage) {
        (_, None | Some(Value::Null)) => {}
        (Value::Object(sum), Some(Value::Object(added))) => {
            for (name, value) in added {
                add_usage(sum.entry(name).or_insert(Value::Null), Some(value));
            }
        }
        (sum, Some(added)) => {
            let pair = sum.as_u64().zip(added.as_u64());
            *sum = pair.map_or(added, |(a, b)| Value::from(a + b));
        }
    }
}
