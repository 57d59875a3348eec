//! Runs of scripts as their authors try them: started anywhere, forked, played automatically, saved as tests.

use serde_json::{Value, json};

use crate::dialogues::{SAY, answer, say, script, started};
use crate::mock::{Mock, reply};
use crate::server::Tambour;

async fn get(server: &Tambour, path: &str) -> Value {
    let answer = server.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text);
    answer.json
}

async fn turns(server: &Tambour, id: &str) -> Vec<Value> {
    get(server, &format!("/api/v1/dialogues/{id}/turns")).await["data"].as_array().unwrap().clone()
}

fn said(history: &Value) -> Vec<&str> {
    history.as_array().unwrap().iter().map(|said| said["content"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_fork_shares_what_was_said_before_its_turn() {
    let replies = ["一", "二", "三", "另一个二"].map(|message| reply(&answer(30, false, message), 7));
    let mock = Mock::start(replies.into()).await;
    let server = Tambour::with(&mock).await;
    let id = started(&server, &[&SAY.replace('3', "5")]).await;
    server.post(&format!("/api/v1/dialogues/{id}/input"), &json!({})).await;
    say(&server, &id, "不懂").await;
    say(&server, &id, "还是不懂").await;
    let before = turns(&server, &id).await;
    assert_eq!(before.len(), 3);
    assert_eq!(
        (&before[0]["text"], &before[1]["text"], &before[1]["result"]["ai_message"]),
        (&Value::Null, &json!("不懂"), &json!("二"))
    );
    let forks = format!("/api/v1/dialogues/{id}/forks");
    let made = server.post(&forks, &json!({"turn": before[1]["turn"]})).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let fork = made.json["dialogue_id"].as_str().unwrap();
    assert_ne!(fork, id);
    assert_eq!(made.json["forked_from"], json!({"dialogue_id": id, "turn": before[1]["turn"]}));
    let stands = get(&server, &format!("/api/v1/dialogues/{fork}")).await;
    assert_eq!(said(&stands["history"]), ["一"]);
    assert_eq!((&stands["current_round"], &stands["variables"]["given"]), (&json!(1), &json!(1)));
    let trace = get(&server, &format!("/api/v1/dialogues/{fork}/trace")).await;
    assert_eq!(trace["data"].as_array().unwrap().len(), 1);
    let turn = say(&server, fork, "懂了").await;
    assert_eq!((&turn["ai_message"], &turn["metadata"]["current_round"]), (&json!("另一个二"), &json!(2)));
    // The prompt of the fork has nothing of the other branch.
    let prompt = mock.asked()[3].body["messages"][0]["content"].to_string();
    assert!(prompt.contains("懂了") && !prompt.contains("不懂"), "{prompt}");
    // The old branch stays.
    let old = get(&server, &format!("/api/v1/dialogues/{id}")).await;
    assert_eq!(said(&old["history"]), ["一", "不懂", "二", "还是不懂", "三"]);
    assert_eq!(old["forked_from"], Value::Null);
    assert_eq!(turns(&server, fork).await.len(), 2);
    assert_eq!(server.post(&forks, &json!({"turn": "turn_x"})).await.status, 404);
    // A fork outlives its origin.
    assert_eq!(server.call("delete", &format!("/api/v1/dialogues/{id}"), None).await.status, 204);
    assert_eq!(turns(&server, fork).await.len(), 2);
}

#[tokio::test]
async fn a_fork_before_an_input_that_was_said_anew_has_the_first_words() {
    let mock = Mock::start(vec![
        reply(&answer(30, false, "一"), 7),
        reply("", 1),
        reply("", 1),
        reply(&answer(40, false, "二"), 7),
        reply(&answer(40, false, "三"), 7),
    ])
    .await;
    let server = Tambour::with(&mock).await;
    let id = started(&server, &[SAY]).await;
    server.post(&format!("/api/v1/dialogues/{id}/input"), &json!({})).await;
    let failed = say(&server, &id, "第一句").await;
    assert_eq!(failed["success"], false, "{failed}"); // S-065
    say(&server, &id, "第二句").await;
    let turn = turns(&server, &id).await[2]["turn"].clone();
    let made = server.post(&format!("/api/v1/dialogues/{id}/forks"), &json!({ "turn": turn })).await.json;
    let fork = made["dialogue_id"].as_str().unwrap();
    let stands = get(&server, &format!("/api/v1/dialogues/{fork}")).await;
    assert_eq!(said(&stands["history"]), ["一", "第一句"]);
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

async fn stored(server: &Tambour, yaml: &str) -> String {
    let made = server.post("/api/v1/scripts", &json!({"name": "s", "yaml": yaml})).await;
    assert_eq!(made.status, 201, "{}", made.text);
    made.json["script_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_dialogue_begins_at_any_step_with_variables_by_hand() {
    let mock = Mock::start(vec![reply(&answer(90, true, "好"), 7)]).await;
    let server = Tambour::with(&mock).await;
    let script = stored(&server, STEPS).await;
    let place = "sessions[0].phases[0].steps[1]";
    let new = json!({"script_id": script, "start": place, "variables": {"age": 44}});
    let made = server.post("/api/v1/dialogues", &new).await.json;
    let id = made["dialogue_id"].as_str().unwrap();
    assert_eq!(made["position"]["topic"], "second");
    let turn = server.post(&format!("/api/v1/dialogues/{id}/input"), &json!({})).await.json;
    assert_eq!(turn["status"], "completed", "{turn}");
    let prompt = mock.asked()[0].body["messages"][0]["content"].to_string();
    assert!(prompt.contains("you are 44"), "{prompt}");
    let coverage = get(&server, &format!("/api/v1/dialogues/{id}/coverage")).await;
    let reached: Vec<(&Value, &Value)> = coverage["actions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|action| (&action["reached"], &action["left_out"]))
        .collect();
    let (one, none) = (&json!(1), &json!(0));
    assert_eq!(reached, [(none, none), (none, one), (one, none)]);
    for (start, session) in [("sessions[0].phases[7]", Value::Null), (place, json!("other"))] {
        let new = json!({"script_id": script, "start": start, "session": session});
        let refused = server.post("/api/v1/dialogues", &new).await;
        assert_eq!(refused.status, 422);
        assert!(["unknown_start", "unknown_session"].contains(&refused.problem()), "{}", refused.text);
    }
}

#[tokio::test]
async fn a_dry_run_says_what_was_reached_and_what_never() {
    let replies =
        [answer(30, false, "一"), answer(90, true, "二"), answer(20, false, "三"), answer(20, false, "四")];
    let mock = Mock::start(replies.iter().map(|text| reply(text, 7)).collect()).await;
    let server = Tambour::with(&mock).await;
    let script = stored(&server, STEPS).await;
    let made = server.post("/api/v1/dialogues", &json!({"script_id": script})).await.json;
    let id = made["dialogue_id"].as_str().unwrap();
    let path = format!("/api/v1/dialogues/{id}/play");
    let played = server.post(&path, &json!({"answers": ["懂了"]})).await;
    assert_eq!(played.status, 200, "{}", played.text);
    assert_eq!((&played.json["stopped"], &played.json["turns"]), (&json!("answers_used_up"), &json!(3)));
    let played = server.post(&path, &json!({"answers": ["不懂"], "max_turns": 9})).await.json;
    assert_eq!((&played["stopped"], &played["status"]), (&json!("ended"), &json!("completed")));
    let actions = &played["coverage"]["actions"];
    let taken = |action: usize| {
        let exits = actions[action]["exits"].as_array().unwrap();
        let taken = exits.iter().filter(|exit| exit["count"] == 1);
        taken.map(|exit| exit["exit"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((&actions[0]["rounds"], taken(0)), (&json!(2), vec!["max_rounds".to_owned()]));
    assert_eq!((&actions[1]["reached"], &actions[1]["left_out"]), (&json!(0), &json!(1)));
    assert_eq!(taken(1), Vec::<String>::new());
    assert_eq!(taken(2), ["max_rounds"]);
    for (body, field) in [(json!({"max_turns": 0}), "max_turns"), (json!({"max_turns": 101}), "max_turns")] {
        let refused = server.post(&path, &body).await;
        assert_eq!((refused.status, &refused.json["field"]), (422, &json!(field)));
    }
}

#[tokio::test]
async fn a_model_plays_the_user_in_a_role() {
    let replies = [answer(30, false, "一"), "我懂了。".to_owned(), answer(90, true, "二")];
    let mock = Mock::start(replies.iter().map(|text| reply(text, 7)).collect()).await;
    let server = Tambour::with(&mock).await;
    let script = stored(&server, &script(&[SAY])).await;
    let made = server.post("/api/v1/dialogues", &json!({"script_id": script})).await.json;
    let id = made["dialogue_id"].as_str().unwrap();
    let path = format!("/api/v1/dialogues/{id}/play");
    let played = server.post(&path, &json!({"role": "一个大学生"})).await;
    assert_eq!((played.status, &played.json["stopped"]), (200, &json!("ended")), "{}", played.text);
    let asked = &mock.asked()[1].body["messages"];
    assert!(asked[0]["content"].as_str().unwrap().ends_with("一个大学生"));
    assert_eq!((&asked[1]["role"], &asked[1]["content"]), (&json!("user"), &json!("一")));
    assert_eq!(turns(&server, id).await[1]["text"], "我懂了。");
}

#[tokio::test]
async fn a_run_is_a_test_of_its_script() {
    let replies = [
        answer(30, false, "一"),
        "no JSON at all".to_owned(),
        answer(60, false, "二"),
        answer(90, true, "三"),
    ];
    let mock = Mock::start(replies.iter().map(|text| reply(text, 7)).collect()).await;
    let server = Tambour::with(&mock).await;
    let yaml = script(&[SAY]);
    let script = stored(&server, &yaml).await;
    let made =
        server.post("/api/v1/dialogues", &json!({"script_id": script, "variables": {"given": 1}})).await.json;
    let id = made["dialogue_id"].as_str().unwrap();
    server.post(&format!("/api/v1/dialogues/{id}/input"), &json!({})).await;
    say(&server, id, "不懂").await;
    say(&server, id, "懂了").await;
    let test = server.get(&format!("/api/v1/dialogues/{id}/test")).await.text;
    assert!(test.contains("no JSON at all") && test.contains("decision_source: max_rounds"), "{test}");
    let path = format!("/api/v1/scripts/{script}/replay");
    let replayed = server.post(&path, &json!({ "test": test })).await.json;
    assert_eq!(replayed, json!({"version": 1, "turns": 3, "passed": true, "differences": []}));
    assert_eq!(mock.calls().begun, 4, "a replay asks no model");
    // With one round more and an easier threshold, the end differs.
    let easier = yaml.replace("max_rounds: 3", "max_rounds: 4, exit_criteria: {understanding_threshold: 60}");
    let changed = server.put(&format!("/api/v1/scripts/{script}"), &json!({ "yaml": easier })).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
    let replayed = server.post(&path, &json!({ "test": test })).await.json;
    assert_eq!((&replayed["version"], &replayed["passed"]), (&json!(2), &json!(false)));
    let fields: Vec<&Value> =
        replayed["differences"].as_array().unwrap().iter().map(|one| &one["field"]).collect();
    assert!(fields.contains(&&json!("exit_decision.decision_source")), "{replayed}");
    let replayed = server.post(&path, &json!({ "test": test, "version": 1 })).await.json;
    assert_eq!(replayed["passed"], true);
    let refused = server.post(&path, &json!({"test": "turns: 7"})).await;
    assert_eq!((refused.status, refused.problem()), (422, "invalid_test"));
    // Each turn of a test costs a prompt.
    let long = format!("turns:\n{}", "- text: a\n".repeat(501));
    let refused = server.post(&path, &json!({ "test": long })).await;
    assert_eq!((refused.status, refused.problem()), (422, "invalid_test"));
    // Turns are listed in pages.
    let list = format!("/api/v1/dialogues/{id}/turns");
    let all: Vec<Value> = turns(&server, id).await.iter().map(|turn| turn["turn"].clone()).collect();
    let mut paged = Vec::new();
    loop {
        let after: &str = paged.last().and_then(Value::as_str).unwrap_or_default();
        let query = if after.is_empty() { String::new() } else { format!("&after={after}") };
        let page = get(&server, &format!("{list}?limit=1{query}")).await;
        paged.push(page["data"][0]["turn"].clone());
        if page["has_more"] == false {
            break;
        }
    }
    assert_eq!(paged, all);
    let unknown = server.get(&format!("{list}?after=turn_x")).await;
    assert_eq!((unknown.status, unknown.problem()), (400, "unknown_cursor"));
}
