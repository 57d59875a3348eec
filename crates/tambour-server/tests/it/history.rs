//! Earlier messages of a conversation in the prompt (R-73).

use serde_json::{Value, json};
use tambour::tool::{RegisteredTool, ToolRegistry};
use tambour::verdict::Contract;
use tambour::{Options, Profile};

use crate::client::{Event, message, text};
use crate::mock::{GOOD, Gate, Mock, Step, delta, finish, reply};
use crate::server::Tambour;
use crate::tool_kit::{Kit, all, answer, gives, plan};

/// A model with these replies, a server, and one conversation.
struct Talk {
    mock: Mock,
    server: Tambour,
    conversation: Value,
}

impl Talk {
    async fn new(mut scripts: Vec<Vec<Step>>) -> Talk {
        // The last question is always answered.
        scripts.push(reply("Last.", 9));
        let mock = Mock::start(scripts).await;
        let server = Tambour::start(&mock, |config| config.timeouts.attempts = 1).await;
        let made = server.post("/api/v1/conversations", &json!({})).await.json;
        Talk { mock, server, conversation: made["conversation_id"].clone() }
    }

    fn ask(&self, text: &str, more: &Value) -> Value {
        let mut ask = json!({"text": text, "dialect": "thinkingml", "output_protocol": "jsonseq_v1",
            "conversation_id": self.conversation});
        ask.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ask
    }

    async fn say(&self, text: &str, more: &Value) -> Vec<Event> {
        self.server.stream(&self.ask(text, more)).await.whole().await
    }

    /// Sends one more message, and returns the prompt of the model.
    async fn shown(&self, more: &Value) -> Vec<(String, String)> {
        let mut ask = json!({"dialect": "plain"});
        ask.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.say("last", &ask).await;
        self.asked()
    }

    /// The last prompt of the model.
    fn asked(&self) -> Vec<(String, String)> {
        let asked = self.mock.asked();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let messages = asked.last().unwrap().body["messages"].as_array().unwrap();
        messages.iter().map(|message| (text(&message["role"]), text(&message["content"]))).collect()
    }

    /// Sends a message and stops it at the first event named `event_name`.
    async fn stopped(&self, text: &str, at: &str) -> Vec<Event> {
        let mut stream = self.server.stream(&self.ask(text, &json!({}))).await;
        let mut events = stream.until(at).await;
        self.server.call("post", &format!("/api/v1/messages/{}/cancel", message(&events)), None).await;
        events.extend(stream.rest().await);
        assert_eq!(events.last().unwrap().data["finish_reason"], "cancelled");
        events
    }
}

fn pairs(messages: &[(&str, &str)]) -> Vec<(String, String)> {
    messages.iter().map(|(role, content)| ((*role).to_owned(), (*content).to_owned())).collect()
}

/// Checks a reply strictly against its contract.
fn strict(dialect: &str, reply: &str) {
    let mut options = Options::default();
    options.profile = Profile::Strict;
    options.tools =
        Some(ToolRegistry::new([RegisteredTool::new("lint", json!({"type": "object"})).unwrap()]));
    let verdict = Contract::from_name(dialect).unwrap().check(reply.as_bytes(), &options);
    assert!(verdict.passed(), "{:#?}\n{reply}", verdict.findings);
}

/// A reply of a model that half knows its format: a draft, wrong numbers, no end.
const SLOPPY: &str = "<think>a secret draft</think>\n<thinking>\n<phase id=\"3\">\n<title>Look</title>\nfirst thought\n\
    <phase id=\"3\">\n<title>Decide</title>\nsecond thought\n</thinking>\n<final>\nThe answer is 4.";

#[tokio::test]
async fn a_reply_goes_back_as_it_should_have_been_written() {
    let talk = Talk::new(vec![reply(SLOPPY, 9)]).await;
    let events = talk.say("one", &json!({})).await;
    let shown = talk.shown(&json!({})).await;
    assert_eq!(shown.len(), 3);
    assert_eq!(shown[0], ("user".to_owned(), "one".to_owned()));
    let (role, written) = &shown[1];
    assert_eq!(role, "assistant");
    strict("thinkingml", written); // R-73
    assert!(!written.contains("secret"), "no draft goes back: {written}"); // R-73
    assert!(
        written.contains("<phase id=\"2\">\n<title>Decide</title>\nsecond thought\n</phase>"),
        "{written}"
    );
    assert!(written.contains("<final>\nThe answer is 4.\n"), "{written}");
    // The record has both.
    let record = talk.server.ended(&message(&events)).await;
    assert_eq!((&record["reply"], &record["history"]), (&json!(SLOPPY), &json!(written)));
}

