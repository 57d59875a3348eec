//! Limits of keys, and their usage.

use serde_json::{Value, json};

use crate::mock::{MockServer, reply_script};
use crate::server::{Answer, TestServer};

/// A server with an admin key, and its secret.
async fn server_with_admin(mock: &MockServer) -> (TestServer, String) {
    let alias = json!({"model": "m", "dialect": "plain"});
    let mut server = TestServer::start(mock, |config| {
        config.aliases.insert("sums".into(), serde_json::from_value(alias.clone()).unwrap());
        config.aliases.insert("other".into(), serde_json::from_value(alias).unwrap());
    })
    .await;
    let response = server.post("/api/v1/keys", &json!({"name": "admin", "rights": "admin"})).await;
    let secret = response.json["key"].as_str().unwrap().to_owned();
    server.set_key(Some(&secret));
    (server, secret)
}

async fn new_key(server: &TestServer, fields: &Value) -> (String, String) {
    let response = server.post("/api/v1/keys", fields).await;
    assert_eq!(response.status, 201, "{}", response.text);
    for (name, value) in fields.as_object().unwrap() {
        assert_eq!(&response.json[name], value, "{}", response.text);
    }
    (response.json["id"].as_str().unwrap().to_owned(), response.json["key"].as_str().unwrap().to_owned())
}

/// Sends a message and waits until its usage is counted.
async fn post_message(server: &TestServer) -> Answer {
    let answer = server.post("/api/v1/messages", &json!({"text": "x", "wait": true})).await;
    if answer.status == 200 {
        server
            .wait_ended(answer.json["message_id"].as_str().unwrap_or_else(|| panic!("{}", answer.text)))
            .await;
    }
    answer
}

async fn post_chat(server: &TestServer, model: &str, fields: &Value) -> Answer {
    let body = json!({"model": model, "messages": [{"role": "user", "content": "x"}], "tambour": fields});
    server.post("/v1/chat/completions", &body).await
}

