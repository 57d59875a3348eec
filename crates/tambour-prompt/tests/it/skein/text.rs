//! Text and messages of a prompt.

use serde_json::json;
use tambour::protocol::ProtocolRegistry;
use tambour::yaml;
use tambour_prompt::skein::{RenderOptions, Skein};

use super::{render_yaml, skein};

#[test]
fn data_prints_as_the_specification_shows_it() {
    let text = render_yaml(
        "blocks:\n\
         - tag: system_instruction\n  data: {role: Dungeon Master, tone: Dark Fantasy, rules: [strict_physics, permadeath]}\n\
         - tag: character_card\n  data: {name: Seraphina, class: Mage, attributes: {int: 18, str: 4}}\n\
         - tag: world_state\n  data: {location: Ancient Ruins, time: Midnight, weather: Stormy}\n\
         - tag: location_forest\n  data: {name: Dark Forest, creatures: [Shadow Wolves, Forest Spirits]}\n",
        &json!({}),
    )
    .text;
    // F-001, F-002, F-004, F-014
    assert_eq!(
        text,
        "<system_instruction>\nrole: Dungeon Master\ntone: Dark Fantasy\nrules:\n  - strict_physics\n  - permadeath\n</system_instruction>\n\n\
         <character_card>\nname: Seraphina\nclass: Mage\nattributes:\n  int: 18\n  str: 4\n</character_card>\n\n\
         <world_state>\nlocation: Ancient Ruins\ntime: Midnight\nweather: Stormy\n</world_state>\n\n\
         <location_forest>\n  name: Dark Forest\n  creatures:\n    - Shadow Wolves\n    - Forest Spirits\n</location_forest>"
    );
    // F-014: bodies parse to the same value
    let body = |tag: &str| {
        let start = text.find(&format!("<{tag}>")).unwrap() + tag.len() + 2;
        yaml::parse("it", &text[start..text.find(&format!("</{tag}>")).unwrap()]).unwrap()
    };
    assert_eq!(
        body("location_forest"),
        json!({"name": "Dark Forest", "creatures": ["Shadow Wolves", "Forest Spirits"]})
    );
    assert_eq!(body("character_card")["attributes"], json!({"int": 18, "str": 4}));
}

const ROLES: &str = "blocks:\n\
    - {tag: block, role: system, text: Be brief.}\n\
    - {tag: note, text: Outside.}\n\
    - {tag: rules, role: user, priority: high, format: yaml, attributes: {n: 1, why: \"a <b> & \\\"c\\\"\"}, data: {a: 1}}\n\
    - {tag: last, role: assistant, format: markdown, text: \"**hi**\"}\n\
    - {tag: end, text: Also outside.}\n";

#[test]
fn role_blocks_are_messages_and_the_rest_is_the_system_message() {
    let found = render_yaml(ROLES, &json!({}));
    // F-003
    assert_eq!(
        found.text,
        "<block role=\"system\">\nBe brief.\n</block>\n\n<note>\nOutside.\n</note>\n\n\
         <block role=\"user\">\n<priority level=\"high\">\n<rules n=\"1\" why=\"a &lt;b&gt; &amp; &quot;c&quot;\">\n\
         \x20 <format type=\"yaml\">\n  a: 1\n  </format>\n</rules>\n</priority>\n</block>\n\n\
         <block role=\"assistant\">\n<last>\n<format type=\"markdown\">\n**hi**\n</format>\n</last>\n</block>\n\n<end>\nAlso outside.\n</end>"
    );
    let roles: Vec<_> = found.messages.iter().map(|message| &*message.role).collect();
    // F-003
    assert_eq!(roles, ["system", "system", "user", "assistant"]);
    assert_eq!(found.messages[0].content, "<note>\nOutside.\n</note>\n\n<end>\nAlso outside.\n</end>");
    assert_eq!(found.messages[1].content, "Be brief.");
    assert!(found.messages[2].content.starts_with("<priority level=\"high\">\n<rules "));
    // F-001: rendering is deterministic
    assert_eq!(render_yaml(ROLES, &json!({})).text, found.text);
}

