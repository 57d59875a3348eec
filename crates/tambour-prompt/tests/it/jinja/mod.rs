//! The Jinja environment.

mod basics;
mod dates;
mod expressions;
mod hostile;
mod limits;
mod operators;
mod repeated;

use serde_json::{Value, json};
use tambour::Error;
use tambour_prompt::jinja::{Assembly, AssemblyOutcome, Engine, PromptContext, UndefinedMode};

fn context() -> Value {
    json!({
        "user": {"name": "小明", "persona": "likes {{char}}", "avatar_path": "u.png"},
        "char": {"name": "Sera", "nickname": "S", "description": "{{char}} knows {{user}}", "version": "1.2"},
        "state": {
            "hp": 7.0, "inventory": [{"name": "sword"}], "空 格": 1, "flag": true, "none": null,
            "map": {"b": 1, "a": [1.5, null]}
        },
        "global_state": {"g": 3},
        "history": [{"role": "user", "content": "hi {{char}}"}, {"role": "assistant", "content": "yo"}],
        "group": ["S", {"name": "Bo", "muted": true}],
        "now": "2026-03-14T15:09:26+08:00", "seed": 1, "chat_id": "c"
    })
}

fn run(mode: UndefinedMode, context: &Value, source: &str) -> (Result<String, Error>, AssemblyOutcome) {
    let mut assembly =
        Assembly::new(&Engine::new(mode), PromptContext::from_json(context).expect("a context"), 1);
    let text = assembly.render("t", source);
    (text, assembly.outcome())
}

fn text(source: &str) -> String {
    run(UndefinedMode::Lenient, &context(), source).0.unwrap_or_else(|error| panic!("{error}"))
}

fn error(source: &str) -> Error {
    run(UndefinedMode::Lenient, &context(), source).0.expect_err("it is wrong")
}
