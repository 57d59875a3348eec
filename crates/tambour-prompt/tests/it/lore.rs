//! World info: active entries (F-013, F-020, F-035), with each case of the table worked out by hand.

use proptest::prelude::*;
use serde_json::{Value, json};
use tambour_prompt::lore::{
    CharacterText, ChatLine, LoreActivation, LoreEntry, LoreScan, LoreSlots, MessageRole, ScanSettings,
    TimedEffects, activate,
};

/// Counts words, the tokens of the table.
fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

fn entries(value: &Value) -> Vec<LoreEntry> {
    let mut entries: Vec<LoreEntry> = serde_json::from_value(value.clone()).expect("entries in normal form");
    for (at, entry) in entries.iter_mut().enumerate() {
        entry.id = at.to_string();
    }
    entries
}

/// Builds messages that alternate between user and character.
fn lines(value: &Value) -> Vec<ChatLine> {
    let messages = value.as_array().expect("a list of messages");
    let line = |(at, message): (usize, &Value)| match message {
        Value::String(text) if at.is_multiple_of(2) => line("user", "User", text),
        Value::String(text) => line("assistant", "Bot", text),
        other => serde_json::from_value(other.clone()).expect("a message"),
    };
    messages.iter().enumerate().map(line).collect()
}

fn line(role: &str, name: &str, content: &str) -> ChatLine {
    ChatLine { role: role.to_owned(), name: name.to_owned(), content: content.to_owned() }
}

fn source(name: &str) -> CharacterText {
    serde_json::from_value(name.into()).expect("a text of user or character")
}

fn settings(case: &Value) -> ScanSettings {
    case.get("settings").map_or_else(ScanSettings::default, |settings| {
        serde_json::from_value(settings.clone()).expect("settings")
    })
}

/// Lists the differences from `expect`.
fn differences(book: &[LoreEntry], found: &LoreActivation, expect: &Value) -> Vec<String> {
    let titles =
        |list: &[usize]| Value::from(list.iter().map(|&at| book[at].title.clone()).collect::<Vec<_>>());
    let mut mismatches = Vec::new();
    let mut compare = |label: &str, actual: &Value, expected: &Value| {
        if actual != expected {
            mismatches.push(format!("{label}: {actual}, expected {expected}"));
        }
    };
    if let Some(active) = expect.get("active") {
        compare("active", &titles(&found.active), active);
    }
    if let Some(dropped) = expect.get("dropped") {
        let reason = |reason| serde_json::to_value(reason).expect("a word");
        let actual = match dropped.pointer("/0/0") {
            Some(_) => {
                found.dropped.iter().map(|drop| json!([book[drop.entry].title, reason(drop.why)])).collect()
            }
            None => found.dropped.iter().map(|drop| json!(book[drop.entry].title)).collect::<Vec<_>>(),
        };
        compare("dropped", &actual.into(), dropped);
    }
    for title in expect.get("warnings").and_then(Value::as_array).into_iter().flatten() {
        let is_named =
            found.warnings.iter().any(|warning| warning.contains(&format!("`{}`", title.as_str().unwrap())));
        compare("warned", &is_named.into(), &true.into());
    }
    for (slot, expected) in expect.get("slots").and_then(Value::as_object).into_iter().flatten() {
        let LoreSlots { outlets, depth, .. } = &found.slots;
        let actual = match slot.as_str() {
            "lore_before" => titles(&found.slots.lore_before),
            "lore_after" => titles(&found.slots.lore_after),
            "note_top" => titles(&found.slots.note_top),
            "note_bottom" => titles(&found.slots.note_bottom),
            "examples_before" => titles(&found.slots.examples_before),
            "examples_after" => titles(&found.slots.examples_after),
            "outlets" => outlets.iter().map(|(name, list)| (name.clone(), titles(list))).collect(),
            "depth" => depth.iter().map(|at| json!([at.depth, at.role, titles(&at.entries)])).collect(),
            other => panic!("no slot {other}"),
        };
        compare(slot, &actual, expected);
    }
    mismatches
}