#[test]
fn templates_are_rendered_and_nothing_of_them_is_left() {
    let found = render_yaml(
        "metadata: {place: Ruins, deep: {x: 1}}\n\
         blocks:\n\
         - {tag: a, text: \"{# note #}{{ place }} {{ deep.x }}{% if user %} {{ user }}{% endif %}\"}\n\
         - {tag: b, data: {who: \"{{ user }}\", hp: \"{{ state.hp }}\", line: \"HP {{ state.hp }}\", \"{{ place }}\": [\"{{ place }}\", 3]}}\n\
         - {tag: c, attributes: {name: \"{{ user }}\"}, text: x}\n\
         - {tag: d, text: \"{{ nothing }}\"}\n",
        &json!({"user": "Ann: \"A\"", "state": {"hp": 7}}),
    );
    // F-028
    assert_eq!(
        found.text,
        "<a>\nRuins 1 Ann: \"A\"\n</a>\n\n<b>\n  who: \"Ann: \\\"A\\\"\"\n  hp: 7\n  line: HP 7\n  Ruins:\n    - Ruins\n    - 3\n</b>\n\n\
         <c name=\"Ann: &quot;A&quot;\">\nx\n</c>"
    );
    // The context takes precedence over the metadata.
    assert_eq!(
        render_yaml("metadata: {a: 1}\nblocks: [{tag: x, text: \"{{ a }}\"}]", &json!({"a": 2})).text,
        "<x>\n2\n</x>"
    );
    // F-020, F-028: a bare name in the context preserves the fields from the metadata
    let person = "metadata: {char: {name: Mia, description: kind}}\nblocks: [{tag: x, text: \"{{ char }} {{ char.description }}\"}]";
    assert_eq!(render_yaml(person, &json!({"char": "Bo"})).text, "<x>\nBo kind\n</x>");
    let error = skein("blocks: [{tag: x, text: \"a\\n{{ 1 +\"}]")
        .render(&json!({}), &RenderOptions::default())
        .expect_err("broken");
    assert!(error.to_string().contains("block 1 (`x`)"), "{error}");
}

#[test]
fn history_is_one_block_of_the_text_and_a_message_each() {
    let context = json!({"user": "Ann", "char": {"name": "Mia"}, "history": [
        {"role": "user", "content": "Hi\nthere"}, {"role": "assistant", "content": "Hm?", "name": "Old Mia"}]});
    let found = render_yaml(
        "blocks:\n- {tag: a, text: x}\n- tag: conversation_history\n- {tag: block, role: system, text: Go on.}\n",
        &context,
    );
    // F-002
    assert_eq!(
        found.text,
        "<a>\nx\n</a>\n\n<conversation_history>\n- role: user\n  name: Ann\n  content: |-\n    Hi\n    there\n- role: assistant\n  \
         name: Old Mia\n  content: Hm?\n</conversation_history>\n\n<block role=\"system\">\nGo on.\n</block>"
    );
    let messages: Vec<_> = found.messages.iter().map(|message| (&*message.role, &*message.content)).collect();
    assert_eq!(messages[1..], [("user", "Hi\nthere"), ("assistant", "Hm?"), ("system", "Go on.")]);
}

#[test]
fn world_info_goes_to_its_places() {
    let yaml = "scan: {scan_depth: 1}\n\
        blocks:\n\
        - {tag: a, text: \"[{{ lore_after }}] [{{ outlet('Rules') }}]\"}\n\
        - slot: lore_before\n\
        - slot: history\n\
        - {tag: forest, data: {name: Wood}, lore: {title: Forest, keys: [wood], order: 5}}\n\
        - {tag: lorebook_entry, text: First, lore: {constant: true, order: 1}}\n\
        - {tag: town, text: \"After {{ user }}\", lore: {constant: true, position: after_char}}\n\
        - {tag: rule, text: \"Obey {{ user }}\", lore: {constant: true, position: outlet, outlet: Rules}}\n\
        - {tag: deep, text: Deep, lore: {constant: true, position: at_depth, depth: 1, role: user}}\n\
        - {tag: never, text: Never, lore: {keys: [dragon]}}\n";
    let context = json!({"user": "{{Ann}}", "history": [{"role": "assistant", "content": "dragon"}, {"role": "user", "content": "the woods"}]});
    let found = render_yaml(yaml, &context);
    // F-020, F-035
    assert_eq!(
        found.text,
        "<a>\n[&lt;town>\nAfter {{Ann}}\n&lt;/town>] [Obey {{Ann}}]\n</a>\n\n<lorebook_entry>\nFirst\n</lorebook_entry>\n\n<forest>\n  name: Wood\n</forest>\n\n\
         <conversation_history>\n- role: assistant\n  content: dragon\n</conversation_history>\n\n\
         <block role=\"user\">\n<deep>\nDeep\n</deep>\n</block>\n\n\
         <conversation_history>\n- role: user\n  name: \"{{Ann}}\"\n  content: the woods\n</conversation_history>"
    );
    let roles: Vec<_> = found.messages.iter().map(|message| &*message.role).collect();
    assert_eq!(roles, ["system", "assistant", "user", "user"]);
    assert_eq!(found.lore_titles, ["Forest", "lorebook_entry", "town", "rule", "deep"]);
    // Names of user and character are expanded in keys.
    let key_yaml = "blocks: [{tag: b, text: found, lore: {keys: [\"{{Char}}'s hat\", \"{{ user\"]}}]";
    let key_context =
        json!({"char": {"name": "Mia"}, "history": [{"role": "user", "content": "where is mia's hat?"}]});
    assert_eq!(render_yaml(key_yaml, &key_context).text, "<b>\nfound\n</b>");
    // An entry without a position is printed at its block.
    let in_place = render_yaml(
        "blocks:\n- {tag: a, text: x}\n- {tag: b, text: y, lore: {constant: true}}\n- {tag: c, text: z}\n",
        &json!({}),
    );
    assert_eq!(in_place.text, "<a>\nx\n</a>\n\n<b>\ny\n</b>\n\n<c>\nz\n</c>");
}

