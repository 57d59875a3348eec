//! Operators, which are our own filters, give the same results as those of the engine.

use minijinja::{Environment, UndefinedBehavior};
use serde_json::json;
use tambour_prompt::jinja::{Engine, PromptContext, UndefinedMode, evaluate};

use super::{error, run, text};

/// Values of all kinds.
const VALUES: &[&str] = &[
    "0",
    "1",
    "-7",
    "2.5",
    "-0.0",
    "9223372036854775807",
    "170141183460469231731687303715884105727",
    "true",
    "false",
    "none",
    "''",
    "'a'",
    "'abcé文'",
    "[]",
    "[1, 2, 3]",
    "[1, 'a', [2]]",
    "()",
    "(1,)",
    "(1, 2, 3)",
    "{}",
    "{'a': 1, 'b': 2}",
    "range(5)",
    "u",
];

#[test]
fn operators_give_what_those_of_the_engine_give() {
    let mut env = Environment::new();
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    let engine_result = |expression: &str| {
        let compiled = env.compile_expression(expression).expect("it compiles");
        let value = compiled.eval(minijinja::context! { u => "u" });
        value.map(|value| value.to_string()).map_err(|error| error.detail().unwrap_or_default().to_owned())
    };
    let variables = json!({"u": "u"}).as_object().cloned().unwrap_or_default();
    let assert_same = |expression: &str| {
        let expected = engine_result(expression);
        let actual = evaluate(&format!("({expression}) | string"), &variables);
        match (&actual, &expected) {
            (Ok(actual), Ok(expected)) => {
                assert_eq!(actual.as_str(), Some(expected.as_str()), "{expression}")
            }
            (Err(actual), Err(expected)) => {
                // Values that are too large for the engine are over the budget before.
                let is_too_large =
                    expected.contains("too large") && actual.to_string().contains("ran out of fuel");
                assert!(
                    is_too_large || actual.to_string().contains(expected),
                    "{expression}: {actual} {expected}"
                )
            }
            _ => panic!("{expression}: {actual:?} {expected:?}"),
        }
    };
    // F-020
    for a in VALUES {
        for b in VALUES {
            // The condition on `u` prevents constant folding.
            for sign in ["+", "-", "*", "/", "//", "%", "==", "!=", "<", "<=", ">", ">=", "in", "not in"] {
                assert_same(&format!("({a} if u else u) {sign} ({b} if u else u)"));
            }
        }
        for slice in
            ["1:", ":-1", "::-1", "::2", "-2:", "5:1:-2", "1:2", "-9:9", "9:-9:-1", "::-3", "2:0", ":"]
        {
            assert_same(&format!("({a} if u else u)[{slice}]"));
        }
        assert_same(&format!("-({a} if u else u)"));
    }
    for expression in [
        "1 + 2 * 3 - 4 / 2 ** 2 // 1 % 5",
        "u ~ 1 + 2 ~ u if u == 'u' else 3",
        "1 < 2 < 3 != 4",
        "1 < 2 > 3 == 4",
        "-u | length + 1",
        "not u == 'x' and u in 'u' 'v' or u is defined",
        "[1, 2, 3][u | length - 1:] + [4][0:]",
        "[[1, 2], [3]][1:][0][0] * 3",
        "2 * u + u * 2 ~ (u, u)[1:][0]",
        "{u: 1, u ~ u: 2}[u ~ u]",
        "u is eq 'u' == true",
        "7 is divisibleby 7 and 7 is divisibleby(u | length)",
        "u in ['u', 'v'] and u not in ('a', 'b') and 'a' not in u",
        "dict(a=1, **{'b': 2}).b + [3][-1]",
        "u . 0 if u else 1.5e3 + 0x1F + 1_000",
        "(u + u) * 2 ** 1 - 1 if not u else (u + u) * 2 ** 1 + u",
    ] {
        assert_same(expression);
    }
}

#[test]
fn operators_in_all_places_of_a_template() {
    // F-020
    assert_eq!(
        text(
            "{% for a, b in [[1, 2]] + [[3, 4]] if a + b > 3 %}{{ a * b }}{% endfor %}{% for x in state.inventory[0:] %}{{ x.name ~ 1 }}{% endfor %}"
        ),
        "12sword1"
    );
    assert_eq!(text("{% set a, b = [1] + [2] %}{{ a - b }}{% set x | upper %}a{% endset %}{{ x }}"), "-1A");
    assert_eq!(text("{% with a = 1 + 1, b = [a] %}{{ a }}{% endwith %}"), "2");
    assert_eq!(text("{% macro f(a, b=1 + 1) %}{{ a + b }}{% endmacro %}{{ f(1) }}{{ f(*[2] + [3]) }}"), "35");
    assert_eq!(text("{% filter replace('a', 'b' + 'c') | upper %}a{% endfilter %}"), "BC");
    assert_eq!(
        text("{% if 'a' in history[0].role ~ 'a' and 1 < 2 < 3 %}yes{% elif 1 %}no{% endif %}"),
        "yes"
    );
    assert_eq!(text("{{ 'a' if missing }}{{ roll('1d1') + 1 }}{{ [roll('1d1')][0:][0] }}"), "21");
    assert_eq!(text("{% raw %}{{ endraw }}{% endraw %}{{ 1 }}"), "{{ endraw }}1");
    assert_eq!(text("{{ state.hp + 0.5 }}{{ (state.hp * 2) | int }}"), "7.514");
    let place = error("{{ [1] * 2 == 3 + 'x' }}").location().map(|place| place.column);
    assert_eq!(place, Some(15));
}

#[test]
fn what_is_not_read_is_not_rendered() {
    for source in ["{{ 1in [1] }}", "{{ 1if 2else 3 }}", "{% else x %}", "{{ 1. + 2 }}"] {
        assert_eq!(error(source).code(), Some("template_syntax"), "{source}");
    }
    let engine = Engine::new(UndefinedMode::Strict);
    let context = PromptContext::default();
    let mut assembly = tambour_prompt::jinja::Assembly::new(&engine, context, 1);
    let error = assembly.render("t", "{{ missing == other }}").expect_err("it is not defined");
    assert_eq!(error.code(), Some("variable_undefined"), "{error}");
    assert!(run(UndefinedMode::Lenient, &json!({}), "{{ missing == other }}").0.is_ok());
}
