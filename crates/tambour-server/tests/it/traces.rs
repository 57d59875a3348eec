//! OpenTelemetry export: the spans of messages, of the models and tools they call, and of dialogues.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use prost::Message;
use serde_json::{Value, json};
use tambour_server::Config;
use tokio::net::TcpListener;

use crate::client::{Stream, names};
use crate::mock::{Gate, Mock, Step, delta, reply, whole};
use crate::server::{Folder, Tambour, config, within};
use crate::tool_kit::{Kit, answer, ask, gives, plan};

/// A sampled context of a caller.
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

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

fn value(value: Option<AnyValue>) -> Value {
    match value.and_then(|value| value.value) {
        Some(any_value::Value::StringValue(text)) => text.into(),
        Some(any_value::Value::IntValue(number)) => number.into(),
        Some(any_value::Value::DoubleValue(number)) => number.into(),
        Some(any_value::Value::BoolValue(truth)) => truth.into(),
        Some(any_value::Value::ArrayValue(list)) => {
            list.values.into_iter().map(|one| self::value(Some(one))).collect()
        }
        _ => Value::Null,
    }
}

fn attributes(all: Vec<KeyValue>) -> BTreeMap<String, Value> {
    all.into_iter().map(|one| (one.key, value(one.value))).collect()
}

fn headers(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A collector of traces.
async fn collector() -> Mock {
    Mock::start(vec![whole(200, "application/x-protobuf", "")]).await
}

fn traced(collector: &Mock) -> impl Fn(&mut Config) + use<> {
    let endpoint = format!("http://{}/", collector.address);
    move |config| config.telemetry.otlp_endpoint = Some(endpoint.clone())
}

/// All exported spans, in the order of their beginnings.
fn spans(collector: &Mock) -> Vec<Span> {
    let mut all = Vec::new();
    for asked in collector.asked() {
        assert!(asked.head.starts_with("post /v1/traces http/1.1"), "{}", asked.head);
        assert_eq!(asked.header("content-type"), Some("application/x-protobuf"));
        let sent = ExportTraceServiceRequest::decode(&*asked.bytes).unwrap();
        for of in sent.resource_spans {
            let resource = attributes(of.resource.unwrap().attributes);
            assert_eq!(resource["service.name"], "tambour");
            for span in of.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                all.push(Span {
                    name: span.name,
                    kind: span.kind,
                    trace: hex(&span.trace_id),
                    id: hex(&span.span_id),
                    parent: hex(&span.parent_span_id),
                    attributes: attributes(span.attributes),
                    status: span.status.unwrap_or_default().code,
                    times: (span.start_time_unix_nano, span.end_time_unix_nano),
                });
            }
        }
    }
    all.sort_by_key(|span| span.times);
    all
}

fn named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

/// Returns true if a text occurs anywhere in the export.
fn sent(collector: &Mock, text: &str) -> bool {
    collector.asked().iter().any(|asked| asked.bytes.windows(text.len()).any(|part| part == text.as_bytes()))
}

/// A message that calls two tools, with a `traceparent`, under this configuration.
async fn with_tools(collector: &Mock, more: impl FnOnce(&mut Config)) -> Kit {
    let replies = [plan(&[("lint", "secret argument"), ("edit", "other")]), answer("secret reply")];
    let replies = replies.iter().map(|text| reply(text, 7)).collect();
    let answers = vec![gives(&json!({"faults": "secret result"})), whole(500, "text/plain", "no")];
    let traced = traced(collector);
    let kit = Kit::with(replies, answers, |config| {
        traced(config);
        more(config);
    })
    .await;
    let body = ask(
        &json!({"text": "secret prompt", "stream": true, "temperature": 0.5, "max_tokens": 90, "seed": 7}),
    );
    let headers = headers(&[("traceparent", PARENT), ("tracestate", "vendor=1")]);
    let path = "/api/v1/messages";
    let stream = Stream::open(kit.server.address, "POST", path, &headers, Some(&body.to_string())).await;
    assert_eq!(names(&stream.whole().await).last(), Some(&"completed"));
    kit
}

