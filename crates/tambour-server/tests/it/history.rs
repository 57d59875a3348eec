//! Earlier messages of a conversation in the prompt (R-73).

use serde_json::{Value, json};
use tambour::tool::{RegisteredTool, ToolRegistry};
use tambour::verdict::Contract;
use tambour::{Options, Profile};

use crate::client::{Event, joined_text, stream_message_id};
use crate::mock::{GOOD_REPLY, Gate, MockServer, Step, delta_step, finish_steps, reply_script};
use crate::server::TestServer;
use crate::tool_kit::{ToolKit, answer_reply, event_data, plan_reply, webhook_answer};

/// A model with these replies, a server, and one conversation.
struct ChatTest {
    mock: MockServer,
    server: TestServer,
    conversation: Value,
}

impl ChatTest {
    async fn new(mut scripts: Vec<Vec<Step>>) -> ChatTest {
        // The last question is always answered.
        scripts.push(reply_script("Last.", 9));
        let mock = MockServer::start(scripts).await;
        let server = TestServer::start(&mock, |config| config.timeouts.attempts = 1).await;
        let response = server.post("/api/v1/conversations", &json!({})).await.json;
        ChatTest { mock, server, conversation: response["conversation_id"].clone() }
    }

    fn request(&self, text: &str, fields: &Value) -> Value {
        let mut request = json!({"text": text, "dialect": "thinkingml", "output_protocol": "jsonseq_v1",
            "conversation_id": self.conversation});
        request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        request
    }

    async fn say(&self, text: &str, fields: &Value) -> Vec<Event> {
        self.server.open_stream(&self.request(text, fields)).await.read_checked().await
    }

    /// Sends one more message, and returns the prompt of the model.
    async fn next_prompt(&self, fields: &Value) -> Vec<(String, String)> {
        let mut request = json!({"dialect": "plain"});
        request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        self.say("last", &request).await;
        self.last_prompt()
    }

    /// The last prompt of the model.
    fn last_prompt(&self) -> Vec<(String, String)> {
        let requests = self.mock.requests();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let messages = requests.last().unwrap().body["messages"].as_array().unwrap();
        messages.iter().map(|message| (text(&message["role"]), text(&message["content"]))).collect()
    }

    /// A message that is stopped when an event of that name has come.
    async fn say_and_stop(&self, text: &str, event_name: &str) -> Vec<Event> {
        let mut stream = self.server.open_stream(&self.request(text, &json!({}))).await;
        let mut events = stream.read_until(event_name).await;
        self.server
            .call("post", &format!("/api/v1/messages/{}/cancel", stream_message_id(&events)), None)
            .await;
        events.extend(stream.read_rest().await);
        assert_eq!(events.last().unwrap().data["finish_reason"], "cancelled");
        events
    }
}

fn owned_pairs(messages: &[(&str, &str)]) -> Vec<(String, String)> {
    messages.iter().map(|(role, content)| ((*role).to_owned(), (*content).to_owned())).collect()
}

/// Checks a reply strictly against its contract.
fn assert_strict(dialect: &str, reply: &str) {
    let mut options = Options::default();
    options.profile = Profile::Strict;
    options.tools =
        Some(ToolRegistry::new([RegisteredTool::new("lint", json!({"type": "object"})).unwrap()]));
    let verdict = Contract::from_name(dialect).unwrap().check(reply.as_bytes(), &options);
    assert!(verdict.passed(), "{:#?}\n{reply}", verdict.findings);
}

/// A reply of a model that half knows its format: a draft, wrong numbers, no end.
const SLOPPY_REPLY: &str = "<think>a secret draft</think>\n<thinking>\n<phase id=\"3\">\n<title>Look</title>\nfirst thought\n\
    <phase id=\"3\">\n<title>Decide</title>\nsecond thought\n</thinking>\n<final>\nThe answer is 4.";

#[tokio::test]
async fn a_reply_goes_back_as_it_should_have_been_written() {
    let chat = ChatTest::new(vec![reply_script(SLOPPY_REPLY, 9)]).await;
    let events = chat.say("one", &json!({})).await;
    let prompt = chat.next_prompt(&json!({})).await;
    assert_eq!(prompt.len(), 3);
    assert_eq!(prompt[0], ("user".to_owned(), "one".to_owned()));
    let (role, written) = &prompt[1];
    assert_eq!(role, "assistant");
    assert_strict("thinkingml", written); // R-73
    assert!(!written.contains("secret"), "no draft goes back: {written}"); // R-73
    assert!(
        written.contains("<phase id=\"2\">\n<title>Decide</title>\nsecond thought\n</phase>"),
        "{written}"
    );
    assert!(written.contains("<final>\nThe answer is 4.\n"), "{written}");
    // The record has both.
    let record = chat.server.wait_ended(&stream_message_id(&events)).await;
    assert_eq!((&record["reply"], &record["history"]), (&json!(SLOPPY_REPLY), &json!(written)));
}

