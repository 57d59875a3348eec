//! A full disk that gets room again: a real file system of a few megabytes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::child_process::run_async;
use crate::client::{check_stream, joined_text};
use crate::mock::{Gate, MockServer, Step, delta_step, finish_steps};
use crate::server::{Folder, TestServer, with_timeout};

/// Not a test: the body of the test below, run with the folder on a file system of its own.
#[test]
#[ignore = "the test below runs it"]
fn child() {
    let folder: PathBuf = std::env::var_os("TAMBOUR_DISK").expect("a folder").into();
    run_async(test_full_then_free_disk(Folder(folder)));
}

#[test]
fn a_full_disk_is_told_and_nothing_is_lost_when_there_is_room_again() {
    let folder = Folder::new();
    let run = "mount -t tmpfs -o size=6m none \"$TAMBOUR_DISK\" && exec \"$0\" disk::child --exact --ignored --nocapture";
    let ran = Command::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c", run])
        .arg(std::env::current_exe().unwrap())
        .env("TAMBOUR_DISK", &folder.0)
        .output()
        .expect("`unshare` of util-linux");
    let (out, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "(it needs user namespaces)\n{out}\n{errors}");
    assert!(out.contains("1 passed"), "{out}\n{errors}");
}

/// Fills the file system completely.
fn fill(ballast: &Path) {
    let mut file = std::fs::File::options().create(true).append(true).open(ballast).unwrap();
    let mut size = 1 << 20;
    while size > 0 {
        while std::io::Write::write_all(&mut file, &vec![b'x'; size]).is_ok() {}
        size /= 2;
    }
}

/// Fills the file system until the server is not ready: it may remove a part of its journal that the database
/// has just taken over, which makes room again.
async fn fill_until_unready(server: &TestServer, ballast: &Path) {
    with_timeout(async {
        fill(ballast);
        while server.get("/readyz").await.status != 503 {
            fill(ballast);
        }
    })
    .await;
}

async fn test_full_then_free_disk(folder: Folder) {
    let gate = Gate::new();
    let mut script = vec![delta_step("before "), Step::Wait(gate.clone())];
    // More than the slack of what is allocated already.
    script.extend(
        (0..400).map(|n| delta_step(&format!("and piece {n} of what comes while there is no room; "))),
    );
    script.extend(finish_steps("stop"));
    let mock = MockServer::start(vec![
        script,
        vec![delta_step("after")].into_iter().chain(finish_steps("stop")).collect(),
    ])
    .await;
    let mut config = crate::server::test_config(&folder);
    config.drain_ms = 100;
    config.add_upstream(&mock.url(), None).unwrap();
    let ballast = folder.0.join("ballast");
    let server = TestServer::serve(folder, config).await;
    assert_eq!(server.get("/readyz").await.status, 200);
    let request = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
    let mut running = server.open_stream(&request).await;
    let mut events = running.read_until("final_delta").await;
    let id = crate::client::stream_message_id(&events);
    fill_until_unready(&server, &ballast).await;
    // Refused at once, though the end of a file still has room for a small record: without a wait, and without a call of the model
    // for a message that cannot be stored.
    let refusal = server.post("/api/v1/messages", &request).await;
    assert_eq!((refusal.status, refusal.problem_code()), (503, "store_unavailable"));
    gate.open();
    // Reported while the run waits, too.
    fill_until_unready(&server, &ballast).await;
    let refusal = server.post("/api/v1/messages", &request).await;
    assert_eq!((refusal.status, refusal.problem_code()), (503, "store_unavailable"));
    assert_eq!(mock.calls().started, 1, "the model was not asked");
    let snapshot = with_timeout(server.get(&format!("/api/v1/messages/{id}"))).await;
    assert!(
        snapshot.status == 200 && snapshot.json["status"] == "running",
        "{} {}",
        snapshot.status,
        snapshot.text
    );
    assert_eq!(server.get("/healthz").await.status, 200);
    // Room again: the run continues, with nothing lost.
    std::fs::remove_file(&ballast).unwrap();
    events.extend(running.read_rest().await);
    check_stream(&events);
    let final_text = joined_text(&events, "final_delta");
    assert!(
        final_text.starts_with("before and piece 0 ") && final_text.ends_with("no room;"),
        "{final_text}"
    );
    assert_eq!(final_text.matches("of what comes while there is no room;").count(), 400);
    let mut ready = server.get("/readyz").await;
    while ready.status != 200 {
        ready = server.get("/readyz").await;
    }
    let after = server.post("/api/v1/messages", &request).await;
    assert_eq!(after.status, 202);
    let record = server.wait_ended(after.json["message_id"].as_str().unwrap()).await;
    assert_eq!(record["reply"], "after");
    assert_eq!(server.wait_ended(&id).await["status"], "completed");
    // Full again: the server stops all the same.
    fill(&ballast);
    let folder = tokio::time::timeout(Duration::from_secs(30), server.stop()).await.expect("it stops");
    std::fs::remove_file(&ballast).unwrap();
    let mut config = crate::server::test_config(&folder);
    config.add_upstream(&mock.url(), None).unwrap();
    let server = TestServer::serve(folder, config).await;
    assert_eq!(server.wait_ended(&id).await["status"], "completed");
    drop(server.stop().await);
}
