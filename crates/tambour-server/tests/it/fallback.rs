//! Several upstreams behind one alias: the order in which they are called, and the fallback when a reply is unusable.

use serde_json::{Value, json};
use tambour_server::Config;

use crate::client::text;
use crate::mock::{GOOD, Gate, Mock, Step, delta, finish, reply, whole};
use crate::server::{Folder, Tambour};
use crate::tool_kit::{gives, local};

/// A request for the alias `main`.
fn ask(more: &Value) -> Value {
    let mut ask = json!({"model": "main", "messages": [{"role": "user", "content": "2 + 2?"}]});
    ask.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    ask
}

fn upstream(config: &mut Config, name: &str, mock: &Mock) {
    let given = json!({"kind": "openai", "url": format!("http://{}/v1", mock.address), "model": format!("model-{name}")});
    config.upstreams.insert(name.to_owned(), serde_json::from_value(given).unwrap());
}

fn alias(config: &mut Config, name: &str, fields: Value) {
    config.aliases.insert(name.to_owned(), serde_json::from_value(fields).unwrap());
}

/// A server with the upstreams `one` and `two`, and the aliases `main` and `spare` of them; `main` has these further fields.
async fn server(one: &Mock, two: &Mock, main: Value, spare: Value) -> Tambour {
    let both = |base: Value, more: Value| {
        let mut fields = base;
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fields
    };
    Tambour::start(one, |config| {
        local(config);
        config.timeouts.attempts = 1;
        upstream(config, "one", one);
        upstream(config, "two", two);
        alias(
            config,
            "main",
            both(json!({"upstream": "one", "dialect": "plain", "fallback": ["spare"]}), main),
        );
        alias(config, "spare", both(json!({"upstream": "two", "dialect": "plain"}), spare));
    })
    .await
}

fn broken(status: u16) -> Vec<Step> {
    whole(status, "application/json", "{\"error\": {\"message\": \"out of order\"}}")
}