#[tokio::test]
async fn a_reply_without_a_fault_goes_back_word_for_word() {
    let line =
        "{\"event\":\"final_delta\",\"data\":{\"text\":\"Four.\"}}\n{\"event\":\"final_end\",\"data\":{}}";
    let phase = "{\"event\":\"phase_start\",\"data\":{\"id\":1,\"title\":\"T\"}}\n{\"event\":\"thinking_end\",\"data\":{}}";
    let lines = format!("{{\"event\":\"thinking_start\",\"data\":{{}}}}\n{phase}\n{line}\n");
    let round = json!({"assessment": {"understanding_level": 60, "has_questions": true, "expressed_understanding": false,
        "reasoning": "r"}, "response": {"咨询师": "好的。"}, "should_exit": false, "exit_reason": "e"});
    let calling = plan(&[("lintSRSDocument", "check it")]);
    for (dialect, raw) in [
        ("thinkingml", GOOD),
        ("auto", GOOD),
        ("jsonseq", &lines),
        ("aiplan", &answer("Four.")),
        ("aiplan", &calling),
        ("ai_say", &round.to_string()),
        ("plain", "Four."),
    ] {
        let talk = Talk::new(vec![reply(raw, 9)]).await;
        let events = talk.say("one", &json!({"dialect": dialect})).await;
        assert_eq!(talk.shown(&json!({})).await[1].1, raw, "{dialect}"); // R-73
        let record = talk.server.ended(&message(&events)).await;
        assert_eq!(record.get("history"), None, "{dialect}: {record:#}");
    }
}

#[tokio::test]
async fn of_a_reply_that_was_replaced_goes_back_what_was_shown() {
    for protocol in ["jsonseq_v1", "legacy"] {
        for (raw, reason) in [("<<ParsingError>>", "stop"), (&GOOD[..80], "length")] {
            let mut script = vec![delta(raw)];
            script.extend(finish(reason));
            let talk = Talk::new(vec![script]).await;
            let english = json!({"text_language": "en"});
            let more = json!({"output_protocol": protocol, "contract": {"options": english}});
            let events = talk.say("one", &more).await;
            assert!(events.last().unwrap().data["metadata"]["fallback_reason"].is_string());
            let shown = talk.shown(&json!({})).await;
            let sentence = "Sorry, my reply had a format problem. Please try your request again.";
            assert_eq!(shown, pairs(&[("user", "one"), ("assistant", sentence), ("user", "last")])); // R-73
        }
    }
}

#[tokio::test]
async fn prose_goes_back_as_prose() {
    for (dialect, why) in crate::reask::PROSE {
        let talk = Talk::new(vec![reply("<think>hm</think>Let us look at it once more.", 9)]).await;
        let events = talk.say("one", &json!({"dialect": dialect, "max_reasks": 0})).await;
        assert_eq!(events.last().unwrap().data["metadata"]["unused_reason"], why);
        let shown = talk.shown(&json!({})).await;
        let said = ("assistant", "Let us look at it once more.");
        assert_eq!(shown, pairs(&[("user", "one"), said, ("user", "last")]), "{dialect}"); // R-70
    }
}

#[tokio::test]
async fn of_plain_text_the_answer_goes_back() {
    let talk = Talk::new(vec![reply("<think>2 and 2</think>\nFour.", 9)]).await;
    talk.say("one", &json!({"dialect": "plain"})).await;
    let shown = talk.shown(&json!({})).await;
    assert_eq!(shown, pairs(&[("user", "one"), ("assistant", "Four."), ("user", "last")])); // R-73
}

