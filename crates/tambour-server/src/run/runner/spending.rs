//! Tokens and cost of a message's model calls, by upstream.

use std::sync::Arc;

use serde_json::Value;

use super::UpstreamChoice;
use crate::base::token_counts::TokenCounts;
use crate::upstream::{ModelRequest, Upstream};

/// Token counts of a message, in total and by upstream.
#[derive(Debug, Default)]
pub(crate) struct MessageSpending {
    /// Sum over all calls, with the field names of the service.
    pub(crate) usage: Value,
    /// Calls by upstream; the last one produced the reply.
    pub(crate) calls: Vec<UpstreamSpending>,
}

/// Tokens and cost of the calls to one upstream.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamSpending {
    pub(crate) upstream: Arc<str>,
    pub(crate) tokens: TokenCounts,
    /// Tokens of models without a price.
    pub(crate) unpriced_tokens: u64,
    /// Cost in millionths of the currency's unit.
    pub(crate) cost: i64,
}

impl UpstreamSpending {
    /// Returns the tokens and cost of one call.
    pub(crate) fn from_call(upstream: &Upstream, ask: &ModelRequest, usage: &Value) -> UpstreamSpending {
        let tokens = TokenCounts::from_usage(usage);
        let price = upstream.price(ask);
        UpstreamSpending {
            upstream: upstream.name.clone(),
            tokens,
            unpriced_tokens: if price.is_some() { 0 } else { tokens.input.saturating_add(tokens.output) },
            cost: price.map_or(0, |price| price.cost(usage)),
        }
    }

    fn add(&mut self, more: &UpstreamSpending) {
        self.tokens.input = self.tokens.input.saturating_add(more.tokens.input);
        self.tokens.output = self.tokens.output.saturating_add(more.tokens.output);
        self.unpriced_tokens = self.unpriced_tokens.saturating_add(more.unpriced_tokens);
        self.cost = self.cost.saturating_add(more.cost);
    }
}

impl MessageSpending {
    /// Adds a call, which may have no counts.
    pub(super) fn add(&mut self, choice: &UpstreamChoice, usage: Option<Value>) {
        let call = UpstreamSpending::from_call(
            &choice.upstream,
            &choice.ask,
            usage.as_ref().unwrap_or(&Value::Null),
        );
        match self.calls.iter().position(|one| one.upstream == call.upstream) {
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
        (Value::Object(sum), Some(Value::Object(more))) => {
            for (name, value) in more {
                add_usage(sum.entry(name).or_insert(Value::Null), Some(value));
            }
        }
        (sum, Some(more)) => {
            let both = sum.as_u64().zip(more.as_u64());
            *sum = both.map_or(more, |(a, b)| Value::from(a + b));
        }
    }
}
