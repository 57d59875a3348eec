//! Replies that call tools, their results, and the replies after them.

use serde_json::{Value, json};

use crate::client::{Event, event_names, joined_text, numbered_events, stream_message_id};
use crate::mock::{Gate, MockServer, Step, delta_step, finish_steps, reply_script};
use crate::server::{TestServer, with_timeout};
use crate::tool_kit::{
    ToolKit, answer_reply, check_tool_stream, english_option, event_data, plan_reply, result_codes,
    tool_request, webhook_answer,
};

fn plan_of_two_calls() -> String {
    plan_reply(&[("lint", "check it"), ("edit", "mend it")])
}

#[tokio::test]
async fn two_calls_run_and_the_answer_follows() {
    let (first, second) = (plan_of_two_calls(), answer_reply("It is mended."));
    let kit = ToolKit::new(
        &[&first, &second],
        vec![webhook_answer(&json!({"faults": 2})), webhook_answer(&json!("mended"))],
    )
    .await;
    let events = kit.run(&json!({"caller": "orchestrator:main"})).await;
    check_tool_stream(&events);
    // X-004: a phase for each reply, tool events between them, and the end of thinking with the answer.
    assert_eq!(
        event_names(&events),
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
    assert_eq!(joined_text(&events, "phase_delta"), "Tools are needed.Now I know.");
    assert_eq!(joined_text(&events, "final_delta"), "It is mended.");
    assert_eq!(event_data(&events, "phase_start")[1]["id"], 2);
    assert_eq!(event_data(&events, "tool_result")[0]["result"], json!({"faults": 2}));
    let end = &events.last().unwrap().data;
    assert_eq!(end["finish_reason"], "stop");
    assert_eq!(end["usage"], json!({"prompt_tokens": 14, "completion_tokens": 10})); // X-004
    assert_eq!(end["metadata"].get("fallback_reason"), None);
    // The webhook received each call once.
    let sent_requests = kit.webhook.requests();
    assert_eq!(sent_requests.len(), 2);
    let id = stream_message_id(&events);
    assert_eq!(
        sent_requests[0].body,
        json!({"message_id": id, "call_id": "call_1", "name": "lint", "args": {"userInput": "check it"},
            "caller": "orchestrator:main"})
    );
    assert_eq!(sent_requests[0].header("idempotency-key"), Some(format!("{id}:call_1").as_str()));
    assert_eq!(sent_requests[0].header("x-tambour-signature"), None);
    // The next prompt has the model's reply and the results.
    let messages = kit.model.requests()[1].body["messages"].clone();
    assert_eq!(messages.as_array().unwrap().len(), 3);
    assert_eq!(messages[1], json!({"role": "assistant", "content": first}));
    let result_text = messages[2]["content"].as_str().unwrap();
    assert_eq!(messages[2]["role"], "user");
    assert!(
        result_text.contains(r#"[{"call_id":"call_1","name":"lint","ok":true,"result":{"faults":2}},"#),
        "{result_text}"
    );
    let record = kit.server.wait_ended(&id).await;
    assert_eq!(record["turns"][0]["reply"], first);
    assert_eq!(record["turns"][0]["told"], result_text);
    assert_eq!(record["turns"][1], json!({"reply": second}));
    assert_eq!(record["events"].as_array().unwrap().iter().filter(|e| e["event"] == "status").count(), 0);
    assert_eq!(kit.server.metric("tambour_tool_calls_total").await, 2);
    assert_eq!(kit.server.metric("tambour_tool_failures_total").await, 0);
}

#[tokio::test]
async fn without_extensions_the_contract_alone_is_seen() {
    let kit =
        ToolKit::new(&[&plan_of_two_calls(), &answer_reply("Done.")], vec![webhook_answer(&json!(1))]).await;
    let events = kit.run(&json!({"extensions": false})).await;
    assert_eq!(
        event_names(&events),
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
    assert!(event_data(&events, "status").iter().any(|status| status["state"] == "running_tools"));
    // The raw replies stand on lines of their own.
    let kit =
        ToolKit::new(&[&plan_of_two_calls(), &answer_reply("Done.")], vec![webhook_answer(&json!(1))]).await;
    let events = kit.run(&json!({"output_protocol": "legacy"})).await;
    let raw = format!("{}\n{}", plan_of_two_calls(), answer_reply("Done."));
    assert_eq!(joined_text(&events, "content_delta"), raw);
    assert_eq!(events.last().unwrap().data["reply"], raw);
}

#[tokio::test]
async fn the_dialect_can_be_found_out() {
    let kit =
        ToolKit::new(&[&plan_of_two_calls(), "Done, in plain words."], vec![webhook_answer(&json!(1))]).await;
    let events = kit.run(&json!({"dialect": "auto"})).await;
    check_tool_stream(&events);
    assert_eq!(result_codes(&events), ["ok", "ok"]);
    assert_eq!(joined_text(&events, "final_delta"), "Done, in plain words.");
}

#[tokio::test]
async fn a_conversation_goes_on_after_tools() {
    let kit = ToolKit::new(
        &[&plan_of_two_calls(), &answer_reply("Done."), &answer_reply("As I said.")],
        vec![webhook_answer(&json!(1))],
    )
    .await;
    let events = kit.run(&json!({})).await;
    let record = kit.server.wait_ended(&stream_message_id(&events)).await;
    kit.run(&json!({"conversation_id": record["conversation_id"], "text": "And?"})).await;
    let messages = kit.model.requests()[2].body["messages"].clone();
    let roles: Vec<&str> =
        messages.as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
    assert_eq!(messages[1]["content"], plan_of_two_calls());
    assert_eq!(messages[3]["content"], answer_reply("Done."));
}

#[tokio::test]
async fn one_invalid_call_and_none_runs() {
    let unknown = plan_reply(&[("lint", "a"), ("formatDisk", "b")]);
    let wrong_arguments =
        unknown.replace("formatDisk", "edit").replace("{\"userInput\":\"b\"}", "{\"userInput\":7}");
    for bad in [unknown, wrong_arguments] {
        let kit = ToolKit::new(&[&bad], vec![webhook_answer(&json!(1))]).await;
        let events = kit.run(&json!({})).await;
        assert_eq!(kit.webhook.calls().started, 0); // P-028
        assert!(event_data(&events, "tool_call").is_empty());
        assert_eq!(event_data(&events, "plan")[0]["is_fallback"], true);
        assert_eq!(events.last().unwrap().data["metadata"]["fallback_reason"], "plan_invalid");
    }
}

#[tokio::test]
async fn a_cut_reply_runs_nothing() {
    let text = plan_of_two_calls();
    let mut scripts = Vec::new();
    for at in 1..=text.len() {
        // Cut by the upstream, even where the whole text is there; and a connection that breaks.
        let mut cut = vec![delta_step(&text[..at])];
        cut.extend(finish_steps("length"));
        scripts.extend([cut, vec![delta_step(&text[..at]), Step::Cut]]);
    }
    let count = scripts.len();
    let kit = ToolKit::new_with(scripts, vec![webhook_answer(&json!(1))], |_| {}).await;
    for at in 0..count {
        let events = kit.run(&json!({})).await;
        assert!(event_data(&events, "tool_call").is_empty(), "{at}"); // P-027
        assert_eq!(events.last().unwrap().name, if at % 2 == 0 { "completed" } else { "error" }, "{at}"); // X-014
    }
    assert_eq!((kit.model.calls().started, kit.webhook.calls().started), (count, 0)); // P-027
}

#[tokio::test]
async fn without_tools_nothing_runs() {
    // The sample registry reads the plan, and nobody runs it.
    let kit =
        ToolKit::new(&[&plan_reply(&[("lintSRSDocument", "a")])], vec![webhook_answer(&json!(1))]).await;
    let mut request = tool_request(&json!({}));
    request.as_object_mut().unwrap().remove("tools");
    let events = kit.server.open_stream(&request).await.read_checked().await;
    assert_eq!(event_data(&events, "tool_call").len(), 1);
    assert!(event_data(&events, "tool_start").is_empty() && event_data(&events, "tool_result").is_empty());
    assert_eq!(kit.webhook.calls().started, 0);
    assert_eq!(kit.model.calls().started, 1);
    // Tools that are registered and not named are not there.
    let kit = ToolKit::new(&[&plan_of_two_calls()], vec![webhook_answer(&json!(1))]).await;
    let events = kit.run(&json!({"tools": ["lint"]})).await;
    assert!(event_data(&events, "tool_call").is_empty());
    assert_eq!(kit.webhook.calls().started, 0);
}

#[tokio::test]
async fn a_caller_who_may_not_call_is_refused_before_anything_runs() {
    let kit =
        ToolKit::new(&[&plan_of_two_calls(), &answer_reply("Done.")], vec![webhook_answer(&json!(1))]).await;
    kit.register("edit", &json!({"callers": ["orchestrator:TOOL_EXECUTION"]})).await;
    for caller in [json!({"caller": "orchestrator:KNOWLEDGE_QA"}), json!({})] {
        let kit = ToolKit::new(&[&plan_of_two_calls()], vec![webhook_answer(&json!(1))]).await;
        kit.register("edit", &json!({"callers": ["orchestrator:TOOL_EXECUTION"]})).await;
        let mut request_fields = caller.clone();
        request_fields["findings"] = true.into();
        let events = kit.run(&request_fields).await;
        assert_eq!(kit.webhook.calls().started, 0); // P-033
        let codes: Vec<&Value> =
            event_data(&events, "finding").iter().map(|finding| &finding["code"]).collect();
        assert!(codes.iter().any(|code| code.as_str().unwrap().contains("tool_forbidden")), "{codes:?}"); // P-033
    }
    let events = kit.run(&json!({"caller": "orchestrator:TOOL_EXECUTION"})).await;
    assert_eq!(result_codes(&events), ["ok", "ok"]);
}

#[tokio::test]
async fn an_error_of_a_tool_is_told_and_the_rest_does_not_run() {
    let kit = ToolKit::new(
        &[&plan_of_two_calls(), &answer_reply("Sorry.")],
        vec![crate::mock::response_script(500, "text/plain", "no such document")],
    )
    .await;
    let events = kit.run(&english_option()).await;
    check_tool_stream(&events);
    assert_eq!(result_codes(&events), ["http_status", "not_run"]);
    assert_eq!(kit.webhook.calls().started, 1);
    assert_eq!(event_data(&events, "tool_start").len(), 1);
    assert!(
        kit.last_prompt().contains("the webhook answered 500: no such document"),
        "{}",
        kit.last_prompt()
    );
    assert_eq!(joined_text(&events, "final_delta"), "Sorry.");
    assert_eq!(events.last().unwrap().name, "completed");
    assert_eq!(kit.server.metric("tambour_tool_failures_total").await, 1);
    // Every text but those of the model and the tool is in the language of the texts.
    assert!(kit.last_prompt().is_ascii(), "{}", kit.last_prompt());
    let failed_answer = crate::mock::response_script(500, "text/plain", "no such document");
    let kit = ToolKit::new(&[&plan_of_two_calls(), &answer_reply("Sorry.")], vec![failed_answer]).await;
    kit.run(&json!({})).await;
    let prompt = kit.last_prompt();
    assert!(prompt.contains("webhook 返回状态 500：no such document"), "{prompt}");
    assert!(prompt.contains("计划中它之前的一个调用失败"), "{prompt}");
}

#[tokio::test]
async fn going_round_in_circles_ends_the_message() {
    let (a, b) = (plan_reply(&[("lint", "a")]), plan_reply(&[("lint", "b")]));
    let four_equal_replies: Vec<&str> = vec![&a, &a, &a, &a];
    let turns: Vec<&str> = vec![&a, &b, &a, &b, &a];
    for (replies, ran) in [(four_equal_replies, 2), (turns, 3)] {
        let kit = ToolKit::new(&replies, vec![webhook_answer(&json!(1))]).await;
        let events = kit.run(&json!({})).await;
        check_tool_stream(&events);
        assert_eq!(events.last().unwrap().name, "error"); // J-035
        assert_eq!(events.last().unwrap().data["code"], "tool_loop");
        assert_eq!(kit.webhook.calls().started, ran);
        assert_eq!(result_codes(&events).last().unwrap(), "not_run");
        assert_eq!(event_names(&events)[event_names(&events).len() - 2], "final_end"); // X-014
        assert_eq!(kit.server.wait_ended(&stream_message_id(&events)).await["status"], "failed");
        assert_eq!(kit.server.metric("tambour_tool_loops_total").await, 1);
    }
}

#[tokio::test]
async fn tools_are_called_so_often_and_no_more() {
    let replies: Vec<String> = (0..4).map(|n| plan_reply(&[("lint", &n.to_string())])).collect();
    let replies = replies.iter().map(|text| reply_script(text, 9)).collect();
    let kit =
        ToolKit::new_with(replies, vec![webhook_answer(&json!(1))], |config| config.tools.max_iterations = 2)
            .await;
    let events = kit.run(&json!({})).await;
    check_tool_stream(&events);
    assert_eq!(events.last().unwrap().data["code"], "tool_iterations");
    assert!(events.last().unwrap().data["message"].as_str().unwrap().contains("tools.max_iterations"));
    assert_eq!(kit.webhook.calls().started, 2);
}

#[tokio::test]
async fn an_unusable_reply_in_the_loop_is_asked_again_and_kept() {
    // The second reply is no plan; nothing of it is on the log.
    let kit = ToolKit::new(
        &[&plan_of_two_calls(), "No plan.", &answer_reply("Done.")],
        vec![webhook_answer(&json!(1))],
    )
    .await;
    let events = kit.run(&json!({"max_reasks": 1})).await;
    check_tool_stream(&events);
    assert_eq!(joined_text(&events, "final_delta"), "Done.");
    let metadata = &events.last().unwrap().data["metadata"];
    assert_eq!((&metadata["reasks"], metadata.get("fallback_reason")), (&json!(1), None)); // X-009
    assert_eq!(event_data(&events, "phase_start").len(), 2);
    assert_eq!(kit.webhook.calls().started, 2);
    let record = kit.server.wait_ended(&stream_message_id(&events)).await;
    let attempts = record["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 1); // P-034
    assert_eq!((&attempts[0]["raw"], &attempts[0]["finish_reason"]), (&json!("No plan."), &json!("stop"))); // P-034
    assert_eq!(attempts[0]["findings"][0]["code"], "plan_missing"); // P-034
    assert_eq!(record["reply"], format!("{}\n{}", plan_of_two_calls(), answer_reply("Done.")));
    // Without leave it is the fallback, after what ran.
    let kit =
        ToolKit::new(&[&plan_of_two_calls(), "<<ParsingError>>"], vec![webhook_answer(&json!(1))]).await;
    let events = kit.run(&json!({})).await;
    check_tool_stream(&events);
    assert_eq!(events.last().unwrap().data["metadata"]["fallback_reason"], "parsing_error");
}

#[tokio::test]
async fn an_upstream_that_fails_after_tools_ends_the_message() {
    let scripts = vec![
        reply_script(&plan_of_two_calls(), 9),
        vec![delta_step("```json\n{\"thought\": \"half"), Step::Reset],
    ];
    let kit = ToolKit::new_with(scripts, vec![webhook_answer(&json!(1))], |_| {}).await;
    let events = kit.run(&json!({})).await;
    check_tool_stream(&events);
    assert_eq!(events.last().unwrap().data["code"], "upstream_closed"); // J-035
    assert_eq!(result_codes(&events), ["ok", "ok"]);
}

#[tokio::test]
async fn cancelling_stops_a_webhook_that_runs() {
    let kit = ToolKit::new(&[&plan_of_two_calls()], vec![vec![Step::WaitDisconnect]]).await;
    let mut stream = kit.server.open_stream(&tool_request(&json!({}))).await;
    let mut events = stream.read_until("tool_start").await;
    kit.webhook.wait_until(|calls| calls.started == 1).await;
    kit.server.call("post", &format!("/api/v1/messages/{}/cancel", stream_message_id(&events)), None).await;
    kit.webhook.wait_until(|calls| calls.abandoned == 1).await;
    events.extend(stream.read_rest().await);
    crate::client::check_stream(&events);
    check_tool_stream(&events);
    assert_eq!(events.last().unwrap().data["finish_reason"], "cancelled"); // X-014
    assert_eq!(result_codes(&events), ["cancelled", "not_run"]);
    assert_eq!(kit.model.calls().started, 1);
    assert_eq!(kit.server.wait_ended(&stream_message_id(&events)).await["status"], "cancelled");
}

#[tokio::test]
async fn a_webhook_that_runs_is_not_dropped_when_nobody_reads() {
    let gate = Gate::new();
    let mut slow = vec![Step::Wait(gate.clone())];
    slow.extend(webhook_answer(&json!("slow")));
    let replies = vec![
        reply_script(&plan_reply(&[("lint", "a")]), 9),
        vec![Step::WaitDisconnect],
        reply_script(&answer_reply("Done."), 9),
    ];
    let kit = ToolKit::new_with(replies, vec![slow], |config| config.grace_ms = 50).await;
    let mut stream = kit.server.open_stream(&tool_request(&json!({}))).await;
    let first_events = stream.read_until("tool_start").await;
    let (id, last) = (stream_message_id(&first_events), first_events.last().unwrap().id.unwrap());
    drop(stream);
    kit.server.wait_for_metric("tambour_streams_open", 0).await;
    kit.webhook.wait_until(|calls| calls.started == 1).await;
    // The grace period of a later message is over, and this call continues.
    drop(kit.server.open_stream(&tool_request(&json!({}))).await);
    kit.model.wait_until(|calls| calls.abandoned == 1).await;
    assert_eq!(kit.webhook.calls().ended, 0);
    let mut reader = kit.server.follow(&id, &[("last-event-id", &last.to_string())]).await;
    gate.open();
    let mut events: Vec<Event> = numbered_events(&first_events);
    events.extend(numbered_events(&reader.read_rest().await)); // J-036
    check_tool_stream(&events);
    assert_eq!(result_codes(&events), ["ok"]);
    assert_eq!(joined_text(&events, "final_delta"), "Done.");
    assert_eq!(numbered_events(&kit.server.follow(&id, &[]).await.read_checked().await), events);
}

#[tokio::test]
async fn a_reader_who_comes_back_anywhere_sees_the_rest() {
    let kit =
        ToolKit::new(&[&plan_of_two_calls(), &answer_reply("Done.")], vec![webhook_answer(&json!(1))]).await;
    let events = numbered_events(&kit.run(&json!({})).await);
    let id = stream_message_id(&events);
    for (at, event) in events.iter().enumerate() {
        let last = event.id.unwrap().to_string();
        let mut reader = kit.server.follow(&id, &[("last-event-id", &last)]).await;
        let rest = if reader.status == 204 { Vec::new() } else { numbered_events(&reader.read_rest().await) };
        assert_eq!(rest, events[at + 1..], "{last}"); // J-036
    }
}

#[tokio::test]
async fn a_message_of_another_key_is_not_found() {
    let mock = MockServer::start(vec![reply_script(&plan_reply(&[("ask", "a")]), 9)]).await;
    let mut server = TestServer::start_default(&mock).await;
    let admin = server.post("/api/v1/keys", &json!({"name": "a", "rights": "admin"})).await.json;
    server.set_key(admin["key"].as_str());
    let other = server.post("/api/v1/keys", &json!({"name": "b"})).await.json;
    let inline = json!([{"name": "ask", "schema": {"type": "object"}}]);
    let mut stream = server.open_stream(&tool_request(&json!({"tools": inline}))).await;
    let events = stream.read_until("tool_start").await;
    let path = format!("/api/v1/messages/{}", stream_message_id(&events));
    server.set_key(other["key"].as_str());
    let result = json!({"results": [{"call_id": "call_1", "ok": true, "result": 1}]});
    let approval = json!({"confirmations": [{"call_id": "call_1", "allow": true}]});
    let refusal = server.post(&format!("{path}/tool_results"), &result).await;
    assert_eq!((refusal.status, refusal.problem_code()), (404, "not_found"));
    let refusal = server.post(&format!("{path}/tool_confirmations"), &approval).await;
    assert_eq!((refusal.status, refusal.problem_code()), (404, "not_found"));
    server.set_key(admin["key"].as_str());
    let cancellation = server.call("post", &format!("{path}/cancel"), None).await;
    assert_eq!(cancellation.status, 202);
    with_timeout(stream.read_rest()).await;
}

#[tokio::test]
async fn a_reply_calls_so_many_tools_and_no_more() {
    let texts: Vec<String> = (0..129).map(|n| n.to_string()).collect();
    let calls: Vec<(&str, &str)> = texts.iter().map(|text| ("lint", text.as_str())).collect();
    let kit = ToolKit::new(&[&plan_reply(&calls)], vec![webhook_answer(&json!(1))]).await;
    let events = kit.run(&json!({})).await;
    check_tool_stream(&events);
    assert_eq!(events.last().unwrap().data["code"], "tool_calls");
    assert_eq!(kit.webhook.calls().started, 0);
    assert_eq!(result_codes(&events).len(), 129);
}
