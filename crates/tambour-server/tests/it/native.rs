//! Native calls of a model beside its text, and the results it gets.

use serde_json::{Value, json};

use crate::client::{event_names, joined_text, stream_message_id};
use crate::mock::{self, MockServer, Step, delta_step, finish_steps};
use crate::server::TestServer;
use crate::tool_kit::{ToolKit, webhook_answer};

/// A frame with this delta.
fn delta_frame(delta: &Value) -> Step {
    Step::Send(mock::sse_frame(&json!({"choices": [{"index": 0, "delta": delta}]})))
}

fn call_script(deltas: &[Value]) -> Vec<Step> {
    deltas.iter().map(delta_frame).chain(finish_steps("tool_calls")).collect()
}

/// One call of `lint` in one frame.
fn lint_call(id: &str, arguments: &str) -> Value {
    json!({"tool_calls": [{"index": 0, "id": id, "type": "function", "function": {"name": "lint", "arguments": arguments}}]})
}

fn request_body(fields: &Value) -> Value {
    let mut request = json!({
        "text": "x", "dialect": "plain", "tools": ["lint"], "extensions": true, "output_protocol": "jsonseq_v1",
        "contract": {"options": {"text_language": "en"}},
    });
    request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    request
}

fn answer_script() -> Vec<Step> {
    [delta_step("It is fine.")].into_iter().chain(finish_steps("stop")).collect()
}

#[tokio::test]
async fn calls_beside_the_text_run_and_the_model_is_told_in_its_own_form() {
    let first = call_script(&[json!({"content": "I look."}), lint_call("abc", "{\"userInput\": \"x\"}")]);
    let kit =
        ToolKit::new_with(vec![first, answer_script()], vec![webhook_answer(&json!({"score": 7}))], |_| {})
            .await;
    let events = kit.run(&request_body(&json!({}))).await;
    let seen_names = event_names(&events);
    let position = |name: &str| {
        seen_names
            .iter()
            .position(|event_name| *event_name == name)
            .unwrap_or_else(|| panic!("{name}: {seen_names:?}"))
    };
    assert!(
        position("tool_call") < position("tool_start") && position("tool_start") < position("tool_result"),
        "{seen_names:?}"
    );
    assert!(
        joined_text(&events, "final_delta").contains("I look.")
            && joined_text(&events, "final_delta").ends_with("It is fine.")
    );
    // Tools that the model was offered, and results that it was told.
    let requests = kit.model.requests();
    let offered_tool = &requests[0].body["tools"][0];
    assert_eq!(
        (&offered_tool["type"], &offered_tool["function"]["name"]),
        (&json!("function"), &json!("lint"))
    );
    assert_eq!(offered_tool["function"]["parameters"]["required"], json!(["userInput"]));
    let messages = requests[1].body["messages"].as_array().unwrap();
    let [.., call_message, result_message] = messages.as_slice() else { panic!("{messages:?}") };
    assert_eq!((&call_message["role"], &call_message["content"]), (&json!("assistant"), &json!("I look.")));
    assert_eq!(
        call_message["tool_calls"][0]["function"],
        json!({"name": "lint", "arguments": "{\"userInput\": \"x\"}"})
    );
    assert_eq!(call_message["tool_calls"][0]["id"], result_message["tool_call_id"]);
    assert_eq!((&result_message["role"], &result_message["tool_call_id"]), (&json!("tool"), &json!("abc")));
    let result: Value = serde_json::from_str(result_message["content"].as_str().unwrap()).unwrap();
    assert_eq!(result, json!({"ok": true, "result": {"score": 7}}));
    // The record has the calls like others; a later message of the conversation gets them as text.
    let record = kit.server.wait_ended(&stream_message_id(&events)).await;
    let result_message = record["turns"][0]["told"].as_str().unwrap();
    assert!(result_message.contains("\"score\":7"), "{record}");
}

