//! PostgreSQL, as one of several servers.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use tambour_server::store::{Admin as _, PostgresOptions, PostgresStore, States as _};

use super::{Backend, SuiteStore};
use crate::postgres::cluster;

/// A store in a database of its own.
pub(super) struct PostgresBackend {
    url: String,
    store: PostgresStore,
}

#[async_trait]
impl Backend for PostgresBackend {
    async fn open() -> PostgresBackend {
        let url = cluster().await.new_database().await;
        let store = PostgresStore::open(&PostgresOptions::new(url.clone())).await.unwrap();
        PostgresBackend { url, store }
    }

    fn store(&self) -> Arc<dyn SuiteStore> {
        Arc::new(self.store.clone())
    }

    async fn crash(self) -> PostgresBackend {
        self.store.crash().await.unwrap();
        // The next server finds what the dead one has left.
        let store = PostgresStore::open(&PostgresOptions::new(self.url.clone())).await.unwrap();
        PostgresBackend { url: self.url, store }
    }

    async fn state(&self, conversation: &str) -> Value {
        self.store.state(conversation).await.unwrap().unwrap_or_default().state
    }

    async fn requests(&self) -> i64 {
        let usage = self.store.usage(None, ("2026-01-01", "2026-01-01"), None, 10).await.unwrap();
        usage.iter().map(|usage| usage.requests).sum()
    }
}
