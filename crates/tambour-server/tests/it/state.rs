//! The state of a conversation: changed by replies and by clients, validated by a schema, rolled back, and deleted.

use serde_json::{Value, json};

use crate::deletion::gone;
use crate::mock::{Gate, Mock, Step, delta, reply};
use crate::server::{Answer, Tambour, config};

/// A reply with these blocks of operations.
pub(crate) fn said(text: &str, blocks: &[Value]) -> String {
    let block = |operations: &Value| {
        format!("<variable_update>\n<analysis>it was so</analysis>\n{operations}\n</variable_update>\n")
    };
    format!("<content>\n{text}\n</content>\n{}", blocks.iter().map(block).collect::<String>())
}

pub(crate) struct Chat {
    pub(crate) server: Tambour,
    pub(crate) conversation: String,
}

impl Chat {
    pub(crate) async fn of(server: Tambour) -> Chat {
        let made = server.post("/api/v1/conversations", &json!({})).await.json;
        let conversation = made["conversation_id"].as_str().unwrap().to_owned();
        Chat { server, conversation }
    }

    async fn with(mock: &Mock) -> Chat {
        Chat::of(Tambour::with(mock).await).await
    }

    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/api/v1/conversations/{}/state{rest}", self.conversation)
    }

    /// Sends a message, and waits for its end.
    pub(crate) async fn ask(&self, text: &str) -> Value {
        let ask = json!({"text": text, "dialect": "filament", "conversation_id": self.conversation,
            "output_protocol": "jsonseq_v1", "wait": true});
        let answer = self.server.post("/api/v1/messages", &ask).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json
    }

    pub(crate) async fn state(&self) -> Value {
        let answer = self.server.get(&self.path("")).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json["state"].clone()
    }

    pub(crate) async fn operate(&self, operations: Value) -> Value {
        let answer = self.server.post(&self.path("/operations"), &json!({"operations": operations})).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json
    }

    pub(crate) async fn regenerate(&self, message: &Value) -> Value {
        let answer = self.server.call("post", &of(message, "/regenerate"), None).await;
        assert_eq!(answer.status, 202, "{}", answer.text);
        let id = answer.json["message_id"].as_str().unwrap();
        assert_ne!(answer.json["message_id"], message["message_id"]);
        self.server.ended(id).await
    }
}

pub(crate) fn of(message: &Value, rest: &str) -> String {
    format!("/api/v1/messages/{}{rest}", message["message_id"].as_str().unwrap())
}

