//! Limits of keys, and their usage.

use serde_json::{Value, json};

use crate::mock::{Mock, reply};
use crate::server::{Answer, Tambour};

/// A server with an admin key, and its secret.
async fn locked(mock: &Mock) -> (Tambour, String) {
    let alias = json!({"model": "m", "dialect": "plain"});
    let mut server = Tambour::start(mock, |config| {
        config.aliases.insert("sums".into(), serde_json::from_value(alias.clone()).unwrap());
        config.aliases.insert("other".into(), serde_json::from_value(alias).unwrap());
    })
    .await;
    let made = server.post("/api/v1/keys", &json!({"name": "admin", "rights": "admin"})).await;
    let secret = made.json["key"].as_str().unwrap().to_owned();
    server.key(Some(&secret));
    (server, secret)
}

async fn key(server: &Tambour, fields: &Value) -> (String, String) {
    let made = server.post("/api/v1/keys", fields).await;
    assert_eq!(made.status, 201, "{}", made.text);
    for (name, value) in fields.as_object().unwrap() {
        assert_eq!(&made.json[name], value, "{}", made.text);
    }
    (made.json["id"].as_str().unwrap().to_owned(), made.json["key"].as_str().unwrap().to_owned())
}

/// Sends a message and waits until its usage is counted.
async fn asked(server: &Tambour) -> Answer {
    let answer = server.post("/api/v1/messages", &json!({"text": "x", "wait": true})).await;
    if answer.status == 200 {
        server.ended(answer.json["message_id"].as_str().unwrap_or_else(|| panic!("{}", answer.text))).await;
    }
    answer
}

async fn chat(server: &Tambour, model: &str, more: &Value) -> Answer {
    let body = json!({"model": model, "messages": [{"role": "user", "content": "x"}], "tambour": more});
    server.post("/v1/chat/completions", &body).await
}

