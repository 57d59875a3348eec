//! Rules that hold for all macros.

use serde_json::json;
use tambour_prompt::jinja::{Effect, UndefinedMode};
use tambour_prompt::macros::{MigrationCounts, migrate};

use super::{context, run, run_blocks, run_in};

#[test]
fn targets_are_as_printed_where_they_can_be() {
    for (macro_text, printed) in [
        ("{{user}}", "{{ user }}"),
        ("{{Char}}", "{{ char }}"),
        ("{{groupNotMuted}}", "{{ group | filter_not_muted }}"),
        ("{{setvar::x::y}}", "{% set x = \"y\" %}"),
        ("{{setvar::x::a \"b\" {{user}}}}", "{% set x = 'a \"b\" ' ~ user %}"),
        ("{{setglobalvar::x::y}}", "{% set_global x = \"y\" %}"),
        ("{{random:a, b}}", "{{ random(['a', 'b']) }}"),
        ("{{random::a::{{user}}}}", "{{ random(['a', user]) }}"),
        ("{{pick::a::b}}", "{{ pick(['a', 'b']) }}"),
        ("{{roll 2d6}}", "{{ roll('2d6') }}"),
        ("{{time_UTC+2}}", "{{ now | utc_offset(2) | time_format }}"),
        ("{{datetimeformat YYYY}}", "{{ now | date_format('YYYY') }}"),
        ("{{reverse:abc}}", "{{ 'abc' | reverse }}"),
        ("{{newline}}", "{{ '\\n' }}"),
        ("{{// note }}", "{# note #}"),
        ("{{noop}}", "{# no-op #}"),
        ("{{outlet::name}}", "{{ outlet('name') }}"),
        ("{{lastUserMessage}}", "{{ (history | selectattr('role', 'equalto', 'user') | last).content }}"),
        ("{{getglobalvar::x}}", "{{ global_state.x }}"),
        ("{{getglobalvar::a b}}", "{{ st_get_global('a b') }}"),
        ("{{foo::bar}}", "{% raw %}{{foo::bar}}{% endraw %}"),
        ("{{foo::{{user}}}}", "{% raw %}{{foo::{% endraw %}{{ user }}{% raw %}}}{% endraw %}"),
        ("{{{user}}}", "{% raw %}{{% endraw %}{{ user }}}"),
        ("plain {text} } { 100%", "plain {text} } { 100%"),
    ] {
        assert_eq!(migrate(macro_text).text, printed, "{macro_text}");
    }
}

#[test]
fn migration_is_idempotent() {
    let inputs = [
        "{{user}} {{ user }} {{description}} {{getvar::a b}} {{setvar::a b::x}} {{setvar::user::x}}",
        "{{foo}} {{ foo }} {{foo::bar}} {{foo::{{user}}}} {{{user}}} {{{{user}}}} {{user {{char}} }}",
        "{{#if x}}a{{else}}b{{/if}} {{if y}} c {{/if}} {{/if}} {{else}} {{if z}}",
        "\\{\\{user\\}\\} \\\\{x} {# c #} {#id} {% none %} {% if user %}x{% endif %} {{ 'a' ~ user }}",
        "{% raw %}{{user}}{% endraw %} {{ \"{% endraw %}\" }} {{a {% endraw %} }}",
        "{{setvar::灰魂4::a\nb}}{{灰魂4}}{{ 灰魂4 }} {{reverse::{{roll:d6}} x}} {{trim}}{{noop}}{{// #} }}{{//a}}",
        "<USER> <user>x</user> <BOT> < user > {{random::a::{{#if b}}c{{/if}}}} {{.x++}} {{$y = 2}} {{.x ||= {{user}}}}",
        "{{time_UTC+2}} {{time::UTC-3}} {{datetimeformat::HH:mm}} {{banned \"w\"}} {{get_chat_variable::a['b c']}}",
        "{{setvar::x}}{% for a in b %}{{ a }}{% endfor %}{{/setvar}}{{addvar::x}}{% if 1 %}2{% endif %}{{/addvar}}",
        "{{ {'a': {'b': 1}} }} {{ state.hp + 1 }} {%- set q = 1 -%} {{q}} {{-user-}}",
    ];
    for input in inputs {
        let first = migrate(input);
        let second = migrate(&first.text);
        // F-031
        assert_eq!(second.text, first.text, "{input}");
        assert_eq!(second.report.left, 0, "{}", first.text);
    }
}