#[tokio::test]
async fn a_reply_without_a_fault_goes_back_word_for_word() {
    let line =
        "{\"event\":\"final_delta\",\"data\":{\"text\":\"Four.\"}}\n{\"event\":\"final_end\",\"data\":{}}";
    let phase = "{\"event\":\"phase_start\",\"data\":{\"id\":1,\"title\":\"T\"}}\n{\"event\":\"thinking_end\",\"data\":{}}";
    let lines = format!("{{\"event\":\"thinking_start\",\"data\":{{}}}}\n{phase}\n{line}\n");
    let round = json!({"assessment": {"understanding_level": 60, "has_questions": true, "expressed_understanding": false,
        "reasoning": "r"}, "response": {"咨询师": "好的。"}, "should_exit": false, "exit_reason": "e"});
    let plan_text = plan_reply(&[("lintSRSDocument", "check it")]);
    for (dialect, raw) in [
        ("thinkingml", GOOD_REPLY),
        ("auto", GOOD_REPLY),
        ("jsonseq", &lines),
        ("aiplan", &answer_reply("Four.")),
        ("aiplan", &plan_text),
        ("ai_say", &round.to_string()),
        ("plain", "Four."),
    ] {
        let chat = ChatTest::new(vec![reply_script(raw, 9)]).await;
        let events = chat.say("one", &json!({"dialect": dialect})).await;
        assert_eq!(chat.next_prompt(&json!({})).await[1].1, raw, "{dialect}"); // R-73
        let record = chat.server.wait_ended(&stream_message_id(&events)).await;
        assert_eq!(record.get("history"), None, "{dialect}: {record:#}");
    }
}

#[tokio::test]
async fn of_a_reply_that_was_replaced_goes_back_what_was_shown() {
    for protocol in ["jsonseq_v1", "legacy"] {
        for (raw, reason) in [("<<ParsingError>>", "stop"), (&GOOD_REPLY[..80], "length")] {
            let mut script = vec![delta_step(raw)];
            script.extend(finish_steps(reason));
            let chat = ChatTest::new(vec![script]).await;
            let english = json!({"text_language": "en"});
            let fields = json!({"output_protocol": protocol, "contract": {"options": english}});
            let events = chat.say("one", &fields).await;
            assert!(events.last().unwrap().data["metadata"]["fallback_reason"].is_string());
            let prompt = chat.next_prompt(&json!({})).await;
            let sentence = "Sorry, my reply had a format problem. Please try your request again.";
            assert_eq!(prompt, owned_pairs(&[("user", "one"), ("assistant", sentence), ("user", "last")])); // R-73
        }
    }
}

#[tokio::test]
async fn prose_goes_back_as_prose() {
    for (dialect, reason) in crate::reask::PROSE_REASONS {
        let chat =
            ChatTest::new(vec![reply_script("<think>hm</think>Let us look at it once more.", 9)]).await;
        let events = chat.say("one", &json!({"dialect": dialect, "max_reasks": 0})).await;
        assert_eq!(events.last().unwrap().data["metadata"]["unused_reason"], reason);
        let prompt = chat.next_prompt(&json!({})).await;
        let reply_message = ("assistant", "Let us look at it once more.");
        assert_eq!(prompt, owned_pairs(&[("user", "one"), reply_message, ("user", "last")]), "{dialect}"); // R-70
    }
}

#[tokio::test]
async fn of_plain_text_the_answer_goes_back() {
    let chat = ChatTest::new(vec![reply_script("<think>2 and 2</think>\nFour.", 9)]).await;
    chat.say("one", &json!({"dialect": "plain"})).await;
    let prompt = chat.next_prompt(&json!({})).await;
    assert_eq!(prompt, owned_pairs(&[("user", "one"), ("assistant", "Four."), ("user", "last")])); // R-73
}

