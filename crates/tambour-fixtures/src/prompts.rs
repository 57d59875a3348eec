//! Fuzz targets for prompts: macros and templates. Each check takes bytes and panics if an invariant is broken.

use serde_json::{Value, json};
use tambour_prompt::jinja::{Assembly, Engine, PromptContext, UndefinedMode};
use tambour_prompt::macros::{may_contain_macros, migrate};
use tambour_prompt::template::{Layer, LayeredTemplate, Map};

use crate::random::RandomSource;

/// Value with markup of templates, which must not be expanded when the value is inserted.
const ACTIVE_VALUE: &str = "{{user}}{% set x = 1 %}{%a%}{a}\\{";

/// Checks that a second migration of the macros of a text changes nothing, that the result has a bounded
/// length and compiles, and that a rendering error has a place, unless a limit was exceeded.
///
/// # Panics
/// An invariant is broken.
pub fn check_macros(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let migrated = migrate(&text);
    assert_eq!(migrate(&migrated.text).text, migrated.text, "{text:?}");
    assert!(may_contain_macros(&text) || migrated.text == text, "{text:?}");
    // The growth of a text is bounded.
    assert!(migrated.text.len() <= 64 + 32 * text.len(), "{text:?}");
    let context = json!({"user": ACTIVE_VALUE, "char": {"name": "C", "description": text}, "state": {"x": ACTIVE_VALUE}});
    let context = PromptContext::from_json(&context).expect("it is a context");
    for mode in [UndefinedMode::Lenient, UndefinedMode::Strict] {
        let mut assembly = Assembly::new(&Engine::new(mode), context.clone(), 1);
        if let Err(error) = assembly.render("text", &migrated.text) {
            assert_ne!(error.code(), Some("template_syntax"), "{text:?}\n{error}");
            assert!(
                error.location().is_some() || error.code() == Some("limit_exceeded"),
                "{text:?}\n{error}"
            );
        }
    }
}

/// Checks that a text, as a template without values, is unchanged except for escapes, and that values are
/// inserted verbatim.
///
/// # Panics
/// An invariant is broken.
pub fn check_template(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let template = LayeredTemplate::parse(text.clone());
    let active_values = |layer| -> Map {
        let names = template.variables(layer).into_iter();
        names.map(|name| (name.to_owned(), Value::from(ACTIVE_VALUE))).collect()
    };
    let (script, system) = (active_values(Layer::Script), active_values(Layer::System));
    // Without values each variable stays as it is, with a warning.
    let unfilled = template.render(&Map::new(), &Map::new());
    assert_eq!(unfilled.warnings.len(), script.len() + system.len(), "{text:?}");
    if !text.contains('\\') {
        assert_eq!(unfilled.text, text);
    }
    let fully_filled = template.render(&script, &system);
    assert_eq!(fully_filled.warnings, [], "{text:?}");
    // Variables filled with their own markers reproduce the text.
    let marker_values = |layer, marker: fn(&str) -> String| -> Map {
        let names = template.variables(layer).into_iter();
        names.map(|name| (name.to_owned(), Value::from(marker(name)))).collect()
    };
    let self_filled = template.render(
        &marker_values(Layer::Script, |name| format!("{{{name}}}")),
        &marker_values(Layer::System, |name| format!("{{%{name}%}}")),
    );
    assert_eq!(self_filled.text, unfilled.text, "{text:?}");
    let two_pass = template.script_pass(&script).system_pass(&system);
    assert_eq!(two_pass.text, fully_filled.text, "{text:?}");
}

/// Makes text of macros, parts of macros and Jinja.
#[must_use]
pub fn macros_input(random: &mut RandomSource) -> Vec<u8> {
    random_soup(random, MACRO_PIECES)
}

/// Makes text of variables and braces.
#[must_use]
pub fn template_input(random: &mut RandomSource) -> Vec<u8> {
    random_soup(random, TEMPLATE_PIECES)
}

/// Makes a text of random pieces, mutated now and then.
fn random_soup(random: &mut RandomSource, pieces: &[&str]) -> Vec<u8> {
    let mut soup = String::new();
    for _ in 0..1 + random.below(24) {
        soup.push_str(random.pick::<&str>(pieces));
    }
    if random.below(4) == 0 { random.mutate(soup.as_bytes()) } else { soup.into_bytes() }
}

const MACRO_PIECES: &[&str] = &[
    "{{",
    "}}",
    "{",
    "}",
    "\\",
    "\\{",
    "\\}",
    "::",
    ":",
    " ",
    "\n",
    "{{user}}",
    "{{ char }}",
    "{{description}}",
    "{{if ",
    "{{#if x}}",
    "{{else}}",
    "{{/if}}",
    "{{setvar::x::",
    "{{setvar::x}}",
    "{{/setvar}}",
    "{{getvar::x}}",
    "{{incvar::x}}",
    "{{x}}",
    "{{ x }}",
    "{{random::a::b",
    "{{random:a,b}}",
    "{{pick::a::b}}",
    "{{roll:1d6}}",
    "{{roll:",
    "{{reverse:",
    "{{trim}}",
    "{{/trim}}",
    "{{noop}}",
    "{{// ",
    "{{.x",
    "++}}",
    " = ",
    "??",
    "{{foo::",
    "{{foo}}",
    "<USER>",
    "<user>",
    "</user>",
    "<BOT>",
    "{% if x %}",
    "{% endif %}",
    "{% set y = 1 %}",
    "{% set y %}",
    "{% endset %}",
    "{% raw %}",
    "{% endraw %}",
    "{% for i in [1] %}",
    "{% endfor %}",
    "{%",
    "%}",
    "{# c #}",
    "{#",
    "#}",
    "'",
    "\"",
    "(",
    ")",
    "[",
    "]",
    "~",
    "|",
    "-",
    "{{ x ~ 1.0 }}",
    "{{ state.x }}",
    "灰魂",
    "time_UTC+2",
    "{{format_chat_variable::x}}",
    "{{newline::3}}",
    "\u{FDD0}",
    "{{banned \"w\"}}",
];

const TEMPLATE_PIECES: &[&str] = &[
    "{",
    "}",
    "{{",
    "}}",
    "{%",
    "%}",
    "%",
    "\\",
    "a",
    "b1",
    "时间",
    "-",
    ".",
    "_",
    " ",
    "\n",
    "{a}",
    "{%a%}",
    "{\"a\": 1}",
    "{a b}",
    "$&",
    "{{ a }}",
    "\\{a}",
    "é",
    "0-100",
];