#[test]
fn unknown_macros_print_as_they_were_written() {
    // F-031
    let text = "ä\n{{unheard::of {{user}}}} {{nobody}} {{ nobody }}";
    let (rendered, outcome) = run_in(UndefinedMode::Lenient, &context(), text);
    assert_eq!(rendered, "ä\n{{unheard::of Tom}} {{nobody}} {{ nobody }}");
    let migrated = migrate(text);
    let first_warning = &migrated.warnings[0];
    assert_eq!(
        (first_warning.code, &*first_warning.name, first_warning.line, first_warning.column),
        ("macro_unknown", "unheard", 2, 1)
    );
    let codes: Vec<_> = outcome.warnings.iter().map(|warning| (warning.code, warning.line)).collect();
    assert_eq!(codes, [("macro_unknown", Some(2)), ("macro_unknown", Some(2))]);
    assert!(outcome.warnings[0].message.contains("{{nobody}}"), "{outcome:?}");
    // Variables, names of the state and names of the context are known macros.
    assert_eq!(run("{{setvar::nobody::x}}{{nobody}} {{var_name}} {{formula}}"), "x v2 1d1");
}

#[test]
fn variables_live_in_one_scope_for_the_prompt() {
    // F-027
    let blocks = [
        "{{setvar::n::1}}{{incvar::n}}",
        "{{n}}{{addvar::n::5}}{{getvar::n}}",
        "{% set n = 'x' %}",
        "{{getvar::n}}",
    ];
    let (texts, outcome) = run_blocks(&blocks);
    assert_eq!(texts, ["2", "27", "", "x"]);
    assert_eq!(outcome.local["n"], json!("x"));
    // The variable hides the state, which is unchanged.
    let (text, outcome) =
        run_in(UndefinedMode::Lenient, &context(), "{{setvar::hp::9}}{{getvar::hp}} {{ state.hp }}");
    assert_eq!(text, "9 7");
    // F-022
    assert_eq!((outcome.effects.len(), &outcome.local["hp"]), (0, &json!("9")));
    // Variables do not hide names with a meaning of their own.
    assert_eq!(run("{{setvar::user::x}}{{user}} {{getvar::user}}"), "Tom x");
}

#[test]
fn global_writes_and_banned_words_are_only_asked_for() {
    let text = "{{setglobalvar::g::{{user}}}}{{getglobalvar::g}}{{incglobalvar::count}}{{banned \"bad word\"}}{{deleteglobalvar::g}}";
    let (rendered, outcome) = run_in(UndefinedMode::Lenient, &context(), text);
    assert_eq!(rendered, "Tom5");
    let write = |name: &str, value| Effect::SetGlobal { name: name.to_owned(), value };
    // F-023, F-035
    assert_eq!(
        outcome.effects,
        [
            write("g", json!("Tom")),
            write("count", json!(5)),
            Effect::Banned { word: "bad word".to_owned() },
            write("g", json!(null)),
        ]
    );
    assert_eq!(outcome.global["count"], json!(5));
    assert!(outcome.warnings.iter().any(|warning| warning.code == "word_banned"), "{outcome:?}");
}

#[test]
fn macros_never_fail_on_what_is_missing() {
    // F-033, M-086
    let macros = super::rows::inputs();
    for mode in [UndefinedMode::Lenient, UndefinedMode::Strict] {
        for context in [json!({}), json!({"char": "A", "user": {}, "state": {}, "history": [], "group": []})]
        {
            for text in &macros {
                let (_, outcome) = run_in(mode, &context, text);
                assert!(
                    outcome.warnings.iter().all(|warning| warning.code != "variable_undefined"),
                    "{text}: {outcome:?}"
                );
            }
            let texts = [
                "{{lastMessage}}{{lastUserMessage}}{{lastMessageId}}{{currentSwipeId}}{{firstIncludedMessageId}}",
                "{{description}}{{persona}}{{userAvatar}}{{model}}{{getvar::a}}{{getvar::a.b}}{{getglobalvar::a}}",
                "{{input}}{{idle_duration}}{{lastGenerationType}}{{instructUserPrefix}}{{wiBefore}}{{system}}{{pipe}}",
                "{{time}}{{date}}{{time_UTC+2}}{{mesExamples}}{{outlet::x}}{{greeting::3}}{{original}}{{isMobile}}",
            ];
            for text in texts {
                assert_eq!(run_in(mode, &context, text).0, "", "{text}");
            }
            assert_eq!(run_in(mode, &context, "{{get_message_variable::a.b}}").0, "null");
        }
    }
}

#[test]
fn a_pipe_without_result_is_told() {
    // F-035, M-075
    let (text, outcome) = run_in(UndefinedMode::Lenient, &json!({}), "[{{pipe}}]");
    assert_eq!((&*text, outcome.warnings[0].code), ("[]", "pipe_missing"));
}

#[test]
fn a_migration_reports_what_it_did() {
    // F-032
    let report = migrate("{{user}} {{User}} {{roll:d6}} {{foo::1}} {{setvar::a::{{char}}}}").report;
    assert_eq!((report.translated, report.left), (5, 1));
    let rules: Vec<_> = report.rules.iter().map(|(row, count)| (*row, *count)).collect();
    assert_eq!(rules, [("M-001", 2), ("M-002", 1), ("M-053", 1), ("M-069", 1)]);
    let mut sum = MigrationCounts::default();
    sum.add(&report);
    sum.add(&report);
    assert_eq!((sum.translated, sum.rules["M-001"]), (10, 4));
}

