//! Safe fallback plan (P-017).

use serde_json::{Value, json};

use super::options::PlanVariant;
use crate::texts::Texts;

/// Returns the mode that answers with a text and calls nothing.
pub(super) fn answer_mode(variant: PlanVariant) -> &'static str {
    match variant {
        PlanVariant::V1 => "GENERAL_CHAT",
        PlanVariant::V2 => "KNOWLEDGE_QA",
    }
}

/// Returns the plan that replaces an unusable one.
pub(super) fn fallback_plan(variant: PlanVariant, texts: &Texts) -> Value {
    json!({
        "thought": texts.plan_thought,
        "response_mode": answer_mode(variant),
        "direct_response": texts.fallback,
        "tool_calls": [],
    })
}
