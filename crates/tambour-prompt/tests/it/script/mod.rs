//! Scripts: loading, problems, and edits.

mod editing;
mod layouts;

use serde_json::{Value, json};
use tambour::exit::ExitCriteria;
use tambour::limits::Limits;
use tambour_prompt::script::{
    LoadedScript, SayAction, Script, ScriptAction, ScriptActionKind, ScriptProblem, load,
};

/// Script of the specification.
pub(super) const EXAMPLE: &str = include_str!("../../../../../examples/abc-model/script.yaml");

pub(super) fn load_text(text: &str) -> LoadedScript {
    load(text, &Limits::default())
}

/// Loads a script; fails if it has problems.
pub(super) fn load_valid(text: &str) -> Script {
    let loaded = load_text(text);
    assert_eq!(loaded.problems, [], "{text}");
    loaded.script.expect("it has no errors")
}

/// Builds a script with one action, in flow style.
pub(super) fn script_with_action(action: &str) -> String {
    format!(
        "sessions:\n  - session: s\n    phases:\n      - phase: p\n        steps:\n          - topic: t\n            \
         actions:\n              - {action}\n"
    )
}

fn say(text: &str) -> SayAction {
    match first_action(&load_valid(&script_with_action(text))).kind {
        ScriptActionKind::Say(say) => say,
        other => panic!("{other:?}"),
    }
}

pub(super) fn first_action(script: &Script) -> ScriptAction {
    script.actions().next().expect("it has an action").clone()
}

/// Problems as `PATH LINE:COLUMN CODE ROW`.
pub(super) fn problem_lines(problems: &[ScriptProblem]) -> Vec<String> {
    let line = |problem: &ScriptProblem| {
        let finding = problem.finding();
        format!("{} {}:{} {} {}", problem.path, finding.line, finding.column, finding.code, finding.rule)
    };
    problems.iter().map(line).collect()
}

fn action_problems(action: &str) -> Vec<String> {
    let loaded = load_text(&script_with_action(action));
    let path = "sessions[0].phases[0].steps[0].actions[0]";
    problem_lines(&loaded.problems).into_iter().map(|line| line.replacen(path, "@", 1)).collect()
}

#[test]
fn the_script_of_the_specification_loads() {
    let script = load_valid(EXAMPLE);
    let session = &script.sessions[0];
    assert_eq!(session.session, "ABC模型介绍"); // S-001
    let variables: Vec<(&str, &Value)> =
        session.declare.iter().map(|variables| (variables.var.as_str(), &variables.value)).collect();
    assert_eq!(variables[0], ("教育背景", &json!("本科"))); // S-002
    assert_eq!(variables.len(), 5); // S-002
    assert_eq!(session.phases[0].phase, "概念介绍"); // S-001
    assert_eq!(session.phases[0].steps[0].topic, "ABC模型核心概念"); // S-001
    let action = first_action(&script);
    assert_eq!(action.type_name(), "ai_say"); // S-003
    let ScriptActionKind::Say(say) = action.kind else { panic!("{:?}", action.kind) };
    assert!(say.content.starts_with("ABC模型是CBT的核心概念，包括三个部分：\n- A")); // S-004
    assert!(say.content.contains("【讲解要点】\n1. 先整体介绍ABC三个要素")); // S-004
    assert!(!say.require_acknowledgment); // S-005
    assert_eq!(say.max_rounds, 5); // S-006
    assert_eq!(say.exit_criteria, ExitCriteria::default()); // S-007, S-008, S-009
}

#[test]
fn fields_have_their_defaults() {
    let minimal = say("{type: ai_say, content: x}");
    assert!(minimal.require_acknowledgment); // S-005
    assert_eq!(minimal.max_rounds, 5); // S-006
    assert_eq!(minimal.exit_criteria.understanding_threshold(), 80.0); // S-008
    assert!(!minimal.exit_criteria.allows_questions()); // S-009
    assert_eq!(minimal.exit_criteria.expressed_threshold(), Some(70.0)); // S-083
    let custom =
        say("{type: ai_say, content: x, exit_criteria: {understanding_threshold: 0, has_questions: true}}");
    assert_eq!(custom.exit_criteria.understanding_threshold(), 0.0); // S-008
    assert!(custom.exit_criteria.allows_questions()); // S-009
    let without_threshold = say("{type: ai_say, content: x, exit_criteria: {expressed_threshold: null}}");
    assert_eq!(without_threshold.exit_criteria.expressed_threshold(), None); // S-083
    for rounds in [1, 20] {
        assert_eq!(say(&format!("{{type: ai_say, content: x, max_rounds: {rounds}}}")).max_rounds, rounds); // S-006
    }
}

