//! Calls run by a client, and calls that need a person's approval.

use serde_json::{Value, json};

use crate::client::{Event, EventStream, check_stream, joined_text, numbered_events, stream_message_id};
use crate::mock::{MockServer, Step, delta_step, reply_script};
use crate::server::{Answer, TestServer};
use crate::tool_kit::{
    ToolKit, answer_reply, check_tool_stream, event_data, plan_reply, result_codes, tool_request,
    webhook_answer,
};

/// Two tools of the client, and one of a webhook; `wipe` needs approval.
async fn client_tool_kit(replies: &[&str]) -> ToolKit {
    let kit = ToolKit::new(replies, vec![webhook_answer(&json!("hooked"))]).await;
    let client = json!({"executor": {"kind": "client"}});
    kit.register("look", &client).await;
    kit.register("read", &client).await;
    kit.register("wipe", &json!({"confirm": true})).await;
    kit
}

fn tools() -> Value {
    json!({"tools": ["look", "read", "lint", "wipe"]})
}

/// Reads until the message waits in that state.
async fn read_until_waiting(stream: &mut EventStream, state: &str) -> Vec<Event> {
    let mut events = Vec::new();
    while events.last().is_none_or(|event: &Event| event.data["state"] != state) {
        events.push(stream.next_event().await.unwrap_or_else(|| panic!("{state} comes: {events:#?}")));
    }
    events
}

async fn post_results(server: &TestServer, id: &str, body: Value) -> Answer {
    let kind = body.as_object().unwrap().keys().next().unwrap().clone();
    server.post(&format!("/api/v1/messages/{id}/tool_{kind}"), &body).await
}

fn call_result(call_id: &str, result: &Value) -> Value {
    json!({"call_id": call_id, "ok": true, "result": result})
}

#[tokio::test]
async fn clients_run_their_calls_together_and_post_what_came() {
    let kit = client_tool_kit(&[
        &plan_reply(&[("look", "a"), ("read", "b"), ("lint", "c")]),
        &answer_reply("Done."),
    ])
    .await;
    let mut stream = kit.server.open_stream(&tool_request(&tools())).await;
    let mut events = read_until_waiting(&mut stream, "awaiting_tool_results").await;
    let id = stream_message_id(&events);
    let wait_data = &events.last().unwrap().data;
    assert_eq!(wait_data["calls"][1], json!({"call_id": "call_2", "name": "read"}));
    assert_eq!(wait_data["timeout_ms"], 600_000);
    assert_eq!(events.last().unwrap().id, None); // J-036
    assert_eq!(event_data(&events, "tool_start").len(), 2);
    assert_eq!(kit.webhook.calls().started, 0);
    kit.server.wait_for_metric("tambour_tool_waits", 1).await;
    for (body, status, code, expected_text) in [
        (json!({"results": []}), 422, "invalid_field", "empty"),
        (json!({"results": [call_result("call_9", &json!(1))]}), 422, "unknown_call", "call_9"),
        // All or none: the valid result is refused as well.
        (
            json!({"results": [call_result("call_1", &json!(1)), call_result("call_9", &json!(1))]}),
            422,
            "unknown_call",
            "call_9",
        ),
        (
            json!({"results": [call_result("call_1", &json!(1)), call_result("call_1", &json!(1))]}),
            422,
            "invalid_field",
            "twice",
        ),
        (json!({"results": [call_result("call_3", &json!(1))]}), 409, "not_waiting", "call_3"),
        (json!({"results": [{"call_id": "call_1", "ok": false}]}), 422, "invalid_field", "error"),
        (
            json!({"results": [{"call_id": "call_1", "ok": true, "error": {"message": "x"}}]}),
            422,
            "invalid_field",
            "error",
        ),
        (
            json!({"results": [{"call_id": "call_1", "ok": true, "colour": 1}]}),
            422,
            "unknown_field",
            "colour",
        ),
        (json!({"confirmations": [{"call_id": "call_1", "allow": true}]}), 409, "not_waiting", "call_1"),
    ] {
        let refusal = post_results(&kit.server, &id, body.clone()).await;
        assert_eq!((refusal.status, refusal.problem_code()), (status, code), "{body}: {}", refusal.text);
        assert!(refusal.json["detail"].as_str().unwrap().contains(expected_text), "{}", refusal.text);
    }
    let accepted =
        post_results(&kit.server, &id, json!({"results": [call_result("call_2", &json!({"b": 2}))]})).await;
    assert_eq!((accepted.status, &accepted.json["accepted"]), (200, &json!(["call_2"])));
    // The first who answers is heard.
    let conflict =
        post_results(&kit.server, &id, json!({"results": [call_result("call_2", &json!("other"))]})).await;
    assert_eq!((conflict.status, conflict.problem_code()), (409, "already_answered"));
    post_results(&kit.server, &id, json!({"results": [call_result("call_1", &json!("a"))]})).await;
    events.extend(stream.read_rest().await);
    check_stream(&events);
    check_tool_stream(&events);
    assert_eq!(result_codes(&events), ["ok", "ok", "ok"]);
    assert_eq!(event_data(&events, "tool_result")[1]["result"], json!({"b": 2}));
    assert_eq!(kit.webhook.calls().started, 1);
    assert!(kit.last_prompt().contains("{\"b\":2}"), "{}", kit.last_prompt());
    kit.server.wait_ended(&id).await;
    let late = post_results(&kit.server, &id, json!({"results": [call_result("call_1", &json!(1))]})).await;
    assert_eq!((late.status, late.problem_code()), (409, "message_ended"));
    assert_eq!(kit.server.metric("tambour_tool_waits").await, 0);
}