#[tokio::test]
async fn a_message_is_a_trace_with_its_models_and_tools() {
    let collector = collector().await;
    let Kit { model, hook, server } = with_tools(&collector, |_| {}).await;
    server.stopped().await;
    let all = spans(&collector);
    let names: Vec<&str> = all.iter().map(|span| &*span.name).collect();
    assert_eq!(names, ["message", "chat a-model", "execute_tool lint", "execute_tool edit", "chat a-model"]);
    let message = &all[0];
    assert_eq!((&*message.trace, &*message.parent), (TRACE, "b7ad6b7169203331"));
    assert_eq!(message.kind, 2);
    assert!(message.attributes["tambour.message.id"].as_str().unwrap().starts_with("msg_"));
    assert!(message.attributes["gen_ai.conversation.id"].as_str().unwrap().starts_with("conv_"));
    assert_eq!(message.attributes["tambour.dialect"], "aiplan");
    assert_eq!(message.attributes["tambour.outcome"], "completed");
    assert_eq!(message.status, 0);
    for span in &all {
        assert!(span.times.0 >= message.times.0 && span.times.1 <= message.times.1, "{span:?}");
    }
    for (span, call) in [&all[1], &all[4]].into_iter().zip(model.asked()) {
        assert_eq!((&span.trace, &span.parent, span.kind), (&message.trace, &message.id, 3));
        let is = |name: &str, value: Value| assert_eq!(span.attributes[name], value, "{name}");
        is("gen_ai.operation.name", json!("chat"));
        is("gen_ai.provider.name", json!("openai"));
        is("gen_ai.request.model", json!("a-model"));
        is("gen_ai.request.temperature", json!(0.5));
        is("gen_ai.request.max_tokens", json!(90));
        is("gen_ai.request.seed", json!(7));
        is("server.address", json!("127.0.0.1"));
        is("server.port", json!(model.address.port()));
        is("gen_ai.usage.input_tokens", json!(7));
        is("gen_ai.usage.output_tokens", json!(5));
        is("gen_ai.response.finish_reasons", json!(["stop"]));
        is("tambour.outcome", json!("completed"));
        let first = span.attributes["gen_ai.response.time_to_first_chunk"].as_f64().unwrap();
        assert!(first > 0.0 && first * 1e9 <= (span.times.1 - span.times.0) as f64);
        // Spans of the model itself belong to this one.
        let wanted = format!("00-{TRACE}-{}-01", span.id);
        assert_eq!(call.header("traceparent"), Some(&*wanted));
        assert_eq!(call.header("tracestate"), Some("vendor=1"));
    }
    let tools = [(&all[2], "lint", 0, None), (&all[3], "edit", 2, Some("http_status"))];
    for ((span, name, status, error), call) in tools.into_iter().zip(hook.asked()) {
        assert_eq!((&span.trace, &span.parent, span.kind), (&message.trace, &message.id, 1));
        assert_eq!(span.attributes["gen_ai.operation.name"], "execute_tool");
        assert_eq!(span.attributes["gen_ai.tool.name"], name);
        assert_eq!(span.attributes["gen_ai.tool.type"], "extension");
        assert_eq!(span.attributes["gen_ai.tool.call.id"], call.body["call_id"]);
        assert_eq!(span.status, status);
        assert_eq!(span.attributes.get("error.type").and_then(Value::as_str), error, "{span:?}");
        let wanted = format!("00-{TRACE}-{}-01", span.id);
        assert_eq!(call.header("traceparent"), Some(&*wanted));
    }
    // Neither texts nor secrets.
    assert!(!sent(&collector, "secret"));
}

#[tokio::test]
async fn texts_are_traced_only_where_that_is_wanted() {
    let collector = collector().await;
    let kit = with_tools(&collector, |config| config.telemetry.content = true).await;
    kit.server.stopped().await;
    let all = spans(&collector);
    let json = |span: &Span, name: &str| -> Value {
        serde_json::from_str(span.attributes[name].as_str().unwrap()).unwrap()
    };
    let [first, second] = named(&all, "chat a-model")[..] else { panic!("{all:#?}") };
    let asked = json(first, "gen_ai.input.messages");
    let user = asked.as_array().unwrap().last().unwrap();
    assert_eq!(user, &json!({"role": "user", "parts": [{"type": "text", "content": "secret prompt"}]}));
    let said = json(second, "gen_ai.output.messages");
    assert_eq!((&said[0]["role"], &said[0]["finish_reason"]), (&json!("assistant"), &json!("stop")));
    assert!(said[0]["parts"][0]["content"].as_str().unwrap().contains("secret reply"));
    let tool = named(&all, "execute_tool lint")[0];
    assert_eq!(json(tool, "gen_ai.tool.call.arguments"), json!({"userInput": "secret argument"}));
    assert_eq!(json(tool, "gen_ai.tool.call.result"), json!({"faults": "secret result"}));
}

