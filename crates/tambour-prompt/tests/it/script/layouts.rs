//! The flat layout, and the types of values.

use serde_json::json;
use tambour_prompt::script::ScriptActionKind;

use super::{first_action, load_text, load_valid, script_with_action};

/// Script in the layout used in practice.
const FLAT: &str = "
metadata: {name: demo, version: \"1.0\"}
session:
  session_id: first
  session_name: 介绍
  phases:
    - phase_id: p1
      phase_name: 开场
      phase_goal: greet
      topics:
        - topic_id: t1
          topic_name: ABC模型
          declare: []
          actions:
            - action_type: ai_say
              action_id: say_1
              condition: level > 1
              config:
                content_template: A → B → C
                max_rounds: 3
                tone: warm
            - action_type: ai_ask
              action_id: ask_1
              config:
                question_template: 怎么称呼？
                target_variable: user_name
                required: true
            - action_type: ai_ask
              action_id: ask_2
              config: {content: 多大？, output: [{get: age, define: years}]}
            - action_type: ai_think
              action_id: think_1
              config: {think_goal: sum up, output_variables: [sum]}
";

#[test]
fn the_flat_layout_gives_the_same_model() {
    let flat = load_valid(FLAT);
    let session = &flat.sessions[0];
    assert_eq!(session.session, "介绍"); // S-013
    assert_eq!(
        (session.phases[0].phase.as_str(), session.phases[0].steps[0].topic.as_str()),
        ("开场", "ABC模型")
    ); // S-013
    let actions: Vec<_> = flat.actions().collect();
    let nested =
        first_action(&load_valid(&script_with_action("{type: ai_say, content: A → B → C, max_rounds: 3}")));
    assert_eq!(actions[0].kind, nested.kind); // S-013
    assert_eq!(actions[0].condition.as_deref(), Some("level > 1")); // S-013
    assert_eq!(actions[0].action_id.as_deref(), Some("say_1")); // S-013
    assert_eq!(actions[0].unknown_fields["tone"], json!("warm")); // S-013
    let ScriptActionKind::Ask(ask) = &actions[1].kind else { panic!("an ask") };
    assert_eq!(
        (ask.question.as_deref(), ask.variable.as_deref(), ask.required),
        (Some("怎么称呼？"), Some("user_name"), true)
    ); // S-013
    let ScriptActionKind::Ask(ask) = &actions[2].kind else { panic!("an ask") };
    assert_eq!((ask.question.as_deref(), ask.variable.as_deref()), (Some("多大？"), Some("age"))); // S-013
    let ScriptActionKind::Think(think) = &actions[3].kind else { panic!("a think") };
    assert_eq!(think.output, [("sum".to_owned(), String::new())]); // S-013
}

#[test]
fn faults_of_the_flat_layout_have_their_paths() {
    let text =
        FLAT.replace("max_rounds: 3", "max_rounds: 33").replace("phase_goal", "steps: []\n      phase_gaol");
    let problems = load_text(&text).problems;
    let paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
    let path = "session.phases[0].topics[0].actions[0].config.max_rounds";
    assert!(paths.contains(&"session.phases[0].phase_gaol") || paths.contains(&path), "{paths:?}"); // S-013
    let text = FLAT.replace("max_rounds: 3", "max_rounds: 33");
    assert_eq!(load_text(&text).problems[0].path, path); // S-013
}

#[test]
fn values_are_what_they_look_like() {
    let text = "
sessions:
  - session: s
    phases: []
    declare:
      - {var: a, value: no}
      - {var: b, value: 017}
      - {var: c, value: \"5\"}
      - {var: d, value: 1_000}
      - {var: e, value: [1, 2.5, true, {x: y}]}
      - {var: f, value: ~}
      - {var: g}
      - {var: h, value: 2024-01-20}
";
    let script = load_valid(text);
    let values: Vec<_> = script.sessions[0].declare.iter().map(|variable| variable.value.clone()).collect();
    let list = json!([1, 2.5, true, {"x": "y"}]);
    let expected = [
        json!("no"),
        json!("017"),
        json!("5"),
        json!("1_000"),
        list,
        json!(null),
        json!(null),
        json!("2024-01-20"),
    ];
    assert_eq!(values, expected); // S-002
}
