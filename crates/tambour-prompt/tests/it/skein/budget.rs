//! Parts dropped from a prompt above its limit (F-006).

use serde_json::{Value, json};
use tambour_prompt::skein::{PartKey, RenderOptions, RenderedPrompt, Skein};
use tambour_prompt::tokens::estimate_tokens;

use super::skein;

const PROMPT: &str = "blocks:\n\
    - {tag: sys, priority: critical, text: s s s s s s s s}\n\
    - {tag: low_a, priority: low, text: a a a a a a a a}\n\
    - {tag: plain, text: p p p p p p p p}\n\
    - slot: lore_before\n\
    - slot: history\n\
    - {tag: high_a, priority: high, text: h h h h h h h h}\n\
    - {tag: low_b, priority: low, text: b b b b b b b b}\n\
    - {tag: lore_x, text: x x x x x x x x, lore: {constant: true, order: 2}}\n\
    - {tag: lore_y, text: y y y y y y y y, lore: {constant: true, order: 1}}\n";

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

fn render_with_limit(max: usize) -> RenderedPrompt {
    let message = |at: usize| json!({"role": if at.is_multiple_of(2) { "user" } else { "assistant" }, "content": format!("m{at} m m m m m m m")});
    let context = json!({"history": (0..4).map(message).chain([json!({"role": "user", "content": "newest one"}), message(5)]).collect::<Value>()});
    let mut options = RenderOptions::default();
    options.count_tokens = &words;
    options.max_context = Some(max);
    skein(PROMPT).render(&context, &options).expect("it renders")
}

fn names(found: &RenderedPrompt) -> Vec<String> {
    let name = |key: &PartKey| match key {
        PartKey::Block { tag, .. } => tag.clone(),
        PartKey::Lore { title, .. } => title.clone(),
        PartKey::Message { index, .. } => format!("m{index}"),
        other => format!("{other:?}"),
    };
    found.dropped_parts.iter().map(|part| name(&part.what)).collect()
}

#[test]
fn low_goes_before_normal_before_high_and_critical_never() {
    let whole = render_with_limit(10_000);
    assert!(whole.dropped_parts.is_empty() && !whole.is_over_limit);
    let order = ["low_b", "low_a", "lore_y", "lore_x", "m0", "m1", "m2", "m3", "m5", "plain", "high_a"];
    for max in (0..whole.tokens).rev() {
        let found = render_with_limit(max);
        let names = names(&found);
        // F-006: parts are dropped in a fixed order, only as many as needed, and each is reported
        assert_eq!(names, order[..names.len()], "{max}");
        for name in order {
            let part = if name.starts_with('m') { format!("{name} m") } else { format!("<{name}>") };
            assert_eq!(
                found.text.contains(&part),
                !names.iter().any(|dropped| dropped == name),
                "{max} {name}"
            );
        }
        // F-006: critical blocks and the newest message of the user are never dropped
        assert!(found.text.contains("<sys>") && found.text.contains("newest one"));
        assert!(found.messages.iter().any(|message| message.content == "newest one"));
        assert_eq!(found.tokens, words(&found.text));
        assert_eq!(found.is_over_limit, found.tokens > max);
        assert_eq!(
            found.is_over_limit,
            found.warnings.iter().any(|warning| warning.contains("nothing more can be left out"))
        );
        if let Some(last) = found.dropped_parts.last() {
            assert!(found.tokens + last.tokens + 20 > max, "{max}: more was dropped than needed");
        }
    }
    assert!(render_with_limit(0).is_over_limit);
}

#[test]
fn the_estimate_is_above_what_tokenizers_give() {
    // F-006: about four characters of English a token, one of Chinese
    assert_eq!(estimate_tokens("four"), 1);
    assert_eq!(estimate_tokens("The quick brown fox jumps over the lazy dog."), 11);
    assert_eq!(estimate_tokens("灰魂会出现"), 5);
    assert_eq!(estimate_tokens(""), 0);
}

#[test]
fn a_long_chat_loses_no_more_than_it_must() {
    // F-006: as many of the newest messages stay as fit, whatever a message costs on top of its text
    let prompt = Skein::from_yaml(
        "p",
        "blocks: [{tag: system_instruction, text: Stay in the scene.}, {tag: conversation_history, slot: history}]",
    )
    .expect("a prompt");
    // A count that includes the text around each message, like real tokenizers.
    let count = |text: &str| text.split(|c: char| !c.is_alphanumeric()).count();
    for words in [1, 5, 60] {
        for limit in [100, 300, 2000] {
            let history: Vec<Value> = (0..201)
                .map(|at| json!({"role": if at % 2 == 0 { "user" } else { "assistant" }, "content": vec!["word"; words].join(" ")}))
                .collect();
            let mut options = RenderOptions::default();
            options.count_tokens = &count;
            let whole = prompt.render(&json!({"history": history}), &options).expect("it renders");
            options.max_context = Some(limit);
            let found = prompt.render(&json!({"history": history}), &options).expect("it renders");
            if whole.tokens <= limit {
                assert_eq!((found.dropped_parts.len(), &found.text), (0, &whole.text));
                continue;
            }
            assert!(
                !found.is_over_limit && found.tokens <= limit,
                "{words} words, {limit}: {}",
                found.tokens
            );
            assert!(found.text.contains("Stay in the scene."), "{words} words, {limit}");
            // One message more would have been too much.
            let message_cost = (whole.tokens - found.tokens).div_ceil(found.dropped_parts.len());
            assert!(
                found.tokens + message_cost > limit,
                "{words} words, {limit}: {} left out of {}",
                found.dropped_parts.len(),
                whole.tokens
            );
            // The reported tokens of the dropped parts add up to about the difference.
            let reported: usize = found.dropped_parts.iter().map(|part| part.tokens).sum();
            assert!(
                reported.abs_diff(whole.tokens - found.tokens) <= found.dropped_parts.len() * 2,
                "{reported} of {}",
                whole.tokens - found.tokens
            );
        }
    }
}

#[test]
fn escaped_tags_count_as_they_are_sent() {
    // F-006: the limit holds for the text that is sent, in which tags of blocks are escaped in the history
    let prompt = skein("blocks: [{tag: place, text: Here.}, {tag: conversation_history, slot: history}]");
    let role = |at: usize| if at.is_multiple_of(2) { "user" } else { "assistant" };
    let message = |at: usize| json!({"role": role(at), "content": "<place>".repeat(10)});
    let context = json!({"history": (0..20).map(message).collect::<Value>()});
    let mut options = RenderOptions::default();
    options.count_tokens = &str::len;
    let whole = prompt.render(&context, &options).expect("it renders");
    assert!(whole.text.contains("&lt;place>"));
    for limit in (700..whole.tokens).step_by(50) {
        options.max_context = Some(limit);
        let found = prompt.render(&context, &options).expect("it renders");
        assert!(!found.is_over_limit && found.tokens <= limit, "{limit}: {}", found.tokens);
        assert!(!found.dropped_parts.is_empty());
    }
}
