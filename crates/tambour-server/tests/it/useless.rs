//! Dialogues whose models write nothing usable, at any pace: re-ask, failure, continuation, and no completion (S-054, R-66, X-009).
//! Their notices, schemas and listings.

use serde_json::{Value, json};

use crate::client::{check, text};
use crate::dialogues::{answer, say, script, started, streamed, turn};
use crate::mock::{Mock, Step, delta, finish, reply, whole};
use crate::server::Tambour;

const ONCE: &str = "{type: ai_say, content: x, max_rounds: 1, require_acknowledgment: false}";

/// Paces of a reply: at once, in pieces, and in pieces with pauses.
const PACES: [(usize, u64); 3] = [(100_000, 0), (7, 0), (9, 4)];

fn paced(text: &str, (size, pause): (usize, u64)) -> Vec<Step> {
    let mut steps: Vec<Step> = reply(text, size);
    if pause > 0 {
        steps = steps.into_iter().map(|step| Step::Tick(pause, Box::new(step))).collect();
    }
    steps
}

fn useless() -> Vec<String> {
    let assessed = |response: &str| {
        let mut whole: Value = serde_json::from_str(&answer(95, true, "")).unwrap();
        whole["response"] = serde_json::from_str(response).unwrap();
        whole.to_string()
    };
    vec![
        String::new(),
        "\"\"".to_owned(),
        "null".to_owned(),
        "[]".to_owned(),
        "```json\n{}\n```".to_owned(),
        "<<ParsingError>>".to_owned(),
        "<think>What shall I say to them now?</think>\n".to_owned(),
        assessed("null"),
        assessed("[]"),
        assessed("{\"咨询师\":\"\"}"),
        assessed("{\"咨询师\":\"你的回复内容...\"}"),
        assessed("{\"counsellor\":\"...\"}"),
    ]
}

async fn input(server: &Tambour, id: &str, text: &str, stream: bool) -> Value {
    if !stream {
        let turn = say(server, id, text).await;
        assert!(!turn.to_string().contains("抱歉"), "{turn}");
        return turn;
    }
    let events = streamed(server, id, &json!({"text": text, "extensions": true, "findings": true})).await;
    check(&events);
    let shown = turn(&events).clone();
    let apology = text_of(&events);
    assert!(!apology.contains("抱歉"), "{apology}");
    assert_eq!(apology, shown["ai_message"].as_str().unwrap_or_default());
    let last = events.last().unwrap();
    assert_eq!(last.name == "error", shown["success"] == false, "{last:?}");
    shown
}