#[test]
fn wrong_fields_are_errors_with_their_places() {
    for (action, expected) in [
        ("{content: x}", "@.type 8:17 field_missing S-003"), // S-003
        ("{type: 3, content: x}", "@.type 8:24 field_type S-003"), // S-003
        ("{type: ai_sya, content: x}", "@.type 8:24 action_unknown S-003"), // S-003
        ("{type: ai_say}", "@.content 8:17 content_required S-004"), // S-004
        ("{type: ai_say, content: \"\"}", "@.content 8:41 content_required S-004"), // S-004
        ("{type: ai_say, content: \" \"}", "@.content 8:41 content_required S-004"), // S-004
        ("{type: ai_say, content: [x]}", "@.content 8:41 content_required S-004"), // S-004
        (
            "{type: ai_say, content: x, require_acknowledgment: \"yes\"}",
            "@.require_acknowledgment 8:68 field_type S-005",
        ),
        (
            "{type: ai_say, content: x, require_acknowledgment: yes}",
            "@.require_acknowledgment 8:68 field_type S-005",
        ),
        ("{type: ai_say, content: x, max_rounds: 0}", "@.max_rounds 8:56 field_range S-006"), // S-006
        ("{type: ai_say, content: x, max_rounds: -1}", "@.max_rounds 8:56 field_range S-006"), // S-006
        ("{type: ai_say, content: x, max_rounds: 21}", "@.max_rounds 8:56 field_range S-006"), // S-006
        ("{type: ai_say, content: x, max_rounds: 2.5}", "@.max_rounds 8:56 field_type S-006"), // S-006
        ("{type: ai_say, content: x, max_rounds: \"5\"}", "@.max_rounds 8:56 field_type S-006"), // S-006
        ("{type: ai_say, content: x, exit_criteria: [80]}", "@.exit_criteria 8:59 field_type S-007"), // S-007
        (
            "{type: ai_say, content: x, exit_criteria: {understanding_threshold: -1}}",
            "@.exit_criteria.understanding_threshold 8:85 field_range S-008", // S-008
        ),
        (
            "{type: ai_say, content: x, exit_criteria: {understanding_threshold: 101}}",
            "@.exit_criteria.understanding_threshold 8:85 field_range S-008", // S-008
        ),
        (
            "{type: ai_say, content: x, exit_criteria: {has_questions: \"no\"}}",
            "@.exit_criteria.has_questions 8:75 field_type S-009", // S-009
        ),
        (
            "{type: ai_say, content: x, exit_criteria: {expressed_threshold: 101}}",
            "@.exit_criteria.expressed_threshold 8:81 field_range S-083", // S-083
        ),
    ] {
        assert_eq!(action_problems(action), [expected], "{action}"); // S-003, S-004, S-005, S-006, S-007, S-008, S-009
        let loaded = load_text(&script_with_action(action));
        assert_eq!(loaded.script, None, "{action}"); // S-006: never silently the default
    }
}

#[test]
fn wrong_structure_is_told() {
    let problems_of = |text: &str| problem_lines(&load_text(text).problems);
    assert_eq!(problems_of("sessions: {}\n"), ["sessions 1:11 field_type S-001"]); // S-001
    assert_eq!(problems_of("sessions: []\n"), ["sessions 1:1 field_missing S-001"]); // S-001
    assert_eq!(problems_of("- a\n"), [" 1:1 field_type S-001"]); // S-001
    assert_eq!(problems_of(""), [" 1:1 field_type S-001"]); // S-001
    assert_eq!(
        problems_of("sessions:\n  - session: s\n    phases:\n      - phase: p\n"),
        ["sessions[0].phases[0].steps 4:9 field_missing S-001"] // S-001
    );
    assert_eq!(
        problems_of("sessions:\n  - phases: [{phase: p, steps: [{actions: []}]}]\n"),
        [
            "sessions[0].session 2:5 field_missing S-001",
            "sessions[0].phases[0].steps[0].topic 2:33 field_missing S-001"
        ] // S-001
    );
    let declare =
        "sessions:\n  - session: s\n    phases: []\n    declare:\n      - value: 1\n      - var: [a]\n";
    assert_eq!(
        problems_of(declare),
        [
            "sessions[0].declare[0].var 5:9 field_missing S-002", // S-002
            "sessions[0].declare[1].var 6:14 field_type S-002"    // S-002
        ]
    );
}

