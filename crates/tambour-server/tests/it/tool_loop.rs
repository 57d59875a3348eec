//! Replies that call tools, their results, and the replies after them.

use serde_json::{Value, json};

use crate::client::{Event, message, names, numbered, text};
use crate::mock::{Gate, Mock, Step, delta, finish, reply};
use crate::server::{Tambour, within};
use crate::tool_kit::{Kit, all, answer, ask, english, gives, plan, results, sound};

fn two_calls() -> String {
    plan(&[("lint", "check it"), ("edit", "mend it")])
}

#[tokio::test]
async fn two_calls_run_and_the_answer_follows() {
    let (first, second) = (two_calls(), answer("It is mended."));
    let kit = Kit::new(&[&first, &second], vec![gives(&json!({"faults": 2})), gives(&json!("mended"))]).await;
    let events = kit.run(&json!({"caller": "orchestrator:main"})).await;
    sound(&events);
    // X-004: a phase for each reply, tool events between them, and the end of thinking with the answer.
    assert_eq!(
        names(&events),
        [
            "thinking_start",
            "phase_start",
            "phase_delta",
            "plan",
            "tool_call",
            "tool_call",
            "tool_start",
            "tool_result",
            "tool_start",
            "tool_result",
            "phase_start",
            "phase_delta",
            "thinking_end",
            "final_delta",
            "plan",
            "final_end",
            "completed",
        ]
    );
    assert_eq!(text(&events, "phase_delta"), "Tools are needed.Now I know.");
    assert_eq!(text(&events, "final_delta"), "It is mended.");
    assert_eq!(all(&events, "phase_start")[1]["id"], 2);
    assert_eq!(all(&events, "tool_result")[0]["result"], json!({"faults": 2}));
    let end = &events.last().unwrap().data;
    assert_eq!(end["finish_reason"], "stop");
    assert_eq!(end["usage"], json!({"prompt_tokens": 14, "completion_tokens": 10})); // X-004
    assert_eq!(end["metadata"].get("fallback_reason"), None);
    // The webhook received each call once.
    let sent = kit.hook.asked();
    assert_eq!(sent.len(), 2);
    let id = message(&events);
    assert_eq!(
        sent[0].body,
        json!({"message_id": id, "call_id": "call_1", "name": "lint", "args": {"userInput": "check it"},
            "caller": "orchestrator:main"})
    );
    assert_eq!(sent[0].header("idempotency-key"), Some(format!("{id}:call_1").as_str()));
    assert_eq!(sent[0].header("x-tambour-signature"), None);
    // The next prompt has the model's reply and the results.
    let messages = kit.model.asked()[1].body["messages"].clone();
    assert_eq!(messages.as_array().unwrap().len(), 3);
    assert_eq!(messages[1], json!({"role": "assistant", "content": first}));
    let told = messages[2]["content"].as_str().unwrap();
    assert_eq!(messages[2]["role"], "user");
    assert!(
        told.contains(r#"[{"call_id":"call_1","name":"lint","ok":true,"result":{"faults":2}},"#),
        "{told}"
    );
    let record = kit.server.ended(&id).await;
    assert_eq!(record["turns"][0]["reply"], first);
    assert_eq!(record["turns"][0]["told"], told);
    assert_eq!(record["turns"][1], json!({"reply": second}));
    assert_eq!(record["events"].as_array().unwrap().iter().filter(|e| e["event"] == "status").count(), 0);
    assert_eq!(kit.server.metric("tambour_tool_calls_total").await, 2);
    assert_eq!(kit.server.metric("tambour_tool_failures_total").await, 0);
}

#[tokio::test]
async fn without_extensions_the_contract_alone_is_seen() {
    let kit = Kit::new(&[&two_calls(), &answer("Done.")], vec![gives(&json!(1))]).await;
    let events = kit.run(&json!({"extensions": false})).await;
    assert_eq!(
        names(&events),
        [
            "thinking_start",
            "phase_start",
            "phase_delta",
            "phase_start",
            "phase_delta",
            "thinking_end",
            "final_delta",
            "final_end",
            "completed"
        ]
    ); // X-010
    assert!(all(&events, "status").iter().any(|status| status["state"] == "running_tools"));
    // Raw replies are separated by line breaks.
    let kit = Kit::new(&[&two_calls(), &answer("Done.")], vec![gives(&json!(1))]).await;
    let events = kit.run(&json!({"output_protocol": "legacy"})).await;
    let raw = format!("{}\n{}", two_calls(), answer("Done."));
    assert_eq!(text(&events, "content_delta"), raw);
    assert_eq!(events.last().unwrap().data["reply"], raw);
}

#[tokio::test]
async fn the_dialect_can_be_found_out() {
    let kit = Kit::new(&[&two_calls(), "Done, in plain words."], vec![gives(&json!(1))]).await;
    let events = kit.run(&json!({"dialect": "auto"})).await;
    sound(&events);
    assert_eq!(results(&events), ["ok", "ok"]);
    assert_eq!(text(&events, "final_delta"), "Done, in plain words.");
}

#[tokio::test]
async fn a_conversation_goes_on_after_tools() {
    let kit =
        Kit::new(&[&two_calls(), &answer("Done."), &answer("As I said.")], vec![gives(&json!(1))]).await;
    let events = kit.run(&json!({})).await;
    let record = kit.server.ended(&message(&events)).await;
    kit.run(&json!({"conversation_id": record["conversation_id"], "text": "And?"})).await;
    let messages = kit.model.asked()[2].body["messages"].clone();
    let roles: Vec<&str> =
        messages.as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
    assert_eq!(messages[1]["content"], two_calls());
    assert_eq!(messages[3]["content"], answer("Done."));
}

#[tokio::test]
async fn one_invalid_call_and_none_runs() {
    let unknown = plan(&[("lint", "a"), ("formatDisk", "b")]);
    let wrong = unknown.replace("formatDisk", "edit").replace("{\"userInput\":\"b\"}", "{\"userInput\":7}");
    for bad in [unknown, wrong] {
        let kit = Kit::new(&[&bad], vec![gives(&json!(1))]).await;
        let events = kit.run(&json!({})).await;
        assert_eq!(kit.hook.calls().begun, 0); // P-028
        assert!(all(&events, "tool_call").is_empty());
        assert_eq!(all(&events, "plan")[0]["is_fallback"], true);
        assert_eq!(events.last().unwrap().data["metadata"]["fallback_reason"], "plan_invalid");
    }
}

#[tokio::test]
async fn a_cut_reply_runs_nothing() {
    let text = two_calls();
    let mut scripts = Vec::new();
    for at in 1..=text.len() {
        // Cut by the upstream, even where the whole text is there; and a connection that breaks.
        let mut cut = vec![delta(&text[..at])];
        cut.extend(finish("length"));
        scripts.extend([cut, vec![delta(&text[..at]), Step::Cut]]);
    }
    let count = scripts.len();
    let kit = Kit::with(scripts, vec![gives(&json!(1))], |_| {}).await;
    for at in 0..count {
        let events = kit.run(&json!({})).await;
        assert!(all(&events, "tool_call").is_empty(), "{at}"); // P-027
        assert_eq!(events.last().unwrap().name, if at % 2 == 0 { "completed" } else { "error" }, "{at}"); // X-014
    }
    assert_eq!((kit.model.calls().begun, kit.hook.calls().begun), (count, 0)); // P-027
}

#[tokio::test]
async fn without_tools_nothing_runs() {
    // The sample registry reads the plan, and its tools are not run.
    let kit = Kit::new(&[&plan(&[("lintSRSDocument", "a")])], vec![gives(&json!(1))]).await;
    let mut ask = ask(&json!({}));
    ask.as_object_mut().unwrap().remove("tools");
    let events = kit.server.stream(&ask).await.whole().await;
    assert_eq!(all(&events, "tool_call").len(), 1);
    assert!(all(&events, "tool_start").is_empty() && all(&events, "tool_result").is_empty());
    assert_eq!(kit.hook.calls().begun, 0);
    assert_eq!(kit.model.calls().begun, 1);
    // Registered tools are available only if the request names them.
    let kit = Kit::new(&[&two_calls()], vec![gives(&json!(1))]).await;
    let events = kit.run(&json!({"tools": ["lint"]})).await;
    assert!(all(&events, "tool_call").is_empty());
    assert_eq!(kit.hook.calls().begun, 0);
}

#[tokio::test]
async fn a_caller_who_may_not_call_is_refused_before_anything_runs() {
    let kit = Kit::new(&[&two_calls(), &answer("Done.")], vec![gives(&json!(1))]).await;
    kit.register("edit", &json!({"callers": ["orchestrator:TOOL_EXECUTION"]})).await;
    for caller in [json!({"caller": "orchestrator:KNOWLEDGE_QA"}), json!({})] {
        let kit = Kit::new(&[&two_calls()], vec![gives(&json!(1))]).await;
        kit.register("edit", &json!({"callers": ["orchestrator:TOOL_EXECUTION"]})).await;
        let mut more = caller.clone();
        more["findings"] = true.into();
        let events = kit.run(&more).await;
        assert_eq!(kit.hook.calls().begun, 0); // P-033
        let codes: Vec<&Value> = all(&events, "finding").iter().map(|finding| &finding["code"]).collect();
        assert!(codes.iter().any(|code| code.as_str().unwrap().contains("tool_forbidden")), "{codes:?}"); // P-033
    }
    let events = kit.run(&json!({"caller": "orchestrator:TOOL_EXECUTION"})).await;
    assert_eq!(results(&events), ["ok", "ok"]);
}

#[tokio::test]
async fn an_error_of_a_tool_is_told_and_the_rest_does_not_run() {
    let kit = Kit::new(
        &[&two_calls(), &answer("Sorry.")],
        vec![crate::mock::whole(500, "text/plain", "no such document")],
    )
    .await;
    let events = kit.run(&english()).await;
    sound(&events);
    assert_eq!(results(&events), ["http_status", "not_run"]);
    assert_eq!(kit.hook.calls().begun, 1);
    assert_eq!(all(&events, "tool_start").len(), 1);
    assert!(kit.told().contains("the webhook answered 500: no such document"), "{}", kit.told());
    assert_eq!(text(&events, "final_delta"), "Sorry.");
    assert_eq!(events.last().unwrap().name, "completed");
    assert_eq!(kit.server.metric("tambour_tool_failures_total").await, 1);
    // Every text but those of the model and the tool is in the language of the texts.
    assert!(kit.told().is_ascii(), "{}", kit.told());
    let failed = crate::mock::whole(500, "text/plain", "no such document");
    let kit = Kit::new(&[&two_calls(), &answer("Sorry.")], vec![failed]).await;
    kit.run(&json!({})).await;
    let told = kit.told();
    assert!(told.contains("webhook 返回状态 500：no such document"), "{told}");
    assert!(told.contains("计划中它之前的一个调用失败"), "{told}");
}

#[tokio::test]
async fn going_round_in_circles_ends_the_message() {
    let (a, b) = (plan(&[("lint", "a")]), plan(&[("lint", "b")]));
    let thrice: Vec<&str> = vec![&a, &a, &a, &a];
    let turns: Vec<&str> = vec![&a, &b, &a, &b, &a];
    for (replies, ran) in [(thrice, 2), (turns, 3)] {
        let kit = Kit::new(&replies, vec![gives(&json!(1))]).await;
        let events = kit.run(&json!({})).await;
        sound(&events);
        assert_eq!(events.last().unwrap().name, "error"); // J-035
        assert_eq!(events.last().unwrap().data["code"], "tool_loop");
        assert_eq!(kit.hook.calls().begun, ran);
        assert_eq!(results(&events).last().unwrap(), "not_run");
        assert_eq!(names(&events)[names(&events).len() - 2], "final_end"); // X-014
        assert_eq!(kit.server.ended(&message(&events)).await["status"], "failed");
        assert_eq!(kit.server.metric("tambour_tool_loops_total").await, 1);
    }
}

#[tokio::test]
async fn tools_are_called_so_often_and_no_more() {
    let replies: Vec<String> = (0..4).map(|n| plan(&[("lint", &n.to_string())])).collect();
    let replies = replies.iter().map(|text| reply(text, 9)).collect();
    let kit = Kit::with(replies, vec![gives(&json!(1))], |config| config.tools.max_iterations = 2).await;
    let events = kit.run(&json!({})).await;
    sound(&events);
    assert_eq!(events.last().unwrap().data["code"], "tool_iterations");
    assert!(events.last().unwrap().data["message"].as_str().unwrap().contains("tools.max_iterations"));
    assert_eq!(kit.hook.calls().begun, 2);
}

#[tokio::test]
async fn an_unusable_reply_in_the_loop_is_asked_again_and_kept() {
    // The second reply is no plan; the log has nothing of it.
    let kit = Kit::new(&[&two_calls(), "No plan.", &answer("Done.")], vec![gives(&json!(1))]).await;
    let events = kit.run(&json!({"max_reasks": 1})).await;
    sound(&events);
    assert_eq!(text(&events, "final_delta"), "Done.");
    let metadata = &events.last().unwrap().data["metadata"];
    assert_eq!((&metadata["reasks"], metadata.get("fallback_reason")), (&json!(1), None)); // X-009
    assert_eq!(all(&events, "phase_start").len(), 2);
    assert_eq!(kit.hook.calls().begun, 2);
    let record = kit.server.ended(&message(&events)).await;
    let attempts = record["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 1); // P-034
    assert_eq!((&attempts[0]["raw"], &attempts[0]["finish_reason"]), (&json!("No plan."), &json!("stop"))); // P-034
    assert_eq!(attempts[0]["findings"][0]["code"], "plan_missing"); // P-034
    assert_eq!(record["reply"], format!("{}\n{}", two_calls(), answer("Done.")));
    // Without permission to re-ask, the fallback follows the calls that have run.
    let kit = Kit::new(&[&two_calls(), "<<ParsingError>>"], vec![gives(&json!(1))]).await;
    let events = kit.run(&json!({})).await;
    sound(&events);
    assert_eq!(events.last().unwrap().data["metadata"]["fallback_reason"], "parsing_error");
}

#[tokio::test]
async fn an_upstream_that_fails_after_tools_ends_the_message() {
    let scripts = vec![reply(&two_calls(), 9), vec![delta("```json\n{\"thought\": \"half"), Step::Reset]];
    let kit = Kit::with(scripts, vec![gives(&json!(1))], |_| {}).await;
    let events = kit.run(&json!({})).await;
    sound(&events);
    assert_eq!(events.last().unwrap().data["code"], "upstream_closed"); // J-035
    assert_eq!(results(&events), ["ok", "ok"]);
}

#[tokio::test]
async fn cancelling_stops_a_webhook_that_runs() {
    let kit = Kit::new(&[&two_calls()], vec![vec![Step::Stall]]).await;
    let mut stream = kit.server.stream(&ask(&json!({}))).await;
    let mut events = stream.until("tool_start").await;
    kit.hook.until(|calls| calls.begun == 1).await;
    kit.server.call("post", &format!("/api/v1/messages/{}/cancel", message(&events)), None).await;
    kit.hook.until(|calls| calls.deserted == 1).await;
    events.extend(stream.rest().await);
    crate::client::check(&events);
    sound(&events);
    assert_eq!(events.last().unwrap().data["finish_reason"], "cancelled"); // X-014
    assert_eq!(results(&events), ["cancelled", "not_run"]);
    assert_eq!(kit.model.calls().begun, 1);
    assert_eq!(kit.server.ended(&message(&events)).await["status"], "cancelled");
}

#[tokio::test]
async fn a_webhook_that_runs_is_not_dropped_when_nobody_reads() {
    let gate = Gate::new();
    let mut slow = vec![Step::Wait(gate.clone())];
    slow.extend(gives(&json!("slow")));
    let replies = vec![reply(&plan(&[("lint", "a")]), 9), vec![Step::Stall], reply(&answer("Done."), 9)];
    let kit = Kit::with(replies, vec![slow], |config| config.grace_ms = 50).await;
    let mut stream = kit.server.stream(&ask(&json!({}))).await;
    let seen = stream.until("tool_start").await;
    let (id, last) = (message(&seen), seen.last().unwrap().id.unwrap());
    drop(stream);
    kit.server.until_metric("tambour_streams_open", 0).await;
    kit.hook.until(|calls| calls.begun == 1).await;
    // The grace period of a later message is over, and this call continues.
    drop(kit.server.stream(&ask(&json!({}))).await);
    kit.model.until(|calls| calls.deserted == 1).await;
    assert_eq!(kit.hook.calls().over, 0);
    let mut back = kit.server.follow(&id, &[("last-event-id", &last.to_string())]).await;
    gate.open();
    let mut events: Vec<Event> = numbered(&seen);
    events.extend(numbered(&back.rest().await)); // J-036
    sound(&events);
    assert_eq!(results(&events), ["ok"]);
    assert_eq!(text(&events, "final_delta"), "Done.");
    assert_eq!(numbered(&kit.server.follow(&id, &[]).await.whole().await), events);
}

#[tokio::test]
async fn a_reader_who_comes_back_anywhere_sees_the_rest() {
    let kit = Kit::new(&[&two_calls(), &answer("Done.")], vec![gives(&json!(1))]).await;
    let events = numbered(&kit.run(&json!({})).await);
    let id = message(&events);
    for (at, event) in events.iter().enumerate() {
        let last = event.id.unwrap().to_string();
        let mut back = kit.server.follow(&id, &[("last-event-id", &last)]).await;
        let rest = if back.status == 204 { Vec::new() } else { numbered(&back.rest().await) };
        assert_eq!(rest, events[at + 1..], "{last}"); // J-036
    }
}

#[tokio::test]
async fn a_message_of_another_key_is_not_found() {
    let mock = Mock::start(vec![reply(&plan(&[("ask", "a")]), 9)]).await;
    let mut server = Tambour::with(&mock).await;
    let admin = server.post("/api/v1/keys", &json!({"name": "a", "rights": "admin"})).await.json;
    server.key(admin["key"].as_str());
    let other = server.post("/api/v1/keys", &json!({"name": "b"})).await.json;
    let inline = json!([{"name": "ask", "schema": {"type": "object"}}]);
    let mut stream = server.stream(&ask(&json!({"tools": inline}))).await;
    let events = stream.until("tool_start").await;
    let path = format!("/api/v1/messages/{}", message(&events));
    server.key(other["key"].as_str());
    let result = json!({"results": [{"call_id": "call_1", "ok": true, "result": 1}]});
    let yes = json!({"confirmations": [{"call_id": "call_1", "allow": true}]});
    let refused = server.post(&format!("{path}/tool_results"), &result).await;
    assert_eq!((refused.status, refused.problem()), (404, "not_found"));
    let refused = server.post(&format!("{path}/tool_confirmations"), &yes).await;
    assert_eq!((refused.status, refused.problem()), (404, "not_found"));
    server.key(admin["key"].as_str());
    let cancelled = server.call("post", &format!("{path}/cancel"), None).await;
    assert_eq!(cancelled.status, 202);
    within(stream.rest()).await;
}

#[tokio::test]
async fn a_reply_calls_so_many_tools_and_no_more() {
    let texts: Vec<String> = (0..129).map(|n| n.to_string()).collect();
    let calls: Vec<(&str, &str)> = texts.iter().map(|text| ("lint", text.as_str())).collect();
    let kit = Kit::new(&[&plan(&calls)], vec![gives(&json!(1))]).await;
    let events = kit.run(&json!({})).await;
    sound(&events);
    assert_eq!(events.last().unwrap().data["code"], "tool_calls");
    assert_eq!(kit.hook.calls().begun, 0);
    assert_eq!(results(&events).len(), 129);
}
