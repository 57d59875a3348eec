//! Statements on runs and their logs in PostgreSQL.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use jiff::Timestamp;

use super::admin::add_usage;
use super::connection::{DatabaseConnection, StatementState};
use super::database::{EndRow, EntryRow, InsertOutcome, RunDatabase, RunHolder, ServerRow};
use super::dialogues::store_progress;
use super::figures::add_figures;
use super::run_insert::{holds_claim, insert_message};
use super::statement_pool::StatementPool;
use super::states::insert_updates;
use crate::rows::read_entries;
use crate::{Batch, BeginOutcome, MessageOutcome, MessageRow, NewRun, clock, fail, ids};

/// Version of the JSON in the rows of `records`.
const RECORD_VERSION: i64 = 1;
/// Maximum number of rows that a read asks for: the database sends all of them, wanted or not.
const ROWS_PER_QUERY: i64 = 64;

/// Database of runs in PostgreSQL.
pub(super) struct PostgresRuns {
    pub(super) statements: Arc<StatementState>,
    /// Connections reserved for the collectors and the lease of this server.
    pub(super) append_statements: Arc<StatementState>,
}

impl PostgresRuns {
    /// Runs a statement over the columns of entries, which returns ids of messages.
    async fn query_messages(
        &self,
        statement: &'static str,
        rows: &[EntryRow<'_>],
    ) -> sqlx::Result<HashSet<String>> {
        let columns = EntryColumns::new(rows);
        let query = sqlx::query_scalar::<_, String>(statement);
        let query = query.bind(columns.messages).bind(columns.epochs).bind(columns.firsts);
        let query = query.bind(columns.lasts).bind(columns.bodies);
        Ok(query.fetch_all(StatementPool(&self.append_statements)).await?.into_iter().collect())
    }

    fn pool(&self) -> StatementPool<'_> {
        StatementPool(&self.statements)
    }
}

#[async_trait]
impl RunDatabase for PostgresRuns {
    async fn renew_server(&self, server: ServerRow<'_>) -> sqlx::Result<()> {
        let query = sqlx::query_scalar::<_, i64>(
            "insert into servers (id, address, started, lease_until) \
             values ($1, $2, $3, now() + $4 * interval '1 second') \
             on conflict (id) do update set lease_until = excluded.lease_until, address = excluded.address \
             returning cast(extract(epoch from clock_timestamp()) * 1000000 as bigint)",
        );
        let query = query.bind(server.id).bind(server.address).bind(ids::now());
        let query = query.bind(server.lease.as_secs_f64());
        let mut connection = DatabaseConnection::acquire(&self.append_statements).await?;
        // After a wait for the connection, which would put the clock forward.
        let sent_at = Instant::now();
        if let Ok(time) = Timestamp::from_microsecond(query.fetch_one(&mut connection).await?) {
            clock::set(sent_at, time);
        }
        Ok(())
    }

    async fn delete_server(&self, server: &str) -> sqlx::Result<()> {
        let query = sqlx::query("delete from servers where id = $1").bind(server);
        query.execute(self.pool()).await.map(|_| ())
    }

    async fn insert_run(
        &self,
        new: &NewRun,
        server: &str,
        claim_holder: Option<&str>,
    ) -> sqlx::Result<InsertOutcome> {
        let mut transaction = self.pool().begin().await?;
        if let Some(holder) = claim_holder
            && !holds_claim(&mut transaction, &new.row, holder).await?
        {
            return Ok(InsertOutcome::Refused(BeginOutcome::InProgress));
        }
        let outcome = insert_message(&mut transaction, new, server).await?;
        if matches!(outcome, InsertOutcome::Inserted(_))
            && let Err(error) = transaction.commit().await
        {
            return Ok(InsertOutcome::Unknown(error));
        }
        Ok(outcome)
    }

    async fn message_number(&self, message: &str) -> sqlx::Result<Option<i64>> {
        let query = sqlx::query_scalar("select number from messages where id = $1").bind(message);
        query.fetch_optional(self.pool()).await
    }

    async fn delete_run(
        &self,
        message: &str,
        epoch: i64,
        opened_conversation: Option<&str>,
    ) -> sqlx::Result<()> {
        let mut transaction = self.pool().begin().await?;
        let query = sqlx::query("delete from runs where id = $1 and epoch = $2").bind(message).bind(epoch);
        if query.execute(&mut *transaction).await?.rows_affected() == 0 {
            return Ok(());
        }
        let query = sqlx::query("delete from messages where id = $1").bind(message);
        query.execute(&mut *transaction).await?;
        if let Some(conversation) = opened_conversation {
            let query = sqlx::query(
                "delete from conversations where id = $1 \
                 and not exists (select 1 from messages where conversation_id = $1)",
            );
            query.bind(conversation).execute(&mut *transaction).await?;
        }
        transaction.commit().await
    }

