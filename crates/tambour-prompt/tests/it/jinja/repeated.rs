//! Work of the engine in each turn of a loop that a step does not pay for: comparing, hashing, copying and
//! counting. Each case ends as an error of the budget, in bounded memory and time (F-024).

use super::hostile::{VALUES, context, render_bounded};

/// Preparations and body of a loop in which the engine works, with or without a count of its own.
const LOOP_WORK: &[(&str, &str)] = &[
    // Comparison with the arguments of the turn before.
    ("{% set a = l + [1] %}{% set b = l + [1] %}", "{% if loop.changed(a if i % 2 else b) %}{% endif %}"),
    ("{% set a = l + [1] %}{% set b = l + [1] %}", "{% if loop.changed(*[a if i % 2 else b]) %}{% endif %}"),
    ("{% set a = l + [1] %}{% set b = l + [1] %}", "{% if loop.changed(x=a if i % 2 else b) %}{% endif %}"),
    ("", "{% if loop.changed([l + [1]] * 10000) %}{% endif %}"),
    ("", "{% if loop.changed([[l + [1]] * 1000] * 1000) %}{% endif %}"),
    ("", "{% set own = loop %}{% if own.changed([l + [1]] * 10000) %}{% endif %}"),
    ("{% set k = s ~ 'x' %}{% set j = s ~ 'x' %}", "{% if loop.changed(k if i % 2 else j) %}{% endif %}"),
    // Copies whose keys are hashed again.
    ("{% set k = {s: 1} %}", "{% do dict(k) %}"),
    ("{% set k = {s: 1} %}", "{% do dict(k, a=1) %}"),
    ("{% set k = {s: 1} %}", "{% do dict(**k) %}"),
    ("{% set k = {s: 1} %}", "{% do namespace(k) %}"),
    ("{% set k = {s: 1} %}", "{% do namespace(**k) %}"),
    ("{% set k = {s: 1} %}", "{% if k | chain(k) %}{% endif %}"),
    ("{% set k = {s: 1} %}", "{% if [k, k] | unique | list %}{% endif %}"),
    ("{% set k = {s: 1} %}", "{% if k == {s: 1} %}{% endif %}"),
    (
        "{% set k = {s: 1} %}",
        "{% if k[s] and k | attr(s) and s in k and [k] | map(attribute=s) | list %}{% endif %}",
    ),
    (
        "{% set k = {s: 1} %}",
        "{% if k | items | list %}{% endif %}{% if k | dictsort %}{% endif %}{% if k | list %}{% endif %}{% if k | first %}{% endif %}",
    ),
    ("{% set k = {s: 1} %}", "{% set k = k %}"),
    ("{% set k = [l] * 1000 %}", "{% if {k: 1} %}{% endif %}"),
    ("{% set k = [l] * 1000 %}", "{% if {(k, 1): 1} %}{% endif %}"),
    ("{% set k = [l] * 1000 %}", "{% if k in m or m[k] or m | attr(k) %}{% endif %}"),
    // Texts whose characters are counted before the first turn.
    ("", "{% for c in s %}{% break %}{% endfor %}"),
    ("", "{% for c in s ~ '' %}{% break %}{% endfor %}"),
    (
        "",
        "{% for c in [s] recursive %}{% if c | length > 1 %}{{ loop(c) }}{% else %}{% break %}{% endif %}{% endfor %}",
    ),
    (
        "",
        "{% for c in [s] recursive %}{% with own = loop %}{% if c | length > 1 %}{{ own(c) }}{% else %}{{ 1 }}{% endif %}{% endwith %}{% endfor %}",
    ),
    ("{% set k = {s: 1} %}", "{% for c in k %}{% break %}{% endfor %}"),
    ("", "{% for c in state.big.list %}{% break %}{% endfor %}"),
    // Comparisons, one for each name.
    (
        "{% set k = [{'a': l + [1]}, {'a': l + [1]}, {'a': l + [1]}, {'a': l + [1]}] %}{% set names = 'a,' * 1000 %}",
        "{% if k | sort(attribute=names) %}{% endif %}",
    ),
    (
        "{% set k = [{'a': s ~ 1}, {'a': s ~ 2}] %}{% set names = 'a,' * 1000 %}",
        "{% if k | sort(attribute=names) %}{% endif %}",
    ),
    ("{% set names = 'a,' * 1000 %}", "{% if l | sort(attribute=names) %}{% endif %}"),
    (
        "{% set k = [{'a': l + [1]}, {'a': l + [1]}, {'a': l + [1]}] * 10 %}",
        "{% if k | unique(attribute='a') | list %}{% endif %}{% if k | groupby('a') %}{% endif %}{% if k | min(attribute='a') %}{% endif %}{% if k | max(attribute='a') %}{% endif %}",
    ),
    (
        "{% set k = [l + [1], l + [1], l + [1]] * 10 %}",
        "{% if k | unique | list %}{% endif %}{% if k | sort %}{% endif %}{% if k | min %}{% endif %}",
    ),
    (
        "{% set k = [l + [1], l + [1]] * 10 %}",
        "{% if k | select('eq', l + [1]) | list %}{% endif %}{% if k | select('in', k) | list %}{% endif %}",
    ),
    ("{% set k = [{'a': l + [1]}] * 10 %}", "{% if k | selectattr('a', 'eq', l + [1]) | list %}{% endif %}"),
    ("{% set k = [{'a': l + [1]}] * 10 %}", "{% if k | groupby('b', default=[l] * 1000) %}{% endif %}"),
];

#[test]
fn work_in_each_turn_of_a_loop_is_paid_for() {
    let context = context();
    for (before, body) in LOOP_WORK {
        let source = format!("{VALUES}{before}{{% for i in range(100000) %}}{body}{{% endfor %}}");
        let error = render_bounded(&context, &source).expect_err(body);
        let is_refused = error.to_string().contains("cannot be the key");
        assert!(is_refused || error.code() == Some("limit_exceeded"), "{body}: {error}");
    }
}

#[test]
fn long_names_and_texts_in_each_turn_of_a_loop_are_paid_for() {
    let context = context();
    // Names and texts that are hashed or compared in each turn of a loop.
    let long_name = "a".repeat(900_000);
    for body in [
        format!("{{% if {long_name} %}}{{% endif %}}"),
        format!("{{% if state.{long_name} %}}{{% endif %}}"),
        format!("{{% set ns.{long_name} = 1 %}}"),
        format!("{{% set {long_name} = 1 %}}"),
        format!("{{% do dict({long_name}=1) %}}"),
        format!("{{% if {{'{long_name}': i}} %}}{{% endif %}}"),
        format!("{{% if m['{long_name}'] %}}{{% endif %}}"),
        format!("{{% if m | attr('{long_name}') %}}{{% endif %}}"),
        format!("{{% if x == '{long_name}' %}}{{% endif %}}"),
        format!("{{% if '{long_name}' in m %}}{{% endif %}}"),
        format!("{{% if x in ['{long_name}', 'b'] %}}{{% endif %}}"),
        format!("{{% for c in '{long_name}' %}}{{% break %}}{{% endfor %}}"),
        format!("{{% if '{long_name}'.x %}}{{% endif %}}"),
    ] {
        let before = "{% set m = {'a': 1} %}{% set ns = namespace(a=1) %}{% set x = 'a' * 900000 %}";
        let source = format!("{before}{{% for i in range(100000) %}}{body}{{% endfor %}}");
        let label = body.replace(&long_name, "LONG");
        let error = render_bounded(&context, &source).expect_err(&label);
        assert_eq!(error.code(), Some("limit_exceeded"), "{label}: {error}");
    }
}
