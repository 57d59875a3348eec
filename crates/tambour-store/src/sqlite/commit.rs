//! Commits: the writer collects tasks into a group and writes it in one transaction.

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
use super::states::insert_updates;
use super::transaction::OpenTransaction;
use super::writer::WriterTask;
use crate::fail;
use crate::rows::kind_name;
use crate::tail::{DrainedEntries, LogTail};
use crate::{MessageOutcome, MessageRow};

/// Bytes written after which a checkpoint is requested, which runs on another connection.
const CHECKPOINT_BYTES: usize = 8 << 20;
/// Length of the write-ahead file, in pages, beyond which the writer runs a checkpoint itself, since the
/// checkpoints on the other connection do not keep up.
const OVERDUE_PAGES: i64 = 32 << 10;
/// Approximate bytes that writing a row costs in addition to its text: pages of a table and of an index.
const ROW_OVERHEAD: usize = 8 << 10;
/// Number of rows that a statement for several rows inserts.
const ROWS_PER_STATEMENT: usize = 16;
/// Version of the JSON in the rows of `records`.
const RECORD_VERSION: i64 = 1;

/// State of the writer task.
pub(super) struct CommitState {
    shared: Arc<StoreState>,
    /// Approximate bytes written since the last checkpoint request.
    bytes_since_checkpoint: usize,
    /// Requests a checkpoint.
    checkpoint_sender: mpsc::Sender<()>,
    /// Set when the write-ahead file exceeds [`OVERDUE_PAGES`].
    is_checkpoint_overdue: Arc<AtomicBool>,
    /// Extents of the journal at the last commit.
    committed_extents: SegmentExtents,
}

/// Rows of one transaction.
#[derive(Default)]
pub(super) struct CommitGroup {
    /// Logs whose entries are in `rows`. They are notified when the entries are stored.
    drained: Vec<(Arc<LogTail>, DrainedEntries)>,
    /// Entries of logs.
    rows: Vec<EntryRange>,
    /// New messages.
    messages: Vec<Arc<MessageRow>>,
    /// Rows of messages that have ended, with their outcomes.
    records: Vec<Arc<MessageRow>>,
    /// Last journal segment that the database has completely after this commit.
    full_segment: Option<u64>,
    /// Extents of the journal up to which the database has every message after this commit.
    extents: SegmentExtents,
    /// Notified after the commit.
    waiters: Vec<oneshot::Sender<()>>,
    /// Set when the writer stops after this group.
    pub(super) is_last: bool,
}

impl CommitGroup {
    fn is_empty(&self) -> bool {
        let has_no_rows = self.rows.is_empty() && self.messages.is_empty() && self.records.is_empty();
        has_no_rows && self.full_segment.is_none()
    }

    /// Returns the approximate bytes to write.
    pub(super) fn bytes(&self) -> usize {
        let entry_bytes = self.rows.iter().map(|row| row.body.len()).sum::<usize>();
        let message_bytes = self.messages.iter().map(|row| row.request.len()).sum::<usize>();
        let outcomes = self.records.iter().filter_map(|row| row.outcome.as_ref());
        let record_bytes =
            outcomes.map(|outcome| usize::try_from(outcome.size).unwrap_or(usize::MAX)).sum::<usize>();
        let row_count = self.rows.len() + self.messages.len() + self.records.len();
        entry_bytes + message_bytes + record_bytes + row_count * ROW_OVERHEAD
    }
}

impl CommitState {
    pub(super) fn new(shared: Arc<StoreState>) -> CommitState {
        let (checkpoint_sender, checkpoint_receiver) = mpsc::channel(1);
        let is_checkpoint_overdue = Arc::new(AtomicBool::new(false));
        let checkpoints =
            run_checkpoints(shared.pool.clone(), checkpoint_receiver, is_checkpoint_overdue.clone());
        let dead = shared.dead.clone();
        tokio::spawn(async move {
            // Without checkpoints the write-ahead file would grow for ever.
            if tokio::spawn(checkpoints).await.is_err_and(|error| error.is_panic()) {
                tracing::error!("the task that copies the write-ahead file to the database panicked");
                dead.cancel();
            }
        });
        // The journal is empty, and the replay has stored its extents in the database.
        let committed_extents = shared.journal.extents();
        CommitState {
            shared,
            bytes_since_checkpoint: 0,
            checkpoint_sender,
            is_checkpoint_overdue,
            committed_extents,
        }
    }

    /// Adds the rows of a task to the group.
    pub(super) fn add(&self, task: WriterTask, group: &mut CommitGroup) {
        match task {
            WriterTask::Entries(tail) => {
                let force = false;
                drain_tail(&tail, force, group);
            }
            WriterTask::Commit => {}
            WriterTask::Message(row) => group.messages.push(row),
            WriterTask::Segment(number) => {
                self.drain_all_tails(group);
                group.full_segment = group.full_segment.max(Some(number));
            }
            WriterTask::Flush(done_sender) => group.waiters.push(done_sender),
            WriterTask::Close(done_sender) => {
                self.drain_all_tails(group);
                group.full_segment = self.shared.journal.rotate().ok().max(group.full_segment);
                group.is_last = true;
                group.waiters.push(done_sender);
            }
        }
    }

    /// Sets the extents that the commit stores to the current extents of the journal.
    pub(super) fn record_extents(&self, group: &mut CommitGroup) {
        group.extents = self.shared.journal.extents();
    }

    /// Returns `true` if the journal has grown since the last commit.
    pub(super) fn has_journal_grown(&self) -> bool {
        self.shared.journal.extents() != self.committed_extents
    }

    /// Adds the entries of all logs that the database lacks.
    fn drain_all_tails(&self, group: &mut CommitGroup) {
        for tail in self.shared.pending.tails() {
            let force = true;
            drain_tail(&tail, force, group);
        }
    }

