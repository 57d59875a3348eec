//! Messages: in order, once, with instructions, and as a single answer.

use serde_json::{Value, json};

use crate::mock::{Gate, MockServer, Step, delta_step, finish_steps};
use crate::server::TestServer;

fn reply(text: &str) -> Vec<Step> {
    vec![delta_step(text)].into_iter().chain(finish_steps("stop")).collect()
}

async fn new_conversation(server: &TestServer) -> Value {
    server.post("/api/v1/conversations", &json!({})).await.json["conversation_id"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_a_conversation_run_one_after_the_other() {
    let gate = Gate::new();
    let first =
        [vec![delta_step("first "), Step::Wait(gate.clone()), delta_step("reply")], finish_steps("stop")]
            .concat();
    let mock = MockServer::start(vec![first, reply("second reply"), reply("third reply")]).await;
    let server = TestServer::start_default(&mock).await;
    let conversation = new_conversation(&server).await;
    let request_of = |text: &str| json!({"text": text, "dialect": "plain", "conversation_id": conversation});
    let mut ids = Vec::new();
    for text in ["one", "two", "three"] {
        let response = server.post("/api/v1/messages", &request_of(text)).await;
        assert_eq!(response.status, 202);
        ids.push(response.json["message_id"].as_str().unwrap().to_owned());
    }
    mock.wait_until(|calls| calls.started == 1).await;
    let mut refusal = request_of("four");
    refusal["if_busy"] = "refuse".into();
    let refusal = server.post("/api/v1/messages", &refusal).await;
    assert_eq!((refusal.status, refusal.problem_code()), (409, "conversation_busy"));
    // A queued message can be cancelled.
    let response = server.post("/api/v1/messages", &request_of("never")).await.json;
    let queued_id = response["message_id"].as_str().unwrap();
    assert_eq!(server.post(&format!("/api/v1/messages/{queued_id}/cancel"), &json!({})).await.status, 202);
    assert_eq!(server.wait_ended(queued_id).await["status"], "cancelled");
    assert_eq!(mock.calls().started, 1);
    gate.open();
    for id in &ids {
        assert_eq!(server.wait_ended(id).await["status"], "completed");
    }
    let requests = mock.requests();
    let prompt_texts = |n: usize| -> Vec<String> {
        let messages = requests[n].body["messages"].as_array().unwrap();
        messages.iter().map(|message| message["content"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(prompt_texts(1), ["one", "first reply", "two"]);
    assert_eq!(prompt_texts(2), ["one", "first reply", "two", "second reply", "three"]);
    // The record has the prompt that was sent.
    let record = server.get(&format!("/api/v1/messages/{}", ids[1])).await.json;
    let prompt = record["prompt"].as_array().unwrap();
    assert_eq!(prompt.len(), 3);
    assert_eq!(prompt[1], json!({"role": "assistant", "content": "first reply"}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_request_is_the_same_message() {
    let mock = MockServer::start(vec![reply("once")]).await;
    let server = TestServer::start_default(&mock).await;
    let request = json!({"text": "x", "dialect": "plain"});
    let send = async |body: &Value, key: &str| {
        server
            .call_with("post", "/api/v1/messages", Some(&body.to_string()), &[("idempotency-key", key)])
            .await
    };
    let first = send(&request, "a").await;
    assert_eq!(first.status, 202);
    let id = first.json["message_id"].as_str().unwrap().to_owned();
    server.wait_ended(&id).await;
    for _ in 0..2 {
        assert_eq!(send(&request, "a").await.json["message_id"], id.as_str());
    }
    // Repeated with the same body, also as a stream or single answer; refused with another body.
    let other = send(&json!({"text": "y", "dialect": "plain"}), "a").await;
    assert_eq!((other.status, other.problem_code()), (422, "idempotency_key_reused"));
    assert_eq!(mock.calls().started, 1);
    assert_eq!(send(&request, &"k".repeat(256)).await.problem_code(), "invalid_idempotency_key");
    assert_ne!(send(&request, "b").await.json["message_id"], id.as_str());
    // The same after a restart.
    let folder = server.stop().await;
    let mut config = crate::server::test_config(&folder);
    config.add_upstream(&mock.url(), None).unwrap();
    let server = TestServer::serve(folder, config).await;
    let headers = [("idempotency-key", "a")];
    let repeat = server.call_with("post", "/api/v1/messages", Some(&request.to_string()), &headers).await;
    assert_eq!(repeat.json["message_id"], id.as_str());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_gets_the_record() {
    let mock = MockServer::start(vec![reply("<think>Hm.</think>Four.")]).await;
    let server = TestServer::start_default(&mock).await;
    let answer =
        server.post("/api/v1/messages", &json!({"text": "x", "dialect": "plain", "wait": true})).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!((&answer.json["status"], &answer.json["answer"]), (&json!("completed"), &json!("Four.")));
    assert_eq!(answer.json["prompt"], json!([{"role": "user", "content": "x"}]));
    let refusal = server.post("/api/v1/messages", &json!({"text": "x", "wait": true, "stream": true})).await;
    assert_eq!((refusal.status, refusal.json["field"].as_str()), (422, Some("wait")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_adds_the_format_instructions_and_knows_their_example() {
    let mock = MockServer::start(vec![reply("Four."), reply("Five."), reply("Six.")]).await;
    let server = TestServer::start_default(&mock).await;
    let request = json!({"text": "x", "dialect": "thinkingml", "instructions": true, "system_prompt": "Be kind.", "wait": true});
    let answer = server.post("/api/v1/messages", &request).await;
    assert_eq!(answer.status, 200);
    let system = mock.requests()[0].body["messages"][0].clone();
    assert_eq!(system["role"], "system");
    let system = system["content"].as_str().unwrap();
    assert!(system.starts_with("Be kind.\n\n") && system.contains("<thinking>"), "{system}");
    assert!(!system.contains("<phase id=\"1\">"), "{system}");
    // The example is a turn before the conversation, once, and behind the client's own system prompt.
    let contents = |index: usize| -> Vec<(String, String)> {
        let messages = mock.requests()[index].body["messages"].clone();
        let text = |value: &Value| value.as_str().unwrap_or_default().chars().take(9).collect();
        messages.as_array().unwrap().iter().map(|m| (text(&m["role"]), text(&m["content"]))).collect()
    };
    let turn = [("user", "室内养的罗勒怎样才"), ("assistant", "<serp>用户想")];
    let expected = |before: &[(&str, &str)], after: &[(&str, &str)]| -> Vec<(String, String)> {
        let all = before.iter().chain(&turn).chain(after);
        all.map(|(role, text)| ((*role).to_owned(), (*text).to_owned())).collect()
    };
    assert_eq!(contents(0), expected(&[("system", "Be kind.\n")], &[("user", "x")]));
    let id = answer.json["conversation_id"].clone();
    let next = json!({"text": "y", "conversation_id": id, "dialect": "thinkingml", "instructions": true, "system_prompt": "Be kind.", "wait": true});
    assert_eq!(server.post("/api/v1/messages", &next).await.status, 200);
    let turns = [("user", "x"), ("assistant", "Four."), ("user", "y")];
    assert_eq!(contents(1), expected(&[("system", "Be kind.\n")], &turns));
    let own = json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "z"}]);
    let own = json!({"messages": own, "dialect": "thinkingml", "instructions": true, "wait": true});
    assert_eq!(server.post("/api/v1/messages", &own).await.status, 200);
    assert_eq!(contents(2)[1..], expected(&[("system", "Be brief.")], &[("user", "z")]));
    let plain = server
        .post("/api/v1/messages", &json!({"text": "x", "dialect": "plain", "instructions": true}))
        .await;
    assert_eq!((plain.status, plain.json["field"].as_str()), (422, Some("instructions")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sampling_fields_go_to_the_upstream() {
    let mock = MockServer::start(vec![reply("x")]).await;
    let server = TestServer::start_default(&mock).await;
    let request = json!({"text": "x", "dialect": "plain", "wait": true, "top_p": 0.5, "stop": ["END"], "seed": 7,
        "response_format": {"type": "json_object"}, "upstream_fields": {"min_p": 0.1, "stream": false}});
    assert_eq!(server.post("/api/v1/messages", &request).await.status, 200);
    let sent_body = &mock.requests()[0].body;
    assert_eq!(
        (&sent_body["top_p"], &sent_body["stop"], &sent_body["seed"]),
        (&json!(0.5), &json!(["END"]), &json!(7))
    );
    assert_eq!(
        (&sent_body["response_format"]["type"], &sent_body["min_p"]),
        (&json!("json_object"), &json!(0.1))
    );
    assert_eq!(sent_body["stream"], true, "what the server rests on stays");
}
