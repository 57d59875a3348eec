//! Dialogues whose models write nothing usable, at any pace: re-ask, failure, continuation, and no completion (S-054, R-66, X-009).
//! Their notices, schemas and listings.

use serde_json::{Value, json};

use crate::client::{check_stream, joined_text};
use crate::dialogues::{post_text, round_answer, script_of_actions, start_dialogue, stream_input, turn_of};
use crate::mock::{MockServer, Step, delta_step, finish_steps, reply_script, response_script};
use crate::server::TestServer;

const SINGLE_ROUND: &str = "{type: ai_say, content: x, max_rounds: 1, require_acknowledgment: false}";

/// Paces of a reply: at once, in pieces, and in pieces with pauses.
const PACES: [(usize, u64); 3] = [(100_000, 0), (7, 0), (9, 4)];

fn paced_script(text: &str, (size, pause): (usize, u64)) -> Vec<Step> {
    let mut steps: Vec<Step> = reply_script(text, size);
    if pause > 0 {
        steps = steps.into_iter().map(|step| Step::After(pause, Box::new(step))).collect();
    }
    steps
}

fn useless_replies() -> Vec<String> {
    let answer_with_assessment = |response: &str| {
        let mut answer_json: Value = serde_json::from_str(&round_answer(95, true, "")).unwrap();
        answer_json["response"] = serde_json::from_str(response).unwrap();
        answer_json.to_string()
    };
    vec![
        String::new(),
        "\"\"".to_owned(),
        "null".to_owned(),
        "[]".to_owned(),
        "```json\n{}\n```".to_owned(),
        "<<ParsingError>>".to_owned(),
        "<think>What shall I say to them now?</think>\n".to_owned(),
        answer_with_assessment("null"),
        answer_with_assessment("[]"),
        answer_with_assessment("{\"咨询师\":\"\"}"),
        answer_with_assessment("{\"咨询师\":\"你的回复内容...\"}"),
        answer_with_assessment("{\"counsellor\":\"...\"}"),
    ]
}

async fn post_input(server: &TestServer, id: &str, text: &str, stream: bool) -> Value {
    if !stream {
        let turn = post_text(server, id, text).await;
        assert!(!turn.to_string().contains("抱歉"), "{turn}");
        return turn;
    }
    let events = stream_input(server, id, &json!({"text": text, "extensions": true, "findings": true})).await;
    check_stream(&events);
    let snapshot = turn_of(&events).clone();
    let apology = message_text(&events);
    assert!(!apology.contains("抱歉"), "{apology}");
    assert_eq!(apology, snapshot["ai_message"].as_str().unwrap_or_default());
    let last = events.last().unwrap();
    assert_eq!(last.name == "error", snapshot["success"] == false, "{last:?}");
    snapshot
}

