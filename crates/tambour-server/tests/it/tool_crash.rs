//! A process that dies during a call: the call is never repeated, and its message reports the outcome as unknown.

use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::client::{check, names, numbered, text};
use crate::mock::{Mock, reply};
use crate::server::{Folder, Tambour, config};
use crate::tool_kit::{all, answer, ask, english, gives, local, plan, results, schema, sound};

/// Fail point at which to die, and how often it is passed before.
static POINT: OnceLock<(String, usize)> = OnceLock::new();
static PASSED: AtomicUsize = AtomicUsize::new(0);

fn die(point: &'static str) {
    let Some((wanted, before)) = POINT.get() else { return };
    if wanted == point && PASSED.fetch_add(1, Ordering::Relaxed) == *before {
        // Aborts as if killed: nothing is flushed or closed.
        std::process::abort();
    }
}

/// Not a test: the dying process, run by its parent.
#[test]
#[ignore = "the tests below run it"]
fn child() {
    let given = std::env::var("TAMBOUR_TOOL_CRASH").expect("the parent says where to die");
    let parts: Vec<&str> = given.splitn(5, ';').collect();
    POINT.set((parts[0].to_owned(), parts[1].parse().unwrap())).unwrap();
    tambour_server::fail::arm(die);
    let folder = Folder(parts[4].into());
    let mut config = config(&folder);
    local(&mut config);
    config.add_upstream(parts[2], None).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let server = Tambour::serve(folder, config).await;
        let tool = json!({"schema": schema(), "executor": {"kind": "http", "url": parts[3]}});
        for name in ["lint", "edit"] {
            assert_eq!(server.put(&format!("/api/v1/tools/{name}"), &tool).await.status, 200);
        }
        let mut stream = server.stream(&ask(&english())).await;
        stream.rest().await;
        std::mem::forget(server);
    });
    std::process::exit(0);
}

#[tokio::test]
async fn a_call_under_way_is_unknown_after_a_crash_and_not_repeated() {
    for (point, before, sent, came_to) in [
        ("tool.started", 0, 0, ["unknown", "not_run"]),
        ("tool.answered", 0, 1, ["unknown", "not_run"]),
        // The result of the first call is stored, and stays.
        ("tool.started", 1, 1, ["ok", "unknown"]),
    ] {
        let plan = plan(&[("lint", "a"), ("edit", "b")]);
        let model = Mock::start(vec![reply(&plan, 9), reply(&answer("Done."), 9)]).await;
        let hook = Mock::start(vec![gives(&json!(1))]).await;
        let folder = Folder::new();
        let url = format!("http://{}/", hook.address);
        let mut child = Command::new(std::env::current_exe().unwrap());
        child
            .args(["tool_crash::child", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .env(
                "TAMBOUR_TOOL_CRASH",
                format!("{point};{before};{};{url};{}", model.url(), folder.0.display()),
            )
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = child.spawn().unwrap();
        let died = tokio::task::spawn_blocking(move || child.wait().unwrap()).await.unwrap();
        assert!(!died.success(), "{point}: it died");
        assert_eq!(hook.calls().begun, sent, "{point}");
        let mut first = Vec::new();
        let mut folder = folder;
        for start in 0..2 {
            let mut config = config(&folder);
            local(&mut config);
            config.add_upstream(&model.url(), None).unwrap();
            let server = Tambour::serve(folder, config).await;
            let listed = server.get("/api/v1/conversations").await.json;
            let path =
                format!("/api/v1/conversations/{}", listed["data"][0]["conversation_id"].as_str().unwrap());
            let id = server.get(&path).await.json["messages"][0]["message_id"].as_str().unwrap().to_owned();
            let events = server.follow(&id, &[]).await;
            // The stored request asks for extensions, so they are all there.
            let events = numbered(&events.whole().await);
            check(&events);
            sound(&events);
            assert_eq!(results(&events), came_to, "{point}: {events:#?}");
            let names = names(&events);
            assert_eq!(&names[names.len() - 4..], ["thinking_end", "final_delta", "final_end", "error"]); // J-035
            assert_eq!(events.last().unwrap().data["code"], "interrupted");
            assert_eq!(server.ended(&id).await["status"], "failed");
            // In the language of the request, whatever the settings.
            assert!(text(&events, "final_delta").starts_with("Sorry"));
            assert!(all(&events, "tool_result")[1]["error"]["message"].as_str().unwrap().is_ascii());
            // Another start changes nothing.
            let frames: Vec<Value> = events.iter().map(|event| event.frame.clone().into()).collect();
            if start == 0 {
                first = frames;
            } else {
                assert_eq!(first, frames);
            }
            if start == 1 {
                // The next prompt has the known results of the calls.
                let more = json!({"conversation_id": listed["data"][0]["conversation_id"], "tools": []});
                server.stream(&ask(&more)).await.whole().await;
                let messages = model.asked().last().unwrap().body["messages"].clone();
                assert_eq!(messages.as_array().unwrap().len(), 5, "{messages:#}");
                assert_eq!(messages[1]["content"], plan);
                let told = messages[2]["content"].as_str().unwrap();
                for code in came_to.iter().filter(|code| **code != "ok") {
                    assert!(told.contains(&format!("\"{code}\"")), "{told}");
                }
                assert_eq!(messages[3]["content"], text(&events, "final_delta"));
            }
            folder = server.stopped().await;
        }
        assert_eq!(hook.calls().begun, sent, "{point}: a call is never repeated");
        assert_eq!(model.calls().begun, 2, "the message itself, and the one after it");
    }
}
