//! A card, its book and a preset combine to a working prompt (F-013, F-020, F-028, F-030).

use serde_json::{Value, json};
use tambour_prompt::card::{ImportedFile, import_file};
use tambour_prompt::skein::{RenderOptions, Skein, from_book, from_card, from_preset};

fn read(value: &Value) -> ImportedFile {
    import_file("a.json", value.to_string().as_bytes(), &Default::default()).expect("a file")
}

fn card() -> ImportedFile {
    read(&json!({"spec": "chara_card_v2", "spec_version": "2.0", "data": {
        "name": "Mia", "description": "{{char}} keeps the inn of {{user}}.", "personality": "warm", "scenario": "", "first_mes": "Hm?",
        "mes_example": "<START>\n{{user}}: Hi\n{{char}}: Ho", "system_prompt": "Play {{char}}.", "post_history_instructions": "Stay {{char}}.",
        "extensions": {"depth_prompt": {"prompt": "Note for {{char}}.", "depth": 1, "role": "system"}},
        "character_book": {"scan_depth": 3, "recursive_scanning": true, "entries": [
            {"keys": ["wood"], "name": "Forest", "content": "<location_forest>{\"name\": \"{{user}}'s Wood\", \"beasts\": [\"owl\"]}</location_forest>",
             "enabled": true, "insertion_order": 1, "position": "before_char", "extensions": {}},
            {"keys": ["owl"], "name": "Owl", "content": "Owls see {{char}}.", "enabled": true, "insertion_order": 2, "position": "after_char", "extensions": {}},
            {"keys": ["sea"], "name": "Sea", "content": "Far.", "enabled": true, "insertion_order": 3, "extensions": {}}]}}}))
}

fn context() -> Value {
    json!({"user": "Ann", "now": "2026-03-14T15:09:00+08:00", "history": [
        {"role": "assistant", "content": "Hm?"}, {"role": "user", "content": "To the woods!"}]})
}

#[test]
fn a_card_is_a_prompt_by_itself() {
    let skein = from_card(&card());
    let second = Skein::from_yaml("the file", &skein.to_yaml()).expect("it reads back");
    assert_eq!(second, skein);
    let found = second.render(&context(), &RenderOptions::default()).expect("it renders");
    // F-013, F-020, F-028
    let system = "<system_instruction>\nPlay Mia.\n</system_instruction>\n\n\
        <location_forest>\n  name: Ann's Wood\n  beasts:\n    - owl\n</location_forest>\n\n\
        <character_card>\nname: Mia\ndescription: Mia keeps the inn of Ann.\npersonality: warm\nscenario: \"\"\n</character_card>\n\n\
        <lorebook_entry name=\"Owl\">\nOwls see Mia.\n</lorebook_entry>\n\n<example_dialogues>\n";
    assert!(found.messages[0].content.starts_with(system), "{}", found.messages[0].content);
    assert!(found.messages[0].content.contains("Ann: Hi\nMia: Ho"), "{}", found.messages[0].content);
    let rest: Vec<_> =
        found.messages[1..].iter().map(|message| (&*message.role, &*message.content)).collect();
    assert_eq!(
        rest,
        [
            ("assistant", "Hm?"),
            ("system", "Note for Mia."),
            ("user", "To the woods!"),
            ("system", "Stay Mia.")
        ]
    );
    assert_eq!(found.lore_titles, ["depth prompt", "Forest", "Owl"]);
    assert!(!found.text.contains("{{") && !found.text.contains("Sea"), "{}", found.text);
}

#[test]
fn a_preset_takes_a_card_and_a_book() {
    let preset = read(&json!({"openai_max_context": 2000, "openai_max_tokens": 500, "prompts": [
        {"identifier": "main", "name": "Main", "role": "system", "content": "Write as {{char}}.", "system_prompt": true},
        {"identifier": "worldInfoBefore", "name": "WI", "marker": true}, {"identifier": "charDescription", "name": "D", "marker": true},
        {"identifier": "style", "name": "Style", "role": "system", "content": "Short for {{user}}."},
        {"identifier": "worldInfoAfter", "name": "WI", "marker": true}, {"identifier": "chatHistory", "name": "C", "marker": true},
        {"identifier": "jailbreak", "name": "End", "role": "system", "content": "Go on."}],
        "prompt_order": [{"character_id": 1, "order": [
            {"identifier": "main"}, {"identifier": "worldInfoBefore"}, {"identifier": "charDescription"}, {"identifier": "style"},
            {"identifier": "worldInfoAfter"}, {"identifier": "chatHistory"}, {"identifier": "jailbreak"}]}]}));
    let book = read(
        &json!({"entries": {"0": {"uid": 0, "key": ["inn"], "comment": "Inn", "content": "- old\n- warm", "position": 1, "constant": true}}}),
    );
    let mut prompt = from_preset(&preset);
    assert_eq!(prompt.max_context, Some(1500));
    prompt.merge_lore(&from_card(&card()));
    prompt.merge_lore(&from_book(&book));
    let found = prompt.render(&context(), &RenderOptions::default()).expect("it renders");
    // F-030: texts of a card replace texts of the preset in the same role
    assert_eq!(
        found.messages[0].content,
        "<system_instruction>\nPlay Mia.\n</system_instruction>\n\n<location_forest>\n  name: Ann's Wood\n  beasts:\n    - owl\n</location_forest>\n\n\
         <character_card>\nMia keeps the inn of Ann.\n</character_card>\n\n<instruction>\nShort for Ann.\n</instruction>\n\n\
         <lorebook_entry name=\"Owl\">\nOwls see Mia.\n</lorebook_entry>\n\n<lorebook_entry name=\"Inn\">\n  - old\n  - warm\n</lorebook_entry>"
    );
    assert_eq!(found.messages.last().map(|message| &*message.content), Some("Stay Mia."));
}

