//! The state of a conversation after crashes: each message has changed it entirely or not at all.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tambour_fixtures::random::RandomSource;

use crate::server::{Folder, Tambour, config};
use crate::state::{Chat, of, said};

/// Fail points to pass before the process dies.
static LEFT: AtomicU64 = AtomicU64::new(0);

/// Fail points that are no writes.
const NO_WRITES: [&str; 3] = ["decode", "run", "schema"];

fn die(point: &'static str) {
    if !NO_WRITES.contains(&point) && LEFT.fetch_sub(1, Ordering::SeqCst) == 1 {
        see(&format!("dies {point}"));
        // Aborts as if killed: nothing is flushed or closed.
        std::process::abort();
    }
}

/// Prints at once what the client has seen: a line of standard output for each thing.
fn see(what: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\nSEEN {what}").unwrap();
    out.flush().unwrap();
}

/// A server whose model changes the state with every reply.
async fn serve(folder: Folder) -> Tambour {
    let first = json!([["ADD", "a", 1], ["ADD", "b", 1], ["PUSH", "log", "x"]]);
    let add = said("a", &[first, json!([["ADD", "c", 1]])]);
    let recording = json!({"id": "a", "chunks": [add], "finish_reason": "stop", "delays_ms": [0]});
    let file = folder.file("replies.jsonl", &recording.to_string());
    let mut config = config(&folder);
    config.add_upstream(&format!("replay={}", file.display()), None).unwrap();
    Tambour::serve(folder, config).await
}

/// The state after so many replies.
fn after(replies: i64) -> Value {
    let log = vec!["x"; usize::try_from(replies).unwrap()];
    json!({"a": replies, "b": replies, "c": replies, "log": log})
}

/// Client of the dying process in a new conversation.
async fn work(server: Tambour) {
    let chat = Chat::of(server).await;
    see(&chat.conversation);
    chat.operate(json!([["SET", "a", 0], ["SET", "b", 0], ["SET", "c", 0], ["SET", "log", []]])).await;
    see("0");
    chat.ask("1").await;
    see("1");
    let second = chat.ask("2").await;
    see("2");
    chat.regenerate(&second).await;
    see("2 again");
    chat.server.call("delete", &of(&second, ""), None).await;
    see("end");
    // The folder belongs to the parent.
    std::mem::forget(chat);
    std::process::exit(0);
}

/// Client of the dying process in a long conversation: before each action it prints the states that may follow, afterwards the one
/// that did.
async fn go_on(chat: Chat, seed: u64) {
    let mut random = RandomSource::new(seed);
    loop {
        let now = chat.state().await["a"].as_i64().unwrap();
        let messages = completed(&chat).await;
        if messages.len() >= MESSAGES {
            break;
        }
        let doing = |states: &[i64]| see(&format!("doing {}", json!(states)));
        match random.below(10) {
            0 if !messages.is_empty() => {
                let to = random.pick(&messages)["message_id"].as_str().unwrap();
                // The state after a message whose updates were rolled back is gone.
                let state = chat.server.get(&chat.path(&format!("?at={to}"))).await;
                if state.status == 200 {
                    doing(&[now, state.json["state"]["a"].as_i64().unwrap()]);
                    let back = chat.server.post(&chat.path("/rollback"), &json!({"to": to})).await;
                    assert_eq!(back.status, 200, "{}", back.text);
                }
            }
            1 | 2 if !messages.is_empty() => {
                // The state before the last message, and that with a reply in its place, which is known once the reply exists.
                doing(&(0..=now + 1).collect::<Vec<_>>());
                let last = messages.last().unwrap();
                let again = chat.server.call("post", &of(last, "/regenerate"), None).await;
                if again.status == 202 {
                    chat.server.ended(again.json["message_id"].as_str().unwrap()).await;
                }
            }
            3 => {
                doing(&[now, now + 1]);
                chat.operate(json!([
                    ["ADD", "a", 1],
                    ["ADD", "b", 1],
                    ["PUSH", "log", "x"],
                    ["ADD", "c", 1]
                ]))
                .await;
            }
            _ => {
                doing(&[now, now + 1]);
                chat.ask("on").await;
            }
        }
        let now = chat.state().await["a"].as_i64().unwrap();
        see(&format!("done {}", json!([now])));
    }
    see("end");
    std::mem::forget(chat);
    std::process::exit(0);
}

/// Target length of the long conversation, in messages.
const MESSAGES: usize = 200;

