//! Untrusted templates end as a text or an error, in bounded memory and time (F-024).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use minijinja::Environment;
use serde_json::json;
use tambour_fixtures::engine;
use tambour_prompt::jinja::{
    Assembly, Budget, Engine, JinjaLimits, OPERATORS, PromptContext, UndefinedMode, evaluate, filter_names,
    function_names, test_names,
};

/// Largest number of bytes that a rendering may allocate at once.
const MAX_BYTES: u64 = 64 << 20;

/// Longest time of a rendering: the tests may be compiled without optimisation and run next to others.
const MAX_TIME: Duration = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 2 });

/// Values of the cases: a text of 1 MB with lines, a long list, a map.
pub(super) const VALUES: &str =
    "{% set s = 'ab <\n' * 200000 %}{% set l = [1] * 10000 %}{% set m = {'a': l, 'b': 'x'} %}";

/// Arguments of each filter besides the usual ones.
const FILTERS: &[(&str, &[&str])] = &[
    ("abs", &[]),
    ("attr", &["([l] * 10000)"]),
    ("batch", &["(1)", "(1000000000, 'x')", "(1, l)"]),
    ("bool", &[]),
    ("capitalize", &[]),
    ("chain", &["(l, l, l)", "([l] * 10000, s)", "(m)"]),
    ("count", &[]),
    ("d", &["([l] * 10000)"]),
    ("date_format", &["('dddd MMMM ' * 1000000)"]),
    ("default", &["('x' * 100000000)", "([1] * 100000000, true)"]),
    ("dictsort", &["(by='value')"]),
    ("e", &[]),
    ("escape", &[]),
    ("filter_not_muted", &[]),
    ("first", &[]),
    ("float", &["([l] * 10000)"]),
    ("format", &["(1)", "(*([s] * 10000))"]),
    ("format_examples", &[]),
    ("groupby", &["('a')", "('a.' * 100000)", "('a', default=[l] * 10000)"]),
    ("indent", &["(10000000)", "(width=3000000000)", "(1000, true, true)"]),
    ("int", &["(1, 36)"]),
    ("items", &[]),
    ("join", &["", "(s)", "(attribute='a.' * 100000)"]),
    ("last", &[]),
    ("length", &[]),
    ("lines", &[]),
    ("list", &[]),
    ("lower", &[]),
    (
        "map",
        &["('tojson')", "('upper')", "(attribute='a.' * 100000)", "('map', 'list')", "('indent', 10000000)"],
    ),
    ("max", &["(attribute='a')"]),
    ("min", &["(attribute='a')"]),
    ("pprint", &[]),
    ("reject", &["('eq', [l] * 10000)"]),
    ("rejectattr", &["('a.' * 100000)"]),
    ("replace", &["('a', s)", "('', s)", "(s, '')"]),
    ("reverse", &[]),
    ("round", &["(1000)", "(-1000)", "(2000000000)"]),
    ("safe", &[]),
    ("select", &["('eq', [l] * 10000)", "('in', s)"]),
    ("selectattr", &["('a.' * 100000)", "('a', 'eq', [l] * 10000)"]),
    ("slice", &["(1000000000)", "(3, l)"]),
    ("sort", &["(attribute='a,' * 10000)", "(reverse=true)"]),
    ("split", &["('')", "('b')"]),
    ("string", &[]),
    ("sum", &["(start=[])", "(start='')", "(attribute='a.' * 100000)"]),
    ("time_format", &["('dddd MMMM ' * 1000000)"]),
    ("title", &[]),
    ("to_yaml", &["(1000)", "(indent=1000000000)"]),
    ("tojson", &["(indent=3000000000)", "(true)"]),
    ("trim", &["(s)"]),
    ("unique", &["(attribute='a.' * 100000)", "(case_sensitive=true)"]),
    ("upper", &[]),
    ("utc_offset", &["(s)"]),
    ("zip", &["(l, l)", "([l] * 10000)", "(s, s)"]),
];

