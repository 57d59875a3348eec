//! A server in a process of its own.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::mock::{Mock, reply};
use crate::server::{Folder, Tambour};

/// A server in a process of its own, so that its memory can be told from that of the tests.
pub(crate) struct Apart {
    pub(crate) server: Tambour,
    child: Child,
}

impl Apart {
    /// One that logs to the file `log` of its folder, with content if wanted.
    pub(crate) fn start(mock: &Mock, content: bool) -> Apart {
        let folder = Folder::new();
        let log = std::fs::File::create(folder.0.join("log")).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["apart::child", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .env("TAMBOUR_APART", format!("{};{content};{}", mock.url(), folder.0.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines.find_map(|line| line.ok()?.strip_prefix("LISTENS ")?.parse().ok());
        Apart { server: Tambour::remote(folder, address.expect("it listens")), child }
    }

    /// No record of a message is made from now on, until the file is removed.
    pub(crate) fn hold_records(&self) -> PathBuf {
        self.server.folder.file(HOLD, "")
    }

    /// Anonymous memory of the server in KiB.
    pub(crate) fn memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
        line.trim().strip_suffix(" kB")?.trim().parse().ok()
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The file that holds records back.
const HOLD: &str = "hold";
static FOLDER: OnceLock<PathBuf> = OnceLock::new();

fn hold(point: &'static str) {
    let file = FOLDER.get().expect("it is set before anything runs").join(HOLD);
    if point == "record.before" {
        // Other tasks of this thread go on in another one.
        tokio::task::block_in_place(|| {
            while file.exists() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
    }
}

/// Not a test: the server of another process. It ends with its parent.
#[test]
#[ignore = "other tests run it"]
fn child() {
    let given = std::env::var("TAMBOUR_APART").expect("the parent says what to serve");
    let parts: Vec<&str> = given.splitn(3, ';').collect();
    let folder = Folder(parts[2].into());
    let mut config = crate::server::config(&folder);
    FOLDER.set(folder.0.clone()).unwrap();
    tambour_server::fail::arm(hold);
    std::mem::forget(folder);
    config.add_upstream(parts[0], None).unwrap();
    config.log_content = parts[1] == "true";
    config.log_json = true;
    tambour_server::logs::start(&config).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let server = tambour_server::Server::start(config).await.unwrap();
        println!("\nLISTENS {}", server.address());
        let parent = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
        server.serve(async { drop(parent.await) }).await;
    });
}

#[tokio::test]
async fn the_log_has_no_prompts_and_no_keys_unless_asked() {
    for content in [false, true] {
        let mock = Mock::start(vec![reply("a-private-reply", 4)]).await;
        let mut apart = Apart::start(&mock, content);
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
