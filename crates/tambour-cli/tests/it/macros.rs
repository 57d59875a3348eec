//! `tambour macros` and `tambour prompt vars`.

use serde_json::{Value, json};

use crate::{new_folder, run, write_file};

#[test]
fn migrates_and_tells_what_it_does_not_know() {
    // F-030, F-031
    let ran = run(&["macros", "migrate"], "{{User}} rolls {{roll:2d6}}\n{{foo::bar}}\n");
    assert_eq!(ran.code, Some(0));
    assert_eq!(ran.stdout, "{{ user }} rolls {{ roll('2d6') }}\n{% raw %}{{foo::bar}}{% endraw %}\n");
    assert_eq!(
        ran.stderr,
        "standard input:2:1: warning: macro_unknown: unknown macro `foo`; it stays as text\n"
    );
    // The message names the unknown filter, not the name before it; an unclosed block is reported.
    let ran = run(&["macros", "migrate"], "{{ user | nofilter }}");
    assert!(ran.stderr.contains("unknown filter `nofilter`"), "{}", ran.stderr);
    let ran = run(&["macros", "migrate"], "a\n{% if x %}abc");
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "a\n{% raw %}{%{% endraw %} if x %}abc"));
    assert!(ran.stderr.starts_with("standard input:2:1: warning: jinja_invalid: "), "{}", ran.stderr);
    let ran = run(&["macros", "migrate"], "{{User}} rolls {{roll:2d6}}\n{{foo::bar}}\n");
    let second_run = run(&["macros", "migrate", "-"], &ran.stdout);
    assert_eq!((second_run.stdout, second_run.stderr.as_str()), (ran.stdout, ""));
}

#[test]
fn reports_rows() {
    // F-032
    let path = write_file(&new_folder("macros-report"), "card.txt", "{{user}}{{user}}{{x::y}}");
    let ran = run(&["macros", "migrate", &path, "--report"], "");
    let report: Value = serde_json::from_str(ran.stderr.lines().last().unwrap_or_default()).expect("JSON");
    assert_eq!(report, json!({"translated": 2, "left": 1, "rules": {"M-001": 2}}));
}

#[test]
fn renders_with_a_context() {
    let folder = new_folder("macros-render");
    let context =
        json!({"user": "Tom", "global_state": {"g": 1}, "seed": 1, "now": "2026-03-14T15:09:00+08:00"});
    let context = write_file(&folder, "context.json", context.to_string());
    let text = "{{user}} {{setvar::a::b}}{{getvar::a}} {{time}} {{incglobalvar::g}}{{banned \"w\"}} {{zz}}\n";
    let ran = run(&["macros", "render", "--context", &context], text);
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "Tom b 3:09 PM 2 {{zz}}\n"));
    assert!(ran.stderr.contains("macro_unknown") && ran.stderr.contains("set_global"), "{}", ran.stderr);
    let ran = run(&["macros", "render", "--context", &context, "--json", "-"], text);
    let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(report["text"], "Tom b 3:09 PM 2 {{zz}}\n");
    // F-023, F-035
    let effects = json!([{"kind": "set_global", "name": "g", "value": 2}, {"kind": "banned", "word": "w"}]);
    assert_eq!(report["effects"], effects);
    assert_eq!((&report["local"], &report["global"]), (&json!({"a": "b"}), &json!({"g": 2})));
    let codes: Vec<&Value> =
        report["warnings"].as_array().into_iter().flatten().map(|warning| &warning["code"]).collect();
    assert_eq!(codes, ["word_banned", "macro_unknown"]);
    let rolls = "{{roll:1d1000}} {{random::a::b::c}}";
    let first = run(&["macros", "render", "--context", &context], rolls).stdout;
    assert_eq!(run(&["macros", "render", "--context", &context], rolls).stdout, first);
}

#[test]
fn what_cannot_be_rendered_is_refused_with_its_line() {
    // F-025
    let context = write_file(&new_folder("macros-refused"), "context.json", "{}");
    let ran = run(&["macros", "render", "--context", &context], "a\n{{ 1 + 'x' }}\n");
    assert_eq!((ran.code, &*ran.stdout), (Some(1), ""));
    assert!(
        ran.stderr.contains("line 2, column 4") && ran.stderr.contains("{{ 1 + 'x' }}"),
        "{}",
        ran.stderr
    );
    assert_eq!(run(&["macros", "render", "--context", "no/such"], "").code, Some(2));
    assert_eq!(run(&["macros", "render", "--context", "-"], "").code, Some(2));
    assert_eq!(run(&["macros", "render"], "").code, Some(2));
    assert_eq!(run(&["macros", "migrate", "no/such"], "").code, Some(2));
    let wrong = write_file(&new_folder("macros-wrong"), "context.json", "{\"history\": 1}");
    let ran = run(&["macros", "render", "--context", &wrong], "");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("`history` of a context"), "{}", ran.stderr);
}

