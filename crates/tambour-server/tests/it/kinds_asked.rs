//! Requests to services of every kind: addresses, headers, and prompts in the terms of each.

use serde_json::{Value, json};
use tambour_server::upstream::ServiceKind;

use crate::kinds::{OTHER_KINDS, end_event, recorded_script, request_body, server_of_kind};
use crate::mock::{MockServer, ReceivedRequest};
use crate::server::TestServer;

/// Request that a service receives for this message.
async fn service_request(kind: ServiceKind, path: &str, request: &Value) -> ReceivedRequest {
    let mock = MockServer::start(vec![recorded_script(kind, "text")]).await;
    let tambour = server_of_kind(kind, &mock, path).await;
    let mut request = request.clone();
    (request["wait"], request["dialect"]) = (true.into(), "plain".into());
    let answer = tambour.post("/api/v1/messages", &request).await;
    assert_eq!(answer.json["status"], "completed", "{}", answer.text);
    mock.requests()[0].clone()
}

#[tokio::test]
async fn bases_have_the_version_or_not() {
    let anthropic = "post /v1/messages http/1.1";
    let gemini = "post /v1beta/models/gemini-2.5-of-tests:streamgeneratecontent?alt=sse http/1.1";
    let ollama = "post /api/chat http/1.1";
    for (kind, path, line) in [
        (ServiceKind::Anthropic, "", anthropic),
        (ServiceKind::Anthropic, "/", anthropic),
        (ServiceKind::Anthropic, "/v1", anthropic),
        (ServiceKind::Anthropic, "/proxy/v1/", "post /proxy/v1/messages http/1.1"),
        (ServiceKind::Anthropic, "/proxy", "post /proxy/v1/messages http/1.1"),
        (ServiceKind::Gemini, "", gemini),
        (ServiceKind::Gemini, "/v1beta", gemini),
        (ServiceKind::Gemini, "/v1beta/", gemini),
        (
            ServiceKind::Gemini,
            "/v1",
            "post /v1/models/gemini-2.5-of-tests:streamgeneratecontent?alt=sse http/1.1",
        ),
        (
            ServiceKind::Gemini,
            "/vertex",
            "post /vertex/v1beta/models/gemini-2.5-of-tests:streamgeneratecontent?alt=sse http/1.1",
        ),
        (ServiceKind::Ollama, "", ollama),
        (ServiceKind::Ollama, "/api", ollama),
        (ServiceKind::Ollama, "/behind/api/", "post /behind/api/chat http/1.1"),
    ] {
        let request = service_request(kind, path, &json!({"text": "x"})).await;
        assert_eq!(request.head.lines().next(), Some(line), "{path}");
        let key = match kind {
            ServiceKind::Anthropic => ("x-api-key", "sk-of-a-test"),
            ServiceKind::Gemini => ("x-goog-api-key", "sk-of-a-test"),
            _ => ("authorization", "bearer sk-of-a-test"),
        };
        assert_eq!(request.header(key.0), Some(key.1));
        if kind == ServiceKind::Anthropic {
            assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
        }
    }
    // The name of a model stays a single segment of the address.
    for (model, line) in [
        ("models/gemini-x", "post /v1beta/models/gemini-x:streamgeneratecontent?alt=sse http/1.1"),
        ("tunedModels/mine", "post /v1beta/tunedmodels/mine:streamgeneratecontent?alt=sse http/1.1"),
        (
            "../../x?key=1#",
            "post /v1beta/models/..%2f..%2fx%3fkey=1%23:streamgeneratecontent?alt=sse http/1.1",
        ),
    ] {
        let request = service_request(ServiceKind::Gemini, "", &json!({"text": "x", "model": model})).await;
        assert_eq!(request.head.lines().next(), Some(line));
    }
}

#[tokio::test]
async fn a_service_that_wants_a_model_is_not_asked_without_one() {
    for kind in OTHER_KINDS {
        let mock = MockServer::start(vec![recorded_script(kind, "text")]).await;
        let url = format!("{}=http://{}", kind.name(), mock.address);
        let tambour = TestServer::start(&mock, |config| drop(config.add_upstream(&url, None).unwrap())).await;
        let events = tambour.open_stream(&request_body()).await.read_checked().await;
        assert_eq!(
            (end_event(&events).0, &end_event(&events).1["code"]),
            ("error", &json!("upstream_refused"))
        );
        assert!(end_event(&events).1["message"].as_str().unwrap().contains("model"));
        assert_eq!(mock.calls().started, 0);
    }
}