#[tokio::test]
async fn two_clients_that_answer_at_once() {
    let kit = client_tool_kit(&[&plan_reply(&[("look", "a")]), &answer_reply("Done.")]).await;
    let mut stream = kit.server.open_stream(&tool_request(&tools())).await;
    let mut events = read_until_waiting(&mut stream, "awaiting_tool_results").await;
    let id = stream_message_id(&events);
    let body = |from: &str| json!({"results": [call_result("call_1", &json!(from))]});
    let (answer_one, answer_two) = tokio::join!(
        post_results(&kit.server, &id, body("one")),
        post_results(&kit.server, &id, body("two"))
    );
    let (winner, loser) = if answer_one.status == 200 { ("one", answer_two) } else { ("two", answer_one) };
    assert_eq!(loser.status, 409, "{}", loser.text);
    events.extend(stream.read_rest().await);
    check_tool_stream(&events);
    assert_eq!(event_data(&events, "tool_result")[0]["result"], winner);
}

#[tokio::test]
async fn an_error_of_a_client_is_told() {
    let kit = client_tool_kit(&[&plan_reply(&[("look", "a"), ("lint", "b")]), &answer_reply("Done.")]).await;
    let mut stream = kit.server.open_stream(&tool_request(&tools())).await;
    let mut events = read_until_waiting(&mut stream, "awaiting_tool_results").await;
    let error = json!({"call_id": "call_1", "ok": false, "error": {"code": "no_screen", "message": "dark"}});
    post_results(&kit.server, &stream_message_id(&events), json!({"results": [error]})).await;
    events.extend(stream.read_rest().await);
    check_tool_stream(&events);
    assert_eq!(result_codes(&events), ["no_screen", "not_run"]);
    assert!(kit.last_prompt().contains("dark"));
}

#[tokio::test]
async fn a_client_that_never_answers() {
    let replies =
        vec![reply_script(&plan_reply(&[("look", "a")]), 9), reply_script(&answer_reply("Done."), 9)];
    let mock = MockServer::start(replies).await;
    let server = TestServer::start(&mock, |config| config.tools.results_ms = 100).await;
    let inline = json!({"tools": [{"name": "look", "schema": {"type": "object"}}]});
    let events = server.open_stream(&tool_request(&inline)).await.read_checked().await;
    check_tool_stream(&events);
    assert_eq!(result_codes(&events), ["timeout"]);
    assert_eq!(joined_text(&events, "final_delta"), "Done.");
}

