//! Figures of replies over time, and what they cost.

use serde_json::{Value, json};

use crate::mock::{GOOD_REPLY, MockServer, Step, finish_steps, reply_script, response_script, sse_frame};
use crate::server::{Answer, TestServer};

/// Cost of one reply: seven prompt tokens and five reply tokens, at 1 and 2 a million.
const REPLY_COST: f64 = (7.0 + 2.0 * 5.0) / 1e6;

/// A server whose default upstream has a price, with an admin key.
async fn server_with_prices(mock: &MockServer) -> (TestServer, String) {
    let mut server = TestServer::start(mock, |config| {
        config.currency = "EUR".to_owned();
        let prices = json!({"*": {"input": 1.0, "output": 2.0}, "free": {"input": 0.0, "output": 0.0}});
        for upstream in config.upstreams.values_mut() {
            upstream.prices = serde_json::from_value(prices.clone()).unwrap();
        }
    })
    .await;
    let response = server.post("/api/v1/keys", &json!({"name": "admin", "rights": "admin"})).await;
    let secret = response.json["key"].as_str().unwrap().to_owned();
    server.set_key(Some(&secret));
    (server, secret)
}

async fn post_chat(server: &TestServer, fields: &Value) -> Value {
    let mut body = json!({"text": "x", "wait": true});
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let answer = server.post("/api/v1/messages", &body).await;
    server.wait_ended(answer.json["message_id"].as_str().unwrap_or_else(|| panic!("{}", answer.text))).await
}

fn row_counts(row: &Value) -> [i64; 5] {
    ["completed", "failed", "cancelled", "repaired", "replaced"].map(|name| row[name].as_i64().unwrap())
}

fn is_close(value: &Value, expected: f64) -> bool {
    (value.as_f64().unwrap() - expected).abs() < 1e-9
}

async fn get_figures(server: &TestServer, query: &str) -> Answer {
    let answer = server.get(&format!("/api/v1/figures{query}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer
}

#[tokio::test]
async fn replies_are_counted_by_how_they_ended_and_cost() {
    let unclosed = GOOD_REPLY.replace("</final>", "");
    let refusal = response_script(400, "application/json", r#"{"error": {"message": "no"}}"#);
    let scripts: Vec<Vec<Step>> = vec![
        reply_script(GOOD_REPLY, 40),
        reply_script(&unclosed, 40),
        reply_script("<thinking>\nonly this", 40),
        refusal,
        reply_script("x", 1),
    ];
    let mock = MockServer::start(scripts).await;
    let (server, _) = server_with_prices(&mock).await;
    let thinking = json!({"dialect": "thinkingml"});
    post_chat(&server, &thinking).await;
    let repaired_id = post_chat(&server, &thinking).await;
    assert!(repaired_id["metadata"]["repairs"].as_u64().unwrap() > 0, "{repaired_id}");
    let replaced_id = post_chat(&server, &thinking).await;
    assert!(!replaced_id["metadata"]["fallback_reason"].is_null(), "{replaced_id}");
    let failed_id = post_chat(&server, &thinking).await;
    assert_eq!(failed_id["status"], "failed");
    post_chat(&server, &json!({"dialect": "plain", "model": "free"})).await;
    let totals = get_figures(&server, "").await.json;
    assert_eq!(totals["currency"], "EUR");
    let total = &totals["total"];
    assert_eq!(row_counts(total), [4, 1, 0, 1, 1], "{total}");
    let tokens =
        ["input_tokens", "output_tokens", "unpriced_tokens"].map(|name| total[name].as_i64().unwrap());
    assert_eq!(tokens, [28, 20, 0], "{total}");
    assert!(is_close(&total["cost"], 3.0 * REPLY_COST), "{total}");
    assert!(total["first_text_ms"].as_u64().is_some() && total["first_text_p95_ms"].as_u64().is_some());
    let rules = totals["repairs"].as_array().unwrap();
    let findings = |record: &Value| {
        let findings = record["findings"].as_array().unwrap();
        findings.iter().filter(|finding| !finding["repair"].is_null()).count() as u64
    };
    let repairs: u64 = rules.iter().map(|rule| rule["count"].as_u64().unwrap()).sum();
    assert_eq!(repairs, findings(&repaired_id) + findings(&replaced_id), "{rules:?}");
    // One upstream, one day; perhaps two hours.
    assert_eq!(totals["upstreams"][0]["upstream"], "openai");
    assert_eq!(row_counts(&totals["upstreams"][0]), row_counts(total));
    let hourly = get_figures(&server, "?by=hour").await.json;
    assert_eq!(hourly["total"], *total);
    let times = hourly["times"].as_array().unwrap();
    let completed_count: i64 = times.iter().map(|row| row["completed"].as_i64().unwrap()).sum();
    assert_eq!(completed_count, 4);
    assert!(times[0]["time"].as_str().unwrap().ends_with(":00:00Z"), "{times:?}");
    let counts = times.iter().flat_map(|row| row["repairs"].as_array().unwrap());
    assert_eq!(counts.map(|rule| rule["count"].as_u64().unwrap()).sum::<u64>(), repairs, "{times:?}");
    assert_eq!(times[0]["repairs"][0]["rule"], rules[0]["rule"]);
    assert_eq!(hourly["data"].as_array().unwrap().len(), times.len());
    // Deleting a message leaves the figures.
    let deletion = server
        .call("DELETE", &format!("/api/v1/messages/{}", repaired_id["message_id"].as_str().unwrap()), None)
        .await;
    assert_eq!(deletion.status, 204);
    assert_eq!(get_figures(&server, "").await.json["total"], *total);
}

#[tokio::test]
async fn reasoning_is_no_first_text() {
    let mut script = vec![Step::Send(sse_frame(&json!({"choices": [{"delta": {"reasoning": "hm"}}]})))];
    script.extend(finish_steps("stop"));
    let mock = MockServer::start(vec![script]).await;
    let (server, _) = server_with_prices(&mock).await;
    let record = post_chat(&server, &json!({"dialect": "plain"})).await;
    assert_eq!(record["reasoning"], "hm", "{record}");
    let timings = &record["timings"];
    assert!(timings["first_byte_ms"].is_u64() && timings["first_text_ms"].is_null(), "{record}");
    let total = get_figures(&server, "").await.json["total"].clone();
    assert_eq!((&total["first_text_ms"], &total["output_tokens"]), (&Value::Null, &json!(5)), "{total}");
}

#[tokio::test]
async fn figures_are_seen_by_their_owner_and_by_admins() {
    let mock = MockServer::start(vec![reply_script("x", 1), reply_script("x", 1)]).await;
    let (mut server, admin) = server_with_prices(&mock).await;
    post_chat(&server, &json!({"dialect": "plain"})).await;
    let response = server.post("/api/v1/keys", &json!({"name": "other"})).await;
    server.set_key(response.json["key"].as_str());
    let own_figures = get_figures(&server, "").await.json;
    assert_eq!((row_counts(&own_figures["total"]), &own_figures["times"]), ([0; 5], &json!([])));
    assert_eq!(own_figures["total"]["first_text_ms"], Value::Null);
    post_chat(&server, &json!({"dialect": "plain"})).await;
    assert_eq!(row_counts(&get_figures(&server, "").await.json["total"]), [1, 0, 0, 0, 0]);
    server.set_key(Some(&admin));
    assert_eq!(row_counts(&get_figures(&server, "").await.json["total"]), [2, 0, 0, 0, 0]);
    assert_eq!(get_figures(&server, "?to=2020-01-01").await.json["from"], "2019-12-26");
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
