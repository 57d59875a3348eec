//! Partitions of the logs, one a day, and rows that nobody needs any more.

use jiff::ToSpan;
use jiff::civil::Date;
use sqlx::AssertSqlSafe;

use super::connection::DatabaseConnection;
use super::statement_pool::StatementPool;
use super::{PostgresStore, lock};
use crate::{StoreError, clock};

/// Number of days, beginning with the current one in UTC, whose partitions exist in advance.
const DAYS_AHEAD: i64 = 3;
/// Start of the name of a partition, before its day.
const PARTITION_PREFIX: &str = "entries_day_";

/// Creates the partitions of the next days.
pub(super) async fn create_partitions(pool: StatementPool<'_>) -> Result<(), StoreError> {
    let mut transaction = pool.begin().await?;
    begin_change(&mut transaction).await?;
    let today = current_day(&mut transaction).await?;
    for day in (0..DAYS_AHEAD).filter_map(|days| today.checked_add(days.days()).ok()) {
        create_partition(&mut transaction, day).await?;
    }
    Ok(transaction.commit().await?)
}

/// Returns the current day in UTC by the clock of the database.
async fn current_day(connection: &mut DatabaseConnection) -> Result<Date, StoreError> {
    let query = sqlx::query_scalar("select to_char(now() at time zone 'UTC', 'YYYY-MM-DD')");
    let day: String = query.fetch_one(connection).await?;
    Ok(day.parse().unwrap_or_else(|_| clock::now().to_zoned(jiff::tz::TimeZone::UTC).date()))
}

/// Creates the partitions of these days, such as `2026-01-31`; a text that is no date is ignored.
pub(crate) async fn create_partitions_of(store: &PostgresStore, days: &[String]) -> Result<(), StoreError> {
    for day in days.iter().filter_map(|day| day.parse::<Date>().ok()) {
        let mut transaction = store.pool().begin().await?;
        begin_change(&mut transaction).await?;
        create_partition(&mut transaction, day).await?;
        transaction.commit().await?;
    }
    Ok(())
}

/// Begins a change of the partitions, which one server makes at a time. The change fails after 500 ms if
/// something else uses the logs, for example a backup: all appends would wait behind the change.
async fn begin_change(connection: &mut DatabaseConnection) -> sqlx::Result<()> {
    sqlx::query("set local lock_timeout = '500ms'").execute(&mut *connection).await?;
    lock(connection, "partitions").await
}

/// Creates the partition of a day, unless it exists or the default partition has logs of that day.
async fn create_partition(connection: &mut DatabaseConnection, day: Date) -> sqlx::Result<()> {
    let Ok(next_day) = day.tomorrow() else { return Ok(()) };
    let query =
        sqlx::query_scalar("select exists (select 1 from entries_other where day = cast($1 as date))");
    if query.bind(day.to_string()).fetch_one(&mut *connection).await? {
        return Ok(());
    }
    let name = format!("{PARTITION_PREFIX}{}", day.strftime("%Y%m%d"));
    // A statement of this kind takes no parameters.
    let statement = format!(
        "create table if not exists {name} partition of entries for values from ('{day}') to ('{next_day}')"
    );
    sqlx::query(AssertSqlSafe(statement)).execute(connection).await.map(|_| ())
}

/// Drops the partitions of days before that of the oldest message, and deletes the entries of those days that
/// are in the default partition.
pub(super) async fn drop_partitions(pool: StatementPool<'_>) -> Result<(), StoreError> {
    let mut transaction = pool.begin().await?;
    begin_change(&mut transaction).await?;
    let today = current_day(&mut transaction).await?;
    let query = sqlx::query_scalar("select substr(min(created), 1, 10) from messages");
    let oldest_day: Option<String> = query.fetch_one(&mut *transaction).await?;
    let oldest_day = oldest_day.and_then(|day| day.parse::<Date>().ok()).unwrap_or(today).min(today);
    let query = sqlx::query_scalar(
        "select cast(relid as text) from pg_partition_tree('entries') \
         where starts_with(cast(relid as text), $1)",
    );
    let names: Vec<String> = query.bind(PARTITION_PREFIX).fetch_all(&mut *transaction).await?;
    let is_before = |name: &String| {
        let day = name.strip_prefix(PARTITION_PREFIX).and_then(|day| Date::strptime("%Y%m%d", day).ok());
        day.is_some_and(|day| day < oldest_day)
    };
    for name in names.iter().filter(|name| is_before(name)) {
        tracing::info!(partition = name, "dropping the logs of a day without messages");
        // The name was parsed above: it is the prefix and a date.
        sqlx::query(AssertSqlSafe(format!("drop table {name}"))).execute(&mut *transaction).await?;
    }
    let query = sqlx::query("delete from entries_other where day < cast($1 as date)");
    query.bind(oldest_day.to_string()).execute(&mut *transaction).await?;
    Ok(transaction.commit().await?)
}

/// Deletes rows whose lease has ended, those of servers, claims, closings and duties after another hour, and
/// locks of servers that are gone.
pub(super) async fn delete_stale_rows(pool: StatementPool<'_>) -> Result<(), StoreError> {
    for statement in [
        "delete from servers where lease_until < now() - interval '1 hour'",
        "delete from request_claims where lease_until < now() - interval '1 hour'",
        "delete from closed where lease_until < now() - interval '1 hour'",
        "delete from duties where lease_until < now() - interval '1 hour'",
        "delete from stream_tokens where lease_until < now()",
        "delete from key_rates where rate_until < now()",
        "delete from conversation_locks where not exists \
         (select 1 from servers where servers.id = conversation_locks.server)",
    ] {
        sqlx::query(statement).execute(pool).await?;
    }
    Ok(())
}
