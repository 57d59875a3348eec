//! Writes events as a reply that passes the strict check.

use serde_json::{Value, json};

use super::fallback::answer_mode;
use super::options::PlanVariant;
use crate::event::{Event, Extension};

/// Writes the reply: its plan in a code fence.
pub(super) fn write(events: &[Event<'_>], variant: PlanVariant) -> String {
    let outcome = events.iter().rev().filter_map(Event::extension).find_map(|event| match event {
        Extension::Plan(outcome) => Some(outcome),
        _ => None,
    });
    let plan = match outcome {
        Some(outcome) if outcome.is_fallback => fallback_plan(&outcome.plan, events, variant),
        Some(outcome) => outcome.plan.clone(),
        None => answer_plan(events, variant),
    };
    // Capacity for the entire text: growing would hold it twice in memory.
    let size = ["thought", "direct_response"]
        .iter()
        .filter_map(|key| plan[key].as_str())
        .map(str::len)
        .sum::<usize>();
    let mut out = Vec::with_capacity(size + size / 8 + 256);
    out.extend_from_slice(b"```json\n");
    serde_json::to_writer_pretty(&mut out, &plan).expect("a plan has string keys and no fallible parts");
    out.extend_from_slice(b"\n```\n");
    String::from_utf8(out).expect("JSON is text")
}

/// Returns the fallback plan, or one with the reply's answer and thought if it has answered (R-70, R-64).
fn fallback_plan(fallback: &Value, events: &[Event<'_>], variant: PlanVariant) -> Value {
    let size = |event: &Event<'_>| if let Event::FinalDelta { text } = event { text.len() } else { 0 };
    let (mut thought, mut answer) = (String::new(), String::with_capacity(events.iter().map(size).sum()));
    for event in events {
        match event {
            Event::PhaseDelta { text, .. } => thought.push_str(text),
            Event::FinalDelta { text } => answer.push_str(text),
            _ => {}
        }
    }
    let mut plan = fallback.clone();
    plan["response_mode"] = Value::from(answer_mode(variant));
    if plan["direct_response"] != *answer && !answer.trim().is_empty() {
        plan["direct_response"] = Value::from(answer);
        if !thought.trim().is_empty() {
            plan["thought"] = Value::from(thought);
        }
    }
    plan
}

/// Builds the plan of a reply in another dialect: it answers and calls nothing.
fn answer_plan(events: &[Event<'_>], variant: PlanVariant) -> Value {
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
        "response_mode": answer_mode(variant),
        "direct_response": answer,
        "tool_calls": [],
    })
}
