//! Figures of replies over time, and what they cost.

use serde_json::{Value, json};

use crate::mock::{GOOD, Mock, Step, reply, whole};
use crate::server::{Answer, Tambour};

/// Cost of one reply: seven prompt tokens and five reply tokens, at 1 and 2 a million.
const COST: f64 = (7.0 + 2.0 * 5.0) / 1e6;

/// A server whose default upstream has a price, with an admin key.
async fn priced(mock: &Mock) -> (Tambour, String) {
    let mut server = Tambour::start(mock, |config| {
        config.currency = "EUR".to_owned();
        let prices = json!({"*": {"input": 1.0, "output": 2.0}, "free": {"input": 0.0, "output": 0.0}});
        for upstream in config.upstreams.values_mut() {
            upstream.prices = serde_json::from_value(prices.clone()).unwrap();
        }
    })
    .await;
    let made = server.post("/api/v1/keys", &json!({"name": "admin", "rights": "admin"})).await;
    let secret = made.json["key"].as_str().unwrap().to_owned();
    server.key(Some(&secret));
    (server, secret)
}

async fn ask(server: &Tambour, fields: &Value) -> Value {
    let mut body = json!({"text": "x", "wait": true});
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let answer = server.post("/api/v1/messages", &body).await;
    server.ended(answer.json["message_id"].as_str().unwrap_or_else(|| panic!("{}", answer.text))).await
}

fn counts(of: &Value) -> [i64; 5] {
    ["completed", "failed", "cancelled", "repaired", "replaced"].map(|name| of[name].as_i64().unwrap())
}

fn close(value: &Value, expected: f64) -> bool {
    (value.as_f64().unwrap() - expected).abs() < 1e-9
}

async fn figures(server: &Tambour, query: &str) -> Answer {
    let answer = server.get(&format!("/api/v1/figures{query}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer
}

#[tokio::test]
async fn replies_are_counted_by_how_they_ended_and_cost() {
    let unclosed = GOOD.replace("</final>", "");
    let refused = whole(400, "application/json", r#"{"error": {"message": "no"}}"#);
    let scripts: Vec<Vec<Step>> = vec![
        reply(GOOD, 40),
        reply(&unclosed, 40),
        reply("<thinking>\nonly this", 40),
        refused,
        reply("x", 1),
    ];
    let mock = Mock::start(scripts).await;
    let (server, _) = priced(&mock).await;
    let thinking = json!({"dialect": "thinkingml"});
    ask(&server, &thinking).await;
    let repaired = ask(&server, &thinking).await;
    assert!(repaired["metadata"]["repairs"].as_u64().unwrap() > 0, "{repaired}");
    let replaced = ask(&server, &thinking).await;
    assert!(!replaced["metadata"]["fallback_reason"].is_null(), "{replaced}");
    let failed = ask(&server, &thinking).await;
    assert_eq!(failed["status"], "failed");
    ask(&server, &json!({"dialect": "plain", "model": "free"})).await;
    let shown = figures(&server, "").await.json;
    assert_eq!(shown["currency"], "EUR");
    let total = &shown["total"];
    assert_eq!(counts(total), [4, 1, 0, 1, 1], "{total}");
    let tokens =
        ["input_tokens", "output_tokens", "unpriced_tokens"].map(|name| total[name].as_i64().unwrap());
    assert_eq!(tokens, [28, 20, 0], "{total}");
    assert!(close(&total["cost"], 3.0 * COST), "{total}");
    assert!(total["first_text_ms"].as_u64().is_some() && total["first_text_p95_ms"].as_u64().is_some());
    let rules = shown["repairs"].as_array().unwrap();
    let findings = |record: &Value| {
        let findings = record["findings"].as_array().unwrap();
        findings.iter().filter(|finding| !finding["repair"].is_null()).count() as u64
    };
    let repairs: u64 = rules.iter().map(|rule| rule["count"].as_u64().unwrap()).sum();
    assert_eq!(repairs, findings(&repaired) + findings(&replaced), "{rules:?}");
    // One upstream, one day; perhaps two hours.
    assert_eq!(shown["upstreams"][0]["upstream"], "openai");
    assert_eq!(counts(&shown["upstreams"][0]), counts(total));
    let hourly = figures(&server, "?by=hour").await.json;
    assert_eq!(hourly["total"], *total);
    let times = hourly["times"].as_array().unwrap();
    let completed: i64 = times.iter().map(|row| row["completed"].as_i64().unwrap()).sum();
    assert_eq!(completed, 4);
    assert!(times[0]["time"].as_str().unwrap().ends_with(":00:00Z"), "{times:?}");
    let counts = times.iter().flat_map(|row| row["repairs"].as_array().unwrap());
    assert_eq!(counts.map(|rule| rule["count"].as_u64().unwrap()).sum::<u64>(), repairs, "{times:?}");
    assert_eq!(times[0]["repairs"][0]["rule"], rules[0]["rule"]);
    assert_eq!(hourly["data"].as_array().unwrap().len(), times.len());
    // Deleting a message leaves the figures.
    let deleted = server
        .call("DELETE", &format!("/api/v1/messages/{}", repaired["message_id"].as_str().unwrap()), None)
        .await;
    assert_eq!(deleted.status, 204);
    assert_eq!(figures(&server, "").await.json["total"], *total);
}

#[tokio::test]
async fn figures_are_seen_by_their_owner_and_by_admins() {
    let mock = Mock::start(vec![reply("x", 1), reply("x", 1)]).await;
    let (mut server, admin) = priced(&mock).await;
    ask(&server, &json!({"dialect": "plain"})).await;
    let made = server.post("/api/v1/keys", &json!({"name": "other"})).await;
    server.key(made.json["key"].as_str());
    let own = figures(&server, "").await.json;
    assert_eq!((counts(&own["total"]), &own["times"]), ([0; 5], &json!([])));
    assert_eq!(own["total"]["first_text_ms"], Value::Null);
    ask(&server, &json!({"dialect": "plain"})).await;
    assert_eq!(counts(&figures(&server, "").await.json["total"]), [1, 0, 0, 0, 0]);
    server.key(Some(&admin));
    assert_eq!(counts(&figures(&server, "").await.json["total"]), [2, 0, 0, 0, 0]);
    assert_eq!(figures(&server, "?to=2020-01-01").await.json["from"], "2019-12-26");
    for query in [
        "from=today",
        "from=2026-13-01",
        "by=week",
        "from=2026-01-02&to=2026-01-01",
        "from=2020-01-01&to=2026-01-01",
        "from=2026-01-01&to=2026-03-01&by=hour",
        "from=-009999-01-01",
        "limit=1",
    ] {
        let wrong = server.get(&format!("/api/v1/figures?{query}")).await;
        assert!([400, 422].contains(&wrong.status), "{query}: {}", wrong.text);
    }
}