#[tokio::test]
async fn a_reply_that_was_stopped_goes_back_as_far_as_it_answered() {
    let reply_start = "<thinking>\n<phase id=\"1\">\n<title>Look</title>\na thought\n";
    let partial_reply = format!("{reply_start}</phase>\n</thinking>\n<final>\nHalf an answer \n");
    // Stopped within its answer.
    let chat = ChatTest::new(vec![vec![delta_step(&partial_reply), Step::WaitDisconnect]]).await;
    chat.say_and_stop("one", "final_delta").await;
    let prompt = chat.next_prompt(&json!({})).await;
    assert_strict("thinkingml", &prompt[1].1); // R-73
    assert!(prompt[1].1.contains("<final>\nHalf an answer\n"), "{prompt:?}");
    // Stopped before it: no reply is sent back, and the question is joined to the next one.
    let chat = ChatTest::new(vec![vec![delta_step(reply_start), Step::WaitDisconnect]]).await;
    let events = chat.say_and_stop("one", "phase_start").await;
    assert_eq!(chat.next_prompt(&json!({})).await, owned_pairs(&[("user", "one\n\nlast")])); // R-73
    assert_eq!(chat.server.wait_ended(&stream_message_id(&events)).await["history"], Value::Null);
}

#[tokio::test]
async fn a_reply_that_failed_goes_back_as_far_as_it_answered() {
    let partial_reply = "<thinking>\n<phase id=\"1\">\n<title>T</title>\nt\n</phase>\n</thinking>\n<final>\nHalf an answer \n";
    let chat = ChatTest::new(vec![vec![delta_step(partial_reply), Step::Cut]]).await;
    assert_eq!(chat.say("one", &json!({})).await.last().unwrap().name, "error");
    let prompt = chat.next_prompt(&json!({})).await;
    assert_strict("thinkingml", &prompt[1].1); // R-73
    assert!(prompt[1].1.contains("<final>\nHalf an answer\n"), "{prompt:?}");
    // A message that failed before its answer does not count: a client that retries sends the same text again.
    for script in [vec![delta_step("<thinking>\n<phase id=\"1\">"), Step::Cut], vec![Step::Reset]] {
        let chat = ChatTest::new(vec![script]).await;
        assert_eq!(chat.say("one", &json!({})).await.last().unwrap().name, "error");
        assert_eq!(chat.next_prompt(&json!({})).await, owned_pairs(&[("user", "last")])); // R-73
    }
}

#[tokio::test]
async fn a_reply_without_end_goes_back_up_to_the_limit() {
    let long = "words ".repeat(40);
    let mock = MockServer::start(vec![reply_script(&long, 30), reply_script("Last.", 9)]).await;
    let server = TestServer::start(&mock, |config| config.limits.input = 100).await;
    let response = server.post("/api/v1/conversations", &json!({})).await.json;
    let chat = ChatTest { mock, server, conversation: response["conversation_id"].clone() };
    let events = chat.say("one", &json!({"dialect": "plain"})).await;
    assert_eq!(events.last().unwrap().data["code"], "input_too_large");
    let prompt = chat.next_prompt(&json!({})).await;
    assert_eq!(
        prompt,
        owned_pairs(&[("user", "one"), ("assistant", long[..100].trim_end()), ("user", "last")])
    );
}

#[tokio::test]
async fn attempts_that_were_thrown_away_do_not_go_back() {
    let chat = ChatTest::new(vec![reply_script("<<ParsingError>>", 9), reply_script(GOOD_REPLY, 9)]).await;
    chat.say("one", &json!({"max_reasks": 1})).await;
    assert_eq!(
        chat.next_prompt(&json!({})).await,
        owned_pairs(&[("user", "one"), ("assistant", GOOD_REPLY), ("user", "last")])
    );
}

#[tokio::test]
async fn a_system_prompt_is_of_its_message() {
    let chat = ChatTest::new(vec![reply_script("One.", 9), reply_script("Two.", 9)]).await;
    let plain = json!({"dialect": "plain"});
    chat.say("one", &json!({"dialect": "plain", "system_prompt": "Be brief."})).await;
    assert_eq!(chat.last_prompt(), owned_pairs(&[("system", "Be brief."), ("user", "one")]));
    chat.say("two", &plain).await;
    let history = [("user", "one"), ("assistant", "One."), ("user", "two")];
    assert_eq!(chat.last_prompt(), owned_pairs(&history));
    let prompt = chat.next_prompt(&json!({"system_prompt": "Be long."})).await;
    let history =
        [&[("system", "Be long.")][..], &history, &[("assistant", "Two."), ("user", "last")]].concat();
    assert_eq!(prompt, owned_pairs(&history));
}

