//! MCP servers that are programs: a shell script that speaks the protocol.

use std::time::Duration;

use serde_json::{Value, json};
use tambour_server::Config;
use tambour_server::config::McpConfig;

use crate::client::Event;
use crate::mcp_kit::{request_with_tools, wait_until_listed};
use crate::mock::{MockServer, reply_script};
use crate::server::{Folder, TestServer, with_timeout};
use crate::tool_kit::{answer_reply, check_tool_stream, event_data, plan_reply, result_codes};

/// Answers each request with its `$id`; `CALL` is replaced by the action of a call.
const SHELL_SCRIPT: &str = r#"
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

fn shell_config(call_script: &str, folder: &Folder, fields: &Value) -> McpConfig {
    let script =
        SHELL_SCRIPT.replace("CALL", call_script).replace("$FOLDER_OF_TEST", &folder.0.display().to_string());
    let mut config = json!({"command": "sh", "args": ["-c", script], "tools": ["run"], "timeout_ms": 5000});
    config.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    serde_json::from_value(config).unwrap()
}

/// A server whose model calls the tool in each of `messages` messages.
async fn server(call_script: &str, fields: &Value, messages: usize) -> (TestServer, Folder) {
    let replies = (0..messages).flat_map(|n| [plan_reply(&[("run", &n.to_string())]), answer_reply("Done.")]);
    let model = MockServer::start(replies.map(|text| reply_script(&text, 9)).collect()).await;
    let folder = Folder::new();
    let server = TestServer::start(&model, |config: &mut Config| {
        config.tools.max_answer = 10_000;
        config.mcp.insert("shell".to_owned(), shell_config(call_script, &folder, fields));
    })
    .await;
    (server, folder)
}

async fn run_message(server: &TestServer) -> Vec<Event> {
    let events = server.open_stream(&request_with_tools(&["run"])).await.read_checked().await;
    check_tool_stream(&events);
    assert_eq!(events.last().unwrap().name, "completed", "{events:?}");
    events
}

#[tokio::test]
async fn a_program_has_the_variables_it_is_given_and_ends_with_the_server() {
    // Cargo sets both for tests.
    let call_script = r#"text "$CARGO_PKG_NAME, $CARGO_PKG_VERSION, ${HOME:+home}""#;
    let (server, folder) = server(call_script, &json!({"env": ["CARGO_PKG_NAME"]}), 1).await;
    wait_until_listed(&server, &["run"]).await;
    let events = run_message(&server).await;
    let home = if std::env::var_os("HOME").is_some() { "home" } else { "" };
    let name = std::env::var("CARGO_PKG_NAME").unwrap();
    assert_eq!(event_data(&events, "tool_result")[0]["result"], format!("{name}, , {home}"));
    assert!(!folder.0.join("ended").exists());
    // The program had time to end on its own.
    server.stop().await;
    assert!(folder.0.join("ended").exists());
}

#[tokio::test]
async fn a_program_that_dies_in_a_call_is_started_again_and_the_call_is_not_repeated() {
    let call_script = r#"echo x >> "$FOLDER_OF_TEST/calls"; if [ -e "$FOLDER_OF_TEST/died" ]; then text again; else touch "$FOLDER_OF_TEST/died"; exit 3; fi"#;
    let (server, folder) = server(call_script, &json!({}), 2).await;
    let events = run_message(&server).await;
    assert_eq!(result_codes(&events), ["broken_answer"]);
    let events = run_message(&server).await;
    assert_eq!(event_data(&events, "tool_result")[0]["result"], "again");
    assert_eq!(std::fs::read_to_string(folder.0.join("calls")).unwrap(), "x\nx\n");
}

#[tokio::test]
async fn what_a_program_says_is_bounded() {
    // A line without end, and much output beside the protocol.
    let call_script = r#"yes said >&2 | head -c 3000000 >&2; if [ -e "$FOLDER_OF_TEST/said" ]; then text again; else touch "$FOLDER_OF_TEST/said"; head -c 6000000 /dev/zero | tr '\0' x; fi"#;
    let call_script = call_script.replace("yes said >&2 |", "yes said |");
    let (server, _folder) = server(&call_script, &json!({}), 2).await;
    let events = run_message(&server).await;
    assert_eq!(result_codes(&events), ["answer_too_large"]);
    let events = run_message(&server).await;
    assert_eq!(event_data(&events, "tool_result")[0]["result"], "again");
}

#[tokio::test]
async fn a_program_that_does_not_end_is_ended() {
    let call_script = r#"echo $$ > "$FOLDER_OF_TEST/pid"; trap '' TERM; while :; do sleep 1; done"#;
    let (server, folder) = server(call_script, &json!({"timeout_ms": 300}), 1).await;
    let events = run_message(&server).await;
    assert_eq!(result_codes(&events), ["timeout"]);
    let pid = std::fs::read_to_string(folder.0.join("pid")).unwrap().trim().to_owned();
    let is_alive = |pid: &str| {
        let kill_result =
            std::process::Command::new("kill").args(["-0", pid]).stderr(std::process::Stdio::null()).status();
        kill_result.unwrap().success()
    };
    server.stop().await;
    with_timeout(async {
        while is_alive(&pid) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_program_that_hangs_is_started_anew() {
    let call_script = r#"if [ -e "$FOLDER_OF_TEST/hung" ]; then text again; else touch "$FOLDER_OF_TEST/hung"; exec sleep 1000; fi"#;
    let (server, _folder) = server(call_script, &json!({"timeout_ms": 300}), 1000).await;
    assert_eq!(result_codes(&run_message(&server).await), ["timeout"]);
    // Calls are tried until the server has noticed that the program does not list its tools either.
    with_timeout(async { while result_codes(&run_message(&server).await) != ["ok"] {} }).await;
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_told() {
    let model = MockServer::start(vec![reply_script(&answer_reply("x"), 9)]).await;
    let server = TestServer::start(&model, |config: &mut Config| {
        let mcp_config = json!({"command": "/nowhere/at/all", "tools": ["run"]});
        config.mcp.insert("shell".to_owned(), serde_json::from_value(mcp_config).unwrap());
    })
    .await;
    let refusal = server.post("/api/v1/messages", &request_with_tools(&["run"])).await;
    assert_eq!((refusal.status, refusal.problem_code()), (503, "tool_unavailable"), "{}", refusal.text);
}
