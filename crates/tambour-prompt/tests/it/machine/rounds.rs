//! Rounds of `ai_say` (S-060 to S-083).

use serde_json::json;
use tambour::event::DecisionSource;
use tambour_prompt::dialogue::{DialogueRequest, DialogueStatus, DialogueTurn};

use super::{
    ModelReaction, TestDialogue, assessed_reply, continuing_reply, script_with_actions, understood_reply,
};

/// Script of the end-to-end case.
pub(super) const END_TO_END: &str = "
sessions:
  - session: \"测试ABC模型讲解\"
    declare:
      - var: 教育背景
        value: 本科
      - var: 用户名
        value: 测试用户
      - var: 咨询师名
        value: AI助手

    phases:
      - phase: \"概念讲解\"
        steps:
          - topic: \"ABC模型\"
            actions:
              - type: ai_say
                content: \"ABC模型包括...\"
                max_rounds: 3
                exit_criteria:
                  understanding_threshold: 80
";

fn source(turn: &DialogueTurn) -> Option<DecisionSource> {
    Some(turn.metadata.as_ref()?.exit_decision.as_ref()?.decision_source)
}

fn round(turn: &DialogueTurn) -> u32 {
    turn.metadata.as_ref().map_or(0, |metadata| metadata.current_round)
}

#[test]
fn one_input_is_one_round_with_its_result() {
    let mut talk = TestDialogue::new(&script_with_actions(&["{type: ai_say, content: x}"]));
    let turn = talk.input(None, &[assessed_reply(40, true, false, false, "第一")]);
    assert_eq!(talk.calls.len(), 1); // S-060
    assert_eq!(talk.calls[0].round, 1); // S-060
    assert_eq!(talk.dialogue.current_round(), 1); // S-060
    assert_eq!((turn.success, turn.completed), (true, false)); // S-061, S-062
    assert_eq!(turn.ai_message.as_deref(), Some("第一")); // S-061, S-064
    assert_eq!(turn.status, DialogueStatus::Active);
    let turn = json!(turn);
    let metadata = &turn["metadata"];
    assert_eq!((&metadata["action_type"], &metadata["current_round"]), (&json!("ai_say"), &json!(1))); // S-061
    assert_eq!(metadata["assessment"]["understanding_level"], 40); // S-061
    let decision = &metadata["exit_decision"];
    assert_eq!(decision["should_exit"], false); // S-061
    assert_eq!(
        (&decision["reason"], &decision["decision_source"]),
        (&json!("原因"), &json!("llm_suggestion"))
    ); // S-061
    assert_eq!(turn["position"]["path"], "sessions[0].phases[0].steps[0].actions[0]");
}

#[test]
fn later_rounds_have_the_longer_history() {
    let mut talk = TestDialogue::new(&script_with_actions(&["{type: ai_say, content: x}"]));
    talk.input(Some("请告诉我"), &[continuing_reply("一")]);
    assert_eq!(talk.prompt().matches("请告诉我").count(), 1); // S-063
    talk.input(Some("我有点明白了"), &[continuing_reply("二")]);
    assert!(talk.prompt().contains("user: 请告诉我\nassistant: 一\nuser: 我有点明白了\n")); // S-063
    assert_eq!(talk.prompt().matches("我有点明白了").count(), 1); // S-063
}

#[test]
fn the_integration_case() {
    let mut talk = TestDialogue::new(&script_with_actions(&[
        "{type: ai_say, content: ABC模型的讲解..., max_rounds: 3}",
    ]));
    let first = talk.input(Some("请告诉我什么是ABC模型"), &[continuing_reply("一")]);
    assert_eq!((first.completed, round(&first)), (false, 1)); // S-068
    let second = talk.input(Some("我有点明白了"), &[continuing_reply("二")]);
    assert_eq!((second.completed, round(&second)), (false, 2)); // S-068
    let incomplete =
        json!({"assessment": {"understanding_level": 85, "has_questions": false}, "should_exit": true});
    // It lacks its response: it is asked for again, and a round without a message never exits.
    let third = talk
        .input(Some("我完全理解了"), &[ModelReaction::Reply(incomplete.to_string()), understood_reply("三")]);
    assert_eq!((third.success, third.completed, round(&third)), (true, true, 3)); // S-068, S-082
    assert_eq!(third.status, DialogueStatus::Completed); // S-068, S-082
    assert_eq!(talk.calls.len(), 4); // S-068, S-054
    assert_eq!(third.ai_message.as_deref(), Some("三")); // S-068, S-052
}

#[test]
fn the_end_to_end_case() {
    let inputs = ["什么是ABC模型？", "我有点理解了", "我完全明白了"];
    let replies = || {
        [
            continuing_reply("ABC模型包括三个部分。"),
            assessed_reply(60, false, false, false, "再举一个例子。"),
            understood_reply("很好。"),
        ]
    };
    for (rounds, expected) in [(3, DecisionSource::MaxRounds), (5, DecisionSource::ExitCriteria)] {
        let text = END_TO_END.replace("max_rounds: 3", &format!("max_rounds: {rounds}"));
        let mut talk = TestDialogue::new(&text);
        let turns: Vec<DialogueTurn> =
            inputs.iter().zip(replies()).map(|(input, reply)| talk.input(Some(input), &[reply])).collect();
        let completed: Vec<bool> = turns.iter().map(|turn| turn.completed).collect();
        assert_eq!(completed, [false, false, true]); // S-069
        assert!(turns[0].ai_message.as_deref().is_some_and(|message| message.contains("ABC模型包括"))); // S-069
        assert_eq!(source(&turns[2]), Some(expected)); // S-069
        let decision = turns[2].metadata.as_ref().and_then(|metadata| metadata.exit_decision.clone());
        assert_eq!(decision.expect("there is one").unmet, Vec::<String>::new()); // S-069
        let names: Vec<&str> = talk.calls[0].warnings.iter().map(|warning| warning.name.as_str()).collect();
        assert_eq!(names, ["心理学知识", "学习风格"]); // S-069, S-038
        assert!(talk.calls[0].warnings.iter().all(|warning| warning.code == "variable_unresolved")); // S-038
    }
}