/// Arguments of each test.
const TESTS: &[(&str, &str)] = &[
    ("!=", "([l] * 10000)"),
    ("<", "([l] * 10000)"),
    ("<=", "([l] * 10000)"),
    ("==", "([l] * 10000)"),
    (">", "([l] * 10000)"),
    (">=", "([l] * 10000)"),
    ("boolean", ""),
    ("defined", ""),
    ("divisibleby", "(3)"),
    ("endingwith", "([l] * 10000)"),
    ("eq", "([l] * 10000)"),
    ("equalto", "([l] * 10000)"),
    ("escaped", ""),
    ("even", ""),
    ("false", ""),
    ("filter", ""),
    ("float", ""),
    ("ge", "([l] * 10000)"),
    ("greaterthan", "([l] * 10000)"),
    ("gt", "([l] * 10000)"),
    ("in", "([l] * 10000)"),
    ("int", ""),
    ("integer", ""),
    ("iterable", ""),
    ("le", "([l] * 10000)"),
    ("lessthan", "([l] * 10000)"),
    ("lower", ""),
    ("lt", "([l] * 10000)"),
    ("mapping", ""),
    ("ne", "([l] * 10000)"),
    ("none", ""),
    ("number", ""),
    ("odd", ""),
    ("safe", ""),
    ("sameas", "(s ~ '')"),
    ("sequence", ""),
    ("startingwith", "(s)"),
    ("string", ""),
    ("test", ""),
    ("true", ""),
    ("undefined", ""),
    ("upper", ""),
];

/// Calls of each function.
const FUNCTIONS: &[(&str, &[&str])] = &[
    ("dict", &["(m, **m)", "({[l] * 10000: 1})"]),
    ("format", &["('{}' * 10000, *([s] * 10000))", "('{a}' * 100000, a=s)"]),
    ("namespace", &["(m)", "(a=[l] * 10000)"]),
    ("outlet", &["('big')", "([l] * 10000)"]),
    ("pick", &["([l] * 10000)", "(*([s] * 1000000))"]),
    ("random", &["([1] * 100000000)", "(*([s] * 1000000))"]),
    ("range", &["(1000000000)", "(100000) | list | list", "(0, 100000) | map('string') | join(s)"]),
    ("roll", &["(s)", "('1000d1000000')"]),
    ("set_global", &["('a', [l] * 10000)", "(s, s)"]),
    ("st_add", &["('n', s)", "('l', s)"]),
    ("st_add_global", &["('n', s)"]),
    ("st_banned", &["(s)"]),
    ("st_bare", &["(s)", "('big')"]),
    ("st_comment", &["([l] * 10000)", "(s)"]),
    ("st_compare", &["(s, '==', s)"]),
    ("st_dec", &["(s)"]),
    ("st_dec_global", &["(s)"]),
    ("st_delete", &["(s)"]),
    ("st_delete_global", &["(s)"]),
    ("st_get", &["('big')", "(s)"]),
    ("st_get_global", &["('big')", "(s)"]),
    ("st_get_global_key", &["('big', 1)", "(s, s)"]),
    ("st_get_key", &["('big', 'text')", "('big', s)"]),
    ("st_greeting", &["(char, s)"]),
    ("st_has", &["('big')"]),
    ("st_has_global", &["('big')"]),
    ("st_if", &["([l] * 10000)"]),
    ("st_inc", &["('big')"]),
    ("st_inc_global", &["('big')"]),
    ("st_noop", &["()"]),
    ("st_original", &["()"]),
    ("st_scope", &["('big', '')", "('global', 'big')"]),
    ("st_set", &["('n', s)", "(s, s)"]),
    ("st_set_global", &["('n', s)", "(s, s)"]),
    ("st_set_global_key", &["('big', 1, s)", "(s, 900000000, s)"]),
    ("st_set_key", &["('big', s, s)", "('none', 900000000, 'x')"]),
    ("st_test", &["('big')", "(s)"]),
    ("st_text", &["(s, s, s, s, s, s, s, s)"]),
    ("st_trim", &["()"]),
    ("st_yaml", &["('big', 'list')", "('global', 'big')"]),
    ("time", &["('dddd MMMM ' * 1000000)"]),
    ("time_diff", &["(s, s)"]),
];