/// A prompt with everything a prompt may have.
fn full_prompt() -> Value {
    json!([
        {"role": "system", "content": "Be brief."},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "Look.", "name": "Ann"},
        {"role": "user", "content": [
            {"type": "text", "text": "What is it?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        ]},
        {"role": "developer", "content": "Be kind."},
        {"role": "assistant", "content": "", "reasoning_content": "I look it up.", "tool_calls": [
            {"id": "a:1", "type": "function", "function": {"name": "look", "arguments": "{\"at\": 1}"}},
            {"id": "b", "type": "function", "function": {"name": "look", "arguments": ""}},
            {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{\"at\""}},
        ]},
        {"role": "tool", "content": "a cat", "tool_call_id": "a:1"},
        {"role": "tool", "content": "[1]", "tool_call_id": "b"},
        {"role": "tool", "content": "{\"error\": 1}", "tool_call_id": "c"},
        {"role": "user", "content": "So?"},
        {"role": "assistant", "content": "It is \n"},
    ])
}

fn sampled_request(messages: &Value) -> Value {
    json!({
        "messages": messages, "temperature": 0.5, "max_tokens": 77, "top_p": 0.9, "stop": "END", "seed": 3,
        "upstream_fields": {"frequency_penalty": 0.25, "presence_penalty": 0.5, "top_k": 40, "logprobs": true, "user": "u1"},
    })
}

#[tokio::test]
async fn anthropic_is_asked_in_its_form() {
    let body = service_request(ServiceKind::Anthropic, "", &sampled_request(&full_prompt())).await.body;
    assert_eq!(
        body,
        json!({
            "model": "gemini-2.5-of-tests", "max_tokens": 77, "system": "Be brief.\n\nBe kind.", "stream": true,
            "temperature": 0.5, "top_p": 0.9, "stop_sequences": ["END"], "top_k": 40,
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "."}]},
                {"role": "assistant", "content": [{"type": "text", "text": "Hello."}]},
                {"role": "user", "content": [
                    {"type": "text", "text": "Ann: Look."},
                    {"type": "text", "text": "What is it?"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
                ]},
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": "a_1", "name": "look", "input": {"at": 1}},
                    {"type": "tool_use", "id": "b", "name": "look", "input": {}},
                    {"type": "tool_use", "id": "c", "name": "look", "input": {"arguments": "{\"at\""}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "a_1", "content": "a cat"},
                    {"type": "tool_result", "tool_use_id": "b", "content": "[1]"},
                    {"type": "tool_result", "tool_use_id": "c", "content": "{\"error\": 1}"},
                    {"type": "text", "text": "So?"},
                ]},
                {"role": "assistant", "content": [{"type": "text", "text": "It is"}]},
            ],
        })
    );
    // Defaults: the service requires a number of tokens, and one given in the service's own field counts.
    let body = service_request(ServiceKind::Anthropic, "", &json!({"text": "x"})).await.body;
    assert_eq!((&body["max_tokens"], body.get("system"), body.get("tools")), (&json!(8192), None, None));
    let fields = json!({"max_tokens": 99, "thinking": {"type": "adaptive"}, "stream": false});
    let body = service_request(ServiceKind::Anthropic, "", &json!({"text": "x", "upstream_fields": fields}))
        .await
        .body;
    assert_eq!(
        (&body["max_tokens"], &body["thinking"]["type"], &body["stream"]),
        (&json!(99), &json!("adaptive"), &json!(true))
    );
    // A schema that services enforce, and one that leaves things open.
    for (strict, expected) in
        [(true, json!({"type": "json_schema", "schema": {"type": "object"}})), (false, Value::Null)]
    {
        let format = json!({"type": "json_schema", "json_schema": {"name": "x", "strict": strict, "schema": {"type": "object"}}});
        let body =
            service_request(ServiceKind::Anthropic, "", &json!({"text": "x", "response_format": format}))
                .await
                .body;
        assert_eq!(body["output_config"]["format"], expected);
    }
    // A prompt of system messages alone is sent all the same.
    let messages = json!([{"role": "system", "content": "Begin."}]);
    let body = service_request(ServiceKind::Anthropic, "", &json!({"messages": messages})).await.body;
    assert_eq!(body["messages"], json!([{"role": "user", "content": [{"type": "text", "text": "Begin."}]}]));
    assert_eq!(body.get("system"), None);
}