#[tokio::test]
async fn what_fails_is_traced_with_its_code() {
    let collector = collector().await;
    let busy = || vec![Step::Head(503, vec![]), Step::End];
    let cut = vec![delta("Fo"), Step::Cut];
    let mock =
        Mock::start(vec![busy(), busy(), reply("Four.", 2), cut, vec![delta("Fo"), Step::Stall]]).await;
    let server = Tambour::start(&mock, traced(&collector)).await;
    let ask = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
    server.stream(&ask).await.whole().await;
    server.stream(&ask).await.whole().await;
    let mut stopped = server.stream(&ask).await;
    let begun = stopped.until("final_delta").await;
    let path = format!("/api/v1/messages/{}/cancel", crate::client::message(&begun));
    server.call("post", &path, None).await;
    stopped.rest().await;
    server.stopped().await;
    let all = spans(&collector);
    let seen = |name: &str| -> Vec<(Value, Value, i32)> {
        let get = |span: &Span, name: &str| span.attributes.get(name).cloned().unwrap_or_default();
        let seen = |span: &&Span| (get(span, "tambour.outcome"), get(span, "error.type"), span.status);
        named(&all, name).iter().map(seen).collect()
    };
    let (good, none) = (|word: &str| (json!(word), Value::Null, 0), json!("upstream_closed"));
    assert_eq!(
        seen("chat a-model"),
        [good("completed"), (json!("failed"), none.clone(), 2), good("dropped")]
    );
    assert_eq!(named(&all, "chat a-model")[0].attributes["tambour.retries"], 2);
    assert_eq!(seen("message"), [good("completed"), (json!("failed"), none, 2), good("cancelled")]);
    // Each has a trace of its own.
    let traces: std::collections::BTreeSet<&String> = all.iter().map(|span| &span.trace).collect();
    assert_eq!(traces.len(), 3);
}

#[tokio::test]
async fn nothing_is_traced_or_handed_on_unless_it_is_configured() {
    let mock = Mock::start(vec![reply("Four.", 2)]).await;
    let server = Tambour::with(&mock).await;
    let body =
        json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1", "stream": true}).to_string();
    let path = "/api/v1/messages";
    Stream::open(server.address, "POST", path, &headers(&[("traceparent", PARENT)]), Some(&body))
        .await
        .whole()
        .await;
    assert_eq!(mock.asked()[0].header("traceparent"), None);
}

#[tokio::test]
async fn the_sample_decides_unless_the_caller_has() {
    let collector = collector().await;
    let mock = Mock::start(vec![reply("Four.", 2)]).await;
    let traced = traced(&collector);
    let server = Tambour::start(&mock, |config| {
        traced(config);
        config.telemetry.sample_ratio = 0.0;
    })
    .await;
    let body =
        json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1", "stream": true}).to_string();
    let unsampled = format!("{}00", PARENT.strip_suffix("01").unwrap());
    // An invalid header counts as none.
    let broken = "00-nothing-nothing-01";
    let path = "/api/v1/messages";
    for given in
        [&[][..], &[("traceparent", &*unsampled)], &[("traceparent", broken)], &[("traceparent", PARENT)]]
    {
        Stream::open(server.address, "POST", path, &headers(given), Some(&body)).await.whole().await;
    }
    server.stopped().await;
    let all = spans(&collector);
    assert_eq!(all.iter().map(|span| &*span.name).collect::<Vec<_>>(), ["message", "chat a-model"]);
    assert!(all.iter().all(|span| span.trace == TRACE));
    // The model gets the sampling decision.
    let flags: Vec<String> = mock
        .asked()
        .iter()
        .map(|asked| {
            let header = asked.header("traceparent").unwrap();
            header.rsplit_once('-').unwrap().1.to_owned()
        })
        .collect();
    assert_eq!(flags, ["00", "00", "00", "01"]);
}

