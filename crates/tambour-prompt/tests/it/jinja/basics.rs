use serde_json::json;
use tambour_prompt::jinja::{Assembly, DESCRIPTION_PAIR, Effect, Engine, PromptContext, UndefinedMode};

use super::{context, error, run, text};

#[test]
fn values_print_their_own_way() {
    // F-020, F-034
    assert_eq!(text("{{ user }} {{ char }} {{ user.avatar_path }}"), "小明 S u.png");
    assert_eq!(text("{{ user.persona }}; {{ char.description }}"), "likes S; S knows 小明");
    assert_eq!(text("{{ group }}; {{ group | filter_not_muted }}; {{ not_char }}"), "S, Bo; S; Bo, 小明");
    assert_eq!(text("{% for one in group %}{{ loop.index }}{{ one }}{% endfor %}"), "1S2Bo");
    assert_eq!(text("{{ history[-1] }} {{ history[0].role }} {{ history | length }}"), "yo user 2");
    assert_eq!(
        text("{{ user ~ '!' }} {{ user | upper }} {{ [user, char] | join('+') }}"),
        "小明! 小明 小明+S"
    );
    // F-026
    assert_eq!(
        text("{{ none }}{{ true }} {{ 1.0 }} {{ 0.5 }} {{ state.hp }} {{ [none, true, 1.0] }}"),
        "true 1 0.5 7 [null,true,1]"
    );
    assert_eq!(text("{{ state.map }} {{ {'a': 'b\"c'} }}"), "{\"b\":1,\"a\":[1.5,null]} {\"a\":\"b\\\"c\"}");
    assert_eq!(
        text("{{ 'a' ~ none ~ true ~ 2.0 ~ state.map }} {{ 2 ~ 3 * 2.0 ~ -1.0 }}"),
        "atrue2{\"b\":1,\"a\":[1.5,null]} 26-1"
    );
    assert_eq!(
        text("{{ [none, true, 1.0] | join(',') }} {{ true | string }} {{ 2.0 | upper }}"),
        ",true,1 true 2"
    );
    assert_eq!(text("{{ '<b>&' }} line\n"), "<b>& line\n");
}

#[test]
fn filters_and_functions() {
    // F-021
    assert_eq!(text("{{ history | select('role', 'user') | last }}"), "hi {{char}}");
    assert_eq!(
        text("{{ history | reject('role', 'user') | first }} {{ [1, 2, 3] | select('odd') | list }}"),
        "yo [1,3]"
    );
    assert_eq!(text("{{ 'abc' | reverse }} {{ [1, 2] | reverse }} {{ ' a ' | trim }}|"), "cba [2,1] a|");
    assert_eq!(
        text("{{ state.map | to_yaml }}\n  {{ state.map | to_yaml(indent=2) }}"),
        "b: 1\na:\n  - 1.5\n  - null\n  b: 1\n  a:\n    - 1.5\n    - null"
    );
    assert_eq!(
        text("{{ roll('3d1+4') }} {{ random(['x']) }} {{ pick(['y']) }} {{ time_diff('12:00', '15:00') }}"),
        "7 x y 3 hours ago"
    );
    // F-036
    assert_eq!(
        text("{{ time('HH:mm') }} {{ time() }} {{ format('{} {1} {a} {{x}}', 1, true, a=2.0) }}"),
        "15:09 3:09 PM 1 true 2 {x}"
    );
    for formula in
        ["", "d", "2d", "0d6", "d06", "1d6+", "1d6*2", "1 d 6", "9999d6", "1d9999999", "-1", "2d6+1d4"]
    {
        let (text, outcome) =
            run(UndefinedMode::Strict, &context(), &format!("[{{{{ roll('{formula}') }}}}]"));
        assert_eq!(
            (text.expect("it renders").as_str(), outcome.warnings[0].code),
            ("[]", "dice_invalid"),
            "{formula}"
        );
    }
    for _ in 0..20 {
        let sum: i64 = text("{{ roll('2D6-1') }}").parse().expect("a number");
        assert!((1..=11).contains(&sum));
    }
}

