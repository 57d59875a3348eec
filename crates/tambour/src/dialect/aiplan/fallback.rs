//! The safe fallback (P-017).

use serde_json::{Value, json};

use crate::texts::Texts;

/// The plan that stands in for one that cannot be used.
pub(super) fn plan(texts: &Texts) -> Value {
    json!({
        "thought": texts.plan_thought,
        "response_mode": "GENERAL_CHAT",
        "direct_response": texts.fallback,
        "tool_calls": [],
    })
}
