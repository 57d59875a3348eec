//! A move of all data from SQLite to PostgreSQL.

use serde_json::{Value, json};
use tambour_server::store::{MoveError, PostgresOptions, PostgresStore, SqliteStore, Store as _, move_data};

use super::KEY;
use crate::mock::{MockServer, reply_script};
use crate::postgres::cluster as postgres;
use crate::server::{Folder, TestServer, test_config};

/// Paths whose answers must be the same before and after a move.
async fn read_everything(server: &TestServer, messages: &[String], conversation: &str) -> Vec<String> {
    let mut paths: Vec<String> = [
        "settings",
        "keys",
        "tools",
        "templates",
        "scripts",
        "conversations",
        "dialogues",
        "cards",
        "usage",
        "figures",
    ]
    .map(|name| format!("/api/v1/{name}"))
    .into();
    paths.push(format!("/api/v1/conversations/{conversation}"));
    paths.push(format!("/api/v1/conversations/{conversation}/export"));
    paths.push(format!("/api/v1/conversations/{conversation}/state"));
    for id in messages {
        paths.push(format!("/api/v1/messages/{id}"));
        paths.push(format!("/api/v1/messages/{id}/events"));
    }
    let mut answers = Vec::new();
    for path in paths {
        let answer = server.get(&path).await;
        assert!(answer.status < 300, "{path}: {}", answer.text);
        // A heartbeat says what time it is.
        let frames: Vec<&str> =
            answer.text.split("\n\n").filter(|frame| !frame.contains("heartbeat")).collect();
        answers.push(format!("{path}\n{}", frames.join("\n\n")));
    }
    answers
}

/// Makes rows in most tables. Returns the ids of messages and of their conversation.
async fn make_data(server: &TestServer) -> (Vec<String>, String) {
    let request = json!({"text": "x", "dialect": "filament", "output_protocol": "jsonseq_v1"});
    let first = server.post("/api/v1/messages", &request).await.json;
    let conversation = first["conversation_id"].as_str().unwrap().to_owned();
    let mut messages = vec![first["message_id"].as_str().unwrap().to_owned()];
    server.wait_ended(&messages[0]).await;
    for at in 0..3 {
        let mut next = request.clone();
        next["conversation_id"] = json!(conversation);
        let key = format!("word {at}");
        let answer = server
            .call_with("post", "/api/v1/messages", Some(&next.to_string()), &[("idempotency-key", &key)])
            .await;
        let id = answer.json["message_id"].as_str().unwrap_or_else(|| panic!("{}", answer.text)).to_owned();
        server.wait_ended(&id).await;
        messages.push(id);
    }
    for (path, body) in [
        ("/api/v1/settings", json!({"text_language": "en"})),
        ("/api/v1/templates/a-tool", json!({"text": "{x}"})),
        ("/api/v1/tools/look", json!({"schema": {"type": "object"}, "executor": {"kind": "client"}})),
    ] {
        let answer = server.put(path, &body).await;
        assert!(answer.status < 300, "{path}: {}", answer.text);
    }
    let key = server.post("/api/v1/keys", &json!({"name": "x", "requests_per_minute": 5})).await;
    assert_eq!(key.status, 201, "{}", key.text);
    let operations = json!({"operations": [["SET", "b", 2]]});
    let path = format!("/api/v1/conversations/{conversation}/state/operations");
    let changed = server.post(&path, &operations).await;
    assert!(changed.status < 300, "{}", changed.text);
    (messages, conversation)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_that_is_killed_at_every_page_leaves_nothing_out() {
    let reply = "<content>Hello.</content>\n<state_update>[[\"SET\", \"a\", 1]]</state_update>";
    let mock = MockServer::start(vec![reply_script(reply, 5)]).await;
    let folder = Folder::new();
    let mut config = test_config(&folder);
    config.add_upstream(&mock.url(), Some("a-model".to_owned())).unwrap();
    config.api_key = Some(KEY.to_owned());
    let file = config.database_file().unwrap();
    let mut server = TestServer::serve(folder, config.clone()).await;
    server.set_key(Some(KEY));
    let (messages, conversation) = make_data(&server).await;
    let before = read_everything(&server, &messages, &conversation).await;
    let folder = server.stop().await;
    let url = postgres().await.new_database().await;
    let mut attempts = 0;
    for pages in 0.. {
        attempts += 1;
        // Dies when the next page has been stored.
        let (file, url) = (file.clone(), url.clone());
        let attempt = tokio::spawn(async move {
            let source = SqliteStore::open(&file, false).await.unwrap();
            let target = PostgresStore::open(&PostgresOptions::new(url)).await.unwrap();
            let mut left = pages;
            let result = move_data(&source, &target, |_| {
                assert!(left > 0, "killed here");
                left -= 1;
            })
            .await;
            target.close().await;
            source.close().await;
            result
        });
        if let Ok(result) = attempt.await {
            assert!(result.unwrap() > 10);
            break;
        }
    }
    assert!(attempts > 10, "{attempts}");
    // A target that has data of its own is refused.
    let other = SqliteStore::open(&folder.0.join("other.sqlite"), false).await.unwrap();
    let target = PostgresStore::open(&PostgresOptions::new(url.clone())).await.unwrap();
    let refusal = move_data(&other, &target, |_| ()).await;
    assert!(matches!(refusal, Err(MoveError::TargetInUse)), "{refusal:?}");
    target.close().await;
    config.database = Some(url);
    let mut server = TestServer::serve(folder, config).await;
    server.set_key(Some(KEY));
    let after = read_everything(&server, &messages, &conversation).await;
    for (after, before) in after.iter().zip(&before) {
        assert_eq!(after, before);
    }
    // New rows are numbered after the old ones.
    let request = json!({"text": "x", "dialect": "plain", "conversation_id": conversation});
    let answer = server.post("/api/v1/messages", &request).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    let record = server.wait_ended(answer.json["message_id"].as_str().unwrap()).await;
    assert_eq!(record["status"], "completed", "{record}");
    // The request with a key that was answered before the move is answered again.
    let mut next = json!({"text": "x", "dialect": "filament", "output_protocol": "jsonseq_v1"});
    next["conversation_id"] = Value::from(conversation);
    let again = server
        .call_with("post", "/api/v1/messages", Some(&next.to_string()), &[("idempotency-key", "word 0")])
        .await;
    assert_eq!(again.json["message_id"], messages[1].as_str(), "{}", again.text);
}
