//! Opens the store that the configuration names.

use std::sync::Arc;

use super::StartError;
use crate::base::data_folder;
use crate::base::metrics::Metrics;
use crate::config::Config;
use crate::store::{PostgresStore, SqliteStore, Store, StoreError, StoreOptions};

/// Opens the database, and reserves the numbers of entries that its journal has lost.
pub(super) async fn open_store(config: &Config, metrics: &Metrics) -> Result<Arc<dyn Store>, StartError> {
    if let Some(options) = config.postgres_options()? {
        return Ok(Arc::new(PostgresStore::open(&options).await?));
    }
    let file = config.database_file()?;
    data_folder::prepare(&file, &config.data).map_err(StoreError::Folder)?;
    let options = StoreOptions { durable: config.durable, accept_loss: config.accept_loss };
    let (store, report) = SqliteStore::open_with(&file, options).await?;
    let damaged_records = report.damaged.iter().map(|file| file.records).sum();
    metrics.count_damage(damaged_records, report.loss.message_count());
    // Called before interrupted messages get an end: clients may have seen events that are lost, and the end
    // must not get the number of one of them.
    store.reserve_numbers(&report).await?;
    Ok(Arc::new(store))
}
