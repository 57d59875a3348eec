//! OpenTelemetry export: the spans of messages, of the models and tools they call, and of dialogues.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use prost::Message;
use serde_json::{Value, json};
use tambour_server::Config;
use tokio::net::TcpListener;

use crate::client::{EventStream, event_names};
use crate::mock::{Gate, MockServer, Step, delta_step, reply_script, response_script};
use crate::server::{Folder, TestServer, test_config, with_timeout};
use crate::tool_kit::{ToolKit, answer_reply, plan_reply, tool_request, webhook_answer};

/// A sampled context of a caller.
const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const TRACE_ID: &str = "0af7651916cd43dd8448eb211c80319c";

/// An exported span.
#[derive(Clone, Debug)]
struct Span {
    name: String,
    kind: i32,
    trace: String,
    id: String,
    parent: String,
    attributes: BTreeMap<String, Value>,
    /// Status code; 2 is a failure.
    status: i32,
    times: (u64, u64),
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn value_as_json(value: Option<AnyValue>) -> Value {
    match value.and_then(|value| value.value) {
        Some(any_value::Value::StringValue(text)) => text.into(),
        Some(any_value::Value::IntValue(number)) => number.into(),
        Some(any_value::Value::DoubleValue(number)) => number.into(),
        Some(any_value::Value::BoolValue(flag)) => flag.into(),
        Some(any_value::Value::ArrayValue(list)) => {
            list.values.into_iter().map(|item| self::value_as_json(Some(item))).collect()
        }
        _ => Value::Null,
    }
}

fn attribute_map(key_values: Vec<KeyValue>) -> BTreeMap<String, Value> {
    key_values.into_iter().map(|key_value| (key_value.key, value_as_json(key_value.value))).collect()
}

fn owned_headers(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A collector of traces.
async fn collector() -> MockServer {
    MockServer::start(vec![response_script(200, "application/x-protobuf", "")]).await
}

fn tracing_config(collector: &MockServer) -> impl Fn(&mut Config) + use<> {
    let endpoint = format!("http://{}/", collector.address);
    move |config| config.telemetry.otlp_endpoint = Some(endpoint.clone())
}

/// All exported spans, in the order of their beginnings.
fn exported_spans(collector: &MockServer) -> Vec<Span> {
    let mut all_spans = Vec::new();
    for request in collector.requests() {
        assert!(request.head.starts_with("post /v1/traces http/1.1"), "{}", request.head);
        assert_eq!(request.header("content-type"), Some("application/x-protobuf"));
        let export = ExportTraceServiceRequest::decode(&*request.bytes).unwrap();
        for resource_spans in export.resource_spans {
            let resource = attribute_map(resource_spans.resource.unwrap().attributes);
            assert_eq!(resource["service.name"], "tambour");
            for span in resource_spans.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                all_spans.push(Span {
                    name: span.name,
                    kind: span.kind,
                    trace: hex(&span.trace_id),
                    id: hex(&span.span_id),
                    parent: hex(&span.parent_span_id),
                    attributes: attribute_map(span.attributes),
                    status: span.status.unwrap_or_default().code,
                    times: (span.start_time_unix_nano, span.end_time_unix_nano),
                });
            }
        }
    }
    all_spans.sort_by_key(|span| span.times);
    all_spans
}

fn spans_named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

/// Returns whether a text is anywhere in what was sent.
fn was_exported(collector: &MockServer, text: &str) -> bool {
    collector
        .requests()
        .iter()
        .any(|request| request.bytes.windows(text.len()).any(|part| part == text.as_bytes()))
}

/// A message that calls two tools, with a `traceparent`, under this configuration.
async fn run_with_tools(collector: &MockServer, change: impl FnOnce(&mut Config)) -> ToolKit {
    let replies =
        [plan_reply(&[("lint", "secret argument"), ("edit", "other")]), answer_reply("secret reply")];
    let replies = replies.iter().map(|text| reply_script(text, 7)).collect();
    let answers =
        vec![webhook_answer(&json!({"faults": "secret result"})), response_script(500, "text/plain", "no")];
    let config_change = tracing_config(collector);
    let kit = ToolKit::new_with(replies, answers, |config| {
        config_change(config);
        change(config);
    })
    .await;
    let body = tool_request(
        &json!({"text": "secret prompt", "stream": true, "temperature": 0.5, "max_tokens": 90, "seed": 7}),
    );
    let headers = owned_headers(&[("traceparent", TRACEPARENT), ("tracestate", "vendor=1")]);
    let path = "/api/v1/messages";
    let stream = EventStream::open(kit.server.address, "POST", path, &headers, Some(&body.to_string())).await;
    assert_eq!(event_names(&stream.read_checked().await).last(), Some(&"completed"));
    kit
}

#[tokio::test]
async fn a_message_is_a_trace_with_its_models_and_tools() {
    let collector = collector().await;
    let ToolKit { model, webhook, server } = run_with_tools(&collector, |_| {}).await;
    server.stop().await;
    let all_spans = exported_spans(&collector);
    let names: Vec<&str> = all_spans.iter().map(|span| &*span.name).collect();
    assert_eq!(names, ["message", "chat a-model", "execute_tool lint", "execute_tool edit", "chat a-model"]);
    let message = &all_spans[0];
    assert_eq!((&*message.trace, &*message.parent), (TRACE_ID, "b7ad6b7169203331"));
    assert_eq!(message.kind, 2);
    assert!(message.attributes["tambour.message.id"].as_str().unwrap().starts_with("msg_"));
    assert!(message.attributes["gen_ai.conversation.id"].as_str().unwrap().starts_with("conv_"));
    assert_eq!(message.attributes["tambour.dialect"], "aiplan");
    assert_eq!(message.attributes["tambour.outcome"], "completed");
    assert_eq!(message.status, 0);
    for span in &all_spans {
        assert!(span.times.0 >= message.times.0 && span.times.1 <= message.times.1, "{span:?}");
    }
    for (span, request) in [&all_spans[1], &all_spans[4]].into_iter().zip(model.requests()) {
        assert_eq!((&span.trace, &span.parent, span.kind), (&message.trace, &message.id, 3));
        let assert_attribute = |name: &str, value: Value| assert_eq!(span.attributes[name], value, "{name}");
        assert_attribute("gen_ai.operation.name", json!("chat"));
        assert_attribute("gen_ai.provider.name", json!("openai"));
        assert_attribute("gen_ai.request.model", json!("a-model"));
        assert_attribute("gen_ai.request.temperature", json!(0.5));
        assert_attribute("gen_ai.request.max_tokens", json!(90));
        assert_attribute("gen_ai.request.seed", json!(7));
        assert_attribute("server.address", json!("127.0.0.1"));
        assert_attribute("server.port", json!(model.address.port()));
        assert_attribute("gen_ai.usage.input_tokens", json!(7));
        assert_attribute("gen_ai.usage.output_tokens", json!(5));
        assert_attribute("gen_ai.response.finish_reasons", json!(["stop"]));
        assert_attribute("tambour.outcome", json!("completed"));
        let first_chunk = span.attributes["gen_ai.response.time_to_first_chunk"].as_f64().unwrap();
        assert!(first_chunk > 0.0 && first_chunk * 1e9 <= (span.times.1 - span.times.0) as f64);
        // Spans of the model itself belong to this one.
        let expected = format!("00-{TRACE_ID}-{}-01", span.id);
        assert_eq!(request.header("traceparent"), Some(&*expected));
        assert_eq!(request.header("tracestate"), Some("vendor=1"));
    }
    let tools = [(&all_spans[2], "lint", 0, None), (&all_spans[3], "edit", 2, Some("http_status"))];
    for ((span, name, status, error), request) in tools.into_iter().zip(webhook.requests()) {
        assert_eq!((&span.trace, &span.parent, span.kind), (&message.trace, &message.id, 1));
        assert_eq!(span.attributes["gen_ai.operation.name"], "execute_tool");
        assert_eq!(span.attributes["gen_ai.tool.name"], name);
        assert_eq!(span.attributes["gen_ai.tool.type"], "extension");
        assert_eq!(span.attributes["gen_ai.tool.call.id"], request.body["call_id"]);
        assert_eq!(span.status, status);
        assert_eq!(span.attributes.get("error.type").and_then(Value::as_str), error, "{span:?}");
        let expected = format!("00-{TRACE_ID}-{}-01", span.id);
        assert_eq!(request.header("traceparent"), Some(&*expected));
    }
    // Neither texts nor secrets.
    assert!(!was_exported(&collector, "secret"));
}

#[tokio::test]
async fn texts_are_traced_only_where_that_is_wanted() {
    let collector = collector().await;
    let kit = run_with_tools(&collector, |config| config.telemetry.content = true).await;
    kit.server.stop().await;
    let all_spans = exported_spans(&collector);
    let json = |span: &Span, name: &str| -> Value {
        serde_json::from_str(span.attributes[name].as_str().unwrap()).unwrap()
    };
    let [first, second] = spans_named(&all_spans, "chat a-model")[..] else { panic!("{all_spans:#?}") };
    let input = json(first, "gen_ai.input.messages");
    let user = input.as_array().unwrap().last().unwrap();
    assert_eq!(user, &json!({"role": "user", "parts": [{"type": "text", "content": "secret prompt"}]}));
    let output = json(second, "gen_ai.output.messages");
    assert_eq!((&output[0]["role"], &output[0]["finish_reason"]), (&json!("assistant"), &json!("stop")));
    assert!(output[0]["parts"][0]["content"].as_str().unwrap().contains("secret reply"));
    let tool = spans_named(&all_spans, "execute_tool lint")[0];
    assert_eq!(json(tool, "gen_ai.tool.call.arguments"), json!({"userInput": "secret argument"}));
    assert_eq!(json(tool, "gen_ai.tool.call.result"), json!({"faults": "secret result"}));
}

#[tokio::test]
async fn what_fails_is_traced_with_its_code() {
    let collector = collector().await;
    let busy = || vec![Step::Head(503, vec![]), Step::End];
    let cut_reply = vec![delta_step("Fo"), Step::Cut];
    let mock = MockServer::start(vec![
        busy(),
        busy(),
        reply_script("Four.", 2),
        cut_reply,
        vec![delta_step("Fo"), Step::WaitDisconnect],
    ])
    .await;
    let server = TestServer::start(&mock, tracing_config(&collector)).await;
    let request = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
    server.open_stream(&request).await.read_checked().await;
    server.open_stream(&request).await.read_checked().await;
    let mut stopped_stream = server.open_stream(&request).await;
    let events = stopped_stream.read_until("final_delta").await;
    let path = format!("/api/v1/messages/{}/cancel", crate::client::stream_message_id(&events));
    server.call("post", &path, None).await;
    stopped_stream.read_rest().await;
    server.stop().await;
    let all_spans = exported_spans(&collector);
    let outcomes = |name: &str| -> Vec<(Value, Value, i32)> {
        let get = |span: &Span, name: &str| span.attributes.get(name).cloned().unwrap_or_default();
        let outcomes = |span: &&Span| (get(span, "tambour.outcome"), get(span, "error.type"), span.status);
        spans_named(&all_spans, name).iter().map(outcomes).collect()
    };
    let (success, closed) = (|outcome: &str| (json!(outcome), Value::Null, 0), json!("upstream_closed"));
    assert_eq!(
        outcomes("chat a-model"),
        [success("completed"), (json!("failed"), closed.clone(), 2), success("dropped")]
    );
    assert_eq!(spans_named(&all_spans, "chat a-model")[0].attributes["tambour.retries"], 2);
    assert_eq!(
        outcomes("message"),
        [success("completed"), (json!("failed"), closed, 2), success("cancelled")]
    );
    // Each has a trace of its own.
    let traces: std::collections::BTreeSet<&String> = all_spans.iter().map(|span| &span.trace).collect();
    assert_eq!(traces.len(), 3);
}

#[tokio::test]
async fn a_reply_that_ends_without_a_reason_is_traced_as_completed() {
    let collector = collector().await;
    let mock = MockServer::start(vec![vec![delta_step("Fo"), Step::End]]).await;
    let server = TestServer::start(&mock, tracing_config(&collector)).await;
    let request = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
    server.open_stream(&request).await.read_checked().await;
    server.stop().await;
    let all_spans = exported_spans(&collector);
    let [chat] = spans_named(&all_spans, "chat a-model")[..] else { panic!("{all_spans:#?}") };
    assert_eq!((&chat.attributes["tambour.outcome"], chat.status), (&json!("completed"), 0));
    assert_eq!(chat.attributes.get("gen_ai.response.finish_reasons"), None);
}

#[tokio::test]
async fn nothing_is_traced_or_handed_on_unless_it_is_configured() {
    let mock = MockServer::start(vec![reply_script("Four.", 2)]).await;
    let server = TestServer::start_default(&mock).await;
    let body =
        json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1", "stream": true}).to_string();
    let path = "/api/v1/messages";
    EventStream::open(
        server.address,
        "POST",
        path,
        &owned_headers(&[("traceparent", TRACEPARENT)]),
        Some(&body),
    )
    .await
    .read_checked()
    .await;
    assert_eq!(mock.requests()[0].header("traceparent"), None);
}

#[tokio::test]
async fn the_sample_decides_unless_the_caller_has() {
    let collector = collector().await;
    let mock = MockServer::start(vec![reply_script("Four.", 2)]).await;
    let config_change = tracing_config(&collector);
    let server = TestServer::start(&mock, |config| {
        config_change(config);
        config.telemetry.sample_ratio = 0.0;
    })
    .await;
    let body =
        json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1", "stream": true}).to_string();
    let unsampled = format!("{}00", TRACEPARENT.strip_suffix("01").unwrap());
    // An invalid header counts as none.
    let broken = "00-nothing-nothing-01";
    let path = "/api/v1/messages";
    for traceparent in [
        &[][..],
        &[("traceparent", &*unsampled)],
        &[("traceparent", broken)],
        &[("traceparent", TRACEPARENT)],
    ] {
        EventStream::open(server.address, "POST", path, &owned_headers(traceparent), Some(&body))
            .await
            .read_checked()
            .await;
    }
    server.stop().await;
    let all_spans = exported_spans(&collector);
    assert_eq!(all_spans.iter().map(|span| &*span.name).collect::<Vec<_>>(), ["message", "chat a-model"]);
    assert!(all_spans.iter().all(|span| span.trace == TRACE_ID));
    // The model gets the sampling decision.
    let flags: Vec<String> = mock
        .requests()
        .iter()
        .map(|request| {
            let header = request.header("traceparent").unwrap();
            header.rsplit_once('-').unwrap().1.to_owned()
        })
        .collect();
    assert_eq!(flags, ["00", "00", "00", "01"]);
}

#[tokio::test]
async fn a_turn_of_a_dialogue_is_a_trace() {
    let collector = collector().await;
    let mock =
        MockServer::start(vec![reply_script(&crate::dialogues::round_answer(30, false, "一"), 7)]).await;
    let server = TestServer::start(&mock, tracing_config(&collector)).await;
    let yaml = crate::dialogues::script_of_actions(&["{type: ai_say, content: \"Hi\", max_rounds: 3}"]);
    let script = server.post("/api/v1/scripts", &json!({"name": "s", "yaml": yaml})).await.json;
    let dialogue = server.post("/api/v1/dialogues", &json!({"script_id": script["script_id"]})).await.json;
    let id = dialogue["dialogue_id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/dialogues/{id}/input");
    let turn = server.call_with("post", &path, Some("{}"), &[("traceparent", TRACEPARENT)]).await;
    assert_eq!(turn.status, 200, "{}", turn.text);
    server.stop().await;
    let all_spans = exported_spans(&collector);
    assert_eq!(
        all_spans.iter().map(|span| &*span.name).collect::<Vec<_>>(),
        ["dialogue turn", "chat a-model"]
    );
    assert_eq!(all_spans[0].attributes["gen_ai.conversation.id"], id);
    assert_eq!((&*all_spans[0].trace, &*all_spans[0].parent), (TRACE_ID, "b7ad6b7169203331"));
    assert_eq!(all_spans[1].parent, all_spans[0].id);
    assert_eq!(all_spans[0].attributes["tambour.outcome"], "completed");
}

/// Messages do not depend on the export of their traces.
#[tokio::test]
async fn a_collector_that_is_down_or_silent_holds_nothing_up() {
    let silent = MockServer::start(vec![vec![Step::Wait(Gate::new())]]).await;
    let closed_address = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let refusing_collector = MockServer::start(vec![response_script(400, "text/plain", "no")]).await;
    for address in [silent.address, closed_address, refusing_collector.address] {
        let mock = MockServer::start(vec![reply_script("Four.", 2)]).await;
        let server = TestServer::start(&mock, |config| {
            config.telemetry.otlp_endpoint = Some(format!("http://{address}"));
        })
        .await;
        let request = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
        for _ in 0..3 {
            assert_eq!(
                event_names(&server.open_stream(&request).await.read_checked().await).last(),
                Some(&"completed")
            );
        }
        with_timeout(server.stop()).await;
    }
}

#[tokio::test]
async fn an_endpoint_that_is_none_is_refused_with_its_place() {
    let folder = Folder::new();
    for (endpoint, expected_text) in [
        ("otlp_endpoint = \"localhost:4318\"", "it takes the base URL of a collector"),
        ("otlp_endpoint = \"http://127.0.0.1:4318/v1/traces\"", "leave out `/v1/traces`"),
        ("otlp_endpoint = \"http://u:pass@127.0.0.1:4318/?token=abc\"", "with a query"),
        ("sample_ratio = 1.5", "must be 0 to 1, not 1.5"),
        ("sample_ratio = nan", "must be 0 to 1, not NaN"),
        ("service_name = \" \"", "is empty"),
    ] {
        let file = folder.write_file("tambour.toml", &format!("[telemetry]\n{endpoint}\n"));
        let mut loaded_config = Config::load(Some(&file), std::iter::empty()).unwrap();
        let place = test_config(&folder);
        (loaded_config.listen, loaded_config.data) = (place.listen, place.data);
        let Err(error) = tambour_server::Server::start(loaded_config).await else {
            panic!("{endpoint} is taken")
        };
        let error = error.to_string();
        let field = endpoint.split_once(' ').unwrap().0;
        assert!(
            error.contains("tambour.toml:2") && error.contains(&format!("`telemetry.{field}`")),
            "{error}"
        );
        assert!(
            error.contains(expected_text) && !error.contains("pass") && !error.contains("abc"),
            "{error}"
        );
    }
    // By variable, too.
    let variables =
        [("TAMBOUR_TELEMETRY_SAMPLE_RATIO", "0.25"), ("TAMBOUR_TELEMETRY_OTLP_ENDPOINT", "http://c:4318")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let file = folder.write_file("tambour.toml", "");
    let loaded_config = Config::load(Some(&file), variables.into_iter()).unwrap();
    assert_eq!(loaded_config.telemetry.sample_ratio, 0.25);
    assert_eq!(loaded_config.telemetry.otlp_endpoint.as_deref(), Some("http://c:4318"));
}
