//! Commits: a group of work is collected and written in one transaction.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::{SqliteConnection, SqlitePool};
use tokio::sync::{mpsc, oneshot};

use super::StoreState;
use super::admin::add_usage;
use super::dialogues::store_progress;
use super::figures::add_figures;
use super::journal::{EntryRange, ExtentMark, SegmentExtents};
use super::messages::kind_name;
use super::states::insert_updates;
use super::tail::{DrainedEntries, LogTail};
use super::transaction::OpenTransaction;
use super::writer::WriterTask;
use crate::fail;
use crate::{MessageOutcome, MessageRow};

/// Bytes written after which another connection runs a checkpoint.
const CHECKPOINT_BYTES: usize = 8 << 20;
/// Pages of the write-ahead file after which the writer runs a checkpoint itself, since the other one has not
/// kept up.
const OVERDUE_PAGES: i64 = 32 << 10;
/// Approximate bytes that a row writes besides its text: pages of a table and of an index.
const ROW_OVERHEAD: usize = 8 << 10;
/// Rows per statement.
const ROWS_PER_STATEMENT: usize = 16;
/// Version of the JSON of records.
const RECORD_VERSION: i64 = 1;

/// State of the writer task.
pub(super) struct CommitState {
    shared: Arc<StoreState>,
    /// Approximate bytes written since the last checkpoint request.
    bytes_since_checkpoint: usize,
    checkpoint: mpsc::Sender<()>,
    is_overdue: Arc<AtomicBool>,
    /// Extents of the journal at the last commit.
    committed_extents: SegmentExtents,
}

/// Work of one transaction.
#[derive(Default)]
pub(super) struct CommitGroup {
    drained: Vec<(Arc<LogTail>, DrainedEntries)>,
    rows: Vec<EntryRange>,
    messages: Vec<Arc<MessageRow>>,
    records: Vec<Arc<MessageRow>>,
    /// Last journal segment that the database fully has after this commit.
    full_segment: Option<u64>,
    /// Extents of the journal; with this group the database has every message up to there.
    extents: SegmentExtents,
    waiters: Vec<oneshot::Sender<()>>,
    pub(super) close: bool,
}

impl CommitGroup {
    fn is_empty(&self) -> bool {
        let has_no_rows = self.rows.is_empty() && self.messages.is_empty() && self.records.is_empty();
        has_no_rows && self.full_segment.is_none()
    }

    /// Returns the approximate bytes to write.
    pub(super) fn bytes(&self) -> usize {
        let rows = self.rows.iter().map(|row| row.body.len()).sum::<usize>();
        let messages = self.messages.iter().map(|row| row.request.len()).sum::<usize>();
        let records = self.records.iter().filter_map(|row| row.outcome.as_ref());
        let records =
            records.map(|outcome| usize::try_from(outcome.size).unwrap_or(usize::MAX)).sum::<usize>();
        let row_count = self.rows.len() + self.messages.len() + self.records.len();
        rows + messages + records + row_count * ROW_OVERHEAD
    }
}

impl CommitState {
    pub(super) fn new(shared: Arc<StoreState>) -> CommitState {
        let (checkpoint, checkpoint_receiver) = mpsc::channel(1);
        let is_overdue = Arc::new(AtomicBool::new(false));
        let (task, dead) = (
            run_checkpoints(shared.pool.clone(), checkpoint_receiver, is_overdue.clone()),
            shared.dead.clone(),
        );
        tokio::spawn(async move {
            // Without checkpoints the write-ahead file would grow for ever.
            if tokio::spawn(task).await.is_err_and(|error| error.is_panic()) {
                tracing::error!("the task that copies the write-ahead file to the database panicked");
                dead.cancel();
            }
        });
        // An empty journal has been known to the database since the start.
        let committed_extents = shared.journal.extents();
        CommitState { shared, bytes_since_checkpoint: 0, checkpoint, is_overdue, committed_extents }
    }

    pub(super) fn add(&self, work: WriterTask, group: &mut CommitGroup) {
        match work {
            WriterTask::Entries(tail) => drain_tail(&tail, false, group),
            WriterTask::Commit => {}
            WriterTask::Message(row) => group.messages.push(row),
            WriterTask::Segment(number) => {
                self.take_all(group);
                group.full_segment = group.full_segment.max(Some(number));
            }
            WriterTask::Flush(done_sender) => group.waiters.push(done_sender),
            WriterTask::Close(done_sender) => {
                self.take_all(group);
                group.full_segment = self.shared.journal.rotate().ok().max(group.full_segment);
                group.close = true;
                group.waiters.push(done_sender);
            }
        }
    }

