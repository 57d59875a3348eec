//! The state of a conversation after crashes: each message has changed it entirely or not at all.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tambour_fixtures::random::RandomSource;

use crate::child_process::{ChildReport, child_arguments, die_at, print_seen, run_async, run_child};
use crate::server::{Folder, TestServer, test_config};
use crate::state::{StateChat, message_path, reply_with_updates};

/// Fail points that are no writes.
const READ_POINTS: [&str; 3] = ["decode", "run", "schema"];

/// A server whose model changes the state with every reply.
async fn start_server(folder: Folder) -> TestServer {
    let first_updates = json!([["ADD", "a", 1], ["ADD", "b", 1], ["PUSH", "log", "x"]]);
    let add = reply_with_updates("a", &[first_updates, json!([["ADD", "c", 1]])]);
    let recording = json!({"id": "a", "chunks": [add], "finish_reason": "stop", "delays_ms": [0]});
    let file = folder.write_file("replies.jsonl", &recording.to_string());
    let mut config = test_config(&folder);
    config.add_upstream(&format!("replay={}", file.display()), None).unwrap();
    TestServer::serve(folder, config).await
}

/// The state after so many replies.
fn state_after(replies: i64) -> Value {
    let log = vec!["x"; usize::try_from(replies).unwrap()];
    json!({"a": replies, "b": replies, "c": replies, "log": log})
}

/// Client of the dying process in a new conversation.
async fn run_client(server: TestServer) {
    let chat = StateChat::new(server).await;
    print_seen("conversation", &json!(chat.conversation));
    let print_reply = |reply: &str| print_seen("reply", &json!(reply));
    chat.operate(json!([["SET", "a", 0], ["SET", "b", 0], ["SET", "c", 0], ["SET", "log", []]])).await;
    print_reply("0");
    chat.send("1").await;
    print_reply("1");
    let second_reply = chat.send("2").await;
    print_reply("2");
    chat.regenerate(&second_reply).await;
    print_reply("2 again");
    chat.server.call("delete", &message_path(&second_reply, ""), None).await;
    print_seen("end", &Value::Null);
    // The folder belongs to the parent.
    std::mem::forget(chat);
    std::process::exit(0);
}

/// Client of the dying process in a long conversation: before each action it prints the states that may follow, afterwards the one
/// that did.
async fn run_long_client(chat: StateChat, seed: u64) {
    let mut random = RandomSource::new(seed);
    loop {
        let now = chat.state().await["a"].as_i64().unwrap();
        let messages = completed_messages(&chat).await;
        if messages.len() >= MESSAGES {
            break;
        }
        let print_doing = |states: &[i64]| print_seen("doing", &json!(states));
        match random.below(10) {
            0 if !messages.is_empty() => {
                let message_id = random.pick(&messages)["message_id"].as_str().unwrap();
                // The state after a message whose updates were rolled back is gone.
                let state = chat.server.get(&chat.path(&format!("?at={message_id}"))).await;
                if state.status == 200 {
                    print_doing(&[now, state.json["state"]["a"].as_i64().unwrap()]);
                    let rollback =
                        chat.server.post(&chat.path("/rollback"), &json!({"to": message_id})).await;
                    assert_eq!(rollback.status, 200, "{}", rollback.text);
                }
            }
            1 | 2 if !messages.is_empty() => {
                // The state before the last message, and that with a reply in its place, which is known once the reply exists.
                print_doing(&(0..=now + 1).collect::<Vec<_>>());
                let last = messages.last().unwrap();
                let regenerated = chat.server.call("post", &message_path(last, "/regenerate"), None).await;
                if regenerated.status == 202 {
                    chat.server.wait_ended(regenerated.json["message_id"].as_str().unwrap()).await;
                }
            }
            3 => {
                print_doing(&[now, now + 1]);
                chat.operate(json!([
                    ["ADD", "a", 1],
                    ["ADD", "b", 1],
                    ["PUSH", "log", "x"],
                    ["ADD", "c", 1]
                ]))
                .await;
            }
            _ => {
                print_doing(&[now, now + 1]);
                chat.send("on").await;
            }
        }
        let now = chat.state().await["a"].as_i64().unwrap();
        print_seen("done", &json!([now]));
    }
    print_seen("end", &Value::Null);
    std::mem::forget(chat);
    std::process::exit(0);
}

/// Target length of the long conversation, in messages.
const MESSAGES: usize = 200;

/// The completed messages of the conversation, oldest first; none of its messages runs.
async fn completed_messages(chat: &StateChat) -> Vec<Value> {
    let mut all = Vec::new();
    loop {
        let after = all.last().map(|last: &Value| format!("&after={}", last["message_id"].as_str().unwrap()));
        let path =
            format!("/api/v1/conversations/{}?limit=100{}", chat.conversation, after.unwrap_or_default());
        let page = chat.server.get(&path).await;
        all.extend(page.json["messages"].as_array().expect(&page.text).iter().cloned());
        if page.json["has_more"] != true {
            break;
        }
    }
    assert!(all.iter().all(|message| message["status"] != "running"), "{all:#?}");
    all.retain(|message| message["status"] == "completed");
    all
}