#[test]
fn a_text_of_a_card_goes_around_the_text_that_it_replaces() {
    // F-030: `{{original}}` in a main prompt or a last instruction is the text of the preset, or the default one; inserted once
    let card = read(&json!({"spec": "chara_card_v2", "spec_version": "2.0", "data": {
        "name": "Mia", "description": "", "personality": "", "scenario": "", "first_mes": "", "mes_example": "",
        "system_prompt": "Slowly. {{original}} Or so.{{original}}", "post_history_instructions": "{{original}} Stay {{char}}."}}));
    let mut prompt = from_preset(&read(&json!({"prompts": [
        {"identifier": "main", "role": "system", "content": "Write as {{char}} to {{user}}. {% raw %}{{x}}"},
        {"identifier": "chatHistory", "marker": true},
        {"identifier": "jailbreak", "role": "system", "content": "Go on, {{char}}."}]})));
    prompt.merge_lore(&from_card(&card));
    let texts = |prompt: &Skein| {
        let found = prompt.render(&context(), &RenderOptions::default()).expect("it renders");
        found.messages.into_iter().map(|message| message.content).collect::<Vec<_>>()
    };
    let found = texts(&prompt);
    assert_eq!(
        found[0],
        "<system_instruction>\nSlowly. Write as Mia to Ann. {% raw %}{{x}} Or so.\n</system_instruction>"
    );
    assert_eq!(found.last().map(String::as_str), Some("Go on, Mia. Stay Mia."));
    let found = texts(&from_card(&card));
    assert!(
        found[0]
            .contains("Slowly. Write the next reply of Mia in a fictional chat between Mia and Ann. Or so."),
        "{found:?}"
    );
    assert_eq!(found.last().map(String::as_str), Some(" Stay Mia."));
}

#[test]
fn entries_of_two_books_with_one_id_are_two() {
    // F-030: a timed effect belongs to the entry that was active, not to the entry of another book with that id
    let book = |key: &str, text: &str| {
        from_book(&read(&json!({"entries": {"0": {"uid": 0, "key": [key], "content": text, "sticky": 5}}})))
    };
    let mut prompt = book("wood", "Trees.");
    prompt.merge_lore(&book("sea", "Waves."));
    prompt.merge_lore(&book("sky", "Clouds."));
    let turn = |texts: &[&str], timed| {
        let history: Vec<Value> = texts.iter().map(|text| json!({"role": "user", "content": text})).collect();
        let mut options = RenderOptions::default();
        options.timed_effects = timed;
        prompt.render(&json!({"history": history}), &options).expect("it renders")
    };
    let first = turn(&["the sea"], Default::default());
    assert!(first.text.contains("Waves.") && !first.text.contains("Trees."), "{}", first.text);
    let second = turn(&["the sea", "a", "b", "c"], first.timed_effects);
    assert!(second.text.contains("Waves."), "{}", second.text);
    assert!(!second.text.contains("Trees.") && !second.text.contains("Clouds."), "{}", second.text);
}

#[test]
fn macros_that_nothing_is_known_of_are_told() {
    // F-031: warnings name macro and place
    let card = read(&json!({"spec": "chara_card_v2", "spec_version": "2.0", "data": {
        "name": "Mia", "description": "{{char}}\n{{foo::1}} {{else}}", "personality": "", "scenario": "", "first_mes": "", "mes_example": "",
        "character_book": {"entries": [{"keys": ["a"], "name": "Inn", "content": "{{/user}}", "enabled": true, "insertion_order": 1, "extensions": {}}]}}}));
    let warnings = card.warnings.join("\n");
    assert_eq!(card.warnings.len(), 3, "{warnings}");
    assert!(warnings.contains("`description`, line 2, column 1: unknown macro `foo`"), "{warnings}");
    assert!(
        warnings.contains("`else`")
            && warnings.contains("entry `Inn`, line 1, column 1: unknown macro `/user`"),
        "{warnings}"
    );
    // Faults of the card itself stop no prompt.
    let card = read(&json!({"spec": "chara_card_v2", "spec_version": "2.0", "data": {
        "name": "Mia", "description": "{{setvar::roll::5}}{{setvar::st_get::1}}{{roll:1d1}}{{getvar::roll}}", "personality": "", "scenario": "",
        "first_mes": "", "mes_example": ""}}));
    let found = from_card(&card).render(&context(), &RenderOptions::default()).expect("it renders");
    assert!(found.text.contains("15"), "{}", found.text);
}
