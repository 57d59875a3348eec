//! Settings of SillyTavern's cards, books and presets other than their texts (F-013, F-020).

use serde_json::{Value, json};
use tambour_prompt::card::{ImportedFile, import_file};
use tambour_prompt::skein::{RenderOptions, RenderedPrompt, Skein, from_book, from_card, from_preset};

fn read(value: &Value) -> ImportedFile {
    import_file("a.json", value.to_string().as_bytes(), &Default::default()).expect("a file")
}

fn render(skein: &Skein, context: &Value) -> RenderedPrompt {
    skein.render(context, &RenderOptions::default()).expect("it renders")
}

fn context_with(text: &str) -> Value {
    json!({"user": {"name": "Ann", "persona": "A {{char}} friend."}, "char": {"name": "Mia", "description": "{{char}} is a smith."},
        "history": [{"role": "user", "content": text}]})
}

#[test]
fn entries_are_found_in_texts_of_the_character() {
    let book = read(&json!({"entries": {
        "0": {"uid": 0, "key": ["smith"], "comment": "Forge", "content": "Hot.", "matchCharacterDescription": true},
        "1": {"uid": 1, "key": ["/\\x01Mia is/"], "comment": "Own", "content": "Own.", "matchCharacterDescription": true},
        "2": {"uid": 2, "key": ["mia friend"], "comment": "Friend", "content": "Kind.", "matchPersonaDescription": true},
        "3": {"uid": 3, "key": ["smith"], "comment": "No", "content": "No."}}}));
    // F-020: the texts are searched as they appear in the prompt, with macros expanded
    let found = render(&from_book(&book), &context_with("hello"));
    assert_eq!(found.lore_titles, ["Forge", "Own", "Friend"]);
    // The file form preserves the sources.
    let yaml = from_book(&book).to_yaml();
    assert!(yaml.contains("sources:\n        - description"), "{yaml}");
    assert_eq!(Skein::from_yaml("it", &yaml).expect("it reads back"), from_book(&book));
}

#[test]
fn names_in_texts_of_entries_are_found() {
    let book = read(&json!({"entries": {
        "0": {"uid": 0, "key": ["x1"], "comment": "First", "content": "{{user}} came."},
        "1": {"uid": 1, "key": ["Ann came"], "comment": "Second", "content": "S."}}}));
    let mut skein = from_book(&book);
    skein.scan = Some(serde_json::from_value(json!({"recursive": true})).expect("settings"));
    assert_eq!(render(&skein, &context_with("x1")).lore_titles, ["First", "Second"]);
}

#[test]
fn a_preset_says_what_stands_around() {
    let marker = |id: &str| json!({"identifier": id, "name": id, "marker": true});
    let preset = json!({
        "prompts": [marker("charPersonality"), marker("scenario"), marker("dialogueExamples"), marker("chatHistory")],
        "scenario_format": "[Scene: {{scenario}}]", "personality_format": "[{{char}} is {{personality}}]",
        "new_chat_prompt": "[A new chat with {{char}}]", "new_example_chat_prompt": "[Example]",
        "assistant_prefill": "Sure:", "wi_format": "[{0}]"
    });
    let imported = read(&preset);
    for word in ["assistant_prefill", "wi_format"] {
        assert!(imported.warnings.iter().any(|warning| warning.contains(word)), "{:?}", imported.warnings);
    }
    let mut context = context_with("hello");
    context["char"]["personality"] = "calm".into();
    context["char"]["mes_example"] = "<START>\n{{user}}: Hi".into();
    context["config"] = json!({"model": "m"});
    let found = render(&from_preset(&imported), &context);
    // F-013
    assert!(found.text.contains("<personality>\n[Mia is calm]\n</personality>"), "{}", found.text);
    assert!(!found.text.contains("Scene"), "{}", found.text);
    assert!(found.text.contains("[Example]\nAnn: Hi"), "{}", found.text);
    let messages: Vec<_> =
        found.messages[1..].iter().map(|message| (&*message.role, &*message.content)).collect();
    assert_eq!(messages, [("system", "[A new chat with Mia]"), ("user", "hello")]);
    context["char"]["scenario"] = "{{setvar::s::1}}a ruin".into();
    assert!(render(&from_preset(&imported), &context).text.contains("[Scene: a ruin]"));
}

#[test]
fn a_text_of_a_card_is_rendered_once() {
    let card = read(&json!({"spec": "chara_card_v2", "spec_version": "2.0", "data": {
        "name": "Mia", "description": "", "system_prompt": "{{incvar::n}}{{nobody}}", "post_history_instructions": "{{incvar::n}}"}}));
    let found = render(&from_card(&card), &json!({"user": "Ann", "history": []}));
    // F-027
    assert_eq!(found.outcome.local["n"], json!(2));
    assert_eq!(found.outcome.warnings.iter().filter(|warning| warning.code == "macro_unknown").count(), 1);
}
