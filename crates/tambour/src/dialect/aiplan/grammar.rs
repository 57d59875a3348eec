//! Grammar of plans: one schema for each mode, from the table of modes and the tools.

use serde_json::{Map, Value, json};

use super::check::PLAN_FIELDS;
use super::modes::{AnswerRequirement, CallRequirement, PlanMode, plan_modes};
use super::options;
use super::write::{argument_definitions, definition_name};
use crate::error::Result;
use crate::grammar::{Grammar, GrammarBuilder, GrammarLimits, JsonSpace, JsonStyle, Node, leading_draft};
use crate::options::Options;
use crate::tool::RegisteredTool;

/// Builds the grammar.
pub(super) fn grammar(options: &Options, limits: &GrammarLimits) -> Result<Grammar> {
    let mut builder = GrammarBuilder::default();
    let style = JsonStyle { space: JsonSpace::Pretty, escapes_tags: false };
    let plan = builder.json(&schema(options, limits), style)?;
    builder.restrict("the plan is in a fence that says `json`, with nothing around it but leading reasoning");
    builder.leave(&["example_echo", "limit_exceeded"], "a grammar neither compares nor measures texts");
    builder.leave(&["text_outside_plan"], "reasoning before the plan is accepted, and reported");
    if builder.has_open_objects() {
        builder.leave(
            &["tool_call_invalid", "plan_unused"],
            "a call whose arguments have a key twice does not run",
        );
    }
    builder.leave_arguments();
    let fence_end = Node::literal("\n```");
    let root = Node::sequence([
        leading_draft("\n"),
        Node::literal("```json\n"),
        plan,
        fence_end,
        Node::literal("\n").optional(),
    ]);
    builder.finish(super::ENTRY.name, root)
}

/// Returns the schema of a plan that calls only tools of the caller, with arguments that satisfy their
/// schemas.
pub(super) fn schema(options: &Options, limits: &GrammarLimits) -> Value {
    let tools = options::plan_tools(options);
    let tools: Vec<&RegisteredTool> = options::callable_tools(&tools, options).collect();
    let definitions = argument_definitions(&tools);
    let modes = plan_modes(options::plan_variant(options));
    let thought_chars = limits.aside_chars();
    let branches: Vec<Value> =
        modes.iter().flat_map(|mode| mode_schemas(mode, &tools, thought_chars)).collect();
    json!({ "oneOf": branches, "$defs": definitions })
}

/// Schemas of the plans of one mode, with thoughts of at most `thought_chars` characters; none if it needs calls
/// and there are no tools.
fn mode_schemas(mode: &PlanMode, tools: &[&RegisteredTool], thought_chars: Option<u32>) -> Vec<Value> {
    let calls = |is_allowed: &dyn Fn(&RegisteredTool) -> bool, min: usize| {
        let calls: Vec<Value> = tools
            .iter()
            .enumerate()
            .filter(|(_, tool)| is_allowed(tool))
            .map(|(index, tool)| {
                closed_object(&json!({
                    "name": { "const": tool.name },
                    "args": { "$ref": format!("#/$defs/{}", definition_name(index)) },
                }))
            })
            .collect();
        match calls.is_empty() {
            true => (min == 0).then(|| json!({ "type": "array", "maxItems": 0 })),
            false => Some(json!({ "type": "array", "minItems": min, "items": { "anyOf": calls } })),
        }
    };
    let calls_of = |min: usize| match mode.calls {
        CallRequirement::Required => calls(&|_| true, 1),
        CallRequirement::Forbidden => calls(&|_| false, min),
        CallRequirement::ReadOnly => calls(&|tool| tool.read_only, min),
    };
    let text = || json!({ "type": "string", "pattern": "\\S" });
    let plan = |answer: Value, calls: Option<Value>| {
        let mut thought = text();
        if let Some(chars) = thought_chars {
            thought["maxLength"] = chars.into();
        }
        let values = [thought, json!({ "const": mode.name }), answer, calls?];
        let mut properties: Map<String, Value> =
            PLAN_FIELDS.into_iter().map(str::to_owned).zip(values).collect();
        if let Some(name) = mode.extra_field {
            properties.insert(name.to_owned(), json!({ "type": "object" }));
        }
        Some(closed_object(&Value::Object(properties)))
    };
    let null = || json!({ "type": "null" });
    let plans = match mode.answer {
        AnswerRequirement::Null => vec![plan(null(), calls_of(0))],
        AnswerRequirement::Required => vec![plan(text(), calls_of(0))],
        AnswerRequirement::Optional if mode.extra_field.is_some() => {
            vec![plan(json!({ "type": ["string", "null"], "pattern": "\\S" }), calls_of(0))]
        }
        // Without a text there must be calls.
        AnswerRequirement::Optional => vec![plan(text(), calls_of(0)), plan(null(), calls_of(1))],
    };
    plans.into_iter().flatten().collect()
}

/// Returns the schema of an object with exactly these properties.
fn closed_object(properties: &Value) -> Value {
    let required: Vec<String> =
        properties.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}
