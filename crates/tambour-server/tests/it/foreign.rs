//! Clients of other protocols: translation of requests, output, and errors.

use serde_json::{Value, json};

use crate::mock::{Gate, MockServer, Step, delta_step, finish_steps, reply_script, sse_frame};
use crate::server::{Answer, TestServer};

fn data_step(step: &Value) -> Step {
    Step::Send(sse_frame(&json!({"choices": [{"index": 0, "delta": step}]})))
}

/// A reply with a native call beside its text.
fn calling_script(text: &str) -> Vec<Step> {
    let call = json!({"index": 0, "id": "x", "function": {"name": "add", "arguments": "{\"a\": 1}"}});
    let text = (!text.is_empty()).then(|| delta_step(text));
    text.into_iter()
        .chain([data_step(&json!({"tool_calls": [call]}))])
        .chain(finish_steps("tool_calls"))
        .collect()
}

fn function_tool() -> Value {
    json!({"name": "add", "description": "Adds\none.", "parameters": {
        "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"],
    }})
}

/// The JSON of all `data:` lines of a stream.
fn data_lines(answer: &Answer) -> Vec<Value> {
    let lines = answer.text.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.filter(|line| *line != "[DONE]").map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// A chat completions request with these fields.
fn request_body(fields: &Value) -> Value {
    let mut request = json!({"model": "openai/m", "messages": [{"role": "user", "content": "x"}]});
    request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    request
}

#[tokio::test]
async fn a_request_of_chat_completions_reaches_the_model_as_it_is() {
    let mock = MockServer::start(vec![reply_script("Four.", 2)]).await;
    let server = TestServer::start_default(&mock).await;
    let messages = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "2+2"}, {"type": "image_url", "image_url": {"url": "data:,"}}]},
        {"role": "assistant", "content": null, "refusal": null, "annotations": [], "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "add", "arguments": "{}"}}]},
        {"role": "tool", "content": "4", "tool_call_id": "a"},
    ]);
    let body = request_body(&json!({
        "messages": messages, "temperature": 0.5, "max_completion_tokens": 9, "stop": ["\n"], "seed": 7,
        "frequency_penalty": 0.1, "user": "u", "logit_bias": null, "tool_choice": null,
    }));
    let answer = server.post("/v1/chat/completions", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let message = &answer.json["choices"][0]["message"];
    assert_eq!((&message["role"], &message["content"]), (&json!("assistant"), &json!("Four.")));
    assert_eq!(answer.json["choices"][0]["finish_reason"], "stop");
    assert_eq!(answer.json["usage"]["total_tokens"], 12);
    assert_eq!(
        (&answer.json["object"], &answer.json["model"]),
        (&json!("chat.completion"), &json!("openai/m"))
    );
    let sent_body = mock.requests().remove(0).body;
    for (name, value) in [
        ("model", json!("m")),
        ("temperature", json!(0.5)),
        ("max_completion_tokens", json!(9)),
        ("stop", json!(["\n"])),
        ("seed", json!(7)),
        ("frequency_penalty", json!(0.1)),
        ("user", json!("u")),
    ] {
        assert_eq!(sent_body[name], value, "{name}");
    }
    assert!(sent_body.get("tool_choice").is_none() && sent_body.get("logit_bias").is_none(), "{sent_body}");
    let sent_messages = sent_body["messages"].as_array().unwrap();
    assert_eq!(
        (sent_messages.len(), &sent_messages[0], &sent_messages[1], &sent_messages[3]),
        (4, &messages[0], &messages[1], &messages[3])
    );
    assert_eq!(sent_messages[2]["tool_calls"], messages[2]["tool_calls"]);
    assert!(sent_messages[2].get("refusal").is_none());
}

