//! File form of prompts (F-001 to F-003).

use proptest::prelude::*;
use serde_json::json;
use tambour_prompt::skein::Skein;

use super::skein;

#[test]
fn a_mistake_names_the_block_and_the_key() {
    let cases = [
        ("blocks: {}", "`blocks`"),
        ("blocks: [7]", "block 1"),
        ("blocks: [{tag: a, text: x}, {text: x}]", "block 2: `tag`"),
        ("blocks: [{tag: a b, text: x}]", "`a b` is not a valid block tag"),
        ("blocks: [{tag: a>, text: x}]", "is not a valid block tag"),
        ("blocks: [{tag: priority, text: x}]", "`priority` needs its attribute"),
        //
        (
            "blocks: [{tag: block, attributes: {role: system, id: x}, text: y}]",
            "`block` has no attribute `id`, only `role`",
        ),
        (
            "blocks: [{tag: format, attributes: {kind: yaml}, text: y}]",
            "`format` has no attribute `kind`, only `type`",
        ),
        ("blocks: [{tag: format, attributes: {type: xml}, text: y}]", "known: yaml, json, text, markdown"),
        (
            "blocks: [{tag: priority, attributes: {level: top}, text: y}]",
            "known: low, normal, high, critical",
        ),
        (
            "blocks: [{tag: block, role: user, attributes: {role: system}, text: y}]",
            "`role` is `user`, but `system` in its attributes",
        ),
        ("blocks: [{tag: block, attributes: {role: 7}, text: y}]", "the attribute `role` must be a text"),
        ("blocks: [{tag: a}]", "block 1 (`a`): `data`, `text` or `slot`"),
        ("blocks: [{tag: a, text: x, data: 1}]", "more than one"),
        ("blocks: [{tag: a, text: 7}]", "`text` must be a text"),
        ("blocks: [{tag: a, text: x, role: king}]", "unknown `role` `king`; known: system, user, assistant"),
        ("blocks: [{tag: a, text: x, priority: top}]", "known: low, normal, high, critical"),
        ("blocks: [{tag: a, text: x, format: xml}]", "known: yaml, json, text, markdown"),
        ("blocks: [{tag: a, text: x, attributes: {a b: c}}]", "`a b` is not an attribute name"),
        ("blocks: [{tag: a, text: x, rank: 1}]", "unknown key of block 1 `rank`"),
        ("blocks: [{slot: moon}]", "unknown slot `moon`"),
        ("blocks: [{tag: a, text: x, lore: {kees: [a]}}]", "`lore`: unknown field `kees`"),
        ("block: []", "unknown key of a prompt `block`"),
        ("use_protocol: 7\nblocks: []", "`use_protocol`"),
        ("max_context: 0\nblocks: []", "`max_context`"),
        ("metadata: [a]\nblocks: []", "`metadata`"),
        ("expected_structure: [a]\nblocks: []", "`expected_structure`"),
        ("blocks: [\n", "not YAML"),
    ];
    for (yaml, words) in cases {
        let error = Skein::from_yaml("the prompt", yaml).expect_err(yaml).to_string();
        // F-003
        assert!(error.contains(words), "{yaml}: {error}");
    }
}

#[test]
fn tags_of_metadata_with_attributes_are_keys() {
    // R-98, F-003
    for (source, expected) in [
        ("{tag: block, attributes: {role: user}, text: x}", "{tag: block, role: user, text: x}"),
        ("{tag: format, attributes: {type: markdown}, text: x}", "{tag: block, format: markdown, text: x}"),
        (
            "{tag: format, role: user, attributes: {type: json}, data: {a: 1}}",
            "{tag: block, role: user, format: json, data: {a: 1}}",
        ),
        ("{tag: priority, attributes: {level: low}, text: x}", "{tag: block, priority: low, text: x}"),
    ] {
        let parsed = skein(&format!("blocks: [{source}]"));
        assert_eq!(parsed, skein(&format!("blocks: [{expected}]")), "{source}");
        assert_eq!(skein(&parsed.to_yaml()), parsed, "{source}");
    }
}

#[test]
fn a_prompt_is_written_as_it_was_read() {
    let yaml = "use_protocol: [status_bar]\nmax_context: 100\nmetadata: {a: [1, {b: 2}]}\nscan: {recursive: true}\n\
        expected_structure: {mandatory: [content]}\nblocks:\n\
        - {tag: a, role: user, priority: low, format: text, attributes: {x: y, n: 7}, text: \"one\\ntwo\"}\n\
        - {slot: lore_before}\n- {slot: \"outlet:Rules\"}\n- {slot: protocols}\n- tag: conversation_history\n\
        - {tag: 森林, data: {deep: [null, true, 1.5]}, lore: {keys: [a], position: at_depth, depth: 2}}\n";
    let parsed = skein(yaml);
    let output = parsed.to_yaml();
    assert_eq!(skein(&output), parsed, "{output}");
    assert_eq!(skein(&output).to_yaml(), output);
    assert!(output.contains("  - tag: 森林\n"), "{output}");
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(yaml in "[a-z:{}\\[\\], \n-]{0,60}", tag in "\\PC{0,6}", text in "\\PC{0,20}") {
        let _ = Skein::from_yaml("it", &yaml);
        let value = json!({"blocks": [{"tag": tag, "text": text}]});
        if let Ok(parsed) = Skein::from_value(&value) {
            prop_assert_eq!(skein(&parsed.to_yaml()), parsed);
        }
    }
}
