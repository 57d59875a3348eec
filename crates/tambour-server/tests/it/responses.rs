//! OpenAI Responses as its clients use it: results of calls after a response, storage, and background runs.

use serde_json::{Value, json};

use crate::mock::{Gate, MockServer, Step, delta_step, finish_steps, reply_script, sse_frame};
use crate::server::TestServer;

fn calling_script(text: &str) -> Vec<Step> {
    let call = json!({"index": 0, "id": "x", "function": {"name": "add", "arguments": "{\"a\": 1}"}});
    let data = sse_frame(&json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}));
    let text = (!text.is_empty()).then(|| delta_step(text));
    text.into_iter().chain([Step::Send(data)]).chain(finish_steps("tool_calls")).collect()
}

fn tools() -> Value {
    json!([{"type": "function", "name": "add", "description": "Adds.", "parameters": {
        "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"],
    }}])
}

/// Roles and contents of the last prompt.
fn last_prompt(mock: &MockServer) -> Vec<(String, String)> {
    let messages = mock.requests().last().unwrap().body["messages"].clone();
    let content_parts = |message: &Value| {
        let role_and_text =
            message["content"].as_str().map_or_else(|| message["tool_calls"].to_string(), str::to_owned);
        (message["role"].as_str().unwrap().to_owned(), role_and_text)
    };
    messages.as_array().unwrap().iter().map(content_parts).collect()
}

#[tokio::test]
async fn results_of_calls_follow_the_response_that_made_them() {
    for text in ["", "I add."] {
        let mock = MockServer::start(vec![
            calling_script(text),
            reply_script("It is 2.", 2),
            reply_script("Bye.", 2),
        ])
        .await;
        let server = TestServer::start_default(&mock).await;
        let first =
            json!({"model": "openai/m", "input": "1+1?", "instructions": "Be brief.", "tools": tools()});
        let first = server.post("/v1/responses", &first).await;
        let output = first.json["output"].as_array().unwrap_or_else(|| panic!("{}", first.text));
        let call = output.iter().find(|item| item["type"] == "function_call").unwrap();
        let result = json!({"type": "function_call_output", "call_id": call["call_id"], "output": "2"});
        let second = json!({
            "model": "openai/m", "input": [result], "previous_response_id": first.json["id"], "tools": tools(),
            "instructions": "Be kind.",
        });
        let second = server.post("/v1/responses", &second).await;
        assert_eq!(second.status, 200, "{}", second.text);
        assert_eq!(second.json["output"][0]["content"][0]["text"], "It is 2.");
        assert_eq!(second.json["previous_response_id"], first.json["id"]);
        let messages = mock.requests()[1].body["messages"].clone();
        let roles: Vec<&str> =
            messages.as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["system", "user", "assistant", "tool"], "{messages}");
        assert_eq!(messages[0]["content"], "Be kind.", "instructions are those of the request alone");
        assert_eq!(messages[2]["content"].as_str().unwrap_or_default(), text);
        assert_eq!(messages[2]["tool_calls"][0]["id"], messages[3]["tool_call_id"]);
        assert_eq!(messages[2]["tool_calls"][0]["function"]["name"], "add");
        assert_eq!(messages[3]["content"], "2");
        // A message continues after all of that.
        let third =
            json!({"model": "openai/m", "input": "Thanks.", "previous_response_id": second.json["id"]});
        assert_eq!(server.post("/v1/responses", &third).await.status, 200);
        let roles: Vec<String> = last_prompt(&mock).into_iter().map(|(role, _)| role).collect();
        assert_eq!(roles, ["user", "assistant", "tool", "assistant", "user"]);
        // A result of another call is refused without a call of the model.
        let stray = json!({"type": "function_call_output", "call_id": "call_9", "output": "2"});
        let stray = json!({"model": "openai/m", "input": [stray], "previous_response_id": first.json["id"]});
        let refusal = server.post("/v1/responses", &stray).await;
        assert_eq!((refusal.status, &refusal.json["error"]["param"]), (422, &json!("input")));
        assert_eq!(mock.calls().started, 3);
    }
}

