//! MCP servers that are programs: a shell script that speaks the protocol.

use std::time::Duration;

use serde_json::{Value, json};
use tambour_server::Config;
use tambour_server::config::McpConfig;

use crate::client::Event;
use crate::mcp_kit::{naming, until_listed};
use crate::mock::{Mock, reply};
use crate::server::{Folder, Tambour, within};
use crate::tool_kit::{all, answer, plan, results, sound};

/// Answers each request with its `$id`; `CALL` is replaced by the action of a call.
const SHELL: &str = r#"
say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
text() { say "{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) say '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"method":"tools/list"'*) say '{"tools":[{"name":"run","description":"runs","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"tools/call"'*) CALL ;;
  esac
done
echo ended > "$FOLDER_OF_TEST/ended"
"#;

fn shell(call: &str, folder: &Folder, more: &Value) -> McpConfig {
    let script = SHELL.replace("CALL", call).replace("$FOLDER_OF_TEST", &folder.0.display().to_string());
    let mut given = json!({"command": "sh", "args": ["-c", script], "tools": ["run"], "timeout_ms": 5000});
    given.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(given).unwrap()
}

/// A server whose model calls the tool in each of `messages` messages.
async fn server(call: &str, more: &Value, messages: usize) -> (Tambour, Folder) {
    let replies = (0..messages).flat_map(|n| [plan(&[("run", &n.to_string())]), answer("Done.")]);
    let model = Mock::start(replies.map(|text| reply(&text, 9)).collect()).await;
    let folder = Folder::new();
    let server = Tambour::start(&model, |config: &mut Config| {
        config.tools.max_answer = 10_000;
        config.mcp.insert("shell".to_owned(), shell(call, &folder, more));
    })
    .await;
    (server, folder)
}

async fn run(server: &Tambour) -> Vec<Event> {
    let events = server.stream(&naming(&["run"])).await.whole().await;
    sound(&events);
    assert_eq!(events.last().unwrap().name, "completed", "{events:?}");
    events
}

#[tokio::test]
async fn a_program_has_the_variables_it_is_given_and_ends_with_the_server() {
    // Cargo sets both for tests.
    let call = r#"text "$CARGO_PKG_NAME, $CARGO_PKG_VERSION, ${HOME:+home}""#;
    let (server, folder) = server(call, &json!({"env": ["CARGO_PKG_NAME"]}), 1).await;
    until_listed(&server, &["run"]).await;
    let events = run(&server).await;
    let home = if std::env::var_os("HOME").is_some() { "home" } else { "" };
    let name = std::env::var("CARGO_PKG_NAME").unwrap();
    assert_eq!(all(&events, "tool_result")[0]["result"], format!("{name}, , {home}"));
    assert!(!folder.0.join("ended").exists());
    // The program had time to end on its own.
    server.stopped().await;
    assert!(folder.0.join("ended").exists());
}

#[tokio::test]
async fn a_program_that_dies_in_a_call_is_started_again_and_the_call_is_not_repeated() {
    let call = r#"echo x >> "$FOLDER_OF_TEST/calls"; if [ -e "$FOLDER_OF_TEST/died" ]; then text again; else touch "$FOLDER_OF_TEST/died"; exit 3; fi"#;
    let (server, folder) = server(call, &json!({}), 2).await;
    let events = run(&server).await;
    assert_eq!(results(&events), ["broken_answer"]);
    let events = run(&server).await;
    assert_eq!(all(&events, "tool_result")[0]["result"], "again");
    assert_eq!(std::fs::read_to_string(folder.0.join("calls")).unwrap(), "x\nx\n");
}

#[tokio::test]
async fn what_a_program_says_is_bounded() {
    // A line without end, and much output beside the protocol.
    let call = r#"yes said >&2 | head -c 3000000 >&2; if [ -e "$FOLDER_OF_TEST/said" ]; then text again; else touch "$FOLDER_OF_TEST/said"; head -c 6000000 /dev/zero | tr '\0' x; fi"#;
    let call = call.replace("yes said >&2 |", "yes said |");
    let (server, _folder) = server(&call, &json!({}), 2).await;
    let events = run(&server).await;
    assert_eq!(results(&events), ["answer_too_large"]);
    let events = run(&server).await;
    assert_eq!(all(&events, "tool_result")[0]["result"], "again");
}

#[tokio::test]
async fn a_program_that_does_not_end_is_ended() {
    let call = r#"echo $$ > "$FOLDER_OF_TEST/pid"; trap '' TERM; while :; do sleep 1; done"#;
    let (server, folder) = server(call, &json!({"timeout_ms": 300}), 1).await;
    let events = run(&server).await;
    assert_eq!(results(&events), ["timeout"]);
    let pid = std::fs::read_to_string(folder.0.join("pid")).unwrap().trim().to_owned();
    let lives = |pid: &str| {
        let sent =
            std::process::Command::new("kill").args(["-0", pid]).stderr(std::process::Stdio::null()).status();
        sent.unwrap().success()
    };
    server.stopped().await;
    within(async {
        while lives(&pid) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_program_that_hangs_is_started_anew() {
    let call = r#"if [ -e "$FOLDER_OF_TEST/hung" ]; then text again; else touch "$FOLDER_OF_TEST/hung"; exec sleep 1000; fi"#;
    let (server, _folder) = server(call, &json!({"timeout_ms": 300}), 1000).await;
    assert_eq!(results(&run(&server).await), ["timeout"]);
    // Calls are tried until the server has noticed that the program does not list its tools either.
    within(async { while results(&run(&server).await) != ["ok"] {} }).await;
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_told() {
    let model = Mock::start(vec![reply(&answer("x"), 9)]).await;
    let server = Tambour::start(&model, |config: &mut Config| {
        let given = json!({"command": "/nowhere/at/all", "tools": ["run"]});
        config.mcp.insert("shell".to_owned(), serde_json::from_value(given).unwrap());
    })
    .await;
    let refused = server.post("/api/v1/messages", &naming(&["run"])).await;
    assert_eq!((refused.status, refused.problem()), (503, "tool_unavailable"), "{}", refused.text);
}
