//! A server in a process of its own.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::mock::{Mock, Step, delta, reply, whole};
use crate::server::{Folder, Tambour};

/// A server in a process of its own, so that its memory can be measured apart from that of the tests.
pub(crate) struct ServerProcess {
    pub(crate) server: Tambour,
    child: Child,
}

impl ServerProcess {
    /// Starts a server that logs to the file `log` of its folder, with content if `content`.
    pub(crate) fn start(mock: &Mock, content: bool) -> ServerProcess {
        ServerProcess::in_folder(Folder::new(), mock, content, false)
    }

    /// Starts a server that syncs its writes.
    pub(crate) fn durable(mock: &Mock) -> ServerProcess {
        ServerProcess::in_folder(Folder::new(), mock, false, true)
    }

    /// Starts a durable server whose journal is slow to sync.
    pub(crate) fn slow(mock: &Mock) -> ServerProcess {
        let folder = Folder::new();
        folder.file("slow", "");
        ServerProcess::in_folder(folder, mock, false, true)
    }

    /// Starts a server with further settings: `days` of retention, MCP servers by name (`mcp`), and held at some fail points.
    pub(crate) fn with(mock: &Mock, more: &Value, held: &[&str]) -> ServerProcess {
        let folder = Folder::new();
        folder.file("more.json", &more.to_string());
        for point in held {
            folder.file(&format!("hold.{point}"), "");
        }
        ServerProcess::in_folder(folder, mock, false, false)
    }

