//! Servers that share a PostgreSQL database, each in a process of its own: what one decides holds on all, and what one leaves
//! behind is ended by another.

mod database;
mod faults;
mod random;
mod shared;
mod transfer;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tambour_server::Server;

use crate::child_process::{child_arguments, child_command, run_async};
use crate::mock::MockServer;
use crate::postgres::cluster as postgres;
use crate::server::{Folder, TestServer};

/// Key that all servers are configured with.
const KEY: &str = "a-key-of-all-servers";
/// Lease of a server in these tests.
const LEASE_SECONDS: u32 = 2;

/// Server in a process of its own.
struct Member {
    server: TestServer,
    child: Child,
}

impl Member {
    /// Starts a server on a database.
    fn start(database: &str, mock: &MockServer) -> Member {
        let folder = Folder::new();
        let log = std::fs::File::create(folder.0.join("log")).unwrap();
        let arguments = json!({"database": database, "upstream": mock.url(), "folder": folder.0});
        let mut child = child_command("cluster::child", &arguments)
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

/// Starts so many servers on a new database.
async fn start_members(count: usize, mock: &MockServer) -> (String, Vec<Member>) {
    let database = postgres().await.new_database().await;
    let members = (0..count).map(|_| Member::start(&database, mock)).collect();
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
    config.grace_ms = 1500;
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
        if let Err(error) = server.serve(async { drop(parent.await) }).await {
            eprintln!("{error}");
        }
        // The parent holds the other end of the pipe that is read in the background.
        std::process::exit(0);
    });
}
