//! Owners are distinct from keys: things belong to the owner, and stay when a key is removed.

use serde_json::{Value, json};

use crate::mock::{Gate, MockServer, Step, delta_step, finish_steps, reply_script};
use crate::server::{Folder, TestServer, test_config};

async fn new_key(server: &TestServer, new: &Value) -> Value {
    let response = server.post("/api/v1/keys", new).await;
    assert_eq!(response.status, 201, "{}", response.text);
    response.json
}

async fn post_message(server: &TestServer) -> String {
    let response = server.post("/api/v1/messages", &json!({"text": "x", "dialect": "plain"})).await.json;
    let id = response["message_id"].as_str().unwrap().to_owned();
    server.wait_ended(&id).await;
    id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_key_takes_over_and_a_new_key_of_the_owner_sees_the_same() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let mut server = TestServer::start_default(&mock).await;
    let local = post_message(&server).await;
    let admin = new_key(&server, &json!({"name": "a", "rights": "admin"})).await;
    server.set_key(admin["key"].as_str());
    let path = format!("/api/v1/messages/{local}");
    assert_eq!(server.get(&path).await.status, 200, "what the local user had is the first owner's");
    // A new owner by default; the same one when named.
    let other = new_key(&server, &json!({"name": "b"})).await;
    let same_owner_key = new_key(&server, &json!({"name": "c", "owner": admin["owner"]})).await;
    assert_ne!(other["owner"], admin["owner"]);
    for (created_key, status) in [(&other, 404), (&same_owner_key, 200)] {
        server.set_key(created_key["key"].as_str());
        assert_eq!(server.get(&path).await.status, status);
    }
    let own_message = post_message(&server).await;
    // The key is removed, and everything made with it stays.
    server.set_key(admin["key"].as_str());
    let key_path = format!("/api/v1/keys/{}", same_owner_key["id"].as_str().unwrap());
    assert_eq!(server.call("delete", &key_path, None).await.status, 204);
    assert_eq!(server.get(&format!("/api/v1/messages/{own_message}")).await.status, 200);
    for wrong in ["", "local", "a b"] {
        let refusal = server.post("/api/v1/keys", &json!({"name": "d", "owner": wrong})).await;
        assert_eq!((refusal.status, refusal.json["field"].as_str()), (422, Some("owner")), "{wrong}");
    }
    let listing = server.get("/api/v1/keys?limit=1").await.json;
    assert_eq!((listing["data"].as_array().unwrap().len(), &listing["has_more"]), (1, &json!(true)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configured_key_takes_over_what_the_local_user_had() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = TestServer::start_default(&mock).await;
    let local = post_message(&server).await;
    let folder: Folder = server.stop().await;
    let mut config = test_config(&folder);
    config.add_upstream(&mock.url(), None).unwrap();
    config.api_key = Some("a-key-that-is-long-enough".into());
    let mut server = TestServer::serve(folder, config).await;
    server.set_key(Some("a-key-that-is-long-enough"));
    assert_eq!(server.get(&format!("/api/v1/messages/{local}")).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_and_runs_of_a_removed_key_end() {
    let gate = Gate::new();
    let script = [vec![delta_step("begun "), Step::Wait(gate.clone())], finish_steps("stop")].concat();
    let mock = MockServer::start(vec![script]).await;
    let mut server = TestServer::start_default(&mock).await;
    let admin = new_key(&server, &json!({"name": "a", "rights": "admin"})).await;
    server.set_key(admin["key"].as_str());
    let second_key = new_key(&server, &json!({"name": "b", "owner": admin["owner"]})).await;
    server.set_key(second_key["key"].as_str());
    let request = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
    let mut stream = server.open_stream(&request).await;
    let events = stream.read_until("final_delta").await;
    let id = crate::client::stream_message_id(&events);
    server.set_key(admin["key"].as_str());
    let path = format!("/api/v1/keys/{}", second_key["id"].as_str().unwrap());
    assert_eq!(server.call("delete", &path, None).await.status, 204);
    let rest = stream.read_rest().await;
    assert!(stream.has_ended);
    // J-035
    crate::client::check_stream(&[events, rest.clone()].concat());
    assert_eq!(rest.iter().map(|event| &*event.name).collect::<Vec<_>>(), ["final_end", "error"]);
    assert_eq!(rest[1].data["code"], "unauthorized");
    mock.wait_until(|calls| calls.ended == 1).await;
    assert_eq!(server.wait_ended(&id).await["status"], "cancelled");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_lets_a_browser_read_one_stream() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let mut server = TestServer::start_default(&mock).await;
    let admin = new_key(&server, &json!({"name": "a", "rights": "admin"})).await;
    server.set_key(admin["key"].as_str());
    let (id, other) = (post_message(&server).await, post_message(&server).await);
    let response = server.post(&format!("/api/v1/messages/{id}/stream_tokens"), &json!({})).await;
    assert_eq!(response.status, 201);
    let token = response.json["token"].as_str().unwrap();
    assert!(response.json["expires_in"].as_u64().unwrap() <= 600);
    server.set_key(None);
    let events = server.get(&format!("/api/v1/messages/{id}/events?token={token}")).await;
    assert!(events.status == 200 && events.text.contains("event: completed"), "{}", events.text);
    for path in [
        format!("/api/v1/messages/{other}/events?token={token}"),
        format!("/api/v1/messages/{id}?token={token}"),
        format!("/api/v1/messages/{id}/events?token={}x", token),
    ] {
        assert_eq!(server.get(&path).await.status, 401, "{path}");
    }
}