    fn in_folder(folder: Folder, mock: &Mock, content: bool, durable: bool) -> ServerProcess {
        let log = std::fs::File::create(folder.0.join("log")).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["apart::child", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .env("TAMBOUR_APART", format!("{};{content};{durable};{}", mock.url(), folder.0.display()))
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
        ServerProcess { server: Tambour::remote(folder, address.expect("it listens")), child }
    }

    /// Makes everything that reaches the fail point wait there, until it is released.
    pub(crate) fn hold(&self, point: &str) {
        self.server.folder.file(&format!("hold.{point}"), "");
    }

    /// Waits until something waits at a fail point.
    pub(crate) async fn until_held(&self, point: &str) {
        self.until_many_held(point, 1).await;
    }

    /// Waits until so many wait at a fail point.
    pub(crate) async fn until_many_held(&self, point: &str, many: usize) {
        self.until_held_are(point, |held| held >= many).await;
    }

    /// Releases a fail point, and waits until what waited there has continued.
    pub(crate) async fn let_go(&self, point: &str) {
        std::fs::remove_file(self.server.folder.0.join(format!("hold.{point}"))).unwrap();
        self.until_held_are(point, |held| held == 0).await;
    }

    async fn until_held_are(&self, point: &str, fits: impl Fn(usize) -> bool) {
        let of_point = |name: &str| {
            name.strip_prefix("held.")
                .and_then(|name| name.split_once('.'))
                .is_some_and(|(_, of)| of == point)
        };
        let held = || {
            let files = std::fs::read_dir(&self.server.folder.0).unwrap().map(Result::unwrap);
            files.filter(|file| of_point(&file.file_name().to_string_lossy())).count()
        };
        crate::server::within(async {
            while !fits(held()) {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    /// Makes everything that reaches the fail point panic, until the file is removed.
    pub(crate) fn panic_at(&self, point: &str) -> PathBuf {
        self.server.folder.file(&format!("panic.{point}"), "")
    }

    /// Makes the database's writer die at its next commit.
    pub(crate) fn kill_writer(&self) {
        self.server.folder.file("die.writer", "");
    }

    /// Kills the server: nothing is flushed or closed. Returns its folder.
    pub(crate) fn killed(mut self) -> Folder {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::mem::replace(&mut self.server.folder, Folder::new())
    }

    /// Waits until the server ends on its own: its exit code, its folder and its log.
    pub(crate) async fn ended(mut self) -> (Option<i32>, Folder, String) {
        let code = crate::server::within(async {
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
const HELD: [&str; 8] = [
    "aside",
    "conversation.before",
    "deletion.after",
    "sweep",
    "sweep.dialogue",
    "sweep.listed",
    "turn.behind",
    "turn.over",
];

fn folder_of() -> &'static PathBuf {
    FOLDER.get().expect("it is set before anything runs")
}

fn hold(point: &'static str) {
    let folder = folder_of();
    if HELD.contains(&point) {
        let file = folder.join(format!("hold.{point}"));
        if file.exists() {
            static NEXT: AtomicUsize = AtomicUsize::new(0);
            let held = folder.join(format!("held.{}.{point}", NEXT.fetch_add(1, Ordering::Relaxed)));
            std::fs::write(&held, "").unwrap();
            // Other tasks of this thread continue in another one.
            tokio::task::block_in_place(|| {
                while file.exists() {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
            });
            std::fs::remove_file(held).unwrap();
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
    let given = std::env::var("TAMBOUR_APART").expect("the parent says what to serve");
    let parts: Vec<&str> = given.splitn(4, ';').collect();
    let folder = Folder(parts[3].into());
    let mut config = crate::server::config(&folder);
    FOLDER.set(folder.0.clone()).unwrap();
    tambour_server::fail::arm(hold);
    std::mem::forget(folder);
    config.add_upstream(parts[0], None).unwrap();
    config.log_content = parts[1] == "true";
    config.durable = parts[2] == "true";
    config.log_json = true;
    if let Ok(more) = std::fs::read_to_string(folder_of().join("more.json")) {
        let more: Value = serde_json::from_str(&more).unwrap();
        config.retention.days = serde_json::from_value(more["days"].clone()).unwrap();
        config.mcp = serde_json::from_value(more["mcp"].clone()).unwrap_or_default();
    }
    tambour_server::logs::start(&config).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let server = tambour_server::Server::start(config).await.unwrap();
        println!("\nLISTENS {}", server.address());
        let parent = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
        if let Err(broken) = server.serve(async { drop(parent.await) }).await {
            eprintln!("{broken}");
            // The parent holds the other end of the pipe that is read in the background.
            std::process::exit(1);
        }
    });
}

#[tokio::test]
async fn the_log_has_no_prompts_and_no_keys_unless_asked() {
    for content in [false, true] {
        let mock = Mock::start(vec![reply("a-private-reply", 4)]).await;
        let mut apart = ServerProcess::start(&mock, content);
        let ask = json!({"text": "a-private-question", "dialect": "plain", "output_protocol": "jsonseq_v1"});
        let events = apart.server.stream(&ask).await.whole().await;
        let key = apart.server.post("/api/v1/keys", &json!({"name": "x", "rights": "admin"})).await.json;
        let secret = key["key"].as_str().unwrap().to_owned();
        apart.server.key(Some(&secret));
        let last = apart.server.get("/api/v1/settings?question=a-private-question").await;
        let last = last.headers["x-request-id"].to_str().unwrap().to_owned();
        let file = apart.server.folder.0.join("log");
        let log = crate::server::within(async {
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
pub(crate) async fn lines(apart: &ServerProcess, awaited: &str) -> Vec<Value> {
    let file = apart.server.folder.0.join("log");
    crate::server::within(async {
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
    let refused = whole(429, "application/json", "{}");
    let broken = vec![Step::Send(b"data: {\"choices\": [\n\n".to_vec()), delta("x"), Step::Cut];
    let mock = Mock::start(vec![refused, broken]).await;
    let apart = ServerProcess::start(&mock, false);
    let ask = json!({"text": "x", "dialect": "plain"});
    let id = apart.server.post("/api/v1/messages", &ask).await.json["message_id"].clone();
    apart.server.ended(id.as_str().unwrap()).await;
    let lines = lines(&apart, "an upstream failed\"").await;
    for (said, code) in [
        ("an upstream failed, and is asked again", "upstream_rate_limited"),
        ("a frame of the upstream is not what it should be; passed over", ""),
        ("an upstream failed", "upstream_closed"),
        ("message", ""),
    ] {
        let line = lines.iter().find(|line| line["message"] == said);
        let line = line.unwrap_or_else(|| panic!("`{said}` is logged: {lines:#?}"));
        assert_eq!(line["message_id"], id, "{line}");
        assert_eq!(line["code"].as_str().unwrap_or(""), code, "{line}");
    }
}
