//! Schema migrations, run by one server at a time. A released migration is never changed: the database keeps
//! its checksum.

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::{PgPool, SqlSafeStr};

use crate::StoreError;

/// Number, description and statements of each migration, oldest first.
const MIGRATIONS: [(i64, &str, &str); 2] = [
    (1, "start", include_str!("../../migrations/postgres/0001_start.sql")),
    (2, "lock holders", include_str!("../../migrations/postgres/0002_lock_holders.sql")),
];

/// Runs the migrations that the database lacks.
///
/// # Errors
/// [`StoreError::LaterSchema`] if a later version has migrated the database.
pub(super) async fn run_migrations(pool: &PgPool) -> Result<(), StoreError> {
    let migration = |(version, description, statements): (i64, &'static str, &'static str)| {
        let has_no_transaction = false;
        let kind = MigrationType::Simple;
        Migration::new(version, description.into(), kind, statements.into_sql_str(), has_no_transaction)
    };
    match Migrator::with_migrations(MIGRATIONS.map(migration).into()).run(pool).await {
        Ok(()) => Ok(()),
        Err(MigrateError::VersionMissing(version)) => Err(StoreError::LaterSchema(version)),
        Err(error) => Err(StoreError::Migration(error.into())),
    }
}
