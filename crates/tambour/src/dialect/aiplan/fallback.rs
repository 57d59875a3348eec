//! The safe fallback (P-017).

use serde_json::{Value, json};

use super::options::Variant;
use crate::texts::Texts;

/// The mode that answers with a text and calls nothing.
pub(super) fn answering(variant: Variant) -> &'static str {
    match variant {
        Variant::V1 => "GENERAL_CHAT",
        Variant::V2 => "KNOWLEDGE_QA",
    }
}

/// The plan that stands in for one that cannot be used.
pub(super) fn plan(variant: Variant, texts: &Texts) -> Value {
    json!({
        "thought": texts.plan_thought,
        "response_mode": answering(variant),
        "direct_response": texts.fallback,
        "tool_calls": [],
    })
}
