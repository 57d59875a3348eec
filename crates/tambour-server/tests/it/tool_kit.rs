//! A server whose tools are webhooks of the test, and replies that call them.

use serde_json::{Value, json};
use tambour_server::Config;

use crate::client::{Event, numbered_events};
use crate::mock::{MockServer, Step, reply_script, response_script};
use crate::server::TestServer;

/// A model, a webhook and a server between them.
pub(crate) struct ToolKit {
    pub(crate) model: MockServer,
    pub(crate) webhook: MockServer,
    pub(crate) server: TestServer,
}

/// Allows webhooks on this machine.
pub(crate) fn allow_local_webhooks(config: &mut Config) {
    config.tools.allowed_hosts = vec!["127.0.0.1".to_owned()];
    config.tools.allow_private = true;
}

impl ToolKit {
    /// Starts model and webhook with these scripts, and registers the tools `lint` and `edit`.
    pub(crate) async fn new(replies: &[&str], answers: Vec<Vec<Step>>) -> ToolKit {
        let replies = replies.iter().map(|text| reply_script(text, 7)).collect();
        ToolKit::new_with(replies, answers, |_| {}).await
    }

    pub(crate) async fn new_with(
        replies: Vec<Vec<Step>>,
        answers: Vec<Vec<Step>>,
        change: impl FnOnce(&mut Config),
    ) -> ToolKit {
        let (model, webhook) = (MockServer::start(replies).await, MockServer::start(answers).await);
        let server = TestServer::start(&model, |config| {
            allow_local_webhooks(config);
            change(config);
        })
        .await;
        let kit = ToolKit { model, webhook, server };
        for name in ["lint", "edit"] {
            kit.register(name, &json!({})).await;
        }
        kit
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.webhook.address)
    }

    /// Registers a tool of the webhook, with these fields over the defaults.
    pub(crate) async fn register(&self, name: &str, fields: &Value) {
        let mut tool = json!({"schema": tool_schema(), "executor": {"kind": "http", "url": self.url()}});
        tool.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let answer = self.server.put(&format!("/api/v1/tools/{name}"), &tool).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }

    /// All events of a message with both tools.
    pub(crate) async fn run(&self, fields: &Value) -> Vec<Event> {
        self.server.open_stream(&tool_request(fields)).await.read_checked().await
    }

    /// The last prompt of the model.
    pub(crate) fn last_prompt(&self) -> String {
        let requests = self.model.requests();
        let messages = requests.last().unwrap().body["messages"].as_array().unwrap().clone();
        messages.last().unwrap()["content"].as_str().unwrap().to_owned()
    }
}

pub(crate) fn tool_schema() -> Value {
    json!({"type": "object", "properties": {"userInput": {"type": "string"}}, "required": ["userInput"]})
}

/// Part of a request that selects English texts.
pub(crate) fn english_option() -> Value {
    json!({"contract": {"options": {"text_language": "en"}}})
}

/// A request with both tools.
pub(crate) fn tool_request(fields: &Value) -> Value {
    let mut request = json!({"text": "x", "dialect": "aiplan", "output_protocol": "jsonseq_v1", "extensions": true,
        "tools": ["lint", "edit"]});
    request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    request
}

/// A reply that calls these tools with these `userInput` texts.
pub(crate) fn plan_reply(calls: &[(&str, &str)]) -> String {
    let calls: Vec<Value> =
        calls.iter().map(|(name, input)| json!({"name": name, "args": {"userInput": input}})).collect();
    let plan = json!({"thought": "Tools are needed.", "response_mode": "TOOL_EXECUTION",
        "direct_response": null, "tool_calls": calls});
    format!("```json\n{plan}\n```")
}

/// A reply that answers.
pub(crate) fn answer_reply(text: &str) -> String {
    let plan = json!({"thought": "Now I know.", "response_mode": "KNOWLEDGE_QA", "direct_response": text, "tool_calls": []});
    format!("```json\n{plan}\n```")
}

/// A webhook's answer with this value.
pub(crate) fn webhook_answer(value: &Value) -> Vec<Step> {
    response_script(200, "application/json", &value.to_string())
}

/// Data of all events of that name.
pub(crate) fn event_data<'a>(events: &'a [Event], name: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event.name == name).map(|event| &event.data).collect()
}

/// The code of each result in order, `ok` for successes.
pub(crate) fn result_codes(events: &[Event]) -> Vec<String> {
    let code = |data: &&Value| match data["ok"].as_bool() {
        Some(true) => "ok".to_owned(),
        _ => data["error"]["code"].as_str().unwrap().to_owned(),
    };
    event_data(events, "tool_result").iter().map(code).collect()
}

/// Checks a stream with calls: each call has one result, begins before it where it has run, and is a
/// valid stream for a client without extensions.
pub(crate) fn check_tool_stream(events: &[Event]) {
    for call in event_data(events, "tool_call") {
        let id = &call["call_id"];
        let place = |name: &str| -> Vec<usize> {
            let call_position = |(at, event): (usize, &Event)| {
                (event.name == name && event.data["call_id"] == *id).then_some(at)
            };
            events.iter().enumerate().filter_map(call_position).collect()
        };
        let (starts, ends) = (place("tool_start"), place("tool_result"));
        assert_eq!(ends.len(), 1, "{id}: {events:#?}");
        assert!(starts.len() <= 1 && starts.iter().all(|start| *start < ends[0]), "{id}: {events:#?}");
    }
    let extension = |name: &str| matches!(name, "plan" | "tool_call" | "tool_start" | "tool_result");
    let plain: Vec<Event> = events.iter().filter(|event| !extension(&event.name)).cloned().collect();
    crate::client::check_stream(&plain); // X-010
    assert!(numbered_events(events).len() > plain.len() / 2);
}
