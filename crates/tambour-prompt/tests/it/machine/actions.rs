//! Actions other than `ai_say`, conditions, and hooks.

use serde_json::{Value, json};
use tambour::event::Extension;
use tambour::{Finding, Options};
use tambour_prompt::dialogue::{
    Dialogue, DialogueRequest, DialogueStatus, HookContext, HookProposal, Hooks, InputRefusal, ModelCall,
    ModelReply, ReplyEffect, read_ask, read_think,
};

use super::{
    ModelReaction, TestDialogue, ask_reply, continuing_reply, script_with_actions, understood_reply, variable,
};

const ASK: &str = "{type: ai_ask, question: \"多大，{用户名}？\", variable: age}";
const SAY_ONCE: &str = "{type: ai_say, content: x, max_rounds: 1, require_acknowledgment: false}";

#[test]
fn a_question_is_asked_until_its_answer_is_known() {
    let mut talk = TestDialogue::new(&script_with_actions(&[ASK, SAY_ONCE]));
    let turn = talk.input(None, &[ask_reply(&Value::Null, false, "你多大？")]);
    assert!(talk.prompt().contains("【要问的问题】\n多大，小明？\n")); // S-011, S-036
    assert_eq!(
        (turn.completed, turn.status, turn.ai_message.as_deref()),
        (false, DialogueStatus::Active, Some("你多大？"))
    ); // S-011
    let turn = talk.input(Some("三十一"), &[ask_reply(&json!(31), true, "谢谢")]);
    assert_eq!((turn.completed, turn.continues), (true, true)); // S-011
    assert_eq!(variable(&talk, "age"), "31"); // S-011: a text where nothing else is asked for
    let turn = talk.input(None, &[continuing_reply("好")]);
    assert_eq!(turn.status, DialogueStatus::Completed);
}

#[test]
fn a_value_before_the_user_has_said_a_word_is_none() {
    let mut talk = TestDialogue::new(&script_with_actions(&[ASK, SAY_ONCE]));
    let turn = talk.input(None, &[ask_reply(&json!(31), true, "你三十一岁，对吗？")]);
    assert_eq!((turn.completed, variable(&talk, "age")), (false, json!(30)), "as declared"); // S-011
    let turn = talk.input(Some("对"), &[ask_reply(&json!(31), true, "谢谢")]);
    assert_eq!((turn.completed, variable(&talk, "age")), (true, json!("31"))); // S-011
}

