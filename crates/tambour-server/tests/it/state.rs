//! The state of a conversation: changed by replies and by clients, validated by a schema, rolled back, and deleted.

use serde_json::{Value, json};

use crate::deletion::wait_until_erased;
use crate::mock::{Gate, MockServer, Step, delta_step, reply_script};
use crate::server::{Answer, TestServer, test_config};

/// A reply with these blocks of operations.
pub(crate) fn reply_with_updates(text: &str, blocks: &[Value]) -> String {
    let block = |operations: &Value| {
        format!("<variable_update>\n<analysis>it was so</analysis>\n{operations}\n</variable_update>\n")
    };
    format!("<content>\n{text}\n</content>\n{}", blocks.iter().map(block).collect::<String>())
}

pub(crate) struct StateChat {
    pub(crate) server: TestServer,
    pub(crate) conversation: String,
}

impl StateChat {
    pub(crate) async fn new(server: TestServer) -> StateChat {
        let response = server.post("/api/v1/conversations", &json!({})).await.json;
        let conversation = response["conversation_id"].as_str().unwrap().to_owned();
        StateChat { server, conversation }
    }

    async fn start(mock: &MockServer) -> StateChat {
        StateChat::new(TestServer::start_default(mock).await).await
    }

    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/api/v1/conversations/{}/state{rest}", self.conversation)
    }

    /// Sends a message, and waits for its end.
    pub(crate) async fn send(&self, text: &str) -> Value {
        let request = json!({"text": text, "dialect": "filament", "conversation_id": self.conversation,
            "output_protocol": "jsonseq_v1", "wait": true});
        let answer = self.server.post("/api/v1/messages", &request).await;
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
        let answer = self.server.call("post", &message_path(message, "/regenerate"), None).await;
        assert_eq!(answer.status, 202, "{}", answer.text);
        let id = answer.json["message_id"].as_str().unwrap();
        assert_ne!(answer.json["message_id"], message["message_id"]);
        self.server.wait_ended(id).await
    }
}

pub(crate) fn message_path(message: &Value, rest: &str) -> String {
    format!("/api/v1/messages/{}{rest}", message["message_id"].as_str().unwrap())
}