#[tokio::test]
async fn a_whole_prompt_is_all_that_was_said() {
    let chat = ChatTest::new(vec![reply_script("One.", 9), reply_script("Two.", 9)]).await;
    chat.say("one", &json!({"dialect": "plain"})).await;
    let prompt = json!([{"role": "system", "content": "S"}, {"role": "user", "content": "uno"},
        {"role": "assistant", "content": "Uno."}, {"role": "user", "content": "dos"}]);
    let mut request = chat.request("", &json!({"dialect": "plain", "messages": prompt}));
    request.as_object_mut().unwrap().remove("text");
    chat.server.open_stream(&request).await.read_checked().await;
    assert_eq!(
        chat.last_prompt(),
        owned_pairs(&[("system", "S"), ("user", "uno"), ("assistant", "Uno."), ("user", "dos")])
    );
    let history =
        [("user", "uno"), ("assistant", "Uno."), ("user", "dos"), ("assistant", "Two."), ("user", "last")];
    assert_eq!(chat.next_prompt(&json!({})).await, owned_pairs(&history));
}

#[tokio::test]
async fn a_message_that_is_running_is_waited_for() {
    let gate = Gate::new();
    let first =
        [vec![delta_step("A long "), Step::Wait(gate.clone()), delta_step("one.")], finish_steps("stop")]
            .concat();
    let chat = ChatTest::new(vec![first]).await;
    let mut stream = chat.server.open_stream(&chat.request("one", &json!({"dialect": "plain"}))).await;
    stream.read_until("final_delta").await;
    let fields = json!({});
    let (prompt, ()) = tokio::join!(chat.next_prompt(&fields), async { gate.open() });
    assert_eq!(prompt, owned_pairs(&[("user", "one"), ("assistant", "A long one."), ("user", "last")]));
}

#[tokio::test]
async fn replies_of_a_tool_loop_go_back_alike_within_it_and_after_it() {
    let (plan_text, answer_text) = (plan_reply(&[("lint", "check it")]), answer_reply("It is fine."));
    let reply_with_draft = format!("<think>a secret draft</think>\n{plan_text}");
    let kit = ToolKit::new(
        &[&reply_with_draft, &answer_text, &answer_reply("Bye.")],
        vec![webhook_answer(&json!({"faults": 0}))],
    )
    .await;
    let events = kit.run(&json!({})).await;
    let loop_prompt = kit.model.requests()[1].body["messages"].clone();
    let history_text = loop_prompt[1]["content"].as_str().unwrap();
    assert_strict("aiplan", history_text); // R-73
    assert!(!history_text.contains("secret") && history_text.contains("\"lint\""), "{history_text}");
    let record = kit.server.wait_ended(&stream_message_id(&events)).await;
    assert_eq!(
        (&record["turns"][0]["reply"], &record["turns"][0]["history"]),
        (&json!(reply_with_draft), &json!(history_text))
    );
    assert_eq!(record["turns"][1], json!({"reply": answer_text}));
    // The tool is gone, and the history stays the same.
    kit.server.call("delete", "/api/v1/tools/lint", None).await;
    let fields = json!({"conversation_id": record["conversation_id"], "text": "And?", "tools": ["edit"]});
    kit.run(&fields).await;
    let next_prompt = kit.model.requests()[2].body["messages"].as_array().unwrap().clone();
    assert_eq!(next_prompt[..3], loop_prompt.as_array().unwrap()[..3]);
    assert_eq!(next_prompt[3], json!({"role": "assistant", "content": answer_text}));
    assert_eq!(next_prompt[4], json!({"role": "user", "content": "And?"}));
}

#[tokio::test]
async fn calls_of_a_message_that_was_stopped_are_told_to_the_next() {
    let plan_text = plan_reply(&[("lint", "a"), ("edit", "b")]);
    let kit = ToolKit::new(
        &[&plan_text, &answer_reply("Bye.")],
        vec![webhook_answer(&json!("linted")), vec![Step::WaitDisconnect]],
    )
    .await;
    let mut stream = kit.server.open_stream(&crate::tool_kit::tool_request(&json!({}))).await;
    let mut events = stream.read_until("tool_start").await;
    kit.webhook.wait_until(|calls| calls.started == 2).await;
    kit.server.call("post", &format!("/api/v1/messages/{}/cancel", stream_message_id(&events)), None).await;
    events.extend(stream.read_rest().await);
    assert_eq!(event_data(&events, "tool_result").len(), 2);
    let record = kit.server.wait_ended(&stream_message_id(&events)).await;
    kit.run(&json!({"conversation_id": record["conversation_id"], "text": "And?"})).await;
    let messages = kit.model.requests()[1].body["messages"].as_array().unwrap().clone();
    let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
    assert_eq!(messages[1]["content"], plan_text);
    let result_text = messages[2]["content"].as_str().unwrap();
    assert!(
        result_text.contains("linted") && result_text.contains("\"code\":\"cancelled\""),
        "{result_text}"
    );
    assert_eq!(messages[3]["content"], joined_text(&events, "final_delta"));
    assert_eq!(messages[4]["content"], "And?");
}
