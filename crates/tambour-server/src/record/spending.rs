//! Tokens and cost of model calls.

use std::sync::Arc;

use serde_json::Value;

use crate::base::token_counts::TokenCounts;
use crate::upstream::{ModelRequest, Upstream};

/// Tokens and cost of the calls to one upstream.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamSpending {
    pub(crate) upstream: Arc<str>,
    pub(crate) tokens: TokenCounts,
    /// Part of `tokens` that models without a price used; not included in `cost`.
    pub(crate) unpriced_tokens: u64,
    /// Cost in millionths of the currency's unit.
    pub(crate) cost: i64,
}

impl UpstreamSpending {
    /// Returns the tokens and cost of one call.
    pub(crate) fn from_call(upstream: &Upstream, request: &ModelRequest, usage: &Value) -> UpstreamSpending {
        let tokens = TokenCounts::from_usage(usage);
        let price = upstream.price(request);
        UpstreamSpending {
            upstream: upstream.name().into(),
            tokens,
            unpriced_tokens: if price.is_some() { 0 } else { tokens.input.saturating_add(tokens.output) },
            cost: price.map_or(0, |price| price.cost(usage)),
        }
    }

    /// Adds further calls to the same upstream.
    pub(crate) fn add(&mut self, other: &UpstreamSpending) {
        self.tokens.input = self.tokens.input.saturating_add(other.tokens.input);
        self.tokens.output = self.tokens.output.saturating_add(other.tokens.output);
        self.unpriced_tokens = self.unpriced_tokens.saturating_add(other.unpriced_tokens);
        self.cost = self.cost.saturating_add(other.cost);
    }
}
