//! A server in a process of its own.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::child_process::{child_arguments, child_command, run_async};
use crate::mock::{MockServer, Step, delta_step, reply_script, response_script};
use crate::server::{Folder, TestServer};

/// A server in a process of its own, so that its memory can be measured apart from that of the tests.
pub(crate) struct ServerProcess {
    pub(crate) server: TestServer,
    child: Child,
}

impl ServerProcess {
    /// Starts a server that logs to the file `log` of its folder, with content if `content`.
    pub(crate) fn start(mock: &MockServer, content: bool) -> ServerProcess {
        ServerProcess::in_folder(Folder::new(), mock, content, false)
    }

    /// Starts a server that syncs its writes.
    pub(crate) fn durable(mock: &MockServer) -> ServerProcess {
        ServerProcess::in_folder(Folder::new(), mock, false, true)
    }

    /// Starts a durable server whose journal is slow to sync.
    pub(crate) fn slow(mock: &MockServer) -> ServerProcess {
        let folder = Folder::new();
        folder.write_file("slow", "");
        ServerProcess::in_folder(folder, mock, false, true)
    }

    /// Starts a server with further settings: `days` of retention, MCP servers by name (`mcp`), and held at some fail points.
    pub(crate) fn start_with(mock: &MockServer, settings: &Value, held_points: &[&str]) -> ServerProcess {
        let folder = Folder::new();
        folder.write_file("more.json", &settings.to_string());
        for point in held_points {
            folder.write_file(&format!("hold.{point}"), "");
        }
        ServerProcess::in_folder(folder, mock, false, false)
    }

    fn in_folder(folder: Folder, mock: &MockServer, content: bool, durable: bool) -> ServerProcess {
        let log = std::fs::File::create(folder.0.join("log")).unwrap();
        let arguments =
            json!({"upstream": mock.url(), "content": content, "durable": durable, "folder": folder.0});
        let mut child = child_command("server_process::child", &arguments)
            // The number of arenas of an allocator depends on the load of the machine, and their memory is not ours.
            .env("MALLOC_ARENA_MAX", "1")
            .env("MALLOC_TRIM_THRESHOLD_", "65536")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines.find_map(|line| line.ok()?.strip_prefix("LISTENS ")?.parse().ok());
        ServerProcess { server: TestServer::remote(folder, address.expect("it listens")), child }
    }

    /// Makes everything that reaches the fail point wait there, until it is released.
    pub(crate) fn hold_at(&self, point: &str) {
        self.server.folder.write_file(&format!("hold.{point}"), "");
    }

    /// Waits until something waits at a fail point.
    pub(crate) async fn wait_until_held(&self, point: &str) {
        self.wait_until_many_held(point, 1).await;
    }

    /// Waits until so many wait at a fail point.
    pub(crate) async fn wait_until_many_held(&self, point: &str, count: usize) {
        self.wait_for_held_count(point, |waiting| waiting >= count).await;
    }

    /// Releases a fail point, and waits until what waited there has continued.
    pub(crate) async fn release(&self, point: &str) {
        std::fs::remove_file(self.server.folder.0.join(format!("hold.{point}"))).unwrap();
        self.wait_for_held_count(point, |waiting| waiting == 0).await;
    }

