//! Grammar of replies: the events in their order, each line from its JSON Schema.

use serde_json::{Value, json};

use crate::error::Result;
use crate::grammar::{
    Grammar, GrammarBuilder, GrammarLimits, JsonSpace, JsonStyle, Node, leading_draft, leave_query_rules,
};
use crate::options::Options;

/// Builds the grammar.
pub(super) fn grammar(options: &Options, limits: &GrammarLimits) -> Result<Grammar> {
    let mut builder = GrammarBuilder::default();
    let phase_count = limits.phases(options.limits.phases);
    builder.restrict(&format!("there are at most {phase_count} phases, with the ids from 1 on"));
    builder.restrict("the summary has no `<`; it is written `\\u003c`");
    leave_query_rules(&mut builder);
    builder.leave(&["serp_summary_markup"], "an escape may stand for the bracket of a tag");
    builder.leave(&["single_phase"], "two or more phases are advice");
    builder.leave(&["example_echo", "limit_exceeded"], "a grammar neither compares nor measures texts");

    let schema = super::write::schema(options);
    let mut line = |name: &str, id: Option<usize>| -> Result<Node> {
        let branches = schema["oneOf"].as_array().into_iter().flatten();
        let mut event = branches
            .clone()
            .find(|branch| branch["properties"]["event"]["const"] == name)
            .cloned()
            .unwrap_or(Value::Bool(false));
        if let Some(id) = id {
            event["properties"]["data"]["properties"]["id"] = json!({ "const": id });
        }
        if let Some(chars) = limits.aside_chars()
            && (name.starts_with("phase") || name == "serp_summary")
        {
            let field = if id.is_some() && name == "phase_start" { "title" } else { "text" };
            event["properties"]["data"]["properties"][field]["maxLength"] = chars.into();
        }
        if name == "serp_queries" {
            let queries = &mut event["properties"]["data"]["properties"]["queries"];
            queries["maxItems"] = limits.queries.into();
            queries["items"]["maxLength"] = limits.query_chars.into();
        }
        let style = JsonStyle { space: JsonSpace::Line, escapes_tags: name == "serp_summary" };
        Ok(Node::sequence([builder.json(&event, style)?, Node::literal("\n")]))
    };
    let start = [line("serp_summary", None)?.optional(), line("thinking_start", None)?];
    // The bound of a text is hardly one if texts may come in any number of pieces.
    let delta_count = |bounded: u32| limits.text_chars.map(|_| bounded);
    let mut phases = Vec::with_capacity(phase_count);
    for id in 1..=phase_count {
        let deltas = line("phase_delta", Some(id))?.repeat(0, delta_count(1));
        phases.push(Node::sequence([line("phase_start", Some(id))?, deltas]));
    }
    let answer = [
        line("thinking_end", None)?,
        line("final_delta", None)?.repeat(1, delta_count(4)),
        line("serp_queries", None)?.optional(),
        line("final_end", None)?,
    ];
    let mut rest = Node::Sequence(Vec::new());
    for (index, phase) in phases.into_iter().enumerate().rev() {
        let phase = Node::sequence([phase, rest]);
        rest = match index {
            0 => phase,
            index => builder.rule(&format!("phase-{}", index + 1), phase).optional(),
        };
    }
    let parts = [leading_draft("\n")].into_iter().chain(start).chain([rest]).chain(answer);
    builder.finish(super::ENTRY.name, Node::sequence(parts))
}