fn retry_seconds(answer: &Answer) -> u64 {
    answer.headers["retry-after"].to_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_key_asks_as_often_as_it_may() {
    let mock = MockServer::start(vec![reply_script("x", 1); 4]).await;
    let (mut server, admin) = server_with_admin(&mock).await;
    let (_, secret) = new_key(&server, &json!({"name": "few", "requests_per_minute": 2})).await;
    server.set_key(Some(&secret));
    assert_eq!(post_message(&server).await.status, 200);
    assert_eq!(post_chat(&server, "sums", &json!({})).await.status, 200);
    let refusal = post_message(&server).await;
    assert_eq!((refusal.status, refusal.problem_code()), (429, "rate_limited"), "{}", refusal.text);
    assert!((1..=31).contains(&retry_seconds(&refusal)), "{}", retry_seconds(&refusal));
    let refusal = post_chat(&server, "sums", &json!({})).await;
    assert_eq!((refusal.status, &refusal.json["error"]["code"]), (429, &json!("rate_limited")));
    assert!(retry_seconds(&refusal) >= 1);
    // Reads are not counted, and another key has its own quota.
    assert_eq!(server.get("/api/v1/conversations").await.status, 200);
    server.set_key(Some(&admin));
    assert_eq!(post_message(&server).await.status, 200);
    assert_eq!(mock.calls().started, 3);
    let refusal_of_limit =
        server.post("/api/v1/keys", &json!({"name": "a", "requests_per_minute": -1})).await;
    assert_eq!(refusal_of_limit.status, 422);
}

#[tokio::test]
async fn tokens_of_a_day_are_used_up() {
    // Twelve tokens a message.
    let mock = MockServer::start(vec![reply_script("x", 1); 3]).await;
    let (mut server, admin) = server_with_admin(&mock).await;
    let (id, secret) = new_key(&server, &json!({"name": "small", "tokens_per_day": 20})).await;
    server.set_key(Some(&secret));
    assert_eq!((post_message(&server).await.status, post_message(&server).await.status), (200, 200));
    let refusal = post_message(&server).await;
    assert_eq!((refusal.status, refusal.problem_code()), (429, "tokens_used_up"), "{}", refusal.text);
    assert!((1..=86_400).contains(&retry_seconds(&refusal)));
    // The same after a restart.
    let folder = server.stop().await;
    let mut config = crate::server::test_config(&folder);
    config.add_upstream(&mock.url(), None).unwrap();
    let mut server = TestServer::serve(folder, config).await;
    server.set_key(Some(&secret));
    assert_eq!(post_message(&server).await.problem_code(), "tokens_used_up");
    // A key sees its own usage, an admin that of all.
    let own_usage = server.get("/api/v1/usage").await.json;
    let row = &own_usage["data"][0];
    assert_eq!(own_usage["data"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&row["key_id"], &row["requests"], &row["input_tokens"], &row["output_tokens"], &row["total_tokens"]),
        (&json!(id), &json!(2), &json!(14), &json!(10), &json!(24))
    );
    server.set_key(Some(&admin));
    assert_eq!(post_message(&server).await.status, 200);
    let all_usage = server.get("/api/v1/usage").await.json;
    assert_eq!(all_usage["data"].as_array().unwrap().len(), 2);
    let first = server.get("/api/v1/usage?limit=1").await.json;
    assert_eq!(first["has_more"], true);
    let after = first["data"][0]["id"].as_str().unwrap();
    let rest = server.get(&format!("/api/v1/usage?limit=1&after={after}")).await.json;
    assert_eq!((&rest["data"][0], &rest["has_more"]), (&all_usage["data"][1], &json!(false)));
    let day = row["day"].as_str().unwrap();
    assert_eq!(
        server.get(&format!("/api/v1/usage?from={day}&to={day}")).await.json["data"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(server.get("/api/v1/usage?to=2020-01-01").await.json["data"], json!([]));
    for query in ["from=today", "from=2026-13-01", "limit=0", "after=x", "more=1"] {
        let wrong = server.get(&format!("/api/v1/usage?{query}")).await;
        assert!([400, 422].contains(&wrong.status), "{query}: {}", wrong.text);
    }
    let keys = server.get("/api/v1/keys").await.json;
    assert_eq!(keys["data"][1]["tokens_per_day"], 20);
}

#[tokio::test]
async fn a_key_asks_its_aliases_and_nobody_else() {
    let mock = MockServer::start(vec![reply_script("x", 1); 2]).await;
    let (mut server, _) = server_with_admin(&mock).await;
    let script = crate::dialogues::script_of_actions(&["{type: ai_say, content: x}"]);
    let (_, secret) = new_key(&server, &json!({"name": "one", "aliases": ["sums"]})).await;
    server.set_key(Some(&secret));
    assert_eq!(post_chat(&server, "sums", &json!({})).await.status, 200);
    for (model, fields) in [
        ("other", json!({})),
        ("openai/m", json!({})),
        ("sums", json!({"upstream": "openai"})),
        ("sums", json!({"model": "x"})),
    ] {
        let refusal = post_chat(&server, model, &fields).await;
        assert_eq!(
            (refusal.status, &refusal.json["error"]["code"]),
            (403, &json!("model_forbidden")),
            "{model} {fields}"
        );
    }
    let refusal = post_message(&server).await;
    assert_eq!((refusal.status, refusal.problem_code()), (403, "model_forbidden"));
    let models = server.get("/v1/models").await.json;
    assert_eq!(
        models["data"].as_array().unwrap().iter().map(|model| &model["id"]).collect::<Vec<_>>(),
        ["sums"]
    );
    assert_eq!(server.get("/v1/models/other").await.status, 403);
    let response = server.post("/api/v1/scripts", &json!({"name": "s", "yaml": script})).await;
    let dialogue = server.post("/api/v1/dialogues", &json!({"script_id": response.json["script_id"]})).await;
    let path = format!("/api/v1/dialogues/{}/input", dialogue.json["dialogue_id"].as_str().unwrap());
    assert_eq!(server.post(&path, &json!({})).await.problem_code(), "model_forbidden");
    assert_eq!(mock.calls().started, 1);
}

#[tokio::test]
async fn turns_of_dialogues_count() {
    let answer = crate::dialogues::round_answer(30, false, "一");
    let mock = MockServer::start(vec![reply_script(&answer, 9); 2]).await;
    let (mut server, _) = server_with_admin(&mock).await;
    let (_, secret) = new_key(&server, &json!({"name": "few", "requests_per_minute": 1})).await;
    server.set_key(Some(&secret));
    let script = crate::dialogues::script_of_actions(&["{type: ai_say, content: x, max_rounds: 3}"]);
    let response = server.post("/api/v1/scripts", &json!({"name": "s", "yaml": script})).await;
    let dialogue = server.post("/api/v1/dialogues", &json!({"script_id": response.json["script_id"]})).await;
    let path = format!("/api/v1/dialogues/{}/input", dialogue.json["dialogue_id"].as_str().unwrap());
    let body = json!({"text": "嗯", "request_id": "r"});
    assert_eq!(server.post(&path, &body).await.status, 200);
    let refusal = server.post(&path, &json!({"text": "嗯"})).await;
    assert_eq!((refusal.status, refusal.problem_code()), (429, "rate_limited"), "{}", refusal.text);
    // Repeating the same input calls no model.
    assert_eq!(server.post(&path, &body).await.status, 200);
    let row = server.get("/api/v1/usage").await.json["data"][0].clone();
    assert_eq!((&row["requests"], &row["total_tokens"]), (&json!(1), &json!(12)), "{row}");
}

#[tokio::test]
async fn limits_of_a_key_change_while_it_is_used() {
    let mock = MockServer::start(vec![reply_script("x", 1); 4]).await;
    let (mut server, admin) = server_with_admin(&mock).await;
    let (id, secret) =
        new_key(&server, &json!({"name": "few", "requests_per_minute": 1, "tokens_per_day": 100000})).await;
    let place = format!("/api/v1/keys/{id}");
    server.set_key(Some(&secret));
    assert_eq!(post_message(&server).await.status, 200);
    assert_eq!(post_message(&server).await.problem_code(), "rate_limited");
    let own_change = server.call("patch", &place, Some("{\"requests_per_minute\": null}")).await;
    assert_eq!((own_change.status, own_change.problem_code()), (403, "forbidden"));
    server.set_key(Some(&admin));
    let changed_key =
        server.call("patch", &place, Some("{\"requests_per_minute\": null, \"name\": \"many\"}")).await;
    assert_eq!(changed_key.status, 200, "{}", changed_key.text);
    assert_eq!(
        (&changed_key.json["name"], &changed_key.json["tokens_per_day"]),
        (&json!("many"), &json!(100_000))
    );
    assert!(changed_key.json.get("requests_per_minute").is_none() && changed_key.json.get("key").is_none());
    assert_eq!(server.get("/api/v1/keys").await.json["data"][1], changed_key.json);
    for (change_body, code, close) in [
        (json!({"aliases": ["smus"]}), "unknown_alias", json!(["sums"])),
        (json!({"requests_per_minute": "2"}), "invalid_field", json!(null)),
    ] {
        let refusal = server.call("patch", &place, Some(&change_body.to_string())).await;
        assert_eq!((refusal.status, refusal.problem_code(), &refusal.json["close"]), (422, code, &close));
    }
    let detail = server.call("patch", &place, Some("{\"tokens_per_day\": -1}")).await.json["detail"].clone();
    assert!(detail.as_str().unwrap().contains("a whole number from 0 to 18446744073709551615"), "{detail}");
    assert_eq!(server.call("patch", "/api/v1/keys/nobody", Some("{}")).await.status, 404);
    server.set_key(Some(&secret));
    assert_eq!(post_message(&server).await.status, 200, "it holds at once");
    server.set_key(Some(&admin));
    let alias_change = server.call("patch", &place, Some("{\"aliases\": [\"sums\"]}")).await;
    assert_eq!(alias_change.json["aliases"], json!(["sums"]));
    server.set_key(Some(&secret));
    assert_eq!(post_message(&server).await.problem_code(), "model_forbidden");
    // Changes are stored.
    server.set_key(None);
    let folder = server.stop().await;
    let mut config = crate::server::test_config(&folder);
    config.add_upstream(&mock.url(), Some("a-model".to_owned())).unwrap();
    let mut next_server = TestServer::serve(folder, config).await;
    next_server.set_key(Some(&admin));
    assert_eq!(next_server.get("/api/v1/keys").await.json["data"][1], alias_change.json);
}

#[tokio::test]
async fn a_key_of_an_alias_that_does_not_exist_is_refused() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let (server, _) = server_with_admin(&mock).await;
    let refusal = server.post("/api/v1/keys", &json!({"name": "one", "aliases": ["sums", "otter"]})).await;
    assert_eq!((refusal.status, refusal.problem_code()), (422, "unknown_alias"), "{}", refusal.text);
    assert_eq!((&refusal.json["field"], &refusal.json["close"]), (&json!("aliases"), &json!(["other"])));
    assert_eq!(refusal.json["detail"], "there is no alias `otter`; known: other, sums");
}
