//! A full disk that gets room again: a real file system of a few megabytes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::client::{check, text};
use crate::mock::{Gate, Mock, Step, delta, finish};
use crate::server::{Folder, Tambour, within};

/// Not a test: the body of the test below, run with the folder on a file system of its own.
#[test]
#[ignore = "the test below runs it"]
fn child() {
    let folder: PathBuf = std::env::var_os("TAMBOUR_DISK").expect("a folder").into();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(full_and_free(Folder(folder)));
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
    let mut file = std::fs::File::create(ballast).unwrap();
    let mut size = 1 << 20;
    while size > 0 {
        while std::io::Write::write_all(&mut file, &vec![b'x'; size]).is_ok() {}
        size /= 2;
    }
}

async fn full_and_free(folder: Folder) {
    let gate = Gate::new();
    let mut script = vec![delta("before "), Step::Wait(gate.clone())];
    // More than the slack of the space allocated so far.
    script.extend((0..400).map(|n| delta(&format!("and piece {n} of what comes while there is no room; "))));
    script.extend(finish("stop"));
    let mock =
        Mock::start(vec![script, vec![delta("after")].into_iter().chain(finish("stop")).collect()]).await;
    let mut config = crate::server::config(&folder);
    config.drain_ms = 100;
    config.add_upstream(&mock.url(), None).unwrap();
    let ballast = folder.0.join("ballast");
    let server = Tambour::serve(folder, config).await;
    assert_eq!(server.get("/readyz").await.status, 200);
    let ask = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
    let mut running = server.stream(&ask).await;
    let mut events = running.until("final_delta").await;
    let id = crate::client::message(&events);
    fill(&ballast);
    // Refused at once, though the end of a file still has room for a small record: without a wait, and without a call of the model
    // for a message that cannot be stored.
    let refused = server.post("/api/v1/messages", &ask).await;
    assert_eq!((refused.status, refused.problem()), (503, "store_unavailable"));
    assert_eq!(server.get("/readyz").await.status, 503);
    gate.open();
    // Reported while the run waits, too.
    assert_eq!(server.get("/readyz").await.status, 503);
    let refused = server.post("/api/v1/messages", &ask).await;
    assert_eq!((refused.status, refused.problem()), (503, "store_unavailable"));
    assert_eq!(mock.calls().begun, 1, "the model was not asked");
    let shown = within(server.get(&format!("/api/v1/messages/{id}"))).await;
    assert!(shown.status == 200 && shown.json["status"] == "running", "{} {}", shown.status, shown.text);
    assert_eq!(server.get("/healthz").await.status, 200);
    // Room again: the run continues, with nothing lost.
    std::fs::remove_file(&ballast).unwrap();
    events.extend(running.rest().await);
    check(&events);
    let said = text(&events, "final_delta");
    assert!(said.starts_with("before and piece 0 ") && said.ends_with("no room;"), "{said}");
    assert_eq!(said.matches("of what comes while there is no room;").count(), 400);
    let mut ready = server.get("/readyz").await;
    while ready.status != 200 {
        ready = server.get("/readyz").await;
    }
    let after = server.post("/api/v1/messages", &ask).await;
    assert_eq!(after.status, 202);
    let record = server.ended(after.json["message_id"].as_str().unwrap()).await;
    assert_eq!(record["reply"], "after");
    assert_eq!(server.ended(&id).await["status"], "completed");
    // Full again: the server stops all the same.
    fill(&ballast);
    let folder = tokio::time::timeout(Duration::from_secs(30), server.stopped()).await.expect("it stops");
    std::fs::remove_file(&ballast).unwrap();
    let mut config = crate::server::config(&folder);
    config.add_upstream(&mock.url(), None).unwrap();
    let server = Tambour::serve(folder, config).await;
    assert_eq!(server.ended(&id).await["status"], "completed");
    drop(server.stopped().await);
}
