//! Grammar of values, from the schema that is asked for.

use crate::error::Result;
use crate::grammar::{Grammar, GrammarBuilder, GrammarLimits, JsonSpace, JsonStyle, Node, leading_draft};
use crate::options::Options;

/// Builds the grammar.
pub(super) fn grammar(options: &Options, _: &GrammarLimits) -> Result<Grammar> {
    let mut builder = GrammarBuilder::default();
    let style = JsonStyle { space: JsonSpace::Pretty, escapes_tags: false };
    let value = builder.json(&super::schema(options), style)?;
    builder.leave(&["example_echo", "limit_exceeded"], "a grammar neither compares nor measures texts");
    let root = Node::sequence([leading_draft(""), value, Node::literal("\n").optional()]);
    builder.finish(super::ENTRY.name, root)
}