fn event_data<'a>(record: &'a Value, name: &str) -> &'a Value {
    let events = record["events"].as_array().unwrap();
    &events.iter().find(|event| event["event"] == name).unwrap_or(&Value::Null)["data"]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_out_of_range_is_refused_alone() {
    // R-81: also a number that no double holds.
    let mock = MockServer::start(Vec::new()).await;
    let chat = StateChat::start(&mock).await;
    let body = r#"{"operations": [["SET","a",1e400],["SET","b",12345678901234567890123],["SET","d",1]]}"#;
    let answer = chat.server.call("post", &chat.path("/operations"), Some(body)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json["state"], json!({"d": 1}));
    assert_eq!(answer.json["notices"][0]["ref"], "0: number_out_of_range, 1: number_out_of_range");
    let invalid = chat.server.call("post", &chat.path("/operations"), Some("{\"operations\": [1e400")).await;
    assert_eq!(invalid.status, 400, "{}", invalid.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_and_clients_change_the_state() {
    let first = reply_with_updates(
        "a",
        &[json!([["SET", "纯田真奈.好感度", 5], ["PUSH", "bag", "rope"], ["POP", "name"]])],
    );
    let second = reply_with_updates(
        "b",
        &[json!([["ADD", "纯田真奈.好感度", 3]]), json!([["ADD", "纯田真奈.好感度", 1]])],
    );
    let mock = MockServer::start(vec![reply_script(&first, 3), reply_script(&second, 5)]).await;
    let chat = StateChat::start(&mock).await;
    assert_eq!(chat.state().await, json!({}));
    // F-111, F-112
    let response = chat.operate(json!([["SET", "name", "x"], ["SUB", "name", 1], ["FLY", "a"]])).await;
    assert_eq!(response["state"], json!({"name": "x"}));
    let outcomes: Vec<&Value> =
        response["results"].as_array().unwrap().iter().map(|result| &result["ok"]).collect();
    assert_eq!(outcomes, [true, false, false]);
    // F-113: one notice with index and reason.
    assert_eq!(response["notices"].as_array().unwrap().len(), 1);
    assert_eq!(response["notices"][0]["code"], "state_update_partial_failure");
    assert_eq!(response["notices"][0]["ref"], "1: operation_type_mismatch, 2: operation_unknown");
    let record = chat.send("one").await;
    let results = event_data(&record, "state_update")["results"].clone();
    assert_eq!(results[0]["after"], 5, "{record:#}");
    assert_eq!(
        (&results[2]["ok"], &results[2]["reason"]),
        (&json!(false), &json!("operation_type_mismatch"))
    );
    // F-113
    assert_eq!(event_data(&record, "notice")["ref"], "2: operation_type_mismatch");
    let state = json!({"name": "x", "纯田真奈": {"好感度": 5}, "bag": ["rope"]});
    assert_eq!(chat.state().await, state);
    // A reply is read with the state left by the one before it.
    let later = chat.send("two").await;
    assert_eq!(event_data(&later, "state_update")["results"][0]["before"], 5);
    assert_eq!(chat.state().await["纯田真奈"]["好感度"], 9);
    // F-116: message, operation, before, after, analysis.
    let history = chat.server.get(&chat.path("/history")).await.json;
    let data = history["data"].as_array().unwrap();
    assert_eq!(data.len(), 4, "{history:#}");
    assert!(data[0]["message_id"].is_null() && data[0]["update_id"] == response["update_id"]);
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
    let earlier_state = chat.server.get(&chat.path(&format!("?at={}", id(&record)))).await.json;
    assert_eq!(earlier_state["state"], state);
    let wrong = chat.server.get(&chat.path("?at=msg_0")).await;
    assert_eq!((wrong.status, wrong.problem_code()), (404, "not_found"));
    // All or none.
    let body = json!({"operations": [["SET", "name", "y"], ["POP", "name"]], "atomic": true});
    let refusal = chat.server.post(&chat.path("/operations"), &body).await.json;
    // F-113
    assert_eq!((&refusal["state"]["name"], &refusal["update_id"]), (&json!("x"), &Value::Null));
    // The state survives a restart, and a plain message does not change it.
    let (before, StateChat { server, conversation }) = (chat.state().await, chat);
    let folder = server.stop().await;
    let config = test_config(&folder);
    let chat = StateChat { server: TestServer::serve(folder, config).await, conversation };
    assert_eq!(chat.state().await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_holds_replies_and_clients() {
    let mock = MockServer::start(vec![reply_script(
        &reply_with_updates("a", &[json!([["ADD", "hp", 50], ["SET", "mp", 1]])]),
        7,
    )])
    .await;
    let chat = StateChat::start(&mock).await;
    let schema = json!({"properties": {"hp": {"type": "integer", "maximum": 100}}});
    let response = chat.server.put(&chat.path("/schema"), &json!({"schema": schema})).await;
    assert_eq!((response.status, &response.json["mismatches"]), (200, &json!([])));
    assert_eq!(chat.server.get(&chat.path("")).await.json["schema"], schema);
    let change = chat.operate(json!([["SET", "hp", 101], ["SET", "hp", 60]])).await;
    // F-115
    assert_eq!(change["results"][0]["reason"], "schema_violation");
    assert_eq!(change["state"], json!({"hp": 60}));
    let record = chat.send("x").await;
    // F-115
    assert_eq!(event_data(&record, "state_update")["results"][0]["reason"], "schema_violation");
    assert_eq!(chat.state().await, json!({"hp": 60, "mp": 1}));
    // An existing violation is reported and stays.
    let strict = json!({"schema": {"properties": {"hp": {"maximum": 10}}}});
    let response = chat.server.put(&chat.path("/schema"), &strict).await.json;
    assert_eq!(response["mismatches"][0]["pointer"], "/hp");
    for (wrong, code) in [
        (json!({"schema": {"type": "nothing"}}), "invalid_schema"),
        (json!({}), "missing_field"),
        (json!({"schema": {"pattern": "a".repeat(100_000)}}), "schema_limit"),
    ] {
        let refusal = chat.server.put(&chat.path("/schema"), &wrong).await;
        assert_eq!((refusal.status, refusal.problem_code()), (422, code));
    }
    chat.server.put(&chat.path("/schema"), &json!({"schema": null})).await;
    assert_eq!(chat.operate(json!([["SET", "hp", 1000]])).await["state"]["hp"], 1000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_hold_what_clients_send() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let chat = StateChat::start(&mock).await;
    let operations: Vec<Value> = (0..10_002).map(|at| json!(["SET", "a", at])).collect();
    let deep = vec!["a"; 100].join(".");
    let response = chat
        .operate(json!([["SET", deep, 1], ["SET", "a", "x".repeat(70_000)], ["SET", "p".repeat(2000), 1]]))
        .await;
    for result in response["results"].as_array().unwrap() {
        assert_eq!(result["ok"], false, "{result}");
    }
    assert!(response["update_id"].is_null());
    let response = chat.operate(operations.into()).await;
    let last = response["results"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&last["ok"], &last["reason"]), (&json!(false), &json!("limit_exceeded")));
    // The history is bounded: the oldest updates become the base.
    for at in 0..1010 {
        chat.operate(json!([["SET", "n", at]])).await;
    }
    let first = chat.server.get(&chat.path("/history?limit=1")).await.json["data"][0].clone();
    assert!(first["position"].as_i64().unwrap() > 1, "{first}");
    assert_eq!(chat.state().await["n"], 1009);
    let refusal = chat.server.post(&chat.path("/rollback"), &json!({"to": null})).await;
    assert_eq!((refusal.status, refusal.problem_code()), (409, "state_gone"));
    assert_eq!(chat.state().await["n"], 1009);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_state_goes_back_to_any_message() {
    let set =
        |n: u32| reply_with_updates("x", &[json!([["SET", "n", n]]), json!([["SET", format!("k{n}"), n]])]);
    let mock = MockServer::start(vec![
        reply_script(&set(1), 9),
        reply_script(&reply_with_updates("nothing", &[]), 9),
        reply_script(&set(2), 9),
        reply_script(&set(3), 9),
    ])
    .await;
    let chat = StateChat::start(&mock).await;
    let first = chat.send("1").await;
    let silent = chat.send("2").await;
    chat.send("3").await;
    let update = chat.operate(json!([["SET", "n", 20]])).await["update_id"].clone();
    chat.send("4").await;
    assert_eq!(chat.state().await, json!({"n": 3, "k1": 1, "k2": 2, "k3": 3}));
    let rollback = async |to: &Value| chat.server.post(&chat.path("/rollback"), &json!({"to": to})).await;
    // F-116
    assert_eq!(rollback(&update).await.json, json!({"taken_back": 2, "state": {"n": 20, "k1": 1, "k2": 2}}));
    // F-116: also an update that changed nothing.
    let answer = rollback(&silent["message_id"]).await;
    assert_eq!(answer.json, json!({"taken_back": 3, "state": {"n": 1, "k1": 1}}));
    assert_eq!(rollback(&first["message_id"]).await.json["taken_back"], 0);
    assert_eq!(chat.server.get(&chat.path("/history")).await.json["data"].as_array().unwrap().len(), 2);
    assert_eq!(rollback(&update).await.status, 404);
    assert_eq!(rollback(&json!(7)).await.problem_code(), "invalid_field");
    // The next message continues from there.
    chat.send("5").await;
    assert_eq!(chat.state().await, json!({"n": 3, "k1": 1, "k3": 3}));
    assert_eq!(rollback(&Value::Null).await.json["state"], json!({}));
    assert_eq!(chat.state().await, json!({}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_message_in_its_place_takes_its_updates_back_first() {
    let add = |text: &str, n: u32| reply_script(&reply_with_updates(text, &[json!([["ADD", "n", n]])]), 9);
    let mock = MockServer::start(vec![add("a", 1), add("b", 10), add("c", 100), add("d", 1000)]).await;
    let chat = StateChat::start(&mock).await;
    chat.operate(json!([["SET", "n", 0]])).await;
    let first = chat.send("one").await;
    let (second, third) = (chat.send("two").await, chat.send("three").await);
    assert_eq!(chat.state().await, json!({"n": 111}));
    let regenerated = chat.regenerate(&second).await;
    // F-116: the new reply starts from 1.
    assert_eq!(event_data(&regenerated, "state_update")["results"][0]["before"], 1, "{regenerated:#}");
    assert_eq!(chat.state().await, json!({"n": 1001}));
    // R-79: the same prompt with the same history, and superseded messages stay readable.
    let requests = mock.requests();
    assert_eq!(requests[3].body["messages"], requests[1].body["messages"]);
    assert_eq!(regenerated["request"]["text"], "two");
    for (old, status) in
        [(&first, "completed"), (&second, "superseded"), (&third, "superseded"), (&regenerated, "completed")]
    {
        let record = chat.server.get(&message_path(old, "")).await.json;
        assert_eq!((&record["status"], &record["reply"]), (&json!(status), &old["reply"]));
    }
    // R-79: what comes then is told of the new one, and not of the old ones.
    chat.send("four").await;
    let prompt = mock.requests().last().unwrap().body["messages"].to_string();
    assert!(
        prompt.contains("\\nd\\n") && !prompt.contains("\\nb\\n") && !prompt.contains("\\nc\\n"),
        "{prompt}"
    );
    // Running work is given up.
    let gate = Gate::new();
    let slow = vec![delta_step("<content>\nslow"), Step::Wait(gate)];
    let mock = MockServer::start(vec![slow, add("e", 5)]).await;
    let chat = StateChat::start(&mock).await;
    chat.operate(json!([["SET", "n", 0]])).await;
    let request = json!({"text": "x", "dialect": "filament", "conversation_id": chat.conversation});
    let running = chat.server.post("/api/v1/messages", &request).await.json;
    mock.wait_until(|calls| calls.started == 1).await;
    let regenerated = chat.regenerate(&running).await;
    assert_eq!(regenerated["status"], "completed");
    assert_eq!(chat.server.get(&message_path(&running, "")).await.json["status"], "superseded");
    assert_eq!(chat.state().await, json!({"n": 5}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_failed_changes_nothing_and_nobody_changes_under_a_message() {
    let updates = reply_with_updates("a", &[json!([["SET", "n", 1]])]);
    let broken = vec![delta_step(&updates), Step::Cut];
    let gate = Gate::new();
    let mut waiting_script = vec![delta_step(&updates), Step::Wait(gate.clone())];
    waiting_script.extend(reply_script("", 1));
    let mock = MockServer::start(vec![broken, waiting_script]).await;
    let chat = StateChat::start(&mock).await;
    let failed_record = chat.send("x").await;
    assert_eq!(failed_record["status"], "failed", "{failed_record:#}");
    // R-68
    assert_eq!(chat.state().await, json!({}));
    let request = json!({"text": "x", "dialect": "filament", "conversation_id": chat.conversation, "extensions": true, "output_protocol": "jsonseq_v1"});
    let mut stream = chat.server.open_stream(&request).await;
    stream.read_until("state_update").await;
    // Operations apply at the end of the reply only.
    assert_eq!(chat.state().await, json!({}));
    let busy = chat.server.post(&chat.path("/operations"), &json!({"operations": [["SET", "n", 2]]})).await;
    assert_eq!((busy.status, busy.problem_code()), (409, "conversation_busy"));
    gate.open();
    stream.read_rest().await;
    assert_eq!(chat.state().await, json!({"n": 1}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_deleted_leaves_the_state_and_not_its_history() {
    let word = "quixotic-zephyr-kept";
    let set = |n: u32, text: &str| {
        reply_script(&reply_with_updates("x", &[json!([["SET", format!("k{n}"), text]])]), 9)
    };
    let mock = MockServer::start(vec![set(1, "a"), set(2, word), set(3, "c")]).await;
    let chat = StateChat::start(&mock).await;
    let (first, second, third) = (chat.send("1").await, chat.send("2").await, chat.send("3").await);
    chat.operate(json!([["SET", "k2", "b"]])).await;
    assert_eq!(chat.server.call("delete", &message_path(&second, ""), None).await.status, 204);
    // R-79: the present state stays.
    assert_eq!(chat.state().await, json!({"k1": "a", "k2": "b", "k3": "c"}));
    let history = chat.server.get(&chat.path("/history")).await.json;
    let ids: Vec<&Value> =
        history["data"].as_array().unwrap().iter().map(|update| &update["message_id"]).collect();
    assert_eq!(ids, [&first["message_id"], &third["message_id"], &Value::Null]);
    assert_eq!(
        (&history["data"][0]["reversible"], &history["data"][1]["reversible"]),
        (&json!(false), &json!(true))
    );
    let rollback = async |to: &Value| chat.server.post(&chat.path("/rollback"), &json!({"to": to})).await;
    for unreachable_target in [&first["message_id"], &Value::Null] {
        let refusal = rollback(unreachable_target).await;
        // R-79
        assert_eq!((refusal.status, refusal.problem_code()), (409, "state_gone"));
    }
    let refusal = chat.server.call("post", &message_path(&first, "/regenerate"), None).await;
    // R-79
    assert_eq!((refusal.status, refusal.problem_code()), (409, "state_gone"));
    assert_eq!(chat.server.get(&message_path(&first, "")).await.json["status"], "completed");
    let regenerated = chat.regenerate(&third).await;
    assert_eq!(regenerated["status"], "completed");
    // Its value is part of the base, with its position.
    assert_eq!(chat.state().await, json!({"k1": "a", "k2": word, "k3": "c"}));
    chat.operate(json!([["DELETE", "k2"]])).await;
    let path = format!("/api/v1/conversations/{}", chat.conversation);
    assert_eq!(chat.server.call("delete", &path, None).await.status, 204);
    assert_eq!(chat.server.get(&chat.path("")).await.status, 404);
    // R-79: deleting a conversation deletes its state.
    wait_until_erased(&chat.server.folder, word).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_state_is_of_its_owner() {
    let mock =
        MockServer::start(vec![reply_script(&reply_with_updates("a", &[json!([["SET", "n", 1]])]), 9)]).await;
    let mut chat = StateChat::start(&mock).await;
    let key = async |server: &TestServer, rights: &str| {
        let response = server.post("/api/v1/keys", &json!({"name": rights, "rights": rights})).await.json;
        response["key"].as_str().unwrap().to_owned()
    };
    let message = chat.send("x").await;
    let admin = key(&chat.server, "admin").await;
    chat.server.set_key(Some(&admin));
    assert_eq!(chat.state().await, json!({"n": 1}));
    let other = key(&chat.server, "plain").await;
    chat.server.set_key(Some(&other));
    for (method, path, body) in [
        ("get", chat.path(""), None),
        ("get", chat.path("/history"), None),
        ("put", chat.path("/schema"), Some(json!({"schema": {}}))),
        ("post", chat.path("/operations"), Some(json!({"operations": [["SET", "n", 2]]}))),
        ("post", chat.path("/rollback"), Some(json!({"to": null}))),
        ("post", message_path(&message, "/regenerate"), None),
    ] {
        let answer = chat.server.call(method, &path, body.map(|body| body.to_string()).as_deref()).await;
        // F-116
        assert_eq!((answer.status, answer.problem_code()), (404, "not_found"), "{method} {path}");
    }
    chat.server.set_key(Some(&admin));
    assert_eq!(chat.state().await, json!({"n": 1}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_of_an_agent_begins_with_the_state() {
    let add = reply_with_updates("a", &[json!([["SET", "n", 1]])]);
    let mock = MockServer::start(vec![reply_script(&add, 9)]).await;
    let server = TestServer::start_default(&mock).await;
    let body = json!({"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "x"}],
        "forwardedProps": {"tambour": {"dialect": "filament"}}});
    // A patch needs a snapshot before it.
    let first = state_events(&server.post("/ag-ui", &body).await.text);
    assert_eq!(first, [("STATE_SNAPSHOT".to_owned(), json!({})), patch_of_n(1)]);
    // F-116
    let second = state_events(&server.post("/ag-ui", &body).await.text);
    assert_eq!(second[0], ("STATE_SNAPSHOT".to_owned(), json!({"n": 1})));
}

/// Snapshots and patches of the state in a stream.
fn state_events(stream: &str) -> Vec<(String, Value)> {
    let events = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    let events = events.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let state_event = |event: Value| {
        let field = if event["type"] == "STATE_SNAPSHOT" { "snapshot" } else { "delta" };
        let kind = event["type"].as_str()?.to_owned();
        kind.starts_with("STATE_").then(|| (kind, event[field].clone()))
    };
    events.filter_map(state_event).collect()
}

/// The patch that sets `n`.
fn patch_of_n(n: i64) -> (String, Value) {
    ("STATE_DELTA".to_owned(), json!([{"op": "add", "path": "/n", "value": n}]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thread_begins_with_the_state_of_its_client() {
    let add = reply_with_updates("a", &[json!([["SET", "n", 10], ["ADD", "nothing", 1]])]);
    let mock = MockServer::start(vec![reply_script(&add, 9)]).await;
    let server = TestServer::start_default(&mock).await;
    let mut body = json!({"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "x"}],
        "state": {"hp": 1, "a.b": [2]}, "forwardedProps": {"tambour": {"dialect": "filament"}}});
    let stream = server.post("/ag-ui", &body).await.text;
    let initial_state = json!({"hp": 1, "a.b": [2]});
    assert_eq!(state_events(&stream), [("STATE_SNAPSHOT".to_owned(), initial_state), patch_of_n(10)]);
    assert_eq!(stream.matches("tambour.state_rejected").count(), 1, "{stream}");
    // From here on the server's state counts.
    body["state"] = json!({"hp": 99});
    let second_events = state_events(&server.post("/ag-ui", &body).await.text);
    assert_eq!(second_events[0].1, json!({"hp": 1, "a.b": [2], "n": 10}));
    // The AI SDK gets operations, patch and refusals.
    let chat = json!({"id": "c", "messages": [{"role": "user", "parts": [{"type": "text", "text": "x"}]}],
        "tambour": {"dialect": "filament"}});
    let stream = server.post("/api/chat", &chat).await.text;
    let parts =
        stream.lines().filter_map(|line| line.strip_prefix("data: ").filter(|line| *line != "[DONE]"));
    let parts = parts.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let state_parts: Vec<Value> = parts.filter(|part| part["type"] == "data-state").collect();
    assert_eq!(state_parts[0]["data"]["ops"], json!([["SET", "n", 10]]));
    assert_eq!(state_parts[0]["data"]["patch"], patch_of_n(10).1);
    assert_eq!(
        (&state_parts[0]["id"], &state_parts[0]["data"]["applied"]),
        (&json!("state-1"), &json!(true))
    );
    assert_eq!(state_parts[1]["data"]["ops"], json!([["ADD", "nothing", 1]]));
    assert_eq!(
        (&state_parts[1]["id"], &state_parts[1]["data"]["applied"]),
        (&json!("state-2"), &json!(false))
    );
    assert!(state_parts[1]["data"]["error"].as_str().is_some_and(|error| !error.is_empty()));
}

#[tokio::test]
async fn many_operations_have_results_at_both_ends_and_counts() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let chat = StateChat::start(&mock).await;
    let sets: Vec<Value> = (0..300).map(|at| json!(["SET", "a", at])).collect();
    let change = chat.operate(Value::from(sets.clone())).await;
    let counts = |operations: u32, applied: u32, left_out: u32| json!({"operations": operations, "applied": applied, "refused": operations - applied, "left_out": left_out});
    assert_eq!(change["counts"], counts(300, 300, 200));
    let indexes: Vec<u64> = change["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["index"].as_u64().unwrap())
        .collect();
    assert_eq!(indexes, (0..50).chain(250..300).collect::<Vec<u64>>());
    assert_eq!(change["state"], json!({"a": 299}));
    let body = json!({"operations": sets, "results": "all"});
    let full_result = chat.server.post(&chat.path("/operations"), &body).await.json;
    assert_eq!(
        (full_result["results"].as_array().unwrap().len(), &full_result["counts"]),
        (300, &counts(300, 300, 0))
    );
    let short_result = chat.operate(json!([["SET", "b", 1], ["POP", "b"]])).await;
    assert_eq!(
        (short_result["results"].as_array().unwrap().len(), &short_result["counts"]),
        (2, &counts(2, 1, 0))
    );
    let invalid =
        chat.server.post(&chat.path("/operations"), &json!({"operations": [], "results": "some"})).await;
    assert_eq!((invalid.status, invalid.problem_code()), (422, "invalid_field"));
}

/// 150,000 operations, in a dozen requests at once: above the limit they are counted and not stored.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_operations_takes_no_more_than_its_body_many_times() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let process = crate::server_process::ServerProcess::start(&mock, false);
    let body = format!(r#"{{"operations": [{}]}}"#, vec![r#"["SET", "a", 1]"#; 150_000].join(", "));
    let mut paths = Vec::new();
    for _ in 0..12 {
        let response = process.server.post("/api/v1/conversations", &json!({})).await.json;
        let id = response["conversation_id"].as_str().unwrap();
        paths.push(format!("/api/v1/conversations/{id}/state/operations"));
    }
    let before = process.memory().unwrap();
    let peak = std::sync::atomic::AtomicU64::new(before);
    let requests = futures_util::future::join_all(
        paths.iter().map(|path| process.server.call("post", path, Some(&body))),
    );
    let memory_watch = async {
        loop {
            peak.fetch_max(process.memory().unwrap(), std::sync::atomic::Ordering::Relaxed);
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let answers = tokio::select! {
        answers = requests => answers,
        () = memory_watch => unreachable!(),
    };
    for answer in &answers {
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert!(answer.text.len() < 64 << 10, "{}", answer.text.len());
        let counts = &answer.json["counts"];
        assert_eq!((&counts["operations"], &counts["applied"]), (&json!(150_000), &json!(10_000)));
        let notices = answer.json["notices"].to_string();
        assert!(notices.contains("10001 to 149999: limit_exceeded"), "{notices}");
    }
    // Twelve bodies of 2.5 MB at most 16 times, and the stored part of each once.
    let bodies = (12 * body.len() as u64) >> 10;
    let peak = peak.into_inner() - before;
    assert!(peak < 16 * bodies, "{peak} KiB for {bodies} KiB of bodies");
    let stored_memory = process.memory().unwrap() - before;
    assert!(stored_memory < 4 * bodies, "{stored_memory} KiB are kept of {bodies} KiB of bodies");
}

#[tokio::test]
async fn changes_of_a_state_are_based_on_what_was_seen() {
    let server = TestServer::start_default(&MockServer::start(vec![]).await).await;
    let response = server.post("/api/v1/conversations", &json!({})).await.json;
    let place = format!("/api/v1/conversations/{}/state", response["conversation_id"].as_str().unwrap());
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
        assert_eq!((stale.status, stale.problem_code()), (412, "changed_meanwhile"), "{}", stale.text);
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
    let rolled_back = send("POST", "/rollback", json!({"to": null}), &tag(&schema)).await;
    assert_eq!(
        (rolled_back.status, tag(&rolled_back)),
        (200, tag(&server.get(&place).await)),
        "{}",
        rolled_back.text
    );
    assert_ne!(tag(&rolled_back), tag(&schema));
    assert_eq!(send("POST", "/operations", set(3), "*").await.status, 200);
    let malformed = send("POST", "/operations", set(3), "3").await;
    assert_eq!((malformed.status, malformed.problem_code()), (400, "malformed_request"));
}