#[test]
fn protocols_are_named_told_and_expected() {
    let yaml = "use_protocol: [variable_update_v2, moon_v9]\nblocks:\n- {tag: a, text: x}\n- {tag: use_protocol, text: status_bar}\n- slot: protocols\n- slot: history\n";
    let found = render_yaml(yaml, &json!({"history": [{"role": "user", "content": "hi"}]}));
    // F-007
    assert!(found.text.contains("<use_protocol>status_bar</use_protocol>"), "{}", found.text);
    assert!(found.text.contains("<use_protocol>variable_update_v2</use_protocol>\n"), "{}", found.text);
    assert!(!found.text.contains("moon_v9"), "{}", found.text);
    let registry = ProtocolRegistry::builtin();
    let names = ["status_bar", "variable_update_v2"];
    for line in registry.instructions(names, tambour::options::Language::En) {
        // F-007: instructions and examples are printed at the slot
        assert!(found.text.contains(line), "{line}");
    }
    for example in registry.examples(names, tambour::options::Language::En) {
        assert!(found.text.contains(example.trim_end()), "{example}");
    }
    assert!(found.warnings.iter().any(|warning| warning.contains("moon_v9")), "{:?}", found.warnings);
    let expected = found.expected_structure.expect("a structure");
    // F-200: generated from the protocols
    assert_eq!(expected.names().collect::<Vec<_>>(), ["thought", "content", "status_bar", "variable_update"]);
    assert!(expected.must_follow("variable_update", "content"));
    assert!(render_yaml("blocks: [{tag: a, text: x}]", &json!({})).expected_structure.is_none());
    // Instructions need a slot or an option.
    let plain = render_yaml("use_protocol: [status_bar]\nblocks: [{tag: a, text: x}]", &json!({}));
    assert_eq!(plain.text, "<a>\nx\n</a>\n\n<use_protocol>status_bar</use_protocol>");
    let mut options = RenderOptions::default();
    options.adds_instructions = true;
    let with_instructions = skein("use_protocol: [status_bar]\nblocks: [{tag: a, text: x}]")
        .render(&json!({}), &options)
        .unwrap();
    assert!(with_instructions.text.contains("Write your reply in these tags:"), "{}", with_instructions.text);
}

#[test]
fn the_structure_is_adjusted_by_hand() {
    let expected = |yaml: &str| {
        skein(yaml).expected_structure(&ProtocolRegistry::builtin()).expect("it fits").0.expect("a structure")
    };
    let mandatory = |yaml: &str| {
        let expected = expected(yaml);
        expected
            .elements
            .iter()
            .filter(|element| element.is_mandatory)
            .map(|element| element.name.to_string())
            .collect::<Vec<_>>()
    };
    // F-200
    assert_eq!(
        mandatory(
            "use_protocol: [status_bar]\nexpected_structure: {mandatory: [content, status_bar], optional: [thought]}\nblocks: []"
        ),
        ["content", "status_bar"]
    );
    let custom =
        "expected_structure: {mandatory: [answer], optional: [mood], dependency: {mood: answer}}\nblocks: []";
    assert!(expected(custom).must_follow("mood", "answer"));
    let inline = "blocks:\n- tag: system_instruction\n  data: {role: GM, expected_structure: {mandatory: [content], optional: [thought]}}\n";
    // F-200: a structure in the data of a system_instruction is used and not printed
    assert_eq!(mandatory(inline), ["content"]);
    assert_eq!(render_yaml(inline, &json!({})).text, "<system_instruction>\nrole: GM\n</system_instruction>");
    let circle = Skein::from_yaml(
        "it",
        "expected_structure: {mandatory: [a, b], dependency: {a: b, b: a}}\nblocks: []",
    );
    assert!(circle.expect_err("a circle").to_string().contains("expected_structure"));
}
