//! Macros of SillyTavern and Tavern-Helper.

mod engine;
mod hostile;
mod independent;
mod rows;
mod rules;

use serde_json::{Value, json};
use tambour_prompt::jinja::{Assembly, AssemblyOutcome, Engine, PromptContext, UndefinedMode};
use tambour_prompt::macros::migrate;

/// Context of most tests.
fn context() -> Value {
    json!({
        "user": {"name": "Tom", "persona": "{{user}} is a knight of {{char}}", "avatar_path": "avatars/tom.png"},
        "char": {
            "name": "Sera", "description": "{{char}} knows {{user}}.", "personality": "calm", "scenario": "a ruin",
            "version": "1.2", "main_prompt": "Write as {{char}}. {{original}}", "jailbreak": "Stay in character.",
            "depth_prompt": {"prompt": "Remember the oath.", "depth": 4, "role": "system"},
            "creator_notes": "by Ann", "mes_example": "<START>\n{{user}}: Hi\n{{char}}: Ho\n<START>\n{{user}}: Bye",
            "first_mes": "Hello, {{user}}!", "alternate_greetings": ["Oh, you."], "avatar_path": "avatars/sera.png"
        },
        "state": {
            "hp": 7, "name": "Ann", "x": "ex", "var": "v1", "var_name": "v2", "mood": {"value": 3},
            "inventory": [{"name": "sword"}], "off": "off", "数": "壹", "a b": "blank",
            "message": {"path": {"a": [1, true, null], "$secret": 1, "b": "x"}, "text": "plain"},
            "chat": {"path": 2.0}, "character": {"path": true}, "preset": {"path": [1, 2]}
        },
        "state_desc": {"hp": "health points", "mood": {"value": "how merry"}},
        "global_state": {"name": "G", "count": 4, "path": {"k": "v"}},
        "history": [
            {"role": "user", "content": "first", "swipe_count": 1, "current_swipe": 1},
            {"role": "assistant", "content": "second {{user}}", "swipe_count": 3, "current_swipe": 2}
        ],
        "context": [{"id": 5, "role": "user", "content": "first"}],
        "display_context": [{"id": 6, "role": "user", "content": "first"}],
        "config": {"model": "m-1", "max_context": 4096},
        "instruct": {
            "system_prompt": "sys", "user_prefix": "<u>", "user_suffix": "</u>", "assistant_prefix": "<a>",
            "assistant_suffix": "</a>"
        },
        "group": [{"name": "Sera"}, {"name": "Bo", "muted": true}, "Cy"],
        "outlets": {"name": "outlet of {{char}}", "two": ["a", "b"]},
        "now": "2026-03-14T15:09:26+08:00", "idle_duration": "an hour", "is_mobile": false,
        "last_generation": {"type": "swipe"}, "user_input": "typed", "system_prompt": "the system",
        "anchor_before": "ab", "anchor_after": "aa", "lore_before": "lb", "lore_after": "la", "pipe_result": "piped",
        "original": "DEFAULT", "content": "  c  ", "time1": "2026-01-01 12:00", "time2": "2026-01-01 15:00",
        "formula": "1d1", "format": "YYYY", "word": "w", "X": 2, "value": 1, "condition": true, "a": "A", "b": "A",
        "seed": 7, "chat_id": "chat"
    })
}

/// Migrates and renders a text.
fn run_in(mode: UndefinedMode, context: &Value, text: &str) -> (String, AssemblyOutcome) {
    let mut assembly =
        Assembly::new(&Engine::new(mode), PromptContext::from_json(context).expect("a context"), 1);
    let rendered = assembly.render_macros("text", text);
    let rendered = rendered.unwrap_or_else(|error| panic!("{error}\n{text}\n{}", migrate(text).text));
    (rendered, assembly.outcome())
}

fn run(text: &str) -> String {
    run_in(UndefinedMode::Lenient, &context(), text).0
}

/// Renders a template as Jinja, without migration.
fn render_template(text: &str) -> String {
    let mut assembly = Assembly::new(
        &Engine::new(UndefinedMode::Lenient),
        PromptContext::from_json(&context()).expect("a context"),
        1,
    );
    assembly.render("text", text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Renders the blocks of one prompt, each with its macros.
fn run_blocks(blocks: &[&str]) -> (Vec<String>, AssemblyOutcome) {
    let mut assembly = Assembly::new(
        &Engine::new(UndefinedMode::Lenient),
        PromptContext::from_json(&context()).expect("a context"),
        1,
    );
    let texts =
        blocks.iter().map(|block| assembly.render_macros("block", block).expect("it renders")).collect();
    (texts, assembly.outcome())
}
