//! Results of macros as in SillyTavern 1.19, for rows that once differed.

use serde_json::json;
use tambour_prompt::jinja::{Assembly, Engine, PromptContext, UndefinedMode};
use tambour_prompt::macros::{migrate, migrate_foreign};

use super::{context, run, run_in};

fn assert_results(cases: &[(&str, &str)]) {
    let mismatches: Vec<String> = cases
        .iter()
        .filter(|(text, expected)| run(text) != *expected)
        .map(|(text, expected)| {
            format!("{text:?} gives {:?}, not {expected:?}; {}", run(text), migrate(text).text)
        })
        .collect();
    assert!(mismatches.is_empty(), "{}", mismatches.join("\n"));
}

#[test]
fn comments_print_nothing() {
    // M-017: comments around a text are included; macros in that text still run
    assert_results(&[
        ("a{{//}}secret{{///}}b", "ab"),
        ("a{{//}}\none\n{{user}}\n{{///}}b", "ab"),
        ("a{{comment}}x{{/comment}}b", "ab"),
        ("a{{//}}x{{/ //}}b", "ab"),
        ("{{//}}{{setvar::q::1}}{{///}}[{{getvar::q}}]", "[1]"),
        ("{{// {{setvar::q::1}}}}[{{getvar::q}}]", "[1]"),
        ("{{reverse::a{{//}}secret{{///}}b}}", "ba"),
        ("a{{// note}}b{{///}}c", "ab{{///}}c"),
        ("{{//}}open", "open"),
    ]);
}

#[test]
fn values_have_keys() {
    // M-052, M-053
    assert_results(&[
        ("{{setvarkey::o::k::v}}{{getvar::o}}", "{\"k\":\"v\"}"),
        ("{{setvarkey::o::k::v}}{{getvarkey::o::k}}", "v"),
        ("{{setvarindex::o::1::v}}{{getvar::o}}", "[null,\"v\"]"),
        ("{{setvar::o::[1,2,3]}}{{getvarindex::o::1}}{{getvarindex::o::9}}|", "2|"),
        ("{{getvarkey::none::k}}|", "|"),
        ("{{setvar::o::text}}{{getvarkey::o::k}}{{setvarkey::o::k::v}}{{getvar::o}}", "texttext"),
        ("{{setvarkey::o::k}}v w{{/setvarkey}}{{getvarkey::o::k}}", "v w"),
        ("{{setglobalvarkey::o::k::v}}{{getglobalvarkey::o::k}}{{getglobalvar::o}}", "v{\"k\":\"v\"}"),
        ("{{setglobalvarindex::o::0::v}}{{getglobalvarindex::o::0}}", "v"),
        ("{{getvarkey::mood::value}}{{setvarkey::mood::value::9}}{{getvarkey::mood::value}}", "39"),
        ("{{setvarkey::o::-1::v}}{{getvar::o}}", "[]"),
        ("{{setvarkey::hp::k::v}}{{getvar::hp}}", "7"),
        ("{{getvar}}hp{{/getvar}}", "7"),
    ]);
    // An index far past the end is refused instead of filled.
    let mut assembly = Assembly::new(
        &Engine::new(UndefinedMode::Lenient),
        PromptContext::from_json(&json!({})).expect("a context"),
        1,
    );
    let error = assembly.render_macros("text", "{{setvarindex::o::900000000::v}}").expect_err("too large");
    assert_eq!(error.code(), Some("limit_exceeded"), "{error}");
}

#[test]
fn conditions_ask_macros() {
    // M-006
    assert_results(&[
        ("{{if noop}}a{{else}}b{{/if}}", "b"),
        ("{{if random}}a{{else}}b{{/if}}", "b"),
        ("{{if trim}}a{{else}}b{{/if}}", "b"),
        ("{{if greeting}}a{{else}}b{{/if}}", "a"),
        ("{{if allChatRange}}a{{else}}b{{/if}}", "a"),
        ("{{if {{noop}}}}a{{else}}b{{/if}}", "b"),
        ("{{if !!1}}a{{else}}b{{/if}}", "b"),
        ("{{else}} x", " x"),
        ("x{{else}}y", "xy"),
        ("{{if 1}}a{{/if}}{{else}}b", "ab"),
    ]);
    assert_eq!(
        run_in(UndefinedMode::Lenient, &json!({}), "{{if greeting}}a{{else}}b{{/if}}{{allChatRange}}").0,
        "b"
    );
}

