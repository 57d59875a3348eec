//! Replies without a message (S-054, R-66, X-009): the model is asked again, and no round passes.

use serde_json::json;
use tambour::event::{Event, EventCollector};
use tambour::{InputEnd, Options};
use tambour_prompt::dialogue::{DialogueRequest, DialogueStatus};

use super::{
    ModelReaction, TestDialogue, ask_reply, continuing_reply, script_with_actions, understood_reply,
};

const SAY: &str = "{type: ai_say, content: x, max_rounds: 1, require_acknowledgment: false}";
const ASK: &str = "{type: ai_ask, question: q, variable: v, max_rounds: 1}";

/// Replies without a message to the user, some of which ask to exit.
fn replies_without_message() -> Vec<String> {
    let assess = |response: &str| {
        format!(
            r#"{{"assessment":{{"understanding_level":95,"has_questions":false,"expressed_understanding":true,"reasoning":"r"}},{response}"should_exit":true,"exit_reason":"done"}}"#
        )
    };
    let template = tambour_prompt::template::find_shipped("ai-say-mainline-a-introduce-concept");
    let template = template.expect("it is shipped").text;
    let template_form = &template[template.rfind("{\n  \"assessment\"").expect("it has a form")..];
    let mut replies: Vec<String> = [
        "",
        " \n\n",
        "\"\"",
        "null",
        "[]",
        "{}",
        "[null, \"\"]",
        "...",
        "```json\n```",
        "```json\nnull\n```",
        "<<ParsingError>>",
        "<think>What shall I say?</think>",
        "你的回复内容...",
    ]
    .map(str::to_owned)
    .to_vec();
    let responses = [
        "",
        "\"response\":null,",
        "\"response\":\"\",",
        "\"response\":[],",
        "\"response\":{},",
        "\"response\":{\"咨询师\":\"\"},",
        "\"response\":{\"咨询师\":null},",
        "\"response\":{\"咨询师\":\" \"},",
        "\"response\":{\"咨询师\":\"你的回复内容...\"},",
        "\"response\":{\"counsellor\":\"your reply...\"},",
        "\"response\":{\"咨询师\":\"...\"},",
        "\"response\":{\"咨询师\":\"……\"},",
    ];
    replies.extend(responses.map(assess));
    replies.push(template_form.to_owned());
    replies
}

#[test]
fn a_round_without_a_message_is_asked_for_again_and_never_exits() {
    for text in replies_without_message() {
        let mut talk = TestDialogue::new(&script_with_actions(&[SAY]));
        let reply = || ModelReaction::Reply(text.clone());
        let turn = talk.input(Some("懂了"), &[reply(), reply()]);
        assert_eq!(
            (turn.success, turn.completed, turn.status),
            (false, false, DialogueStatus::Active),
            "{text}"
        ); // S-054
        assert_eq!((turn.ai_message, talk.dialogue.current_round()), (None, 0), "{text}"); // S-065
        let error = turn.error.expect("it says why");
        assert_eq!((&*error.code, error.retryable), ("message_missing", true), "{text}"); // X-009
        assert!(error.message.contains("2 次"), "{}", error.message);
        assert!(talk.dialogue.needs_retry() && talk.dialogue.history().len() == 1, "{text}");
        // The dialogue continues at the same place.
        let turn = talk.input(None, &[understood_reply("好")]);
        assert_eq!((turn.completed, turn.ai_message.as_deref()), (true, Some("好")), "{text}"); // S-065
        let mut talk = TestDialogue::new(&script_with_actions(&[SAY]));
        let turn = talk.input(Some("懂了"), &[reply(), continuing_reply("一")]);
        assert_eq!((turn.completed, turn.ai_message.as_deref()), (true, Some("一")), "{text}"); // S-054
    }
}

#[test]
fn a_question_without_a_message_is_asked_for_again() {
    let answers = [
        r#"{"value": "x", "usable": true}"#,
        r#"{"value": null, "usable": false}"#,
        r#"{"usable": true, "value": "x", "response": null}"#,
        r#"{"usable": true, "value": "x", "response": {"咨询师": "..."}}"#,
        "null",
    ];
    for text in answers.iter().map(|text| (*text).to_owned()).chain(replies_without_message()) {
        let mut talk = TestDialogue::new(&script_with_actions(&[ASK, SAY]));
        let reply = || ModelReaction::Reply(text.clone());
        let turn = talk.input(Some("我叫安"), &[reply(), reply()]);
        assert_eq!((turn.success, turn.completed, turn.ai_message), (false, false, None), "{text}"); // S-054
        assert_eq!(
            turn.error.map(|error| error.code.into_owned()).as_deref(),
            Some("message_missing"),
            "{text}"
        );
        let turn = talk.input(None, &[ask_reply(&json!("安"), true, "你好，安")]);
        assert_eq!((turn.completed, turn.ai_message.as_deref()), (true, Some("你好，安")), "{text}");
    }
}

#[test]
fn what_is_wrong_does_not_depend_on_how_a_reply_is_cut() {
    let mut talk = TestDialogue::new(&script_with_actions(&[SAY]));
    let mut dialogue = talk.dialogue.clone();
    dialogue.input(None, &talk.env()).expect("it waits");
    let DialogueRequest::Call(call) = dialogue.next(&talk.env()) else { panic!("a call") };
    talk.dialogue = dialogue;
    for text in replies_without_message() {
        let whole = {
            let mut reader = call.reader(&Options::default());
            reader.push(&text, &mut EventCollector::default());
            reader.finish(&InputEnd::stop(), &mut EventCollector::default()).expect("it did not fail")
        };
        assert!(
            whole.is_silent && whole.message.is_empty() && whole.unreadable_reason.is_some(),
            "{text} {whole:?}"
        );
        let mut sink = EventCollector::default();
        let mut reader = call.reader(&Options::default());
        for c in text.chars() {
            reader.push(&c.to_string(), &mut sink);
            // No answer is sent before a message is certain.
            assert!(!sink.events.iter().any(|event| matches!(event, Event::FinalDelta { .. })), "{text}");
        }
        let reply = reader.finish(&InputEnd::stop(), &mut sink).expect("it did not fail");
        assert_eq!(reply, whole, "{text}");
    }
}

#[test]
fn the_model_is_told_what_was_missing_in_either_language() {
    let mut talk = TestDialogue::new(&script_with_actions(&[SAY]));
    talk.settings.texts = tambour::options::Texts::from_language(tambour::options::Language::En);
    let silent_reply = || ModelReaction::Reply(r#"{"response": {}}"#.to_owned());
    let turn = talk.input(None, &[silent_reply(), silent_reply()]);
    assert!(talk.prompt().contains("the last reply said nothing to the user"), "{}", talk.prompt());
    let error = turn.error.expect("it says why").message;
    assert!(error.contains("none of 2 replies") && error.contains("asks again"), "{error}");
}