#[test]
fn what_is_set_lives_in_the_prompt() {
    // F-022, F-023
    let source = "{% set hp = 1 %}{% set_global g = global_state.g + 1 %}{{ hp }} {{ state.hp }} {{ global_state.g }} {{ state.global.g }}";
    let (text, outcome) = run(UndefinedMode::Strict, &context(), source);
    assert_eq!(text.expect("it renders"), "1 7 4 4");
    assert_eq!(outcome.effects, [Effect::SetGlobal { name: "g".to_owned(), value: json!(4) }]);
    assert_eq!((&outcome.local["hp"], &outcome.global["g"]), (&json!(1), &json!(4)));
    // Later templates see variables, except those set in a loop.
    let mut assembly = Assembly::new(
        &Engine::new(UndefinedMode::Strict),
        PromptContext::from_json(&context()).expect("a context"),
        1,
    );
    let first =
        "{% set a, b = 1, 2 %}{% set c %} x{% endset -%}\n  {% for i in [1] %}{% set d = 1 %}{% endfor %}";
    assert_eq!(assembly.render("one", first).expect("it renders"), "");
    assert_eq!(
        assembly.render("two", "{{ a }}{{ b }}{{ c }}{{ d is defined }}").expect("it renders"),
        "12 xfalse"
    );
}

#[test]
fn the_state_is_read_only_and_nothing_reaches_outside() {
    // F-024
    for source in [
        "{% set state = 1 %}",
        "{% set state.hp = 1 %}",
        "{% set a, state = 1, 2 %}",
        "{% set global_state %}x{% endset %}",
    ] {
        assert_eq!(error(source).code(), Some("state_read_only"), "{source}");
    }
    for source in [
        "{{ debug() }}",
        "{% include 'x' %}",
        "{% import 'x' as y %}",
        "{% extends 'x' %}",
        "{{ state.hp.__class__() }}",
        "{{ [].append(1) }}",
        "{{ open('x') }}",
        "{{ env('HOME') }}",
    ] {
        assert!(run(UndefinedMode::Lenient, &context(), source).0.is_err(), "{source}");
    }
}

#[test]
fn what_is_missing_is_empty_or_an_error() {
    // F-024
    let source = "ä\n {{ missing }}{{ state.missing.deep }}{{ char.foo }}{{ 'a' if missing }}[{{ missing | default('d') }}]";
    let (text, outcome) = run(UndefinedMode::Lenient, &context(), source);
    assert_eq!(text.expect("it renders"), "ä\n [d]");
    let warnings: Vec<_> = outcome
        .warnings
        .iter()
        .map(|warning| (warning.code, warning.line, warning.column, &*warning.message))
        .collect();
    assert_eq!(
        warnings,
        [
            ("variable_undefined", Some(2), Some(5), "`missing` is not defined"),
            ("variable_undefined", Some(2), Some(18), "`state.missing.deep` is not defined"),
            ("variable_undefined", Some(2), Some(42), "`char.foo` is not defined"),
        ]
    );
    for source in [
        "{{ missing }}",
        "{{ state.missing }}",
        "{{ char.foo }}",
        "{% if missing %}{% endif %}",
        "{{ missing | upper }}",
        "{% for x in missing %}{% endfor %}",
    ] {
        let error = run(UndefinedMode::Strict, &context(), source).0.expect_err("it is missing");
        assert_eq!(error.code(), Some("variable_undefined"), "{source}: {error}");
    }
    // F-033: names that imported texts use may be undefined without an error.
    let lenient_source = "{{ user_input }}{{ config.model }}{{ char.personality }}{{ history[9].content }}{{ (context | last).content }}{{ user_input is defined }}";
    assert_eq!(run(UndefinedMode::Strict, &context(), lenient_source).0.expect("it renders"), "false");
}

