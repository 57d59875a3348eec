//! Grammar of replies, from the expected structure.

use super::ThinkingMlOptions;
use super::structure::ThinkingMlElement::{Final, Phase, Serp, Think, Thinking, Title};
use crate::error::Result;
use crate::grammar::{
    CharClass, FreeText, Grammar, GrammarBuilder, GrammarLimits, Node, gap, leave_query_rules,
    search_queries, sequence_of, tag_starts, text_element,
};
use crate::options::Options;

/// Builds the grammar.
pub(super) fn grammar(options: &Options, limits: &GrammarLimits) -> Result<Grammar> {
    let mut builder = GrammarBuilder::default();
    builder.restrict("there is no code fence, and at most eight characters of white space between tags");
    builder
        .restrict("no `<` before a letter, `/`, `!`, `?`, `|`, `_` or `<` in any text; it is written `&lt;`");
    let phase_count = limits.phases(options.limits.phases);
    builder.restrict(&format!("there are at most {phase_count} phases, with the ids from 1 on"));
    leave_query_rules(&mut builder);
    if options.section::<ThinkingMlOptions>().is_block_optional {
        builder.leave(&["serp_block_missing"], "the block is recommended, but may be left out");
    }
    builder.leave(&["example_echo", "limit_exceeded"], "a grammar neither compares nor measures texts");

    let chars = limits.aside_chars();
    let draft = Node::sequence([text_element(Think.as_str(), false, chars), gap()]).optional();
    let summary = Node::sequence([text_element(Serp.as_str(), true, chars), gap()]).optional();
    let mut parts = vec![gap(), draft, summary, Node::literal(format!("<{}>", Thinking.as_str())), gap()];
    parts.push(phases(&mut builder, phase_count, chars));
    parts.extend([Node::literal(format!("</{}>", Thinking.as_str())), gap()]);
    parts.push(answer(&mut builder, options, limits));
    parts.push(Node::literal("\n").optional());
    builder.finish(super::ENTRY.name, Node::sequence(parts))
}

/// All phases, with texts of at most `chars` characters, and the white space after each.
fn phases(builder: &mut GrammarBuilder, count: usize, chars: Option<u32>) -> Node {
    let name = Phase.as_str();
    let mut rest = Node::Sequence(Vec::new());
    let title = FreeText::new(format!("</{}>", Title.as_str())).without(tag_starts()).filled().at_most(chars);
    let title = Node::token([Node::literal(format!("<{}>", Title.as_str())), Node::Text(title)]);
    for id in (1..=count).rev() {
        let text = FreeText::new(format!("</{name}>")).without(tag_starts()).at_most(chars);
        let phase = Node::sequence([
            Node::literal(format!("<{name} id=\"{id}\">")),
            gap(),
            title.clone(),
            Node::Text(text),
            gap(),
            rest,
        ]);
        rest = if id == 1 { phase } else { builder.rule(&format!("{name}-{id}"), phase).optional() };
    }
    rest
}

/// The answer with its block of queries.
fn answer(builder: &mut GrammarBuilder, options: &Options, limits: &GrammarLimits) -> Node {
    let name = Final.as_str();
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let text = |end: &str| {
        let text = FreeText::new(end).without(tag_starts()).without([sequence_of("serp_queries")]).filled();
        Node::token([Node::literal(open.clone()), Node::Text(text)])
    };
    let block = Node::sequence([
        text("\n<!-- <serp_queries>\n"),
        search_queries(builder, limits, &CharClass::of("<>")),
        Node::literal("\n</serp_queries> -->"),
        gap(),
        Node::literal(close.clone()),
    ]);
    match options.section::<ThinkingMlOptions>().is_block_optional {
        true => Node::choice([block, text(&close)]),
        false => block,
    }
}