/// The completed messages of the conversation, oldest first; none of its messages runs.
async fn completed(chat: &Chat) -> Vec<Value> {
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
    let given = std::env::var("TAMBOUR_CRASH").expect("the parent says where to die");
    let parts: Vec<&str> = given.splitn(3, ';').collect();
    LEFT.store(parts[0].parse().unwrap(), Ordering::SeqCst);
    tambour_server::fail::arm(die);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let server = serve(Folder(parts[2].into())).await;
        match parts[1] {
            "" => work(server).await,
            conversation => {
                go_on(Chat { server, conversation: conversation.to_owned() }, parts[0].parse().unwrap())
                    .await;
            }
        }
    });
}

/// Output of the client of a process that dies after `points` fail points, and the point at which it died.
fn run(points: u64, conversation: &str, folder: &Folder) -> (Vec<String>, Option<String>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["state_crash::child", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env("TAMBOUR_CRASH", format!("{points};{conversation};{}", folder.0.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut seen: Vec<String> =
        lines.filter_map(|line| Some(line.ok()?.strip_prefix("SEEN ")?.to_owned())).collect();
    child.wait().unwrap();
    let died = seen.iter().position(|line| line.starts_with("dies "));
    // Another thread may have printed a line after it.
    let died = died.map(|at| seen.remove(at)["dies ".len()..].to_owned());
    (seen, died)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_leaves_whole_messages_only() {
    let mut died = 0;
    for points in 1.. {
        let folder = Folder::new();
        let (seen, _) = run(points, "", &folder);
        if seen.last().is_some_and(|last| last == "end") {
            break;
        }
        died += 1;
        let Some(conversation) = seen.first().cloned() else { continue };
        let chat = Chat { server: serve(folder).await, conversation };
        let state = chat.state().await;
        let last = seen.last().unwrap().as_str();
        // all of a message or nothing, and all of each message whose end a client has seen.
        let allowed: &[i64] = match last {
            "0" => &[0, 1],
            "1" => &[1, 2],
            "2" => &[1, 2],
            "2 again" => &[2],
            _ => &[0],
        };
        let fits = allowed.iter().any(|&replies| state == after(replies));
        assert!(fits || (state == json!({}) && seen.len() == 1), "{points} after `{last}`: {state}");
        whole(&chat, 0).await;
    }
    assert!(died > 10, "{died}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_conversation_that_dies_again_and_again_is_whole() {
    let chat = Chat::of(serve(Folder::new()).await).await;
    chat.operate(json!([["SET", "a", 0], ["SET", "b", 0], ["SET", "c", 0], ["SET", "log", []]])).await;
    let Chat { server, conversation } = chat;
    let mut folder = server.stopped().await;
    let mut allowed = vec![0];
    let mut died = BTreeSet::new();
    for life in 0.. {
        // Each place near the start of a process, then places at growing distances.
        let points = 1 + life + (life / 40) * 30;
        let (seen, point) = run(points, &conversation, &folder);
        died.extend(point);
        for line in &seen {
            let states = line.strip_prefix("doing ").or_else(|| line.strip_prefix("done "));
            allowed = states.map_or(allowed, |states| serde_json::from_str(states).unwrap());
        }
        let chat = Chat { server: serve(folder).await, conversation: conversation.clone() };
        let state = chat.state().await;
        // F-116, R-79
        let now = allowed.iter().copied().find(|&replies| state == after(replies));
        let Some(now) = now else { panic!("life {life}, dead at {points}: {state}, not one of {allowed:?}") };
        allowed = vec![now];
        whole(&chat, now).await;
        let ended = seen.last().is_some_and(|last| last == "end");
        folder = chat.server.stopped().await;
        if ended {
            break;
        }
        assert!(life < 400, "it comes to an end");
    }
    eprintln!("it died at {died:?}");
    for point in [
        "journal.before",
        "journal.after",
        "database.before",
        "database.after",
        "state.after",
        "record.before",
    ] {
        assert!(died.contains(point), "it never died at {point}: {died:?}");
    }
}

/// Checks that each completed message has both of its updates in the history or none, other messages none, and that the updates add
/// up to the present state.
async fn whole(chat: &Chat, now: i64) {
    let (mut updates, mut after) = (Vec::new(), -1);
    loop {
        let page = chat.server.get(&chat.path(&format!("/history?limit=100&after={after}"))).await;
        updates.extend(page.json["data"].as_array().expect(&page.text).iter().cloned());
        match page.json["has_more"] == true {
            true => after = updates.last().unwrap()["position"].as_i64().unwrap(),
            false => break,
        }
    }
    let whole: BTreeSet<String> =
        completed(chat).await.iter().map(|message| message["message_id"].to_string()).collect();
    let mut of_messages = std::collections::BTreeMap::<String, usize>::new();
    for update in updates.iter().filter(|update| !update["message_id"].is_null()) {
        *of_messages.entry(update["message_id"].to_string()).or_default() += 1;
    }
    for (message, updates) in of_messages {
        assert!(whole.contains(&message), "{message} has changed the state and is not completed");
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
