//! The data folder is readable for the user of the server alone.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;

use crate::mock::{Mock, reply};
use crate::server::{Folder, Tambour, config};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Names and modes of the entries of a folder.
fn modes(folder: &Path) -> Vec<(String, u32)> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut modes: Vec<(String, u32)> =
        entries.map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), mode(&path))).collect();
    modes.sort();
    modes
}

async fn asked(server: &Tambour) {
    let accepted = server.post("/api/v1/messages", &json!({"text": "x", "dialect": "plain"})).await;
    assert_eq!(accepted.status, 202, "{}", accepted.text);
    server.ended(accepted.json["message_id"].as_str().unwrap()).await;
}

#[tokio::test]
async fn nobody_else_can_read_the_data() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let server = Tambour::with(&mock).await;
    asked(&server).await;
    let data = server.folder.0.join("data");
    let private = |at: &str| {
        let found = modes(&data);
        assert_eq!(mode(&data), 0o700, "{at}");
        let folder = |name: &str| name.ends_with(".journal");
        let private = |(name, mode): &(String, u32)| *mode == if folder(name) { 0o700 } else { 0o600 };
        assert!(found.iter().all(private), "{at}: {found:?}");
        let journal = modes(&data.join("tambour.journal"));
        assert!(journal.iter().all(|(_, mode)| *mode == 0o600), "{at}: {journal:?}");
        found.into_iter().map(|(name, _)| name).collect::<Vec<String>>()
    };
    let names =
        ["tambour.journal", "tambour.lock", "tambour.sqlite", "tambour.sqlite-shm", "tambour.sqlite-wal"];
    assert_eq!(private("while it runs"), names);
    let folder = server.stopped().await;
    private("after it");
    // Permissions that an older version left open are tightened.
    set_permissions(&data, Permissions::from_mode(0o755)).unwrap();
    for (name, _) in modes(&data) {
        let open = if name.ends_with(".journal") { 0o775 } else { 0o664 };
        set_permissions(data.join(name), Permissions::from_mode(open)).unwrap();
    }
    let mut again = config(&folder);
    again.add_upstream(&mock.url(), None).unwrap();
    let server = Tambour::serve(folder, again).await;
    asked(&server).await;
    assert_eq!(private("after an older version"), names);
}

#[tokio::test]
async fn folders_of_others_are_left_alone() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let outer = Folder::new();
    for (at, wide) in [0o755, 0o1777].into_iter().enumerate() {
        // A folder that only holds the database, and one shared with other files.
        let folder = outer.0.join(at.to_string());
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("notes.txt"), "mine").unwrap();
        set_permissions(&folder, Permissions::from_mode(wide)).unwrap();
        let server = Tambour::start(&mock, |config| match at {
            0 => config.database = Some(format!("sqlite:{}", folder.join("it.sqlite").display())),
            _ => config.data = folder.clone(),
        })
        .await;
        asked(&server).await;
        assert_eq!(mode(&folder), wide);
        let found = modes(&folder);
        assert_eq!(found.len(), 6, "{found:?}");
        let closed = |(name, mode): &(String, u32)| name == "notes.txt" || mode & 0o077 == 0;
        assert!(found.iter().all(closed), "{found:?}");
    }
}