#[test]
fn an_answer_that_breaks_off_before_its_message_is_asked_for_again() {
    let mut talk = TestDialogue::new(&script_with_actions(&[ASK]));
    let cut_reply = ModelReaction::CutReply(r#"{"usable": true, "value": "Alexand"#.to_owned());
    let turn = talk.input(Some("u"), &[cut_reply, ask_reply(&json!(31), true, "谢谢")]);
    assert_eq!((turn.ai_message.as_deref(), variable(&talk, "age")), (Some("谢谢"), json!("31"))); // S-054
    assert_eq!(talk.calls.len(), 2); // S-054
}

#[test]
fn an_optional_question_ends_with_null_and_a_required_one_fails() {
    let without_value = || ask_reply(&Value::Null, false, "请说");
    let mut talk = TestDialogue::new(&script_with_actions(&[ASK, SAY_ONCE]));
    talk.input(None, &[without_value()]);
    talk.input(Some("不说"), &[without_value()]);
    let turn = talk.input(Some("不说"), &[without_value()]);
    assert_eq!((turn.completed, variable(&talk, "age")), (true, Value::Null)); // S-011
    assert_eq!(
        turn.metadata.map(|metadata| (metadata.current_round, metadata.max_rounds)),
        Some((3, Some(3)))
    ); // S-011
    let required = "{type: ai_ask, question: q, variable: age, required: true, max_rounds: 1}";
    let mut talk = TestDialogue::new(&script_with_actions(&[required, SAY_ONCE]));
    let turn = talk.input(None, &[without_value()]);
    assert_eq!((turn.success, turn.completed, turn.status), (false, false, DialogueStatus::Failed)); // S-011
    assert_eq!(turn.error.map(|error| error.code.into_owned()).as_deref(), Some("answer_missing")); // S-011
    assert_eq!(turn.ai_message.as_deref(), Some("请说"));
    assert_eq!(talk.input(Some("三十"), &[]).status, DialogueStatus::Failed);
}

#[test]
fn a_value_counts_only_when_it_is_usable_and_there() {
    let read_text = |text: &str| {
        let (read, findings) = read_ask(text, &Options::default());
        let read = read.map(|answer| (answer.value, answer.message));
        let codes: Vec<String> = findings.iter().map(|finding: &Finding| finding.code.to_string()).collect();
        (read, codes)
    };
    let hello = || Some("好".to_owned());
    let some = |value: Value| Some((Some(value), hello()));
    let no_value = || Some((None, hello()));
    let codes = |codes: &[&str]| codes.iter().map(|code| (*code).to_owned()).collect::<Vec<_>>();
    for (text, expected, expected_codes) in [
        (r#"{"value": 3, "usable": true, "response": {"咨询师": "好"}}"#, some(json!(3)), codes(&[])),
        (r#"{"value": 3, "usable": false, "response": {"咨询师": "好"}}"#, no_value(), codes(&[])),
        (
            r#"{"value": 3, "usable": "是", "response": {"咨询师": "好"}}"#,
            some(json!(3)),
            codes(&["field_type"]),
        ),
        (r#"{"value": 3, "response": {"咨询师": "好"}}"#, no_value(), codes(&["field_missing"])),
        (
            r#"{"value": "", "usable": true, "response": {"咨询师": "好"}}"#,
            no_value(),
            codes(&["field_missing"]),
        ),
        (
            r#"{"value": [], "usable": true, "response": "好"}"#,
            some(json!([])),
            codes(&["response_not_object"]),
        ),
        (
            r#"{"value": 3, "usable": true, "response": {"coach": "好"}}"#,
            some(json!(3)),
            codes(&["role_key_unexpected"]),
        ),
        (r#"{"value": 3, "usable": true}"#, Some((Some(json!(3)), None)), codes(&["message_missing"])),
        ("你好", None, codes(&["unstructured"])),
        (r#"{"a": 1}"#, None, codes(&["unstructured"])),
    ] {
        assert_eq!(read_text(text), (expected, expected_codes), "{text}"); // S-011, S-052
    }
    // A truncated answer gives no value.
    let (read, _) = read_text(r#"{"response": {"咨询师": "好"}, "usable": true, "value": "北"#);
    assert_eq!(read, no_value()); // X-014
    let fenced = "```json\n{\"value\": 3, \"usable\": true, \"response\": {\"咨询师\": \"好\"}}\n```";
    assert_eq!(read_text(fenced).0, some(json!(3))); // S-053
}

#[test]
fn thinking_fills_variables_and_says_nothing() {
    let think = "{type: ai_think, prompt: \"怎么样，{用户名}？\", output: {mood: 一个词, age: }}";
    let mut talk = TestDialogue::new(&script_with_actions(&[think, SAY_ONCE]));
    let reply = ModelReaction::Reply("```json\n{\"mood\": \"平静\", \"extra\": 1}\n```".to_owned());
    let turn = talk.input(Some("你好"), &[reply, continuing_reply("好")]);
    assert!(talk.calls[0].messages[0].content.contains("怎么样，小明？")); // S-011
    assert!(talk.calls[0].messages[0].content.contains("- \"mood\": 一个词\n- \"age\"")); // S-011
    assert_eq!((variable(&talk, "mood"), variable(&talk, "age")), (json!("平静"), Value::Null)); // S-011
    assert_eq!(turn.ai_message.as_deref(), Some("好"));
    assert_eq!(turn.metadata.map(|metadata| metadata.action_type).as_deref(), Some("ai_say"));
    assert_eq!(talk.dialogue.history().len(), 2);
    let names = ["mood".to_owned(), "age".to_owned()];
    let (values, findings) = read_think("{\"mood\": 1}", &names, &Options::default());
    assert_eq!(values.map(serde_json::Value::Object), Some(json!({"mood": 1, "age": null})));
    assert_eq!(findings[0].code, "field_missing"); // S-011
}

#[test]
fn the_client_is_asked_and_waited_for() {
    let form =
        "{type: show_form, form: {title: \"{用户名}的表\", fields: [a, \"{%user%}\"]}, variable: filled}";
    let picture = "{type: show_pic, src: a.png}";
    let skill = "{type: use_skill, skill: breathing, variable: went}";
    let mut talk = TestDialogue::new(&script_with_actions(&[SAY_ONCE, form, picture, skill]));
    let turn = talk.input(None, &[continuing_reply("请填表")]);
    assert_eq!((turn.ai_message.as_deref(), turn.status), (Some("请填表"), DialogueStatus::AwaitingAnswer)); // S-011
    assert!(!turn.continues);
    let Extension::Form(form) = &talk.events[0] else { panic!("{:?}", talk.events) };
    assert_eq!(
        json!(form),
        json!({"call_id": "call_1", "form": {"title": "小明的表", "fields": ["a", "小明"]}})
    ); // S-011
    assert_eq!(talk.next(), DialogueRequest::Answer { call_id: "call_1".to_owned() });
    // The turn holds the request for clients that missed the event, also after it was saved.
    let saved: Dialogue = serde_json::from_value(json!(talk.dialogue)).unwrap();
    assert_eq!(
        json!(saved.turn(talk.env().script).request),
        json!({"event": "form", "data": {"call_id": "call_1", "form": {"title": "小明的表", "fields": ["a", "小明"]}}})
    ); // S-011
    let answer_on_copy = |talk: &mut TestDialogue<'_>, call_id: &str| {
        let mut dialogue = talk.dialogue.clone();
        dialogue.answer(call_id, json!(1), &talk.env())
    };
    assert_eq!(answer_on_copy(&mut talk, "call_2"), Err(InputRefusal::NotWaiting)); // S-011
    let mut dialogue = talk.dialogue.clone();
    let refusal = dialogue.input(Some("hello"), &talk.env());
    assert_eq!(refusal, Err(InputRefusal::AnswerExpected { call_id: "call_1".to_owned() }));
    let turn = talk.answer("call_1", json!({"a": 1}), &[]);
    assert_eq!(variable(&talk, "filled"), json!({"a": 1})); // S-011
    assert_eq!(turn.request.map(|request| request.data.call_id).as_deref(), Some("call_2"));
    assert_eq!(turn.status, DialogueStatus::AwaitingAnswer);
    assert!(matches!(talk.events[1], Extension::Picture(_)));
    talk.answer("call_2", Value::Null, &[]);
    let Extension::Skill(skill) = &talk.events[2] else { panic!("{:?}", talk.events) };
    assert_eq!(json!(skill), json!({"call_id": "call_3", "skill": "breathing"}));
    let turn = talk.answer("call_3", json!("well"), &[]);
    assert_eq!(
        (turn.completed, turn.status, variable(&talk, "went")),
        (true, DialogueStatus::Completed, json!("well"))
    );
    assert_eq!(turn.request, None);
    assert_eq!(answer_on_copy(&mut talk, "call_3"), Err(InputRefusal::NotWaiting));
}

#[test]
fn what_follows_waits_for_the_user_where_the_author_wants_it() {
    let say = "{type: ai_say, content: x}";
    let form = "{type: show_form, form: a}";
    let mut talk = TestDialogue::new(&script_with_actions(&[say, form]));
    talk.input(None, &[continuing_reply("一")]);
    let turn = talk.input(Some("懂了"), &[understood_reply("二")]);
    assert_eq!((turn.completed, turn.continues, turn.status), (true, false, DialogueStatus::Active));
    assert_eq!(talk.events, []);
    assert_eq!(talk.input(Some("好"), &[]).status, DialogueStatus::AwaitingAnswer);
}

#[test]
fn conditions_leave_actions_out() {
    let say = |condition: &str, text: &str| {
        format!(
            "{{type: ai_say, content: {text}, condition: \"{condition}\", max_rounds: 1, require_acknowledgment: false}}"
        )
    };
    let (no, wrong, undefined, yes) = (
        say("age > 40", "no"),
        say("age >", "wrong"),
        say("height > 3", "undefined"),
        say("age == 30 and 用户名 == '小明'", "yes"),
    );
    let mut talk = TestDialogue::new(&script_with_actions(&[&no, &wrong, &undefined, &yes, &no]));
    let turn = talk.input(None, &[continuing_reply("一")]);
    assert!(talk.prompt().contains("【讲解主题】\nyes\n")); // S-011
    assert_eq!(talk.calls.len(), 1); // S-011
    let codes: Vec<&str> = turn.notices.iter().map(|notice| &*notice.code).collect();
    assert_eq!(codes, ["condition_invalid", "condition_invalid"]); // S-011
    assert!(turn.notices[0].message.contains("actions[1]"), "{:?}", turn.notices);
    assert_eq!(turn.status, DialogueStatus::Completed); // S-011
}

#[test]
fn conditions_have_functions_filters_and_limits() {
    let evaluate = |condition: &str| {
        let action = json!({
            "type": "ai_say", "content": "x", "condition": condition, "max_rounds": 1, "require_acknowledgment": false,
        });
        let mut talk = TestDialogue::new(&script_with_actions(&[&action.to_string()]));
        let mut dialogue = talk.dialogue.clone();
        dialogue.input(None, &talk.env()).expect("it waits");
        let is_called = matches!(dialogue.next(&talk.env()), DialogueRequest::Call(_));
        talk.dialogue = dialogue;
        (is_called, talk.dialogue.turn(&talk.script).notices.len())
    };
    assert_eq!(evaluate("用户名 | length == 2"), (true, 0)); // S-011
    assert_eq!(evaluate("age in range(20, 40)"), (true, 0)); // S-011
    assert_eq!(evaluate("height is defined and height > 3"), (false, 0)); // S-011
    assert_eq!(evaluate("height == 3"), (false, 1)); // S-011
    assert_eq!(evaluate("missing | length == 2"), (false, 1)); // S-011
    assert_eq!(evaluate(&"(".repeat(5000)), (false, 1)); // S-011
    assert_eq!(evaluate(&format!("1{}", " + 1".repeat(1000))), (false, 1)); // S-011
    assert_eq!(evaluate("[1] * 1000000000"), (false, 1)); // S-011
}

#[test]
fn conditions_see_what_was_set() {
    let think = "{type: ai_think, prompt: x, output: {mood: }}";
    let say = "{type: ai_say, content: calm, condition: mood == 'calm', max_rounds: 1, require_acknowledgment: false}";
    let mut talk = TestDialogue::new(&script_with_actions(&[think, say]));
    let turn = talk.input(None, &[ModelReaction::Reply("{\"mood\": \"upset\"}".to_owned())]);
    assert_eq!((turn.completed, turn.status, turn.ai_message), (true, DialogueStatus::Completed, None));
    let mut talk = TestDialogue::new(&script_with_actions(&[think, say]));
    talk.input(None, &[ModelReaction::Reply("{\"mood\": \"calm\"}".to_owned()), continuing_reply("一")]);
    assert_eq!(talk.calls.len(), 2);
}

#[derive(Default)]
struct RecordingHooks {
    rounds: std::cell::RefCell<Vec<u32>>,
}

impl Hooks for RecordingHooks {
    fn choose_template(&self, moment: &HookContext<'_>, id: &str) -> Option<String> {
        (moment.variables.get("age") == Some(&json!(31))).then(|| format!("{id}-old"))
    }

    fn before_call(&self, moment: &HookContext<'_>) -> Vec<HookProposal> {
        let value = json!(30 + moment.round);
        vec![HookProposal::Set { name: "age".to_owned(), value }]
    }

    fn after_reply(
        &self,
        moment: &HookContext<'_>,
        call: &ModelCall,
        reply: &ModelReply,
        effect: &ReplyEffect,
    ) -> Vec<HookProposal> {
        assert!(effect.exit_decision.is_some() && !reply.message.is_empty());
        self.rounds.borrow_mut().push(call.round);
        assert_eq!(moment.action.type_name(), "ai_say");
        vec![HookProposal::Signal { code: "risk".to_owned(), message: reply.message.clone() }]
    }
}

#[test]
fn hooks_see_and_propose() {
    // S-105: hooks choose templates, set variables and raise signals.
    let hooks = RecordingHooks::default();
    let mut talk = TestDialogue::new(&script_with_actions(&["{type: ai_say, content: \"{age}\"}"]));
    talk.hooks = &hooks;
    talk.files
        .add("ai-say/mainline-a-introduce-concept-old.md".to_owned(), "old {topic_content}".to_owned())
        .expect("one");
    let turn = talk.input(None, &[continuing_reply("一")]);
    assert_eq!(talk.prompt(), "old 31"); // S-105
    assert_eq!((&*turn.notices[0].code, turn.notices[0].message.as_str()), ("risk", "一")); // S-105
    talk.input(None, &[continuing_reply("二")]);
    assert!(talk.prompt().contains("【讲解主题】\n32\n")); // S-105
    assert_eq!(*hooks.rounds.borrow(), [1, 2]); // S-105
}