/// Not a test: the dying process, run by its parent.
#[test]
#[ignore = "the tests below run it"]
fn child() {
    let arguments = child_arguments();
    let points = arguments["points"].as_u64().unwrap();
    let folder = Folder(arguments["folder"].as_str().unwrap().into());
    die_at(points, |point| !READ_POINTS.contains(&point));
    run_async(async {
        let server = start_server(folder).await;
        match arguments["conversation"].as_str() {
            None => run_client(server).await,
            Some(conversation) => {
                run_long_client(StateChat { server, conversation: conversation.to_owned() }, points).await;
            }
        }
    });
}

/// Runs a process that dies after `points` fail points, in a new conversation or a long one.
fn run_process(points: u64, conversation: Option<&str>, folder: &Folder) -> ChildReport {
    let arguments = json!({"points": points, "conversation": conversation, "folder": folder.0});
    run_child("state_crash::child", &arguments)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_leaves_whole_messages_only() {
    let mut deaths = 0;
    for points in 1.. {
        let folder = Folder::new();
        let report = run_process(points, None, &folder);
        if report.has_ended() {
            break;
        }
        deaths += 1;
        let Some(conversation) = report.find("conversation").and_then(Value::as_str) else { continue };
        let chat = StateChat { server: start_server(folder).await, conversation: conversation.to_owned() };
        let state = chat.state().await;
        let last = report.values("reply").last().and_then(Value::as_str).unwrap_or("nothing");
        // all of a message or nothing, and all of each message whose end a client has seen.
        let allowed: &[i64] = match last {
            "0" => &[0, 1],
            "1" => &[1, 2],
            "2" => &[1, 2],
            "2 again" => &[2],
            _ => &[0],
        };
        let is_allowed = allowed.iter().any(|&replies| state == state_after(replies));
        assert!(
            is_allowed || (state == json!({}) && report.seen.len() == 1),
            "{points} after `{last}`: {state}"
        );
        assert_whole_messages(&chat, 0).await;
    }
    assert!(deaths > 10, "{deaths}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_conversation_that_dies_again_and_again_is_whole() {
    let chat = StateChat::new(start_server(Folder::new()).await).await;
    chat.operate(json!([["SET", "a", 0], ["SET", "b", 0], ["SET", "c", 0], ["SET", "log", []]])).await;
    let StateChat { server, conversation } = chat;
    let mut folder = server.stop().await;
    let mut allowed = vec![0];
    let mut death_points = BTreeSet::new();
    for process in 0.. {
        // Each place near the start of a process, then places at growing distances.
        let points = 1 + process + (process / 40) * 30;
        let report = run_process(points, Some(&conversation), &folder);
        for (label, states) in &report.seen {
            if ["doing", "done"].contains(&label.as_str()) {
                allowed = serde_json::from_value(states.clone()).unwrap();
            }
        }
        let has_ended = report.has_ended();
        death_points.extend(report.death);
        let chat = StateChat { server: start_server(folder).await, conversation: conversation.clone() };
        let state = chat.state().await;
        // F-116, R-79
        let now = allowed.iter().copied().find(|&replies| state == state_after(replies));
        let Some(now) = now else {
            panic!("life {process}, dead at {points}: {state}, not one of {allowed:?}")
        };
        allowed = vec![now];
        assert_whole_messages(&chat, now).await;
        folder = chat.server.stop().await;
        if has_ended {
            break;
        }
        assert!(process < 400, "it comes to an end");
    }
    eprintln!("it died at {death_points:?}");
    for point in [
        "journal.before",
        "journal.after",
        "database.before",
        "database.after",
        "state.after",
        "record.before",
    ] {
        assert!(death_points.contains(point), "it never died at {point}: {death_points:?}");
    }
}

/// Checks that each completed message has both of its updates in the history or none, other messages none, and that the updates add
/// up to the present state.
async fn assert_whole_messages(chat: &StateChat, now: i64) {
    let (mut updates, mut after) = (Vec::new(), -1);
    loop {
        let page = chat.server.get(&chat.path(&format!("/history?limit=100&after={after}"))).await;
        updates.extend(page.json["data"].as_array().expect(&page.text).iter().cloned());
        match page.json["has_more"] == true {
            true => after = updates.last().unwrap()["position"].as_i64().unwrap(),
            false => break,
        }
    }
    let completed_ids: BTreeSet<String> =
        completed_messages(chat).await.iter().map(|message| message["message_id"].to_string()).collect();
    let mut updates_by_message = std::collections::BTreeMap::<String, usize>::new();
    for update in updates.iter().filter(|update| !update["message_id"].is_null()) {
        *updates_by_message.entry(update["message_id"].to_string()).or_default() += 1;
    }
    for (message, updates) in updates_by_message {
        assert!(completed_ids.contains(&message), "{message} has changed the state and is not completed");
        assert_eq!(updates, 2, "{message}");
    }
    let mut fold = None;
    for result in updates.iter().flat_map(|update| update["results"].as_array().unwrap()) {
        if result["path"] == "a" {
            assert!(fold.is_none_or(|fold| result["before"] == fold), "{fold:?}: {result}");
            fold = result["after"].as_i64();
        }
    }
    assert!(now == 0 || fold.is_none_or(|fold| fold == now), "{fold:?} is not {now}");
}
