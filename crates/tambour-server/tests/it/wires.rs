//! Recorded answers of each kind of service in its documented format, decoded under all cuts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tambour::InputEnd;
use tambour_fixtures::fixture::is_updating;
use tambour_fixtures::random::RandomSource;
use tambour_server::upstream::{CallExtras, NativeCall, ReplyItem, ResponseDecoder, ServiceKind};

/// A recorded answer.
struct RecordedAnswer {
    kind: ServiceKind,
    path: PathBuf,
    bytes: Vec<u8>,
}

/// The answers of all kinds: `<kind>/<case>.sse`, `.ndjson`, or `.json` for one that is no stream.
fn recorded_answers() -> Vec<RecordedAnswer> {
    let mut answers = Vec::new();
    for kind in ServiceKind::ALL {
        let folder = tambour_fixtures::fixtures_folder().join("upstream").join(kind.name());
        for extension in ["sse", "ndjson", "json"] {
            for path in tambour_fixtures::list_files(&folder, extension).unwrap() {
                if !path.to_string_lossy().ends_with(".items.json") {
                    answers.push(RecordedAnswer { kind, bytes: std::fs::read(&path).unwrap(), path });
                }
            }
        }
    }
    answers
}

/// Items decoded from an answer that is cut at these offsets.
fn decode_items(kind: ServiceKind, bytes: &[u8], cuts: &[usize]) -> Vec<ReplyItem> {
    let mut decoder = ResponseDecoder::new(kind, &Arc::from("msg"));
    let (mut items, mut from) = (Vec::new(), 0);
    for &at in cuts.iter().chain([&bytes.len()]) {
        decoder.push(&bytes[from..at], &mut items);
        from = at;
    }
    decoder.finish(&mut items);
    items
}

/// Items as JSON, adjacent texts joined.
fn items_as_json(items: Vec<ReplyItem>) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for item in items {
        let (name, value) = match item {
            ReplyItem::Text(text) => ("text", text.into()),
            ReplyItem::Reasoning(text) => ("reasoning", text.into()),
            ReplyItem::Call(call) => ("call", call_as_json(call)),
            ReplyItem::Usage(usage) => ("usage", usage),
            ReplyItem::End(InputEnd::Finished(reason)) => ("end", json!(reason)),
            ReplyItem::End(InputEnd::Failed(failure)) => ("end", json!(failure)),
            ReplyItem::End(_) => ("end", "unknown".into()),
        };
        match all.last_mut().and_then(|last| last.get_mut(name)) {
            Some(Value::String(before)) if name != "end" => before.push_str(value.as_str().unwrap()),
            _ => all.push(json!({ name: value })),
        }
    }
    all
}

fn call_as_json(NativeCall { id, function, extras, .. }: NativeCall) -> Value {
    let mut call = json!({"id": id, "name": function.name, "arguments": function.arguments});
    match extras {
        None => {}
        Some(CallExtras::Anthropic(blocks)) => call["kept"] = blocks.into(),
        Some(CallExtras::Gemini { signature, has_service_id }) => {
            call["kept"] = json!({"signature": signature, "named": has_service_id});
        }
    }
    call
}

fn expectation_file(path: &Path) -> PathBuf {
    path.with_extension("items.json")
}