#[test]
fn all_errors_come_at_once_in_the_order_of_the_text() {
    let text = "sessions:\n  - session: s\n    phases:\n      - phase: p\n        steps:\n          - topic: t\n            \
                actions:\n              - type: ai_say\n                max_rounds: 99\n              \
                - type: ai_nothing\n              - {type: ai_say, content: x, exit_criteria: 3}\n  - session: s\n";
    assert_eq!(
        problem_lines(&load_text(text).problems),
        [
            "sessions[0].phases[0].steps[0].actions[0].content 8:17 content_required S-004",
            "sessions[0].phases[0].steps[0].actions[0].max_rounds 9:29 field_range S-006",
            "sessions[0].phases[0].steps[0].actions[1].type 10:23 action_unknown S-003",
            "sessions[0].phases[0].steps[0].actions[2].exit_criteria 11:59 field_type S-007",
            "sessions[1].phases 12:5 field_missing S-001",
            "sessions[1].session 12:5 name_twice S-001",
        ]
    );
}

#[test]
fn the_older_key_is_read_when_there_is_no_content() {
    assert_eq!(say("{type: ai_say, ai_say: old}").content, "old"); // S-010
    let loaded = load_text(&script_with_action("{type: ai_say, ai_say: old, content: new}"));
    assert_eq!(problem_lines(&loaded.problems)[0].split(' ').nth(2), Some("content_twice")); // S-010
    assert!(!loaded.problems[0].is_error()); // S-010
    let ScriptActionKind::Say(say) = first_action(&loaded.script.expect("a warning only")).kind else {
        panic!("a say")
    };
    assert_eq!(say.content, "new"); // S-010
}

#[test]
fn other_actions_load_and_are_kept() {
    let ask = load_valid(&script_with_action(
        "{type: ai_ask, question: Who?, variable: name, required: true, condition: a > 1}",
    ));
    let ask = first_action(&ask);
    assert_eq!(ask.condition.as_deref(), Some("a > 1")); // S-011
    let ScriptActionKind::Ask(ask) = ask.kind else { panic!("an ask") };
    assert_eq!((ask.question.as_deref(), ask.variable.as_deref()), (Some("Who?"), Some("name"))); // S-011
    assert_eq!((ask.max_rounds, ask.required), (3, true)); // S-011
    let think = first_action(&load_valid(&script_with_action(
        "{type: ai_think, prompt: Why?, output: {mood: a word}}",
    )));
    let ScriptActionKind::Think(think) = think.kind else { panic!("a think") };
    assert_eq!(think.output, [("mood".to_owned(), "a word".to_owned())]); // S-011
    for (name, fields) in
        [("use_skill", "skill: breathing"), ("show_form", "form: {a: 1}"), ("show_pic", "src: a.png")]
    {
        let action = first_action(&load_valid(&script_with_action(&format!(
            "{{type: {name}, {fields}, variable: v}}"
        ))));
        assert_eq!(action.type_name(), name); // S-011
        let ScriptActionKind::Client(client) = action.kind else { panic!("a client's") };
        assert_eq!((client.variable.as_deref(), client.fields.len()), (Some("v"), 1)); // S-011
    }
}

