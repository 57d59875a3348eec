//! Conditions on values of different types, and answers of `ai_ask` with a type (S-011).

use serde_json::{Value, json};
use tambour::options::{Language, Texts};
use tambour_prompt::dialogue::{DialogueRequest, DialogueStatus};

use super::{TestDialogue, ask_reply, script_with_actions, variable};

/// Evaluates a condition on the variable `v`; returns whether the action runs, and the notices.
fn evaluate(condition: &str, value: &Value) -> (bool, Vec<String>) {
    let action = json!({"type": "ai_say", "content": "x", "condition": condition});
    let variables = json!({ "v": value }).as_object().cloned().expect("an object");
    let mut talk = TestDialogue::with_variables(&script_with_actions(&[&action.to_string()]), variables);
    talk.settings.texts = Texts::from_language(Language::En);
    let mut dialogue = talk.dialogue.clone();
    dialogue.input(None, &talk.env()).expect("it waits");
    let is_called = matches!(dialogue.next(&talk.env()), DialogueRequest::Call(_));
    talk.dialogue = dialogue;
    let notices = talk.dialogue.turn(&talk.script).notices;
    (is_called, notices.into_iter().map(|notice| notice.message).collect())
}

#[test]
fn values_of_one_type_are_compared_and_texts_that_are_numbers_with_numbers() {
    for (condition, value, expected) in [
        ("v > 17", json!(18), true),
        ("v > 17", json!(17.5), true),
        ("v > 17", json!("15"), false),
        ("v > 17", json!(" 18 "), true),
        ("v > 17", json!("１８"), true),
        ("17 < v", json!("+18.0"), true),
        ("v >= 17 and v <= 20", json!("1.8e1"), true),
        ("17 < v < 20", json!("18"), true),
        ("17 < v < 20", json!("21"), false),
        ("v == 5", json!("5"), true),
        ("v == '5'", json!(5), true),
        ("v != 5", json!("6"), true),
        ("v is gt(17)", json!("18"), true),
        ("v == 'calm'", json!("calm"), true),
        ("v < 'b'", json!("a"), true),
        ("v == [1]", json!([1]), true),
        ("v == true", json!(true), true),
        ("v in [1, 2]", json!("2"), true),
        ("v in ['a', 'b']", json!("b"), true),
        ("v not in ['a', 3]", json!("c"), true),
        // Comparison with `none`, and with a missing value, is allowed for all types.
        ("v == none", json!(null), true),
        ("v == none", json!("x"), false),
        ("v != none", json!([1]), true),
        ("v != 'sad'", json!(null), true),
        ("v is none or v > 3", json!(null), true),
        ("v is number and v > 3", json!("x"), false),
    ] {
        let (is_met, notices) = evaluate(condition, &value);
        assert_eq!((is_met, notices.len()), (expected, 0), "{condition} with {value}: {notices:?}"); // S-011
    }
}

#[test]
fn values_of_different_types_are_not_compared() {
    for (condition, value, expected) in [
        ("v > 17", json!([18]), "`>` compares a list with a number"),
        ("v > 17", json!({"age": 18}), "`>` compares a map with a number"),
        ("v > 17", json!("18岁"), "`>` compares a text that is not a number with a number"),
        ("v > 17", json!("18, 19"), "`>` compares a text that is not a number with a number"),
        ("v < 5", json!(null), "`<` compares nothing (`none`) with a number"),
        ("not (v < 5)", json!(null), "`<` compares nothing (`none`) with a number"),
        ("v < 5 or true", json!(null), "`<` compares nothing (`none`) with a number"),
        ("v == 5", json!("five"), "`==` compares a text that is not a number with a number"),
        ("v != 5", json!("five"), "`!=` compares a text that is not a number with a number"),
        ("v == 'yes'", json!(true), "`==` compares true or false with a text"),
        ("v > 0", json!(true), "`>` compares true or false with a number"),
        ("1 < v < 5", json!([3]), "`<` compares a number with a list"),
        ("v is lt(5)", json!([3]), "`<` compares a list with a number"),
    ] {
        let (is_met, notices) = evaluate(condition, &value);
        assert!(!is_met, "{condition} with {value}"); // S-011
        assert_eq!(notices.len(), 1, "{condition} with {value}: {notices:?}"); // S-011
        assert!(notices[0].contains(expected), "{condition} with {value}: {notices:?}");
    }
}

#[test]
fn what_is_written_as_elsewhere_has_a_remedy() {
    for (condition, expected) in [
        ("v = 5", "write `==` to compare, not `=`"),
        ("v == 5 && v > 3", "write `and` for `&&`"),
        ("v == 5 || v > 3", "write `or` for `||`"),
        ("!v", "write `not` for `!`"),
        ("v > 3 AND v < 9", "write `and` for `AND`"),
        ("v > 3 且 v < 9", "write `and` for `且`"),
        ("{v} > 3", "a variable has no braces: `v`"),
        ("{{ v }} > 3", "a variable has no braces: `v`"),
        ("v => 3", "write `>=` for `=>`"),
        ("v ≥ 3", "write `>=` for `≥`"),
        ("v == “a”", "write `\"` for `“`"),
        ("v == null", "write `none` instead"),
    ] {
        let (is_met, notices) = evaluate(condition, &json!(5));
        assert!(!is_met && notices.len() == 1, "{condition}: {notices:?}"); // S-011
        assert!(notices[0].contains(expected), "{condition}: {notices:?}");
        assert_eq!(notices[0].matches(expected).count(), 1, "{condition}: {notices:?}");
    }
}

fn ask_action(answer: &str) -> String {
    format!("{{type: ai_ask, question: 多大？, variable: v, answer: {answer}}}")
}

