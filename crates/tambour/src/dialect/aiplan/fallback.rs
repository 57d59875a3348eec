//! Safe fallback plan (P-017).

use serde_json::{Value, json};

use super::options::Variant;
use crate::texts::Texts;

/// Returns the mode that answers with a text and calls nothing.
pub(super) fn answering(variant: Variant) -> &'static str {
    match variant {
        Variant::V1 => "GENERAL_CHAT",
        Variant::V2 => "KNOWLEDGE_QA",
    }
}

/// Returns the plan that replaces an unusable one.
pub(super) fn plan(variant: Variant, texts: &Texts) -> Value {
    json!({
        "thought": texts.plan_thought,
        "response_mode": answering(variant),
        "direct_response": texts.fallback,
        "tool_calls": [],
    })
}