#[test]
fn errors_name_template_line_and_column_and_show_the_line() {
    // F-025
    for (source, line, column) in [
        ("ä\n  {{ foo( }}", 2, 11),
        ("ä\n  {{ 1 + 'x' }}", 2, 6),
        ("{% if x %}", 1, 9),
        ("a {{ 'ü' ~ (1 / 0) }}", 1, 13),
        ("{% set x = 1 %}{% set y = 2 -%}\n{{ x + 'y' }}", 2, 4),
        ("{{ x | nothing }}", 1, 8),
        ("{% set_global x %}", 1, 1),
    ] {
        let error = error(source);
        let place = error.location().expect("it has a place");
        assert_eq!((place.line, place.column), (line, column), "{error}");
        let message = error.to_string();
        let line_text = source.lines().nth(line - 1).unwrap_or_default().trim();
        assert!(
            message.contains("`t`")
                && message.contains(&format!("line {line}"))
                && message.contains(line_text),
            "{message}"
        );
    }
}

#[test]
fn descriptions_come_from_the_context_or_the_schema() {
    // F-029
    let mut context = json!({
        "state": {"hp": [7, "how alive"], "mood": {"value": 1}, "pair": ["x", "y"], "list": [{"n": 1}]},
        "state_schema": {
            "type": "object",
            "properties": {
                "hp": {DESCRIPTION_PAIR: true, "description": "from the schema"},
                "mood": {"$ref": "#/$defs/mood"},
                "pair": {"type": "array", "description": "two words"},
                "list": {"items": {"properties": {"n": {"description": "a number"}}}}
            },
            "$defs": {"mood": {"properties": {"value": {"description": "how merry"}}}}
        }
    });
    let source = "{{ state.hp }} {{ state_desc.hp }}|{{ state_desc.mood.value }}|{{ state.pair }}|{{ state_desc.pair }}|{{ state_desc.list[0].n }}|{{ state_desc.none.at.all }}|";
    let render =
        |context: &serde_json::Value| run(UndefinedMode::Strict, context, source).0.expect("it renders");
    assert_eq!(render(&context), "7 how alive|how merry|[\"x\",\"y\"]|two words|a number||");
    context["state_desc"] = json!({"hp": "told", "mood.value": "told too"});
    assert_eq!(render(&context), "7 told|told too|[\"x\",\"y\"]|two words|a number||");
}

#[test]
fn compiled_templates_are_kept() {
    // F-040
    let engine = Engine::new(UndefinedMode::Lenient);
    for _ in 0..3 {
        let mut assembly = Assembly::new(&engine, PromptContext::default(), 1);
        assert_eq!(assembly.render("t", "{{ 1 }}").expect("it renders"), "1");
    }
    assert_eq!(engine.cache_counts(), (2, 1));
}

#[test]
fn a_context_of_another_shape_says_which_key() {
    for (context, key) in [
        (json!([]), "object"),
        (json!({"user": 1}), "`user`"),
        (json!({"state": []}), "`state`"),
        (json!({"history": {}}), "`history`"),
        (json!({"history": ["a", {"content": 1}]}), "`history[1].content`"),
        (json!({"context": [{"content": [{"type": "image_url"}]}]}), "`context[0].content`"),
        (json!({"group": [1]}), "`group`"),
        (json!({"now": "soon"}), "`now`"),
        (json!({"now": 5}), "`now`"),
        (json!({"seed": []}), "`seed`"),
    ] {
        let error = PromptContext::from_json(&context).expect_err("it has another shape").to_string();
        assert!(error.contains(key), "{error}");
    }
    let deep = (0..200).fold(json!(1), |value, _| json!([value]));
    assert!(PromptContext::from_json(&json!({"x": deep})).is_err());
}

#[test]
fn parts_of_content_are_the_text_of_a_message() {
    let parts = json!([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]);
    let history = json!([{"role": "user", "content": parts}, {"role": "assistant", "content": null}]);
    let (text, _) = run(UndefinedMode::Strict, &json!({"history": history}), "{{ history[0].content }}");
    assert_eq!(text.expect("it renders"), "one\n\ntwo");
}

#[test]
fn names_that_a_template_reads_are_listed() {
    let engine = Engine::new(UndefinedMode::Lenient);
    let names = engine
        .list_undeclared("t", "{% set a = 1 %}{{ a }} {{ b.c }} {{ roll('d6') }} {{ user }}")
        .expect("it compiles");
    assert_eq!(names, ["b.c", "user"]);
}