#[tokio::test]
async fn chunks_have_the_form_that_clients_check() {
    let mock = MockServer::start(vec![reply_script("<think>So</think>It is\nfour.", 3)]).await;
    let server = TestServer::start_default(&mock).await;
    let body = request_body(
        &json!({"stream": true, "stream_options": {"include_usage": true}, "tambour": {"dialect": "plain"}}),
    );
    let answer = server.post("/v1/chat/completions", &body).await;
    assert!(answer.headers["content-type"].to_str().unwrap().starts_with("text/event-stream"));
    assert!(answer.text.ends_with("data: [DONE]\n\n") && !answer.text.contains("event:"), "{}", answer.text);
    let chunks = data_lines(&answer);
    for name in ["id", "created", "model"] {
        assert!(chunks.iter().all(|chunk| chunk[name] == chunks[0][name]), "{name}");
    }
    assert_eq!(chunks[0]["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
    let joined_deltas = |name: &str| -> String {
        chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"][name].as_str()).collect()
    };
    assert_eq!(joined_deltas("content"), "It is\nfour.");
    assert!(joined_deltas("reasoning_content").ends_with("**\nSo"), "{}", joined_deltas("reasoning_content"));
    let ends: Vec<&Value> = chunks
        .iter()
        .map(|chunk| &chunk["choices"][0]["finish_reason"])
        .filter(|end| !end.is_null())
        .collect();
    assert_eq!(ends, [&json!("stop")]);
    let last = chunks.last().unwrap();
    assert_eq!((&last["choices"], &last["usage"]["total_tokens"]), (&json!([]), &json!(12)));
}

#[tokio::test]
async fn calls_are_the_clients_to_run_in_each_protocol() {
    for text in ["", "I add."] {
        let mock = MockServer::start(vec![calling_script(text)]).await;
        let server = TestServer::start_default(&mock).await;
        let tools = json!([{"type": "function", "function": function_tool()}]);
        for stream in [false, true] {
            let body = request_body(&json!({"tools": tools, "tool_choice": "auto", "stream": stream}));
            let answer = server.post("/v1/chat/completions", &body).await;
            let (message, finish) = if stream {
                let chunks = data_lines(&answer);
                let calls: Vec<Value> = chunks
                    .iter()
                    .filter_map(|chunk| chunk["choices"][0]["delta"]["tool_calls"].get(0).cloned())
                    .collect();
                assert_eq!((&calls[0]["function"]["arguments"], &calls[0]["index"]), (&json!(""), &json!(0)));
                let arguments: String =
                    calls.iter().map(|call| call["function"]["arguments"].as_str().unwrap()).collect();
                let mut call = calls[0].clone();
                call["function"]["arguments"] = arguments.into();
                call.as_object_mut().unwrap().remove("index");
                let content: String = chunks
                    .iter()
                    .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
                    .collect();
                let end = &chunks.last().unwrap()["choices"][0]["finish_reason"];
                (json!({"content": content, "tool_calls": [call]}), end.clone())
            } else {
                let mut message = answer.json["choices"][0]["message"].clone();
                if message["content"].is_null() {
                    message["content"] = "".into();
                }
                (message, answer.json["choices"][0]["finish_reason"].clone())
            };
            // Placeholder text never stands for content that the model did not send.
            assert_eq!(
                (message["content"].as_str().unwrap(), finish),
                (text, json!("tool_calls")),
                "{}",
                answer.text
            );
            let call = &message["tool_calls"][0];
            assert_eq!((&call["type"], &call["function"]["name"]), (&json!("function"), &json!("add")));
            assert_eq!(
                serde_json::from_str::<Value>(call["function"]["arguments"].as_str().unwrap()).unwrap(),
                json!({"a": 1})
            );
        }
        let sent_body = mock.requests().remove(0).body;
        assert_eq!(sent_body["tool_choice"], "auto");
        assert_eq!(sent_body["tools"][0]["function"]["parameters"], function_tool()["parameters"]);

        let mut tool = function_tool();
        tool["type"] = "function".into();
        let response =
            server.post("/v1/responses", &json!({"model": "openai/m", "input": "x", "tools": [tool]})).await;
        let call =
            response.json["output"].as_array().unwrap().iter().find(|item| item["type"] == "function_call");
        assert_eq!(call.unwrap()["arguments"], "{\"a\":1}", "{}", response.text);
        assert_eq!(response.json["output"].to_string().contains("output_text"), !text.is_empty());

        let tool = json!({"name": "add", "input_schema": function_tool()["parameters"]});
        let request = json!({"model": "openai/m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}], "tools": [tool]});
        let message = server.post("/v1/messages", &request).await;
        assert_eq!(message.json["stop_reason"], "tool_use", "{}", message.text);
        let call =
            message.json["content"].as_array().unwrap().iter().find(|block| block["type"] == "tool_use");
        assert_eq!(call.unwrap()["input"], json!({"a": 1}));
    }
}

#[tokio::test]
async fn calls_that_a_model_writes_as_text_are_calls_in_each_protocol() {
    let written = [
        "I add.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>",
        "I add.\n<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>",
        "I add.\n[TOOL_CALLS]add[ARGS]{\"a\": 1}",
    ];
    for written in written {
        let mock = MockServer::start(vec![reply_script(written, 2)]).await;
        let server = TestServer::start_default(&mock).await;
        let tools = json!([{"type": "function", "function": function_tool()}]);
        let answer = server.post("/v1/chat/completions", &request_body(&json!({"tools": tools}))).await;
        let choice = &answer.json["choices"][0];
        let call = &choice["message"]["tool_calls"][0]["function"];
        assert_eq!(
            (&call["name"], &call["arguments"]),
            (&json!("add"), &json!("{\"a\":1}")),
            "{}",
            answer.text
        );
        assert_eq!(
            (&choice["message"]["content"], &choice["finish_reason"]),
            (&json!("I add."), &json!("tool_calls"))
        );

        let mut tool = function_tool();
        tool["type"] = "function".into();
        let body = json!({"model": "openai/m", "input": "x", "tools": [tool]});
        let response = server.post("/v1/responses", &body).await;
        let items = response.json["output"].as_array().unwrap();
        let call = items.iter().find(|item| item["type"] == "function_call");
        assert_eq!(call.unwrap()["arguments"], "{\"a\":1}", "{}", response.text);

        let tool = json!({"name": "add", "input_schema": function_tool()["parameters"]});
        let messages = json!([{"role": "user", "content": "x"}]);
        let mut body = json!({"model": "openai/m", "max_tokens": 9, "messages": messages, "tools": [tool]});
        let message = server.post("/v1/messages", &body).await;
        let blocks = message.json["content"].as_array().unwrap();
        let call = blocks.iter().find(|block| block["type"] == "tool_use");
        assert_eq!(call.unwrap()["input"], json!({"a": 1}), "{}", message.text);
        assert_eq!(message.json["stop_reason"], "tool_use");

        // A request that names a dialect gets it, and without tools no reply is a call.
        body["tambour"] = json!({"dialect": "plain"});
        let plain = server.post("/v1/messages", &body).await;
        assert_eq!(plain.json["stop_reason"], "end_turn", "{}", plain.text);
        let bare = server.post("/v1/chat/completions", &request_body(&json!({}))).await;
        assert_eq!(bare.json["choices"][0]["message"]["content"], written, "{}", bare.text);
    }
}

#[tokio::test]
async fn aliases_bring_upstream_contract_and_prompt() {
    let good = "<thinking><phase id=\"1\"><title>Sum</title>2+2</phase></thinking><final>Four.</final>";
    let mock = MockServer::start(vec![reply_script("no tags", 2), reply_script(good, 5)]).await;
    let server = TestServer::start(&mock, |config| {
        let alias = json!({
            "upstream": "openai", "model": "deep", "dialect": "thinkingml", "system_prompt": "You sum.", "max_reasks": 1,
            "contract": {"options": {"text_language": "en"}},
        });
        config.aliases.insert("sums".into(), serde_json::from_value(alias).unwrap());
    })
    .await;
    let answer = server.post("/v1/chat/completions", &request_body(&json!({"model": "sums"}))).await;
    let message = &answer.json["choices"][0]["message"];
    assert_eq!(
        (&message["content"], &message["reasoning_content"]),
        (&json!("Four."), &json!("**Sum**\n2+2"))
    );
    let requests = mock.requests();
    assert_eq!((requests.len(), &requests[0].body["model"]), (2, &json!("deep")));
    assert_eq!(requests[0].body["messages"][0], json!({"role": "system", "content": "You sum."}));
    let models = server.get("/v1/models").await.json;
    let names: Vec<&str> =
        models["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!((names, &models["object"]), (vec!["sums", "demo", "openai/a-model"], &json!("list")));
    assert_eq!(server.get("/v1/models/sums").await.json["object"], "model");
}

#[tokio::test]
async fn errors_have_the_form_of_the_protocol() {
    let mut failing_script =
        vec![delta_step("half"), Step::Send(sse_frame(&json!({"error": {"message": "broke"}})))];
    failing_script.push(Step::End);
    let mock = MockServer::start(vec![failing_script]).await;
    let mut server = TestServer::start_default(&mock).await;
    let wrong = server.post("/v1/chat/completions", &request_body(&json!({"model": "nobody"}))).await;
    assert_eq!(
        (wrong.status, &wrong.json["error"]["code"]),
        (404, &json!("model_not_found")),
        "{}",
        wrong.text
    );
    assert_eq!(wrong.json["error"]["param"], "model");
    assert_eq!(wrong.headers["x-should-retry"], "false");
    for (body, param) in [
        (request_body(&json!({"n": 2})), "n"),
        (request_body(&json!({"messages": "x"})), "messages"),
        (request_body(&json!({"tools": [{"type": "web"}]})), "tools"),
        (request_body(&json!({"tambour": {"colour": 1}})), "colour"),
        (request_body(&json!({"tambour": {"wait": true}})), "wait"),
        (request_body(&json!({"tambour": 1})), "tambour"),
        (request_body(&json!({"model": null})), "model"),
    ] {
        let refusal = server.post("/v1/chat/completions", &body).await;
        assert_eq!(
            (refusal.status, &refusal.json["error"]["param"]),
            (422, &json!(param)),
            "{}",
            refusal.text
        );
        assert!(refusal.json["error"]["message"].is_string() && refusal.json["error"]["type"].is_string());
    }
    let missing = server.post("/v1/messages", &json!({"model": "openai/m", "messages": []})).await;
    assert_eq!((missing.status, &missing.json["type"]), (422, &json!("error")), "{}", missing.text);
    assert_eq!(missing.json["error"]["type"], "invalid_request_error");
    let messages = json!([{"role": "tool", "content": "x"}]);
    let request = json!({"model": "openai/m", "max_tokens": 9, "messages": messages});
    let wrong = server.post("/v1/messages", &request).await;
    let message = wrong.json["error"]["message"].as_str().unwrap_or_default();
    assert_eq!(wrong.status, 422, "{}", wrong.text);
    assert!(message.contains("must be `user`, `assistant` or `system`"), "{}", wrong.text);

    // Errors of the model.
    let failure = server.post("/v1/chat/completions", &request_body(&json!({}))).await;
    assert_eq!(
        (failure.status, &failure.json["error"]["code"]),
        (502, &json!("upstream_error")),
        "{}",
        failure.text
    );
    assert_eq!(failure.headers["x-should-retry"], "false");
    let stream_answer = server.post("/v1/chat/completions", &request_body(&json!({"stream": true}))).await;
    assert_eq!(
        data_lines(&stream_answer).last().unwrap()["error"]["code"],
        "upstream_error",
        "{}",
        stream_answer.text
    );
    assert!(!stream_answer.text.contains("[DONE]"));
    let message = json!({"model": "openai/m", "max_tokens": 9, "stream": true, "messages": [{"role": "user", "content": "x"}]});
    let stream_answer = server.post("/v1/messages", &message).await;
    assert!(stream_answer.text.contains("event: error\ndata: {\"type\":\"error\""), "{}", stream_answer.text);

    // Errors of the key.
    let admin = server.post("/api/v1/keys", &json!({"name": "a", "rights": "admin"})).await.json;
    server.set_key(Some("wrong"));
    let unknown = server.post("/v1/chat/completions", &request_body(&json!({}))).await;
    assert_eq!((unknown.status, &unknown.json["error"]["type"]), (401, &json!("authentication_error")));
    let unknown = server.post("/v1/messages", &message).await;
    assert_eq!(unknown.json["error"]["type"], "authentication_error");
    server.set_key(admin["key"].as_str());
    assert_eq!(server.get("/v1/models").await.status, 200);
}

#[tokio::test]
async fn a_client_of_openai_that_goes_stops_the_model() {
    let gate = Gate::new();
    let mut script = vec![delta_step("on and "), Step::Wait(gate.clone()), delta_step("on")];
    script.extend(finish_steps("stop"));
    let mock = MockServer::start(vec![script]).await;
    let server = TestServer::start(&mock, |config| config.grace_ms = 600_000).await;
    let body = request_body(&json!({"stream": true}));
    let pending = server.begin_post("/v1/chat/completions", &body).await;
    mock.wait_until(|calls| calls.started == 1).await;
    drop(pending);
    mock.wait_until(|calls| calls.abandoned == 1).await;
    // A request that waits for the whole answer, too.
    let waiting_answer = server.begin_post("/v1/chat/completions", &request_body(&json!({}))).await;
    mock.wait_until(|calls| calls.started == 2).await;
    drop(waiting_answer);
    mock.wait_until(|calls| calls.abandoned == 2).await;
    server.wait_for_metric("tambour_running", 0).await;
}

#[tokio::test]
async fn a_response_goes_on_where_the_client_stopped_and_in_a_conversation() {
    let mock = MockServer::start(vec![reply_script("First.", 2), reply_script("Second.", 2)]).await;
    let server = TestServer::start_default(&mock).await;
    let first = server
        .post("/v1/responses", &json!({"model": "openai/m", "input": "one", "instructions": "Be brief."}))
        .await;
    let id = first.json["id"].as_str().unwrap();
    assert_eq!(first.json["output"][0]["content"][0]["text"], "First.", "{}", first.text);
    let next = json!({"model": "openai/m", "input": "two", "previous_response_id": id});
    let second = server.post("/v1/responses", &next).await;
    assert_eq!(second.status, 200, "{}", second.text);
    let sent_body = mock.requests().remove(1).body;
    let texts: Vec<&str> = sent_body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["one", "First.", "two"]);
    let replayed = server.get(&format!("/v1/responses/{id}?stream=true")).await;
    let replayed = data_lines(&replayed);
    let numbers: Vec<u64> = replayed.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..replayed.len() as u64).collect::<Vec<_>>());
    for number in 0..replayed.len() {
        let rest = server.get(&format!("/v1/responses/{id}?stream=true&starting_after={number}")).await;
        assert_eq!(data_lines(&rest), replayed[number + 1..], "after {number}");
    }
    assert_eq!(server.get("/v1/responses/resp_none").await.status, 404);
}

#[tokio::test]
async fn a_chat_of_the_ai_sdk_is_replayed_while_it_runs_and_can_be_stopped() {
    let gate = Gate::new();
    let mut script = vec![delta_step("on and "), Step::Wait(gate.clone()), delta_step("on")];
    script.extend(finish_steps("stop"));
    let mock = MockServer::start(vec![script]).await;
    let server = TestServer::start_default(&mock).await;
    let message = json!({"id": "1", "role": "user", "parts": [{"type": "text", "text": "x"}]});
    let body = json!({"id": "c/1", "messages": [message], "trigger": "submit-message", "tambour": {"dialect": "plain"}});
    assert_eq!(server.get("/api/chat/c%2F1/stream").await.status, 204);
    let first = server.begin_post("/api/chat", &body).await;
    mock.wait_until(|calls| calls.started == 1).await;
    let resumed = server.begin_get("/api/chat/c%2F1/stream").await;
    assert_eq!(server.post("/api/chat/c%2F1/stop", &json!({})).await.json, json!({"stopped": true}));
    let (first, resumed) = (first.into_text().await, resumed.into_text().await);
    assert_eq!(first, resumed);
    let parts: Vec<Value> =
        first.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect();
    assert_eq!(parts[0]["type"], "start");
    assert!(parts.iter().any(|part| part["type"] == "text-end"));
    assert_eq!(parts.last().unwrap()["type"], "abort", "{first}");
    assert!(first.ends_with("data: [DONE]\n\n"));
    assert_eq!(server.get("/api/chat/c%2F1/stream").await.status, 204);
    // The last message alone continues the chat.
    gate.open();
    let next = json!({"id": "c/1", "message": {"role": "user", "parts": [{"type": "text", "text": "y"}]}, "tambour": {"dialect": "plain"}});
    let answer = server.post("/api/chat", &next).await;
    assert_eq!(answer.headers["x-vercel-ai-ui-message-stream"], "v1");
    let sent_body = mock.requests().remove(1).body;
    assert_eq!(sent_body["messages"][0]["content"], "x", "{sent_body}");
    assert_eq!(
        sent_body["messages"].as_array().unwrap().last().unwrap()["content"]
            .as_str()
            .map(|content| content.contains('y')),
        Some(true)
    );
}

#[tokio::test]
async fn a_run_of_ag_ui_takes_messages_tools_context_and_answers() {
    let mock = MockServer::start(vec![calling_script("I add.")]).await;
    let server = TestServer::start_default(&mock).await;
    let body = json!({
        "threadId": "t", "runId": "r", "state": {}, "context": [{"description": "place", "value": "Oslo"}],
        "tools": [{"name": "add", "description": "Adds.", "parameters": function_tool()["parameters"]}],
        "messages": [
            {"id": "1", "role": "user", "content": "x"},
            {"id": "2", "role": "assistant", "toolCalls": [{"id": "a", "type": "function", "function": {"name": "add", "arguments": "{}"}}]},
            {"id": "3", "role": "tool", "content": "1", "toolCallId": "a"},
            {"id": "4", "role": "reasoning", "content": "hidden"},
        ],
        "resume": [{"interruptId": "i", "status": "resolved", "payload": "yes"}, {"interruptId": "j", "status": "cancelled"}],
        "forwardedProps": {"model": "openai/m", "tambour": {"dialect": "plain"}},
    });
    let answer = server.post("/ag-ui", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(!answer.text.contains("[DONE]"));
    let events = data_lines(&answer);
    assert_eq!(
        (&events[0]["type"], &events[0]["threadId"], &events[0]["runId"]),
        (&json!("RUN_STARTED"), &json!("t"), &json!("r"))
    );
    let last = events.last().unwrap();
    assert_eq!((&last["type"], &last["outcome"]["type"]), (&json!("RUN_FINISHED"), &json!("success")));
    assert_eq!(last["outcome"]["pendingToolCallIds"].as_array().unwrap().len(), 1);
    let sent_body = mock.requests().remove(0).body;
    let roles: Vec<&str> = sent_body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "user"]);
    for wrong in [json!({}), json!({"threadId": "t"}), json!({"threadId": "t", "runId": "r"})] {
        assert_eq!(server.post("/ag-ui", &wrong).await.status, 422);
    }
}

#[tokio::test]
async fn a_reply_without_reasoning_has_none_in_other_protocols() {
    // An empty phase alone exists only for the contract of the native protocol.
    let mock = MockServer::start(vec![reply_script("Four.", 2); 6]).await;
    let server = TestServer::start_default(&mock).await;
    for stream in [true, false] {
        let chat = server.post("/v1/chat/completions", &request_body(&json!({ "stream": stream }))).await;
        assert!(chat.text.contains("Four.") || chat.text.contains("Fo"), "{}", chat.text);
        assert!(!chat.text.contains("reasoning_content"), "{}", chat.text);
        let body = json!({"model": "openai/m", "input": "x", "stream": stream});
        let response = server.post("/v1/responses", &body).await;
        assert!(!response.text.contains("\"type\":\"reasoning\""), "{}", response.text);
        let body = json!({"model": "openai/m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}], "stream": stream});
        let message = server.post("/v1/messages", &body).await;
        assert!(message.status == 200 && !message.text.contains("\"thinking\""), "{}", message.text);
    }
}

/// Without a known dialect, too: reasoning of a plain reply is its thinking, and beside a structure a draft.
#[tokio::test]
async fn reasoning_of_models_is_known_in_other_protocols() {
    let reasons =
        || ["bec", "aus", "e so"].map(|text| data_step(&json!({"reasoning_content": text}))).to_vec();
    let plain = [reasons(), vec![delta_step("The "), delta_step("answer.")], finish_steps("stop")].concat();
    let structured_script = [reasons(), reply_script(crate::mock::GOOD_REPLY, 9)].concat();
    let mock = MockServer::start([vec![plain.clone(); 3], vec![structured_script]].concat()).await;
    let server = TestServer::start_default(&mock).await;
    // X-012
    let chat = server.post("/v1/chat/completions", &request_body(&json!({}))).await;
    let message = &chat.json["choices"][0]["message"];
    assert!(message["reasoning_content"].as_str().unwrap().ends_with("because so"), "{}", chat.text);
    assert_eq!(message["content"], "The answer.");
    let claude =
        json!({"model": "openai/m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]});
    let claude = server.post("/v1/messages", &claude).await;
    assert!(
        claude.json["content"][0]["thinking"].as_str().unwrap().ends_with("because so"),
        "{}",
        claude.text
    );
    let body = json!({"model": "openai/m", "messages": [{"role": "user", "parts": [{"type": "text", "text": "x"}]}]});
    let parts = data_lines(&server.post("/api/chat", &body).await);
    let reasoning = parts
        .iter()
        .filter(|part| part["type"] == "reasoning-delta")
        .map(|part| part["delta"].as_str().unwrap());
    assert_eq!(reasoning.collect::<String>(), "because so");
    let other = server.post("/v1/chat/completions", &request_body(&json!({}))).await;
    assert!(!other.text.contains("because so") && other.text.contains("first thought"), "{}", other.text);
}

#[tokio::test]
async fn a_run_of_ag_ui_reads_calls_in_text_and_says_what_was_cut() {
    let reply_text =
        "Let me look.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>";
    let mock = MockServer::start(vec![
        reply_script(reply_text, 4),
        reply_script("Cut he", 2)[..3].iter().cloned().chain([Step::End]).collect(),
    ])
    .await;
    let server = TestServer::start_default(&mock).await;
    let mut body = json!({"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "x"}],
        "tools": [function_tool()], "context": [], "forwardedProps": {"model": "openai/m"}});
    let events = data_lines(&server.post("/ag-ui", &body).await);
    let event_of_type = |kind: &str| events.iter().find(|event| event["type"] == kind);
    assert_eq!(event_of_type("TOOL_CALL_START").unwrap()["toolCallName"], "add");
    let text = events.iter().filter(|event| event["type"] == "TEXT_MESSAGE_CONTENT");
    assert_eq!(text.map(|event| event["delta"].as_str().unwrap()).collect::<String>().trim(), "Let me look.");
    assert_eq!(event_of_type("RUN_FINISHED").unwrap().get("result"), None);
    body["tools"] = json!([]);
    let events = data_lines(&server.post("/ag-ui", &body).await);
    // X-014
    assert_eq!(events.last().unwrap()["result"], json!({"truncated": true, "finish_reason": "length"}));
}

#[tokio::test]
async fn what_a_service_finds_wrong_with_a_request_stays_the_clients_error() {
    let error_body = |code: &str| json!({"error": {"message": "too long, sk-secret12345", "type": "invalid_request_error", "code": code}});
    for (status, body, expected_status, code) in [
        (400, error_body("context_length_exceeded").to_string(), 400, "context_length_exceeded"),
        (404, error_body("model_not_found").to_string(), 404, "model_not_found"),
        (413, "<html>413 Request Entity Too Large</html>".to_owned(), 413, "upstream_refused"),
        (
            422,
            json!({"error": {"message": "no", "type": "invalid_request_error"}}).to_string(),
            422,
            "invalid_request_error",
        ),
        // Text that may be a key is not passed on as an error code.
        (400, error_body("sk-secret1234567890").to_string(), 400, "upstream_refused"),
        // Key and account are those of the operator.
        (401, error_body("invalid_api_key").to_string(), 502, "upstream_unauthorized"),
        (402, error_body("insufficient_quota").to_string(), 502, "insufficient_quota"),
        (307, String::new(), 502, "upstream_refused"),
    ] {
        let script = vec![Step::Head(status, vec![]), Step::Send(body.into_bytes()), Step::End];
        let mock = MockServer::start(vec![script]).await;
        let server = TestServer::start_default(&mock).await;
        let answers = [
            server.post("/v1/chat/completions", &request_body(&json!({}))).await,
            server.post("/v1/responses", &json!({"model": "openai/m", "input": "x"})).await,
        ];
        for answer in answers {
            assert_eq!(
                (answer.status, &answer.json["error"]["code"]),
                (expected_status, &json!(code)),
                "{}",
                answer.text
            );
            assert!(!answer.text.contains("secret"), "{}", answer.text);
            assert_eq!(answer.headers["x-should-retry"], "false");
            let kind = if expected_status < 500 {
                "invalid_request_error"
            } else {
                answer.json["error"]["type"].as_str().unwrap()
            };
            assert_eq!(answer.json["error"]["type"], kind);
        }
        let message =
            json!({"model": "openai/m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]});
        let answer = server.post("/v1/messages", &message).await;
        let kind = match expected_status {
            404 => "not_found_error",
            413 => "request_too_large",
            400 | 422 => "invalid_request_error",
            _ => answer.json["error"]["type"].as_str().unwrap(),
        };
        assert_eq!(
            (answer.status, &answer.json["error"]["type"]),
            (expected_status, &json!(kind)),
            "{}",
            answer.text
        );
        // Our own stream says it too.
        let events = server.open_stream(&json!({"text": "x"})).await.read_checked().await;
        let report = &events.last().unwrap().data;
        assert_eq!(
            report["upstream"]["status"].as_u64(),
            (status / 100 == 4 && status != 401).then_some(status.into())
        );
    }
}

#[tokio::test]
async fn a_broken_frame_does_not_change_why_a_reply_ended() {
    let broken_frame = || Step::Send(b"data: {\"choices\": [{\"delta\": {\"content\": \" and\n\n".to_vec());
    for (end, reason) in [("stop", "stop"), ("length", "length"), ("content_filter", "content_filter")] {
        let script: Vec<Step> = [delta_step("Two"), broken_frame(), delta_step(" two")]
            .into_iter()
            .chain(finish_steps(end))
            .collect();
        let mock = MockServer::start(vec![script]).await;
        let server = TestServer::start_default(&mock).await;
        for stream in [false, true] {
            let answer = server.post("/v1/chat/completions", &request_body(&json!({"stream": stream}))).await;
            assert!(answer.text.contains(&format!("\"finish_reason\":\"{reason}\"")), "{}", answer.text);
        }
        let events = server.open_stream(&json!({"text": "x", "dialect": "plain"})).await.read_checked().await;
        let completed = &events.last().unwrap().data;
        assert_eq!(completed["finish_reason"], reason);
        // X-014: the reply counts as truncated all the same.
        assert_eq!(completed["metadata"]["truncated"], true, "{completed}");
    }
    // Calls in it do not act.
    let mut script = calling_script("I add.");
    script.insert(1, broken_frame());
    let mock = MockServer::start(vec![script]).await;
    let server = TestServer::start_default(&mock).await;
    let tools = json!([{"type": "function", "function": function_tool()}]);
    let answer = server.post("/v1/chat/completions", &request_body(&json!({"tools": tools}))).await;
    assert_eq!(answer.json["choices"][0]["message"].get("tool_calls"), None, "{}", answer.text); // R-68
    assert_eq!(answer.json["choices"][0]["finish_reason"], "stop", "{}", answer.text);
}

#[tokio::test]
async fn tokens_of_a_request_of_anthropic_are_estimated() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = TestServer::start_default(&mock).await;
    let count = async |fields: Value| {
        let mut body = json!({"model": "openai/m", "messages": [{"role": "user", "content": "2 + 2?"}]});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let answer = server.post("/v1/messages/count_tokens", &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json["input_tokens"].as_u64().unwrap()
    };
    let bare = count(json!({})).await;
    assert!((4..=12).contains(&bare), "{bare}");
    let system = count(json!({"system": "Be brief. ".repeat(100)})).await;
    assert!((bare + 200..bare + 300).contains(&system), "{system}");
    let tools =
        count(json!({"tools": [{"name": "add", "input_schema": function_tool()["parameters"]}]})).await;
    assert!(tools > bare + 10, "{tools}");
    let image = json!([{"role": "user", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aaaa"}}]}]);
    assert!(count(json!({"messages": image})).await > 1000);
    // A request that would be refused as a message is refused with the same text, without a call of the model.
    let wrong = server.post("/v1/messages/count_tokens", &json!({"model": "none", "messages": []})).await;
    assert_eq!(
        (wrong.status, &wrong.json["error"]["type"]),
        (404, &json!("not_found_error")),
        "{}",
        wrong.text
    );
    assert_eq!(mock.calls().started, 0);
    assert_eq!(server.get("/api/v1/conversations").await.json["data"], json!([]));
}

#[tokio::test]
async fn a_run_that_only_calls_has_no_reasoning() {
    let mock = MockServer::start(vec![calling_script("")]).await;
    let server = TestServer::start_default(&mock).await;
    let body = json!({
        "threadId": "t", "runId": "r", "state": {}, "context": [], "forwardedProps": {},
        "tools": [{"name": "add", "description": "Adds.", "parameters": function_tool()["parameters"]}],
        "messages": [{"id": "1", "role": "user", "content": "x"}],
    });
    let events = data_lines(&server.post("/ag-ui", &body).await);
    let kinds = events.iter().map(|event| event["type"].as_str().unwrap());
    let kinds: Vec<&str> = kinds.filter(|kind| *kind != "CUSTOM").collect();
    assert_eq!(kinds, ["RUN_STARTED", "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "RUN_FINISHED"]);
}

/// R-81: a number that cannot be kept exactly refuses its member of the client's state, and the refusal is reported.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_out_of_range_in_the_state_of_a_run_is_refused_alone() {
    for number in ["12345678901234567890123", "1e400", r#"{"in": [1, -1e400]}"#] {
        let mock = MockServer::start(vec![reply_script("Four.", 2); 2]).await;
        let server = TestServer::start_default(&mock).await;
        let body = |state: &str, temperature: &str| {
            format!(
                r#"{{"threadId": "t", "runId": "r", "state": {state}, "messages": [{{"id": "1", "role": "user", "content": "x"}}],
                "forwardedProps": {{"model": "openai/m", "tambour": {{"temperature": {temperature}}}}}}}"#
            )
        };
        let state = format!(r#"{{"hp": 1, "vast": {number}, "name": "1e400"}}"#);
        let wrong = server.call("post", "/ag-ui", Some(&body(&state, "1e400"))).await;
        assert_eq!(wrong.status, 400, "{}", wrong.text);
        let answer = server.call("post", "/ag-ui", Some(&body(&state, "1"))).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let events = data_lines(&answer);
        let expected_state = json!({"hp": 1, "name": "1e400"});
        assert_eq!(events[1], json!({"type": "STATE_SNAPSHOT", "snapshot": expected_state}), "{number}");
        let notices: Vec<&Value> =
            events.iter().filter(|event| event["name"] == "tambour.state_rejected").collect();
        assert_eq!(notices.len(), 1, "{}", answer.text);
        let notices = &notices[0]["value"];
        assert_eq!((&notices["path"], &notices["reason"]), (&json!("vast"), &json!("number_out_of_range")));
        // From here on the server's state counts, whatever the client sends.
        let repeat = server.call("post", "/ag-ui", Some(&body(r#"{"vast": 1e400}"#, "1"))).await;
        assert_eq!(data_lines(&repeat)[1]["snapshot"], expected_state, "{}", repeat.text);
        assert!(!repeat.text.contains("state_rejected"), "{}", repeat.text);
    }
}