    async fn wait_for_held_count(&self, point: &str, condition: impl Fn(usize) -> bool) {
        let is_of_point = |name: &str| {
            name.strip_prefix("held.")
                .and_then(|name| name.split_once('.'))
                .is_some_and(|(_, holding_point)| holding_point == point)
        };
        let count_waiting = || {
            let files = std::fs::read_dir(&self.server.folder.0).unwrap().map(Result::unwrap);
            files.filter(|file| is_of_point(&file.file_name().to_string_lossy())).count()
        };
        crate::server::with_timeout(async {
            while !condition(count_waiting()) {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    /// Makes everything that reaches the fail point panic, until the file is removed.
    pub(crate) fn make_panic_at(&self, point: &str) -> PathBuf {
        self.server.folder.write_file(&format!("panic.{point}"), "")
    }

    /// Makes the database's writer die at its next commit.
    pub(crate) fn kill_writer(&self) {
        self.server.folder.write_file("die.writer", "");
    }

    /// Kills the server: nothing is flushed or closed. Returns its folder.
    pub(crate) fn kill(mut self) -> Folder {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::mem::replace(&mut self.server.folder, Folder::new())
    }

    /// Waits until the server ends on its own: its exit code, its folder and its log.
    pub(crate) async fn wait_exit(mut self) -> (Option<i32>, Folder, String) {
        let code = crate::server::with_timeout(async {
            loop {
                if let Some(status) = self.child.try_wait().unwrap() {
                    return status.code();
                }
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        })
        .await;
        let folder = std::mem::replace(&mut self.server.folder, Folder::new());
        let log = std::fs::read_to_string(folder.0.join("log")).unwrap();
        (code, folder, log)
    }

    /// Anonymous memory of the server in KiB.
    pub(crate) fn memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
        line.trim().strip_suffix(" kB")?.trim().parse().ok()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Fail points at which a test may hold the server.
const HOLDABLE_POINTS: [&str; 8] = [
    "aside",
    "conversation.before",
    "deletion.after",
    "sweep",
    "sweep.dialogue",
    "sweep.listed",
    "turn.behind",
    "turn.over",
];

fn child_folder() -> &'static PathBuf {
    FOLDER.get().expect("it is set before anything runs")
}

fn wait_while_held(point: &'static str) {
    let folder = child_folder();
    if HOLDABLE_POINTS.contains(&point) {
        let file = folder.join(format!("hold.{point}"));
        if file.exists() {
            static NEXT: AtomicUsize = AtomicUsize::new(0);
            let marker = folder.join(format!("held.{}.{point}", NEXT.fetch_add(1, Ordering::Relaxed)));
            std::fs::write(&marker, "").unwrap();
            // Other tasks of this thread continue in another one.
            tokio::task::block_in_place(|| {
                while file.exists() {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
            });
            std::fs::remove_file(marker).unwrap();
        }
    }
    if point == "sync.before" && folder.join("slow").exists() {
        std::thread::sleep(std::time::Duration::from_millis(60));
    }
    if matches!(
        point,
        "run.end" | "record.before" | "turn" | "sweep" | "watch" | "checkpoint" | "sync.before" | "mcp"
    ) {
        assert!(!folder.join(format!("panic.{point}")).exists(), "`{point}` panics");
    }
    assert!(point != "database.before" || !folder.join("die.writer").exists(), "the writer dies");
}

/// Not a test: the server of another process. It ends with its parent.
#[test]
#[ignore = "other tests run it"]
fn child() {
    let arguments = child_arguments();
    let folder = Folder(arguments["folder"].as_str().unwrap().into());
    let mut config = crate::server::test_config(&folder);
    FOLDER.set(folder.0.clone()).unwrap();
    tambour_server::fail::arm(wait_while_held);
    std::mem::forget(folder);
    config.add_upstream(arguments["upstream"].as_str().unwrap(), None).unwrap();
    config.log_content = arguments["content"] == true;
    config.durable = arguments["durable"] == true;
    config.log_json = true;
    if let Ok(settings) = std::fs::read_to_string(child_folder().join("more.json")) {
        let settings: Value = serde_json::from_str(&settings).unwrap();
        config.retention.days = serde_json::from_value(settings["days"].clone()).unwrap();
        config.mcp = serde_json::from_value(settings["mcp"].clone()).unwrap_or_default();
    }
    tambour_server::logs::start(&config).unwrap();
    run_async(async {
        let server = tambour_server::Server::start(config).await.unwrap();
        println!("\nLISTENS {}", server.address());
        let parent = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
        if let Err(error) = server.serve(async { drop(parent.await) }).await {
            eprintln!("{error}");
            // The parent holds the other end of the pipe that is read in the background.
            std::process::exit(1);
        }
    });
}

#[tokio::test]
async fn the_log_has_no_prompts_and_no_keys_unless_asked() {
    for content in [false, true] {
        let mock = MockServer::start(vec![reply_script("a-private-reply", 4)]).await;
        let mut process = ServerProcess::start(&mock, content);
        let request =
            json!({"text": "a-private-question", "dialect": "plain", "output_protocol": "jsonseq_v1"});
        let events = process.server.open_stream(&request).await.read_checked().await;
        let key = process.server.post("/api/v1/keys", &json!({"name": "x", "rights": "admin"})).await.json;
        let secret = key["key"].as_str().unwrap().to_owned();
        process.server.set_key(Some(&secret));
        let last = process.server.get("/api/v1/settings?question=a-private-question").await;
        let last = last.headers["x-request-id"].to_str().unwrap().to_owned();
        let file = process.server.folder.0.join("log");
        let log = crate::server::with_timeout(async {
            loop {
                let log = std::fs::read_to_string(&file).unwrap();
                if log.contains(&last) {
                    return log;
                }
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        })
        .await;
        assert_eq!(log.contains("a-private-question"), content, "{log}");
        assert!(!log.contains(&secret), "{log}");
        assert!(log.contains(events[0].data["request_id"].as_str().unwrap()), "{log}");
        for line in log.lines().filter(|line| !line.is_empty()) {
            let line: Value = serde_json::from_str(line).expect("a line is a JSON object");
            assert!(line["level"].is_string() && line["timestamp"].is_string(), "{line}");
        }
    }
}

/// Lines of a log, as soon as one of them contains `awaited`.
pub(crate) async fn log_lines(process: &ServerProcess, awaited: &str) -> Vec<Value> {
    let file = process.server.folder.0.join("log");
    crate::server::with_timeout(async {
        loop {
            let log = std::fs::read_to_string(&file).unwrap();
            if log.contains(awaited) {
                return log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await
}

#[tokio::test]
async fn lines_about_a_call_of_an_upstream_name_the_message() {
    let rate_limit = response_script(429, "application/json", "{}");
    let broken_reply = vec![Step::Send(b"data: {\"choices\": [\n\n".to_vec()), delta_step("x"), Step::Cut];
    let mock = MockServer::start(vec![rate_limit, broken_reply]).await;
    let process = ServerProcess::start(&mock, false);
    let request = json!({"text": "x", "dialect": "plain"});
    let id = process.server.post("/api/v1/messages", &request).await.json["message_id"].clone();
    process.server.wait_ended(id.as_str().unwrap()).await;
    let lines = log_lines(&process, "an upstream failed\"").await;
    for (message, code) in [
        ("an upstream failed; retrying", "upstream_rate_limited"),
        ("skipped a malformed frame of the upstream", ""),
        ("an upstream failed", "upstream_closed"),
        ("message", ""),
    ] {
        let line = lines.iter().find(|line| line["message"] == message);
        let line = line.unwrap_or_else(|| panic!("`{message}` is logged: {lines:#?}"));
        assert_eq!(line["message_id"], id, "{line}");
        assert_eq!(line["code"].as_str().unwrap_or(""), code, "{line}");
    }
}
