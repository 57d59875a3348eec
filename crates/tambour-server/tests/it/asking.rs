//! Messages: in order, once, with instructions, and as a single answer.

use serde_json::{Value, json};

use crate::mock::{Gate, Mock, Step, delta, finish};
use crate::server::Tambour;

fn reply(text: &str) -> Vec<Step> {
    vec![delta(text)].into_iter().chain(finish("stop")).collect()
}

async fn conversation(server: &Tambour) -> Value {
    server.post("/api/v1/conversations", &json!({})).await.json["conversation_id"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_a_conversation_run_one_after_the_other() {
    let gate = Gate::new();
    let first = [vec![delta("first "), Step::Wait(gate.clone()), delta("reply")], finish("stop")].concat();
    let mock = Mock::start(vec![first, reply("second reply"), reply("third reply")]).await;
    let server = Tambour::with(&mock).await;
    let conversation = conversation(&server).await;
    let ask = |text: &str| json!({"text": text, "dialect": "plain", "conversation_id": conversation});
    let mut ids = Vec::new();
    for text in ["one", "two", "three"] {
        let made = server.post("/api/v1/messages", &ask(text)).await;
        assert_eq!(made.status, 202);
        ids.push(made.json["message_id"].as_str().unwrap().to_owned());
    }
    mock.until(|calls| calls.begun == 1).await;
    let mut refused = ask("four");
    refused["if_busy"] = "refuse".into();
    let refused = server.post("/api/v1/messages", &refused).await;
    assert_eq!((refused.status, refused.problem()), (409, "conversation_busy"));
    // A queued message can be cancelled.
    let made = server.post("/api/v1/messages", &ask("never")).await.json;
    let never = made["message_id"].as_str().unwrap();
    assert_eq!(server.post(&format!("/api/v1/messages/{never}/cancel"), &json!({})).await.status, 202);
    assert_eq!(server.ended(never).await["status"], "cancelled");
    assert_eq!(mock.calls().begun, 1);
    gate.open();
    for id in &ids {
        assert_eq!(server.ended(id).await["status"], "completed");
    }
    let asked = mock.asked();
    let said = |n: usize| -> Vec<String> {
        let messages = asked[n].body["messages"].as_array().unwrap();
        messages.iter().map(|message| message["content"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(said(1), ["one", "first reply", "two"]);
    assert_eq!(said(2), ["one", "first reply", "two", "second reply", "three"]);
    // The record has the prompt that was sent.
    let record = server.get(&format!("/api/v1/messages/{}", ids[1])).await.json;
    let prompt = record["prompt"].as_array().unwrap();
    assert_eq!(prompt.len(), 3);
    assert_eq!(prompt[1], json!({"role": "assistant", "content": "first reply"}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_request_is_the_same_message() {
    let mock = Mock::start(vec![reply("once")]).await;
    let server = Tambour::with(&mock).await;
    let ask = json!({"text": "x", "dialect": "plain"});
    let send = async |body: &Value, key: &str| {
        server
            .call_with("post", "/api/v1/messages", Some(&body.to_string()), &[("idempotency-key", key)])
            .await
    };
    let first = send(&ask, "a").await;
    assert_eq!(first.status, 202);
    let id = first.json["message_id"].as_str().unwrap().to_owned();
    server.ended(&id).await;
    for _ in 0..2 {
        assert_eq!(send(&ask, "a").await.json["message_id"], id.as_str());
    }
    // Repeated with the same body, also as a stream or single answer; refused with another body.
    let other = send(&json!({"text": "y", "dialect": "plain"}), "a").await;
    assert_eq!((other.status, other.problem()), (422, "idempotency_key_reused"));
    assert_eq!(mock.calls().begun, 1);
    assert_eq!(send(&ask, &"k".repeat(256)).await.problem(), "invalid_idempotency_key");
    assert_ne!(send(&ask, "b").await.json["message_id"], id.as_str());
    // The same after a restart.
    let folder = server.stopped().await;
    let mut config = crate::server::config(&folder);
    config.add_upstream(&mock.url(), None).unwrap();
    let server = Tambour::serve(folder, config).await;
    let headers = [("idempotency-key", "a")];
    let again = server.call_with("post", "/api/v1/messages", Some(&ask.to_string()), &headers).await;
    assert_eq!(again.json["message_id"], id.as_str());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_gets_the_record() {
    let mock = Mock::start(vec![reply("<think>Hm.</think>Four.")]).await;
    let server = Tambour::with(&mock).await;
    let answer =
        server.post("/api/v1/messages", &json!({"text": "x", "dialect": "plain", "wait": true})).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!((&answer.json["status"], &answer.json["answer"]), (&json!("completed"), &json!("Four.")));
    assert_eq!(answer.json["prompt"], json!([{"role": "user", "content": "x"}]));
    let both = server.post("/api/v1/messages", &json!({"text": "x", "wait": true, "stream": true})).await;
    assert_eq!((both.status, both.json["field"].as_str()), (422, Some("wait")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_adds_the_format_instructions_and_knows_their_example() {
    let mock = Mock::start(vec![reply("Four.")]).await;
    let server = Tambour::with(&mock).await;
    let ask = json!({"text": "x", "dialect": "thinkingml", "instructions": true, "system_prompt": "Be kind.", "wait": true});
    assert_eq!(server.post("/api/v1/messages", &ask).await.status, 200);
    let system = mock.asked()[0].body["messages"][0].clone();
    assert_eq!(system["role"], "system");
    let system = system["content"].as_str().unwrap();
    assert!(system.starts_with("Be kind.\n\n") && system.contains("<thinking>"), "{system}");
    let none = server
        .post("/api/v1/messages", &json!({"text": "x", "dialect": "plain", "instructions": true}))
        .await;
    assert_eq!((none.status, none.json["field"].as_str()), (422, Some("instructions")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sampling_fields_go_to_the_upstream() {
    let mock = Mock::start(vec![reply("x")]).await;
    let server = Tambour::with(&mock).await;
    let ask = json!({"text": "x", "dialect": "plain", "wait": true, "top_p": 0.5, "stop": ["END"], "seed": 7,
        "response_format": {"type": "json_object"}, "upstream_fields": {"min_p": 0.1, "stream": false}});
    assert_eq!(server.post("/api/v1/messages", &ask).await.status, 200);
    let sent = &mock.asked()[0].body;
    assert_eq!((&sent["top_p"], &sent["stop"], &sent["seed"]), (&json!(0.5), &json!(["END"]), &json!(7)));
    assert_eq!((&sent["response_format"]["type"], &sent["min_p"]), (&json!("json_object"), &json!(0.1)));
    assert_eq!(sent["stream"], true, "what the server rests on stays");
}
