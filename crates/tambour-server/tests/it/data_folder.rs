//! The data folder is readable for the user of the server alone.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;

use crate::mock::{MockServer, reply_script};
use crate::server::{Folder, TestServer, test_config};

fn file_mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Names and modes of the entries of a folder.
fn folder_modes(folder: &Path) -> Vec<(String, u32)> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut modes: Vec<(String, u32)> = entries
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), file_mode(&path)))
        .collect();
    modes.sort();
    modes
}

async fn post_message(server: &TestServer) {
    let acceptance = server.post("/api/v1/messages", &json!({"text": "x", "dialect": "plain"})).await;
    assert_eq!(acceptance.status, 202, "{}", acceptance.text);
    server.wait_ended(acceptance.json["message_id"].as_str().unwrap()).await;
}

#[tokio::test]
async fn nobody_else_can_read_the_data() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = TestServer::start_default(&mock).await;
    post_message(&server).await;
    let data = server.folder.0.join("data");
    let check_private = |phase: &str| {
        let entry_modes = folder_modes(&data);
        assert_eq!(file_mode(&data), 0o700, "{phase}");
        let folder = |name: &str| name.ends_with(".journal");
        let check_private = |(name, mode): &(String, u32)| *mode == if folder(name) { 0o700 } else { 0o600 };
        assert!(entry_modes.iter().all(check_private), "{phase}: {entry_modes:?}");
        let journal = folder_modes(&data.join("tambour.journal"));
        assert!(journal.iter().all(|(_, mode)| *mode == 0o600), "{phase}: {journal:?}");
        entry_modes.into_iter().map(|(name, _)| name).collect::<Vec<String>>()
    };
    let names =
        ["tambour.journal", "tambour.lock", "tambour.sqlite", "tambour.sqlite-shm", "tambour.sqlite-wal"];
    assert_eq!(check_private("while it runs"), names);
    let folder = server.stop().await;
    check_private("after it");
    // Permissions that an older version left open are tightened.
    set_permissions(&data, Permissions::from_mode(0o755)).unwrap();
    for (name, _) in folder_modes(&data) {
        let open_mode = if name.ends_with(".journal") { 0o775 } else { 0o664 };
        set_permissions(data.join(name), Permissions::from_mode(open_mode)).unwrap();
    }
    let mut next_config = test_config(&folder);
    next_config.add_upstream(&mock.url(), None).unwrap();
    let server = TestServer::serve(folder, next_config).await;
    post_message(&server).await;
    assert_eq!(check_private("after an older version"), names);
}

#[tokio::test]
async fn folders_of_others_are_left_alone() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let outer = Folder::new();
    for (at, wide) in [0o755, 0o1777].into_iter().enumerate() {
        // A folder that only holds the database, and one shared with other files.
        let folder = outer.0.join(at.to_string());
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("notes.txt"), "mine").unwrap();
        set_permissions(&folder, Permissions::from_mode(wide)).unwrap();
        let server = TestServer::start(&mock, |config| match at {
            0 => config.database = Some(format!("sqlite:{}", folder.join("it.sqlite").display())),
            _ => config.data = folder.clone(),
        })
        .await;
        post_message(&server).await;
        assert_eq!(file_mode(&folder), wide);
        let entry_modes = folder_modes(&folder);
        assert_eq!(entry_modes.len(), 6, "{entry_modes:?}");
        let is_private = |(name, mode): &(String, u32)| name == "notes.txt" || mode & 0o077 == 0;
        assert!(entry_modes.iter().all(is_private), "{entry_modes:?}");
    }
}
