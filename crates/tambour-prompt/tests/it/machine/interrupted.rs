//! Saving and restoring at any point changes no result (S-067).

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{ModelReaction, TestDialogue, ask_reply, assessed_reply, continuing_reply, script_with_actions};
use tambour_prompt::dialogue::{Dialogue, DialogueRequest, DialogueStatus, DialogueTurn};

#[test]
fn a_dialogue_goes_on_where_it_was_saved() {
    let mut talk = TestDialogue::new(&script_with_actions(&["{type: ai_say, content: x}"]));
    talk.input(Some("一"), &[continuing_reply("1")]);
    talk.input(Some("二"), &[continuing_reply("2")]);
    let saved = serde_json::to_string(&talk.dialogue).expect("it is data");
    let mut restored: Dialogue = serde_json::from_str(&saved).expect("it was saved");
    assert_eq!(restored, talk.dialogue); // S-067
    restored.input(Some("三"), &talk.env()).expect("it waits");
    let DialogueRequest::Call(call) = restored.next(&talk.env()) else { panic!("a call") };
    assert_eq!(call.round, 3); // S-067
    assert!(call.messages[0].content.contains("user: 一\nassistant: 1\nuser: 二\nassistant: 2\nuser: 三")); // S-067
    // An outstanding acknowledgement survives saving.
    let mut talk = TestDialogue::new(&script_with_actions(&["{type: ai_say, content: x, max_rounds: 1}"]));
    talk.saves_each_step = true;
    assert_eq!(talk.input(None, &[continuing_reply("1")]).status, DialogueStatus::AwaitingAck); // S-067
    assert_eq!(talk.input(None, &[]).status, DialogueStatus::Completed); // S-067
}

#[test]
fn a_saved_dialogue_with_unknown_fields_is_refused() {
    let talk = TestDialogue::new(&script_with_actions(&["{type: ai_say, content: x}"]));
    let mut saved = json!(talk.dialogue);
    saved["later"] = json!(1);
    assert!(serde_json::from_value::<Dialogue>(saved).is_err());
}

/// Generates an action of a random script.
fn any_action() -> impl Strategy<Value = String> {
    let say = (1..4u32, any::<bool>(), 0..100u32).prop_map(|(rounds, requires_ack, threshold)| {
        format!(
            "{{type: ai_say, content: \"{{用户名}} {{v}}\", max_rounds: {rounds}, require_acknowledgment: {requires_ack}, \
             exit_criteria: {{understanding_threshold: {threshold}}}}}"
        )
    });
    let ask = (1..4u32, any::<bool>()).prop_map(|(rounds, required)| {
        format!("{{type: ai_ask, question: q, variable: v, max_rounds: {rounds}, required: {required}}}")
    });
    let other = prop::sample::select(vec![
        "{type: ai_think, prompt: x, output: {v: , w: }}",
        "{type: show_form, form: \"{v}\", variable: v}",
        "{type: use_skill, skill: s}",
        "{type: ai_say, content: never, condition: v == 'never'}",
        "{type: ai_say, content: maybe, condition: v == 1, max_rounds: 1}",
        "{type: ai_ask}",
    ]);
    prop_oneof![3 => say, 2 => ask, 2 => other.prop_map(str::to_owned)]
}

fn any_reaction() -> impl Strategy<Value = ModelReaction> {
    prop_oneof![
        6 => (0..101u32, any::<[bool; 3]>()).prop_map(|(level, [a, b, c])| assessed_reply(level, a, b, c, "说")),
        4 => (prop::sample::select(vec![Value::Null, json!(1), json!("never"), json!([2])]), any::<bool>())
            .prop_map(|(value, usable)| ask_reply(&value, usable, "问")),
        2 => Just(ModelReaction::Reply("{\"v\": 1}".to_owned())),
        2 => Just(ModelReaction::Reply("no JSON at all".to_owned())),
        1 => Just(ModelReaction::Reply(String::new())),
        1 => Just(ModelReaction::Failure),
    ]
}

/// Drives a script with replies in rotation; returns the turn and the dialogue after each input.
fn drive(
    script: &str,
    inputs: &[Option<String>],
    replies: &[ModelReaction],
    saves_each_step: bool,
) -> Vec<(DialogueTurn, Dialogue)> {
    let mut talk = TestDialogue::new(script);
    talk.saves_each_step = saves_each_step;
    let mut replies = replies.iter().cycle();
    let mut outcomes = Vec::new();
    for input in inputs {
        let pending_call = match talk.next() {
            DialogueRequest::Answer { call_id } => Some(call_id),
            _ => None,
        };
        let result = match pending_call {
            Some(call_id) => {
                let value = input.clone().map_or(Value::Null, Value::from);
                talk.change(|dialogue, env| dialogue.answer(&call_id, value, env))
            }
            None => talk.change(|dialogue, env| dialogue.input(input.as_deref(), env)),
        };
        result.expect("it waits for this");
        let mut steps = 0;
        loop {
            steps += 1;
            assert!(steps < 1000, "it does not come to rest: {script}");
            match talk.next() {
                DialogueRequest::Call(call) => {
                    let reply = replies.next().expect("they never end").clone();
                    talk.pass_reply(&call, &reply);
                    talk.calls.push(*call);
                }
                DialogueRequest::Event(event) => talk.events.push(*event),
                _ => break,
            }
        }
        outcomes.push((talk.dialogue.turn(&talk.script), talk.dialogue.clone()));
    }
    outcomes
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn interruptions_change_nothing(
        list in prop::collection::vec(any_action(), 1..6),
        inputs in prop::collection::vec(prop::option::of("[a-z]{0,3}"), 1..14),
        replies in prop::collection::vec(any_reaction(), 1..8),
    ) {
        let list: Vec<&str> = list.iter().map(String::as_str).collect();
        let script = script_with_actions(&list);
        let whole = drive(&script, &inputs, &replies, false);
        prop_assert_eq!(&whole, &drive(&script, &inputs, &replies, true)); // S-067
        for (turn, _) in &whole {
            // Only a successful turn can be complete, and an unsuccessful one has an error.
            prop_assert!(!turn.completed || turn.success);
            prop_assert!(turn.error.is_some() != turn.success);
        }
        let end = whole.iter().position(|(turn, _)| turn.status == DialogueStatus::Completed);
        if let Some(at) = end {
            prop_assert!(whole[at..].iter().all(|(turn, _)| turn.completed && turn.status == DialogueStatus::Completed)); // S-066
            prop_assert!(whole[at + 1..].iter().all(|(turn, _)| turn.ai_message.is_none())); // S-066
        }
    }
}