#[tokio::test]
async fn calls_arrive_in_pieces_of_all_kinds() {
    let call = |fields: Value| json!({"tool_calls": [fields]});
    let call_piece = |name: &str, arguments: &str| json!({"name": name, "arguments": arguments});
    let pieces: Vec<(&str, Vec<Value>, usize)> = vec![
        (
            "in pieces",
            vec![
                call(json!({"index": 0, "id": "a", "function": call_piece("lint", "")})),
                call(json!({"index": 0, "function": {"arguments": "{\"userInp"}})),
                call(json!({"index": 0, "function": {"arguments": "ut\": \"1\"}"}})),
            ],
            1,
        ),
        (
            "two at the same time",
            vec![
                call(json!({"index": 0, "id": "a", "function": call_piece("lint", "{\"userInput\":")})),
                call(json!({"index": 1, "id": "b", "function": call_piece("lint", "{\"userInput\":")})),
                call(json!({"index": 0, "function": {"arguments": " \"1\"}"}})),
                call(json!({"index": 1, "function": {"arguments": " \"2\"}"}})),
            ],
            2,
        ),
        (
            "without numbers",
            vec![
                call(json!({"id": "a", "function": call_piece("lint", "{\"userInput\": ")})),
                call(json!({"function": {"arguments": "\"1\"}"}})),
                call(json!({"id": "b", "function": call_piece("lint", "{\"userInput\": \"2\"}")})),
            ],
            2,
        ),
        (
            "all with the number 0",
            vec![lint_call("a", "{\"userInput\": \"1\"}"), lint_call("b", "{\"userInput\": \"2\"}")],
            2,
        ),
        ("name and id in each piece", vec![lint_call("a", "{\"userInput\""), lint_call("a", ": \"1\"}")], 1),
        (
            "without ids",
            vec![
                call(json!({"index": 0, "function": call_piece("lint", "{\"userInput\": \"1\"}")})),
                call(json!({"index": 1, "function": call_piece("lint", "{\"userInput\": \"2\"}")})),
            ],
            2,
        ),
        (
            "arguments that are an object",
            vec![call(
                json!({"index": 0, "id": "a", "function": {"name": "lint", "arguments": {"userInput": "1"}}}),
            )],
            1,
        ),
        (
            "the old field",
            vec![
                json!({"function_call": {"name": "lint", "arguments": "{\"userInput\": "}}),
                json!({"function_call": {"arguments": "\"1\"}"}}),
            ],
            1,
        ),
    ];
    for (name, deltas, count) in pieces {
        let kit = ToolKit::new_with(
            vec![call_script(&deltas), answer_script()],
            vec![webhook_answer(&json!(1))],
            |_| {},
        )
        .await;
        let events = kit.run(&request_body(&json!({}))).await;
        let calls: Vec<&Value> = events
            .iter()
            .filter(|event| event.name == "tool_call")
            .map(|event| &event.data["args"])
            .collect();
        let expected: Vec<Value> = (1..=count).map(|n| json!({"userInput": n.to_string()})).collect();
        assert_eq!(calls, expected.iter().collect::<Vec<_>>(), "{name}");
        let messages = kit.model.requests()[1].body["messages"].as_array().unwrap().clone();
        let results = messages.iter().filter(|message| message["role"] == "tool");
        let ids: std::collections::HashSet<String> =
            results.map(|message| message["tool_call_id"].as_str().unwrap().to_owned()).collect();
        assert_eq!(ids.len(), count, "{name}: {messages:?}");
    }
}

#[tokio::test]
async fn calls_that_were_cut_or_fit_no_tool_are_a_notice() {
    for (arguments, tool, end, code) in [
        ("{\"userInput\": \"x\"}", "lint", "length", "tool_call_cut"),
        ("{\"userInput\": \"x", "lint", "tool_calls", "tool_args_invalid"),
        ("{\"userInput\": 1}", "lint", "tool_calls", "tool_args_invalid"),
        ("{}", "rm", "tool_calls", "tool_unknown"),
    ] {
        let call = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": tool, "arguments": arguments}}]});
        let script: Vec<Step> =
            [delta_step("So."), delta_frame(&call)].into_iter().chain(finish_steps(end)).collect();
        let kit = ToolKit::new_with(vec![script], vec![webhook_answer(&json!(1))], |_| {}).await;
        let events = kit.run(&request_body(&json!({}))).await;
        assert_eq!(kit.webhook.calls().started, 0, "{arguments}");
        let notice =
            events.iter().find(|event| event.name == "notice").unwrap_or_else(|| panic!("{events:?}"));
        assert_eq!((&notice.data["code"], &notice.data["ref"]), (&json!(code), &json!(tool)));
        assert_eq!(events.last().unwrap().data["metadata"]["notices"][0]["code"], code);
        assert_eq!(joined_text(&events, "final_delta"), "So.");
    }
}

#[tokio::test]
async fn messages_have_roles_of_tools_and_parts() {
    let mock = MockServer::start(vec![answer_script()]).await;
    let server = TestServer::start_default(&mock).await;
    let messages = json!([
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [
            {"type": "text", "text": "What is it?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        ]},
        {"role": "assistant", "content": null, "reasoning_content": "I look it up.", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}},
        ]},
        {"role": "tool", "content": "a cat", "tool_call_id": "a"},
    ]);
    let request = json!({"messages": messages, "dialect": "plain", "wait": true});
    let record = server.post("/api/v1/messages", &request).await;
    assert_eq!((record.status, &record.json["answer"]), (200, &json!("It is fine.")), "{}", record.text);
    assert_eq!(mock.requests()[0].body["messages"], messages);
    assert_eq!(record.json["prompt"], messages);
    for wrong in [
        json!({"role": "robot", "content": "x"}),
        json!({"role": "user"}),
        json!({"role": "user", "content": null}),
        json!({"role": "user", "content": []}),
        json!({"role": "user", "content": ["x"]}),
        json!({"role": "user", "content": 1}),
        json!({"role": "tool", "content": "x"}),
        json!({"role": "user", "content": "x", "tool_call_id": "a"}),
        json!({"role": "user", "content": "x", "tool_calls": [{"id": "a", "function": {"name": "f"}}]}),
        json!({"role": "user", "content": "x", "more": 1}),
    ] {
        let refusal =
            server.post("/api/v1/messages", &json!({"messages": [wrong], "dialect": "plain"})).await;
        assert_eq!(refusal.status, 422, "{wrong}: {}", refusal.text);
    }
}

#[tokio::test]
async fn what_a_model_says_instead_is_what_it_says() {
    let mock =
        MockServer::start(vec![call_script(&[json!({"content": null, "refusal": "I will not."})])]).await;
    let server = TestServer::start_default(&mock).await;
    let record =
        server.post("/api/v1/messages", &json!({"text": "x", "dialect": "plain", "wait": true})).await;
    assert_eq!(record.json["answer"], "I will not.", "{}", record.text);
}