/// Expressions with each operator.
const OPERATOR_CASES: &[(&str, &[&str])] = &[
    ("==", &["[l] * 10000 == [l] * 10000", "[[l] * 1000] * 1000 == [[l] * 1000] * 1000", "s == s ~ ''"]),
    ("!=", &["[l] * 10000 != [l] * 10000 + [2]"]),
    ("<", &["[l] * 10000 < [l] * 10000", "[l] * 10000 < [l] * 10000 < [l] * 10001"]),
    ("<=", &["[l] * 10000 <= [l] * 10000"]),
    (">", &["[l] * 10000 > [l] * 10000"]),
    (">=", &["[l] * 10000 >= [l] * 10000"]),
    ("in", &["[l, 2] in [[l, 3]] * 100000", "[l] * 10000 in s", "[l] * 10000 in m", "'zz' in s"]),
    // Alone it is parsed as two operators, in a chain as one.
    ("not in", &["[l, 2] not in [[l, 3]] * 100000", "l == l not in [[l, 3]] * 100000"]),
    (
        "+",
        &[
            "s + s + s + s + s + s + s + s + s + s + s + s + s + s + s + s + s + s",
            "[l] * 10000 + [l] * 10000",
        ],
    ),
    ("-", &["s - s", "1 - [l] * 10000 + 1"]),
    (
        "*",
        &[
            "'x' * 100000000",
            "[1] * 100000000",
            "100000000 * (1, 2)",
            "[[[1] * 10000] * 10000] * 10000",
            "s * -1",
        ],
    ),
    ("/", &["s / s", "1 / 3 * s"]),
    ("//", &["s // s", "7 // 2 * s"]),
    ("%", &["s % s", "'%1000000000d' % 1", "7 % 4 * s"]),
    ("**", &["9 ** 9 ** 9 ** 9", "(2 ** 127) ** (2 ** 127)", "s ** s"]),
    ("~", &["[l] * 10000 ~ ''", "s ~ s ~ s ~ s ~ s ~ s ~ s ~ s ~ s ~ s ~ s ~ s ~ s ~ s"]),
    (
        "[:]",
        &[
            "s[::-1][1:][:-1][::2]",
            "([1] * 100000000)[99999999:]",
            "range(100000)[::-1][::-1][5:]",
            "s[5:'a']",
        ],
    ),
    ("[]", &["m[[l] * 10000]", "m[s]", "state_desc[s][s][s][s][s]", "range(100000)[99999]"]),
    ("{:}", &["{[l] * 10000: 1}", "{([l] * 10000) | first: 1}", "{m: 1}", "{s: 1}", "{(1, [l] * 10000): 1}"]),
    ("[.]", &["s[399999]", "s[-1]", "s.399999", "range(100000)[99999]", "(s | list)[-1][0]"]),
    (
        "*()",
        &["format('', *([1] * 100000000))", "dict(**dict(a=[l] * 10000))", "namespace(*([m] * 1000000))"],
    ),
    ("f()", &["lipsum(s)", "lipsum(*[s] * 10000)"]),
    (".changed()", &["m.changed(s, m)", "namespace(a=1).changed([l] * 10000)", "s.changed(s)"]),
    (".cycle()", &["m.cycle()", "s.cycle(s)"]),
    ("and", &["[l] * 10000 and [l] * 10000"]),
    ("or", &["([] * 10000 or [l] * 10000) | string"]),
    ("not", &["not [l] * 10000", "not state"]),
    ("-x", &["-s", "-([l] * 10000)", "-(2 ** 100)"]),
    ("if", &["[l] * 10000 if [l] * 10000 else s"]),
    ("is", &["[l] * 10000 is eq [l] * 10000"]),
    ("|", &["s | upper | lower | title | escape | tojson | tojson | tojson | tojson"]),
    (".", &["global_state.big", "([l] * 10000).0", "m.a.b.c"]),
];