#[tokio::test]
async fn a_turn_of_a_dialogue_is_a_trace() {
    let collector = collector().await;
    let mock = Mock::start(vec![reply(&crate::dialogues::answer(30, false, "一"), 7)]).await;
    let server = Tambour::start(&mock, traced(&collector)).await;
    let yaml = crate::dialogues::script(&["{type: ai_say, content: \"Hi\", max_rounds: 3}"]);
    let script = server.post("/api/v1/scripts", &json!({"name": "s", "yaml": yaml})).await.json;
    let dialogue = server.post("/api/v1/dialogues", &json!({"script_id": script["script_id"]})).await.json;
    let id = dialogue["dialogue_id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/dialogues/{id}/input");
    let turn = server.call_with("post", &path, Some("{}"), &[("traceparent", PARENT)]).await;
    assert_eq!(turn.status, 200, "{}", turn.text);
    server.stopped().await;
    let all = spans(&collector);
    assert_eq!(all.iter().map(|span| &*span.name).collect::<Vec<_>>(), ["dialogue turn", "chat a-model"]);
    assert_eq!(all[0].attributes["gen_ai.conversation.id"], id);
    assert_eq!((&*all[0].trace, &*all[0].parent), (TRACE, "b7ad6b7169203331"));
    assert_eq!(all[1].parent, all[0].id);
    assert_eq!(all[0].attributes["tambour.outcome"], "completed");
}

/// Messages do not depend on the export of their traces.
#[tokio::test]
async fn a_collector_that_is_down_or_silent_holds_nothing_up() {
    let silent = Mock::start(vec![vec![Step::Wait(Gate::new())]]).await;
    let gone = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let refusing = Mock::start(vec![whole(400, "text/plain", "no")]).await;
    for address in [silent.address, gone, refusing.address] {
        let mock = Mock::start(vec![reply("Four.", 2)]).await;
        let server = Tambour::start(&mock, |config| {
            config.telemetry.otlp_endpoint = Some(format!("http://{address}"));
        })
        .await;
        let ask = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
        for _ in 0..3 {
            assert_eq!(names(&server.stream(&ask).await.whole().await).last(), Some(&"completed"));
        }
        within(server.stopped()).await;
    }
}

#[tokio::test]
async fn an_endpoint_that_is_none_is_refused_with_its_place() {
    let folder = Folder::new();
    for (given, said) in [
        ("otlp_endpoint = \"localhost:4318\"", "it takes the base URL of a collector"),
        ("otlp_endpoint = \"http://127.0.0.1:4318/v1/traces\"", "`/v1/traces` is put behind it"),
        ("otlp_endpoint = \"http://u:pass@127.0.0.1:4318/?token=abc\"", "with a query"),
        ("sample_ratio = 1.5", "is 0 to 1, not 1.5"),
        ("sample_ratio = nan", "is 0 to 1, not NaN"),
        ("service_name = \" \"", "is empty"),
    ] {
        let file = folder.file("tambour.toml", &format!("[telemetry]\n{given}\n"));
        let mut loaded = Config::load(Some(&file), std::iter::empty()).unwrap();
        let place = config(&folder);
        (loaded.listen, loaded.data) = (place.listen, place.data);
        let Err(error) = tambour_server::Server::start(loaded).await else { panic!("{given} is taken") };
        let error = error.to_string();
        let field = given.split_once(' ').unwrap().0;
        assert!(
            error.contains("tambour.toml:2") && error.contains(&format!("`telemetry.{field}`")),
            "{error}"
        );
        assert!(error.contains(said) && !error.contains("pass") && !error.contains("abc"), "{error}");
    }
    // By variable, too.
    let named =
        [("TAMBOUR_TELEMETRY_SAMPLE_RATIO", "0.25"), ("TAMBOUR_TELEMETRY_OTLP_ENDPOINT", "http://c:4318")];
    let named = named.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let file = folder.file("tambour.toml", "");
    let loaded = Config::load(Some(&file), named.into_iter()).unwrap();
    assert_eq!(loaded.telemetry.sample_ratio, 0.25);
    assert_eq!(loaded.telemetry.otlp_endpoint.as_deref(), Some("http://c:4318"));
}
