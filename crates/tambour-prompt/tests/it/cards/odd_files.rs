//! Odd files: guesses and omissions of an import are warnings, and every readable file is accepted (F-013).

use serde_json::{Value, json};
use tambour_prompt::card::normalize::{EntryBody, normalize_entry};
use tambour_prompt::lore::CharacterText;

use super::{read_bytes, read_value, v2_card};

fn assert_warning(value: &Value, word: &str) {
    let warnings = read_value(value).warnings;
    assert!(warnings.iter().any(|warning| warning.contains(word)), "no `{word}` in {warnings:?}");
}

#[test]
fn half_a_character_is_replaced() {
    let text =
        r#"{"name": "Mia", "description": "a \ud83d b \ude00 c \ud83d\ude00 d \\ud83d", "first_mes": "x"}"#;
    let imported = read_bytes(text.as_bytes()).expect("a card");
    // F-013
    assert_eq!(imported.card.expect("a card").description, "a \u{fffd} b \u{fffd} c 😀 d \\ud83d");
    assert!(imported.warnings[0].starts_with("2 unpaired surrogates"), "{:?}", imported.warnings);
}

#[test]
fn a_flat_card_is_read() {
    let flat = json!({"spec": "chara_card_v3", "spec_version": "3.0", "name": "Mia", "description": "d", "my_field": 1});
    let imported = read_value(&flat);
    // F-013
    assert_eq!((&*imported.version, &*imported.name), ("v3", "Mia"));
    assert_warning(&flat, "`data` is missing");
    let out = imported.export();
    assert_eq!(
        (&out["data"]["description"], &out["data"]["my_field"], &out["spec"]),
        (&json!("d"), &json!(1), &json!("chara_card_v3"))
    );
    assert!(out.get("description").is_none(), "{out}");
    assert!(read_bytes(br#"{"spec": "chara_card_v3"}"#).expect_err("no card").contains("data"));
}

#[test]
fn a_book_in_another_place_is_told() {
    let book = json!({"entries": [{"keys": ["k"], "content": "c", "enabled": true, "insertion_order": 1, "extensions": {}}]});
    for (card, place) in [
        (
            json!({"spec": "chara_card_v2", "spec_version": "2.0", "data": {"name": "N"}, "character_book": book}),
            "`character_book` is a book",
        ),
        (
            v2_card(&json!({"extensions": {"character_book": book}})),
            "`data.extensions.character_book` is a book",
        ),
        (v2_card(&json!({"lorebook": book})), "`data.lorebook` is a book"),
    ] {
        assert_eq!(read_value(&card).entries.len(), 1, "{card}");
        assert_warning(&card, place);
    }
    let mut card_with_two = v2_card(&json!({"character_book": book}));
    card_with_two["character_book"] = book.clone();
    assert_warning(&card_with_two, "is a second book");
    assert_warning(&v2_card(&json!({"extensions": {"world": "Elsewhere"}})), "`Elsewhere`");
    // A V1 card has its book next to its other fields.
    let v1 = json!({"name": "A", "description": "d", "character_book": book});
    assert_eq!(
        (read_value(&v1).entries.len(), read_value(&v1).warnings.len()),
        (1, 0),
        "{:?}",
        read_value(&v1).warnings
    );
}

#[test]
fn what_is_odd_about_keys_is_told() {
    let entry =
        |key: Value| json!({"entries": {"0": {"uid": 0, "key": key, "content": "c", "comment": "E"}}});
    let book = entry(json!("wood, /a{1,2}/i, tree"));
    assert_eq!(read_value(&book).entries[0].keys, ["wood", "/a{1,2}/i", "tree"]);
    assert_warning(&book, "list of 3");
    assert_warning(&entry(json!(["/c++/"])), "is not a valid regular expression");
    assert_warning(&entry(json!(["/(?<=a)b/"])), "is left out");
    assert_warning(&entry(json!([" "])), "is blank");
    assert!(read_value(&entry(json!(["wood", "/tree(s)?/i"]))).warnings.is_empty());
}

#[test]
fn variables_for_the_beginning_are_told() {
    let entry = |text: &str| json!({"entries": {"0": {"uid": 0, "key": [], "comment": "[InitVar] mood", "content": text, "disable": true}}});
    assert_warning(&entry("hp: 7\nmood: calm"), "initial values of 2 variables");
    assert_warning(&entry("{\"hp\": [7, \"points\"]}"), "initial values of 1 variable,");
    assert_warning(&entry("Nothing of the kind."), "neither a YAML mapping nor a JSON object");
}

#[test]
fn texts_of_the_character_are_read_if_the_book_says_so() {
    let names = [
        "matchPersonaDescription",
        "matchCharacterDescription",
        "matchCharacterPersonality",
        "matchCharacterDepthPrompt",
        "matchScenario",
        "matchCreatorNotes",
    ];
    for (name, source) in names.into_iter().zip(CharacterText::ALL) {
        let book =
            read_value(&json!({"entries": {"0": {"uid": 0, "key": ["k"], "content": "c", (name): true}}}));
        assert_eq!(book.entries[0].sources, [source], "{name}");
        // Export as V3 and reading back preserves it.
        let out = book.export();
        let second = read_value(&out);
        assert_eq!(second.entries[0].sources, [source], "{out}");
    }
}

#[test]
fn yaml_with_quotes_is_yaml() {
    let data = |text: &str| match normalize_entry("", text).body {
        EntryBody::Data(value) => value,
        EntryBody::Text(text) => panic!("stays text: {text}"),
    };
    // F-011
    assert_eq!(data("<x>\nsay: 'it''s over.'\n</x>"), json!({"say": "it's over."}));
    assert_eq!(data("<x>\nsay: \"a\\nb \\u00e9\"\nname: A\n</x>"), json!({"say": "a\nb é", "name": "A"}));
    assert_eq!(data("<x>\nname: A\ntext: |\n  a\n  b\n</x>"), json!({"name": "A", "text": "a\nb\n"}));
    assert_eq!(data("<x>\nname: A\ntext: |-\n  a\n  b\n</x>"), json!({"name": "A", "text": "a\nb"}));
    assert_eq!(
        data("<x>\nsay: 'it''s'\n<y>\nname: A\n</y>\n</x>"),
        json!({"say": "it's", "text": "<y>", "name": "A", "text 2": "</y>"})
    );
    assert!(matches!(normalize_entry("", "<x>\nsay: He said it.\n</x>").body, EntryBody::Text(_)));
}