/// Statements that store, repeat or catch large values.
const STATEMENTS: &[&str] = &[
    "{{ (['x'*1000000]*100000)|join }}",
    "{{ [1]*100000000 }}",
    "{{ ('a\n'*1000)|indent(10000000) }}",
    "{{ format('{}'*10000, *(['b'*1000000]*10000)) }}",
    "{{ [[[1]]]|tojson(indent=3000000000) }}",
    "{{ [[1]*10000]*10000 }}",
    "{{ ([[1]*10000]*10000)|tojson|length }}",
    "{{ '%(a)s' * 100000 | format(a=s) }}",
    "{{ ('%(a)s' * 100000) | format(a=s) }}",
    "{{ '%1000000000d' | format(1) }}{{ '%*d' | format(1000000000, 1) }}",
    "{% for i in range(100000) %}{% set x = s[i:] %}{% endfor %}",
    "{% for i in range(100000) %}{% if s[i] == 'q' %}{% endif %}{% endfor %}",
    "{% for i in range(100000) %}{% if s[399999] %}{% endif %}{% endfor %}",
    "{% for i in range(100000) %}{% if s[-1] == 'q' %}{% endif %}{% endfor %}",
    "{% for i in range(100000) %}{% if s.399999 %}{% endif %}{% endfor %}",
    "{% for i in range(100000) %}{% if s == s ~ 'x' %}{% endif %}{% endfor %}",
    "{% for i in range(100000) %}{% if 'z' in s %}{% endif %}{% endfor %}",
    "{% for i in range(100000) %}{% if state %}{{ global_state.big | length }}{{ big | length }}{% endif %}{% endfor %}",
    "{% for i in range(100000) %}{{ st_get('big') | length }}{% endfor %}",
    "{% for i in range(100000) %}{{ st_test('big') }}{{ st_scope('big', 'list') | length }}{% endfor %}",
    "{% for i in range(100000) %}{{ char.description | length }}{{ char.scenario | length }}{% endfor %}",
    "{% for i in range(100000) %}{{ st_add('list', 'x') }}{% endfor %}",
    "{% for i in range(100000) %}{{ st_set(i ~ s[:1000], s) }}{% endfor %}",
    "{% for i in range(100000) %}{{ st_set_key('big', i, s) }}{{ st_get_key('big', 'list') | length }}{% endfor %}",
    "{% for i in range(100000) %}{{ st_set_key('own', i, 'x') }}{% endfor %}",
    "{% for i in range(100000) %}{{ set_global(i ~ 'x', l) }}{% endfor %}",
    "{% set x = 'x' %}{% for i in range(64) %}{% set x = x ~ x %}{{ x | length }}{% endfor %}",
    "{% set ns = namespace(x='x') %}{% for i in range(64) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x | length }}",
    "{% set ns = namespace(x=[1]) %}{% for i in range(64) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x == ns.x }}",
    "{% set ns = namespace(x=1) %}{% set ns.x = [ns, ns] %}{{ ns }}",
    "{% set ns = namespace(x=1) %}{% set ns.x = [ns, ns] %}{{ ns.x == [ns, ns] }}{{ {ns.x: 1} }}",
    "{% set a, b = [1] * 1000000 %}",
    "{% for a, b in [[1] * 100000] * 1000 %}{{ a }}{% endfor %}",
    "{% macro f(x, n) %}{% if n %}{{ f(x | reverse, n - 1) }}{% else %}{{ x | first }}{% endif %}{% endmacro %}{{ f(l, 24) }}",
    "{% macro f(x) %}{{ f(x ~ x) }}{% endmacro %}{{ f(s) }}",
    "{% set x %}{% for i in range(100000) %}0123456789012345678901234567890123456789{{ s[:1] }}{% endfor %}{% endset %}{{ x | length }}",
    "{% filter indent(10000000) %}a\nb\nc{% endfilter %}",
    "{% filter upper | replace('A', s) %}aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa{% endfilter %}",
    "{% with x = [l] * 10000, y = [l] * 10000 %}{{ x == y }}{% endwith %}",
    "{% call(x) format('{}' * 10000, *([s] * 10000)) %}{% endcall %}",
    "{% autoescape 'html' %}{{ s ~ s ~ s }}{{ (s | safe) + s }}{% endautoescape %}",
    "{% do namespace(x=[[l] * 10000] * 10000) %}",
    "{% set_global x = [l] * 10000 %}",
    "{% if [l] * 10000 == [l] * 10000 %}{% elif 'x' * 100000000 %}{% endif %}",
    "{% for x in ([l] * 10000) if x == l recursive %}{{ loop(x) }}{% endfor %}",
    "{{ s }}{{ s }}{{ s }}{{ s }}{{ s }}",
    "{% for a in l %}{% if a == s %}{% break %}{% else %}{% continue %}{% endif %}{% endfor %}",
    "{% for a in l %}{{ loop.cycle() }}{% endfor %}",
    "{% for a in l %}{{ loop.cycle(*[]) }}{% endfor %}",
    "{% for a in l %}{{ loop.cycle(l, s) }}{% endfor %}",
    "{{ 'x' * 1000000 }}{% for i in range(100) %}{{ st_yaml('big', 'list') }}{% endfor %}",
    "{{ lipsum }}{{ (l, l, l, l) * 1000 | length }}{{ ((1, 2) * 1000000) | length }}",
];

pub(super) fn context() -> PromptContext {
    let list: Vec<usize> = (0..20_000).collect();
    let text = "lorem ipsum ".repeat(20_000);
    PromptContext::from_json(&json!({
        "user": "U", "char": {"name": "C", "description": text, "scenario": text.clone() + "{{user}}"},
        "state": {"big": {"list": list, "text": text}, "list": ["x"], "n": 1, "a": "x"},
        "global_state": {"big": list}, "big": list, "outlets": {"big": [text.clone() + "{{user}}", text]},
        "now": "2026-03-14T15:09:26+08:00", "history": [{"role": "user", "content": text}]
    }))
    .expect("a context")
}

