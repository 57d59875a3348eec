//! Schema migrations, run at each start. A released migration is never changed: the database keeps its
//! checksum.

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::{SqlSafeStr, SqlitePool};
use tambour::limits::Limits;
use tambour_prompt::script::load;

/// Number, description and statements of each migration, oldest first. Numbers without a migration were never
/// released.
const MIGRATIONS: [(i64, &str, &str); 18] = [
    (1, "start", include_str!("../../migrations/0001_start.sql")),
    (2, "tools", include_str!("../../migrations/0002_tools.sql")),
    (3, "journal", include_str!("../../migrations/0003_journal.sql")),
    (4, "narrow", include_str!("../../migrations/0004_narrow.sql")),
    (5, "servers", include_str!("../../migrations/0005_servers.sql")),
    (6, "kept", include_str!("../../migrations/0006_kept.sql")),
    (7, "dialogues", include_str!("../../migrations/0007_dialogues.sql")),
    (8, "state", include_str!("../../migrations/0008_state.sql")),
    (9, "imports", include_str!("../../migrations/0009_imports.sql")),
    (12, "lore", include_str!("../../migrations/0012_lore.sql")),
    (13, "quotas", include_str!("../../migrations/0013_quotas.sql")),
    (15, "segments", include_str!("../../migrations/0015_segments.sql")),
    (16, "turns", include_str!("../../migrations/0016_turns.sql")),
    (17, "sessions", include_str!("../../migrations/0017_sessions.sql")),
    (18, "dialogue turns", include_str!("../../migrations/0018_dialogue_turns.sql")),
    (19, "figures", include_str!("../../migrations/0019_figures.sql")),
    (20, "autosaves", include_str!("../../migrations/0020_autosaves.sql")),
    (21, "repairs", include_str!("../../migrations/0021_repairs.sql")),
];

/// Runs the migrations that the database lacks.
pub(super) async fn run_migrations(pool: &SqlitePool) -> Result<(), MigrateError> {
    let migration = |(version, description, statements): (i64, &'static str, &'static str)| {
        let has_no_transaction = false;
        Migration::new(
            version,
            description.into(),
            MigrationType::Simple,
            statements.into_sql_str(),
            has_no_transaction,
        )
    };
    Migrator::with_migrations(MIGRATIONS.map(migration).into()).run(pool).await
}

/// Sets the session name of dialogues from older versions, once, by looking it up in their scripts.
pub(super) async fn name_sessions(pool: &SqlitePool) -> sqlx::Result<()> {
    loop {
        let query = "select id, script, state from dialogues where session is null limit 100";
        let unnamed_dialogues: Vec<(String, String, String)> = sqlx::query_as(query).fetch_all(pool).await?;
        if unnamed_dialogues.is_empty() {
            return Ok(());
        }
        for (id, script, state) in unnamed_dialogues {
            let name = session_name(&script, &state).unwrap_or_default();
            let query = sqlx::query("update dialogues set session = ? where id = ?");
            query.bind(name).bind(id).execute(pool).await?;
        }
    }
}

/// Returns the name of the session that a dialogue runs; `None` if its script or state cannot be read.
fn session_name(script: &str, state: &str) -> Option<String> {
    let script = load(script, &Limits::default()).script?;
    let state: serde_json::Value = serde_json::from_str(state).ok()?;
    let index = usize::try_from(state["session"].as_u64()?).ok()?;
    Some(script.sessions.get(index)?.session.clone())
}

/// Rebuilds a database of an older version, once: it neither returns free space nor erases deleted data.
pub(super) async fn rebuild_old_database(pool: &SqlitePool) -> sqlx::Result<()> {
    // Value of the pragma for `incremental`.
    const INCREMENTAL: i64 = 2;
    let mode: i64 = sqlx::query_scalar("pragma auto_vacuum").fetch_one(pool).await?;
    if mode != INCREMENTAL {
        tracing::info!("rewriting the database, so that deleted rows leave no traces");
        sqlx::query("vacuum").execute(pool).await?;
    }
    Ok(())
}
