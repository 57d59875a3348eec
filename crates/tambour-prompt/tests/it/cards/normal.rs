//! Texts of world info in normal form (F-010 to F-012, F-014).

use proptest::prelude::*;
use serde_json::{Value, json};
use tambour::yaml;
use tambour_prompt::card::normalize::{EntryBody, normalize_entry};

fn data(content: &str) -> Value {
    match normalize_entry("", content).body {
        EntryBody::Data(value) => value,
        EntryBody::Text(text) => panic!("stays text: {text}"),
    }
}

fn assert_stays_text(content: &str) {
    let normal = normalize_entry("", content);
    // F-012
    assert_eq!(normal.body, EntryBody::Text(content.to_owned()), "{content}");
}

#[test]
fn json_becomes_yaml_within_its_tag() {
    let normal = normalize_entry(
        "",
        "<location_forest>\n{\"name\": \"Dark Forest\", \"atmosphere\": \"Eerie, misty\",\
        \"creatures\": [\"Shadow Wolves\", \"Forest Spirits\"], \"loot\": [\"Ancient Bark\", \"Moon Petals\"]}\n</location_forest>",
    );
    // F-010, F-014
    assert_eq!(
        normal.render(),
        "<location_forest>\n  name: Dark Forest\n  atmosphere: Eerie, misty\n  creatures:\n    - Shadow Wolves\n    - Forest Spirits\n  \
         loot:\n    - Ancient Bark\n    - Moon Petals\n</location_forest>"
    );
    let body = normal.render();
    let inner = body
        .strip_prefix("<location_forest>\n")
        .and_then(|body| body.strip_suffix("</location_forest>"))
        .unwrap();
    // F-014: the text parses to the same value
    assert_eq!(EntryBody::Data(yaml::parse("it", inner).unwrap()), normal.body);
    // JSON with duplicate keys stays text, since a value would be lost.
    assert_stays_text("{\"a\": 1, \"a\": 2}");
    assert_eq!(
        data("{\"hp\": {{getvar::hp}}, \"n\": [\"{{user}}\"]}"),
        json!({"hp": "{{getvar::hp}}", "n": ["{{user}}"]})
    );
}

#[test]
fn yaml_keeps_its_values() {
    // F-011
    assert_eq!(
        data(
            "<x id=\"7\">\nname: A\nage: 7\ncode: 007\nopen: yes\nlist:\n- a\n-  b: 1\n   c: 2\nabout: |\n  two\n  lines\n</x>"
        ),
        json!({"name": "A", "age": 7, "code": "007", "open": "yes", "list": ["a", {"b": 1, "c": 2}], "about": "two\nlines\n"})
    );
    let normal = normalize_entry("", "<x id=\"7&quot;\">\nname: A\nage: 7\n</x>");
    assert_eq!(normal.attributes, [("id".to_owned(), "7\"".to_owned())]);
    assert_eq!(normal.render(), "<x id=\"7&quot;\">\n  name: A\n  age: 7\n</x>");
    // Numbers that YAML would change become texts.
    assert_eq!(data("price: 1.10\nname: x"), json!({"price": "1.10", "name": "x"}));
    assert_eq!(
        data("big: 12345678901234567890123\nname: x"),
        json!({"big": "12345678901234567890123", "name": "x"})
    );
    // All lines are indented.
    assert_eq!(data("    name: A\n    tags:\n        - b"), json!({"name": "A", "tags": ["b"]}));
}

#[test]
fn markdown_becomes_data() {
    // F-012
    assert_eq!(
        data(
            "# Forest\nDark and old.\n\n## Beasts\n- Wolves\n- **Owl**: wise\n  - sees\n## Loot\n1. Bark\n2. Petals\n"
        ),
        json!({"Forest": {"text": "Dark and old.", "Beasts": ["Wolves", {"Owl": "wise", "items": ["sees"]}], "Loot": ["Bark", "Petals"]}})
    );
    assert_eq!(
        data("**Name**: Mia\n**Age:** 17\nLikes:\n- tea\n- 猫\n\nShe is kind."),
        json!({"Name": "Mia", "Age": 17, "Likes": ["tea", "猫"], "text": "She is kind."})
    );
    assert_eq!(data("## 外貌\n- 发色：银\n- 身高：160"), json!({"外貌": [{"发色": "银"}, {"身高": 160}]}));
    assert_eq!(data("- a\n  - b\n    - c\n- d"), json!([{"a": [{"b": ["c"]}]}, "d"]));
}

#[test]
fn prose_stays_as_it_was() {
    assert_stays_text("The guard said: nobody enters. Then he slept.");
    assert_stays_text("A lake.\n\nIt is cold: very cold, in fact; and deep.");
    assert_stays_text("[Character(\"Mia\") Age(\"17\")]");
    assert_stays_text("5 > 3 & 2 < 4, says *nobody*.");
    assert_stays_text("");
    assert_stays_text("   \n ");
    // Tags with a meaning in prompts are not used as names of entries.
    let normal = normalize_entry("t", "<system_instruction>{\"a\": 1}</system_instruction>");
    assert_eq!((&*normal.tag, normal.attributes.len()), ("lorebook_entry", 1));
    assert_eq!(
        normal.body,
        EntryBody::Text("<system_instruction>{\"a\": 1}</system_instruction>".to_owned())
    );
    let normal = normalize_entry("", "<a>x");
    assert!(normal.warnings[0].contains("not closed"), "{:?}", normal.warnings);
}

/// Lists the words of a text, runs of letters and digits, in order of the alphabet.
fn sorted_words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    words.sort();
    words
}

fn any_lines() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        "#{1,3} [A-Za-z灰魂]{1,8}( [a-z]{1,5})?",
        " {0,4}[-*+] [a-z]{1,6}( [a-z]{1,6}){0,2}",
        "[0-9]{1,2}\\. [a-z]{1,6}",
        "\\*\\*[A-Za-z]{1,6}\\*\\*: [a-z0-9. ]{0,10}",
        "[A-Za-z]{1,6}: [a-z0-9 .\"'{}#-]{0,12}",
        "[A-Za-z ,.!?:<>&]{0,30}",
        "<[a-z]{1,3}>|</[a-z]{1,3}>",
        "```|---|\\| a \\| b \\||> quoted",
        "\\{\\{[a-z]{1,6}(::[a-z]{1,4})?\\}\\}",
    ];
    prop::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn no_word_is_lost(text in any_lines()) {
        let normal = normalize_entry("", &text);
        let rendered = normal.render();
        let mut remaining = sorted_words(&rendered);
        // Comments of YAML (F-011) and numbers of an ordered list (F-012) may disappear.
        let source: String = text.lines().map(|line| line.split_once(" #").map_or(line, |(code, _)| code)).collect::<Vec<_>>().join("\n");
        let has_no_headings = source.lines().all(|line| !line.trim_start().starts_with('#'));
        for word in sorted_words(&source) {
            match remaining.iter().position(|candidate| *candidate == word) {
                Some(at) => { remaining.remove(at); }
                None if word.chars().all(|c| c.is_ascii_digit()) => {}
                // F-012
                None => prop_assert!(!has_no_headings, "`{}` is lost: {:?} -> {}", word, text, rendered),
            }
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,60}", markup in "[<>/a-z{}\":,\\[\\]#*\\- \n]{0,60}") {
        let _ = normalize_entry(&text, &text).render();
        let _ = normalize_entry("", &markup).render();
    }
}