fn seconds(answer: &Answer) -> u64 {
    answer.headers["retry-after"].to_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_key_asks_as_often_as_it_may() {
    let mock = Mock::start(vec![reply("x", 1); 4]).await;
    let (mut server, admin) = locked(&mock).await;
    let (_, secret) = key(&server, &json!({"name": "few", "requests_per_minute": 2})).await;
    server.key(Some(&secret));
    assert_eq!(asked(&server).await.status, 200);
    assert_eq!(chat(&server, "sums", &json!({})).await.status, 200);
    let refused = asked(&server).await;
    assert_eq!((refused.status, refused.problem()), (429, "rate_limited"), "{}", refused.text);
    assert!((1..=31).contains(&seconds(&refused)), "{}", seconds(&refused));
    let refused = chat(&server, "sums", &json!({})).await;
    assert_eq!((refused.status, &refused.json["error"]["code"]), (429, &json!("rate_limited")));
    assert!(seconds(&refused) >= 1);
    // Reads are not counted, and another key has its own quota.
    assert_eq!(server.get("/api/v1/conversations").await.status, 200);
    server.key(Some(&admin));
    assert_eq!(asked(&server).await.status, 200);
    assert_eq!(mock.calls().begun, 3);
    let none = server.post("/api/v1/keys", &json!({"name": "a", "requests_per_minute": -1})).await;
    assert_eq!(none.status, 422);
}

#[tokio::test]
async fn tokens_of_a_day_are_used_up() {
    // Twelve tokens a message.
    let mock = Mock::start(vec![reply("x", 1); 3]).await;
    let (mut server, admin) = locked(&mock).await;
    let (id, secret) = key(&server, &json!({"name": "small", "tokens_per_day": 20})).await;
    server.key(Some(&secret));
    assert_eq!((asked(&server).await.status, asked(&server).await.status), (200, 200));
    let refused = asked(&server).await;
    assert_eq!((refused.status, refused.problem()), (429, "tokens_used_up"), "{}", refused.text);
    assert!((1..=86_400).contains(&seconds(&refused)));
    // The same after a restart.
    let folder = server.stopped().await;
    let mut config = crate::server::config(&folder);
    config.add_upstream(&mock.url(), None).unwrap();
    let mut server = Tambour::serve(folder, config).await;
    server.key(Some(&secret));
    assert_eq!(asked(&server).await.problem(), "tokens_used_up");
    // A key sees its own usage, an admin that of all.
    let own = server.get("/api/v1/usage").await.json;
    let row = &own["data"][0];
    assert_eq!(own["data"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&row["key_id"], &row["requests"], &row["input_tokens"], &row["output_tokens"], &row["total_tokens"]),
        (&json!(id), &json!(2), &json!(14), &json!(10), &json!(24))
    );
    server.key(Some(&admin));
    assert_eq!(asked(&server).await.status, 200);
    let all = server.get("/api/v1/usage").await.json;
    assert_eq!(all["data"].as_array().unwrap().len(), 2);
    let first = server.get("/api/v1/usage?limit=1").await.json;
    assert_eq!(first["has_more"], true);
    let after = first["data"][0]["id"].as_str().unwrap();
    let rest = server.get(&format!("/api/v1/usage?limit=1&after={after}")).await.json;
    assert_eq!((&rest["data"][0], &rest["has_more"]), (&all["data"][1], &json!(false)));
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
    let mock = Mock::start(vec![reply("x", 1); 2]).await;
    let (mut server, _) = locked(&mock).await;
    let script = crate::dialogues::script(&["{type: ai_say, content: x}"]);
    let (_, secret) = key(&server, &json!({"name": "one", "aliases": ["sums"]})).await;
    server.key(Some(&secret));
    assert_eq!(chat(&server, "sums", &json!({})).await.status, 200);
    for (model, more) in [
        ("other", json!({})),
        ("openai/m", json!({})),
        ("sums", json!({"upstream": "openai"})),
        ("sums", json!({"model": "x"})),
    ] {
        let refused = chat(&server, model, &more).await;
        assert_eq!(
            (refused.status, &refused.json["error"]["code"]),
            (403, &json!("model_forbidden")),
            "{model} {more}"
        );
    }
    let refused = asked(&server).await;
    assert_eq!((refused.status, refused.problem()), (403, "model_forbidden"));
    let models = server.get("/v1/models").await.json;
    assert_eq!(
        models["data"].as_array().unwrap().iter().map(|model| &model["id"]).collect::<Vec<_>>(),
        ["sums"]
    );
    assert_eq!(server.get("/v1/models/other").await.status, 403);
    let made = server.post("/api/v1/scripts", &json!({"name": "s", "yaml": script})).await;
    let dialogue = server.post("/api/v1/dialogues", &json!({"script_id": made.json["script_id"]})).await;
    let path = format!("/api/v1/dialogues/{}/input", dialogue.json["dialogue_id"].as_str().unwrap());
    assert_eq!(server.post(&path, &json!({})).await.problem(), "model_forbidden");
    assert_eq!(mock.calls().begun, 1);
}

#[tokio::test]
async fn turns_of_dialogues_count() {
    let answer = crate::dialogues::answer(30, false, "一");
    let mock = Mock::start(vec![reply(&answer, 9); 2]).await;
    let (mut server, _) = locked(&mock).await;
    let (_, secret) = key(&server, &json!({"name": "few", "requests_per_minute": 1})).await;
    server.key(Some(&secret));
    let script = crate::dialogues::script(&["{type: ai_say, content: x, max_rounds: 3}"]);
    let made = server.post("/api/v1/scripts", &json!({"name": "s", "yaml": script})).await;
    let dialogue = server.post("/api/v1/dialogues", &json!({"script_id": made.json["script_id"]})).await;
    let path = format!("/api/v1/dialogues/{}/input", dialogue.json["dialogue_id"].as_str().unwrap());
    let body = json!({"text": "嗯", "request_id": "r"});
    assert_eq!(server.post(&path, &body).await.status, 200);
    let refused = server.post(&path, &json!({"text": "嗯"})).await;
    assert_eq!((refused.status, refused.problem()), (429, "rate_limited"), "{}", refused.text);
    // Repeating the same input calls no model.
    assert_eq!(server.post(&path, &body).await.status, 200);
    let row = server.get("/api/v1/usage").await.json["data"][0].clone();
    assert_eq!((&row["requests"], &row["total_tokens"]), (&json!(1), &json!(12)), "{row}");
}

#[tokio::test]
async fn limits_of_a_key_change_while_it_is_used() {
    let mock = Mock::start(vec![reply("x", 1); 4]).await;
    let (mut server, admin) = locked(&mock).await;
    let (id, secret) =
        key(&server, &json!({"name": "few", "requests_per_minute": 1, "tokens_per_day": 100000})).await;
    let place = format!("/api/v1/keys/{id}");
    server.key(Some(&secret));
    assert_eq!(asked(&server).await.status, 200);
    assert_eq!(asked(&server).await.problem(), "rate_limited");
    let own = server.call("patch", &place, Some("{\"requests_per_minute\": null}")).await;
    assert_eq!((own.status, own.problem()), (403, "forbidden"));
    server.key(Some(&admin));
    let changed =
        server.call("patch", &place, Some("{\"requests_per_minute\": null, \"name\": \"many\"}")).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
    assert_eq!((&changed.json["name"], &changed.json["tokens_per_day"]), (&json!("many"), &json!(100_000)));
    assert!(changed.json.get("requests_per_minute").is_none() && changed.json.get("key").is_none());
    assert_eq!(server.get("/api/v1/keys").await.json["data"][1], changed.json);
    for (sent, code, close) in [
        (json!({"aliases": ["smus"]}), "unknown_alias", json!(["sums"])),
        (json!({"requests_per_minute": "2"}), "invalid_field", json!(null)),
    ] {
        let refused = server.call("patch", &place, Some(&sent.to_string())).await;
        assert_eq!((refused.status, refused.problem(), &refused.json["close"]), (422, code, &close));
    }
    let detail = server.call("patch", &place, Some("{\"tokens_per_day\": -1}")).await.json["detail"].clone();
    assert!(detail.as_str().unwrap().contains("a whole number from 0 to 18446744073709551615"), "{detail}");
    assert_eq!(server.call("patch", "/api/v1/keys/nobody", Some("{}")).await.status, 404);
    server.key(Some(&secret));
    assert_eq!(asked(&server).await.status, 200, "it holds at once");
    server.key(Some(&admin));
    let one = server.call("patch", &place, Some("{\"aliases\": [\"sums\"]}")).await;
    assert_eq!(one.json["aliases"], json!(["sums"]));
    server.key(Some(&secret));
    assert_eq!(asked(&server).await.problem(), "model_forbidden");
    // Changes are stored.
    server.key(None);
    let folder = server.stopped().await;
    let mut config = crate::server::config(&folder);
    config.add_upstream(&mock.url(), Some("a-model".to_owned())).unwrap();
    let mut again = Tambour::serve(folder, config).await;
    again.key(Some(&admin));
    assert_eq!(again.get("/api/v1/keys").await.json["data"][1], one.json);
}

#[tokio::test]
async fn a_key_of_an_alias_that_does_not_exist_is_refused() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let (server, _) = locked(&mock).await;
    let refused = server.post("/api/v1/keys", &json!({"name": "one", "aliases": ["sums", "otter"]})).await;
    assert_eq!((refused.status, refused.problem()), (422, "unknown_alias"), "{}", refused.text);
    assert_eq!((&refused.json["field"], &refused.json["close"]), (&json!("aliases"), &json!(["other"])));
    assert_eq!(refused.json["detail"], "there is no alias `otter`; known: other, sums");
}