#[tokio::test]
async fn a_reply_that_was_stopped_goes_back_as_far_as_it_answered() {
    let begun = "<thinking>\n<phase id=\"1\">\n<title>Look</title>\na thought\n";
    let answered = format!("{begun}</phase>\n</thinking>\n<final>\nHalf an answer \n");
    // Stopped within its answer.
    let talk = Talk::new(vec![vec![delta(&answered), Step::Stall]]).await;
    talk.stopped("one", "final_delta").await;
    let shown = talk.shown(&json!({})).await;
    strict("thinkingml", &shown[1].1); // R-73
    assert!(shown[1].1.contains("<final>\nHalf an answer\n"), "{shown:?}");
    // Stopped before it: no reply is sent back, and the question is joined to the next one.
    let talk = Talk::new(vec![vec![delta(begun), Step::Stall]]).await;
    let events = talk.stopped("one", "phase_start").await;
    assert_eq!(talk.shown(&json!({})).await, pairs(&[("user", "one\n\nlast")])); // R-73
    assert_eq!(talk.server.ended(&message(&events)).await["history"], Value::Null);
}

#[tokio::test]
async fn a_reply_that_failed_goes_back_as_far_as_it_answered() {
    let answered = "<thinking>\n<phase id=\"1\">\n<title>T</title>\nt\n</phase>\n</thinking>\n<final>\nHalf an answer \n";
    let talk = Talk::new(vec![vec![delta(answered), Step::Cut]]).await;
    assert_eq!(talk.say("one", &json!({})).await.last().unwrap().name, "error");
    let shown = talk.shown(&json!({})).await;
    strict("thinkingml", &shown[1].1); // R-73
    assert!(shown[1].1.contains("<final>\nHalf an answer\n"), "{shown:?}");
    // A message that failed before its answer does not count: a client that retries sends the same text again.
    for script in [vec![delta("<thinking>\n<phase id=\"1\">"), Step::Cut], vec![Step::Reset]] {
        let talk = Talk::new(vec![script]).await;
        assert_eq!(talk.say("one", &json!({})).await.last().unwrap().name, "error");
        assert_eq!(talk.shown(&json!({})).await, pairs(&[("user", "last")])); // R-73
    }
}

#[tokio::test]
async fn a_reply_without_end_goes_back_up_to_the_limit() {
    let long = "words ".repeat(40);
    let mock = Mock::start(vec![reply(&long, 30), reply("Last.", 9)]).await;
    let server = Tambour::start(&mock, |config| config.limits.input = 100).await;
    let made = server.post("/api/v1/conversations", &json!({})).await.json;
    let talk = Talk { mock, server, conversation: made["conversation_id"].clone() };
    let events = talk.say("one", &json!({"dialect": "plain"})).await;
    assert_eq!(events.last().unwrap().data["code"], "input_too_large");
    let shown = talk.shown(&json!({})).await;
    assert_eq!(shown, pairs(&[("user", "one"), ("assistant", long[..100].trim_end()), ("user", "last")]));
}

#[tokio::test]
async fn attempts_that_were_thrown_away_do_not_go_back() {
    let talk = Talk::new(vec![reply("<<ParsingError>>", 9), reply(GOOD, 9)]).await;
    talk.say("one", &json!({"max_reasks": 1})).await;
    assert_eq!(
        talk.shown(&json!({})).await,
        pairs(&[("user", "one"), ("assistant", GOOD), ("user", "last")])
    );
}

#[tokio::test]
async fn a_system_prompt_is_of_its_message() {
    let talk = Talk::new(vec![reply("One.", 9), reply("Two.", 9)]).await;
    let plain = json!({"dialect": "plain"});
    talk.say("one", &json!({"dialect": "plain", "system_prompt": "Be brief."})).await;
    assert_eq!(talk.asked(), pairs(&[("system", "Be brief."), ("user", "one")]));
    talk.say("two", &plain).await;
    let said = [("user", "one"), ("assistant", "One."), ("user", "two")];
    assert_eq!(talk.asked(), pairs(&said));
    let shown = talk.shown(&json!({"system_prompt": "Be long."})).await;
    let said = [&[("system", "Be long.")][..], &said, &[("assistant", "Two."), ("user", "last")]].concat();
    assert_eq!(shown, pairs(&said));
}