#[test]
fn answers_give_what_they_say() {
    let answers = recorded_answers();
    for kind in ServiceKind::ALL {
        assert!(answers.iter().filter(|answer| answer.kind == kind).count() >= 5, "{}", kind.name());
    }
    let mut complaints = Vec::new();
    for RecordedAnswer { kind, path, bytes } in answers {
        let items = Value::Array(items_as_json(decode_items(kind, &bytes, &[])));
        let expected = expectation_file(&path);
        if is_updating() {
            let lines: Vec<String> =
                items.as_array().unwrap().iter().map(|item| format!("  {item}")).collect();
            std::fs::write(expected, format!("[\n{}\n]\n", lines.join(",\n"))).unwrap();
            continue;
        }
        let expected_items: Value = match std::fs::read_to_string(&expected) {
            Ok(text) => serde_json::from_str(&text).unwrap(),
            Err(error) => panic!("{}: {error} (UPDATE_FIXTURES=1 writes it)", expected.display()),
        };
        if items != expected_items {
            complaints.push(format!("{}:\n{items:#}\ninstead of\n{expected_items:#}", path.display()));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
}

#[test]
fn answers_read_the_same_under_every_cutting() {
    for RecordedAnswer { kind, path, bytes } in recorded_answers() {
        let whole = items_as_json(decode_items(kind, &bytes, &[]));
        let assert_same = |cuts: &[usize]| {
            assert_eq!(
                items_as_json(decode_items(kind, &bytes, cuts)),
                whole,
                "{} cut at {cuts:?}",
                path.display()
            ); // J-038
        };
        assert_same(&(1..bytes.len()).collect::<Vec<_>>());
        (1..bytes.len()).for_each(|at| assert_same(&[at]));
        let mut random = RandomSource::new(bytes.len() as u64);
        (0..32).for_each(|_| assert_same(&random.random_cuts(bytes.len())));
    }
}

#[test]
fn kinds_say_the_same_in_their_own_words() {
    // Calls without their ids, and token counts without details.
    let comparable_items = |kind: ServiceKind, case: &str| -> Vec<Value> {
        let folder = tambour_fixtures::fixtures_folder().join("upstream").join(kind.name());
        let extension = if kind == ServiceKind::Ollama { "ndjson" } else { "sse" };
        let bytes = std::fs::read(folder.join(format!("{case}.{extension}"))).unwrap();
        let (counts, items): (Vec<ReplyItem>, Vec<ReplyItem>) =
            decode_items(kind, &bytes, &[]).into_iter().partition(|item| matches!(item, ReplyItem::Usage(_)));
        let usage = items_as_json(counts).pop().unwrap()["usage"].clone();
        let mut items = items_as_json(items);
        for item in &mut items {
            if let Some(call) = item.get_mut("call") {
                let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
                *item = json!({"name": call["name"], "arguments": arguments});
            }
        }
        let tokens = ["prompt_tokens", "completion_tokens", "total_tokens"].map(|name| usage[name].clone());
        items.push(json!({ "tokens": tokens }));
        items
    };
    for case in ["text", "reasoning", "calls", "length"] {
        for kind in ServiceKind::ALL {
            assert_eq!(
                comparable_items(kind, case),
                comparable_items(ServiceKind::OpenAi, case),
                "{case} of {}",
                kind.name()
            );
        }
    }
}

#[test]
fn nothing_that_a_service_sends_breaks_the_reading() {
    let answers = recorded_answers();
    let mut random = RandomSource::new(14);
    for RecordedAnswer { kind, path, bytes } in &answers {
        for _ in 0..60 {
            let mut broken = bytes.clone();
            for _ in 0..=random.below(6) {
                let at = random.below(broken.len());
                match random.below(4) {
                    0 => broken[at] = random.next_bits() as u8,
                    1 => drop(broken.drain(at..(at + random.below(40)).min(broken.len()))),
                    2 => broken.insert(at, *random.pick(b"{}[]\",:\n\r\\0")),
                    _ => {
                        let other = &random.pick(&answers).bytes;
                        let piece = &other[random.below(other.len())..];
                        broken.splice(at..at, piece.iter().copied());
                    }
                }
                if broken.is_empty() {
                    break;
                }
            }
            let whole = items_as_json(decode_items(*kind, &broken, &[]));
            let ends = whole.iter().filter(|item| item.get("end").is_some()).count();
            assert_eq!((ends, whole.last().is_some_and(|last| last.get("end").is_some())), (1, true));
            let cuts = random.random_cuts(broken.len());
            assert_eq!(
                items_as_json(decode_items(*kind, &broken, &cuts)),
                whole,
                "{} broken",
                path.display()
            );
        }
    }
}

#[test]
fn what_is_too_long_is_an_error() {
    let long = "x".repeat(17 << 20);
    let quoted = json!(long).to_string();
    let call = |text: &str| {
        [
            (
                ServiceKind::Anthropic,
                format!(
                    "data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":{text}}}}}\n\n"
                ),
            ),
            (
                ServiceKind::OpenAi,
                format!("data: {{\"choices\":[{{\"delta\":{{\"content\":{text}}}}}]}}\n\n"),
            ),
            (
                ServiceKind::Gemini,
                format!("data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":{text}}}]}}}}]}}\n\n"),
            ),
            (ServiceKind::Ollama, format!("{{\"message\":{{\"content\":{text}}}}}\n")),
        ]
    };
    for (kind, frame) in call(&quoted) {
        let cuts: Vec<usize> = (1..frame.len() >> 16).map(|piece| piece << 16).collect();
        for cuts in [&[][..], &cuts] {
            let items = items_as_json(decode_items(kind, frame.as_bytes(), cuts));
            assert_eq!(items.len(), 1, "{}", kind.name());
            assert_eq!(items[0]["end"]["code"], "upstream_error", "{}", kind.name());
            assert!(items[0]["end"]["message"].as_str().unwrap().contains("longer than"), "{}", items[0]);
        }
    }
    // Arguments in pieces.
    let piece = json!("x".repeat(1 << 19)).to_string();
    let mut arguments = "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{}}}\n\n".to_owned();
    for _ in 0..40 {
        arguments.push_str(&format!("data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"input_json_delta\",\"partial_json\":{piece}}}}}\n\n"));
    }
    let items = items_as_json(decode_items(ServiceKind::Anthropic, arguments.as_bytes(), &[]));
    assert_eq!(items[0]["end"]["code"], "upstream_error");
    // Calls without end.
    let frames = [
        (
            ServiceKind::OpenAi,
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":N,\"function\":{\"name\":\"f\"}}]}}]}\n\n",
        ),
        (
            ServiceKind::Anthropic,
            "data: {\"type\":\"content_block_start\",\"index\":N,\"content_block\":{\"type\":\"tool_use\"}}\n\n",
        ),
        (
            ServiceKind::Gemini,
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{}}]}}]}\n\n",
        ),
        (ServiceKind::Ollama, "{\"message\":{\"tool_calls\":[{}]}}\n"),
    ];
    for (kind, frame) in frames {
        let calls: String = (0..1025).map(|n| frame.replace('N', &n.to_string())).collect();
        let items = items_as_json(decode_items(kind, calls.as_bytes(), &[]));
        assert_eq!(items.len(), 1, "{}", kind.name());
        assert!(items[0]["end"]["message"].as_str().unwrap().contains("1024 tool calls"), "{}", items[0]);
    }
    // A long comment is ignored.
    let comment = format!(": {}\n{}", "x".repeat(2 << 20), call("\"so\"")[0].1);
    assert_eq!(
        items_as_json(decode_items(ServiceKind::Anthropic, comment.as_bytes(), &[]))[0],
        json!({"text": "so"})
    );
}