#[test]
fn tags_are_as_they_are_there() {
    // M-001, M-043, M-055, M-064
    assert_results(&[
        ("{{user}}x{{/user}}", "{{user}}x{{/user}}"),
        ("{{random::a}}b{{/random}}", "{{random::a}}b{{/random}}"),
        ("{{setvar::a::1}}{{setvar::b}}2{{/setvar}}{{getvar::a}}{{getvar::b}}", "12"),
        ("{{if::1::x}}{{if 1}}y{{/if}}", "xy"),
        ("{{if 1}}\n{{setvar::y::1}}\ntext\n{{// c}} {{/if}}|", "text|"),
        ("{{if::1::x}}{{if 1}}y{{/if}}{{/if}}", "{{if::1::x}}y{{/if}}"),
        ("{{if 1}}{{newline}}a {{space}}{{/if}}|{{#if 1}}{{newline}}a{{/if}}", "a|\na"),
        ("{{time}}{{/time}}", "3:09 PM"),
        ("{{time::x}}", "3:09 PM"),
        ("{{greeting::x}}", "{{greeting::x}}"),
        ("{{.v++5}}", "{{.v++5}}"),
        ("{{.v--x}}|", "|"),
        ("{{ . hp }}", "7"),
        ("{{.hp -= x}}{{.hp}}", "7"),
        ("[{{trim}}\n  a\n    b\n{{/trim}}]", "[a\n  b]"),
        ("[{{#trim}} a {{/trim}}]", "[ a ]"),
        ("\\{{user}} \\{{{user}} \\{{foo::x}}", "\\Tom {Tom {{foo::x}}"),
        ("{{allChatRange}}", "0-1"),
        ("{{hasExtension::x}}", "false"),
    ]);
}

#[test]
fn what_is_deleted_is_not_there() {
    // F-022: the state itself is unchanged
    assert_results(&[
        ("{{deletevar::hp}}{{hasvar::hp}}[{{getvar::hp}}]{{hp}}", "false[]{{hp}}"),
        ("{{deletevar::hp}}{{incvar::hp}}{{ state.hp }}", "17"),
        ("{{flushvar::hp}}{{#if hp}}a{{else}}b{{/if}}", "a"),
    ]);
    let (_, outcome) = run_in(UndefinedMode::Lenient, &context(), "{{deletevar::hp}}");
    assert_eq!(outcome.warnings[0].code, "state_read_only");
}

#[test]
fn macros_that_look_like_jinja_fail_nothing() {
    // F-031
    for (text, expected) in [
        ("{{char-name}} {{user}}", "{{char-name}} Tom"),
        ("{{macro | mod}} {{user}}", "{{macro | mod}} Tom"),
        ("{{user|x}}", "{{user|x}}"),
        ("{{a is nothing_known}}", "{{a is nothing_known}}"),
        ("{{ user | upper }} {{ 1 is odd }} {{ 2 is not odd }}", "TOM true true"),
        ("{% set hp = 3 %}{{hp-1}} {{ state.hp - 1 }}", "2 6"),
    ] {
        assert_eq!(run(text), expected, "{text}: {}", migrate(text).text);
        let migrated = migrate(text).text;
        assert_eq!(migrate(&migrated).text, migrated, "{text}");
    }
    assert!(migrate("{{char-name}}").warnings.iter().any(|warning| warning.code == "macro_unknown"));
}

#[test]
fn a_field_that_names_itself_fails_nothing() {
    // M-021
    let context = json!({"char": {"name": "A", "description": "I: {{description}}{{personality}}", "personality": "({{description}})"}});
    let (text, outcome) = run_in(UndefinedMode::Lenient, &context, "{{description}} {{personality}}");
    assert_eq!(text, "I: () (I: )");
    assert!(outcome.warnings.iter().all(|warning| warning.code == "field_within_itself"), "{outcome:?}");
}

#[test]
fn a_warning_is_told_once() {
    let (_, outcome) = run_in(
        UndefinedMode::Lenient,
        &json!({"char": {"description": "{{nobody}}"}}),
        "{{description}}{{description}}",
    );
    let messages: Vec<_> = outcome.warnings.iter().map(|warning| &*warning.message).collect();
    assert_eq!(messages.len(), 1, "{messages:?}");
}

#[test]
fn nothing_of_another_program_is_jinja() {
    for text in [
        "{{ user | upper }}",
        "{{-user}}",
        "{{ 1 + 1 }}",
        "{% if user %}a{% endif %}",
        "{{char-name}}",
        "{{\"x\"}}",
    ] {
        let output = super::render_template(&migrate_foreign(text).text);
        assert_eq!(output, text, "{}", migrate_foreign(text).text);
    }
}
