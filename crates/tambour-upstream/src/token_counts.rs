//! Token counts of a call, as its upstream reports them.

use serde_json::Value;

/// Token counts of a reported usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenCounts {
    /// Tokens of the prompt.
    pub input: u64,
    /// Tokens of the reply.
    pub output: u64,
}

impl TokenCounts {
    /// Reads the `usage` object of an upstream: names of OpenAI first, then those of Anthropic. A missing
    /// count is 0.
    pub fn from_usage(usage: &Value) -> TokenCounts {
        let count = |names: [&str; 2]| names.iter().find_map(|name| usage[*name].as_u64()).unwrap_or(0);
        TokenCounts {
            input: count(["prompt_tokens", "input_tokens"]),
            output: count(["completion_tokens", "output_tokens"]),
        }
    }
}
