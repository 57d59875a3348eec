//! SQLite with its journal.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tambour_server::store::{Admin as _, SqliteStore, States as _, Store as _};

use super::{Backend, SuiteStore};
use crate::server::Folder;

/// A store in a folder.
pub(super) struct SqliteBackend {
    folder: Folder,
    store: SqliteStore,
}

/// A durable store in a folder.
pub(super) struct SlowBackend(SqliteBackend);

/// Makes syncs of the journal slow from now on.
pub(super) fn slow_syncs_down() {
    tambour_server::fail::arm(|point| {
        if point == "sync.before" {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    tambour_server::fail::arm_faults(|place| {
        FOLDER_SYNCS.fetch_add(u64::from(place == "folder.sync"), Ordering::Relaxed);
        Ok(())
    });
}

/// Number of syncs of folders.
static FOLDER_SYNCS: AtomicU64 = AtomicU64::new(0);

/// Checks that a durable journal syncs the name of each of its files: of the folder, of the first file, and of the one that follows
/// when a message is deleted.
pub(super) async fn names_are_on_the_disk() {
    let before = FOLDER_SYNCS.load(Ordering::Relaxed);
    let slow = SlowBackend::open().await;
    assert_eq!(FOLDER_SYNCS.load(Ordering::Relaxed), before + 2);
    slow.store().delete_messages(&["msg".to_owned()]).await.unwrap();
    assert_eq!(FOLDER_SYNCS.load(Ordering::Relaxed), before + 3);
}

impl SqliteBackend {
    async fn open_in(folder: Folder, durable: bool) -> SqliteBackend {
        let store = SqliteStore::open(&folder.0.join("tambour.db"), durable).await.unwrap();
        SqliteBackend { folder, store }
    }

    /// Folder of a killed process: the journal is copied first, since it drops entries once the database has them.
    async fn kill(self, durable: bool) -> SqliteBackend {
        let other = Folder::new();
        copy_files(&self.folder.0.join("tambour.journal"), &other.0.join("tambour.journal"));
        for name in ["tambour.db", "tambour.db-wal"] {
            let (from, to) = (self.folder.0.join(name), other.0.join(name));
            if from.exists() {
                std::fs::copy(from, to).unwrap();
            }
        }
        self.store.close().await;
        SqliteBackend::open_in(other, durable).await
    }
}

/// Copies the files of a folder. No file is written meanwhile, but some may be removed.
fn copy_files(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for file in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        if let Ok(bytes) = std::fs::read(file.path()) {
            std::fs::write(to.join(file.file_name()), bytes).unwrap();
        }
    }
}

#[async_trait]
impl Backend for SqliteBackend {
    async fn open() -> SqliteBackend {
        SqliteBackend::open_in(Folder::new(), false).await
    }

    fn store(&self) -> Arc<dyn SuiteStore> {
        Arc::new(self.store.clone())
    }

    async fn crash(self) -> SqliteBackend {
        self.kill(false).await
    }

    async fn state(&self, conversation: &str) -> Value {
        self.store.state(conversation).await.unwrap().unwrap_or_default().state
    }

    async fn requests(&self) -> i64 {
        // Every ended run is in the database when this returns.
        self.store.check_ready().await.unwrap();
        let usage = self.store.usage(None, ("2026-01-01", "2026-01-01"), None, 10).await.unwrap();
        usage.iter().map(|usage| usage.requests).sum()
    }
}

#[async_trait]
impl Backend for SlowBackend {
    async fn open() -> SlowBackend {
        SlowBackend(SqliteBackend::open_in(Folder::new(), true).await)
    }

    fn store(&self) -> Arc<dyn SuiteStore> {
        self.0.store()
    }

    async fn crash(self) -> SlowBackend {
        SlowBackend(self.0.kill(true).await)
    }

    async fn state(&self, conversation: &str) -> Value {
        self.0.state(conversation).await
    }

    async fn requests(&self) -> i64 {
        self.0.requests().await
    }
}
