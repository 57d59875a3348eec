//! Failures, unreadable replies, and scripts that cannot continue.

use tambour::event::{EventCollector, FinishReason};
use tambour::{InputEnd, Options};
use tambour_prompt::dialogue::{Dialogue, DialogueStatus};

use super::{
    ModelReaction, TestDialogue, ask_reply, continuing_reply, read_reply, script_with_actions,
    understood_reply, variable,
};

const SAY: &str = "{type: ai_say, content: x, max_rounds: 2}";

fn prose_reply(text: &str) -> ModelReaction {
    ModelReaction::Reply(text.to_owned())
}

#[test]
fn a_failed_call_does_not_consume_a_round() {
    let mut talk = TestDialogue::new(&script_with_actions(&[SAY]));
    let turn = talk.input(Some("你好"), &[ModelReaction::Failure]);
    assert_eq!((turn.success, turn.completed, turn.status), (false, false, DialogueStatus::Active)); // S-065
    assert_eq!(turn.error.map(|error| error.code.into_owned()).as_deref(), Some("upstream_failed")); // S-065
    assert_eq!(talk.dialogue.current_round(), 0); // S-065
    // The caller retries with the same words or others; the prompt holds them once.
    let turn = talk.input(Some("你好"), &[ModelReaction::Failure]);
    assert!(!turn.success);
    let turn = talk.input(None, &[continuing_reply("一")]);
    assert_eq!((turn.success, talk.dialogue.current_round()), (true, 1)); // S-065
    assert_eq!(talk.prompt().matches("你好").count(), 1); // S-063, S-065
    talk.input(Some("嗯"), &[ModelReaction::Failure]);
    talk.input(Some("换个说法"), &[understood_reply("二")]);
    assert!(talk.prompt().contains("assistant: 一\nuser: 换个说法\n")); // S-065
}

#[test]
fn an_unreadable_reply_is_asked_for_again_once() {
    let mut talk = TestDialogue::new(&script_with_actions(&[SAY]));
    let turn = talk.input(None, &[prose_reply("sorry, no JSON"), continuing_reply("一")]);
    assert_eq!((turn.ai_message.as_deref(), talk.calls.len()), (Some("一"), 2)); // S-054
    assert_eq!((talk.calls[0].attempt, talk.calls[1].attempt), (0, 1)); // S-054
    assert_eq!(talk.dialogue.current_round(), 1); // S-054, S-060
    assert!(talk.prompt().contains("上一次的回复不是要求的 JSON 对象"));
    assert_eq!(talk.dialogue.history().len(), 1);
}

#[test]
fn a_reply_that_stays_unreadable_is_the_message() {
    let mut talk = TestDialogue::new(&script_with_actions(&[SAY]));
    let turn = talk.input(None, &[prose_reply("sorry"), prose_reply("就是没有 JSON")]);
    assert_eq!((turn.success, turn.ai_message.as_deref()), (true, Some("就是没有 JSON"))); // S-054
    let decision = turn.metadata.and_then(|metadata| metadata.exit_decision).expect("a decision");
    assert!(!decision.should_exit); // S-054
    assert_eq!(talk.dialogue.current_round(), 1); // S-065: an unstructured message consumes its round
    talk.settings.max_reasks = 0;
    let turn = talk.input(Some("嗯"), &[prose_reply("还是没有")]);
    assert_eq!((turn.completed, talk.calls.len()), (true, 3)); // S-070
}

#[test]
fn what_the_user_has_seen_is_not_asked_for_again() {
    let mut talk = TestDialogue::new(&script_with_actions(&[SAY]));
    let mut dialogue = talk.dialogue.clone();
    dialogue.input(None, &talk.env()).expect("it waits");
    let tambour_prompt::dialogue::DialogueRequest::Call(call) = dialogue.next(&talk.env()) else {
        panic!("a call")
    };
    let mut reply = read_reply(&call, "no JSON", &tambour::InputEnd::stop());
    assert_eq!(reply.unreadable_reason.as_deref(), Some("unstructured")); // S-054
    reply.is_delivered = true;
    let effect = dialogue.reply(&call, &reply, &talk.env());
    assert!(!effect.asked_again);
    assert_eq!(dialogue.current_round(), 1);
    talk.dialogue = dialogue;
}

