//! The server as a process: signals, and a log that cannot be written.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A running server, killed when dropped.
struct RunningServer {
    child: Child,
    address: String,
}

/// An empty folder for one test.
fn new_folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("tambour-serve-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

impl RunningServer {
    /// Starts a server by a shell line in which `$0` stands for the command with its arguments.
    fn start(line: &str, folder: &Path, options: &str) -> RunningServer {
        let command = format!(
            "{} serve --listen 127.0.0.1:0 --data {}/data {options}",
            env!("CARGO_BIN_EXE_tambour"),
            folder.display()
        );
        let errors = if line == UNREAD_STDERR { Stdio::piped() } else { Stdio::null() };
        let mut child = Command::new("sh")
            .args(["-c", &line.replace("$0", &command)])
            .current_dir(folder)
            .env("TAMBOUR_LOG", "debug")
            .env("TAMBOUR_DRAIN_MS", "60000")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .expect("the command starts");
        // Standard error has no reader.
        drop(child.stderr.take());
        let mut first_line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first_line).unwrap();
        let address =
            first_line.trim().strip_prefix("listening on http://").expect("the first line").to_owned();
        RunningServer { child, address }
    }

    /// Status and body of an answer.
    fn call(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        write!(
            socket,
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}",
            self.address
        )
        .unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn signal(&self, name: &str) {
        let kill_result = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status();
        assert!(kill_result.unwrap().success());
    }

    /// The exit code, if the process ends in time.
    fn wait_exit(&mut self, limit: Duration) -> Option<i32> {
        let start_time = Instant::now();
        while start_time.elapsed() < limit {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        None
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Shell line that starts the server; its standard error is a pipe whose other end is closed.
const UNREAD_STDERR: &str = "exec $0 # unread";

const LONG_WAIT: Duration = Duration::from_secs(30);

#[test]
fn its_health_is_an_exit_code() {
    let folder = new_folder("health");
    let mut server = RunningServer::start("exec $0", &folder, "--upstream demo");
    let (_, port) = server.address.rsplit_once(':').expect("an address has a port");
    // An unspecified address, as that of a server in a container, stands for this machine.
    for address in [server.address.clone(), format!("0.0.0.0:{port}")] {
        let ran = crate::run(&["health", &address], "");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "ok\n"), "{}", ran.stderr);
        assert_eq!(crate::run(&["health", "--ready", &address], "").code, Some(0));
    }
    let address = server.address.clone();
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let ran = crate::run(&["health", &address], "");
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("/healthz"), "{}", ran.stderr);
    assert_eq!(crate::run(&["health", "nonsense"], "").code, Some(2));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_second_signal_ends_it_at_once() {
    for (first, second) in [("TERM", "TERM"), ("INT", "TERM"), ("TERM", "INT")] {
        let folder = new_folder("signals");
        // A reply that does not end on its own.
        let slow =
            r#"{"id": "a", "chunks": ["one ", "two"], "finish_reason": "stop", "delays_ms": [1, 600000]}"#;
        std::fs::write(folder.join("slow.jsonl"), slow).unwrap();
        let mut running_server = RunningServer::start("exec $0", &folder, "--upstream replay=slow.jsonl");
        let (status, response) =
            running_server.call("POST", "/api/v1/messages", r#"{"text": "x", "dialect": "plain"}"#);
        assert_eq!(status, 202, "{response}");
        let response: Value = serde_json::from_str(&response).unwrap();
        running_server.signal(first);
        // It has heard of it, and waits for the message.
        let signal_time = Instant::now();
        while TcpStream::connect(&running_server.address).is_ok() {
            assert!(signal_time.elapsed() < LONG_WAIT, "it takes connections");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(running_server.child.try_wait().unwrap(), None);
        running_server.signal(second);
        assert_eq!(running_server.wait_exit(Duration::from_secs(5)), Some(130));
        // The message that was cut off is closed at the next start.
        let running_server = RunningServer::start("exec $0", &folder, "");
        let path = format!("/api/v1/messages/{}", response["message_id"].as_str().unwrap());
        let (_, record) = running_server.call("GET", &path, "");
        let record: Value = serde_json::from_str(&record).unwrap();
        assert_eq!((&record["status"], &record["error"]["code"]), (&"failed".into(), &"interrupted".into()));
        drop(running_server);
        let _ = std::fs::remove_dir_all(folder);
    }
}

#[test]
fn one_signal_ends_it_well() {
    let folder = new_folder("signal");
    for name in ["TERM", "INT"] {
        let mut running_server = RunningServer::start("exec $0", &folder, "");
        running_server.signal("HUP");
        assert_eq!(running_server.call("GET", "/healthz", ""), (200, "ok\n".to_owned()));
        running_server.signal(name);
        assert_eq!(running_server.wait_exit(LONG_WAIT), Some(0), "{name}");
    }
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn lost_messages_stop_the_start_until_they_are_accepted() {
    let folder = new_folder("loss");
    let slow = r#"{"id": "a", "chunks": ["one ", "two"], "finish_reason": "stop", "delays_ms": [1, 600000]}"#;
    std::fs::write(folder.join("slow.jsonl"), slow).unwrap();
    let mut running_server = RunningServer::start("exec $0", &folder, "--upstream replay=slow.jsonl");
    let (_, response) =
        running_server.call("POST", "/api/v1/messages", r#"{"text": "x", "dialect": "plain"}"#);
    let response: Value = serde_json::from_str(&response).unwrap();
    let id = response["message_id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/messages/{id}");
    while !running_server.call("GET", &path, "").1.contains("one") {
        std::thread::sleep(Duration::from_millis(5));
    }
    running_server.signal("KILL");
    running_server.wait_exit(LONG_WAIT);
    drop(running_server);
    let journal = folder.join("data/tambour.journal");
    let file = std::fs::read_dir(&journal).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&file).unwrap();
    let at = bytes.windows(4).position(|part| part == b"one ").expect("the reply is on the journal");
    bytes[at] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let refusal = Command::new(env!("CARGO_BIN_EXE_tambour"))
        .args(["serve", "--listen", "127.0.0.1:0", "--data", "data"])
        .current_dir(&folder)
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&refusal.stderr);
    assert_eq!(refusal.status.code(), Some(1), "{message}");
    assert!(refusal.stdout.is_empty());
    for part in [&*id, "0000000000000001.log is damaged at byte", "start once with `--accept-loss`"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let running_server = RunningServer::start("exec $0", &folder, "--accept-loss");
    let record: Value = serde_json::from_str(&running_server.call("GET", &path, "").1).unwrap();
    assert_eq!((&record["status"], &record["error"]["code"]), (&"failed".into(), &"interrupted".into()));
    let damaged_copy = journal.join("0000000000000001.log.damaged");
    assert_eq!(std::fs::read(damaged_copy).unwrap(), bytes);
    drop(running_server);
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn a_log_that_cannot_be_written_stops_nothing() {
    // Full, closed, and with nobody who reads it.
    for (name, line) in
        [("full", "exec $0 2>/dev/full"), ("closed", "exec $0 2>&-"), ("unread", UNREAD_STDERR)]
    {
        if name == "full" && !Path::new("/dev/full").exists() {
            continue;
        }
        let folder = new_folder(name);
        let quick = r#"{"id": "a", "chunks": ["one ", "two"], "finish_reason": "stop"}"#;
        std::fs::write(folder.join("quick.jsonl"), quick).unwrap();
        let mut running_server = RunningServer::start(line, &folder, "--upstream replay=quick.jsonl");
        let request = r#"{"text": "x", "dialect": "plain", "wait": true}"#;
        for _ in 0..3 {
            let (status, record) = running_server.call("POST", "/api/v1/messages", request);
            assert_eq!(status, 200, "{name}: {record}");
            let record: Value = serde_json::from_str(&record).unwrap();
            assert_eq!(record["status"], "completed", "{name}");
        }
        // Errors are logged, too.
        assert_eq!(running_server.call("POST", "/api/v1/messages", "{").0, 400, "{name}");
        running_server.signal("HUP");
        running_server.signal("TERM");
        assert_eq!(running_server.wait_exit(LONG_WAIT), Some(0), "{name}");
        drop(running_server);
        let _ = std::fs::remove_dir_all(folder);
    }
}

/// The product as both ends of MCP: the server calls a tool of `tambour mcp`, which ends with it.
#[cfg(feature = "mcp")]
#[test]
fn tools_of_tambour_mcp_are_called_by_the_server() {
    let folder = new_folder("mcp");
    let plan_text = serde_json::json!({"thought": "It is broken.", "response_mode": "TOOL_EXECUTION", "direct_response": null,
        "tool_calls": [{"name": "own_json", "args": {"text": "Sure: {\"ok\": True,}"}}, {"name": "own_decode", "args": {"text": "a", "options": {"nope": 1}}}]});
    let answer = serde_json::json!({"thought": "Now I know.", "response_mode": "KNOWLEDGE_QA", "direct_response": "Mended.", "tool_calls": []});
    let record = |id: &str, reply: &Value| serde_json::json!({"id": id, "chunks": [reply.to_string()], "finish_reason": "stop"});
    std::fs::write(
        folder.join("plans.jsonl"),
        format!("{}\n{}\n", record("a", &plan_text), record("b", &answer)),
    )
    .unwrap();
    let config = format!(
        "[mcp.own]\ncommand = \"{}\"\nargs = [\"mcp\"]\ntools = [\"json\", \"decode\"]\nprefix = \"own_\"\n",
        env!("CARGO_BIN_EXE_tambour")
    );
    std::fs::write(folder.join("tambour.toml"), config).unwrap();
    let mut running_server = RunningServer::start("exec $0", &folder, "--upstream replay=plans.jsonl");
    let request = r#"{"text": "x", "dialect": "aiplan", "tools": ["own_json", "own_decode"], "extensions": true, "wait": true,
        "contract": {"options": {"text_language": "en"}}}"#;
    let (status, record) = running_server.call("POST", "/api/v1/messages", request);
    assert_eq!(status, 200, "{record}");
    let record: Value = serde_json::from_str(&record).unwrap();
    let events = record["events"].as_array().unwrap();
    let results: Vec<&Value> =
        events.iter().filter(|event| event["event"] == "tool_result").map(|event| &event["data"]).collect();
    assert_eq!(results[0]["result"]["json"], "{\"ok\":true}", "{record}");
    assert_eq!(results[1]["error"]["code"], "tool_failed");
    assert!(results[1]["error"]["message"].as_str().unwrap().contains("unknown option `nope`"));
    assert_eq!(record["status"], "completed");
    let (_, tools) = running_server.call("GET", "/api/v1/tools", "");
    let tools: Value = serde_json::from_str(&tools).unwrap();
    let names: Vec<&str> =
        tools["data"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["own_decode", "own_json"]);
    assert_eq!(tools["data"][1]["read_only"], true);
    running_server.signal("TERM");
    assert_eq!(running_server.wait_exit(LONG_WAIT), Some(0));
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn an_open_address_without_a_key_is_wrong_use() {
    let folder = new_folder("open-address");
    let serve = |key: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tambour"));
        command.args(["serve", "--listen", "0.0.0.0:0", "--data", "data"]).current_dir(&folder);
        command
            .env_remove("TAMBOUR_API_KEY")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        key.map(|key| command.env("TAMBOUR_API_KEY", key));
        command.spawn().expect("the command starts")
    };
    let output = serve(None).wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{errors}");
    assert!(errors.contains("TAMBOUR_API_KEY"), "{errors}");
    // With a key it listens.
    let mut child = serve(Some("0123456789abcdef01234567"));
    let mut first_line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first_line).unwrap();
    let _ = child.kill();
    let _ = child.wait();
    assert!(first_line.starts_with("listening on http://"), "{first_line}");
}
