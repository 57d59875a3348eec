//! Owners are distinct from keys: things belong to the owner, and stay when a key is removed.

use serde_json::{Value, json};

use crate::mock::{Gate, Mock, Step, delta, finish, reply};
use crate::server::{Folder, Tambour, config};

async fn key(server: &Tambour, new: &Value) -> Value {
    let made = server.post("/api/v1/keys", new).await;
    assert_eq!(made.status, 201, "{}", made.text);
    made.json
}

async fn message(server: &Tambour) -> String {
    let made = server.post("/api/v1/messages", &json!({"text": "x", "dialect": "plain"})).await.json;
    let id = made["message_id"].as_str().unwrap().to_owned();
    server.ended(&id).await;
    id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_key_takes_over_and_a_new_key_of_the_owner_sees_the_same() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let mut server = Tambour::with(&mock).await;
    let local = message(&server).await;
    let admin = key(&server, &json!({"name": "a", "rights": "admin"})).await;
    server.key(admin["key"].as_str());
    let path = format!("/api/v1/messages/{local}");
    assert_eq!(server.get(&path).await.status, 200, "what the local user had is the first owner's");
    // A new owner by default; the same one when named.
    let other = key(&server, &json!({"name": "b"})).await;
    let same = key(&server, &json!({"name": "c", "owner": admin["owner"]})).await;
    assert_ne!(other["owner"], admin["owner"]);
    for (made, status) in [(&other, 404), (&same, 200)] {
        server.key(made["key"].as_str());
        assert_eq!(server.get(&path).await.status, status);
    }
    let own = message(&server).await;
    // The key is removed, and everything made with it stays.
    server.key(admin["key"].as_str());
    let gone = format!("/api/v1/keys/{}", same["id"].as_str().unwrap());
    assert_eq!(server.call("delete", &gone, None).await.status, 204);
    assert_eq!(server.get(&format!("/api/v1/messages/{own}")).await.status, 200);
    for wrong in ["", "local", "a b"] {
        let refused = server.post("/api/v1/keys", &json!({"name": "d", "owner": wrong})).await;
        assert_eq!((refused.status, refused.json["field"].as_str()), (422, Some("owner")), "{wrong}");
    }
    let listed = server.get("/api/v1/keys?limit=1").await.json;
    assert_eq!((listed["data"].as_array().unwrap().len(), &listed["has_more"]), (1, &json!(true)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configured_key_takes_over_what_the_local_user_had() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let server = Tambour::with(&mock).await;
    let local = message(&server).await;
    let folder: Folder = server.stopped().await;
    let mut config = config(&folder);
    config.add_upstream(&mock.url(), None).unwrap();
    config.api_key = Some("a-key-that-is-long-enough".into());
    let mut server = Tambour::serve(folder, config).await;
    server.key(Some("a-key-that-is-long-enough"));
    assert_eq!(server.get(&format!("/api/v1/messages/{local}")).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_and_runs_of_a_removed_key_end() {
    let gate = Gate::new();
    let script = [vec![delta("begun "), Step::Wait(gate.clone())], finish("stop")].concat();
    let mock = Mock::start(vec![script]).await;
    let mut server = Tambour::with(&mock).await;
    let admin = key(&server, &json!({"name": "a", "rights": "admin"})).await;
    server.key(admin["key"].as_str());
    let made = key(&server, &json!({"name": "b", "owner": admin["owner"]})).await;
    server.key(made["key"].as_str());
    let ask = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
    let mut stream = server.stream(&ask).await;
    let events = stream.until("final_delta").await;
    let id = crate::client::message(&events);
    server.key(admin["key"].as_str());
    let path = format!("/api/v1/keys/{}", made["id"].as_str().unwrap());
    assert_eq!(server.call("delete", &path, None).await.status, 204);
    let rest = stream.rest().await;
    assert!(stream.over);
    // J-035
    crate::client::check(&[events, rest.clone()].concat());
    assert_eq!(rest.iter().map(|event| &*event.name).collect::<Vec<_>>(), ["final_end", "error"]);
    assert_eq!(rest[1].data["code"], "unauthorized");
    mock.until(|calls| calls.over == 1).await;
    assert_eq!(server.ended(&id).await["status"], "cancelled");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_lets_a_browser_read_one_stream() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let mut server = Tambour::with(&mock).await;
    let admin = key(&server, &json!({"name": "a", "rights": "admin"})).await;
    server.key(admin["key"].as_str());
    let (id, other) = (message(&server).await, message(&server).await);
    let made = server.post(&format!("/api/v1/messages/{id}/stream_tokens"), &json!({})).await;
    assert_eq!(made.status, 201);
    let token = made.json["token"].as_str().unwrap();
    assert!(made.json["expires_in"].as_u64().unwrap() <= 600);
    server.key(None);
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