#[test]
fn a_thought_that_stays_unreadable_is_a_failure() {
    let mut talk =
        TestDialogue::new(&script_with_actions(&["{type: ai_think, prompt: x, output: {mood: }}", SAY]));
    let turn = talk.input(Some("你好"), &[prose_reply("calm"), prose_reply("calm")]);
    assert_eq!((turn.success, turn.completed, turn.status), (false, false, DialogueStatus::Active)); // S-065
    assert_eq!(turn.error.map(|error| error.code.into_owned()).as_deref(), Some("reply_unreadable")); // S-065
    let turn = talk.input(None, &[prose_reply("{\"mood\": \"calm\"}"), continuing_reply("一")]);
    assert_eq!((turn.success, variable(&talk, "mood")), (true, "calm".into())); // S-065
    assert_eq!(talk.prompt().matches("你好").count(), 1);
}

#[test]
fn a_question_with_an_unreadable_reply_goes_on() {
    let mut talk =
        TestDialogue::new(&script_with_actions(&["{type: ai_ask, question: q, variable: v, max_rounds: 2}"]));
    let turn = talk.input(None, &[prose_reply("How are you?"), prose_reply("How are you?")]);
    assert_eq!(
        (turn.success, turn.completed, turn.ai_message.as_deref()),
        (true, false, Some("How are you?"))
    ); // S-054
    let turn = talk.input(Some("well"), &[ask_reply(&"well".into(), true, "好")]);
    assert_eq!((turn.completed, variable(&talk, "v")), (true, "well".into()));
}

#[test]
fn a_cut_answer_ends_nothing() {
    let mut talk =
        TestDialogue::new(&script_with_actions(&["{type: ai_ask, question: q, variable: v, max_rounds: 2}"]));
    let mut dialogue = talk.dialogue.clone();
    dialogue.input(Some("x"), &talk.env()).expect("it waits");
    let tambour_prompt::dialogue::DialogueRequest::Call(call) = dialogue.next(&talk.env()) else {
        panic!("a call")
    };
    let mut reader = call.reader(&Options::default());
    let mut sink = EventCollector::default();
    reader.push(r#"{"value": "x", "usable": true, "response": {"咨询师": "好"}}"#, &mut sink);
    let reply = reader.finish(&InputEnd::Finished(FinishReason::Length), &mut sink).expect("it did not fail");
    dialogue.reply(&call, &reply, &talk.env());
    talk.dialogue = dialogue;
    assert!(!talk.dialogue.turn(&talk.script).completed); // X-014
}

#[test]
fn a_missing_template_is_an_error_until_it_is_there() {
    let mut talk = TestDialogue::new(&script_with_actions(&["{type: ai_say, content: x, template: mine}"]));
    let turn = talk.input(Some("你好"), &[]);
    assert_eq!((turn.success, turn.status), (false, DialogueStatus::Active)); // S-022
    assert_eq!(turn.error.map(|error| error.code.into_owned()).as_deref(), Some("template_not_found")); // S-022
    talk.files.add("mine.md".to_owned(), "{%chat_history%}".to_owned()).expect("one file");
    assert!(talk.input(None, &[continuing_reply("一")]).success);
    assert_eq!(talk.prompt(), "user: 你好");
}

#[test]
fn an_incomplete_action_fails_clearly() {
    let mut talk = TestDialogue::new(&script_with_actions(&["{type: ai_ask, variable: v}"]));
    let turn = talk.input(None, &[]);
    assert_eq!((turn.success, turn.status), (false, DialogueStatus::Failed)); // S-011
    let error = turn.error.expect("it says why");
    assert_eq!(error.code, "action_incomplete"); // S-011
    assert!(
        error.message.contains("actions[0]") && error.message.contains("`question`"),
        "{}",
        error.message
    ); // S-011
}

#[test]
fn sessions_are_chosen_by_name() {
    let text = "sessions:\n  - {session: a, phases: []}\n  - {session: b, phases: []}\n";
    let mut talk = TestDialogue::new(text);
    assert_eq!(talk.input(None, &[]).status, DialogueStatus::Completed);
    let start = |name| Dialogue::start(&talk.script, Some(name), serde_json::Map::new());
    assert!(start("b").is_ok());
    let error = start("c").expect_err("there is none").to_string();
    assert!(error.contains("`c`") && error.contains("a, b"), "{error}");
}
