//! Events to a reply that passes the strict check.

use serde_json::{Value, json};

use crate::event::Event;

/// The reply: its plan in a fence.
pub(super) fn write(events: &[Event<'_>]) -> String {
    let plan = events.iter().rev().find_map(|event| match event {
        Event::Plan(outcome) => Some(outcome.plan.clone()),
        _ => None,
    });
    let text = serde_json::to_string_pretty(&plan.unwrap_or_else(|| told(events)));
    let text = text.expect("a plan has string keys and no fallible parts");
    format!("```json\n{text}\n```\n")
}

/// The plan of a reply in another dialect: it answers, and calls nothing.
fn told(events: &[Event<'_>]) -> Value {
    let (mut thought, mut answer) = (String::new(), String::new());
    for event in events {
        match event {
            Event::PhaseStart { title, .. } => {
                if !thought.is_empty() {
                    thought.push('\n');
                }
                thought.push_str(title);
            }
            Event::PhaseDelta { text, .. } => {
                if thought.is_empty() || !thought.contains('\n') {
                    thought.push('\n');
                }
                thought.push_str(text);
            }
            Event::FinalDelta { text } => answer.push_str(text),
            _ => {}
        }
    }
    json!({
        "thought": thought,
        "response_mode": "GENERAL_CHAT",
        "direct_response": answer,
        "tool_calls": [],
    })
}