#[test]
fn a_bare_word_in_a_condition_is_told() {
    // M-006
    let migrated = migrate("{{if hp}}a{{/if}}{{#if hp}}b{{/if}}{{if user}}c{{/if}}{{if true}}d{{/if}}");
    let warnings: Vec<_> = migrated.warnings.iter().map(|warning| (warning.code, &*warning.name)).collect();
    assert_eq!(warnings, [("condition_literal", "hp")]);
}

#[test]
fn the_same_seed_gives_the_same_chances() {
    let text = "{{random::a::b::c::d::e::f}}{{roll:3d100}} {{pick::a::b::c::d}}{{pick::a::b::c::d}}{{pick::a::b::c::d}}";
    assert_eq!(run(text), run(text));
    let render_with = |seed: u32, chat: &str| {
        let mut context = context();
        context["seed"] = json!(seed);
        context["chat_id"] = json!(chat);
        run_in(UndefinedMode::Lenient, &context, text).0
    };
    let results: std::collections::HashSet<String> = (0..20).map(|seed| render_with(seed, "c")).collect();
    assert!(results.len() > 10, "{results:?}");
    // M-068: the same place gives the same item, regardless of other macros; it differs by chat and by place.
    let mut context = context();
    context.as_object_mut().expect("an object").remove("seed");
    let pick = |context: &serde_json::Value| {
        run_in(UndefinedMode::Lenient, context, "{{pick::a::b::c::d::e::f::g::h}}").0
    };
    assert_eq!(pick(&context), pick(&context));
    let mut chats = std::collections::HashSet::new();
    for chat in 0..20 {
        context["chat_id"] = json!(chat);
        chats.insert(pick(&context));
    }
    assert!(chats.len() > 3, "{chats:?}");
    let places = run(&"{{pick::a::b::c::d}}".repeat(40));
    assert!(["a", "b", "c", "d"].iter().all(|item| places.contains(item)), "{places}");
}

#[test]
fn a_closing_tag_of_what_has_no_scope_is_text() {
    // M-011, M-012, M-013: the tag runs nothing, and is reported
    for (text, expected) in [
        ("{{user}} hi {{/user}}", "{{user}} hi {{/user}}"),
        ("x {{/char}}", "x {{/char}}"),
        ("x {{/getvar}} {{getvar::x}}", "x {{/getvar}} ex"),
        ("{{#user}} {{/random}}", "Tom {{/random}}"),
        ("{{random::{{/char}}}}", "{{/char}}"),
        ("{{if hp}}{{/user}}{{/if}}", "{{/user}}"),
    ] {
        assert_eq!(run(text), expected, "{text}");
        let warnings = migrate(text).warnings;
        assert!(warnings.iter().any(|warning| warning.code == "macro_unknown"), "{text}: {warnings:?}");
    }
}

#[test]
fn a_variable_with_the_name_of_a_function_stops_nothing() {
    // F-027, M-066: variables and functions of one name do not affect each other
    for (text, expected) in [
        ("{{setvar::roll::5}}{{getvar::roll}} {{roll:1d1}}", "5 1"),
        ("{{setvar::pick::a}}{{pick::x}}{{getvar::pick}}", "xa"),
        ("{{setvar::outlet::a}}{{outlet::nothing}}{{getvar::outlet}}", "a"),
        ("{{setvar::random::q}}{{random:a}}{{getvar::random}}", "aq"),
        ("{{setvar::st_get::1}}{{getvar::st_get}}", "1"),
        ("{{setvar::__f_roll::1}}{{roll:1d1}}{{getvar::__f_roll}}", "11"),
        ("{{setvar::__keep::1}}{% set a = 2 %}{{a}}{{getvar::__keep}}", "21"),
        ("{% macro roll(x) %}mine {{ x }}{% endmacro %}{{ roll(2) }}", "mine 2"),
    ] {
        assert_eq!(run(text), expected, "{text} -> {}", migrate(text).text);
    }
    let (expected, _) = run_in(
        UndefinedMode::Strict,
        &json!({"roll": 3, "st_get": 1, "char": "A"}),
        "{{roll:1d1}} {{getvar::x}}",
    );
    assert_eq!(expected, "1 ");
}

#[test]
fn an_else_that_divides_nothing_is_told() {
    // F-031, M-006: a lone `else` prints nothing
    assert_eq!(run("{{else}} x"), " x");
    assert!(migrate("{{else}} x").warnings.iter().any(|warning| warning.code == "macro_unknown"));
}