#[tokio::test]
async fn gemini_is_asked_in_its_form() {
    let body = service_request(ServiceKind::Gemini, "", &sampled_request(&full_prompt())).await.body;
    assert_eq!(
        body,
        json!({
            "contents": [
                {"role": "user", "parts": [{"text": "."}]},
                {"role": "model", "parts": [{"text": "Hello."}]},
                {"role": "user", "parts": [
                    {"text": "Ann: Look."}, {"text": "What is it?"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
                ]},
                {"role": "model", "parts": [
                    {"functionCall": {"name": "look", "args": {"at": 1}}},
                    {"functionCall": {"name": "look", "args": {}}},
                    {"functionCall": {"name": "look", "args": {"arguments": "{\"at\""}}},
                ]},
                {"role": "user", "parts": [
                    {"functionResponse": {"name": "look", "response": {"result": "a cat"}}},
                    {"functionResponse": {"name": "look", "response": {"result": [1]}}},
                    {"functionResponse": {"name": "look", "response": {"error": 1}}},
                    {"text": "So?"},
                ]},
                {"role": "model", "parts": [{"text": "It is \n"}]},
            ],
            "systemInstruction": {"parts": [{"text": "Be brief.\n\nBe kind."}]},
            "generationConfig": {
                "temperature": 0.5, "topP": 0.9, "topK": 40, "maxOutputTokens": 77, "stopSequences": ["END"], "seed": 3,
                "frequencyPenalty": 0.25, "presencePenalty": 0.5,
            },
        })
    );
    // Newer models refuse calls without a signature.
    let mut request = sampled_request(&full_prompt());
    request["model"] = "gemini-3.8-flash".into();
    let body = service_request(ServiceKind::Gemini, "", &request).await.body;
    let calls = &body["contents"][3]["parts"];
    assert_eq!(calls[0]["thoughtSignature"], "skip_thought_signature_validator");
    assert_eq!(calls[1].get("thoughtSignature"), None);
    // Fields of the service within those that are sent, which they do not change.
    let fields = json!({"generationConfig": {"topP": 0.1, "thinkingConfig": {"includeThoughts": true}}, "safetySettings": []});
    let body = service_request(
        ServiceKind::Gemini,
        "",
        &json!({"text": "x", "top_p": 0.9, "upstream_fields": fields}),
    )
    .await
    .body;
    assert_eq!(body["generationConfig"], json!({"topP": 0.9, "thinkingConfig": {"includeThoughts": true}}));
    assert_eq!(body["safetySettings"], json!([]));
    // Schemas in the form of the service where they fit it, else as they are.
    let plain =
        json!({"type": "object", "properties": {"a": {"type": "string", "enum": ["x"]}}, "required": ["a"]});
    let mut full = plain.clone();
    full["additionalProperties"] = false.into();
    for (schema, name) in [(plain, "responseSchema"), (full, "responseJsonSchema")] {
        let format = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
        let body = service_request(ServiceKind::Gemini, "", &json!({"text": "x", "response_format": format}))
            .await
            .body;
        assert_eq!(body["generationConfig"], json!({"responseMimeType": "application/json", name: schema}));
    }
}

#[tokio::test]
async fn ollama_is_asked_in_its_form() {
    let body = service_request(ServiceKind::Ollama, "", &sampled_request(&full_prompt())).await.body;
    assert_eq!(
        body,
        json!({
            "model": "gemini-2.5-of-tests", "stream": true,
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "assistant", "content": "Hello."},
                {"role": "user", "content": "Ann: Look."},
                {"role": "user", "content": "What is it?", "images": ["AAAA"]},
                {"role": "system", "content": "Be kind."},
                {"role": "assistant", "content": "", "thinking": "I look it up.", "tool_calls": [
                    {"function": {"name": "look", "arguments": {"at": 1}}},
                    {"function": {"name": "look", "arguments": {}}},
                    {"function": {"name": "look", "arguments": {"arguments": "{\"at\""}}},
                ]},
                {"role": "tool", "content": "a cat", "tool_name": "look"},
                {"role": "tool", "content": "[1]", "tool_name": "look"},
                {"role": "tool", "content": "{\"error\": 1}", "tool_name": "look"},
                {"role": "user", "content": "So?"},
                {"role": "assistant", "content": "It is \n"},
            ],
            "options": {
                "temperature": 0.5, "top_p": 0.9, "top_k": 40, "num_predict": 77, "stop": ["END"], "seed": 3,
                "frequency_penalty": 0.25, "presence_penalty": 0.5,
            },
        })
    );
    let schema = json!({"type": "object"});
    for (format, expected) in [
        (json!({"type": "json_object"}), json!("json")),
        (json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}), schema),
    ] {
        let request = json!({"text": "x", "response_format": format, "upstream_fields": {"think": true, "options": {"num_ctx": 9}}});
        let body = service_request(ServiceKind::Ollama, "", &request).await.body;
        assert_eq!(
            (&body["format"], &body["think"], &body["options"]),
            (&expected, &json!(true), &json!({"num_ctx": 9}))
        );
    }
}

