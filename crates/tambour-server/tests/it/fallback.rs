//! Several upstreams behind one alias: the order in which they are called, and the fallback when a reply is unusable.

use serde_json::{Value, json};
use tambour_server::Config;

use crate::client::joined_text;
use crate::mock::{
    GOOD_REPLY, Gate, MockServer, Step, delta_step, finish_steps, reply_script, response_script,
};
use crate::server::{Folder, TestServer};
use crate::tool_kit::{allow_local_webhooks, webhook_answer};

/// A request for the alias `main`.
fn request_body(fields: &Value) -> Value {
    let mut request = json!({"model": "main", "messages": [{"role": "user", "content": "2 + 2?"}]});
    request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    request
}

fn add_upstream(config: &mut Config, name: &str, mock: &MockServer) {
    let upstream_config = json!({"kind": "openai", "url": format!("http://{}/v1", mock.address), "model": format!("model-{name}")});
    config.upstreams.insert(name.to_owned(), serde_json::from_value(upstream_config).unwrap());
}

fn add_alias(config: &mut Config, name: &str, fields: Value) {
    config.aliases.insert(name.to_owned(), serde_json::from_value(fields).unwrap());
}

/// A server with the upstreams `primary` and `secondary`, and the aliases `main` and `spare` of them; `main` has these further fields.
async fn server_with_aliases(
    primary: &MockServer,
    secondary: &MockServer,
    main: Value,
    spare: Value,
) -> TestServer {
    let with_both = |base: Value, changes: Value| {
        let mut fields = base;
        fields.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        fields
    };
    TestServer::start(primary, |config| {
        allow_local_webhooks(config);
        config.timeouts.attempts = 1;
        add_upstream(config, "one", primary);
        add_upstream(config, "two", secondary);
        add_alias(
            config,
            "main",
            with_both(json!({"upstream": "one", "dialect": "plain", "fallback": ["spare"]}), main),
        );
        add_alias(config, "spare", with_both(json!({"upstream": "two", "dialect": "plain"}), spare));
    })
    .await
}

/// Starts a server that repeats calls as by default; the alias `main` has the fallback `spare`.
async fn server_with_retries(
    primary: &MockServer,
    secondary: &MockServer,
    change: impl FnOnce(&mut Config),
) -> TestServer {
    let folder = Folder::new();
    let mut config = crate::server::test_config(&folder);
    add_upstream(&mut config, "one", primary);
    add_upstream(&mut config, "two", secondary);
    add_alias(&mut config, "main", json!({"upstream": "one", "dialect": "plain", "fallback": ["spare"]}));
    add_alias(&mut config, "spare", json!({"upstream": "two", "dialect": "plain"}));
    change(&mut config);
    TestServer::serve(folder, config).await
}

fn failure_script(status: u16) -> Vec<Step> {
    response_script(status, "application/json", "{\"error\": {\"message\": \"out of order\"}}")
}

