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

/// Adds token counts to a sum, field by field and at any depth, whatever their names. Values that are not
/// numbers replace those of the sum.
pub fn add_usage(sum: &mut Value, usage: Option<Value>) {
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
