//! Canonical form of a reply: a plan that passes the strict check, written from events, and its JSON Schema.

use serde_json::{Map, Value, json};

use super::check::PLAN_FIELDS;
use super::modes::{AnswerRequirement, CallRequirement, answer_mode, plan_modes};
use super::options::{self, PlanVariant};
use crate::event::{Event, Extension};
use crate::grammar::move_references;
use crate::options::Options;
use crate::tool::RegisteredTool;

/// Writes the reply: its last plan, in a code fence. A reply without a plan becomes a plan that gives its
/// answer.
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
    // Capacity for the entire text, with an eighth for escapes: growing would hold the text twice in memory.
    let text_len = ["thought", "direct_response"]
        .iter()
        .filter_map(|key| plan[key].as_str())
        .map(str::len)
        .sum::<usize>();
    let mut out = Vec::with_capacity(text_len + text_len / 8 + 256);
    out.extend_from_slice(b"```json\n");
    serde_json::to_writer_pretty(&mut out, &plan).expect("a plan has string keys and no fallible parts");
    out.extend_from_slice(b"\n```\n");
    String::from_utf8(out).expect("JSON is text")
}

/// Returns the fallback plan, with the reply's own answer and thought if it has emitted an answer (R-64,
/// R-70).
fn fallback_plan(fallback: &Value, events: &[Event<'_>], variant: PlanVariant) -> Value {
    let answer_len = |event: &Event<'_>| if let Event::FinalDelta { text } = event { text.len() } else { 0 };
    let mut thought = String::new();
    let mut answer = String::with_capacity(events.iter().map(answer_len).sum());
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

/// Builds a plan for a reply without one, such as a reply of another dialect. The plan answers and calls
/// nothing. Each title is a line of the thought, before the text of its phase.
fn answer_plan(events: &[Event<'_>], variant: PlanVariant) -> Value {
    let (mut thought, mut answer) = (String::new(), String::new());
    let mut is_after_title = false;
    for event in events {
        match event {
            Event::PhaseStart { title, .. } => {
                if !thought.is_empty() {
                    thought.push('\n');
                }
                thought.push_str(title);
                is_after_title = true;
            }
            Event::PhaseDelta { text, .. } => {
                if std::mem::take(&mut is_after_title) {
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

/// Returns the schemas of the calls of these tools.
fn call_schemas(tools: &[&RegisteredTool]) -> Vec<Value> {
    let call = |(index, tool): (usize, &&RegisteredTool)| {
        json!({
            "type": "object",
            "properties": {
                "name": { "const": tool.name },
                "args": { "$ref": format!("#/$defs/{}", definition_name(index)) },
            },
            "required": ["name", "args"],
        })
    };
    tools.iter().enumerate().map(call).collect()
}

/// Returns the schemas of the tools' arguments as definitions of another schema, named by [`definition_name`].
pub(super) fn argument_definitions(tools: &[&RegisteredTool]) -> Map<String, Value> {
    let definition = |(index, tool): (usize, &&RegisteredTool)| {
        let name = definition_name(index);
        let schema = move_references(tool.schema(), &format!("#/$defs/{name}"));
        (name, schema)
    };
    tools.iter().enumerate().map(definition).collect()
}

/// Returns the name of the definition of a tool's arguments.
pub(super) fn definition_name(index: usize) -> String {
    format!("args-{index}")
}

/// Returns the JSON Schema (draft 2020-12) of a plan in the configured variant, for constrained decoding and
/// editors. Its calls are those of the caller's tools, with arguments that satisfy their schemas.
pub(super) fn schema(options: &Options) -> Value {
    let filled_string = || json!({ "type": "string", "pattern": "\\S" });
    let modes = plan_modes(options::plan_variant(options));
    let tools = options::plan_tools(options);
    let tools: Vec<&RegisteredTool> = options::callable_tools(&tools, options).collect();
    let read_only_tools: Vec<&str> =
        tools.iter().filter(|tool| tool.read_only).map(|tool| tool.name.as_str()).collect();
    let branches: Vec<Value> = modes
        .iter()
        .map(|mode| {
            let mut branch = json!({
                "properties": {
                    "response_mode": { "const": mode.name, "description": mode.usage[1] },
                    "direct_response": match mode.answer {
                        AnswerRequirement::Null => json!({ "type": "null" }),
                        AnswerRequirement::Required => filled_string(),
                        AnswerRequirement::Optional => json!({ "type": ["string", "null"], "pattern": "\\S" }),
                    },
                    "tool_calls": match mode.calls {
                        CallRequirement::Required => json!({ "minItems": 1 }),
                        CallRequirement::Forbidden => json!({ "maxItems": 0 }),
                        CallRequirement::ReadOnly if read_only_tools.is_empty() => json!({ "maxItems": 0 }),
                        CallRequirement::ReadOnly => json!({
                            "description": "Only tools that change nothing.",
                            "items": { "properties": { "name": { "enum": read_only_tools } } },
                        }),
                    },
                }
            });
            if let Some(field) = mode.extra_field {
                branch["properties"][field] = json!({
                    "type": "object",
                    "description": "The steps of the plan.",
                });
                branch["required"] = json!([field]);
            } else if mode.answer == AnswerRequirement::Optional {
                // Without a text there must be calls.
                branch["anyOf"] = json!([
                    { "properties": { "direct_response": filled_string() } },
                    { "properties": { "tool_calls": { "minItems": 1 } } },
                ]);
            }
            branch
        })
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "AIPlan",
        "description": "What a model is going to do.",
        "type": "object",
        "properties": {
            "thought": {
                "type": "string",
                "pattern": "\\S",
                "description": "Why this mode, how the request is understood, and the next step.",
            },
            "response_mode": { "enum": modes.iter().map(|mode| mode.name).collect::<Vec<_>>() },
            "direct_response": { "type": ["string", "null"] },
            "tool_calls": if tools.is_empty() {
                json!({ "type": "array", "maxItems": 0 })
            } else {
                json!({ "type": "array", "items": { "anyOf": call_schemas(&tools) } })
            },
        },
        "required": PLAN_FIELDS,
        "oneOf": branches,
        "$defs": argument_definitions(&tools),
    })
}