/// Renders a template; fails if it exceeds the bounds of memory or time.
pub(super) fn render_bounded(context: &PromptContext, source: &str) -> Result<String, tambour::Error> {
    let mut result = None;
    let start = Instant::now();
    let memory = allocation_counter::measure(|| {
        let mut assembly = Assembly::new(&Engine::new(UndefinedMode::Lenient), context.clone(), 1);
        result = Some(assembly.render("t", source));
    });
    let (excerpt, time) = (source.get(..400).unwrap_or(source), start.elapsed());
    assert!(memory.bytes_max <= MAX_BYTES, "{} bytes at once: {excerpt}", memory.bytes_max);
    assert!(time <= MAX_TIME, "{time:?}: {excerpt}");
    result.expect("it was rendered")
}

/// Returns whether all cases are tried, instead of only those that end soon.
fn tries_all_cases() -> bool {
    std::env::var_os("TEMPLATES").is_some()
}

#[test]
fn every_filter_test_function_and_operator_has_a_hostile_case() {
    let name_set = |names: Vec<&'static str>| names.into_iter().collect::<BTreeSet<_>>();
    let names =
        |table: &[(&'static str, &[&str])]| table.iter().map(|(name, _)| *name).collect::<BTreeSet<_>>();
    assert_eq!(name_set(filter_names()), names(FILTERS));
    assert_eq!(name_set(test_names().collect()), TESTS.iter().map(|(name, _)| *name).collect());
    assert_eq!(name_set(function_names().collect()), names(FUNCTIONS));
    let signs = names(OPERATOR_CASES);
    assert_eq!(OPERATORS.iter().map(|(sign, _)| *sign).collect::<BTreeSet<_>>(), signs);
    // Operators of the engine's syntax tree; a new one fails to compile there. The methods of a loop are not listed in it.
    let engine_operators = engine::operators();
    assert_eq!(engine_operators.difference(&signs).count(), 0, "{engine_operators:?}");
    let additional: Vec<_> = signs.difference(&engine_operators).copied().collect();
    assert_eq!(additional, [".changed()", ".cycle()", "[.]"]);
    for (sign, expressions) in OPERATOR_CASES {
        // Indexing of a container, which has a cost apart from its key.
        let sign = if *sign == "[.]" { "[]" } else { sign };
        let found: BTreeSet<_> = expressions.iter().flat_map(|source| engine::operators_of(source)).collect();
        assert!(found.contains(sign), "no {sign} in {expressions:?}: {found:?}");
    }
    let found: BTreeSet<_> = STATEMENTS.iter().flat_map(|source| engine::statements_of(source)).collect();
    assert_eq!(found, engine::statements());
    // Built-in filters and tests of the engine: a new one fails here before a template can use it.
    let engine = format!("{:?}", Environment::new());
    let builtin_names = |key: &str| {
        let (_, list) = engine.split_once(&format!("{key}: ")).expect("the engine lists them");
        let (list, _) = list.split_once([']', '}']).expect("the list ends");
        let names_in_list = list.split('"').skip(1).step_by(2);
        names_in_list.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let (filters, tests) = (builtin_names("filters"), builtin_names("tests"));
    assert!(filters.len() > 40 && tests.len() > 30, "{filters:?} {tests:?}");
    let own_names = name_set(filter_names());
    assert_eq!(filters.iter().filter(|name| !own_names.contains(name.as_str())).count(), 0, "{filters:?}");
    let own_names = name_set(test_names().collect());
    assert_eq!(tests.iter().filter(|name| !own_names.contains(name.as_str())).count(), 0, "{tests:?}");
    let own_names: BTreeSet<_> = function_names().collect();
    let environment = Environment::new();
    let unknown: Vec<_> =
        environment.globals().map(|(name, _)| name).filter(|name| !own_names.contains(name)).collect();
    // `debug` would print all variables.
    assert_eq!(unknown, ["debug"]);
}

#[test]
fn hostile_filters_are_bounded() {
    let context = context();
    for (name, args) in FILTERS {
        for args in args.iter().chain([&""]) {
            let values =
                ["[l] * 10000", "s", "[s] * 100000", "m", "'%s' * 100000", "[m] * 100000", "now", "1.5"];
            for value in &values[..if tries_all_cases() { values.len() } else { 2 }] {
                let _ = render_bounded(
                    &context,
                    &format!("{VALUES}{{{{ (({value}) | {name}{args}) | length }}}}"),
                );
                if tries_all_cases() {
                    let _ = render_bounded(&context, &format!("{VALUES}{{{{ ({value}) | {name}{args} }}}}"));
                    let _ = render_bounded(
                        &context,
                        &format!(
                            "{VALUES}{{% set v = {value} %}}{{% for i in range(100000) %}}{{% if v | {name}{args} %}}{{% endif %}}{{% endfor %}}"
                        ),
                    );
                }
            }
        }
    }
}

#[test]
fn hostile_tests_and_functions_are_bounded() {
    let context = context();
    for (name, args) in TESTS {
        let test = |value: &str| match name.chars().all(char::is_alphabetic) {
            true => format!("({value}) is {name}{args}"),
            false => format!("[{value}] | select('{name}', {})", args.trim_matches(['(', ')'])),
        };
        for value in ["[l] * 10000", "s"] {
            let _ = render_bounded(&context, &format!("{VALUES}{{{{ {} }}}}", test(value)));
            if tries_all_cases() {
                let body = format!("{{% if {} %}}{{% endif %}}", test("v"));
                let _ = render_bounded(
                    &context,
                    &format!(
                        "{VALUES}{{% set v = {value} %}}{{% for i in range(100000) %}}{body}{{% endfor %}}"
                    ),
                );
            }
        }
    }
    for (name, calls) in FUNCTIONS {
        for args in *calls {
            let _ = render_bounded(&context, &format!("{VALUES}{{{{ {name}{args} }}}}"));
            if tries_all_cases() {
                let _ = render_bounded(
                    &context,
                    &format!("{VALUES}{{% for i in range(100000) %}}{{% do {name}{args} %}}{{% endfor %}}"),
                );
            }
        }
    }
}

#[test]
fn hostile_operators_and_statements_are_bounded() {
    let context = context();
    for (_, expressions) in OPERATOR_CASES {
        for expression in *expressions {
            let _ = render_bounded(&context, &format!("{VALUES}{{{{ {expression} }}}}"));
            if tries_all_cases() {
                let _ = render_bounded(
                    &context,
                    &format!(
                        "{VALUES}{{% for i in range(100000) %}}{{% if {expression} %}}{{% endif %}}{{% endfor %}}"
                    ),
                );
            }
        }
    }
    for statement in STATEMENTS {
        let _ = render_bounded(&context, &format!("{VALUES}{statement}"));
    }
    // Statements that once ended the process are now errors of the limit.
    for statement in &STATEMENTS[..7] {
        let error = render_bounded(&context, &format!("{VALUES}{statement}")).expect_err("it is too much");
        assert_eq!(error.code(), Some("limit_exceeded"), "{statement}: {error}");
    }
}

#[test]
fn hostile_sources_are_bounded() {
    let context = context();
    let fill = |part: &str| part.repeat((1 << 20) / part.len());
    for source in [
        fill("{{ a }}"),
        fill("{{1}}"),
        fill("{% set a = 1 %}"),
        fill("{{ st_trim() }}"),
        fill("{# #}"),
        fill("{{ a[1:] ~ b }}"),
        format!("{{{{ [{}] }}}}", fill("1,")),
        format!("{{{{ {{{}}} }}}}", fill("1:1,")),
        format!("{{{{ '{}' }}}}", fill("x")),
        format!("{{{{ f({}) }}}}", fill("a,")),
        fill("{% macro f(a) %}{% endmacro %}{{ roll('1d6') }}"),
        fill("{% for a in b %}{% endfor %}"),
        format!("{}{}", "{% for a in [1, 2] %}".repeat(60), "{% endfor %}".repeat(60)),
    ] {
        let _ = render_bounded(&context, &source);
    }
}

/// Random numbers and templates from a seed.
struct TemplateSource(u64);

impl TemplateSource {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).expect("it is below a usize")
    }

    fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    fn value(&mut self) -> &'static str {
        self.pick(&[
            "s",
            "l",
            "m",
            "1",
            "0",
            "-1",
            "100000000",
            "3000000000",
            "1e300",
            "''",
            "'x'",
            "'a\\nb'",
            "none",
            "true",
            "missing",
            "state",
            "global_state",
            "big",
            "history",
            "char",
            "user",
            "now",
            "state_desc",
            "[]",
            "{}",
            "()",
            "range(100000)",
            "namespace(a=l)",
            "2 ** 100",
            "'%s%1000d' * 1000",
            "i",
            "ns",
            "ns.x",
        ])
    }

    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.value().to_owned();
        }
        let depth = depth - 1;
        let part = TemplateSource::expression;
        match self.below(12) {
            0 | 1 => {
                let sign = self.pick(&["==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]);
                format!("({}) {sign} ({})", part(self, depth), part(self, depth))
            }
            2 | 3 => {
                let sign = self.pick(&["+", "-", "*", "*", "/", "//", "%", "**", "~"]);
                format!("({}) {sign} ({})", part(self, depth), part(self, depth))
            }
            4..=6 => {
                let (name, args) = self.pick(FILTERS);
                let args = if args.is_empty() { "" } else { self.pick(args) };
                let has_argument = self.below(4) == 0;
                let args = if has_argument { format!("({})", part(self, depth)) } else { args.to_owned() };
                format!("({}) | {name}{args}", part(self, depth))
            }
            7 => {
                let names: Vec<_> =
                    TESTS.iter().filter(|(name, _)| name.chars().all(char::is_alphabetic)).collect();
                let (name, args) = *self.pick(&names);
                format!("({}) is {name}{args}", part(self, depth))
            }
            8 => {
                let (name, calls) = self.pick(FUNCTIONS);
                if self.below(2) == 0 {
                    return format!("{name}{}", self.pick(calls));
                }
                format!("{name}({}, {})", part(self, depth), part(self, depth))
            }
            9 => format!("[{}] * {}", part(self, depth), self.pick(&["10", "10000", "100000000", "(-5)"])),
            10 => {
                let bounds =
                    self.pick(&["1:", "::-1", ":-1", "99999:", "5:2:-3", "0", "-1", "399999", "i", "'a'"]);
                format!("({})[{bounds}]", part(self, depth))
            }
            _ => format!("{{{}: {}}}", part(self, depth), part(self, depth)),
        }
    }

    fn template(&mut self) -> String {
        let depth = 1 + self.below(5);
        let expression = self.expression(depth);
        match self.below(6) {
            0 => format!("{VALUES}{{% for i in range(100000) %}}{{% set x = {expression} %}}{{% endfor %}}"),
            1 => format!(
                "{VALUES}{{% set ns = namespace(x=[1]) %}}{{% for i in range(100) %}}{{% set ns.x = {expression} %}}{{% endfor %}}{{{{ ns.x }}}}"
            ),
            2 => format!("{VALUES}{{% for i in {expression} %}}{{{{ i }}}}{{% endfor %}}"),
            3 => format!(
                "{VALUES}{{% macro f(i, n) %}}{{% if n %}}{{{{ f({expression}, n - 1) }}}}{{% endif %}}{{% endmacro %}}{{{{ f(l, 20) }}}}"
            ),
            _ => format!("{VALUES}{{{{ {expression} }}}}"),
        }
    }
}