/// Returns the stored value if the model gives `value` as the answer.
fn stored_value(answer: &str, value: &Value) -> Option<Value> {
    let mut talk = TestDialogue::new(&script_with_actions(&[&ask_action(answer)]));
    let reply = || ask_reply(value, true, "谢谢");
    let mut dialogue = talk.dialogue.clone();
    dialogue.input(Some("答"), &talk.env()).expect("it waits");
    for _ in 0..2 {
        let DialogueRequest::Call(call) = dialogue.next(&talk.env()) else { break };
        let super::ModelReaction::Reply(text) = reply() else { panic!("it says something") };
        let parsed = super::read_reply(&call, &text, &tambour::InputEnd::stop());
        dialogue.reply(&call, &parsed, &talk.env());
    }
    talk.dialogue = dialogue;
    (talk.dialogue.status() == DialogueStatus::Completed).then(|| variable(&talk, "v"))
}

#[test]
fn an_answer_is_kept_in_its_type() {
    for (answer, value, expected) in [
        ("text", json!("安"), json!("安")),
        ("text", json!(31), json!("31")),
        ("text", json!(["安"]), json!("安")),
        ("number", json!(31), json!(31)),
        ("number", json!("31"), json!(31)),
        ("number", json!("３１"), json!(31)),
        ("number", json!(31.0), json!(31)),
        ("number", json!(1.5), json!(1.5)),
        ("{type: number, min: 0, max: 120}", json!(120), json!(120)),
        ("boolean", json!(true), json!(true)),
        ("boolean", json!("是"), json!(true)),
        ("{type: choice, options: [红, 蓝]}", json!("蓝"), json!("蓝")),
        ("{options: [Red, Blue]}", json!("blue"), json!("Blue")),
        ("{type: choice, options: [1, 2]}", json!("2"), json!(2)),
        ("date", json!("2026-03-14"), json!("2026-03-14")),
        ("date", json!("2026年3月14日"), json!("2026-03-14")),
        ("date", json!("2026/3/4"), json!("2026-03-04")),
        ("date", json!("2026-03-14T10:00:00Z"), json!("2026-03-14")),
    ] {
        assert_eq!(stored_value(answer, &value), Some(expected), "{answer} {value}"); // S-011
    }
    for (answer, value) in [
        ("text", json!("...")),
        ("text", json!("……")),
        ("text", json!("多大")),
        ("text", json!("多大？")),
        ("text", json!("谢谢")),
        ("text", json!("<answer>")),
        ("text", json!("null")),
        ("number", json!("31岁")),
        ("number", json!("三十一")),
        ("number", json!(true)),
        ("number", json!([31, 32])),
        ("{type: number, min: 0, max: 120}", json!(121)),
        ("boolean", json!("maybe")),
        ("boolean", json!(1)),
        ("{type: choice, options: [红, 蓝]}", json!("绿")),
        ("date", json!("2026-02-30")),
        ("date", json!("tomorrow")),
        ("{type: date, min: 2026-01-01}", json!("2025-12-31")),
    ] {
        assert_eq!(stored_value(answer, &value), None, "{answer} {value}"); // S-011
    }
}

#[test]
fn an_answer_that_does_not_fit_is_asked_for_again_within_the_rounds() {
    let mut talk =
        TestDialogue::new(&script_with_actions(&[&ask_action("{type: number, min: 1, max: 120}")]));
    let turn = talk.input(None, &[ask_reply(&Value::Null, false, "你多大？")]);
    assert!(!turn.completed);
    assert!(
        talk.prompt().contains("value 必须是一个 JSON 数字") && talk.prompt().contains("在 1 到 120 之间")
    );
    // A reply that accepts the value all the same is not shown: the model is asked once more.
    let turn = talk.input(
        Some("三十左右"),
        &[ask_reply(&json!("三十左右"), true, "谢谢"), ask_reply(&Value::Null, false, "请给一个数字")],
    );
    assert_eq!((turn.completed, turn.ai_message.as_deref()), (false, Some("请给一个数字"))); // S-011
    assert!(talk.prompt().contains("不是这个问题的合格答案"), "{}", talk.prompt());
    let turn = talk.input(Some("31"), &[ask_reply(&json!("31"), true, "谢谢")]);
    assert_eq!((turn.completed, variable(&talk, "v")), (true, json!(31))); // S-011
    // With a model that keeps accepting it, the rounds end.
    let mut talk = TestDialogue::new(&script_with_actions(&[&ask_action("number")]));
    let wrong_reply = || ask_reply(&json!("三十左右"), true, "谢谢");
    for _ in 0..2 {
        assert!(!talk.input(Some("三十左右"), &[wrong_reply(), wrong_reply()]).completed);
    }
    assert!(talk.input(Some("三十左右"), &[wrong_reply(), wrong_reply()]).completed);
    assert_eq!(variable(&talk, "v"), Value::Null);
}

#[test]
fn a_question_with_a_type_has_a_schema() {
    let mut talk =
        TestDialogue::new(&script_with_actions(&[&ask_action("{type: choice, options: [红, 蓝]}")]));
    talk.input(None, &[ask_reply(&Value::Null, false, "哪个？")]);
    let schema = talk.calls[0].schema(&tambour::Options::default()).expect("it has one");
    assert_eq!(schema["properties"]["value"]["enum"], json!(["红", "蓝", null]));
    assert_eq!(schema["properties"]["response"]["required"], json!(["咨询师"]));
    let mut talk = TestDialogue::new(&script_with_actions(&[&ask_action("text")]));
    talk.input(None, &[ask_reply(&Value::Null, false, "谁？")]);
    assert_eq!(talk.calls[0].schema(&tambour::Options::default()), None);
}