#[tokio::test]
async fn nothing_runs_before_all_are_allowed() {
    let kit = client_tool_kit(&[
        &plan_reply(&[("lint", "a"), ("wipe", "b"), ("wipe", "c")]),
        &answer_reply("Done."),
    ])
    .await;
    let mut stream = kit.server.open_stream(&tool_request(&tools())).await;
    let mut events = read_until_waiting(&mut stream, "awaiting_confirmation").await;
    let id = stream_message_id(&events);
    let open_calls: Vec<&Value> = events.last().unwrap().data["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| &call["call_id"])
        .collect();
    assert_eq!(open_calls, ["call_2", "call_3"]);
    let approval = |call: &str| json!({"confirmations": [{"call_id": call, "allow": true}]});
    assert_eq!(post_results(&kit.server, &id, approval("call_1")).await.problem_code(), "not_waiting");
    assert_eq!(post_results(&kit.server, &id, approval("call_3")).await.status, 200);
    assert_eq!(post_results(&kit.server, &id, approval("call_3")).await.problem_code(), "already_answered");
    assert_eq!(kit.webhook.calls().started, 0);
    assert_eq!(post_results(&kit.server, &id, approval("call_2")).await.status, 200);
    events.extend(stream.read_rest().await);
    check_stream(&events);
    check_tool_stream(&events);
    assert_eq!(result_codes(&events), ["ok", "ok", "ok"]);
    assert_eq!(kit.webhook.calls().started, 3);
}

#[tokio::test]
async fn one_denied_and_none_runs() {
    let kit =
        client_tool_kit(&[&plan_reply(&[("lint", "a"), ("wipe", "b")]), &answer_reply("Then not.")]).await;
    let mut stream = kit.server.open_stream(&tool_request(&tools())).await;
    let mut events = read_until_waiting(&mut stream, "awaiting_confirmation").await;
    let no = json!({"confirmations": [{"call_id": "call_2", "allow": false, "reason": "still needed"}]});
    post_results(&kit.server, &stream_message_id(&events), no).await;
    events.extend(stream.read_rest().await);
    check_stream(&events);
    check_tool_stream(&events);
    assert_eq!(result_codes(&events), ["not_run", "denied"]); // P-028
    assert_eq!(kit.webhook.calls().started, 0); // P-028
    assert!(event_data(&events, "tool_start").is_empty());
    assert!(kit.last_prompt().contains("still needed"));
    assert_eq!(joined_text(&events, "final_delta"), "Then not.");
}

#[tokio::test]
async fn nobody_says_a_word() {
    let replies =
        vec![reply_script(&plan_reply(&[("wipe", "a")]), 9), reply_script(&answer_reply("Then not."), 9)];
    let mock = MockServer::start(replies).await;
    let server = TestServer::start(&mock, |config| config.tools.confirmations_ms = 100).await;
    let inline = json!({"tools": [{"name": "wipe", "schema": {"type": "object"}, "confirm": true}]});
    let events = server.open_stream(&tool_request(&inline)).await.read_checked().await;
    check_tool_stream(&events);
    assert_eq!(result_codes(&events), ["confirmation_timeout"]);
    assert!(event_data(&events, "tool_start").is_empty());
}

#[tokio::test]
async fn waiting_for_a_person_outlasts_the_reader() {
    let scripts = vec![
        reply_script(&plan_reply(&[("look", "a")]), 9),
        vec![Step::WaitDisconnect],
        reply_script(&answer_reply("Done."), 9),
    ];
    let mock = MockServer::start(scripts).await;
    let server = TestServer::start(&mock, |config| config.grace_ms = 50).await;
    let inline = json!({"tools": [{"name": "look", "schema": {"type": "object"}}]});
    let mut stream = server.open_stream(&tool_request(&inline)).await;
    let events = read_until_waiting(&mut stream, "awaiting_tool_results").await;
    let (id, seen_events) = (stream_message_id(&events), numbered_events(&events));
    let last = seen_events.last().unwrap().id.unwrap().to_string();
    drop(stream);
    server.wait_for_metric("tambour_streams_open", 0).await;
    // The grace of a later one, which waits for nobody, is over.
    drop(server.open_stream(&tool_request(&inline)).await);
    mock.wait_until(|calls| calls.abandoned == 1).await;
    // A client that comes back is told again of pending calls, and of nothing else twice.
    let mut reader = server.follow(&id, &[("last-event-id", &last)]).await;
    let wait_events = read_until_waiting(&mut reader, "awaiting_tool_results").await;
    assert!(numbered_events(&wait_events).is_empty()); // J-036
    assert_eq!(
        post_results(&server, &id, json!({"results": [call_result("call_1", &json!(1))]})).await.status,
        200
    );
    let mut all = seen_events;
    all.extend(numbered_events(&reader.read_rest().await));
    check_stream(&all);
    assert_eq!(joined_text(&all, "final_delta"), "Done.");
}

#[tokio::test]
async fn cancelling_while_a_person_is_asked() {
    for (call, state, code) in
        [("wipe", "awaiting_confirmation", "not_run"), ("look", "awaiting_tool_results", "cancelled")]
    {
        let kit = client_tool_kit(&[&plan_reply(&[(call, "a")])]).await;
        let mut stream = kit.server.open_stream(&tool_request(&tools())).await;
        let mut events = read_until_waiting(&mut stream, state).await;
        kit.server
            .call("post", &format!("/api/v1/messages/{}/cancel", stream_message_id(&events)), None)
            .await;
        events.extend(stream.read_rest().await);
        check_stream(&events);
        check_tool_stream(&events);
        assert_eq!(events.last().unwrap().data["finish_reason"], "cancelled");
        assert_eq!(result_codes(&events), [code]);
        assert_eq!(kit.webhook.calls().started, 0);
    }
}

#[tokio::test]
async fn a_server_that_stops_while_it_waits() {
    let mut kit = client_tool_kit(&[&plan_reply(&[("look", "a")])]).await;
    let mut stream = kit.server.open_stream(&tool_request(&tools())).await;
    let mut events = read_until_waiting(&mut stream, "awaiting_tool_results").await;
    let mut config = crate::server::test_config(&kit.server.folder);
    config.add_upstream(&kit.model.url(), None).unwrap();
    config.drain_ms = 50;
    kit.server.reload_handle().apply(config).await.unwrap();
    kit.server.request_stop();
    events.extend(stream.read_rest().await);
    check_stream(&events);
    check_tool_stream(&events);
    assert_eq!(events.last().unwrap().data["code"], "interrupted"); // J-035
    assert_eq!(result_codes(&events), ["unknown"]);
}

#[tokio::test]
async fn a_message_without_tools_takes_no_results() {
    let mock = MockServer::start(vec![vec![crate::mock::Step::WaitDisconnect]]).await;
    let server = TestServer::start_default(&mock).await;
    let response = server.post("/api/v1/messages", &json!({"text": "x"})).await.json;
    let id = response["message_id"].as_str().unwrap();
    let refusal = post_results(&server, id, json!({"results": [call_result("call_1", &json!(1))]})).await;
    assert_eq!(refusal.problem_code(), "unknown_call");
    server.call("post", &format!("/api/v1/messages/{id}/cancel"), None).await;
    server.wait_ended(id).await;
}

#[tokio::test]
async fn who_has_seen_the_end_is_told_of_it() {
    // The last reply breaks off.
    let broken = vec![delta_step(&answer_reply("Done.")[..60]), Step::Cut];
    let replies = vec![
        reply_script(&plan_reply(&[("look", "a")]), 9),
        reply_script(&answer_reply("Done."), 9),
        reply_script(&answer_reply("Done."), 9),
        broken,
    ];
    let mock = MockServer::start(replies).await;
    let process = crate::server_process::ServerProcess::start(&mock, false);
    let inline = json!({"tools": [{"name": "look", "schema": {"type": "object"}}]});
    let request_with_tools = tool_request(&inline);
    let mut request_without_tools = request_with_tools.clone();
    request_without_tools.as_object_mut().unwrap().remove("tools");
    for (request, calls, end, status) in [
        (request_with_tools, true, "completed", "completed"),
        (request_without_tools.clone(), false, "completed", "completed"),
        (request_without_tools, false, "error", "failed"),
    ] {
        let mut stream = process.server.open_stream(&request).await;
        let first = stream.next_event().await.unwrap();
        let id = stream_message_id(&[first]);
        if calls {
            read_until_waiting(&mut stream, "awaiting_tool_results").await;
            assert_eq!(
                post_results(&process.server, &id, json!({"results": [call_result("call_1", &json!(1))]}))
                    .await
                    .status,
                200
            );
        }
        stream.read_until(end).await;
        assert_eq!(process.server.wait_ended(&id).await["status"], status);
        for body in [
            json!({"results": [call_result("call_1", &json!(1))]}),
            json!({"confirmations": [{"call_id": "call_1", "allow": true}]}),
        ] {
            let late = post_results(&process.server, &id, body).await;
            assert_eq!((late.status, late.problem_code()), (409, "message_ended"));
        }
    }
}

#[tokio::test]
async fn the_log_names_calls_and_not_what_is_in_them() {
    let replies = vec![
        reply_script(&plan_reply(&[("look", "a-private-argument")]), 9),
        reply_script(&answer_reply("a-private-answer"), 9),
    ];
    let mock = MockServer::start(replies).await;
    let process = crate::server_process::ServerProcess::start(&mock, false);
    let inline = json!({"tools": [{"name": "look", "schema": {"type": "object"}}]});
    let mut stream = process.server.open_stream(&tool_request(&inline)).await;
    let events = read_until_waiting(&mut stream, "awaiting_tool_results").await;
    let id = stream_message_id(&events);
    post_results(
        &process.server,
        &id,
        json!({"results": [call_result("call_1", &json!("a-private-result"))]}),
    )
    .await;
    stream.read_rest().await;
    let record = process.server.wait_ended(&id).await;
    assert_eq!(record["status"], "completed");
    let file = process.server.folder.0.join("log");
    let log = std::fs::read_to_string(file).unwrap();
    let line: Vec<&str> = log.lines().filter(|line| line.contains("tool call")).collect();
    assert_eq!(line.len(), 1, "{log}");
    assert!(line[0].contains("look") && line[0].contains("call_1") && line[0].contains(&id), "{}", line[0]);
    assert!(!log.contains("a-private"), "{log}");
}
