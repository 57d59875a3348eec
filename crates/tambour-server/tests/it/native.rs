//! Native calls of a model beside its text, and the results it gets.

use serde_json::{Value, json};

use crate::client::{message, names, text};
use crate::mock::{self, Mock, Step, delta, finish};
use crate::server::Tambour;
use crate::tool_kit::{Kit, gives};

/// A frame with this delta.
fn frame(delta: &Value) -> Step {
    Step::Send(mock::frame(&json!({"choices": [{"index": 0, "delta": delta}]})))
}

fn script(deltas: &[Value]) -> Vec<Step> {
    deltas.iter().map(frame).chain(finish("tool_calls")).collect()
}

/// One call of `lint` in one frame.
fn lint(id: &str, arguments: &str) -> Value {
    json!({"tool_calls": [{"index": 0, "id": id, "type": "function", "function": {"name": "lint", "arguments": arguments}}]})
}

fn ask(more: &Value) -> Value {
    let mut ask = json!({
        "text": "x", "dialect": "plain", "tools": ["lint"], "extensions": true, "output_protocol": "jsonseq_v1",
        "contract": {"options": {"text_language": "en"}},
    });
    ask.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    ask
}

fn answer() -> Vec<Step> {
    [delta("It is fine.")].into_iter().chain(finish("stop")).collect()
}

#[tokio::test]
async fn calls_beside_the_text_run_and_the_model_is_told_in_its_own_form() {
    let first = script(&[json!({"content": "I look."}), lint("abc", "{\"userInput\": \"x\"}")]);
    let kit = Kit::with(vec![first, answer()], vec![gives(&json!({"score": 7}))], |_| {}).await;
    let events = kit.run(&ask(&json!({}))).await;
    let seen = names(&events);
    let at =
        |name: &str| seen.iter().position(|one| *one == name).unwrap_or_else(|| panic!("{name}: {seen:?}"));
    assert!(at("tool_call") < at("tool_start") && at("tool_start") < at("tool_result"), "{seen:?}");
    assert!(
        text(&events, "final_delta").contains("I look.")
            && text(&events, "final_delta").ends_with("It is fine.")
    );
    // Tools offered to the model, and results sent to it.
    let asked = kit.model.asked();
    let offered = &asked[0].body["tools"][0];
    assert_eq!((&offered["type"], &offered["function"]["name"]), (&json!("function"), &json!("lint")));
    assert_eq!(offered["function"]["parameters"]["required"], json!(["userInput"]));
    let messages = asked[1].body["messages"].as_array().unwrap();
    let [.., called, told] = messages.as_slice() else { panic!("{messages:?}") };
    assert_eq!((&called["role"], &called["content"]), (&json!("assistant"), &json!("I look.")));
    assert_eq!(
        called["tool_calls"][0]["function"],
        json!({"name": "lint", "arguments": "{\"userInput\": \"x\"}"})
    );
    assert_eq!(called["tool_calls"][0]["id"], told["tool_call_id"]);
    assert_eq!((&told["role"], &told["tool_call_id"]), (&json!("tool"), &json!("abc")));
    let result: Value = serde_json::from_str(told["content"].as_str().unwrap()).unwrap();
    assert_eq!(result, json!({"ok": true, "result": {"score": 7}}));
    // The record has the calls like others; a later message of the conversation gets them as text.
    let record = kit.server.ended(&message(&events)).await;
    let told = record["turns"][0]["told"].as_str().unwrap();
    assert!(told.contains("\"score\":7"), "{record}");
}