    /// Writes a group, retrying until it succeeds or waits are aborted, and notifies its waiters.
    pub(super) async fn write(&mut self, group: CommitGroup) {
        if !group.is_empty() || group.extents != self.committed_extents {
            // On a full disk the database falls behind the journal until there is space again.
            let mut wait = Duration::from_millis(50);
            while let Err(error) = self.insert(&group).await {
                tracing::error!(%error, "the database cannot be written; trying again");
                self.shared.is_unwritable.store(true, Ordering::Relaxed);
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = self.shared.abort_waits.cancelled() => return,
                }
                wait = (wait * 2).min(Duration::from_secs(2));
            }
            self.shared.is_unwritable.store(false, Ordering::Relaxed);
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
        if self.bytes_since_checkpoint >= CHECKPOINT_BYTES && self.checkpoint_sender.try_send(()).is_ok() {
            self.bytes_since_checkpoint = 0;
        }
        if self.is_checkpoint_overdue.swap(false, Ordering::Relaxed)
            && let Ok(mut connection) = self.shared.pool.acquire().await
        {
            let _ = run_checkpoint(&mut connection).await;
        }
    }

    /// Writes a group in one transaction.
    async fn insert(&self, group: &CommitGroup) -> sqlx::Result<()> {
        let mut transaction = OpenTransaction::begin(&self.shared.pool).await?;
        let boot_id = self.shared.journal.boot_id();
        let write_result = write_group(&mut transaction, group, boot_id).await;
        transaction.end(write_result).await?;
        fail::point("database.after");
        Ok(())
    }
}

/// Writes the rows of a group within its transaction.
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

/// Adds the entries of a log that the database lacks to the group. Unless `force` is set, they are left in
/// memory until there are enough for a row or the log ends.
fn drain_tail(tail: &Arc<LogTail>, force: bool, group: &mut CommitGroup) {
    let rows = &mut group.rows;
    let drained = tail.drain(force, |first, last, body| {
        rows.push(EntryRange { message: tail.message.clone(), first, last, body: body.to_vec() });
    });
    if let Some(drained) = drained {
        group.records.extend(drained.record.clone());
        group.drained.push((tail.clone(), drained));
    }
}

/// Runs a checkpoint for each request. Then sets `is_overdue` if the write-ahead file is still too long, and
/// clears it otherwise.
async fn run_checkpoints(
    pool: SqlitePool,
    mut checkpoint_receiver: mpsc::Receiver<()>,
    is_overdue: Arc<AtomicBool>,
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
                is_overdue.store(pages > OVERDUE_PAGES && checkpointed < pages, Ordering::Relaxed)
            }
            Err(error) => {
                tracing::warn!(%error, "a checkpoint of the database failed; trying again later")
            }
        }
    }
}

/// Runs a passive checkpoint, which waits for no reader or writer. Returns 1 if it was blocked (else 0), the
/// pages of the write-ahead file, and how many of them are in the database file.
async fn run_checkpoint(connection: &mut SqliteConnection) -> sqlx::Result<(i64, i64, i64)> {
    sqlx::query_as("pragma wal_checkpoint(passive)").fetch_one(connection).await
}

/// Inserts a message or turn, and for a message also its conversation if that does not exist. Existing rows
/// are kept.
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
    // A number that another message has in a database of an older version becomes null: SQLite then assigns
    // one.
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

/// Writes the end of a message: its record, status, state updates, usage and figures. If the record exists
/// already, nothing is written, so that nothing is counted twice.
pub(super) async fn insert_record(connection: &mut SqliteConnection, row: &MessageRow) -> sqlx::Result<()> {
    let Some(outcome) = &row.outcome else { return Ok(()) };
    let MessageOutcome { size, turn, summary, details, updates, usage, figures, progress } = outcome;
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
    if let Some(progress) = progress {
        store_progress(connection, &row.conversation_id, progress).await?;
    }
    if let Some(usage) = usage {
        add_usage(connection, usage).await?;
    }
    add_figures(connection, figures).await
}

/// Inserts entries of logs, many with one statement where possible. Existing rows are kept.
pub(super) async fn insert_rows(connection: &mut SqliteConnection, rows: &[EntryRange]) -> sqlx::Result<()> {
    const INSERT_ONE: &str =
        "insert or ignore into entries (message_id, first, last, body) values (?, ?, ?, ?)";
    // As many rows as `ROWS_PER_STATEMENT`.
    const INSERT_MANY: &str = "insert or ignore into entries (message_id, first, last, body) values (?,?,?,?),(?,?,?,?),\
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
    let (chunks, remaining_rows) = rows.as_chunks::<ROWS_PER_STATEMENT>();
    for chunk in chunks {
        insert(INSERT_MANY, chunk).await?;
        fail::point("database.amid");
    }
    for row in remaining_rows {
        insert(INSERT_ONE, std::slice::from_ref(row)).await?;
        fail::point("database.amid");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use sqlx::sqlite::SqlitePoolOptions;

    use super::*;

    #[tokio::test]
    async fn checkpoints_continue_after_one_that_found_no_connection() {
        let pool = SqlitePoolOptions::new().max_connections(1).acquire_timeout(Duration::from_millis(20));
        let pool = pool.connect("sqlite::memory:").await.unwrap();
        let only_connection = pool.acquire().await.unwrap();
        let (checkpoint_sender, checkpoint_receiver) = mpsc::channel(1);
        let task = tokio::spawn(run_checkpoints(pool.clone(), checkpoint_receiver, Arc::default()));
        checkpoint_sender.send(()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        drop(only_connection);
        checkpoint_sender.send(()).await.expect("it still listens");
        drop(checkpoint_sender);
        task.await.unwrap();
    }
}
