//! A process that dies during a call: the call is never repeated, and its message reports the outcome as unknown.

use serde_json::{Value, json};

use crate::child_process::{child_arguments, die_at, run_async, run_child};
use crate::client::{check_stream, event_names, joined_text, numbered_events};
use crate::mock::{MockServer, reply_script};
use crate::server::{Folder, TestServer, test_config};
use crate::tool_kit::{
    allow_local_webhooks, answer_reply, check_tool_stream, english_option, event_data, plan_reply,
    result_codes, tool_request, tool_schema, webhook_answer,
};

/// Not a test: the dying process, run by its parent.
#[test]
#[ignore = "the tests below run it"]
fn child() {
    let arguments = child_arguments();
    let text_argument = |name: &str| arguments[name].as_str().unwrap().to_owned();
    let crash_point = text_argument("point");
    die_at(arguments["number"].as_u64().unwrap(), move |point| point == crash_point);
    let folder = Folder(text_argument("folder").into());
    let mut config = test_config(&folder);
    allow_local_webhooks(&mut config);
    config.add_upstream(&text_argument("model"), None).unwrap();
    run_async(async {
        let server = TestServer::serve(folder, config).await;
        let tool = json!({"schema": tool_schema(), "executor": {"kind": "http", "url": arguments["hook"]}});
        for name in ["lint", "edit"] {
            assert_eq!(server.put(&format!("/api/v1/tools/{name}"), &tool).await.status, 200);
        }
        let mut stream = server.open_stream(&tool_request(&english_option())).await;
        stream.read_rest().await;
        std::mem::forget(server);
    });
    std::process::exit(0);
}

#[tokio::test]
async fn a_call_under_way_is_unknown_after_a_crash_and_not_repeated() {
    for (point, number, call_count, expected_codes) in [
        ("tool.started", 1, 0, ["unknown", "not_run"]),
        ("tool.answered", 1, 1, ["unknown", "not_run"]),
        // The result of the first call is stored, and stays.
        ("tool.started", 2, 1, ["ok", "unknown"]),
    ] {
        let plan = plan_reply(&[("lint", "a"), ("edit", "b")]);
        let model =
            MockServer::start(vec![reply_script(&plan, 9), reply_script(&answer_reply("Done."), 9)]).await;
        let hook = MockServer::start(vec![webhook_answer(&json!(1))]).await;
        let folder = Folder::new();
        let hook_url = format!("http://{}/", hook.address);
        let arguments = json!({"point": point, "number": number, "model": model.url(), "hook": hook_url, "folder": folder.0});
        let report = tokio::task::spawn_blocking(move || run_child("tool_crash::child", &arguments));
        assert_eq!(report.await.unwrap().death.as_deref(), Some(point));
        assert_eq!(hook.calls().started, call_count, "{point}");
        let mut first_frames = Vec::new();
        let mut folder = folder;
        for start in 0..2 {
            let mut config = test_config(&folder);
            allow_local_webhooks(&mut config);
            config.add_upstream(&model.url(), None).unwrap();
            let server = TestServer::serve(folder, config).await;
            let listing = server.get("/api/v1/conversations").await.json;
            let path =
                format!("/api/v1/conversations/{}", listing["data"][0]["conversation_id"].as_str().unwrap());
            let id = server.get(&path).await.json["messages"][0]["message_id"].as_str().unwrap().to_owned();
            let events = server.follow(&id, &[]).await;
            // The stored request asks for extensions, so they are all there.
            let events = numbered_events(&events.read_checked().await);
            check_stream(&events);
            check_tool_stream(&events);
            assert_eq!(result_codes(&events), expected_codes, "{point}: {events:#?}");
            let names = event_names(&events);
            assert_eq!(&names[names.len() - 4..], ["thinking_end", "final_delta", "final_end", "error"]); // J-035
            assert_eq!(events.last().unwrap().data["code"], "interrupted");
            assert_eq!(server.wait_ended(&id).await["status"], "failed");
            // In the language of the request, whatever the settings.
            assert!(joined_text(&events, "final_delta").starts_with("Sorry"));
            assert!(event_data(&events, "tool_result")[1]["error"]["message"].as_str().unwrap().is_ascii());
            // Another start changes nothing.
            let frames: Vec<Value> = events.iter().map(|event| event.frame.clone().into()).collect();
            if start == 0 {
                first_frames = frames;
            } else {
                assert_eq!(first_frames, frames);
            }
            if start == 1 {
                // The next prompt has the known results of the calls.
                let fields = json!({"conversation_id": listing["data"][0]["conversation_id"], "tools": []});
                server.open_stream(&tool_request(&fields)).await.read_checked().await;
                let messages = model.requests().last().unwrap().body["messages"].clone();
                assert_eq!(messages.as_array().unwrap().len(), 5, "{messages:#}");
                assert_eq!(messages[1]["content"], plan);
                let prompt = messages[2]["content"].as_str().unwrap();
                for code in expected_codes.iter().filter(|code| **code != "ok") {
                    assert!(prompt.contains(&format!("\"{code}\"")), "{prompt}");
                }
                assert_eq!(messages[3]["content"], joined_text(&events, "final_delta"));
            }
            folder = server.stop().await;
        }
        assert_eq!(hook.calls().started, call_count, "{point}: a call is never repeated");
        assert_eq!(model.calls().started, 2, "the message itself, and the one after it");
    }
}
