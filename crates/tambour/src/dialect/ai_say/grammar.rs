//! Grammar of answers, from their JSON Schema.

use serde_json::json;

use crate::error::Result;
use crate::grammar::{Grammar, GrammarBuilder, GrammarLimits, JsonSpace, JsonStyle, Node, leading_draft};
use crate::options::Options;

/// Builds the grammar.
pub(super) fn grammar(options: &Options, _: &GrammarLimits) -> Result<Grammar> {
    let mut builder = GrammarBuilder::default();
    let style = JsonStyle { space: JsonSpace::Pretty, escapes_tags: false };
    let mut schema = super::write::schema(options);
    // A small level with a fraction reads as one of another scale.
    let level = &mut schema["properties"]["assessment"]["properties"]["understanding_level"];
    let (min, max) = (level["minimum"].clone(), level["maximum"].clone());
    *level = json!({ "anyOf": [
        { "type": "integer", "minimum": min, "maximum": max },
        { "type": "number", "minimum": 2, "maximum": max },
    ] });
    builder.restrict("`understanding_level` below 2 has no fraction");
    let answer = builder.json(&schema, style)?;
    builder.leave(
        &["example_echo", "placeholder_copied", "limit_exceeded"],
        "a grammar neither compares nor measures texts",
    );
    let root = Node::sequence([leading_draft(""), answer, Node::literal("\n").optional()]);
    builder.finish(super::ENTRY.name, root)
}
