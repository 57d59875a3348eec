//! Servers that share a PostgreSQL database, each in a process of its own: what one decides holds on all, and what one leaves
//! behind is ended by another.

#[cfg(target_os = "linux")]
mod clocks;
mod connections;
mod database;
mod dead_connections;
mod faults;
#[cfg(target_os = "linux")]
mod full_disk;
mod proxy;
mod random;
mod readers;
mod rolling;
mod shared;
mod slow_disk;
mod transfer;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tambour_server::Server;
use tokio::signal::unix::{SignalKind, signal};

use crate::child_process::{child_arguments, child_command, run_async};
use crate::mock::{MockServer, Step, delta_step, finish_steps};
use crate::postgres::cluster as postgres;
use crate::server::{Folder, TestServer};
use crate::tool_kit::allow_local_webhooks;

/// Key that all servers are configured with.
const KEY: &str = "a-key-of-all-servers";
/// Lease of a server in these tests.
const LEASE_SECONDS: u32 = 2;

/// Server in a process of its own.
struct Member {
    server: TestServer,
    child: Child,
}

/// Options with which a server is started.
#[derive(Clone)]
struct Setup {
    /// URL of the database.
    database: String,
    /// Upstream, as `KIND=URL`.
    upstream: String,
    /// Port at which the other servers reach this one, if it is not its own.
    public_port: Option<u16>,
    /// Time for running messages when the server stops.
    drain_ms: u64,
    /// Time after which a message without readers ends.
    grace_ms: u64,
    /// Days after which messages are deleted.
    retention_days: Option<u32>,
    /// Further variables of the process.
    variables: Vec<(String, String)>,
}

impl Setup {
    fn new(database: &str, mock: &MockServer) -> Setup {
        Setup {
            database: database.to_owned(),
            upstream: mock.url(),
            public_port: None,
            drain_ms: 10_000,
            grace_ms: 10_000,
            retention_days: None,
            variables: Vec::new(),
        }
    }
}

impl Member {
    /// Starts a server on a database.
    fn start(database: &str, mock: &MockServer) -> Member {
        Member::start_with(&Setup::new(database, mock))
    }

    /// Starts a server.
    fn start_with(setup: &Setup) -> Member {
        let folder = Folder::new();
        let log = std::fs::File::create(folder.0.join("log")).unwrap();
        let arguments = json!({"database": setup.database, "upstream": setup.upstream, "folder": folder.0,
            "public_port": setup.public_port, "drain_ms": setup.drain_ms, "grace_ms": setup.grace_ms,
            "retention_days": setup.retention_days});
        let mut child = child_command("cluster::child", &arguments)
            .envs(setup.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines.find_map(|line| line.ok()?.strip_prefix("LISTENS ")?.parse().ok());
        let Some(address) = address else {
            panic!("{}", std::fs::read_to_string(folder.0.join("log")).unwrap());
        };
        let mut server = TestServer::remote(folder, address);
        server.set_key(Some(KEY));
        Member { server, child }
    }

    /// Kills the process.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends the process a signal, such as `STOP`.
    fn signal(&self, name: &str) {
        let status = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status();
        assert!(status.unwrap().success());
    }

    fn log(&self) -> String {
        std::fs::read_to_string(Path::new(&self.server.folder.0).join("log")).unwrap_or_default()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("log of {}:\n{}", self.server.address, self.log());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reply of so many words, with a pause of so many milliseconds before each.
fn long_reply(words: usize, pause: u64) -> Vec<Step> {
    let mut script: Vec<Step> =
        (0..words).map(|at| Step::After(pause, Box::new(delta_step(&format!("word {at} "))))).collect();
    script.extend(finish_steps("stop"));
    script
}

/// Starts so many servers on a new database.
async fn start_members(count: usize, mock: &MockServer) -> (String, Vec<Member>) {
    let database = postgres().await.new_database().await;
    let setup = Setup { grace_ms: 1500, ..Setup::new(&database, mock) };
    let members = (0..count).map(|_| Member::start_with(&setup)).collect();
    (database, members)
}

/// Not a test: a server of another process. It ends with its parent.
#[test]
#[ignore = "other tests run it"]
fn child() {
    let arguments: Value = child_arguments();
    let folder = Folder(arguments["folder"].as_str().unwrap().into());
    let mut config = crate::server::test_config(&folder);
    std::mem::forget(folder);
    config.database = arguments["database"].as_str().map(str::to_owned);
    config.api_key = Some(KEY.to_owned());
    config.cluster.lease_seconds = LEASE_SECONDS;
    config.grace_ms = arguments["grace_ms"].as_u64().unwrap();
    config.drain_ms = arguments["drain_ms"].as_u64().unwrap();
    config.retention.days = arguments["retention_days"].as_u64().map(|days| days.try_into().unwrap());
    config.cluster.address = arguments["public_port"].as_u64().map(|port| format!("http://127.0.0.1:{port}"));
    allow_local_webhooks(&mut config);
    config.add_upstream(arguments["upstream"].as_str().unwrap(), Some("a-model".to_owned())).unwrap();
    tambour_server::logs::start(&config).unwrap();
    run_async(async {
        let server = match Server::start(config).await {
            Ok(server) => server,
            Err(error) => {
                eprintln!("{error}");
                std::process::exit(1);
            }
        };
        println!("\nLISTENS {}", server.address());
        let parent = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
        let mut terminations = signal(SignalKind::terminate()).unwrap();
        let stop = async {
            tokio::select! {
                _ = parent => {}
                _ = terminations.recv() => {}
            }
        };
        if let Err(error) = server.serve(stop).await {
            eprintln!("{error}");
        }
        // The parent holds the other end of the pipe that is read in the background.
        std::process::exit(0);
    });
}
