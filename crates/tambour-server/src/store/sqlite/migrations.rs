//! The tables, brought up to date at each start. What has run once is never changed: the database keeps its checksum.

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::{SqlSafeStr, SqlitePool};

/// Version, description and statements, oldest first.
const MIGRATIONS: [(i64, &str, &str); 13] = [
    (1, "start", include_str!("../../../migrations/0001_start.sql")),
    (2, "tools", include_str!("../../../migrations/0002_tools.sql")),
    (3, "journal", include_str!("../../../migrations/0003_journal.sql")),
    (4, "narrow", include_str!("../../../migrations/0004_narrow.sql")),
    (5, "servers", include_str!("../../../migrations/0005_servers.sql")),
    (6, "kept", include_str!("../../../migrations/0006_kept.sql")),
    (7, "dialogues", include_str!("../../../migrations/0007_dialogues.sql")),
    (8, "state", include_str!("../../../migrations/0008_state.sql")),
    (9, "imports", include_str!("../../../migrations/0009_imports.sql")),
    (12, "lore", include_str!("../../../migrations/0012_lore.sql")),
    (13, "quotas", include_str!("../../../migrations/0013_quotas.sql")),
    (15, "segments", include_str!("../../../migrations/0015_segments.sql")),
    (16, "turns", include_str!("../../../migrations/0016_turns.sql")),
];

/// Runs those that the database has not seen.
pub(super) async fn run(pool: &SqlitePool) -> Result<(), MigrateError> {
    let migration = |(version, description, statements): (i64, &'static str, &'static str)| {
        Migration::new(version, description.into(), MigrationType::Simple, statements.into_sql_str(), false)
    };
    Migrator::with_migrations(MIGRATIONS.map(migration).into()).run(pool).await
}

/// Databases of before do not give room back, and keep what was deleted: they are written anew, once.
pub(super) async fn vacuum(pool: &SqlitePool) -> sqlx::Result<()> {
    const INCREMENTAL: i64 = 2;
    let mode: i64 = sqlx::query_scalar("pragma auto_vacuum").fetch_one(pool).await?;
    if mode != INCREMENTAL {
        tracing::info!("the database is written anew, so that deleted rows leave nothing");
        sqlx::query("vacuum").execute(pool).await?;
    }
    Ok(())
}