#[tokio::test]
async fn a_response_can_be_gone_on_from_twice() {
    let mock =
        MockServer::start(["First.", "Left.", "Right."].map(|text| reply_script(text, 2)).to_vec()).await;
    let server = TestServer::start_default(&mock).await;
    let request =
        |input: &str, id: &Value| json!({"model": "openai/m", "input": input, "previous_response_id": id});
    let first = server.post("/v1/responses", &request("one", &Value::Null)).await.json["id"].clone();
    server.post("/v1/responses", &request("left", &first)).await;
    server.post("/v1/responses", &request("right", &first)).await;
    let texts: Vec<String> = last_prompt(&mock).into_iter().map(|(_, texts)| texts).collect();
    assert_eq!(texts, ["one", "First.", "right"]);
}

#[tokio::test]
async fn what_is_not_to_be_stored_is_gone_when_it_was_read() {
    for stream in [false, true] {
        let mock = MockServer::start(vec![reply_script("Four.", 2)]).await;
        let server = TestServer::start_default(&mock).await;
        let body = json!({"model": "openai/m", "input": "a secret", "store": false, "stream": stream});
        let answer = server.post("/v1/responses", &body).await;
        assert!(answer.text.contains("Four."), "{}", answer.text);
        assert!(answer.text.contains("\"store\":false"), "{}", answer.text);
        let id = answer.text.split("resp_").nth(1).unwrap().split('"').next().unwrap().to_owned();
        crate::server::with_timeout(async {
            while server.get(&format!("/v1/responses/resp_{id}")).await.status != 404 {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        })
        .await;
        assert_eq!(server.get(&format!("/api/v1/messages/{id}")).await.status, 404);
    }
    let mock = MockServer::start(vec![reply_script("Four.", 2)]).await;
    let server = TestServer::start_default(&mock).await;
    let stored = server.post("/v1/responses", &json!({"model": "openai/m", "input": "x"})).await;
    assert_eq!(stored.json["store"], true);
    assert_eq!(
        server.get(&format!("/v1/responses/{}", stored.json["id"].as_str().unwrap())).await.status,
        200
    );
}

#[tokio::test]
async fn what_runs_in_the_background_is_fetched_later() {
    let gate = Gate::new();
    let mut script = vec![delta_step("on and "), Step::Wait(gate.clone()), delta_step("on")];
    script.extend(finish_steps("stop"));
    let mock = MockServer::start(vec![script]).await;
    let server = TestServer::start(&mock, |config| config.grace_ms = 1).await;
    let body = json!({"model": "openai/m", "input": "x", "background": true});
    let started_response = server.post("/v1/responses", &body).await;
    assert_eq!(
        (started_response.status, &started_response.json["status"]),
        (200, &json!("in_progress")),
        "{}",
        started_response.text
    );
    assert_eq!(started_response.json["background"], true);
    let path = format!("/v1/responses/{}", started_response.json["id"].as_str().unwrap());
    // Those who come and go do not stop it.
    drop(server.begin_get(&format!("{path}?stream=true")).await);
    let mut stream_body = body.clone();
    stream_body["stream"] = true.into();
    let stream_answer = server.begin_post("/v1/responses", &stream_body).await;
    mock.wait_until(|calls| calls.started == 2).await;
    drop(stream_answer);
    // A response outside the background ends some time after its reader has left.
    let mut foreground_body = body.clone();
    (foreground_body["background"], foreground_body["stream"]) = (false.into(), true.into());
    let pending_answer = server.begin_post("/v1/responses", &foreground_body).await;
    mock.wait_until(|calls| calls.started == 3).await;
    drop(pending_answer);
    mock.wait_until(|calls| calls.abandoned > 0).await;
    assert_eq!((mock.calls().abandoned, mock.calls().ended), (1, 1));
    assert_eq!(server.get(&path).await.json["status"], "in_progress");
    gate.open();
    server.wait_for_metric("tambour_running", 0).await;
    let completed_response = server.get(&path).await.json;
    assert_eq!(
        (&completed_response["status"], &completed_response["output"][0]["content"][0]["text"]),
        (&json!("completed"), &json!("on and on"))
    );
    let refusal = server
        .post(
            "/v1/responses",
            &json!({"model": "openai/m", "input": "x", "background": true, "store": false}),
        )
        .await;
    assert_eq!((refusal.status, &refusal.json["error"]["param"]), (422, &json!("store")));
}

#[tokio::test]
async fn responses_are_listed_in_parts_and_deleted() {
    let mock = MockServer::start(vec![calling_script("I add."), reply_script("It is 2.", 2)]).await;
    let mut server = TestServer::start_default(&mock).await;
    let input = json!([
        {"role": "user", "content": [{"type": "input_text", "text": "1+1?"}, {"type": "input_image", "image_url": "data:,"}]},
        {"type": "function_call", "call_id": "a", "name": "add", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "2"},
    ]);
    let body = json!({"model": "openai/m", "input": input, "instructions": "Be brief.", "tools": tools()});
    let response = server.post("/v1/responses", &body).await;
    let path = format!("/v1/responses/{}", response.json["id"].as_str().unwrap());
    let listing = server.get(&format!("{path}/input_items?order=asc")).await.json;
    let items = listing["data"].as_array().unwrap();
    let kinds: Vec<&str> = items.iter().map(|item| item["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["message", "function_call", "function_call_output"], "{listing}");
    assert_eq!(items[0]["content"], input[0]["content"]);
    assert_eq!((&items[1]["call_id"], &items[2]["output"]), (&json!("a"), &json!("2")));
    assert_eq!((&listing["first_id"], &listing["last_id"]), (&items[0]["id"], &items[2]["id"]));
    // The newest first, in pages.
    let mut listed_ids = Vec::new();
    let mut after = String::new();
    loop {
        let page = server.get(&format!("{path}/input_items?limit=2{after}")).await.json;
        listed_ids.extend(page["data"].as_array().unwrap().clone());
        if page["has_more"] == false {
            break;
        }
        after = format!("&after={}", page["last_id"].as_str().unwrap());
    }
    listed_ids.reverse();
    assert_eq!(&listed_ids, items);
    for (query, field) in
        [("limit=0", "limit"), ("limit=x", "limit"), ("order=up", "order"), ("after=none", "after")]
    {
        let wrong = server.get(&format!("{path}/input_items?{query}")).await;
        assert_eq!((wrong.status, &wrong.json["error"]["param"]), (422, &json!(field)), "{}", wrong.text);
    }
    // Another owner sees none of it.
    let key = server.post("/api/v1/keys", &json!({"name": "admin", "rights": "admin"})).await.json;
    assert_eq!(server.call("delete", &path, None).await.status, 401);
    server.set_key(key["key"].as_str());
    let other = server.post("/api/v1/keys", &json!({"name": "other"})).await.json;
    server.set_key(other["key"].as_str());
    assert_eq!(server.call("delete", &path, None).await.status, 404);
    assert_eq!(server.get(&format!("{path}/input_items")).await.status, 404);
    let own_id = server.post("/v1/responses", &body).await.json["id"].as_str().unwrap().to_owned();
    let deletion = server.call("delete", &format!("/v1/responses/{own_id}"), None).await;
    assert_eq!(
        (deletion.status, deletion.json),
        (200, json!({"id": own_id, "object": "response", "deleted": true}))
    );
    assert_eq!(server.get(&format!("/v1/responses/{own_id}")).await.status, 404);
    assert_eq!(server.call("delete", &format!("/v1/responses/{own_id}"), None).await.status, 404);
}