fn event<'a>(record: &'a Value, name: &str) -> &'a Value {
    let events = record["events"].as_array().unwrap();
    &events.iter().find(|event| event["event"] == name).unwrap_or(&Value::Null)["data"]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_out_of_range_is_refused_alone() {
    // R-81: also a number that no double holds.
    let mock = Mock::start(Vec::new()).await;
    let chat = Chat::with(&mock).await;
    let body = r#"{"operations": [["SET","a",1e400],["SET","b",12345678901234567890123],["SET","d",1]]}"#;
    let answer = chat.server.call("post", &chat.path("/operations"), Some(body)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json["state"], json!({"d": 1}));
    assert_eq!(answer.json["notices"][0]["ref"], "0: number_out_of_range, 1: number_out_of_range");
    let wrong = chat.server.call("post", &chat.path("/operations"), Some("{\"operations\": [1e400")).await;
    assert_eq!(wrong.status, 400, "{}", wrong.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_and_clients_change_the_state() {
    let first =
        said("a", &[json!([["SET", "纯田真奈.好感度", 5], ["PUSH", "bag", "rope"], ["POP", "name"]])]);
    let second = said("b", &[json!([["ADD", "纯田真奈.好感度", 3]]), json!([["ADD", "纯田真奈.好感度", 1]])]);
    let mock = Mock::start(vec![reply(&first, 3), reply(&second, 5)]).await;
    let chat = Chat::with(&mock).await;
    assert_eq!(chat.state().await, json!({}));
    // F-111, F-112
    let made = chat.operate(json!([["SET", "name", "x"], ["SUB", "name", 1], ["FLY", "a"]])).await;
    assert_eq!(made["state"], json!({"name": "x"}));
    let oks: Vec<&Value> = made["results"].as_array().unwrap().iter().map(|one| &one["ok"]).collect();
    assert_eq!(oks, [true, false, false]);
    // F-113: one notice with index and reason.
    assert_eq!(made["notices"].as_array().unwrap().len(), 1);
    assert_eq!(made["notices"][0]["code"], "state_update_partial_failure");
    assert_eq!(made["notices"][0]["ref"], "1: operation_type_mismatch, 2: operation_unknown");
    let record = chat.ask("one").await;
    let results = event(&record, "state_update")["results"].clone();
    assert_eq!(results[0]["after"], 5, "{record:#}");
    assert_eq!(
        (&results[2]["ok"], &results[2]["reason"]),
        (&json!(false), &json!("operation_type_mismatch"))
    );
    // F-113
    assert_eq!(event(&record, "notice")["ref"], "2: operation_type_mismatch");
    let state = json!({"name": "x", "纯田真奈": {"好感度": 5}, "bag": ["rope"]});
    assert_eq!(chat.state().await, state);
    // A reply is read with the state left by the one before it.
    let later = chat.ask("two").await;
    assert_eq!(event(&later, "state_update")["results"][0]["before"], 5);
    assert_eq!(chat.state().await["纯田真奈"]["好感度"], 9);
    // F-116: message, operation, before, after, analysis.
    let history = chat.server.get(&chat.path("/history")).await.json;
    let data = history["data"].as_array().unwrap();
    assert_eq!(data.len(), 4, "{history:#}");
    assert!(data[0]["message_id"].is_null() && data[0]["update_id"] == made["update_id"]);
    assert_eq!(data[2]["message_id"], later["message_id"]);
    assert_eq!(data[2]["analysis"], "it was so");
    assert_eq!(data[2]["operations"], json!([{"op": "ADD", "path": "纯田真奈.好感度", "value": 3}]));
    assert_eq!((&data[2]["results"][0]["before"], &data[2]["results"][0]["after"]), (&json!(5), &json!(8)));
    let page = chat.server.get(&chat.path("/history?limit=1&after=2")).await.json;
    assert_eq!((&page["data"][0], &page["has_more"]), (&data[2], &json!(true)));
    // F-116: differences between messages, and earlier states.
    let id = |record: &Value| record["message_id"].as_str().unwrap().to_owned();
    let diff = chat.path(&format!("/history?from={}&to={}", id(&record), id(&later)));
    let diff = chat.server.get(&diff).await.json["diff"].clone();
    assert_eq!(diff.as_array().unwrap().len(), 1, "{diff:#}");
    assert_eq!((&diff[0]["before"], &diff[0]["after"]), (&json!(5), &json!(9)));
    let then = chat.server.get(&chat.path(&format!("?at={}", id(&record)))).await.json;
    assert_eq!(then["state"], state);
    let wrong = chat.server.get(&chat.path("?at=msg_0")).await;
    assert_eq!((wrong.status, wrong.problem()), (404, "not_found"));
    // All or none.
    let body = json!({"operations": [["SET", "name", "y"], ["POP", "name"]], "atomic": true});
    let refused = chat.server.post(&chat.path("/operations"), &body).await.json;
    // F-113
    assert_eq!((&refused["state"]["name"], &refused["update_id"]), (&json!("x"), &Value::Null));
    // The state survives a restart, and a plain message does not change it.
    let (before, Chat { server, conversation }) = (chat.state().await, chat);
    let folder = server.stopped().await;
    let config = config(&folder);
    let chat = Chat { server: Tambour::serve(folder, config).await, conversation };
    assert_eq!(chat.state().await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_holds_replies_and_clients() {
    let mock = Mock::start(vec![reply(&said("a", &[json!([["ADD", "hp", 50], ["SET", "mp", 1]])]), 7)]).await;
    let chat = Chat::with(&mock).await;
    let schema = json!({"properties": {"hp": {"type": "integer", "maximum": 100}}});
    let put = chat.server.put(&chat.path("/schema"), &json!({"schema": schema})).await;
    assert_eq!((put.status, &put.json["mismatches"]), (200, &json!([])));
    assert_eq!(chat.server.get(&chat.path("")).await.json["schema"], schema);
    let made = chat.operate(json!([["SET", "hp", 101], ["SET", "hp", 60]])).await;
    // F-115
    assert_eq!(made["results"][0]["reason"], "schema_violation");
    assert_eq!(made["state"], json!({"hp": 60}));
    let record = chat.ask("x").await;
    // F-115
    assert_eq!(event(&record, "state_update")["results"][0]["reason"], "schema_violation");
    assert_eq!(chat.state().await, json!({"hp": 60, "mp": 1}));
    // An existing violation is reported and stays.
    let strict = json!({"schema": {"properties": {"hp": {"maximum": 10}}}});
    let put = chat.server.put(&chat.path("/schema"), &strict).await.json;
    assert_eq!(put["mismatches"][0]["pointer"], "/hp");
    for (wrong, code) in [
        (json!({"schema": {"type": "nothing"}}), "invalid_schema"),
        (json!({}), "missing_field"),
        (json!({"schema": {"pattern": "a".repeat(100_000)}}), "schema_limit"),
    ] {
        let refused = chat.server.put(&chat.path("/schema"), &wrong).await;
        assert_eq!((refused.status, refused.problem()), (422, code));
    }
    chat.server.put(&chat.path("/schema"), &json!({"schema": null})).await;
    assert_eq!(chat.operate(json!([["SET", "hp", 1000]])).await["state"]["hp"], 1000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_hold_what_clients_send() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let chat = Chat::with(&mock).await;
    let many: Vec<Value> = (0..10_002).map(|at| json!(["SET", "a", at])).collect();
    let deep = vec!["a"; 100].join(".");
    let made = chat
        .operate(json!([["SET", deep, 1], ["SET", "a", "x".repeat(70_000)], ["SET", "p".repeat(2000), 1]]))
        .await;
    for result in made["results"].as_array().unwrap() {
        assert_eq!(result["ok"], false, "{result}");
    }
    assert!(made["update_id"].is_null());
    let made = chat.operate(many.into()).await;
    let last = made["results"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&last["ok"], &last["reason"]), (&json!(false), &json!("limit_exceeded")));
    // The history is bounded: the oldest updates become the base.
    for at in 0..1010 {
        chat.operate(json!([["SET", "n", at]])).await;
    }
    let first = chat.server.get(&chat.path("/history?limit=1")).await.json["data"][0].clone();
    assert!(first["position"].as_i64().unwrap() > 1, "{first}");
    assert_eq!(chat.state().await["n"], 1009);
    let refused = chat.server.post(&chat.path("/rollback"), &json!({"to": null})).await;
    assert_eq!((refused.status, refused.problem()), (409, "state_gone"));
    assert_eq!(chat.state().await["n"], 1009);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_state_goes_back_to_any_message() {
    let set = |n: u32| said("x", &[json!([["SET", "n", n]]), json!([["SET", format!("k{n}"), n]])]);
    let mock = Mock::start(vec![
        reply(&set(1), 9),
        reply(&said("nothing", &[]), 9),
        reply(&set(2), 9),
        reply(&set(3), 9),
    ])
    .await;
    let chat = Chat::with(&mock).await;
    let first = chat.ask("1").await;
    let silent = chat.ask("2").await;
    chat.ask("3").await;
    let update = chat.operate(json!([["SET", "n", 20]])).await["update_id"].clone();
    chat.ask("4").await;
    assert_eq!(chat.state().await, json!({"n": 3, "k1": 1, "k2": 2, "k3": 3}));
    let back = async |to: &Value| chat.server.post(&chat.path("/rollback"), &json!({"to": to})).await;
    // F-116
    assert_eq!(back(&update).await.json, json!({"taken_back": 2, "state": {"n": 20, "k1": 1, "k2": 2}}));
    // F-116: also an update that changed nothing.
    let answer = back(&silent["message_id"]).await;
    assert_eq!(answer.json, json!({"taken_back": 3, "state": {"n": 1, "k1": 1}}));
    assert_eq!(back(&first["message_id"]).await.json["taken_back"], 0);
    assert_eq!(chat.server.get(&chat.path("/history")).await.json["data"].as_array().unwrap().len(), 2);
    assert_eq!(back(&update).await.status, 404);
    assert_eq!(back(&json!(7)).await.problem(), "invalid_field");
    // The next message continues from there.
    chat.ask("5").await;
    assert_eq!(chat.state().await, json!({"n": 3, "k1": 1, "k3": 3}));
    assert_eq!(back(&Value::Null).await.json["state"], json!({}));
    assert_eq!(chat.state().await, json!({}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_message_in_its_place_takes_its_updates_back_first() {
    let add = |text: &str, n: u32| reply(&said(text, &[json!([["ADD", "n", n]])]), 9);
    let mock = Mock::start(vec![add("a", 1), add("b", 10), add("c", 100), add("d", 1000)]).await;
    let chat = Chat::with(&mock).await;
    chat.operate(json!([["SET", "n", 0]])).await;
    let first = chat.ask("one").await;
    let (second, third) = (chat.ask("two").await, chat.ask("three").await);
    assert_eq!(chat.state().await, json!({"n": 111}));
    let again = chat.regenerate(&second).await;
    // F-116: the new reply starts from 1.
    assert_eq!(event(&again, "state_update")["results"][0]["before"], 1, "{again:#}");
    assert_eq!(chat.state().await, json!({"n": 1001}));
    // R-79: the same prompt with the same history, and superseded messages stay readable.
    let asked = mock.asked();
    assert_eq!(asked[3].body["messages"], asked[1].body["messages"]);
    assert_eq!(again["request"]["text"], "two");
    for (old, status) in
        [(&first, "completed"), (&second, "superseded"), (&third, "superseded"), (&again, "completed")]
    {
        let record = chat.server.get(&of(old, "")).await.json;
        assert_eq!((&record["status"], &record["reply"]), (&json!(status), &old["reply"]));
    }
    // R-79: the next prompt has the new message, and not the old ones.
    chat.ask("four").await;
    let told = mock.asked().last().unwrap().body["messages"].to_string();
    assert!(told.contains("\\nd\\n") && !told.contains("\\nb\\n") && !told.contains("\\nc\\n"), "{told}");
    // A running message is cancelled.
    let gate = Gate::new();
    let slow = vec![delta("<content>\nslow"), Step::Wait(gate)];
    let mock = Mock::start(vec![slow, add("e", 5)]).await;
    let chat = Chat::with(&mock).await;
    chat.operate(json!([["SET", "n", 0]])).await;
    let ask = json!({"text": "x", "dialect": "filament", "conversation_id": chat.conversation});
    let running = chat.server.post("/api/v1/messages", &ask).await.json;
    mock.until(|calls| calls.begun == 1).await;
    let again = chat.regenerate(&running).await;
    assert_eq!(again["status"], "completed");
    assert_eq!(chat.server.get(&of(&running, "")).await.json["status"], "superseded");
    assert_eq!(chat.state().await, json!({"n": 5}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_failed_changes_nothing_and_nobody_changes_under_a_message() {
    let updates = said("a", &[json!([["SET", "n", 1]])]);
    let broken = vec![delta(&updates), Step::Cut];
    let gate = Gate::new();
    let mut waits = vec![delta(&updates), Step::Wait(gate.clone())];
    waits.extend(reply("", 1));
    let mock = Mock::start(vec![broken, waits]).await;
    let chat = Chat::with(&mock).await;
    let failed = chat.ask("x").await;
    assert_eq!(failed["status"], "failed", "{failed:#}");
    // R-68
    assert_eq!(chat.state().await, json!({}));
    let ask = json!({"text": "x", "dialect": "filament", "conversation_id": chat.conversation, "extensions": true, "output_protocol": "jsonseq_v1"});
    let mut stream = chat.server.stream(&ask).await;
    stream.until("state_update").await;
    // Operations apply at the end of the reply only.
    assert_eq!(chat.state().await, json!({}));
    let busy = chat.server.post(&chat.path("/operations"), &json!({"operations": [["SET", "n", 2]]})).await;
    assert_eq!((busy.status, busy.problem()), (409, "conversation_busy"));
    gate.open();
    stream.rest().await;
    assert_eq!(chat.state().await, json!({"n": 1}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_deleted_leaves_the_state_and_not_its_history() {
    let word = "quixotic-zephyr-kept";
    let set = |n: u32, text: &str| reply(&said("x", &[json!([["SET", format!("k{n}"), text]])]), 9);
    let mock = Mock::start(vec![set(1, "a"), set(2, word), set(3, "c")]).await;
    let chat = Chat::with(&mock).await;
    let (first, second, third) = (chat.ask("1").await, chat.ask("2").await, chat.ask("3").await);
    chat.operate(json!([["SET", "k2", "b"]])).await;
    assert_eq!(chat.server.call("delete", &of(&second, ""), None).await.status, 204);
    // R-79: the present state stays.
    assert_eq!(chat.state().await, json!({"k1": "a", "k2": "b", "k3": "c"}));
    let history = chat.server.get(&chat.path("/history")).await.json;
    let ids: Vec<&Value> = history["data"].as_array().unwrap().iter().map(|one| &one["message_id"]).collect();
    assert_eq!(ids, [&first["message_id"], &third["message_id"], &Value::Null]);
    assert_eq!(
        (&history["data"][0]["reversible"], &history["data"][1]["reversible"]),
        (&json!(false), &json!(true))
    );
    let back = async |to: &Value| chat.server.post(&chat.path("/rollback"), &json!({"to": to})).await;
    for gone in [&first["message_id"], &Value::Null] {
        let refused = back(gone).await;
        // R-79
        assert_eq!((refused.status, refused.problem()), (409, "state_gone"));
    }
    let refused = chat.server.call("post", &of(&first, "/regenerate"), None).await;
    // R-79
    assert_eq!((refused.status, refused.problem()), (409, "state_gone"));
    assert_eq!(chat.server.get(&of(&first, "")).await.json["status"], "completed");
    let again = chat.regenerate(&third).await;
    assert_eq!(again["status"], "completed");
    // Its value is part of the base, with its position.
    assert_eq!(chat.state().await, json!({"k1": "a", "k2": word, "k3": "c"}));
    chat.operate(json!([["DELETE", "k2"]])).await;
    let path = format!("/api/v1/conversations/{}", chat.conversation);
    assert_eq!(chat.server.call("delete", &path, None).await.status, 204);
    assert_eq!(chat.server.get(&chat.path("")).await.status, 404);
    // R-79: deleting a conversation deletes its state.
    gone(&chat.server.folder, word).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_state_is_of_its_owner() {
    let mock = Mock::start(vec![reply(&said("a", &[json!([["SET", "n", 1]])]), 9)]).await;
    let mut chat = Chat::with(&mock).await;
    let key = async |server: &Tambour, rights: &str| {
        let made = server.post("/api/v1/keys", &json!({"name": rights, "rights": rights})).await.json;
        made["key"].as_str().unwrap().to_owned()
    };
    let message = chat.ask("x").await;
    let admin = key(&chat.server, "admin").await;
    chat.server.key(Some(&admin));
    assert_eq!(chat.state().await, json!({"n": 1}));
    let other = key(&chat.server, "plain").await;
    chat.server.key(Some(&other));
    for (method, path, body) in [
        ("get", chat.path(""), None),
        ("get", chat.path("/history"), None),
        ("put", chat.path("/schema"), Some(json!({"schema": {}}))),
        ("post", chat.path("/operations"), Some(json!({"operations": [["SET", "n", 2]]}))),
        ("post", chat.path("/rollback"), Some(json!({"to": null}))),
        ("post", of(&message, "/regenerate"), None),
    ] {
        let answer = chat.server.call(method, &path, body.map(|body| body.to_string()).as_deref()).await;
        // F-116
        assert_eq!((answer.status, answer.problem()), (404, "not_found"), "{method} {path}");
    }
    chat.server.key(Some(&admin));
    assert_eq!(chat.state().await, json!({"n": 1}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_of_an_agent_begins_with_the_state() {
    let add = said("a", &[json!([["SET", "n", 1]])]);
    let mock = Mock::start(vec![reply(&add, 9)]).await;
    let server = Tambour::with(&mock).await;
    let body = json!({"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "x"}],
        "forwardedProps": {"tambour": {"dialect": "filament"}}});
    // A patch needs a snapshot before it.
    let first = of_state(&server.post("/ag-ui", &body).await.text);
    assert_eq!(first, [("STATE_SNAPSHOT".to_owned(), json!({})), changed(1)]);
    // F-116
    let second = of_state(&server.post("/ag-ui", &body).await.text);
    assert_eq!(second[0], ("STATE_SNAPSHOT".to_owned(), json!({"n": 1})));
}

/// Snapshots and patches of the state in a stream.
fn of_state(stream: &str) -> Vec<(String, Value)> {
    let events = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    let events = events.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of_state = |event: Value| {
        let what = if event["type"] == "STATE_SNAPSHOT" { "snapshot" } else { "delta" };
        let kind = event["type"].as_str()?.to_owned();
        kind.starts_with("STATE_").then(|| (kind, event[what].clone()))
    };
    events.filter_map(of_state).collect()
}

/// The patch that sets `n`.
fn changed(n: i64) -> (String, Value) {
    ("STATE_DELTA".to_owned(), json!([{"op": "add", "path": "/n", "value": n}]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thread_begins_with_the_state_of_its_client() {
    let add = said("a", &[json!([["SET", "n", 10], ["ADD", "nothing", 1]])]);
    let mock = Mock::start(vec![reply(&add, 9)]).await;
    let server = Tambour::with(&mock).await;
    let mut body = json!({"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "x"}],
        "state": {"hp": 1, "a.b": [2]}, "forwardedProps": {"tambour": {"dialect": "filament"}}});
    let stream = server.post("/ag-ui", &body).await.text;
    let begun = json!({"hp": 1, "a.b": [2]});
    assert_eq!(of_state(&stream), [("STATE_SNAPSHOT".to_owned(), begun), changed(10)]);
    assert_eq!(stream.matches("tambour.state_rejected").count(), 1, "{stream}");
    // From here on the server's state counts.
    body["state"] = json!({"hp": 99});
    let again = of_state(&server.post("/ag-ui", &body).await.text);
    assert_eq!(again[0].1, json!({"hp": 1, "a.b": [2], "n": 10}));
    // The AI SDK gets operations, patch and refusals.
    let chat = json!({"id": "c", "messages": [{"role": "user", "parts": [{"type": "text", "text": "x"}]}],
        "tambour": {"dialect": "filament"}});
    let stream = server.post("/api/chat", &chat).await.text;
    let parts =
        stream.lines().filter_map(|line| line.strip_prefix("data: ").filter(|line| *line != "[DONE]"));
    let parts = parts.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let told: Vec<Value> = parts.filter(|part| part["type"] == "data-state").collect();
    assert_eq!(told[0]["data"]["ops"], json!([["SET", "n", 10]]));
    assert_eq!(told[0]["data"]["patch"], changed(10).1);
    assert_eq!((&told[0]["id"], &told[0]["data"]["applied"]), (&json!("state-1"), &json!(true)));
    assert_eq!(told[1]["data"]["ops"], json!([["ADD", "nothing", 1]]));
    assert_eq!((&told[1]["id"], &told[1]["data"]["applied"]), (&json!("state-2"), &json!(false)));
    assert!(told[1]["data"]["error"].as_str().is_some_and(|error| !error.is_empty()));
}

#[tokio::test]
async fn many_operations_have_results_at_both_ends_and_counts() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let chat = Chat::with(&mock).await;
    let sets: Vec<Value> = (0..300).map(|at| json!(["SET", "a", at])).collect();
    let changed = chat.operate(Value::from(sets.clone())).await;
    let counts = |operations: u32, applied: u32, left_out: u32| json!({"operations": operations, "applied": applied, "refused": operations - applied, "left_out": left_out});
    assert_eq!(changed["counts"], counts(300, 300, 200));
    let indexes: Vec<u64> = changed["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["index"].as_u64().unwrap())
        .collect();
    assert_eq!(indexes, (0..50).chain(250..300).collect::<Vec<u64>>());
    assert_eq!(changed["state"], json!({"a": 299}));
    let body = json!({"operations": sets, "results": "all"});
    let all = chat.server.post(&chat.path("/operations"), &body).await.json;
    assert_eq!((all["results"].as_array().unwrap().len(), &all["counts"]), (300, &counts(300, 300, 0)));
    let few = chat.operate(json!([["SET", "b", 1], ["POP", "b"]])).await;
    assert_eq!((few["results"].as_array().unwrap().len(), &few["counts"]), (2, &counts(2, 1, 0)));
    let odd =
        chat.server.post(&chat.path("/operations"), &json!({"operations": [], "results": "some"})).await;
    assert_eq!((odd.status, odd.problem()), (422, "invalid_field"));
}

/// 150,000 operations, in a dozen requests at once: above the limit they are counted and not stored.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_operations_takes_no_more_than_its_body_many_times() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let apart = crate::server_process::ServerProcess::start(&mock, false);
    let body = format!(r#"{{"operations": [{}]}}"#, vec![r#"["SET", "a", 1]"#; 150_000].join(", "));
    let mut paths = Vec::new();
    for _ in 0..12 {
        let made = apart.server.post("/api/v1/conversations", &json!({})).await.json;
        let id = made["conversation_id"].as_str().unwrap();
        paths.push(format!("/api/v1/conversations/{id}/state/operations"));
    }
    let before = apart.memory().unwrap();
    let peak = std::sync::atomic::AtomicU64::new(before);
    let asked =
        futures_util::future::join_all(paths.iter().map(|path| apart.server.call("post", path, Some(&body))));
    let watched = async {
        loop {
            peak.fetch_max(apart.memory().unwrap(), std::sync::atomic::Ordering::Relaxed);
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let answers = tokio::select! {
        answers = asked => answers,
        () = watched => unreachable!(),
    };
    for answer in &answers {
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert!(answer.text.len() < 64 << 10, "{}", answer.text.len());
        let counts = &answer.json["counts"];
        assert_eq!((&counts["operations"], &counts["applied"]), (&json!(150_000), &json!(10_000)));
        let told = answer.json["notices"].to_string();
        assert!(told.contains("10001 to 149999: limit_exceeded"), "{told}");
    }
    // Twelve bodies of 2.5 MB at most 16 times, and the stored part of each once.
    let bodies = (12 * body.len() as u64) >> 10;
    let peak = peak.into_inner() - before;
    assert!(peak < 16 * bodies, "{peak} KiB for {bodies} KiB of bodies");
    let kept = apart.memory().unwrap() - before;
    assert!(kept < 4 * bodies, "{kept} KiB are kept of {bodies} KiB of bodies");
}

#[tokio::test]
async fn changes_of_a_state_are_based_on_what_was_seen() {
    let server = Tambour::with(&Mock::start(vec![]).await).await;
    let made = server.post("/api/v1/conversations", &json!({})).await.json;
    let place = format!("/api/v1/conversations/{}/state", made["conversation_id"].as_str().unwrap());
    let tag = |answer: &Answer| answer.headers["etag"].to_str().unwrap().to_owned();
    let send = async |method: &str, path: &str, body: Value, based_on: &str| {
        let headers = [("if-match", based_on)];
        server.call_with(method, &format!("{place}{path}"), Some(&body.to_string()), &headers).await
    };
    let set = |value: i64| json!({"operations": [["SET", "a", value]]});
    let empty = tag(&server.get(&place).await);
    let first = send("POST", "/operations", set(1), &empty).await;
    assert_eq!(first.status, 200, "{}", first.text);
    assert_eq!(tag(&first), tag(&server.get(&place).await));
    // A client with an older version gets the present one, and changes nothing.
    for (method, path, body) in [
        ("POST", "/operations", set(2)),
        ("POST", "/rollback", json!({"to": null})),
        ("PUT", "/schema", json!({"schema": {"type": "object"}})),
    ] {
        let stale = send(method, path, body, &empty).await;
        assert_eq!((stale.status, stale.problem()), (412, "changed_meanwhile"), "{}", stale.text);
        assert_eq!(stale.json["present"]["state"], json!({"a": 1}));
        assert_eq!(format!("\"{}\"", stale.json["present"]["version"].as_str().unwrap()), tag(&first));
    }
    let schema = send("PUT", "/schema", json!({"schema": {"type": "object"}}), &tag(&first)).await;
    assert_eq!(schema.status, 200, "{}", schema.text);
    assert_eq!(
        send("POST", "/operations", set(2), &tag(&first)).await.status,
        412,
        "a schema is a change too"
    );
    let back = send("POST", "/rollback", json!({"to": null}), &tag(&schema)).await;
    assert_eq!((back.status, tag(&back)), (200, tag(&server.get(&place).await)), "{}", back.text);
    assert_ne!(tag(&back), tag(&schema));
    assert_eq!(send("POST", "/operations", set(3), "*").await.status, 200);
    let malformed = send("POST", "/operations", set(3), "3").await;
    assert_eq!((malformed.status, malformed.problem()), (400, "malformed_request"));
}