fn answer_text(answer: &Value) -> &str {
    answer["choices"][0]["message"]["content"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

/// The record of the only message.
async fn only_record(server: &TestServer) -> Value {
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
    server.wait_ended(&message).await
}

#[tokio::test]
async fn another_one_is_asked_when_nothing_comes() {
    let failures = [
        failure_script(500),
        failure_script(401),
        failure_script(400),
        vec![Step::Reset],
        vec![delta_step(""), Step::Cut],
        response_script(200, "text/html", "<html></html>"),
        vec![Step::Send(b"data: {\"error\": \"out of memory\"}\n\n".to_vec()), Step::End],
        // A `retry-after` that is too long while another upstream is available.
        vec![Step::Head(429, vec![("retry-after", "10".into())]), Step::End],
    ];
    for (number, failure) in failures.into_iter().enumerate() {
        let (primary, secondary) =
            (MockServer::start(vec![failure]).await, MockServer::start(vec![reply_script("Four.", 2)]).await);
        let server = server_with_aliases(&primary, &secondary, json!({}), json!({})).await;
        let answer = server.post("/v1/chat/completions", &request_body(&json!({}))).await;
        assert_eq!((answer.status, answer_text(&answer.json)), (200, "Four."), "{number}: {}", answer.text);
        assert_eq!((primary.calls().started, secondary.calls().started), (1, 1), "{number}");
        assert_eq!(secondary.requests()[0].body["model"], "model-two");
        assert_eq!(answer.json["model"], "main");
        // The record has both attempts.
        let record = only_record(&server).await;
        let attempts = record["attempts"].as_array().unwrap();
        assert_eq!((attempts.len(), &attempts[0]["upstream"]), (1, &json!("one")), "{record}");
        assert!(attempts[0]["error"]["code"].as_str().unwrap().starts_with("upstream_"), "{record}");
        assert_eq!((&record["reply"], &record["status"]), (&json!("Four."), &json!("completed")));
    }
    // Retried first, as long as that is worthwhile.
    let primary = MockServer::start(vec![failure_script(503), reply_script("Four.", 2)]).await;
    let secondary = MockServer::start(vec![reply_script("no", 2)]).await;
    let server = server_with_retries(&primary, &secondary, |_| {}).await;
    let answer = server.post("/v1/chat/completions", &request_body(&json!({}))).await;
    assert_eq!(
        (answer_text(&answer.json), primary.calls().started, secondary.calls().started),
        ("Four.", 2, 0)
    );
}

#[tokio::test]
async fn no_pause_before_a_retry_is_long_while_another_one_is_left() {
    for failure in [failure_script(503), vec![Step::Reset]] {
        let primary = MockServer::start(vec![failure, reply_script("late", 2)]).await;
        let secondary = MockServer::start(vec![reply_script("Four.", 2)]).await;
        let server =
            server_with_retries(&primary, &secondary, |config| config.timeouts.retry_ms = 1500).await;
        let answer = server.post("/v1/chat/completions", &request_body(&json!({}))).await;
        assert_eq!(
            (answer_text(&answer.json), primary.calls().started, secondary.calls().started),
            ("Four.", 1, 1)
        );
    }
}

#[tokio::test]
async fn the_last_failure_is_told() {
    let (primary, secondary) = (
        MockServer::start(vec![failure_script(500)]).await,
        MockServer::start(vec![failure_script(401)]).await,
    );
    let server = server_with_aliases(&primary, &secondary, json!({}), json!({})).await;
    let answer = server.post("/v1/chat/completions", &request_body(&json!({}))).await;
    assert_eq!(answer.status, 502, "{}", answer.text);
    assert_eq!(answer.json["error"]["code"], "upstream_unauthorized");
    assert_eq!(only_record(&server).await["attempts"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn nobody_else_is_asked_once_something_was_sent() {
    let primary = MockServer::start(vec![vec![delta_step("Fo"), delta_step("ur"), Step::Cut]]).await;
    let secondary = MockServer::start(vec![reply_script("no", 2)]).await;
    let server = server_with_aliases(&primary, &secondary, json!({}), json!({})).await;
    let answer = server.post("/v1/chat/completions", &request_body(&json!({"stream": true}))).await;
    assert!(answer.text.contains("Fo") && answer.text.contains("upstream_closed"), "{}", answer.text);
    assert_eq!(secondary.calls().started, 0);
    // A stopped message has no fallback either.
    let gate = Gate::new();
    let primary = MockServer::start(vec![vec![Step::Wait(gate), Step::Cut]]).await;
    let server = self::server_with_aliases(&primary, &secondary, json!({}), json!({})).await;
    let pending = server.begin_post("/v1/chat/completions", &request_body(&json!({}))).await;
    primary.wait_until(|calls| calls.started == 1).await;
    drop(pending);
    primary.wait_until(|calls| calls.abandoned == 1).await;
    server.wait_for_metric("tambour_running", 0).await;
    assert_eq!(secondary.calls().started, 0);
}

#[tokio::test]
async fn a_model_that_gives_nothing_valid_has_failed() {
    // Each reply is read in the dialect of its upstream; the first upstream is called again as often as allowed.
    let primary = MockServer::start(vec![reply_script("no tags at all", 3)]).await;
    let secondary = MockServer::start(vec![reply_script(GOOD_REPLY, 9)]).await;
    let strict =
        json!({"dialect": "jsonseq", "max_reasks": 1, "instructions": true, "system_prompt": "Be brief."});
    let contract = json!({"dialect": "thinkingml", "contract": {"options": {"text_language": "en"}}});
    let server = server_with_aliases(&primary, &secondary, strict, contract).await;
    let answer = server.post("/v1/chat/completions", &request_body(&json!({}))).await;
    assert_eq!(answer_text(&answer.json), "The answer is 4.", "{}", answer.text);
    let reasoning = answer.json["choices"][0]["message"]["reasoning_content"].as_str().unwrap();
    assert!(reasoning.contains("first thought"), "{reasoning}");
    assert_eq!((primary.calls().started, secondary.calls().started), (2, 1));
    // Sum of the token counts of all attempts.
    assert_eq!(answer.json["usage"]["completion_tokens"], 15);
    // It is told what the first was told, but for the format: its own.
    let (first_prompt, second_prompt) =
        (primary.requests()[0].body.clone(), secondary.requests()[0].body.clone());
    let system = |body: &Value| body["messages"][0]["content"].as_str().unwrap().to_owned();
    assert!(
        system(&first_prompt).starts_with("Be brief.") && system(&second_prompt).starts_with("Be brief.")
    );
    assert!(
        system(&first_prompt).contains("thinking_start") && !system(&first_prompt).contains("<thinking>"),
        "{first_prompt}"
    );
    assert!(
        system(&second_prompt).contains("<thinking>") && !system(&second_prompt).contains("phase_start"),
        "{second_prompt}"
    );
    // The example of the instructions is a turn before the conversation, of each in its own format.
    let roles = |body: &Value| -> Vec<Value> {
        body["messages"].as_array().unwrap().iter().map(|message| message["role"].clone()).collect()
    };
    assert_eq!(
        roles(&second_prompt),
        ["system", "user", "assistant", "user"],
        "no complaints of another one"
    );
    let example = |body: &Value| body["messages"][2]["content"].as_str().unwrap().to_owned();
    assert!(example(&first_prompt).contains("phase_start"), "{first_prompt}");
    assert!(example(&second_prompt).starts_with("<serp>"), "{second_prompt}");
    assert_eq!(second_prompt["messages"][3], first_prompt["messages"][3]);
    // The record is made from the log: the reply is read as the one that wrote it writes, and stands for itself.
    let record = only_record(&server).await;
    assert_eq!(record["reply"], GOOD_REPLY);
    assert_eq!(record.get("history"), None, "{record}");
    assert_eq!(record["prompt"][0]["content"], second_prompt["messages"][0]["content"]);
    let attempts = record["attempts"].as_array().unwrap();
    assert_eq!((attempts.len(), &attempts[1]["upstream"]), (2, &json!("one")));
    assert_eq!(attempts[1]["raw"], "no tags at all"); // P-034
    assert_eq!(attempts[1]["finish_reason"], "stop");
}

#[tokio::test]
async fn what_goes_on_is_read_as_it_was_written() {
    // In a conversation, the next prompt has the reply in the dialect of the upstream that wrote it.
    let unclosed = "<thinking><phase id=\"1\"><title>T</title>t</phase></thinking>\n<final>Four.";
    let primary = MockServer::start(vec![failure_script(500), failure_script(500)]).await;
    let secondary = MockServer::start(vec![reply_script(unclosed, 9), reply_script(GOOD_REPLY, 9)]).await;
    let server = server_with_aliases(
        &primary,
        &secondary,
        json!({"dialect": "jsonseq"}),
        json!({"dialect": "thinkingml"}),
    )
    .await;
    let chat_message = |text: &str| json!({"id": "c1", "model": "main", "message": {"id": "u", "role": "user", "parts": [{"type": "text", "text": text}]}});
    for text in ["2 + 2?", "Sure?"] {
        let answer = server.post("/api/chat", &chat_message(text)).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    let messages = secondary.requests()[1].body["messages"].clone();
    let before = messages[1]["content"].as_str().unwrap_or_else(|| panic!("{messages}"));
    assert!(before.contains("<final>") && before.contains("</final>"), "{before}");
}

#[tokio::test]
async fn calls_of_the_second_one_run() {
    let call = json!({"choices": [{"index": 0, "delta": {"tool_calls": [
        {"index": 0, "id": "a", "type": "function", "function": {"name": "lint", "arguments": "{\"userInput\": \"x\"}"}},
    ]}}]});
    let calls =
        [Step::Send(crate::mock::sse_frame(&call))].into_iter().chain(finish_steps("tool_calls")).collect();
    let primary = MockServer::start(vec![failure_script(500)]).await;
    let secondary = MockServer::start(vec![calls, failure_script(500)]).await;
    let hook = MockServer::start(vec![webhook_answer(&json!({"score": 7}))]).await;
    let server = server_with_aliases(&primary, &secondary, json!({"tools": ["lint"]}), json!({})).await;
    let tool = json!({
        "schema": crate::tool_kit::tool_schema(),
        "executor": {"kind": "http", "url": format!("http://{}/hook", hook.address)},
    });
    assert_eq!(server.put("/api/v1/tools/lint", &tool).await.status, 200);
    let answer = server.post("/v1/chat/completions", &request_body(&json!({}))).await;
    assert_eq!((hook.calls().started, secondary.calls().started), (1, 2));
    // A call that has run stays: no other upstream continues after it.
    assert_eq!(
        (primary.calls().started, &answer.json["error"]["code"]),
        (1, &json!("upstream_error")),
        "{}",
        answer.text
    );
    assert_eq!(secondary.requests()[1].body["messages"][2]["role"], "tool");
}

#[tokio::test]
async fn who_names_an_upstream_gets_no_other() {
    let (primary, secondary) = (
        MockServer::start(vec![failure_script(500)]).await,
        MockServer::start(vec![reply_script("no", 2)]).await,
    );
    let server = server_with_aliases(&primary, &secondary, json!({}), json!({})).await;
    for fields in [
        json!({"tambour": {"upstream": "one"}}),
        json!({"tambour": {"model": "mine"}}),
        json!({"model": "one"}),
    ] {
        let answer = server.post("/v1/chat/completions", &request_body(&fields)).await;
        assert_eq!(answer.status, 502, "{}", answer.text);
    }
    assert_eq!(secondary.calls().started, 0);
}

#[tokio::test]
async fn what_a_request_says_counts_for_all() {
    let (primary, secondary) = (
        MockServer::start(vec![failure_script(500)]).await,
        MockServer::start(vec![reply_script(GOOD_REPLY, 9)]).await,
    );
    let server = server_with_aliases(&primary, &secondary, json!({}), json!({})).await;
    let fields = json!({"tambour": {"dialect": "thinkingml"}, "temperature": 0.5});
    let answer = server.post("/v1/chat/completions", &request_body(&fields)).await;
    assert_eq!(answer_text(&answer.json), "The answer is 4.", "{}", answer.text);
    assert_eq!(secondary.requests()[0].body["temperature"], 0.5);
}

#[tokio::test]
async fn weights_share_the_work() {
    let (primary, secondary) = (
        MockServer::start(vec![reply_script("1", 2)]).await,
        MockServer::start(vec![reply_script("2", 2)]).await,
    );
    let server = server_with_aliases(&primary, &secondary, json!({"weight": 2}), json!({"weight": 1})).await;
    let mut order = String::new();
    for _ in 0..6 {
        order.push_str(answer_text(
            &server.post("/v1/chat/completions", &request_body(&json!({}))).await.json,
        ));
    }
    assert_eq!(order, "121121");
    // An upstream named by the request comes first.
    let spare = server.post("/v1/chat/completions", &request_body(&json!({"model": "spare"}))).await;
    assert_eq!(answer_text(&spare.json), "2");
    // Without weights the order of the configuration applies.
    let server = self::server_with_aliases(&primary, &secondary, json!({}), json!({"weight": 3})).await;
    for _ in 0..3 {
        assert_eq!(
            answer_text(&server.post("/v1/chat/completions", &request_body(&json!({}))).await.json),
            "1"
        );
    }
}

#[tokio::test]
async fn one_that_fails_again_and_again_is_left_alone() {
    let (primary, secondary) = (
        MockServer::start(vec![failure_script(500)]).await,
        MockServer::start(vec![reply_script("2", 2)]).await,
    );
    let server = server_with_aliases(&primary, &secondary, json!({"weight": 1}), json!({})).await;
    for attempt in 1..=8 {
        let answer = server.post("/v1/chat/completions", &request_body(&json!({}))).await;
        assert_eq!(answer_text(&answer.json), "2");
        assert_eq!(primary.calls().started, attempt.min(5), "{attempt}");
    }
    // Called all the same when it is the only upstream.
    let only_upstream = server.post("/v1/chat/completions", &request_body(&json!({"model": "one"}))).await;
    assert_eq!((only_upstream.status, primary.calls().started), (502, 6));
    // A refusal is no failure of the service.
    let primary = MockServer::start(vec![failure_script(400)]).await;
    let server = self::server_with_aliases(&primary, &secondary, json!({}), json!({})).await;
    for attempt in 1..=7 {
        server.post("/v1/chat/completions", &request_body(&json!({}))).await;
        assert_eq!(primary.calls().started, attempt);
    }
}

#[tokio::test]
async fn aliases_that_cannot_be_asked_are_told_at_start() {
    let folder = Folder::new();
    for (name, expected_text) in [
        (
            "nobody",
            "FILE:3:1: `aliases.main.fallback` names `nobody`, which is not another alias; known: spare",
        ),
        ("main", "FILE:3:1: `aliases.main.fallback` names `main`"),
    ] {
        let text = format!(
            "[aliases.main]\nmodel = \"x\"\nfallback = [\"{name}\"]\n[aliases.spare]\nfallback = [\"main\"]\n"
        );
        let path = folder.write_file("tambour.toml", &text);
        let mut config = Config::load(Some(&path), std::iter::empty()).unwrap();
        config.listen = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        config.data = folder.0.join("data");
        let error = tambour_server::Server::start(config).await.err().expect("it is refused").to_string();
        let error = error.replace(&path.display().to_string(), "FILE");
        assert!(error.starts_with(expected_text), "{error}");
    }
}

#[tokio::test]
async fn streams_have_nothing_of_those_that_failed() {
    let primary = MockServer::start(vec![reply_script("<<ParsingError>>", 3)]).await;
    let secondary = MockServer::start(vec![reply_script(GOOD_REPLY, 9)]).await;
    let server = server_with_aliases(
        &primary,
        &secondary,
        json!({"dialect": "thinkingml"}),
        json!({"dialect": "thinkingml"}),
    )
    .await;
    let answer = server
        .post(
            "/v1/chat/completions",
            &request_body(&json!({"stream": true, "tambour": {"extensions": true}})),
        )
        .await;
    assert!(!answer.text.contains("ParsingError") && !answer.text.contains("upstream"), "{}", answer.text);
    // A client that connects later reads the same from the log.
    let id = only_record(&server).await["message_id"].as_str().unwrap().to_owned();
    let events = server.follow(&id, &[]).await.read_checked().await;
    assert_eq!(joined_text(&events, "final_delta"), "The answer is 4.");
    let known_events = [
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
            known_events.contains(&event.name.as_str()) || other.contains(&event.name.as_str()),
            "{}",
            event.name
        );
    }
}