#[test]
fn keys_are_no_containers() {
    // Nested keys were escaped within each other, and their text doubled with each level.
    let context = context();
    for source in [
        "{% set ns = namespace(x=[1]) %}{% for i in range(100) %}{% set ns.x = {ns.x: ''} %}{% endfor %}{{ ns.x }}",
        "{{ {{{{[1]: 1}: 1}: 1}: 1} }}",
        "{{ {[1]: 1} | tojson }}",
        "{{ [{{}: 1}] }}",
    ] {
        let error = render_bounded(&context, source).expect_err(source);
        assert!(error.to_string().contains("cannot be the key"), "{error}: {source}");
    }
    let valid_source = "{{ {1: 'a', 'b': 2, 1.5: none} | length }}";
    assert_eq!(render_bounded(&context, valid_source).expect("scalars are keys"), "3");
}

#[test]
fn generated_templates_are_bounded() {
    let setting = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let (count, seed) = (setting("TEMPLATES").unwrap_or(150), setting("SEED").unwrap_or(27));
    let context = context();
    let (mut rendered_count, mut limited_count, mut longest, mut refused_count) = (0, 0, Duration::ZERO, 0);
    for at in 0..count {
        let source = TemplateSource(seed.wrapping_mul(1 << 32).wrapping_add(at)).template();
        let start = Instant::now();
        match render_bounded(&context, &source) {
            Ok(_) => rendered_count += 1,
            Err(error) if error.code() == Some("limit_exceeded") => limited_count += 1,
            // Operations without a result, such as adding a number and a list.
            Err(error) => {
                assert_ne!(error.code(), Some("template_syntax"), "{error}: {source}");
                refused_count += 1;
            }
        }
        longest = longest.max(start.elapsed());
    }
    println!(
        "{count} templates: {rendered_count} rendered, {limited_count} beyond a limit, {refused_count} refused; longest {longest:?}"
    );
    assert!(rendered_count > 0 && limited_count > 0 && refused_count > 0);
}