    async fn claim_run(&self, message: &str, server: &str) -> sqlx::Result<Option<(i64, i64)>> {
        let query = sqlx::query_as(
            "with claimed as (update runs set server = $2, epoch = epoch + 1 where id = \
             (select id from runs where id = $1 and (server is null or server = $2 or not exists \
             (select 1 from servers where servers.id = runs.server and lease_until > now())) \
             for update skip locked) returning id, epoch, next) \
             update messages set server = $2, epoch = claimed.epoch from claimed where messages.id = claimed.id \
             returning claimed.epoch, claimed.next",
        );
        query.bind(message).bind(server).fetch_optional(self.pool()).await
    }

    async fn release_run(&self, message: &str, epoch: i64) -> sqlx::Result<()> {
        let query = sqlx::query("update runs set server = null where id = $1 and epoch = $2");
        query.bind(message).bind(epoch).execute(self.pool()).await.map(|_| ())
    }

    async fn list_claimable(
        &self,
        server: &str,
        local_messages: Vec<String>,
    ) -> sqlx::Result<Vec<MessageRow>> {
        let query = sqlx::query_as(
            "select messages.*, null::bigint as size, null::text as turn, null::text as summary, \
             null::text as details from messages join runs on runs.id = messages.id \
             where not (runs.id = any($2)) and (runs.server is null or runs.server = $1 \
             or not exists (select 1 from servers where servers.id = runs.server and lease_until > now())) \
             order by messages.number limit 1000",
        );
        query.bind(server).bind(local_messages).fetch_all(self.pool()).await
    }

    async fn message(&self, message: &str) -> sqlx::Result<Option<MessageRow>> {
        let query = sqlx::query_as(
            "select messages.*, size, turn, summary, details from messages \
             left join records on message_id = id where id = $1",
        );
        query.bind(message).fetch_optional(self.pool()).await
    }

