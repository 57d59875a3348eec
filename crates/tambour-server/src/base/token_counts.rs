//! Token counts of a message.

use serde_json::Value;

/// Token counts of one message, as reported by its upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TokenCounts {
    pub(crate) input: u64,
    pub(crate) output: u64,
}

impl TokenCounts {
    pub(crate) fn from_usage(usage: &Value) -> TokenCounts {
        let count = |names: [&str; 2]| names.iter().find_map(|name| usage[*name].as_u64()).unwrap_or(0);
        TokenCounts {
            input: count(["prompt_tokens", "input_tokens"]),
            output: count(["completion_tokens", "output_tokens"]),
        }
    }
}