#[test]
fn incomplete_actions_load_with_a_warning() {
    for (action, missing) in [
        ("{type: ai_ask}", vec!["question", "variable"]),
        ("{type: ai_think}", vec!["prompt", "output"]),
        ("{type: ai_think, prompt: Why?}", vec!["output"]),
    ] {
        let loaded = load_text(&script_with_action(action));
        let expected: Vec<String> =
            missing.iter().map(|name| format!("@.{name} 8:17 action_incomplete S-011")).collect();
        assert_eq!(action_problems(action), expected); // S-011
        assert!(loaded.script.is_some(), "{action}"); // S-011
    }
}

#[test]
fn unknown_fields_are_kept_and_told_with_close_names() {
    let text = script_with_action("{type: ai_say, content: x, max_round: 3, mood: {calm: [1]}}");
    let loaded = load_text(&text);
    assert_eq!(
        action_problems("{type: ai_say, content: x, max_round: 3, mood: {calm: [1]}}"),
        ["@.max_round 8:44 field_unknown S-012", "@.mood 8:58 field_unknown S-012"] // S-012
    );
    assert!(loaded.problems[0].report.message.contains("did you mean `max_rounds`?")); // S-012
    let action = first_action(&loaded.script.expect("warnings only"));
    assert_eq!(Value::Object(action.unknown_fields), json!({"max_round": 3, "mood": {"calm": [1]}})); // S-012
}

#[test]
fn yaml_that_is_none_is_told_with_its_place() {
    for (text, line, message) in [
        ("sessions: [\n", 1, ""),
        ("sessions: &a []\nmore: *a\n", 1, "anchors"),
        ("sessions: []\nsessions: []\n", 2, "uplicate"),
        ("a: 1\n---\nb: 2\n", 0, ""),
        ("sessions: !python/object []\n", 1, ""),
        ("sessions:\n  - session: \"s\"\n \tphases: []\n", 3, "with spaces, not tabs"),
    ] {
        let loaded = load_text(text);
        let finding = loaded.problems[0].finding();
        assert_eq!(finding.code, "yaml_invalid", "{text}: {finding:?}"); // S-001
        assert!(finding.message.contains(message), "{text}: {finding:?}");
        assert!(line == 0 || finding.line == line, "{text}: {finding:?}");
        assert_eq!(loaded.script, None);
    }
}

#[test]
fn hostile_scripts_are_refused_soon() {
    let bomb = format!("a: &a [{}]\n", "*a,".repeat(1000));
    let deep = "[".repeat(100_000);
    let deep_block: String = (0..2000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    let wide = format!("sessions: [{}]", "1,".repeat(200_000));
    for text in [bomb, deep, deep_block, wide] {
        let loaded = load_text(&text);
        assert_eq!(loaded.script, None);
        assert_eq!(loaded.problems.len(), 1, "{:?}", loaded.problems.len());
    }
    let mut limits = Limits::default();
    limits.input = 10;
    assert_eq!(load("sessions: []\n", &limits).problems[0].finding().code, "limit_exceeded");
    let many = format!("sessions:\n{}", "  - 3\n".repeat(5000));
    assert_eq!(load_text(&many).problems.len(), Limits::default().findings);
}

#[test]
fn warnings_hide_no_error() {
    let warnings = "{type: ai_say, content: x, mood: 1, tone: 2, pace: 3}";
    let text = script_with_action(&format!("{warnings}\n              - {{type: ai_shout, content: x}}"));
    let mut limits = Limits::default();
    limits.findings = 2;
    let loaded = load(&text, &limits);
    assert_eq!(loaded.script, None); // S-003
    let codes: Vec<_> = loaded.problems.iter().map(|problem| problem.finding().code).collect();
    assert_eq!(codes, ["field_unknown", "action_unknown"]); // S-003, S-012
    limits.findings = 0;
    let loaded = load(&text, &limits);
    assert_eq!((loaded.script, loaded.problems.len()), (None, 1)); // S-003
}

#[test]
fn places_count_characters() {
    let text = "sessions:\n  - session: 介绍\n    阶段: []\n    phases: [{phase: 一, steps: 三}]\n";
    assert_eq!(
        problem_lines(&load_text(text).problems),
        ["sessions[0].阶段 3:5 field_unknown S-012", "sessions[0].phases[0].steps 4:32 field_type S-001"]
    );
    let problem = &load_text(text).problems[1];
    let span = problem.finding().span;
    assert_eq!(&text[span.start..span.end], "三");
}