#[tokio::test]
async fn calls_arrive_in_pieces_of_all_kinds() {
    let call = |fields: Value| json!({"tool_calls": [fields]});
    let named = |name: &str, arguments: &str| json!({"name": name, "arguments": arguments});
    let pieces: Vec<(&str, Vec<Value>, usize)> = vec![
        (
            "in pieces",
            vec![
                call(json!({"index": 0, "id": "a", "function": named("lint", "")})),
                call(json!({"index": 0, "function": {"arguments": "{\"userInp"}})),
                call(json!({"index": 0, "function": {"arguments": "ut\": \"1\"}"}})),
            ],
            1,
        ),
        (
            "two at the same time",
            vec![
                call(json!({"index": 0, "id": "a", "function": named("lint", "{\"userInput\":")})),
                call(json!({"index": 1, "id": "b", "function": named("lint", "{\"userInput\":")})),
                call(json!({"index": 0, "function": {"arguments": " \"1\"}"}})),
                call(json!({"index": 1, "function": {"arguments": " \"2\"}"}})),
            ],
            2,
        ),
        (
            "without numbers",
            vec![
                call(json!({"id": "a", "function": named("lint", "{\"userInput\": ")})),
                call(json!({"function": {"arguments": "\"1\"}"}})),
                call(json!({"id": "b", "function": named("lint", "{\"userInput\": \"2\"}")})),
            ],
            2,
        ),
        (
            "all with the number 0",
            vec![lint("a", "{\"userInput\": \"1\"}"), lint("b", "{\"userInput\": \"2\"}")],
            2,
        ),
        ("name and id in each piece", vec![lint("a", "{\"userInput\""), lint("a", ": \"1\"}")], 1),
        (
            "without ids",
            vec![
                call(json!({"index": 0, "function": named("lint", "{\"userInput\": \"1\"}")})),
                call(json!({"index": 1, "function": named("lint", "{\"userInput\": \"2\"}")})),
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
        let kit = Kit::with(vec![script(&deltas), answer()], vec![gives(&json!(1))], |_| {}).await;
        let events = kit.run(&ask(&json!({}))).await;
        let calls: Vec<&Value> = events
            .iter()
            .filter(|event| event.name == "tool_call")
            .map(|event| &event.data["args"])
            .collect();
        let wanted: Vec<Value> = (1..=count).map(|n| json!({"userInput": n.to_string()})).collect();
        assert_eq!(calls, wanted.iter().collect::<Vec<_>>(), "{name}");
        let messages = kit.model.asked()[1].body["messages"].as_array().unwrap().clone();
        let told = messages.iter().filter(|message| message["role"] == "tool");
        let ids: std::collections::HashSet<String> =
            told.map(|message| message["tool_call_id"].as_str().unwrap().to_owned()).collect();
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
        let script: Vec<Step> = [delta("So."), frame(&call)].into_iter().chain(finish(end)).collect();
        let kit = Kit::with(vec![script], vec![gives(&json!(1))], |_| {}).await;
        let events = kit.run(&ask(&json!({}))).await;
        assert_eq!(kit.hook.calls().begun, 0, "{arguments}");
        let notice =
            events.iter().find(|event| event.name == "notice").unwrap_or_else(|| panic!("{events:?}"));
        assert_eq!((&notice.data["code"], &notice.data["ref"]), (&json!(code), &json!(tool)));
        assert_eq!(events.last().unwrap().data["metadata"]["notices"][0]["code"], code);
        assert_eq!(text(&events, "final_delta"), "So.");
    }
}

#[tokio::test]
async fn messages_have_roles_of_tools_and_parts() {
    let mock = Mock::start(vec![answer()]).await;
    let server = Tambour::with(&mock).await;
    let said = json!([
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
    let ask = json!({"messages": said, "dialect": "plain", "wait": true});
    let record = server.post("/api/v1/messages", &ask).await;
    assert_eq!((record.status, &record.json["answer"]), (200, &json!("It is fine.")), "{}", record.text);
    assert_eq!(mock.asked()[0].body["messages"], said);
    assert_eq!(record.json["prompt"], said);
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
        let refused =
            server.post("/api/v1/messages", &json!({"messages": [wrong], "dialect": "plain"})).await;
        assert_eq!(refused.status, 422, "{wrong}: {}", refused.text);
    }
}

#[tokio::test]
async fn what_a_model_says_instead_is_what_it_says() {
    let mock = Mock::start(vec![script(&[json!({"content": null, "refusal": "I will not."})])]).await;
    let server = Tambour::with(&mock).await;
    let record =
        server.post("/api/v1/messages", &json!({"text": "x", "dialect": "plain", "wait": true})).await;
    assert_eq!(record.json["answer"], "I will not.", "{}", record.text);
}