    /// Records the extents of the journal, before the last work of the group is taken.
    pub(super) fn record_extents(&self, group: &mut CommitGroup) {
        group.extents = self.shared.journal.extents();
    }

    /// Returns `true` if the journal has grown since the last commit.
    pub(super) fn is_behind(&self) -> bool {
        self.shared.journal.extents() != self.committed_extents
    }

    fn take_all(&self, group: &mut CommitGroup) {
        for tail in self.shared.pending.tails() {
            drain_tail(&tail, true, group);
        }
    }

    /// Writes a group, and notifies those who wait for it.
    pub(super) async fn write(&mut self, group: CommitGroup) {
        if !group.is_empty() || group.extents != self.committed_extents {
            // A full disk holds back everything behind the journal; the write is retried until there is
            // space.
            let mut wait = Duration::from_millis(50);
            while let Err(error) = self.insert(&group).await {
                tracing::error!(%error, "the database cannot be written; trying again");
                self.shared.is_behind.store(true, Ordering::Relaxed);
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = self.shared.abort_waits.cancelled() => return,
                }
                wait = (wait * 2).min(Duration::from_secs(2));
            }
            self.shared.is_behind.store(false, Ordering::Relaxed);
            self.bytes_since_checkpoint += group.bytes();
            self.committed_extents.clone_from(&group.extents);
        }
        for (tail, drained) in group.drained {
            tail.mark_stored(&drained);
            self.shared.pending.remove_if_done(&tail);
        }
        self.shared.pending.mark_written(group.messages.iter().chain(&group.records));
        if let Some(segment) = group.full_segment {
            self.shared.journal.remove_segments(segment);
        }
        for done_sender in group.waiters {
            // The receiver may be gone.
            let _ = done_sender.send(());
        }
        if self.bytes_since_checkpoint >= CHECKPOINT_BYTES && self.checkpoint.try_send(()).is_ok() {
            self.bytes_since_checkpoint = 0;
        }
        if self.is_overdue.swap(false, Ordering::Relaxed)
            && let Ok(mut connection) = self.shared.pool.acquire().await
        {
            let _ = run_checkpoint(&mut connection).await;
        }
    }

    async fn insert(&self, group: &CommitGroup) -> sqlx::Result<()> {
        let mut connection = OpenTransaction::begin(&self.shared.pool).await?;
        let boot = self.shared.journal.boot_id();
        let written = write_group(&mut connection, group, boot).await;
        connection.end(written).await?;
        fail::point("database.after");
        Ok(())
    }
}

async fn write_group(
    connection: &mut SqliteConnection,
    group: &CommitGroup,
    boot_id: Option<&str>,
) -> sqlx::Result<()> {
    fail::point("database.before");
    for row in &group.messages {
        insert_message(connection, row).await?;
    }
    insert_rows(connection, &group.rows).await?;
    for row in &group.records {
        insert_record(connection, row).await?;
    }
    ExtentMark { extents: &group.extents, stored_through: group.full_segment, boot_id }
        .write(connection)
        .await?;
    fail::point("database.amid");
    Ok(())
}

/// Takes the part of a message's log that the database lacks.
fn drain_tail(tail: &Arc<LogTail>, all: bool, group: &mut CommitGroup) {
    let rows = &mut group.rows;
    let drained = tail.drain(all, |first, last, body| {
        rows.push(EntryRange { message: tail.message.clone(), first, last, body: body.to_vec() });
    });
    if let Some(drained) = drained {
        group.records.extend(drained.record.clone());
        group.drained.push((tail.clone(), drained));
    }
}

/// Runs checkpoints on request.
async fn run_checkpoints(
    pool: SqlitePool,
    mut checkpoint_receiver: mpsc::Receiver<()>,
    overdue: Arc<AtomicBool>,
) {
    while checkpoint_receiver.recv().await.is_some() {
        fail::point("checkpoint");
        let mut connection = match pool.acquire().await {
            Ok(connection) => connection,
            Err(sqlx::Error::PoolClosed) => return,
            Err(error) => {
                tracing::warn!(%error, "no connection for a checkpoint of the database; trying again later");
                continue;
            }
        };
        match run_checkpoint(&mut connection).await {
            Ok((_, pages, checkpointed)) => {
                overdue.store(pages > OVERDUE_PAGES && checkpointed < pages, Ordering::Relaxed)
            }
            Err(error) => {
                tracing::warn!(%error, "a checkpoint of the database failed; trying again later")
            }
        }
    }
}

/// Runs a passive checkpoint. Returns whether it was blocked, the pages of the write-ahead file, and how many
/// of them are in the database.
async fn run_checkpoint(connection: &mut SqliteConnection) -> sqlx::Result<(i64, i64, i64)> {
    sqlx::query_as("pragma wal_checkpoint(passive)").fetch_one(connection).await
}

