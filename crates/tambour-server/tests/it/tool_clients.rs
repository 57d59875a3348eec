//! Calls run by a client, and calls that need a person's approval.

use serde_json::{Value, json};

use crate::client::{Event, Stream, check, message, numbered, text};
use crate::mock::{Mock, Step, delta, reply};
use crate::server::{Answer, Tambour};
use crate::tool_kit::{Kit, all, answer, ask, gives, plan, results, sound};

/// Two tools of the client, and one of a webhook; `wipe` needs approval.
async fn kit(replies: &[&str]) -> Kit {
    let kit = Kit::new(replies, vec![gives(&json!("hooked"))]).await;
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
async fn until_waiting(stream: &mut Stream, state: &str) -> Vec<Event> {
    let mut events = Vec::new();
    while events.last().is_none_or(|event: &Event| event.data["state"] != state) {
        events.push(stream.event().await.unwrap_or_else(|| panic!("{state} comes: {events:#?}")));
    }
    events
}

async fn post(server: &Tambour, id: &str, body: Value) -> Answer {
    let kind = body.as_object().unwrap().keys().next().unwrap().clone();
    server.post(&format!("/api/v1/messages/{id}/tool_{kind}"), &body).await
}

fn gave(call: &str, result: &Value) -> Value {
    json!({"call_id": call, "ok": true, "result": result})
}

#[tokio::test]
async fn clients_run_their_calls_together_and_post_what_came() {
    let kit = kit(&[&plan(&[("look", "a"), ("read", "b"), ("lint", "c")]), &answer("Done.")]).await;
    let mut stream = kit.server.stream(&ask(&tools())).await;
    let mut events = until_waiting(&mut stream, "awaiting_tool_results").await;
    let id = message(&events);
    let waiting = &events.last().unwrap().data;
    assert_eq!(waiting["calls"][1], json!({"call_id": "call_2", "name": "read"}));
    assert_eq!(waiting["timeout_ms"], 600_000);
    assert_eq!(events.last().unwrap().id, None); // J-036
    assert_eq!(all(&events, "tool_start").len(), 2);
    assert_eq!(kit.hook.calls().begun, 0);
    kit.server.until_metric("tambour_tool_waits", 1).await;
    for (body, status, code, said) in [
        (json!({"results": []}), 422, "invalid_field", "empty"),
        (json!({"results": [gave("call_9", &json!(1))]}), 422, "unknown_call", "call_9"),
        // All or none: the valid result is refused as well.
        (
            json!({"results": [gave("call_1", &json!(1)), gave("call_9", &json!(1))]}),
            422,
            "unknown_call",
            "call_9",
        ),
        (
            json!({"results": [gave("call_1", &json!(1)), gave("call_1", &json!(1))]}),
            422,
            "invalid_field",
            "twice",
        ),
        (json!({"results": [gave("call_3", &json!(1))]}), 409, "not_waiting", "call_3"),
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
        let refused = post(&kit.server, &id, body.clone()).await;
        assert_eq!((refused.status, refused.problem()), (status, code), "{body}: {}", refused.text);
        assert!(refused.json["detail"].as_str().unwrap().contains(said), "{}", refused.text);
    }
    let taken = post(&kit.server, &id, json!({"results": [gave("call_2", &json!({"b": 2}))]})).await;
    assert_eq!((taken.status, &taken.json["accepted"]), (200, &json!(["call_2"])));
    // The first answer counts.
    let again = post(&kit.server, &id, json!({"results": [gave("call_2", &json!("other"))]})).await;
    assert_eq!((again.status, again.problem()), (409, "already_answered"));
    post(&kit.server, &id, json!({"results": [gave("call_1", &json!("a"))]})).await;
    events.extend(stream.rest().await);
    check(&events);
    sound(&events);
    assert_eq!(results(&events), ["ok", "ok", "ok"]);
    assert_eq!(all(&events, "tool_result")[1]["result"], json!({"b": 2}));
    assert_eq!(kit.hook.calls().begun, 1);
    assert!(kit.told().contains("{\"b\":2}"), "{}", kit.told());
    kit.server.ended(&id).await;
    let late = post(&kit.server, &id, json!({"results": [gave("call_1", &json!(1))]})).await;
    assert_eq!((late.status, late.problem()), (409, "message_ended"));
    assert_eq!(kit.server.metric("tambour_tool_waits").await, 0);
}

#[tokio::test]
async fn two_clients_that_answer_at_once() {
    let kit = kit(&[&plan(&[("look", "a")]), &answer("Done.")]).await;
    let mut stream = kit.server.stream(&ask(&tools())).await;
    let mut events = until_waiting(&mut stream, "awaiting_tool_results").await;
    let id = message(&events);
    let body = |from: &str| json!({"results": [gave("call_1", &json!(from))]});
    let (one, two) = tokio::join!(post(&kit.server, &id, body("one")), post(&kit.server, &id, body("two")));
    let (first, second) = if one.status == 200 { ("one", two) } else { ("two", one) };
    assert_eq!(second.status, 409, "{}", second.text);
    events.extend(stream.rest().await);
    sound(&events);
    assert_eq!(all(&events, "tool_result")[0]["result"], first);
}

#[tokio::test]
async fn an_error_of_a_client_is_told() {
    let kit = kit(&[&plan(&[("look", "a"), ("lint", "b")]), &answer("Done.")]).await;
    let mut stream = kit.server.stream(&ask(&tools())).await;
    let mut events = until_waiting(&mut stream, "awaiting_tool_results").await;
    let error = json!({"call_id": "call_1", "ok": false, "error": {"code": "no_screen", "message": "dark"}});
    post(&kit.server, &message(&events), json!({"results": [error]})).await;
    events.extend(stream.rest().await);
    sound(&events);
    assert_eq!(results(&events), ["no_screen", "not_run"]);
    assert!(kit.told().contains("dark"));
}

#[tokio::test]
async fn a_client_that_never_answers() {
    let replies = vec![reply(&plan(&[("look", "a")]), 9), reply(&answer("Done."), 9)];
    let mock = Mock::start(replies).await;
    let server = Tambour::start(&mock, |config| config.tools.results_ms = 100).await;
    let inline = json!({"tools": [{"name": "look", "schema": {"type": "object"}}]});
    let events = server.stream(&ask(&inline)).await.whole().await;
    sound(&events);
    assert_eq!(results(&events), ["timeout"]);
    assert_eq!(text(&events, "final_delta"), "Done.");
}

#[tokio::test]
async fn nothing_runs_before_all_are_allowed() {
    let kit = kit(&[&plan(&[("lint", "a"), ("wipe", "b"), ("wipe", "c")]), &answer("Done.")]).await;
    let mut stream = kit.server.stream(&ask(&tools())).await;
    let mut events = until_waiting(&mut stream, "awaiting_confirmation").await;
    let id = message(&events);
    let asked: Vec<&Value> = events.last().unwrap().data["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| &call["call_id"])
        .collect();
    assert_eq!(asked, ["call_2", "call_3"]);
    let yes = |call: &str| json!({"confirmations": [{"call_id": call, "allow": true}]});
    assert_eq!(post(&kit.server, &id, yes("call_1")).await.problem(), "not_waiting");
    assert_eq!(post(&kit.server, &id, yes("call_3")).await.status, 200);
    assert_eq!(post(&kit.server, &id, yes("call_3")).await.problem(), "already_answered");
    assert_eq!(kit.hook.calls().begun, 0);
    assert_eq!(post(&kit.server, &id, yes("call_2")).await.status, 200);
    events.extend(stream.rest().await);
    check(&events);
    sound(&events);
    assert_eq!(results(&events), ["ok", "ok", "ok"]);
    assert_eq!(kit.hook.calls().begun, 3);
}

#[tokio::test]
async fn one_denied_and_none_runs() {
    let kit = kit(&[&plan(&[("lint", "a"), ("wipe", "b")]), &answer("Then not.")]).await;
    let mut stream = kit.server.stream(&ask(&tools())).await;
    let mut events = until_waiting(&mut stream, "awaiting_confirmation").await;
    let no = json!({"confirmations": [{"call_id": "call_2", "allow": false, "reason": "still needed"}]});
    post(&kit.server, &message(&events), no).await;
    events.extend(stream.rest().await);
    check(&events);
    sound(&events);
    assert_eq!(results(&events), ["not_run", "denied"]); // P-028
    assert_eq!(kit.hook.calls().begun, 0); // P-028
    assert!(all(&events, "tool_start").is_empty());
    assert!(kit.told().contains("still needed"));
    assert_eq!(text(&events, "final_delta"), "Then not.");
}

#[tokio::test]
async fn nobody_says_a_word() {
    let replies = vec![reply(&plan(&[("wipe", "a")]), 9), reply(&answer("Then not."), 9)];
    let mock = Mock::start(replies).await;
    let server = Tambour::start(&mock, |config| config.tools.confirmations_ms = 100).await;
    let inline = json!({"tools": [{"name": "wipe", "schema": {"type": "object"}, "confirm": true}]});
    let events = server.stream(&ask(&inline)).await.whole().await;
    sound(&events);
    assert_eq!(results(&events), ["confirmation_timeout"]);
    assert!(all(&events, "tool_start").is_empty());
}

#[tokio::test]
async fn waiting_for_a_person_outlasts_the_reader() {
    let scripts = vec![reply(&plan(&[("look", "a")]), 9), vec![Step::Stall], reply(&answer("Done."), 9)];
    let mock = Mock::start(scripts).await;
    let server = Tambour::start(&mock, |config| config.grace_ms = 50).await;
    let inline = json!({"tools": [{"name": "look", "schema": {"type": "object"}}]});
    let mut stream = server.stream(&ask(&inline)).await;
    let events = until_waiting(&mut stream, "awaiting_tool_results").await;
    let (id, seen) = (message(&events), numbered(&events));
    let last = seen.last().unwrap().id.unwrap().to_string();
    drop(stream);
    server.until_metric("tambour_streams_open", 0).await;
    // The grace period of a later message without open calls is over.
    drop(server.stream(&ask(&inline)).await);
    mock.until(|calls| calls.deserted == 1).await;
    // A reader that returns gets the open calls again, and nothing else twice.
    let mut back = server.follow(&id, &[("last-event-id", &last)]).await;
    let waiting = until_waiting(&mut back, "awaiting_tool_results").await;
    assert!(numbered(&waiting).is_empty()); // J-036
    assert_eq!(post(&server, &id, json!({"results": [gave("call_1", &json!(1))]})).await.status, 200);
    let mut all = seen;
    all.extend(numbered(&back.rest().await));
    check(&all);
    assert_eq!(text(&all, "final_delta"), "Done.");
}

#[tokio::test]
async fn cancelling_while_a_person_is_asked() {
    for (call, state, code) in
        [("wipe", "awaiting_confirmation", "not_run"), ("look", "awaiting_tool_results", "cancelled")]
    {
        let kit = kit(&[&plan(&[(call, "a")])]).await;
        let mut stream = kit.server.stream(&ask(&tools())).await;
        let mut events = until_waiting(&mut stream, state).await;
        kit.server.call("post", &format!("/api/v1/messages/{}/cancel", message(&events)), None).await;
        events.extend(stream.rest().await);
        check(&events);
        sound(&events);
        assert_eq!(events.last().unwrap().data["finish_reason"], "cancelled");
        assert_eq!(results(&events), [code]);
        assert_eq!(kit.hook.calls().begun, 0);
    }
}

#[tokio::test]
async fn a_server_that_stops_while_it_waits() {
    let mut kit = kit(&[&plan(&[("look", "a")])]).await;
    let mut stream = kit.server.stream(&ask(&tools())).await;
    let mut events = until_waiting(&mut stream, "awaiting_tool_results").await;
    let mut config = crate::server::config(&kit.server.folder);
    config.add_upstream(&kit.model.url(), None).unwrap();
    config.drain_ms = 50;
    kit.server.reload().apply(config).await.unwrap();
    kit.server.stopping();
    events.extend(stream.rest().await);
    check(&events);
    sound(&events);
    assert_eq!(events.last().unwrap().data["code"], "interrupted"); // J-035
    assert_eq!(results(&events), ["unknown"]);
}

#[tokio::test]
async fn a_message_without_tools_takes_no_results() {
    let mock = Mock::start(vec![vec![crate::mock::Step::Stall]]).await;
    let server = Tambour::with(&mock).await;
    let asked = server.post("/api/v1/messages", &json!({"text": "x"})).await.json;
    let id = asked["message_id"].as_str().unwrap();
    let refused = post(&server, id, json!({"results": [gave("call_1", &json!(1))]})).await;
    assert_eq!(refused.problem(), "unknown_call");
    server.call("post", &format!("/api/v1/messages/{id}/cancel"), None).await;
    server.ended(id).await;
}

#[tokio::test]
async fn who_has_seen_the_end_is_told_of_it() {
    // The last reply breaks off.
    let broken = vec![delta(&answer("Done.")[..60]), Step::Cut];
    let replies = vec![
        reply(&plan(&[("look", "a")]), 9),
        reply(&answer("Done."), 9),
        reply(&answer("Done."), 9),
        broken,
    ];
    let mock = Mock::start(replies).await;
    let apart = crate::server_process::ServerProcess::start(&mock, false);
    let inline = json!({"tools": [{"name": "look", "schema": {"type": "object"}}]});
    let with = ask(&inline);
    let mut without = with.clone();
    without.as_object_mut().unwrap().remove("tools");
    for (asked, calls, end, status) in [
        (with, true, "completed", "completed"),
        (without.clone(), false, "completed", "completed"),
        (without, false, "error", "failed"),
    ] {
        let mut stream = apart.server.stream(&asked).await;
        let first = stream.event().await.unwrap();
        let id = message(&[first]);
        if calls {
            until_waiting(&mut stream, "awaiting_tool_results").await;
            assert_eq!(
                post(&apart.server, &id, json!({"results": [gave("call_1", &json!(1))]})).await.status,
                200
            );
        }
        stream.until(end).await;
        assert_eq!(apart.server.ended(&id).await["status"], status);
        for body in [
            json!({"results": [gave("call_1", &json!(1))]}),
            json!({"confirmations": [{"call_id": "call_1", "allow": true}]}),
        ] {
            let late = post(&apart.server, &id, body).await;
            assert_eq!((late.status, late.problem()), (409, "message_ended"));
        }
    }
}

#[tokio::test]
async fn the_log_names_calls_and_not_what_is_in_them() {
    let replies =
        vec![reply(&plan(&[("look", "a-private-argument")]), 9), reply(&answer("a-private-answer"), 9)];
    let mock = Mock::start(replies).await;
    let apart = crate::server_process::ServerProcess::start(&mock, false);
    let inline = json!({"tools": [{"name": "look", "schema": {"type": "object"}}]});
    let mut stream = apart.server.stream(&ask(&inline)).await;
    let events = until_waiting(&mut stream, "awaiting_tool_results").await;
    let id = message(&events);
    post(&apart.server, &id, json!({"results": [gave("call_1", &json!("a-private-result"))]})).await;
    stream.rest().await;
    let record = apart.server.ended(&id).await;
    assert_eq!(record["status"], "completed");
    let file = apart.server.folder.0.join("log");
    let log = std::fs::read_to_string(file).unwrap();
    let line: Vec<&str> = log.lines().filter(|line| line.contains("tool call")).collect();
    assert_eq!(line.len(), 1, "{log}");
    assert!(line[0].contains("look") && line[0].contains("call_1") && line[0].contains(&id), "{}", line[0]);
    assert!(!log.contains("a-private"), "{log}");
}
