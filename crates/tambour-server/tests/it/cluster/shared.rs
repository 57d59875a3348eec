//! Decisions of one server that hold on all.

use std::time::Duration;

use serde_json::{Value, json};
use tambour_server::store::{PostgresOptions, PostgresStore, Store as _, StoreError};

use super::{KEY, start_members};
use crate::client::{check_stream, event_names, joined_text, stream_message_id};
use crate::mock::{Gate, MockServer, Step, delta_step, finish_steps, reply_script};
use crate::postgres::cluster as postgres;
use crate::server::{TestServer, with_timeout};

/// Reply that stops at a gate.
fn gated_reply(before: &str, gate: &Gate, after: &str) -> Vec<Step> {
    let mut steps = vec![delta_step(before), Step::Wait(gate.clone()), delta_step(after)];
    steps.extend(finish_steps("stop"));
    steps
}

fn request() -> Value {
    json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"})
}

/// Waits until a request gets a status.
async fn wait_for_status(server: &TestServer, path: &str, status: u16) {
    with_timeout(async {
        while server.get(path).await.status != status {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_read_on_every_server_while_it_is_written() {
    let gate = Gate::new();
    let mock = MockServer::start(vec![gated_reply("one ", &gate, "two")]).await;
    let (_, members) = start_members(3, &mock).await;
    let mut own = members[0].server.open_stream(&request()).await;
    let mut seen = own.read_until("final_delta").await;
    let id = stream_message_id(&seen);
    let mut remote = members[1].server.follow(&id, &[]).await;
    let mut remote_seen = remote.read_until("final_delta").await;
    // Each server shows the text before the next one exists.
    gate.open();
    seen.extend(own.read_rest().await);
    remote_seen.extend(remote.read_rest().await);
    let late_seen = members[2].server.follow(&id, &[]).await.read_rest().await;
    check_stream(&seen);
    for events in [&remote_seen, &late_seen] {
        let frames = |events: &[crate::client::Event]| -> Vec<String> {
            events.iter().filter(|event| event.id.is_some()).map(|event| event.frame.clone()).collect()
        };
        assert_eq!(frames(events), frames(&seen), "the same bytes at each number");
    }
    assert_eq!(joined_text(&seen, "final_delta"), "one two");
    assert_eq!(members[2].server.wait_ended(&id).await["status"], "completed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_on_another_server_keeps_a_message_alive() {
    let gate = Gate::new();
    let mock = MockServer::start(vec![gated_reply("one ", &gate, "two")]).await;
    let (_, members) = start_members(2, &mock).await;
    let mut own = members[0].server.open_stream(&request()).await;
    let id = stream_message_id(&own.read_until("final_delta").await);
    let mut remote = members[1].server.follow(&id, &[]).await;
    remote.read_until("final_delta").await;
    // The only reader on the server that writes goes away, for longer than its grace time.
    drop(own);
    tokio::time::sleep(Duration::from_millis(2500)).await;
    gate.open();
    let rest = remote.read_rest().await;
    assert_eq!(event_names(&rest).last(), Some(&"completed"), "{rest:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_cancelled_through_another_server() {
    let mock = MockServer::start(vec![vec![delta_step("one "), Step::WaitDisconnect]]).await;
    let (_, members) = start_members(2, &mock).await;
    let mut own = members[0].server.open_stream(&request()).await;
    let id = stream_message_id(&own.read_until("final_delta").await);
    let answer = members[1].server.post(&format!("/api/v1/messages/{id}/cancel"), &Value::Null).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    own.read_rest().await;
    assert_eq!(members[1].server.wait_ended(&id).await["status"], "cancelled");
    mock.wait_until(|calls| calls.abandoned == 1).await;
    assert_eq!(members[1].server.metric("tambour_forwarded_total").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_runs_on_another_server_is_deleted_at_once_and_its_readers_go() {
    let mock = MockServer::start(vec![vec![delta_step("one "), Step::WaitDisconnect]]).await;
    let (_, members) = start_members(2, &mock).await;
    let mut own = members[0].server.open_stream(&request()).await;
    let id = stream_message_id(&own.read_until("final_delta").await);
    let mut remote = members[1].server.follow(&id, &[]).await;
    remote.read_until("final_delta").await;
    let answer = members[1].server.call("delete", &format!("/api/v1/messages/{id}"), None).await;
    assert_eq!(answer.status, 204, "{}", answer.text);
    // Its model is not asked any longer.
    mock.wait_until(|calls| calls.abandoned == 1).await;
    for stream in [&mut own, &mut remote] {
        with_timeout(async { while stream.next_event_or_cut().await.is_some() {} }).await;
    }
    for member in &members {
        assert_eq!(member.server.get(&format!("/api/v1/messages/{id}")).await.status, 404);
    }
    // The same for a conversation.
    let mut own = members[0].server.open_stream(&request()).await;
    let id = stream_message_id(&own.read_until("final_delta").await);
    let record = members[1].server.get(&format!("/api/v1/messages/{id}")).await.json;
    let path = format!("/api/v1/conversations/{}", record["conversation_id"].as_str().unwrap());
    assert_eq!(members[1].server.call("delete", &path, None).await.status, 204);
    mock.wait_until(|calls| calls.abandoned == 2).await;
    assert_eq!(members[0].server.get(&path).await.status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_settings_and_tokens_hold_on_all_servers() {
    let mock = MockServer::start(vec![reply_script("hello", 5)]).await;
    let (_, mut members) = start_members(2, &mock).await;
    let key = members[0].server.post("/api/v1/keys", &json!({"name": "x"})).await;
    let (secret, key_id) =
        (key.json["key"].as_str().unwrap().to_owned(), key.json["id"].as_str().unwrap().to_owned());
    members[1].server.set_key(Some(&secret));
    wait_for_status(&members[1].server, "/api/v1/conversations", 200).await;
    // A request that is repeated on another server makes no second key.
    members[1].server.set_key(Some(KEY));
    let headers = [("idempotency-key", "one key")];
    let new_key = json!({"name": "once"}).to_string();
    let created = members[0].server.call_with("post", "/api/v1/keys", Some(&new_key), &headers).await;
    assert_eq!(created.status, 201);
    let repeated = members[0].server.call_with("post", "/api/v1/keys", Some(&new_key), &headers).await;
    assert_eq!((repeated.status, &repeated.json), (201, &created.json));
    let refused = loop {
        let answer = members[1].server.call_with("post", "/api/v1/keys", Some(&new_key), &headers).await;
        // The first server lets the request go in the background.
        if answer.problem_code() != "request_under_way" {
            break answer;
        }
    };
    assert_eq!((refused.status, refused.problem_code()), (409, "secret_not_stored"));
    assert_eq!(refused.json["ids"], json!([created.json["id"]]));
    let other_key = json!({"name": "other"}).to_string();
    let other = members[1].server.call_with("post", "/api/v1/keys", Some(&other_key), &headers).await;
    assert_eq!(other.problem_code(), "idempotency_key_reused");
    // A token that one server has given holds on the other.
    members[1].server.set_key(Some(KEY));
    let id = members[0].server.post("/api/v1/messages", &request()).await.json["message_id"].clone();
    let id = id.as_str().unwrap();
    members[0].server.wait_ended(id).await;
    let token = members[0].server.post(&format!("/api/v1/messages/{id}/stream_tokens"), &Value::Null).await;
    let token = token.json["token"].as_str().unwrap().to_owned();
    members[1].server.set_key(None);
    let path = format!("/api/v1/messages/{id}/events?token={token}");
    assert_eq!(members[1].server.get(&path).await.status, 200);
    assert_eq!(members[1].server.get("/api/v1/messages/other/events?token=x").await.status, 401);
    // A key that is removed on one server is refused on the other.
    members[1].server.set_key(Some(&secret));
    assert_eq!(members[0].server.call("delete", &format!("/api/v1/keys/{key_id}"), None).await.status, 204);
    wait_for_status(&members[1].server, "/api/v1/conversations", 401).await;
    // Settings.
    members[1].server.set_key(Some(KEY));
    let change = json!({"text_language": "en"});
    assert_eq!(members[0].server.put("/api/v1/settings", &change).await.status, 200);
    with_timeout(async {
        while members[1].server.get("/api/v1/settings").await.json["text_language"] != "en" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    // A change that is based on an older version is refused, wherever the newer one was made.
    let outdated = json!({"text_language": "zh", "version": 0});
    let refusal = members[1].server.put("/api/v1/settings", &outdated).await;
    assert_eq!(refusal.problem_code(), "settings_changed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_has_one_quota_for_all_servers() {
    let mock = MockServer::start(vec![reply_script("hello", 5)]).await;
    let (_, mut members) = start_members(3, &mock).await;
    let limits = json!({"name": "x", "requests_per_minute": 4});
    let key = members[0].server.post("/api/v1/keys", &limits).await;
    let secret = key.json["key"].as_str().unwrap_or_else(|| panic!("{}", key.text)).to_owned();
    for member in &mut members {
        member.server.set_key(Some(&secret));
        wait_for_status(&member.server, "/api/v1/conversations", 200).await;
    }
    let mut statuses = Vec::new();
    for at in 0..6 {
        statuses.push(members[at % 3].server.post("/api/v1/messages", &request()).await.status);
    }
    assert_eq!(statuses, [202, 202, 202, 202, 429, 429]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_request_begins_one_message_on_all_servers() {
    let mock = MockServer::start(vec![reply_script("hello", 5)]).await;
    let (_, members) = start_members(3, &mock).await;
    let body = request().to_string();
    for round in 0..5 {
        let key = format!("word-{round}");
        let headers = [("idempotency-key", key.as_str())];
        let post = |at: usize| {
            let (server, body) = (&members[at].server, &body);
            async move {
                loop {
                    let answer = server.call_with("post", "/api/v1/messages", Some(body), &headers).await;
                    // Another server is at it.
                    if answer.status != 409 {
                        break answer;
                    }
                }
            }
        };
        let (first, second, third) = tokio::join!(post(0), post(1), post(2));
        for answer in [&first, &second, &third] {
            assert_eq!(answer.json["message_id"], first.json["message_id"], "{}", answer.text);
        }
    }
    with_timeout(async {
        while mock.calls().ended < 5 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!(mock.calls().started, 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_a_conversation_run_one_after_the_other_on_all_servers() {
    let gate = Gate::new();
    let mock = MockServer::start(vec![gated_reply("one ", &gate, "two"), reply_script("three", 5)]).await;
    let (_, members) = start_members(2, &mock).await;
    let mut own = members[0].server.open_stream(&request()).await;
    let seen = own.read_until("final_delta").await;
    let record = members[1].server.get(&format!("/api/v1/messages/{}", stream_message_id(&seen))).await.json;
    let conversation = record["conversation_id"].as_str().unwrap();
    let mut next = request();
    next["conversation_id"] = json!(conversation);
    // It waits for the message of the other server.
    let answer = members[1].server.post("/api/v1/messages", &next).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    let running = members[0].server.get("/api/v1/conversations").await;
    assert_eq!((running.status, mock.calls().started), (200, 1));
    gate.open();
    own.read_rest().await;
    let record = members[0].server.wait_ended(answer.json["message_id"].as_str().unwrap()).await;
    assert_eq!(record["status"], "completed");
    // The second prompt has the first reply, which another server has written.
    let requests = mock.requests();
    let messages = requests[1].body["messages"].as_array().unwrap();
    assert!(messages.iter().any(|message| message["content"] == "one two"), "{messages:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_start_at_once_migrate_once_and_a_later_schema_is_refused() {
    let url = postgres().await.empty_database().await;
    let opening = || {
        let options = PostgresOptions::new(url.clone());
        async move { PostgresStore::open(&options).await }
    };
    let (first, second, third) = tokio::join!(opening(), opening(), opening());
    for store in [first, second, third] {
        store.unwrap().close().await;
    }
    let pool = sqlx::PgPool::connect(&url).await.unwrap();
    let statement = "insert into _sqlx_migrations (version, description, success, checksum, execution_time) \
        values (9999, 'later', true, '', 0)";
    sqlx::query(statement).execute(&pool).await.unwrap();
    let refusal = opening().await.err().expect("it is refused");
    assert!(matches!(refusal, StoreError::LaterSchema(9999)), "{refusal}");
}

/// Configuration of a server on a new database, without a key.
async fn cluster_config(folder: &crate::server::Folder) -> tambour_server::Config {
    let mut config = crate::server::test_config(folder);
    config.add_upstream("demo", None).unwrap();
    config.database = Some(postgres().await.new_database().await);
    config
}

#[tokio::test]
async fn a_database_is_not_shared_without_a_key() {
    let folder = crate::server::Folder::new();
    let config = cluster_config(&folder).await;
    let refusal = tambour_server::Server::start(config).await.err().expect("it is refused");
    assert!(refusal.to_string().contains("TAMBOUR_API_KEY"), "{refusal}");
}

#[tokio::test]
async fn a_server_that_the_others_could_not_reach_does_not_start() {
    let folder = crate::server::Folder::new();
    let mut config = cluster_config(&folder).await;
    config.api_key = Some(KEY.to_owned());
    config.listen = std::net::SocketAddr::from(([0, 0, 0, 0], 0));
    let refusal = tambour_server::Server::start(config).await.err().expect("it is refused");
    assert!(refusal.to_string().contains("`cluster.address` is needed"), "{refusal}");
}