#[test]
fn nothing_is_asked_after_the_end() {
    let mut talk = TestDialogue::new(&script_with_actions(&[
        "{type: ai_say, content: x, max_rounds: 1, require_acknowledgment: false}",
    ]));
    assert!(talk.input(None, &[continuing_reply("一")]).completed);
    for text in [Some("还在吗"), None] {
        let turn = talk.input(text, &[]);
        assert_eq!((turn.success, turn.completed, turn.ai_message), (true, true, None)); // S-066
        assert_eq!(turn.status, DialogueStatus::Completed); // S-066
    }
    assert_eq!(talk.next(), DialogueRequest::Finished); // S-066
}

#[test]
fn n_rounds_are_n_messages() {
    for rounds in [1, 2, 5] {
        let action = format!("{{type: ai_say, content: x, max_rounds: {rounds}}}");
        let mut talk = TestDialogue::new(&script_with_actions(&[&action]));
        for number in 1..=rounds {
            let turn = talk.input(Some("嗯"), &[continuing_reply(&format!("第{number}"))]);
            assert_eq!(turn.ai_message, Some(format!("第{number}"))); // S-078
            let is_last = number == rounds;
            let is_acknowledged = rounds > 1;
            assert_eq!(turn.completed, is_last && is_acknowledged, "{rounds} {number}"); // S-078
            assert_eq!(source(&turn) == Some(DecisionSource::MaxRounds), is_last); // S-070
        }
    }
}

#[test]
fn an_acknowledgement_is_waited_for() {
    // S-081: any input, even an empty one, completes without a call.
    for reply in [Some("好的"), Some(" "), None] {
        let mut talk =
            TestDialogue::new(&script_with_actions(&["{type: ai_say, content: x, max_rounds: 1}"]));
        let turn = talk.input(Some("你好"), &[continuing_reply("一")]);
        assert_eq!((turn.completed, turn.status), (false, DialogueStatus::AwaitingAck)); // S-081, S-062
        let turn = talk.input(reply, &[]);
        assert_eq!((turn.completed, turn.status, turn.ai_message), (true, DialogueStatus::Completed, None)); // S-081
        assert_eq!(talk.calls.len(), 1); // S-081
    }
    let mut talk = TestDialogue::new(&script_with_actions(&[
        "{type: ai_say, content: x, max_rounds: 1, require_acknowledgment: false}",
    ]));
    let turn = talk.input(Some("你好"), &[continuing_reply("一")]);
    assert_eq!((turn.completed, turn.status), (true, DialogueStatus::Completed)); // S-081
}

#[test]
fn an_acknowledgement_counts_once() {
    let mut talk = TestDialogue::new(&script_with_actions(&["{type: ai_say, content: x}"]));
    talk.input(Some("你好"), &[continuing_reply("一")]);
    let turn = talk.input(Some("懂了"), &[understood_reply("二")]);
    assert_eq!((turn.completed, turn.status), (true, DialogueStatus::Completed)); // S-082
    // After understanding in the first round an acknowledgement is outstanding.
    let mut talk = TestDialogue::new(&script_with_actions(&["{type: ai_say, content: x}"]));
    assert_eq!(talk.input(Some("我早就懂"), &[understood_reply("一")]).status, DialogueStatus::AwaitingAck); // S-081
}

#[test]
fn criteria_of_the_script_decide() {
    let decide = |criteria: &str, reply: ModelReaction| {
        let action =
            format!("{{type: ai_say, content: x, require_acknowledgment: false, exit_criteria: {criteria}}}");
        let mut talk = TestDialogue::new(&script_with_actions(&[&action]));
        let turn = talk.input(None, &[reply]);
        turn.metadata.and_then(|metadata| metadata.exit_decision).expect("a decision")
    };
    let strict = decide("{understanding_threshold: 95}", assessed_reply(90, false, false, true, "m"));
    assert_eq!(
        (strict.should_exit, strict.unmet),
        (false, vec!["understanding_level".into(), "expressed_understanding".into()])
    ); // S-075
    assert!(decide("{understanding_threshold: 0}", assessed_reply(0, false, false, true, "m")).should_exit); // S-008
    let lenient = decide("{has_questions: true}", assessed_reply(85, true, false, true, "m"));
    assert_eq!((lenient.should_exit, lenient.reason.as_str()), (true, "理解度85达到80（允许有疑问）")); // S-080
    assert!(!decide("{expressed_threshold: null}", assessed_reply(75, true, true, true, "m")).should_exit); // S-083
    assert!(decide("{}", assessed_reply(75, true, true, true, "m")).should_exit); // S-072
    assert!(!decide("{}", assessed_reply(100, false, true, false, "m")).should_exit); // S-074
}
