//! Tokens and cost of a message's model calls, by upstream.

use serde_json::Value;

use super::UpstreamChoice;
use crate::record::spending::UpstreamSpending;

/// Token counts of a message, in total and by upstream.
#[derive(Debug, Default)]
pub(crate) struct MessageSpending {
    /// Sum over all calls, with the field names of the service.
    pub(crate) usage: Value,
    /// Calls by upstream; the last one produced the reply.
    pub(crate) calls: Vec<UpstreamSpending>,
}

impl MessageSpending {
    /// Adds a call, which may have no counts.
    pub(super) fn add(&mut self, choice: &UpstreamChoice, usage: Option<Value>) {
        let call = UpstreamSpending::from_call(
            &choice.upstream,
            &choice.request,
            usage.as_ref().unwrap_or(&Value::Null),
        );
        match self.calls.iter().position(|entry| entry.upstream == call.upstream) {
            Some(at) => {
                let mut all = self.calls.remove(at);
                all.add(&call);
                self.calls.push(all);
            }
            None => self.calls.push(call),
        }
        add_usage(&mut self.usage, usage);
    }
}

/// Adds token counts of any names.
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