fn said(answer: &Value) -> &str {
    answer["choices"][0]["message"]["content"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

/// The record of the only message.
async fn record(server: &Tambour) -> Value {
    let conversations = server.get("/api/v1/conversations").await.json;
    let id = conversations["data"][0]["conversation_id"]
        .as_str()
        .or(conversations["data"][0]["id"].as_str())
        .unwrap();
    let conversation = server.get(&format!("/api/v1/conversations/{id}/export")).await.text;
    let message = conversation
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find_map(|line| line["message_id"].as_str().map(str::to_owned))
        .unwrap_or_else(|| panic!("{conversation}"));
    server.ended(&message).await
}

#[tokio::test]
async fn another_one_is_asked_when_nothing_comes() {
    let failures = [
        broken(500),
        broken(401),
        broken(400),
        vec![Step::Reset],
        vec![delta(""), Step::Cut],
        whole(200, "text/html", "<html></html>"),
        vec![Step::Send(b"data: {\"error\": \"out of memory\"}\n\n".to_vec()), Step::End],
        // A `retry-after` that is too long while another upstream is available.
        vec![Step::Head(429, vec![("retry-after", "10".into())]), Step::End],
    ];
    for (number, failure) in failures.into_iter().enumerate() {
        let (one, two) = (Mock::start(vec![failure]).await, Mock::start(vec![reply("Four.", 2)]).await);
        let server = server(&one, &two, json!({}), json!({})).await;
        let answer = server.post("/v1/chat/completions", &ask(&json!({}))).await;
        assert_eq!((answer.status, said(&answer.json)), (200, "Four."), "{number}: {}", answer.text);
        assert_eq!((one.calls().begun, two.calls().begun), (1, 1), "{number}");
        assert_eq!(two.asked()[0].body["model"], "model-two");
        assert_eq!(answer.json["model"], "main");
        // The record has both attempts.
        let record = record(&server).await;
        let attempts = record["attempts"].as_array().unwrap();
        assert_eq!((attempts.len(), &attempts[0]["upstream"]), (1, &json!("one")), "{record}");
        assert!(attempts[0]["error"]["code"].as_str().unwrap().starts_with("upstream_"), "{record}");
        assert_eq!((&record["reply"], &record["status"]), (&json!("Four."), &json!("completed")));
    }
    // Retried first, as long as that is worthwhile.
    let one = Mock::start(vec![broken(503), reply("Four.", 2)]).await;
    let two = Mock::start(vec![reply("no", 2)]).await;
    let folder = Folder::new();
    let mut config = crate::server::config(&folder);
    upstream(&mut config, "one", &one);
    upstream(&mut config, "two", &two);
    alias(&mut config, "main", json!({"upstream": "one", "dialect": "plain", "fallback": ["spare"]}));
    alias(&mut config, "spare", json!({"upstream": "two", "dialect": "plain"}));
    let server = Tambour::serve(folder, config).await;
    let answer = server.post("/v1/chat/completions", &ask(&json!({}))).await;
    assert_eq!((said(&answer.json), one.calls().begun, two.calls().begun), ("Four.", 2, 0));
}

#[tokio::test]
async fn the_last_failure_is_told() {
    let (one, two) = (Mock::start(vec![broken(500)]).await, Mock::start(vec![broken(401)]).await);
    let server = server(&one, &two, json!({}), json!({})).await;
    let answer = server.post("/v1/chat/completions", &ask(&json!({}))).await;
    assert_eq!(answer.status, 502, "{}", answer.text);
    assert_eq!(answer.json["error"]["code"], "upstream_unauthorized");
    assert_eq!(record(&server).await["attempts"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn nobody_else_is_asked_once_something_was_sent() {
    let one = Mock::start(vec![vec![delta("Fo"), delta("ur"), Step::Cut]]).await;
    let two = Mock::start(vec![reply("no", 2)]).await;
    let server = server(&one, &two, json!({}), json!({})).await;
    let answer = server.post("/v1/chat/completions", &ask(&json!({"stream": true}))).await;
    assert!(answer.text.contains("Fo") && answer.text.contains("upstream_closed"), "{}", answer.text);
    assert_eq!(two.calls().begun, 0);
    // A stopped message has no fallback either.
    let gate = Gate::new();
    let one = Mock::start(vec![vec![Step::Wait(gate), Step::Cut]]).await;
    let server = self::server(&one, &two, json!({}), json!({})).await;
    let asked = server.begin("/v1/chat/completions", &ask(&json!({}))).await;
    one.until(|calls| calls.begun == 1).await;
    drop(asked);
    one.until(|calls| calls.deserted == 1).await;
    server.until_metric("tambour_running", 0).await;
    assert_eq!(two.calls().begun, 0);
}

#[tokio::test]
async fn a_model_that_gives_nothing_valid_has_failed() {
    // Each reply is read in the dialect of its upstream; the first upstream is called again as often as allowed.
    let one = Mock::start(vec![reply("no tags at all", 3)]).await;
    let two = Mock::start(vec![reply(GOOD, 9)]).await;
    let strict =
        json!({"dialect": "jsonseq", "max_reasks": 1, "instructions": true, "system_prompt": "Be brief."});
    let contract = json!({"dialect": "thinkingml", "contract": {"options": {"text_language": "en"}}});
    let server = server(&one, &two, strict, contract).await;
    let answer = server.post("/v1/chat/completions", &ask(&json!({}))).await;
    assert_eq!(said(&answer.json), "The answer is 4.", "{}", answer.text);
    let reasoning = answer.json["choices"][0]["message"]["reasoning_content"].as_str().unwrap();
    assert!(reasoning.contains("first thought"), "{reasoning}");
    assert_eq!((one.calls().begun, two.calls().begun), (2, 1));
    // Sum of the token counts of all attempts.
    assert_eq!(answer.json["usage"]["completion_tokens"], 15);
    // The second upstream gets the first one's prompt with its own format instructions.
    let (first, second) = (one.asked()[0].body.clone(), two.asked()[0].body.clone());
    let system = |body: &Value| body["messages"][0]["content"].as_str().unwrap().to_owned();
    assert!(system(&first).starts_with("Be brief.") && system(&second).starts_with("Be brief."));
    assert!(system(&first).contains("phase_start") && !system(&first).contains("<thinking>"), "{first}");
    assert!(system(&second).contains("<thinking>") && !system(&second).contains("phase_start"), "{second}");
    assert_eq!(second["messages"].as_array().unwrap().len(), 2, "no complaints about another one's reply");
    assert_eq!(second["messages"][1], first["messages"][1]);
    // The record is built from the log: the reply is read in the dialect of its upstream.
    let record = record(&server).await;
    assert_eq!(record["reply"], GOOD);
    assert_eq!(record.get("history"), None, "{record}");
    assert_eq!(record["prompt"][0]["content"], second["messages"][0]["content"]);
    let attempts = record["attempts"].as_array().unwrap();
    assert_eq!((attempts.len(), &attempts[1]["upstream"]), (2, &json!("one")));
    assert_eq!(attempts[1]["raw"], "no tags at all"); // P-034
    assert_eq!(attempts[1]["finish_reason"], "stop");
}

#[tokio::test]
async fn what_goes_on_is_read_as_it_was_written() {
    // In a conversation, the next prompt has the reply in the dialect of the upstream that wrote it.
    let unclosed = "<thinking><phase id=\"1\"><title>T</title>t</phase></thinking>\n<final>Four.";
    let one = Mock::start(vec![broken(500), broken(500)]).await;
    let two = Mock::start(vec![reply(unclosed, 9), reply(GOOD, 9)]).await;
    let server = server(&one, &two, json!({"dialect": "jsonseq"}), json!({"dialect": "thinkingml"})).await;
    let said = |text: &str| json!({"id": "c1", "model": "main", "message": {"id": "u", "role": "user", "parts": [{"type": "text", "text": text}]}});
    for text in ["2 + 2?", "Sure?"] {
        let answer = server.post("/api/chat", &said(text)).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    let messages = two.asked()[1].body["messages"].clone();
    let before = messages[1]["content"].as_str().unwrap_or_else(|| panic!("{messages}"));
    assert!(before.contains("<final>") && before.contains("</final>"), "{before}");
}

#[tokio::test]
async fn calls_of_the_second_one_run() {
    let call = json!({"choices": [{"index": 0, "delta": {"tool_calls": [
        {"index": 0, "id": "a", "type": "function", "function": {"name": "lint", "arguments": "{\"userInput\": \"x\"}"}},
    ]}}]});
    let calls = [Step::Send(crate::mock::frame(&call))].into_iter().chain(finish("tool_calls")).collect();
    let one = Mock::start(vec![broken(500)]).await;
    let two = Mock::start(vec![calls, broken(500)]).await;
    let hook = Mock::start(vec![gives(&json!({"score": 7}))]).await;
    let server = server(&one, &two, json!({"tools": ["lint"]}), json!({})).await;
    let tool = json!({
        "schema": crate::tool_kit::schema(),
        "executor": {"kind": "http", "url": format!("http://{}/hook", hook.address)},
    });
    assert_eq!(server.put("/api/v1/tools/lint", &tool).await.status, 200);
    let answer = server.post("/v1/chat/completions", &ask(&json!({}))).await;
    assert_eq!((hook.calls().begun, two.calls().begun), (1, 2));
    // A call that has run stays: no other upstream continues after it.
    assert_eq!(
        (one.calls().begun, &answer.json["error"]["code"]),
        (1, &json!("upstream_error")),
        "{}",
        answer.text
    );
    assert_eq!(two.asked()[1].body["messages"][2]["role"], "tool");
}

#[tokio::test]
async fn who_names_an_upstream_gets_no_other() {
    let (one, two) = (Mock::start(vec![broken(500)]).await, Mock::start(vec![reply("no", 2)]).await);
    let server = server(&one, &two, json!({}), json!({})).await;
    for more in [
        json!({"tambour": {"upstream": "one"}}),
        json!({"tambour": {"model": "mine"}}),
        json!({"model": "one"}),
    ] {
        let answer = server.post("/v1/chat/completions", &ask(&more)).await;
        assert_eq!(answer.status, 502, "{}", answer.text);
    }
    assert_eq!(two.calls().begun, 0);
}

#[tokio::test]
async fn what_a_request_says_counts_for_all() {
    let (one, two) = (Mock::start(vec![broken(500)]).await, Mock::start(vec![reply(GOOD, 9)]).await);
    let server = server(&one, &two, json!({}), json!({})).await;
    let more = json!({"tambour": {"dialect": "thinkingml"}, "temperature": 0.5});
    let answer = server.post("/v1/chat/completions", &ask(&more)).await;
    assert_eq!(said(&answer.json), "The answer is 4.", "{}", answer.text);
    assert_eq!(two.asked()[0].body["temperature"], 0.5);
}

#[tokio::test]
async fn weights_share_the_work() {
    let (one, two) = (Mock::start(vec![reply("1", 2)]).await, Mock::start(vec![reply("2", 2)]).await);
    let server = server(&one, &two, json!({"weight": 2}), json!({"weight": 1})).await;
    let mut order = String::new();
    for _ in 0..6 {
        order.push_str(said(&server.post("/v1/chat/completions", &ask(&json!({}))).await.json));
    }
    assert_eq!(order, "121121");
    // An upstream named by the request comes first.
    let spare = server.post("/v1/chat/completions", &ask(&json!({"model": "spare"}))).await;
    assert_eq!(said(&spare.json), "2");
    // Without weights the order of the configuration applies.
    let server = self::server(&one, &two, json!({}), json!({"weight": 3})).await;
    for _ in 0..3 {
        assert_eq!(said(&server.post("/v1/chat/completions", &ask(&json!({}))).await.json), "1");
    }
}

#[tokio::test]
async fn one_that_fails_again_and_again_is_left_alone() {
    let (one, two) = (Mock::start(vec![broken(500)]).await, Mock::start(vec![reply("2", 2)]).await);
    let server = server(&one, &two, json!({"weight": 1}), json!({})).await;
    for asked in 1..=8 {
        let answer = server.post("/v1/chat/completions", &ask(&json!({}))).await;
        assert_eq!(said(&answer.json), "2");
        assert_eq!(one.calls().begun, asked.min(5), "{asked}");
    }
    // Called all the same when it is the only upstream.
    let alone = server.post("/v1/chat/completions", &ask(&json!({"model": "one"}))).await;
    assert_eq!((alone.status, one.calls().begun), (502, 6));
    // A refusal is no failure of the service.
    let one = Mock::start(vec![broken(400)]).await;
    let server = self::server(&one, &two, json!({}), json!({})).await;
    for asked in 1..=7 {
        server.post("/v1/chat/completions", &ask(&json!({}))).await;
        assert_eq!(one.calls().begun, asked);
    }
}

#[tokio::test]
async fn aliases_that_cannot_be_asked_are_told_at_start() {
    let folder = Folder::new();
    for (name, said) in [
        (
            "nobody",
            "FILE:3:1: `aliases.main.fallback` names `nobody`, and there is no such other alias; known: spare",
        ),
        ("main", "FILE:3:1: `aliases.main.fallback` names `main`"),
    ] {
        let text = format!(
            "[aliases.main]\nmodel = \"x\"\nfallback = [\"{name}\"]\n[aliases.spare]\nfallback = [\"main\"]\n"
        );
        let path = folder.file("tambour.toml", &text);
        let mut config = Config::load(Some(&path), std::iter::empty()).unwrap();
        config.listen = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        config.data = folder.0.join("data");
        let error = tambour_server::Server::start(config).await.err().expect("it is refused").to_string();
        let error = error.replace(&path.display().to_string(), "FILE");
        assert!(error.starts_with(said), "{error}");
    }
}

#[tokio::test]
async fn streams_have_nothing_of_those_that_failed() {
    let one = Mock::start(vec![reply("<<ParsingError>>", 3)]).await;
    let two = Mock::start(vec![reply(GOOD, 9)]).await;
    let server = server(&one, &two, json!({"dialect": "thinkingml"}), json!({"dialect": "thinkingml"})).await;
    let answer = server
        .post("/v1/chat/completions", &ask(&json!({"stream": true, "tambour": {"extensions": true}})))
        .await;
    assert!(!answer.text.contains("ParsingError") && !answer.text.contains("upstream"), "{}", answer.text);
    // A client that connects later reads the same from the log.
    let id = record(&server).await["message_id"].as_str().unwrap().to_owned();
    let events = server.follow(&id, &[]).await.whole().await;
    assert_eq!(text(&events, "final_delta"), "The answer is 4.");
    let known = [
        "serp_summary",
        "thinking_start",
        "phase_start",
        "phase_delta",
        "thinking_end",
        "final_delta",
        "final_end",
    ];
    for event in &events {
        let other = ["serp_queries", "completed", "status", "heartbeat", "finding", "repair", "phase_end"];
        assert!(
            known.contains(&event.name.as_str()) || other.contains(&event.name.as_str()),
            "{}",
            event.name
        );
    }
}