#[tokio::test]
async fn a_whole_prompt_is_all_that_was_said() {
    let talk = Talk::new(vec![reply("One.", 9), reply("Two.", 9)]).await;
    talk.say("one", &json!({"dialect": "plain"})).await;
    let whole = json!([{"role": "system", "content": "S"}, {"role": "user", "content": "uno"},
        {"role": "assistant", "content": "Uno."}, {"role": "user", "content": "dos"}]);
    let mut ask = talk.ask("", &json!({"dialect": "plain", "messages": whole}));
    ask.as_object_mut().unwrap().remove("text");
    talk.server.stream(&ask).await.whole().await;
    assert_eq!(
        talk.asked(),
        pairs(&[("system", "S"), ("user", "uno"), ("assistant", "Uno."), ("user", "dos")])
    );
    let said =
        [("user", "uno"), ("assistant", "Uno."), ("user", "dos"), ("assistant", "Two."), ("user", "last")];
    assert_eq!(talk.shown(&json!({})).await, pairs(&said));
}

#[tokio::test]
async fn a_message_that_is_running_is_waited_for() {
    let gate = Gate::new();
    let first = [vec![delta("A long "), Step::Wait(gate.clone()), delta("one.")], finish("stop")].concat();
    let talk = Talk::new(vec![first]).await;
    let mut stream = talk.server.stream(&talk.ask("one", &json!({"dialect": "plain"}))).await;
    stream.until("final_delta").await;
    let more = json!({});
    let (shown, ()) = tokio::join!(talk.shown(&more), async { gate.open() });
    assert_eq!(shown, pairs(&[("user", "one"), ("assistant", "A long one."), ("user", "last")]));
}

#[tokio::test]
async fn replies_of_a_tool_loop_go_back_alike_within_it_and_after_it() {
    let (calling, answering) = (plan(&[("lint", "check it")]), answer("It is fine."));
    let drafted = format!("<think>a secret draft</think>\n{calling}");
    let kit = Kit::new(&[&drafted, &answering, &answer("Bye.")], vec![gives(&json!({"faults": 0}))]).await;
    let events = kit.run(&json!({})).await;
    let within = kit.model.asked()[1].body["messages"].clone();
    let shown = within[1]["content"].as_str().unwrap();
    strict("aiplan", shown); // R-73
    assert!(!shown.contains("secret") && shown.contains("\"lint\""), "{shown}");
    let record = kit.server.ended(&message(&events)).await;
    assert_eq!(
        (&record["turns"][0]["reply"], &record["turns"][0]["history"]),
        (&json!(drafted), &json!(shown))
    );
    assert_eq!(record["turns"][1], json!({"reply": answering}));
    // The tool is gone, and the history stays the same.
    kit.server.call("delete", "/api/v1/tools/lint", None).await;
    let more = json!({"conversation_id": record["conversation_id"], "text": "And?", "tools": ["edit"]});
    kit.run(&more).await;
    let after = kit.model.asked()[2].body["messages"].as_array().unwrap().clone();
    assert_eq!(after[..3], within.as_array().unwrap()[..3]);
    assert_eq!(after[3], json!({"role": "assistant", "content": answering}));
    assert_eq!(after[4], json!({"role": "user", "content": "And?"}));
}

#[tokio::test]
async fn calls_of_a_message_that_was_stopped_are_told_to_the_next() {
    let calling = plan(&[("lint", "a"), ("edit", "b")]);
    let kit = Kit::new(&[&calling, &answer("Bye.")], vec![gives(&json!("linted")), vec![Step::Stall]]).await;
    let mut stream = kit.server.stream(&crate::tool_kit::ask(&json!({}))).await;
    let mut events = stream.until("tool_start").await;
    kit.hook.until(|calls| calls.begun == 2).await;
    kit.server.call("post", &format!("/api/v1/messages/{}/cancel", message(&events)), None).await;
    events.extend(stream.rest().await);
    assert_eq!(all(&events, "tool_result").len(), 2);
    let record = kit.server.ended(&message(&events)).await;
    kit.run(&json!({"conversation_id": record["conversation_id"], "text": "And?"})).await;
    let messages = kit.model.asked()[1].body["messages"].as_array().unwrap().clone();
    let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
    assert_eq!(messages[1]["content"], calling);
    let told = messages[2]["content"].as_str().unwrap();
    assert!(told.contains("linted") && told.contains("\"code\":\"cancelled\""), "{told}");
    assert_eq!(messages[3]["content"], text(&events, "final_delta"));
    assert_eq!(messages[4]["content"], "And?");
}
