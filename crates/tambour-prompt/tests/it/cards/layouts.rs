//! Lorebooks in other programs' layouts (F-013).

use serde_json::json;
use tambour_prompt::lore::{CharacterFilter, EntryPosition, MessageRole, SecondaryLogic};

use super::{read_bytes, read_value};

#[test]
fn all_fields_of_a_sillytavern_entry_are_read() {
    let imported = read_value(&json!({"name": "B", "entries": {"0": {
        "uid": 12, "key": "a, b", "content": "c", "position": 5, "delayUntilRecursion": true, "preventRecursion": true,
        "cooldown": 4, "delay": 2, "caseSensitive": true, "matchWholeWords": false, "useGroupScoring": true, "groupOverride": true,
        "triggers": ["swipe"], "ignoreBudget": true, "useProbability": false, "probability": 5,
        "characterFilter": {"names": ["Z"], "tags": ["q"], "isExclude": true}}}}));
    let entry = &imported.entries[0];
    // F-013
    assert_eq!((&*entry.id, &entry.keys[..]), ("12", &["a".to_owned(), "b".to_owned()][..]));
    assert_eq!(
        (entry.position, entry.delay_until_recursion, entry.cooldown, entry.delay),
        (EntryPosition::ExamplesBefore, 1, 4, 2)
    );
    assert_eq!(
        (entry.case_sensitive, entry.whole_words, entry.group_scoring),
        (Some(true), Some(false), Some(true))
    );
    assert!(entry.prevent_recursion && entry.group_override && entry.ignore_budget);
    // The probability counts only with its flag.
    assert!((entry.probability - 100.0).abs() < f64::EPSILON);
    let filter = CharacterFilter { names: vec!["Z".into()], tags: vec!["q".into()], exclude: true };
    assert_eq!((&entry.filter, &entry.triggers[..]), (&filter, &["swipe".to_owned()][..]));
    assert_eq!(
        imported.warnings,
        ["`entries.0.key` is one text and was taken as a list of 2, divided at commas"]
    );
}

#[test]
fn extensions_go_before_the_plain_position() {
    let entry = |extensions| {
        let book = json!({"entries": [{"keys": ["k"], "content": "c", "position": "after_char", "extensions": extensions}]});
        read_value(&book).entries[0].clone()
    };
    assert_eq!(entry(json!({})).position, EntryPosition::AfterChar);
    let deep =
        entry(json!({"position": 4, "depth": 1, "role": 2, "selectiveLogic": 2, "delay_until_recursion": 3}));
    assert_eq!(
        (deep.position, deep.depth, deep.logic, deep.delay_until_recursion),
        (EntryPosition::AtDepth, 1, SecondaryLogic::NotAny, 3)
    );
}

#[test]
fn ids_are_made_unique_and_odd_values_told() {
    let imported = read_value(&json!({"entries": [
        {"id": 1, "keys": ["k"], "content": "a"}, {"id": 1, "keys": ["k"], "content": "b", "position": "sideways"},
        {"id": 2, "keys": ["k"], "content": "c", "extensions": {"position": 99, "selectiveLogic": 9, "depth": 2.6}},
    ]}));
    let ids: Vec<_> = imported.entries.iter().map(|entry| &*entry.id).collect();
    assert_eq!(ids, ["1", "1#1", "2"]);
    assert_eq!(imported.entries[2].depth, 3);
    assert_eq!(imported.warnings.len(), 5, "{:#?}", imported.warnings);
}

#[test]
fn roles_have_the_names_that_contexts_have() {
    // F-013
    for (name, expected) in [
        ("System", MessageRole::System),
        ("developer", MessageRole::System),
        ("human", MessageRole::User),
        ("char", MessageRole::Assistant),
        (" bot ", MessageRole::Assistant),
    ] {
        let imported = read_value(&json!({"entries": {"0": {"key": ["k"], "content": "c", "role": name}}}));
        assert_eq!(imported.entries[0].role, expected, "{name}");
    }
    let book = json!({"entries": {"0": {"key": ["k"], "content": "c", "role": "king"}}});
    let error = read_bytes(book.to_string().as_bytes()).expect_err("there is no such role");
    assert!(error.contains("role"), "{error}");
}

#[test]
fn a_changed_id_is_not_that_of_another_entry() {
    let entry = |id: &str| json!({"id": id, "keys": ["k"], "content": "c"});
    let imported = read_value(&json!({"entries": [entry("a#2"), entry("a"), entry("a"), entry("b")]}));
    let ids: Vec<_> = imported.entries.iter().map(|entry| &*entry.id).collect();
    // F-013: timed effects are stored by id
    assert_eq!(ids, ["a#2", "a", "a#2#2", "b"]);
    assert_eq!(imported.warnings, ["`entries[2]` has the id a of another entry"]);
}

#[test]
fn decorators_are_taken_out_of_the_text() {
    let entry = |content: &str| {
        read_value(&json!({"entries": [{"keys": ["k"], "content": content}]})).entries[0].clone()
    };
    let found = entry(
        "@@activate\n@@activate_only_after 3\n@@activate_only_every 2\n@@is_greeting 1\n@@position personality\n\n  Text.\n@@depth 3",
    );
    assert_eq!(
        (found.force, found.only_after, found.only_every, found.greeting),
        (Some(true), 3, 2, Some(1))
    );
    // A decorator after other text is text.
    assert_eq!((found.position, &*found.content), (EntryPosition::Personality, "  Text.\n@@depth 3"));
    let found = entry(
        "@@reverse_depth 2\n@@additional_keys a, b\n@@exclude_keys c\n@@ignore_on_max_context\n@@keep_activate_after_match\n@@dont_activate_after_match\nx",
    );
    assert!(
        found.from_start && found.depth == 2 && found.priority < 0 && found.keep_after_match && found.once
    );
    assert_eq!(
        (found.additional_keys, found.exclude_keys),
        (vec!["a".to_owned(), "b".into()], vec!["c".into()])
    );
    // An invalid value makes the decorator unknown, so the fallback below it applies.
    let found = entry("@@depth deep\n@@@depth 6\n@@@depth 7\n@@dont_activate\nx");
    assert_eq!((found.depth, found.force, &*found.content), (6, Some(false), "x"));
    assert_eq!(entry("@@depth 1").content, "");
    assert_eq!(entry("No @@depth 1").content, "No @@depth 1");
}
