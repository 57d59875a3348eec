//! A server whose tools are webhooks of the test, and replies that call them.

use serde_json::{Value, json};
use tambour_server::Config;

use crate::client::{Event, numbered};
use crate::mock::{Mock, Step, reply, whole};
use crate::server::Tambour;

/// A model, a webhook and a server between them.
pub(crate) struct Kit {
    pub(crate) model: Mock,
    pub(crate) hook: Mock,
    pub(crate) server: Tambour,
}

/// Allows webhooks on this machine.
pub(crate) fn local(config: &mut Config) {
    config.tools.allowed_hosts = vec!["127.0.0.1".to_owned()];
    config.tools.allow_private = true;
}

impl Kit {
    /// Starts model and webhook with these scripts, and registers the tools `lint` and `edit`.
    pub(crate) async fn new(replies: &[&str], answers: Vec<Vec<Step>>) -> Kit {
        let replies = replies.iter().map(|text| reply(text, 7)).collect();
        Kit::with(replies, answers, |_| {}).await
    }

    pub(crate) async fn with(
        replies: Vec<Vec<Step>>,
        answers: Vec<Vec<Step>>,
        more: impl FnOnce(&mut Config),
    ) -> Kit {
        let (model, hook) = (Mock::start(replies).await, Mock::start(answers).await);
        let server = Tambour::start(&model, |config| {
            local(config);
            more(config);
        })
        .await;
        let kit = Kit { model, hook, server };
        for name in ["lint", "edit"] {
            kit.register(name, &json!({})).await;
        }
        kit
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.hook.address)
    }

    /// Registers a tool of the webhook, with these fields over the defaults.
    pub(crate) async fn register(&self, name: &str, more: &Value) {
        let mut tool = json!({"schema": schema(), "executor": {"kind": "http", "url": self.url()}});
        tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = self.server.put(&format!("/api/v1/tools/{name}"), &tool).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }

    /// All events of a message with both tools.
    pub(crate) async fn run(&self, more: &Value) -> Vec<Event> {
        self.server.stream(&ask(more)).await.whole().await
    }

    /// The last prompt of the model.
    pub(crate) fn told(&self) -> String {
        let asked = self.model.asked();
        let messages = asked.last().unwrap().body["messages"].as_array().unwrap().clone();
        messages.last().unwrap()["content"].as_str().unwrap().to_owned()
    }
}

pub(crate) fn schema() -> Value {
    json!({"type": "object", "properties": {"userInput": {"type": "string"}}, "required": ["userInput"]})
}

/// Part of a request that selects English texts.
pub(crate) fn english() -> Value {
    json!({"contract": {"options": {"text_language": "en"}}})
}

/// A request with both tools.
pub(crate) fn ask(more: &Value) -> Value {
    let mut ask = json!({"text": "x", "dialect": "aiplan", "output_protocol": "jsonseq_v1", "extensions": true,
        "tools": ["lint", "edit"]});
    ask.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    ask
}

/// A reply that calls these tools with these `userInput` texts.
pub(crate) fn plan(calls: &[(&str, &str)]) -> String {
    let calls: Vec<Value> =
        calls.iter().map(|(name, input)| json!({"name": name, "args": {"userInput": input}})).collect();
    let plan = json!({"thought": "Tools are needed.", "response_mode": "TOOL_EXECUTION",
        "direct_response": null, "tool_calls": calls});
    format!("```json\n{plan}\n```")
}

/// A reply that answers.
pub(crate) fn answer(text: &str) -> String {
    let plan = json!({"thought": "Now I know.", "response_mode": "KNOWLEDGE_QA", "direct_response": text, "tool_calls": []});
    format!("```json\n{plan}\n```")
}

/// A webhook's answer with this value.
pub(crate) fn gives(value: &Value) -> Vec<Step> {
    whole(200, "application/json", &value.to_string())
}

/// Data of all events of that name.
pub(crate) fn all<'a>(events: &'a [Event], name: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event.name == name).map(|event| &event.data).collect()
}

/// The code of each result in order, `ok` for successes.
pub(crate) fn results(events: &[Event]) -> Vec<String> {
    let code = |data: &&Value| match data["ok"].as_bool() {
        Some(true) => "ok".to_owned(),
        _ => data["error"]["code"].as_str().unwrap().to_owned(),
    };
    all(events, "tool_result").iter().map(code).collect()
}

/// Checks a stream with calls: each call has one result, begins before it where it has run, and is a
/// valid stream for a client without extensions.
pub(crate) fn sound(events: &[Event]) {
    for call in all(events, "tool_call") {
        let id = &call["call_id"];
        let place = |name: &str| -> Vec<usize> {
            let of = |(at, event): (usize, &Event)| {
                (event.name == name && event.data["call_id"] == *id).then_some(at)
            };
            events.iter().enumerate().filter_map(of).collect()
        };
        let (starts, ends) = (place("tool_start"), place("tool_result"));
        assert_eq!(ends.len(), 1, "{id}: {events:#?}");
        assert!(starts.len() <= 1 && starts.iter().all(|start| *start < ends[0]), "{id}: {events:#?}");
    }
    let extension = |name: &str| matches!(name, "plan" | "tool_call" | "tool_start" | "tool_result");
    let plain: Vec<Event> = events.iter().filter(|event| !extension(&event.name)).cloned().collect();
    crate::client::check(&plain); // X-010
    assert!(numbered(events).len() > plain.len() / 2);
}