fn message_text(events: &[crate::client::Event]) -> String {
    joined_text(events, "final_delta")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_dialogue_completes_without_a_message() {
    for pace in PACES {
        for stream in [false, true] {
            let mut replies = Vec::new();
            for text in useless_replies() {
                replies.extend([
                    paced_script(&text, pace),
                    paced_script(&text, pace),
                    paced_script(&round_answer(90, true, "好"), pace),
                ]);
            }
            let mock = MockServer::start(replies).await;
            let server = TestServer::start_default(&mock).await;
            for text in useless_replies() {
                let id = start_dialogue(&server, &[SINGLE_ROUND]).await;
                let failed_turn = post_input(&server, &id, "懂了", stream).await;
                let at = format!("{text} {pace:?} stream: {stream}: {failed_turn}");
                assert_eq!(
                    (&failed_turn["success"], &failed_turn["completed"]),
                    (&json!(false), &json!(false)),
                    "{at}"
                ); // S-054
                assert_eq!(
                    (&failed_turn["ai_message"], &failed_turn["status"]),
                    (&Value::Null, &json!("active")),
                    "{at}"
                );
                assert_eq!(failed_turn["error"]["code"], "message_missing", "{at}"); // X-009
                assert_eq!(failed_turn["error"]["retryable"], true, "{at}");
                let trace = server.get(&format!("/api/v1/dialogues/{id}/trace")).await.json;
                let rounds = trace["data"].as_array().unwrap();
                assert_eq!(
                    (&rounds[0]["asked_again"], &rounds[1]["status"]),
                    (&json!(true), &json!("failed")),
                    "{at}"
                );
                assert_eq!(rounds[1]["raw"], json!(text), "{at}"); // S-054
                let completed_turn = post_input(&server, &id, "嗯", stream).await;
                assert_eq!(
                    (&completed_turn["completed"], &completed_turn["ai_message"]),
                    (&json!(true), &json!("好")),
                    "{at} {completed_turn}"
                ); // S-065
            }
            assert_eq!(mock.calls().started, 3 * useless_replies().len());
        }
    }
}

#[tokio::test]
async fn decisions_do_not_depend_on_the_pace() {
    let cases = [(90, true, true), (75, true, true), (69, true, false), (100, false, false)];
    for pace in PACES {
        for stream in [false, true] {
            let replies = cases.map(|(level, exit, _)| paced_script(&round_answer(level, exit, "好"), pace));
            let mock = MockServer::start(replies.to_vec()).await;
            let server = TestServer::start_default(&mock).await;
            for (level, exit, ends) in cases {
                let action = "{type: ai_say, content: x, require_acknowledgment: false}";
                let id = start_dialogue(&server, &[action]).await;
                let turn = post_input(&server, &id, "懂了", stream).await;
                let should_exit = &turn["metadata"]["exit_decision"]["should_exit"];
                assert_eq!(
                    (should_exit, &turn["completed"]),
                    (&json!(ends), &json!(ends)),
                    "{level} {exit} {pace:?}"
                ); // S-071
            }
        }
    }
}

#[tokio::test]
async fn notices_of_conditions_are_told_with_the_end_and_the_trace() {
    let mock = MockServer::start(vec![reply_script(&round_answer(30, false, "一"), 9)]).await;
    let server = TestServer::start_default(&mock).await;
    let skipped_action = "{type: ai_say, content: no, condition: \"given > [1]\"}";
    let id =
        start_dialogue(&server, &[skipped_action, SINGLE_ROUND, &skipped_action.replace("[1]", "'x'")]).await;
    let events = stream_input(&server, &id, &json!({"text": "你好"})).await;
    let notices = events.last().unwrap().data["metadata"]["notices"].as_array().unwrap().clone();
    assert_eq!(notices, turn_of(&events)["notices"].as_array().unwrap().clone()); // S-011
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
    let extraction = |value: Value, usable: bool, message: &str| {
        json!({"value": value, "usable": usable, "response": {"咨询师": message}}).to_string()
    };
    let mock = MockServer::start(vec![
        reply_script(&extraction(json!("三十多"), true, "谢谢"), 5),
        reply_script(&extraction(Value::Null, false, "请给一个数字"), 5),
        response_script(400, "application/json", "{\"error\":{\"message\":\"no schemas here\"}}"),
        reply_script(&extraction(json!("31"), true, "谢谢"), 5),
    ])
    .await;
    let server = TestServer::start_default(&mock).await;
    let question =
        "{type: ai_ask, question: 多大？, variable: age, answer: {type: number, min: 1, max: 120}}";
    let id = start_dialogue(&server, &[question]).await;
    let events = stream_input(&server, &id, &json!({"text": "三十多"})).await;
    assert_eq!(joined_text(&events, "final_delta"), "请给一个数字"); // S-011
    let format = &mock.requests()[0].body["response_format"];
    assert_eq!(format["json_schema"]["schema"]["properties"]["value"]["maximum"], 120);
    let completed_turn = post_text(&server, &id, "31").await;
    assert_eq!(
        (&completed_turn["completed"], &completed_turn["ai_message"]),
        (&json!(true), &json!("谢谢")),
        "{completed_turn}"
    );
    assert_eq!(mock.requests()[3].body["response_format"], Value::Null);
    let snapshot = server.get(&format!("/api/v1/dialogues/{id}")).await.json;
    assert_eq!(snapshot["variables"]["age"], 31); // S-011
    let trace = server.get(&format!("/api/v1/dialogues/{id}/trace")).await.json;
    assert_eq!(trace["data"][2]["parameters"]["response_format"], Value::Null);
}

#[tokio::test]
async fn dialogues_are_listed_by_script_session_and_status() {
    let mock = MockServer::start(vec![reply_script(&round_answer(90, true, "一"), 9)]).await;
    let server = TestServer::start_default(&mock).await;
    let first = start_dialogue(&server, &[SINGLE_ROUND]).await;
    let second = start_dialogue(&server, &[SINGLE_ROUND]).await;
    post_text(&server, &first, "懂了").await;
    let scripts = server.get("/api/v1/scripts").await.json;
    let ids_of_query = async |query: &str| {
        let ids_of_query = server.get(&format!("/api/v1/dialogues?{query}")).await;
        assert_eq!(ids_of_query.status, 200, "{}", ids_of_query.text);
        let rows = ids_of_query.json["data"].as_array().unwrap().clone();
        rows.iter().map(|row| row["dialogue_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids_of_query("status=completed").await, [first.as_str()]);
    assert_eq!(ids_of_query("status=active&session=s").await, [second.as_str()]);
    assert_eq!(ids_of_query("session=other").await, Vec::<String>::new());
    let snapshot = server.get(&format!("/api/v1/dialogues/{first}")).await.json;
    assert_eq!(snapshot["session"], "s");
    let id = snapshot["script_id"].as_str().unwrap();
    assert_eq!(scripts["data"].as_array().unwrap().len(), 2);
    assert_eq!(ids_of_query(&format!("script_id={id}")).await, [first.as_str()]);
    assert_eq!(ids_of_query(&format!("after={second}&limit=1")).await, [first]);
    let wrong = server.get("/api/v1/dialogues?status=over").await;
    assert_eq!((wrong.status, wrong.problem_code()), (422, "invalid_field"), "{}", wrong.text);
}

#[tokio::test]
async fn a_stored_template_can_be_deleted() {
    let mock = MockServer::start(vec![]).await;
    let server = TestServer::start_default(&mock).await;
    let place = "/api/v1/templates/ai-ask-default";
    assert_eq!(server.put(place, &json!({"text": "mine {topic_content}"})).await.status, 200);
    assert_eq!(server.get(place).await.json["source"], "stored");
    assert_eq!(server.call("delete", place, None).await.status, 204);
    let snapshot = server.get(place).await.json;
    assert_eq!((&snapshot["source"], &snapshot["version"]), (&json!("builtin"), &Value::Null)); // S-104
    for name in ["ai-ask-default", "nothing"] {
        let deletion = server.call("delete", &format!("/api/v1/templates/{name}"), None).await;
        assert_eq!(
            (deletion.status, deletion.problem_code()),
            (404, "template_not_found"),
            "{}",
            deletion.text
        );
    }
    // A script that names it can be validated again.
    let response = server.put("/api/v1/templates/mine", &json!({"text": "x"})).await;
    assert_eq!(response.json["version"], 1);
    let uses = json!({"yaml": script_of_actions(&["{type: ai_say, content: x, template: mine}"])});
    let warning_codes = async || {
        let check_answer = server.post("/api/v1/scripts/validate", &uses).await.json;
        check_answer["warnings"].to_string().contains("template_not_found")
    };
    assert!(!warning_codes().await);
    server.call("delete", "/api/v1/templates/mine", None).await;
    assert!(warning_codes().await);
}

#[tokio::test]
async fn a_reply_that_stops_in_its_message_is_not_a_useless_one() {
    let mut steps = vec![delta_step("{\"response\":{\"咨询师\":\"一半")];
    steps.extend(finish_steps("length"));
    let mock = MockServer::start(vec![steps]).await;
    let server = TestServer::start_default(&mock).await;
    let id = start_dialogue(&server, &[&SINGLE_ROUND.replace("max_rounds: 1", "max_rounds: 2")]).await;
    let turn = post_text(&server, &id, "你好").await;
    assert_eq!((&turn["success"], &turn["ai_message"]), (&json!(true), &json!("一半"))); // X-014
}
