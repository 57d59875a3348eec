//! Runs of scripts as their authors try them: started anywhere, forked, played automatically, saved as tests.

use serde_json::{Value, json};

use crate::dialogues::{SAY_ACTION, post_text, round_answer, script_of_actions, start_dialogue};
use crate::mock::{MockServer, reply_script};
use crate::server::TestServer;

async fn get_json(server: &TestServer, path: &str) -> Value {
    let answer = server.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text);
    answer.json
}

async fn turns(server: &TestServer, id: &str) -> Vec<Value> {
    get_json(server, &format!("/api/v1/dialogues/{id}/turns")).await["data"].as_array().unwrap().clone()
}

fn history_texts(history: &Value) -> Vec<&str> {
    history.as_array().unwrap().iter().map(|message| message["content"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_fork_shares_what_was_said_before_its_turn() {
    let replies =
        ["一", "二", "三", "另一个二"].map(|message| reply_script(&round_answer(30, false, message), 7));
    let mock = MockServer::start(replies.into()).await;
    let server = TestServer::start_default(&mock).await;
    let id = start_dialogue(&server, &[&SAY_ACTION.replace('3', "5")]).await;
    server.post(&format!("/api/v1/dialogues/{id}/input"), &json!({})).await;
    post_text(&server, &id, "不懂").await;
    post_text(&server, &id, "还是不懂").await;
    let before = turns(&server, &id).await;
    assert_eq!(before.len(), 3);
    assert_eq!(
        (&before[0]["text"], &before[1]["text"], &before[1]["result"]["ai_message"]),
        (&Value::Null, &json!("不懂"), &json!("二"))
    );
    let forks = format!("/api/v1/dialogues/{id}/forks");
    let fork_response = server.post(&forks, &json!({"turn": before[1]["turn"]})).await;
    assert_eq!(fork_response.status, 201, "{}", fork_response.text);
    let fork = fork_response.json["dialogue_id"].as_str().unwrap();
    assert_ne!(fork, id);
    assert_eq!(fork_response.json["forked_from"], json!({"dialogue_id": id, "turn": before[1]["turn"]}));
    let snapshot = get_json(&server, &format!("/api/v1/dialogues/{fork}")).await;
    assert_eq!(history_texts(&snapshot["history"]), ["一"]);
    assert_eq!((&snapshot["current_round"], &snapshot["variables"]["given"]), (&json!(1), &json!(1)));
    let trace = get_json(&server, &format!("/api/v1/dialogues/{fork}/trace")).await;
    assert_eq!(trace["data"].as_array().unwrap().len(), 1);
    let turn = post_text(&server, fork, "懂了").await;
    assert_eq!((&turn["ai_message"], &turn["metadata"]["current_round"]), (&json!("另一个二"), &json!(2)));
    // The prompt of the fork has nothing of the other branch.
    let prompt = mock.requests()[3].body["messages"][0]["content"].to_string();
    assert!(prompt.contains("懂了") && !prompt.contains("不懂"), "{prompt}");
    // The old branch stays.
    let old = get_json(&server, &format!("/api/v1/dialogues/{id}")).await;
    assert_eq!(history_texts(&old["history"]), ["一", "不懂", "二", "还是不懂", "三"]);
    assert_eq!(old["forked_from"], Value::Null);
    assert_eq!(turns(&server, fork).await.len(), 2);
    assert_eq!(server.post(&forks, &json!({"turn": "turn_x"})).await.status, 404);
    // A fork outlives its origin.
    assert_eq!(server.call("delete", &format!("/api/v1/dialogues/{id}"), None).await.status, 204);
    assert_eq!(turns(&server, fork).await.len(), 2);
}

#[tokio::test]
async fn a_fork_before_an_input_that_was_said_anew_has_the_first_words() {
    let mock = MockServer::start(vec![
        reply_script(&round_answer(30, false, "一"), 7),
        reply_script("", 1),
        reply_script("", 1),
        reply_script(&round_answer(40, false, "二"), 7),
        reply_script(&round_answer(40, false, "三"), 7),
    ])
    .await;
    let server = TestServer::start_default(&mock).await;
    let id = start_dialogue(&server, &[SAY_ACTION]).await;
    server.post(&format!("/api/v1/dialogues/{id}/input"), &json!({})).await;
    let failed_turn = post_text(&server, &id, "第一句").await;
    assert_eq!(failed_turn["success"], false, "{failed_turn}"); // S-065
    post_text(&server, &id, "第二句").await;
    let turn = turns(&server, &id).await[2]["turn"].clone();
    let response = server.post(&format!("/api/v1/dialogues/{id}/forks"), &json!({ "turn": turn })).await.json;
    let fork = response["dialogue_id"].as_str().unwrap();
    let snapshot = get_json(&server, &format!("/api/v1/dialogues/{fork}")).await;
    assert_eq!(history_texts(&snapshot["history"]), ["一", "第一句"]);
}

/// Two steps, the second with a skipped action and a variable of its own.
const STEPS: &str = "sessions:
  - session: s
    declare: [{var: mood, value: calm}]
    phases:
      - phase: p
        steps:
          - topic: first
            actions:
              - {type: ai_say, content: one, max_rounds: 2, require_acknowledgment: false}
          - topic: second
            declare: [{var: age, value: 3}]
            actions:
              - {type: ai_say, content: \"{age}\", condition: mood == 'sad', max_rounds: 2, require_acknowledgment: false}
              - {type: ai_say, content: \"you are {age}\", max_rounds: 2, require_acknowledgment: false}
";

async fn store_script(server: &TestServer, yaml: &str) -> String {
    let response = server.post("/api/v1/scripts", &json!({"name": "s", "yaml": yaml})).await;
    assert_eq!(response.status, 201, "{}", response.text);
    response.json["script_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_dialogue_begins_at_any_step_with_variables_by_hand() {
    let mock = MockServer::start(vec![reply_script(&round_answer(90, true, "好"), 7)]).await;
    let server = TestServer::start_default(&mock).await;
    let script = store_script(&server, STEPS).await;
    let place = "sessions[0].phases[0].steps[1]";
    let new = json!({"script_id": script, "start": place, "variables": {"age": 44}});
    let response = server.post("/api/v1/dialogues", &new).await.json;
    let id = response["dialogue_id"].as_str().unwrap();
    assert_eq!(response["position"]["topic"], "second");
    let turn = server.post(&format!("/api/v1/dialogues/{id}/input"), &json!({})).await.json;
    assert_eq!(turn["status"], "completed", "{turn}");
    let prompt = mock.requests()[0].body["messages"][0]["content"].to_string();
    assert!(prompt.contains("you are 44"), "{prompt}");
    let coverage = get_json(&server, &format!("/api/v1/dialogues/{id}/coverage")).await;
    let reached_counts: Vec<(&Value, &Value)> = coverage["actions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|action| (&action["reached"], &action["left_out"]))
        .collect();
    let (one_visit, no_visit) = (&json!(1), &json!(0));
    assert_eq!(reached_counts, [(no_visit, no_visit), (no_visit, one_visit), (one_visit, no_visit)]);
    for (start, session) in [("sessions[0].phases[7]", Value::Null), (place, json!("other"))] {
        let new = json!({"script_id": script, "start": start, "session": session});
        let refusal = server.post("/api/v1/dialogues", &new).await;
        assert_eq!(refusal.status, 422);
        assert!(["unknown_start", "unknown_session"].contains(&refusal.problem_code()), "{}", refusal.text);
    }
}

#[tokio::test]
async fn a_dry_run_says_what_was_reached_and_what_never() {
    let replies = [
        round_answer(30, false, "一"),
        round_answer(90, true, "二"),
        round_answer(20, false, "三"),
        round_answer(20, false, "四"),
    ];
    let mock = MockServer::start(replies.iter().map(|text| reply_script(text, 7)).collect()).await;
    let server = TestServer::start_default(&mock).await;
    let script = store_script(&server, STEPS).await;
    let response = server.post("/api/v1/dialogues", &json!({"script_id": script})).await.json;
    let id = response["dialogue_id"].as_str().unwrap();
    let path = format!("/api/v1/dialogues/{id}/play");
    let play_result = server.post(&path, &json!({"answers": ["懂了"]})).await;
    assert_eq!(play_result.status, 200, "{}", play_result.text);
    assert_eq!(
        (&play_result.json["stopped"], &play_result.json["turns"]),
        (&json!("answers_used_up"), &json!(3))
    );
    let play_result = server.post(&path, &json!({"answers": ["不懂"], "max_turns": 9})).await.json;
    assert_eq!((&play_result["stopped"], &play_result["status"]), (&json!("ended"), &json!("completed")));
    let actions = &play_result["coverage"]["actions"];
    let used_exits = |action: usize| {
        let exits = actions[action]["exits"].as_array().unwrap();
        let used_exits = exits.iter().filter(|exit| exit["count"] == 1);
        used_exits.map(|exit| exit["exit"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((&actions[0]["rounds"], used_exits(0)), (&json!(2), vec!["max_rounds".to_owned()]));
    assert_eq!((&actions[1]["reached"], &actions[1]["left_out"]), (&json!(0), &json!(1)));
    assert_eq!(used_exits(1), Vec::<String>::new());
    assert_eq!(used_exits(2), ["max_rounds"]);
    for (body, field) in [(json!({"max_turns": 0}), "max_turns"), (json!({"max_turns": 101}), "max_turns")] {
        let refusal = server.post(&path, &body).await;
        assert_eq!((refusal.status, &refusal.json["field"]), (422, &json!(field)));
    }
}

#[tokio::test]
async fn a_model_plays_the_user_in_a_role() {
    let replies = [round_answer(30, false, "一"), "我懂了。".to_owned(), round_answer(90, true, "二")];
    let mock = MockServer::start(replies.iter().map(|text| reply_script(text, 7)).collect()).await;
    let server = TestServer::start_default(&mock).await;
    let script = store_script(&server, &script_of_actions(&[SAY_ACTION])).await;
    let response = server.post("/api/v1/dialogues", &json!({"script_id": script})).await.json;
    let id = response["dialogue_id"].as_str().unwrap();
    let path = format!("/api/v1/dialogues/{id}/play");
    let play_result = server.post(&path, &json!({"role": "一个大学生"})).await;
    assert_eq!(
        (play_result.status, &play_result.json["stopped"]),
        (200, &json!("ended")),
        "{}",
        play_result.text
    );
    let prompt = &mock.requests()[1].body["messages"];
    assert!(prompt[0]["content"].as_str().unwrap().ends_with("一个大学生"));
    assert_eq!((&prompt[1]["role"], &prompt[1]["content"]), (&json!("user"), &json!("一")));
    assert_eq!(turns(&server, id).await[1]["text"], "我懂了。");
}

#[tokio::test]
async fn a_run_is_a_test_of_its_script() {
    let replies = [
        round_answer(30, false, "一"),
        "no JSON at all".to_owned(),
        round_answer(60, false, "二"),
        round_answer(90, true, "三"),
    ];
    let mock = MockServer::start(replies.iter().map(|text| reply_script(text, 7)).collect()).await;
    let server = TestServer::start_default(&mock).await;
    let yaml = script_of_actions(&[SAY_ACTION]);
    let script = store_script(&server, &yaml).await;
    let response =
        server.post("/api/v1/dialogues", &json!({"script_id": script, "variables": {"given": 1}})).await.json;
    let id = response["dialogue_id"].as_str().unwrap();
    server.post(&format!("/api/v1/dialogues/{id}/input"), &json!({})).await;
    post_text(&server, id, "不懂").await;
    post_text(&server, id, "懂了").await;
    let test = server.get(&format!("/api/v1/dialogues/{id}/test")).await.text;
    assert!(test.contains("no JSON at all") && test.contains("decision_source: max_rounds"), "{test}");
    let path = format!("/api/v1/scripts/{script}/replay");
    let replay = server.post(&path, &json!({ "test": test })).await.json;
    assert_eq!(replay, json!({"version": 1, "turns": 3, "passed": true, "differences": []}));
    assert_eq!(mock.calls().started, 4, "a replay asks no model");
    // With one round more and an easier threshold, the end differs.
    let easier = yaml.replace("max_rounds: 3", "max_rounds: 4, exit_criteria: {understanding_threshold: 60}");
    let script_change = server.put(&format!("/api/v1/scripts/{script}"), &json!({ "yaml": easier })).await;
    assert_eq!(script_change.status, 200, "{}", script_change.text);
    let replay = server.post(&path, &json!({ "test": test })).await.json;
    assert_eq!((&replay["version"], &replay["passed"]), (&json!(2), &json!(false)));
    let fields: Vec<&Value> =
        replay["differences"].as_array().unwrap().iter().map(|difference| &difference["field"]).collect();
    assert!(fields.contains(&&json!("exit_decision.decision_source")), "{replay}");
    let replay = server.post(&path, &json!({ "test": test, "version": 1 })).await.json;
    assert_eq!(replay["passed"], true);
    let refusal = server.post(&path, &json!({"test": "turns: 7"})).await;
    assert_eq!((refusal.status, refusal.problem_code()), (422, "invalid_test"));
    // Each turn of a test costs a prompt.
    let long = format!("turns:\n{}", "- text: a\n".repeat(501));
    let refusal = server.post(&path, &json!({ "test": long })).await;
    assert_eq!((refusal.status, refusal.problem_code()), (422, "invalid_test"));
    // Turns are listed in pages.
    let list = format!("/api/v1/dialogues/{id}/turns");
    let all: Vec<Value> = turns(&server, id).await.iter().map(|turn| turn["turn"].clone()).collect();
    let mut paged_turns = Vec::new();
    loop {
        let after: &str = paged_turns.last().and_then(Value::as_str).unwrap_or_default();
        let query = if after.is_empty() { String::new() } else { format!("&after={after}") };
        let page = get_json(&server, &format!("{list}?limit=1{query}")).await;
        paged_turns.push(page["data"][0]["turn"].clone());
        if page["has_more"] == false {
            break;
        }
    }
    assert_eq!(paged_turns, all);
    let unknown = server.get(&format!("{list}?after=turn_x")).await;
    assert_eq!((unknown.status, unknown.problem_code()), (400, "unknown_cursor"));
}