/// Inserts a message and its conversation, or a turn, with one round trip.
pub(super) async fn insert_message(connection: &mut SqliteConnection, row: &MessageRow) -> sqlx::Result<()> {
    let query = sqlx::query(
        "insert or ignore into conversations (id, owner, created) select ?, ?, ? where ? is null; \
         insert or ignore into messages \
         (number, id, conversation_id, request_id, owner, created, status, request, kind, repeat, server, epoch) \
         select nullif(?, (select number from messages where number = ?)), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?",
    );
    // A turn has a dialogue and no conversation.
    let kind = kind_name(row.kind);
    let query = query.bind(&row.conversation_id).bind(&row.owner).bind(&row.created).bind(kind);
    // A number that another message has in an older database is not used twice.
    let query = query.bind(row.number).bind(row.number);
    let query = query.bind(&row.id).bind(&row.conversation_id).bind(&row.request_id).bind(&row.owner);
    query
        .bind(&row.created)
        .bind(&row.status)
        .bind(&row.request)
        .bind(kind)
        .bind(&row.repeat)
        .bind(&row.server)
        .bind(row.epoch)
        .execute(connection)
        .await
        .map(|_| ())
}

/// Writes the end of a message with its outcome, once: an existing record is kept, and its side effects are
/// not repeated.
pub(super) async fn insert_record(connection: &mut SqliteConnection, row: &MessageRow) -> sqlx::Result<()> {
    let Some(outcome) = &row.outcome else { return Ok(()) };
    let MessageOutcome { size, turn, summary, details, updates, usage, figures, progress: after } = outcome;
    let query = sqlx::query(
        "insert or ignore into records (message_id, version, size, turn, summary, details) \
         select id, ?, ?, ?, ?, ? from messages where id = ?",
    );
    let query = query.bind(RECORD_VERSION).bind(size.cast_signed()).bind(turn).bind(summary).bind(details);
    if query.bind(&row.id).execute(&mut *connection).await?.rows_affected() == 0 {
        return Ok(());
    }
    let query = sqlx::query("update messages set status = ? where id = ?");
    query.bind(&row.status).bind(&row.id).execute(&mut *connection).await?;
    insert_updates(connection, row, updates).await?;
    if let Some(after) = after {
        store_progress(connection, &row.conversation_id, after).await?;
    }
    if let Some(usage) = usage {
        add_usage(connection, usage).await?;
    }
    add_figures(connection, figures).await
}

/// Inserts log rows, in bulk where there are many. Existing rows are skipped.
pub(super) async fn insert_rows(connection: &mut SqliteConnection, rows: &[EntryRange]) -> sqlx::Result<()> {
    const ONE: &str = "insert or ignore into entries (message_id, first, last, body) values (?, ?, ?, ?)";
    const MORE: &str = "insert or ignore into entries (message_id, first, last, body) values (?,?,?,?),(?,?,?,?),\
        (?,?,?,?),(?,?,?,?),(?,?,?,?),(?,?,?,?),(?,?,?,?),(?,?,?,?),(?,?,?,?),(?,?,?,?),(?,?,?,?),(?,?,?,?),\
        (?,?,?,?),(?,?,?,?),(?,?,?,?),(?,?,?,?)";
    let mut insert = async |statement: &'static str, rows: &[EntryRange]| {
        let mut query = sqlx::query(statement);
        for row in rows {
            let (first, last) = (row.first.cast_signed(), row.last.cast_signed());
            query = query.bind(&row.message).bind(first).bind(last).bind(&row.body);
        }
        query.execute(&mut *connection).await.map(|_| ())
    };
    let (groups, rest) = rows.as_chunks::<ROWS_PER_STATEMENT>();
    for group in groups {
        insert(MORE, group).await?;
        fail::point("database.amid");
    }
    for row in rest {
        insert(ONE, std::slice::from_ref(row)).await?;
        fail::point("database.amid");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use sqlx::sqlite::SqlitePoolOptions;

    use super::*;

    #[tokio::test]
    async fn checkpoints_go_on_when_there_was_no_connection_for_one() {
        let pool = SqlitePoolOptions::new().max_connections(1).acquire_timeout(Duration::from_millis(20));
        let pool = pool.connect("sqlite::memory:").await.unwrap();
        let connections = pool.acquire().await.unwrap();
        let (checkpoint_sender, checkpoint_receiver) = mpsc::channel(1);
        let task = tokio::spawn(run_checkpoints(pool.clone(), checkpoint_receiver, Arc::default()));
        checkpoint_sender.send(()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        drop(connections);
        checkpoint_sender.send(()).await.expect("it still listens");
        drop(checkpoint_sender);
        task.await.unwrap();
    }
}