    async fn store_entries(&self, rows: &[EntryRow<'_>]) -> sqlx::Result<HashSet<String>> {
        self.query_messages(
            "with input as (select * from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bytea[]) \
             as input (id, epoch, first, last, body)), \
             moved as (update runs set next = input.last + 1 from input \
             where runs.id = input.id and runs.epoch = input.epoch and runs.next = input.first \
             returning runs.id, input.first, input.last, input.epoch, runs.day, input.body) \
             insert into entries (message_id, first, last, epoch, day, body) \
             select id, first, last, epoch, day, body from moved returning message_id",
            rows,
        )
        .await
    }

    async fn find_entries(&self, rows: &[EntryRow<'_>]) -> sqlx::Result<HashSet<String>> {
        self.query_messages(
            "select entries.message_id from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bytea[]) \
             as input (id, epoch, first, last, body) join entries on entries.message_id = input.id \
             and entries.first = input.first and entries.last = input.last and entries.epoch = input.epoch \
             and entries.body = input.body",
            rows,
        )
        .await
    }

    async fn store_end(&self, end: EndRow<'_>) -> sqlx::Result<bool> {
        insert_end(self.pool(), end).await
    }

    async fn is_end_stored(&self, message: &str, epoch: i64) -> sqlx::Result<bool> {
        let query = sqlx::query_scalar(
            "select exists (select 1 from messages join records on message_id = id \
             where id = $1 and epoch = $2 and status <> 'running')",
        );
        query.bind(message).bind(epoch).fetch_one(self.pool()).await
    }

    async fn run_holder(&self, message: &str) -> sqlx::Result<RunHolder> {
        let query = sqlx::query_as(
            "select messages.status, runs.server from messages left join runs on runs.id = messages.id \
             where messages.id = $1",
        );
        let row: Option<(String, Option<String>)> = query.bind(message).fetch_optional(self.pool()).await?;
        Ok(match row {
            None => RunHolder::Gone,
            Some((status, _)) if status != "running" => RunHolder::Ended,
            Some((_, None)) => RunHolder::Nobody,
            Some((_, Some(_))) => RunHolder::Server,
        })
    }

    async fn remote_address(&self, message: &str, server: &str) -> sqlx::Result<Option<String>> {
        let query = sqlx::query_scalar(
            "select servers.address from runs join servers on servers.id = runs.server \
             where runs.id = $1 and runs.server <> $2 and servers.lease_until > now() \
             and servers.address is not null",
        );
        query.bind(message).bind(server).fetch_optional(self.pool()).await
    }

    async fn read_entries(&self, message: &str, after: i64, bytes: usize) -> sqlx::Result<Vec<Batch>> {
        let rows = sqlx::query_as(
            "select first, last, body from entries where message_id = $1 and last > $2 \
             and day = (select cast(substr(created, 1, 10) as date) from messages where id = $1) \
             order by first limit $3",
        );
        read_entries(rows.bind(message).bind(after).bind(ROWS_PER_QUERY).fetch(self.pool()), bytes).await
    }

    async fn has_runs_before(&self, conversation: &str, number: i64) -> sqlx::Result<bool> {
        let query = sqlx::query_scalar(
            "select exists (select 1 from runs where conversation_id = $1 and number < $2 \
             and server is not null)",
        );
        query.bind(conversation).bind(number).fetch_one(self.pool()).await
    }

    async fn next_run_number(&self, conversation: &str) -> sqlx::Result<i64> {
        let query =
            sqlx::query_scalar("select coalesce(max(number), 0) + 1 from runs where conversation_id = $1");
        query.bind(conversation).fetch_one(self.pool()).await
    }
}

/// Rows of entries as columns, for a statement that takes arrays.
struct EntryColumns<'a> {
    messages: Vec<&'a str>,
    epochs: Vec<i64>,
    firsts: Vec<i64>,
    lasts: Vec<i64>,
    bodies: Vec<&'a [u8]>,
}

impl<'a> EntryColumns<'a> {
    fn new(rows: &[EntryRow<'a>]) -> EntryColumns<'a> {
        EntryColumns {
            messages: rows.iter().map(|row| row.message).collect(),
            epochs: rows.iter().map(|row| row.epoch).collect(),
            firsts: rows.iter().map(|row| row.first).collect(),
            lasts: rows.iter().map(|row| row.last).collect(),
            bodies: rows.iter().map(|row| row.body).collect(),
        }
    }
}

/// Writes the end of a run in one transaction. Returns `false`, with nothing written, if another lease has
/// been given out or the run was deleted.
async fn insert_end(pool: StatementPool<'_>, end: EndRow<'_>) -> sqlx::Result<bool> {
    let EndRow { row, epoch, first_number, last } = end;
    fail::point("record.before");
    let mut transaction = pool.begin().await?;
    let query = sqlx::query_scalar(
        "delete from runs where id = $1 and epoch = $2 and next = $3 returning cast(day as text)",
    );
    let query = query.bind(&row.id).bind(epoch).bind(first_number.cast_signed());
    let day: Option<String> = query.fetch_optional(&mut *transaction).await?;
    let Some(day) = day else { return Ok(false) };
    if !last.is_empty() {
        let query = sqlx::query(
            "insert into entries (message_id, first, last, epoch, day, body) \
             values ($1, $2, $3, $4, cast($5 as date), $6)",
        );
        let query = query.bind(&row.id).bind(last.first().cast_signed());
        let query = query.bind(last.last().cast_signed()).bind(epoch).bind(day);
        query.bind(last.body()).execute(&mut *transaction).await?;
    }
    fail::point("database.amid");
    insert_record(&mut transaction, row).await?;
    transaction.commit().await?;
    fail::point("record.after");
    Ok(true)
}

/// Writes the outcome of a message: its record, status, state updates, usage and figures. If the record
/// exists already, nothing is written, so that nothing is counted twice.
async fn insert_record(connection: &mut DatabaseConnection, row: &MessageRow) -> sqlx::Result<()> {
    let Some(outcome) = &row.outcome else { return Ok(()) };
    let MessageOutcome { size, turn, summary, details, updates, usage, figures, progress } = outcome;
    let query = sqlx::query(
        "insert into records (message_id, version, size, turn, summary, details) \
         select id, $1, $2, $3, $4, $5 from messages where id = $6 on conflict do nothing",
    );
    let query = query.bind(RECORD_VERSION).bind(size.cast_signed()).bind(turn).bind(summary).bind(details);
    if query.bind(&row.id).execute(&mut *connection).await?.rows_affected() == 0 {
        return Ok(());
    }
    let query = sqlx::query("update messages set status = $1 where id = $2");
    query.bind(&row.status).bind(&row.id).execute(&mut *connection).await?;
    insert_updates(connection, row, updates).await?;
    if let Some(progress) = progress {
        store_progress(connection, &row.conversation_id, progress).await?;
    }
    if let Some(usage) = usage {
        add_usage(connection, usage).await?;
    }
    add_figures(connection, figures).await
}