fn text_of(events: &[crate::client::Event]) -> String {
    text(events, "final_delta")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_dialogue_completes_without_a_message() {
    for pace in PACES {
        for stream in [false, true] {
            let mut replies = Vec::new();
            for text in useless() {
                replies.extend([
                    paced(&text, pace),
                    paced(&text, pace),
                    paced(&answer(90, true, "好"), pace),
                ]);
            }
            let mock = Mock::start(replies).await;
            let server = Tambour::with(&mock).await;
            for text in useless() {
                let id = started(&server, &[ONCE]).await;
                let failed = input(&server, &id, "懂了", stream).await;
                let at = format!("{text} {pace:?} stream: {stream}: {failed}");
                assert_eq!(
                    (&failed["success"], &failed["completed"]),
                    (&json!(false), &json!(false)),
                    "{at}"
                ); // S-054
                assert_eq!(
                    (&failed["ai_message"], &failed["status"]),
                    (&Value::Null, &json!("active")),
                    "{at}"
                );
                assert_eq!(failed["error"]["code"], "message_missing", "{at}"); // X-009
                assert_eq!(failed["error"]["retryable"], true, "{at}");
                let trace = server.get(&format!("/api/v1/dialogues/{id}/trace")).await.json;
                let rounds = trace["data"].as_array().unwrap();
                assert_eq!(
                    (&rounds[0]["asked_again"], &rounds[1]["status"]),
                    (&json!(true), &json!("failed")),
                    "{at}"
                );
                assert_eq!(rounds[1]["raw"], json!(text), "{at}"); // S-054
                let done = input(&server, &id, "嗯", stream).await;
                assert_eq!(
                    (&done["completed"], &done["ai_message"]),
                    (&json!(true), &json!("好")),
                    "{at} {done}"
                ); // S-065
            }
            assert_eq!(mock.calls().begun, 3 * useless().len());
        }
    }
}

#[tokio::test]
async fn decisions_do_not_depend_on_the_pace() {
    let cases = [(90, true, true), (75, true, true), (69, true, false), (100, false, false)];
    for pace in PACES {
        for stream in [false, true] {
            let replies = cases.map(|(level, exit, _)| paced(&answer(level, exit, "好"), pace));
            let mock = Mock::start(replies.to_vec()).await;
            let server = Tambour::with(&mock).await;
            for (level, exit, ends) in cases {
                let action = "{type: ai_say, content: x, require_acknowledgment: false}";
                let id = started(&server, &[action]).await;
                let turn = input(&server, &id, "懂了", stream).await;
                let decided = &turn["metadata"]["exit_decision"]["should_exit"];
                assert_eq!(
                    (decided, &turn["completed"]),
                    (&json!(ends), &json!(ends)),
                    "{level} {exit} {pace:?}"
                ); // S-071
            }
        }
    }
}

#[tokio::test]
async fn notices_of_conditions_are_told_with_the_end_and_the_trace() {
    let mock = Mock::start(vec![reply(&answer(30, false, "一"), 9)]).await;
    let server = Tambour::with(&mock).await;
    let skipped = "{type: ai_say, content: no, condition: \"given > [1]\"}";
    let id = started(&server, &[skipped, ONCE, &skipped.replace("[1]", "'x'")]).await;
    let events = streamed(&server, &id, &json!({"text": "你好"})).await;
    let notices = events.last().unwrap().data["metadata"]["notices"].as_array().unwrap().clone();
    assert_eq!(notices, turn(&events)["notices"].as_array().unwrap().clone()); // S-011
    assert_eq!(notices.len(), 2, "{notices:?}");
    assert_eq!(notices[0]["code"], "condition_invalid"); // S-011
    assert!(notices[0]["message"].as_str().unwrap().contains("数字与列表"), "{notices:?}");
    let trace = server.get(&format!("/api/v1/dialogues/{id}/trace")).await.json;
    assert_eq!(trace["data"][0]["notices"], json!([notices[0]])); // S-096
    assert_eq!(
        (&trace["data"][1]["notices"], &trace["data"][1]["raw"]),
        (&json!([notices[1]]), &Value::Null)
    ); // S-096
}

#[tokio::test]
async fn a_question_with_a_type_holds_the_service_to_a_schema() {
    let asked = |value: Value, usable: bool, message: &str| {
        json!({"value": value, "usable": usable, "response": {"咨询师": message}}).to_string()
    };
    let mock = Mock::start(vec![
        reply(&asked(json!("三十多"), true, "谢谢"), 5),
        reply(&asked(Value::Null, false, "请给一个数字"), 5),
        whole(400, "application/json", "{\"error\":{\"message\":\"no schemas here\"}}"),
        reply(&asked(json!("31"), true, "谢谢"), 5),
    ])
    .await;
    let server = Tambour::with(&mock).await;
    let question =
        "{type: ai_ask, question: 多大？, variable: age, answer: {type: number, min: 1, max: 120}}";
    let id = started(&server, &[question]).await;
    let events = streamed(&server, &id, &json!({"text": "三十多"})).await;
    assert_eq!(text(&events, "final_delta"), "请给一个数字"); // S-011
    let format = &mock.asked()[0].body["response_format"];
    assert_eq!(format["json_schema"]["schema"]["properties"]["value"]["maximum"], 120);
    let done = say(&server, &id, "31").await;
    assert_eq!((&done["completed"], &done["ai_message"]), (&json!(true), &json!("谢谢")), "{done}");
    assert_eq!(mock.asked()[3].body["response_format"], Value::Null);
    let shown = server.get(&format!("/api/v1/dialogues/{id}")).await.json;
    assert_eq!(shown["variables"]["age"], 31); // S-011
    let trace = server.get(&format!("/api/v1/dialogues/{id}/trace")).await.json;
    assert_eq!(trace["data"][2]["parameters"]["response_format"], Value::Null);
}

#[tokio::test]
async fn dialogues_are_listed_by_script_session_and_status() {
    let mock = Mock::start(vec![reply(&answer(90, true, "一"), 9)]).await;
    let server = Tambour::with(&mock).await;
    let first = started(&server, &[ONCE]).await;
    let second = started(&server, &[ONCE]).await;
    say(&server, &first, "懂了").await;
    let scripts = server.get("/api/v1/scripts").await.json;
    let listed = async |query: &str| {
        let listed = server.get(&format!("/api/v1/dialogues?{query}")).await;
        assert_eq!(listed.status, 200, "{}", listed.text);
        let rows = listed.json["data"].as_array().unwrap().clone();
        rows.iter().map(|row| row["dialogue_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed("status=completed").await, [first.as_str()]);
    assert_eq!(listed("status=active&session=s").await, [second.as_str()]);
    assert_eq!(listed("session=other").await, Vec::<String>::new());
    let shown = server.get(&format!("/api/v1/dialogues/{first}")).await.json;
    assert_eq!(shown["session"], "s");
    let id = shown["script_id"].as_str().unwrap();
    assert_eq!(scripts["data"].as_array().unwrap().len(), 2);
    assert_eq!(listed(&format!("script_id={id}")).await, [first.as_str()]);
    assert_eq!(listed(&format!("after={second}&limit=1")).await, [first]);
    let wrong = server.get("/api/v1/dialogues?status=over").await;
    assert_eq!((wrong.status, wrong.problem()), (422, "invalid_field"), "{}", wrong.text);
}

#[tokio::test]
async fn a_stored_template_can_be_deleted() {
    let mock = Mock::start(vec![]).await;
    let server = Tambour::with(&mock).await;
    let place = "/api/v1/templates/ai-ask-default";
    assert_eq!(server.put(place, &json!({"text": "mine {topic_content}"})).await.status, 200);
    assert_eq!(server.get(place).await.json["source"], "stored");
    assert_eq!(server.call("delete", place, None).await.status, 204);
    let shown = server.get(place).await.json;
    assert_eq!((&shown["source"], &shown["version"]), (&json!("builtin"), &Value::Null)); // S-104
    for name in ["ai-ask-default", "nothing"] {
        let gone = server.call("delete", &format!("/api/v1/templates/{name}"), None).await;
        assert_eq!((gone.status, gone.problem()), (404, "template_not_found"), "{}", gone.text);
    }
    // A script that names it can be validated again.
    let made = server.put("/api/v1/templates/mine", &json!({"text": "x"})).await;
    assert_eq!(made.json["version"], 1);
    let uses = json!({"yaml": script(&["{type: ai_say, content: x, template: mine}"])});
    let warns = async || {
        let checked = server.post("/api/v1/scripts/validate", &uses).await.json;
        checked["warnings"].to_string().contains("template_not_found")
    };
    assert!(!warns().await);
    server.call("delete", "/api/v1/templates/mine", None).await;
    assert!(warns().await);
}

#[tokio::test]
async fn a_reply_that_stops_in_its_message_is_not_a_useless_one() {
    let mut steps = vec![delta("{\"response\":{\"咨询师\":\"一半")];
    steps.extend(finish("length"));
    let mock = Mock::start(vec![steps]).await;
    let server = Tambour::with(&mock).await;
    let id = started(&server, &[&ONCE.replace("max_rounds: 1", "max_rounds: 2")]).await;
    let turn = say(&server, &id, "你好").await;
    assert_eq!((&turn["success"], &turn["ai_message"]), (&json!(true), &json!("一半"))); // X-014
}