/// Runs a case of a table; returns the differences.
pub(crate) fn run_case(case: &Value) -> Vec<String> {
    let book = entries(&case["entries"]);
    let single_step = [json!({ "messages": case["messages"], "expect": case["expect"] })];
    let steps = case.get("steps").and_then(Value::as_array).map_or(&single_step[..], Vec::as_slice);
    let mut timed_effects = TimedEffects::default();
    let mut mismatches = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let lines = lines(&step["messages"]);
        let texts = case.get("sources").and_then(Value::as_object).into_iter().flatten();
        let texts: Vec<(CharacterText, String)> =
            texts.map(|(name, text)| (source(name), text.as_str().unwrap().to_owned())).collect();
        let scan = LoreScan {
            settings: settings(case),
            sources: &texts,
            timed_effects,
            count_tokens: &words,
            ..LoreScan::new(&lines)
        };
        let found = activate(&book, &scan);
        assert_eq!(found, activate(&book, &scan), "the same again");
        mismatches.extend(
            differences(&book, &found, &step["expect"])
                .iter()
                .map(|mismatch| format!("step {number}: {mismatch}")),
        );
        timed_effects = found.timed;
    }
    mismatches
}

#[test]
fn the_table_of_activation_holds() {
    let table = include_str!("../../../../fixtures/import/activation.jsonl");
    let cases: Vec<Value> = table.lines().map(|line| serde_json::from_str(line).expect("a case")).collect();
    assert!(cases.len() >= 60, "{}", cases.len());
    let mismatches: Vec<String> = cases
        .iter()
        .flat_map(|case| run_case(case).into_iter().map(|mismatch| format!("{}: {mismatch}", case["id"])))
        .collect();
    // F-013, F-020: entries of `lore_before` and the other slots
    assert!(mismatches.is_empty(), "{}", mismatches.join("\n"));
}

#[test]
fn chance_is_fair_and_the_same_for_a_seed() {
    let book: Vec<LoreEntry> = (0..1000)
        .map(|at| LoreEntry {
            id: format!("entry {at}"),
            constant: true,
            probability: 30.0,
            ..LoreEntry::default()
        })
        .collect();
    let lines = [];
    let active_entries = |seed| {
        let mut scan = LoreScan::new(&lines);
        scan.settings.seed = seed;
        activate(&book, &scan).active
    };
    for seed in 0..10 {
        let active = active_entries(seed).len();
        assert!((240..360).contains(&active), "{active} of 1000 at 30 %");
    }
    assert_eq!(active_entries(7), active_entries(7));
    assert_ne!(active_entries(7), active_entries(8));
}

#[test]
fn weights_of_a_group_are_shares() {
    let member = |id: &str, weight| LoreEntry {
        id: id.to_owned(),
        constant: true,
        group: vec!["g".to_owned()],
        group_weight: weight,
        ..LoreEntry::default()
    };
    let book = [member("a", 300.0), member("b", 100.0)];
    let mut first = 0;
    for seed in 0..1000 {
        let mut scan = LoreScan::new(&[]);
        scan.settings.seed = seed;
        let active = activate(&book, &scan).active;
        assert_eq!(active.len(), 1);
        first += usize::from(active == [0]);
    }
    assert!((690..810).contains(&first), "{first} of 1000 at three quarters");
}

#[test]
fn a_hostile_book_is_read_in_bounded_time() {
    // A chain of entries, each found in the text of the one before.
    let chain: Vec<LoreEntry> = (0..3000)
        .map(|at| LoreEntry {
            id: at.to_string(),
            keys: vec![format!("key {at} ")],
            content: format!("key {} {}", at + 1, "word ".repeat(20)),
            ..LoreEntry::default()
        })
        .collect();
    let lines = [line("user", "", "key 0 ")];
    let mut scan = LoreScan::new(&lines);
    scan.settings.recursive = true;
    assert!(activate(&chain, &scan).active.len() >= 1000);
    // Regular expressions on which backtracking engines never end.
    let book =
        [LoreEntry { keys: vec!["/(a+)+$/".into(), "/(.*)*x{1000}{1000}/".into()], ..LoreEntry::default() }];
    let lines = [line("user", "", &format!("{}!", "a".repeat(1 << 20)))];
    let found = activate(&book, &LoreScan::new(&lines));
    assert_eq!((found.active.len(), found.warnings.len()), (0, 1), "{:?}", found.warnings);
}

#[test]
fn an_entry_without_a_title_is_named_by_its_id_and_first_key() {
    let book = [LoreEntry { id: "7".into(), keys: vec![" ".into(), "ab".into()], ..LoreEntry::default() }];
    let found = activate(&book, &LoreScan::new(&[line("user", "", "x")]));
    let expected = "entry 7 without a title (key `ab`): the key `` is blank, so it matches every text";
    assert_eq!(found.warnings, [expected]);
}

