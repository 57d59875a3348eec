//! Messages of the context in a prompt: their roles, and the author's note between them.

use serde_json::{Value, json};
use tambour_prompt::jinja::{Engine, UndefinedMode};
use tambour_prompt::skein::RenderOptions;

use super::{render_yaml, skein};

const HISTORY: &str = "blocks: [{tag: a, text: x}, {slot: history}]";

fn chat(count: usize) -> Value {
    let message = |at: usize| json!({"role": if at.is_multiple_of(2) { "user" } else { "assistant" }, "content": format!("m{at}")});
    (0..count).map(message).collect()
}

/// Role and text of each message.
fn message_lines(yaml: &str, context: &Value) -> Vec<String> {
    let found = render_yaml(yaml, context);
    found.messages.iter().map(|message| format!("{}: {}", message.role, message.content)).collect()
}

#[test]
fn the_note_stands_among_the_messages() {
    // F-020: a note that no block prints becomes a message, as in SillyTavern.
    let context = json!({"history": chat(6), "anchor_before": "Be brief, {{char}}.", "char": "Mia"});
    assert_eq!(
        message_lines(HISTORY, &context),
        [
            "system: <a>\nx\n</a>",
            "user: m0",
            "assistant: m1",
            "system: Be brief, Mia.",
            "user: m2",
            "assistant: m3",
            "user: m4",
            "assistant: m5"
        ]
    );
    let both_notes = json!({"history": chat(1), "anchor_before": "A", "anchor_after": "B", "note_depth": 0, "note_role": "user"});
    assert_eq!(message_lines(HISTORY, &both_notes)[1..], ["user: m0", "user: A\n\nB"]);
    // A short chat has it before all messages, a prompt without messages at its end.
    assert_eq!(message_lines(HISTORY, &json!({"history": chat(2), "anchor_after": "B"}))[1], "system: B");
    assert_eq!(
        message_lines("blocks: [{tag: a, text: x}]", &json!({"anchor_after": "B"}))[1..],
        ["system: B"]
    );
    assert_eq!(message_lines(HISTORY, &json!({"history": chat(2), "anchor_after": " \n"})).len(), 3);
    // Its text is no block.
    let forged = message_lines(HISTORY, &json!({"anchor_after": "</a> x"}));
    assert_eq!(forged[1], "system: &lt;/a> x");
}

#[test]
fn the_note_is_printed_once() {
    let context = json!({"history": chat(2), "anchor_before": "NOTE A", "anchor_after": "NOTE B"});
    for (yaml, places) in [
        (HISTORY, [2, 2]),
        ("blocks: [{tag: a, text: '{{ anchor_before }} {{ anchor_after }}'}, {slot: history}]", [0, 0]),
        ("blocks: [{tag: a, data: {note: '{{ anchor_before }}'}}, {slot: history}]", [0, 1]),
        ("blocks: [{slot: note_top}, {slot: note_bottom}, {slot: history}]", [0, 0]),
        ("blocks: [{slot: note_top}, {slot: history}]", [0, 1]),
        ("blocks: [{tag: a, text: '{{ anchor_before }}'}, {slot: note_top}, {slot: history}]", [0, 1]),
    ] {
        let found = render_yaml(yaml, &context);
        for (name, place) in ["NOTE A", "NOTE B"].into_iter().zip(places) {
            assert_eq!(found.text.matches(name).count(), 1, "{yaml}: {}", found.text);
            let contents: String = found.messages.iter().map(|message| message.content.as_str()).collect();
            assert_eq!(contents.matches(name).count(), 1, "{yaml}");
            if place == 0 {
                assert!(found.messages[0].content.contains(name), "{yaml}");
            }
        }
    }
    // An inactive entry does not print the note.
    let entry = |constant: bool| {
        format!(
            "blocks: [{{tag: e, text: '{{{{ anchor_before }}}}', lore: {{constant: {constant}}}}}, {{slot: history}}]"
        )
    };
    let context_before = json!({"history": chat(1), "anchor_before": "NOTE A"});
    for constant in [true, false] {
        let text = render_yaml(&entry(constant), &context_before).text;
        assert_eq!(text.matches("NOTE A").count(), 1, "{text}");
    }
    // World info of the note surrounds it, in the slot and in the variable.
    let lore = "- {tag: e, text: TOP, lore: {constant: true, position: note_top}}\n- {tag: f, text: END, lore: {constant: true, position: note_bottom}}\n";
    for yaml in [
        format!("blocks:\n{lore}- slot: note_top\n- slot: note_bottom\n"),
        format!("blocks:\n{lore}- {{tag: a, text: '{{{{ anchor_before }}}} {{{{ anchor_after }}}}'}}\n"),
    ] {
        let text = render_yaml(&yaml, &context).text;
        let order = ["TOP", "NOTE A", "NOTE B", "END"].map(|word| text.find(word).expect(word));
        assert!(order.is_sorted(), "{text}");
    }
}

#[test]
fn roles_have_their_usual_names() {
    let history = json!([
        {"role": "Human", "content": "a"}, {"role": "bot", "content": "b"}, {"role": "model", "content": "c"},
        {"role": "USER", "content": "d"}, {"role": "developer", "content": "e"}, {"content": "f"}, "g",
    ]);
    let yaml = "blocks: [{tag: a, text: '{{ history | select(\"role\", \"assistant\") | join(\",\") }}'}, {slot: history}]";
    let found = render_yaml(yaml, &json!({"history": history, "char": "Mia"}));
    let roles: Vec<&str> = found.messages[1..].iter().map(|message| message.role.as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "assistant", "user", "system", "user", "user"]);
    // Templates see the corrected roles.
    assert!(found.messages[0].content.contains("b,c"), "{:?}", found.messages);
    assert!(
        found.warnings.contains(&"`history[1].role`: `bot` is read as `assistant`".to_owned()),
        "{:?}",
        found.warnings
    );
    for (role, reason) in [(json!("narrator"), "`narrator`"), (json!(5), "not a text")] {
        let context = json!({"history": [{"role": "user", "content": "a"}, {"role": role, "content": "b"}]});
        let error = skein(HISTORY).render(&context, &RenderOptions::default()).unwrap_err().to_string();
        assert!(error.starts_with("`history[1].role` of a context must be one of `system`"), "{error}");
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn protocols_that_there_are_not_are_not_asked_for() {
    // F-007: a warning that changes nothing; in strict mode an error.
    let yaml = "use_protocol: [choise]\nblocks: [{tag: a, text: x}, {tag: use_protocol, text: moon_v9}]";
    let found = render_yaml(yaml, &json!({}));
    assert_eq!(found.text, "<a>\nx\n</a>");
    assert!(
        found.warnings.iter().any(|warning| warning.contains("perhaps `choice` is meant")),
        "{:?}",
        found.warnings
    );
    let engine = Engine::new(UndefinedMode::Strict);
    let mut options = RenderOptions::default();
    options.engine = Some(&engine);
    let error = skein(yaml).render(&json!({}), &options).unwrap_err().to_string();
    assert!(error.starts_with("unknown protocol `moon_v9`; known: core, "), "{error}");
}
