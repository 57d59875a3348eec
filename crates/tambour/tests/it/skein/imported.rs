//! A card with its book and a preset makes a working prompt (F-013, F-020, F-028, F-030).

use serde_json::{Value, json};
use tambour::prompt::card::{Imported, import};
use tambour::prompt::skein::{RenderOptions, Skein, from_book, from_card, from_preset};

fn read(value: &Value) -> Imported {
    import("a.json", value.to_string().as_bytes(), &Default::default()).expect("a file")
}

fn card() -> Imported {
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
    let again = Skein::from_yaml("the file", &skein.to_yaml()).expect("it reads back");
    assert_eq!(again, skein);
    let found = again.render(&context(), &RenderOptions::default()).expect("it renders");
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
    assert_eq!(found.lore, ["depth prompt", "Forest", "Owl"]);
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
    prompt.take(&from_card(&card()));
    prompt.take(&from_book(&book));
    let found = prompt.render(&context(), &RenderOptions::default()).expect("it renders");
    // F-030: what a card says goes before what the preset says in its place
    assert_eq!(
        found.messages[0].content,
        "<system_instruction>\nPlay Mia.\n</system_instruction>\n\n<location_forest>\n  name: Ann's Wood\n  beasts:\n    - owl\n</location_forest>\n\n\
         <character_card>\nMia keeps the inn of Ann.\n</character_card>\n\n<instruction>\nShort for Ann.\n</instruction>\n\n\
         <lorebook_entry name=\"Owl\">\nOwls see Mia.\n</lorebook_entry>\n\n<lorebook_entry name=\"Inn\">\n  - old\n  - warm\n</lorebook_entry>"
    );
    assert_eq!(found.messages.last().map(|message| &*message.content), Some("Stay Mia."));
}