#[tokio::test]
async fn what_a_client_makes_the_model_call_is_said_in_each_form() {
    let request = |choice: Value| {
        json!({
            "model": "m", "messages": [{"role": "user", "content": "x"}], "tool_choice": choice, "parallel_tool_calls": false,
            "tools": [{"type": "function", "function": {"name": "look", "description": "Looks.", "parameters":
                {"type": "object", "properties": {"at": {"type": "integer"}}}}}],
        })
    };
    let named_choice = json!({"type": "function", "function": {"name": "look"}});
    for (kind, choice, pointer, expected) in [
        (
            ServiceKind::Anthropic,
            json!("auto"),
            "/tool_choice",
            json!({"type": "auto", "disable_parallel_tool_use": true}),
        ),
        (
            ServiceKind::Anthropic,
            json!("required"),
            "/tool_choice",
            json!({"type": "any", "disable_parallel_tool_use": true}),
        ),
        (
            ServiceKind::Anthropic,
            named_choice.clone(),
            "/tool_choice",
            json!({"type": "tool", "name": "look", "disable_parallel_tool_use": true}),
        ),
        (
            ServiceKind::Gemini,
            json!("required"),
            "/toolConfig",
            json!({"functionCallingConfig": {"mode": "ANY"}}),
        ),
        (
            ServiceKind::Gemini,
            named_choice,
            "/toolConfig",
            json!({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look"]}}),
        ),
        (
            ServiceKind::Gemini,
            json!("auto"),
            "/tools",
            json!([{"functionDeclarations": [{"name": "look", "description": "Looks.", "parameters":
                {"type": "object", "properties": {"at": {"type": "integer"}}}}]}]),
        ),
    ] {
        let mock = MockServer::start(vec![recorded_script(kind, "text")]).await;
        let tambour = server_of_kind(kind, &mock, "").await;
        let mut request = request(choice);
        request["model"] = kind.name().into();
        let answer = tambour.post("/v1/chat/completions", &request).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(answer.json["usage"]["completion_tokens"], 9);
        let body = &mock.requests()[0].body;
        assert_eq!(body.pointer(pointer), Some(&expected), "{body}");
        assert_eq!(body.get("parallel_tool_calls"), None);
    }
}

#[tokio::test]
async fn what_a_kind_cannot_be_sent_is_told() {
    let part = json!({"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}});
    let remote_image = json!({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}});
    for (kind, part, expected_text) in [
        (ServiceKind::Gemini, &part, "input_audio"),
        (ServiceKind::Ollama, &part, "input_audio"),
        (ServiceKind::Ollama, &remote_image, "data:"),
    ] {
        let mock = MockServer::start(vec![recorded_script(kind, "text")]).await;
        let tambour = server_of_kind(kind, &mock, "").await;
        let mut request = request_body();
        request.as_object_mut().unwrap().remove("text");
        request["messages"] = json!([{"role": "user", "content": [part]}]);
        let events = tambour.open_stream(&request).await.read_checked().await;
        assert_eq!(end_event(&events).1["code"], "upstream_refused");
        assert!(
            end_event(&events).1["message"].as_str().unwrap().contains(expected_text),
            "{:?}",
            end_event(&events)
        );
        assert_eq!(mock.calls().started, 0);
    }
    let expected_text = json!({"messages": [{"role": "user", "content": [remote_image, {"type": "document", "source": {}}]}]});
    let body = service_request(ServiceKind::Anthropic, "", &expected_text).await.body;
    assert_eq!(
        body["messages"][0]["content"],
        json!([
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
            {"type": "document", "source": {}},
        ])
    );
}

#[tokio::test]
async fn results_are_of_the_call_before_them() {
    // A service that gives no ids gets the same ones in each round.
    let call = |name: &str| {
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": name, "arguments": "{}"}},
        ]})
    };
    let result = |text: &str| json!({"role": "tool", "content": text, "tool_call_id": "call_1"});
    let messages = json!([
        {"role": "user", "content": "Go."}, call("look"), result("a cat"), call("count"), result("1"),
    ]);
    let body = service_request(ServiceKind::Gemini, "", &json!({ "messages": messages })).await.body;
    let name = |at: usize| body["contents"][at]["parts"][0]["functionResponse"]["name"].clone();
    assert_eq!((name(2), name(4)), (json!("look"), json!("count")), "{body}");
    let body = service_request(ServiceKind::Ollama, "", &json!({ "messages": messages })).await.body;
    let name = |at: usize| body["messages"][at]["tool_name"].clone();
    assert_eq!((name(2), name(4)), (json!("look"), json!("count")), "{body}");
}