#[test]
fn a_rendering_ends_when_it_is_told_to_stop() {
    let mut limits = JinjaLimits::default();
    limits.fuel = u64::MAX / 128;
    limits.prompt_fuel = u64::MAX / 128;
    let engine = Engine::with_limits(UndefinedMode::Lenient, limits.clone());
    // Steps of different length.
    for body in ["l == l + [1]", "'q' in 'abc'", "s[399999] == 'q'"] {
        let check_count = Arc::new(AtomicUsize::new(0));
        let stop = {
            let check_count = Arc::clone(&check_count);
            move || check_count.fetch_add(1, Ordering::Relaxed) >= 3
        };
        let budget = Budget::with_stop(&limits, stop);
        let mut assembly = Assembly::with_budget(&engine, context(), 1, budget.clone());
        let source = format!(
            "{VALUES}{{% for a in l %}}{{% for b in l %}}{{% for c in l %}}{{% if {body} %}}{{% endif %}}{{% endfor %}}{{% endfor %}}{{% endfor %}}"
        );
        let start = Instant::now();
        let error = assembly.render("t", &source).expect_err("it was stopped");
        assert!(start.elapsed() < MAX_TIME, "{body}: {:?}", start.elapsed());
        assert_eq!(error.code(), Some("limit_exceeded"), "{error}");
        assert!(error.to_string().contains("nobody waits"), "{error}");
        assert!(check_count.load(Ordering::Relaxed) >= 4);
        // Further templates of the same rendering do not begin.
        assert!(Assembly::with_budget(&engine, context(), 1, budget).render("t", "{{ 1 }}").is_err());
    }
}