#[test]
fn lists_variables() {
    // S-043
    let folder = new_folder("prompt-vars");
    let template = write_file(&folder, "t.md", "{年龄} {%time%} {%nothing%}\n{未定义} {\"a\": 1} {年龄}");
    let script = write_file(
        &folder,
        "s.yaml",
        "sessions:\n  - session: a\n    declare:\n      - var: 年龄\n        value: 30\n      - var: 多余\n        value: 1\n      \
         - var: 用户名\n        value: b\n    phases:\n      - phase: p\n        steps:\n          - topic: t\n            actions:\n              \
         - type: ai_say\n                content: \"{内容} {年龄}\"\n",
    );
    let ran = run(&["prompt", "vars", &template, &script], "");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines: Vec<String> =
        ran.stdout.replace(&template, "T").replace(&script, "S").lines().map(str::to_owned).collect();
    assert_eq!(
        lines,
        [
            "T:1:1: used {年龄}",
            "T:1:6: used {%time%}",
            "T:1:15: used {%nothing%}",
            "T:2:1: used {未定义}",
            "S:16:27: used {内容}",
            "S:16:32: used {年龄}",
            "T:1:15: undefined {%nothing%}",
            "T:2:1: undefined {未定义}",
            "S:16:27: undefined {内容}",
            "S:6:14: unused 多余",
        ]
    );
    // Variables set by actions, and used by conditions and shipped templates; the flat layout.
    let flat = write_file(
        &folder,
        "f.yaml",
        "session:\n  session_name: a\n  declare:\n    - {var: mood}\n    - {var: 教育背景}\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions:\n            \
         - {type: ai_think, prompt: x, output: {伤病: y}}\n            - {type: ai_say, content: \"{伤病} {gone}\", condition: \"mood == 1\"}\n",
    );
    let ran = run(&["prompt", "vars", &flat], "");
    let lines: Vec<&str> =
        ran.stdout.lines().filter_map(|line| line.split_once(": ").map(|(_, rest)| rest)).collect();
    assert_eq!(lines, ["used {伤病}", "used {gone}", "used {mood}", "undefined {gone}"], "{}", ran.stdout); // S-013, S-043
    // Other fields that set a variable, and those that the dialogue sets.
    let outputs = write_file(
        &folder,
        "o.yaml",
        "session:\n  session_name: a\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions:\n            \
         - {type: ai_ask, question: x, extract_to: a1}\n            - {type: ai_think, prompt: x, output_variables: {a2: y}}\n            \
         - {type: ai_think, prompt: x, output: [a3, {get: a4, define: y}]}\n            \
         - {type: ai_say, content: \"{a1} {a2} {a3} {a4} {define} {output_fields}\"}\n",
    );
    let ran = run(&["prompt", "vars", &outputs], "");
    let undefined: Vec<&str> = ran.stdout.lines().filter(|line| line.contains("undefined")).collect();
    assert_eq!(undefined.len(), 1, "{}", ran.stdout); // S-011, S-013
    assert!(undefined[0].ends_with("{define}"), "{undefined:?}");
    let skein = write_file(
        &folder,
        "k.yaml",
        "metadata: {place: x}\nblocks:\n  - {tag: a, text: \"{% set q = 1 %}{{ user }} {{ place }} {{ other.x }}\"}\n  - {tag: b, text: \"{{ q }}\"}\n",
    );
    let ran = run(&["prompt", "vars", &skein], "");
    let undefined: Vec<&str> = ran.stdout.lines().filter(|line| line.contains("undefined")).collect();
    assert_eq!(undefined.len(), 1, "{}", ran.stdout);
    assert!(undefined[0].ends_with("{{ other.x }}"), "{undefined:?}");
    assert_eq!(run(&["prompt", "vars"], "").code, Some(2));
    assert_eq!(run(&["prompt", "vars", "no/such"], "").code, Some(2));
    let broken = write_file(&folder, "b.yaml", "a: [");
    assert_eq!(run(&["prompt", "vars", &broken], "").code, Some(1));
}