#[test]
fn the_keys_of_a_scan_have_bounds_together() {
    // large regular expressions, and long texts for them
    let large_pattern = |at: usize| format!("/[^{at}]{{1000}}/");
    let book: Vec<LoreEntry> =
        (0..200).map(|at| LoreEntry { keys: vec![large_pattern(at)], ..LoreEntry::default() }).collect();
    let short_lines = [line("user", "", "x")];
    let memory = allocation_counter::measure(|| {
        let found = activate(&book, &LoreScan::new(&short_lines));
        assert!(
            found.warnings.iter().any(|warning| warning.contains("too large together")),
            "{:?}",
            found.warnings
        );
    });
    assert!(memory.bytes_max < 256 << 20, "{} bytes", memory.bytes_max);
    let long_lines = [line("user", "", &"x".repeat(1 << 20))];
    let found = activate(&book[..1], &LoreScan::new(&long_lines));
    assert!(found.warnings.iter().any(|warning| warning.contains("its beginning")), "{:?}", found.warnings);
    // The scan asks before it reads further bytes, and stops when refused.
    let (remaining, keys) = (std::cell::Cell::new(1 << 20), ["a", "b", "/c/", "/d/"]);
    let charge = |bytes: u64| {
        remaining.set(remaining.get() - i64::try_from(bytes).unwrap());
        remaining.get() >= 0
    };
    let book = keys.map(|key| LoreEntry { keys: vec![key.to_owned()], ..LoreEntry::default() });
    let found = activate(&book, &LoreScan { charge: &charge, ..LoreScan::new(&long_lines) });
    assert!(found.is_truncated);
    assert!(!activate(&book, &LoreScan::new(&long_lines)).is_truncated);
}

#[test]
fn what_regular_expressions_read_again_has_a_bound() {
    // each pass finds one more entry, so that everything would be read a thousand times
    let chain = |at: usize| LoreEntry {
        id: at.to_string(),
        keys: vec![format!("key {at} ")],
        content: format!("key {} {}", at + 1, "word ".repeat(200)),
        ..LoreEntry::default()
    };
    let mut book: Vec<LoreEntry> = (0..1000).map(chain).collect();
    book.extend((0..20).map(|at| LoreEntry {
        id: format!("x{at}"),
        keys: vec![format!("/never {at}/")],
        ..LoreEntry::default()
    }));
    let lines = [line("user", "", &format!("key 0 {}", "text ".repeat(50_000)))];
    let byte_count = std::cell::Cell::new(0_u64);
    let count = |bytes: u64| {
        byte_count.set(byte_count.get() + bytes);
        true
    };
    let mut scan = LoreScan { charge: &count, ..LoreScan::new(&lines) };
    scan.settings.recursive = true;
    let found = activate(&book, &scan);
    assert_eq!(found.active.len(), 1000);
    assert!(found.warnings.iter().any(|warning| warning.contains("one by one")), "{:?}", found.warnings);
    assert!(byte_count.get() < 256 << 20, "{} bytes", byte_count.get());
}

#[test]
fn an_entry_at_a_depth_knows_its_role() {
    let entry = LoreEntry { constant: true, role: MessageRole::Assistant, ..LoreEntry::default() };
    assert_eq!(serde_json::to_value(&entry).unwrap()["role"], "assistant");
}

proptest! {
    #[test]
    fn no_text_makes_a_scan_panic(keys in prop::collection::vec("\\PC{0,8}", 0..4), text in "\\PC{0,60}", regex: bool, whole: bool) {
        let entry = LoreEntry { keys: keys.clone(), regex, whole_words: Some(whole), ..LoreEntry::default() };
        let book = [entry, LoreEntry { keys: keys.iter().map(|key| format!("/{key}/i")).collect(), ..LoreEntry::default() }];
        let lines = [line("user", "U", &text)];
        let _ = activate(&book, &LoreScan::new(&lines));
    }

    #[test]
    fn a_word_of_the_chat_is_found(words in prop::collection::vec("[a-z灰魂é]{1,6}", 1..8), at: prop::sample::Index) {
        let text = words.join(" ");
        let key = words[at.index(words.len())].to_uppercase();
        let book = [LoreEntry { keys: vec![key], whole_words: Some(true), ..LoreEntry::default() }];
        let lines = [line("user", "", &text)];
        prop_assert_eq!(activate(&book, &LoreScan::new(&lines)).active, vec![0]);
    }
}