#[test]
fn the_templates_of_a_prompt_share_a_budget() {
    let engine = Engine::new(UndefinedMode::Lenient);
    let mut assembly = Assembly::new(&engine, PromptContext::default(), 1);
    let mut failure = None;
    for at in 0..100 {
        if let Err(error) = assembly.render("t", &format!("{{% set x{at} = 'x' * 1000000 %}}")) {
            failure = Some((at, error));
            break;
        }
    }
    let (at, error) = failure.expect("all of them take more than there is");
    assert!(at > 5 && error.code() == Some("limit_exceeded"), "{at} {error}");
}

#[test]
fn steps_that_run_out_are_told_as_steps() {
    // F-024
    let mut limits = JinjaLimits::default();
    limits.prompt_fuel = 500;
    let engine = Engine::with_limits(UndefinedMode::Lenient, limits);
    let globals: serde_json::Map<_, _> = (0..4_000).map(|at| (format!("g{at}"), json!(at))).collect();
    let context = PromptContext::from_json(&json!({
        "user": "U", "char": {"name": "C", "description": "x".repeat(64_000) + "{{user}}"},
        "global_state": globals
    }))
    .expect("a context");
    for source in ["{{ set_global('x', 1) }}", "{{ char.description }}"] {
        let mut assembly = Assembly::new(&engine, context.clone(), 1);
        let error = assembly.render("t", source).expect_err(source);
        assert_eq!(error.code(), Some("limit_exceeded"), "{error}");
        assert!(error.to_string().contains("too many steps"), "{source}: {error}");
    }
}

#[test]
fn expressions_of_scripts_are_bounded() {
    let variables = json!({"s": "x".repeat(10_000), "l": [1, 2, 3]}).as_object().cloned().unwrap_or_default();
    for expression in [
        "[1] * 100000000",
        "[[1] * 1000] * 1000",
        "([[1] * 1000] * 1000) | tojson | length",
        "'x' * 100000000",
        "s | indent(1000000000)",
        "s | replace('x', s)",
        "[[l] * 1000] * 1000 == [[l] * 1000] * 1000",
    ] {
        let start = Instant::now();
        let memory = allocation_counter::measure(|| {
            let error = evaluate(expression, &variables).expect_err("it is too much");
            assert_eq!(error.code(), Some("limit_exceeded"), "{expression}: {error}");
        });
        assert!(
            memory.bytes_max < 4 << 20 && start.elapsed() < MAX_TIME,
            "{expression}: {}",
            memory.bytes_max
        );
    }
    assert_eq!(
        evaluate("l[1:] + [s | length] == [2, 3, 10000] and 'x' in s and l[0] * 2 ** 3 == 8", &variables)
            .expect("it holds"),
        true
    );
}
