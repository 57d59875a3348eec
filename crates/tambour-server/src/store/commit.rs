//! One commit: what goes into it, and how it is written.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{Connection, Sqlite, SqliteConnection, SqlitePool};
use tokio::sync::{mpsc, oneshot};

use super::journal::record;
use super::live::Taken;
use super::{Live, MessageRow, StoreError};
use crate::fail;

/// Bytes of the journal after which all that is in it goes to the logs, and it is emptied.
const JOURNAL: usize = 4 << 20;
/// Bytes written after which another connection brings them from the write-ahead file to that of the database.
const CHECKPOINT: usize = 8 << 20;
/// Pages of the write-ahead file after which the writer does it itself, since the other has not kept up.
const OVERDUE: i64 = 32 << 10;
/// Bytes that a commit writes at least: whole pages.
const LEAST: usize = 16 << 10;
/// Rows of one statement.
const TOGETHER: usize = 16;

pub(super) const EMPTY: &str = "delete from journal";

/// What is written at once.
pub(super) enum Work {
    /// Entries of a message.
    Entries(Arc<Live>),
    /// Everything of a message, to the table of the log.
    Settle(Arc<Live>, oneshot::Sender<()>),
    /// A new message.
    Message(Box<MessageRow>, Answer),
    /// What came of a message.
    Record(Box<Record>, Answer),
    /// Everything that was handed over before.
    Flush(oneshot::Sender<()>),
    /// Lets go of the database after that.
    Close(oneshot::Sender<()>),
}

pub(super) type Answer = oneshot::Sender<Result<(), StoreError>>;

pub(super) struct Record {
    pub(super) message: String,
    pub(super) status: String,
    pub(super) json: String,
}

/// A row of a log.
pub(super) struct Row {
    pub(super) message: String,
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) body: Vec<u8>,
}

/// What the task that writes keeps.
pub(super) struct State {
    connection: PoolConnection<Sqlite>,
    /// Bytes in the journal.
    journal: usize,
    /// Messages that have entries there and nowhere else.
    open: HashMap<String, Arc<Live>>,
    /// Bytes written since a checkpoint was wanted last, about.
    written: usize,
    checkpoint: mpsc::Sender<()>,
    overdue: Arc<AtomicBool>,
}

/// What goes into one transaction.
#[derive(Default)]
pub(super) struct Group {
    taken: Vec<(Arc<Live>, Taken)>,
    rows: Vec<Row>,
    journal: Vec<u8>,
    /// The journal holds nothing any more that the logs do not.
    empty: bool,
    messages: Vec<(Box<MessageRow>, Answer)>,
    records: Vec<(Box<Record>, Answer)>,
    done: Vec<oneshot::Sender<()>>,
    pub(super) close: bool,
}

impl State {
    pub(super) fn new(pool: &SqlitePool, connection: PoolConnection<Sqlite>) -> State {
        let (checkpoint, wanted) = mpsc::channel(1);
        let overdue = Arc::new(AtomicBool::new(false));
        tokio::spawn(checkpoints(pool.clone(), wanted, overdue.clone()));
        State { connection, journal: 0, open: HashMap::new(), written: 0, checkpoint, overdue }
    }

    pub(super) fn add(&mut self, work: Work, group: &mut Group) {
        match work {
            Work::Entries(live) => self.take(&live, false, group),
            Work::Settle(live, done) => {
                self.take(&live, true, group);
                group.done.push(done);
            }
            Work::Message(row, answer) => group.messages.push((row, answer)),
            Work::Record(record, answer) => group.records.push((record, answer)),
            Work::Flush(done) => group.done.push(done),
            Work::Close(done) => {
                group.close = true;
                group.done.push(done);
            }
        }
    }

    pub(super) fn take(&mut self, live: &Arc<Live>, settle: bool, group: &mut Group) {
        let Group { rows, journal, .. } = group;
        let row = |first, last, body: &[u8]| {
            rows.push(Row { message: live.id.clone(), first, last, body: body.to_vec() });
            self.open.remove(&live.id);
        };
        let mut journaled = false;
        let taken = live.take(settle, row, |first, last, body| {
            journaled = true;
            record(&live.id, first, last, body, journal);
        });
        if journaled && !self.open.contains_key(&live.id) {
            self.open.insert(live.id.clone(), live.clone());
        }
        if let Some(taken) = taken {
            group.taken.push((live.clone(), taken));
        }
    }

    /// Writes a group, and tells who waits for it.
    pub(super) async fn write(&mut self, mut group: Group) {
        if self.journal + group.journal.len() > JOURNAL {
            let open: Vec<Arc<Live>> = self.open.values().cloned().collect();
            for live in open {
                self.take(&live, true, &mut group);
            }
            group.journal.clear();
            group.empty = true;
            self.journal = 0;
        }
        self.journal += group.journal.len();
        if group.changes() {
            fail::point("log.before");
            // What cannot be written must not be seen: a disk that is full holds every run; they go on when there is room.
            // Whoever asked for a row is told, and not held.
            let mut wait = Duration::from_millis(50);
            while let Err(error) = self.insert(&group).await {
                tracing::error!(%error, "the database cannot be written; trying again");
                let failed = error.to_string();
                let rows = group.messages.drain(..).map(|(_, answer)| answer);
                for answer in rows.chain(group.records.drain(..).map(|(_, answer)| answer)) {
                    let _ = answer.send(Err(StoreError::Database(sqlx::Error::Protocol(failed.clone()))));
                }
                if group.changes() {
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(Duration::from_secs(5));
                } else {
                    break;
                }
            }
            fail::point("log.after");
            self.written +=
                LEAST + group.journal.len() + group.rows.iter().map(|row| row.body.len()).sum::<usize>();
        }
        for (live, taken) in group.taken {
            live.publish(taken);
        }
        let rows = group.messages.into_iter().map(|(_, answer)| answer);
        for answer in rows.chain(group.records.into_iter().map(|(_, answer)| answer)) {
            let _ = answer.send(Ok(()));
        }
        for done in group.done {
            let _ = done.send(());
        }
        if self.written >= CHECKPOINT {
            self.written = 0;
            let _ = self.checkpoint.try_send(());
            if self.overdue.swap(false, Ordering::Relaxed) {
                let _ = checkpoint(&mut self.connection).await;
            }
        }
    }

    async fn insert(&mut self, group: &Group) -> sqlx::Result<()> {
        const JOURNAL: &str = "insert into journal (body) values (?)";
        // One statement is a transaction of its own.
        if group.is_one() && !group.journal.is_empty() {
            let query = sqlx::query(JOURNAL).bind(&group.journal);
            return query.execute(&mut *self.connection).await.map(|_| ());
        }
        if let ([(row, _)], true) = (group.messages.as_slice(), group.is_one()) {
            return insert_message(&mut self.connection, row, true).await;
        }
        if let ([(record, _)], true) = (group.records.as_slice(), group.is_one()) {
            return update_record(&mut self.connection, record).await;
        }
        if let ([row], true) = (group.rows.as_slice(), group.is_one()) {
            return insert_rows(&mut self.connection, std::slice::from_ref(row)).await;
        }
        let mut transaction = self.connection.begin().await?;
        for (row, _) in &group.messages {
            insert_message(&mut transaction, row, false).await?;
        }
        insert_rows(&mut transaction, &group.rows).await?;
        if !group.journal.is_empty() {
            sqlx::query(JOURNAL).bind(&group.journal).execute(&mut *transaction).await?;
        }
        if group.empty {
            sqlx::query(EMPTY).execute(&mut *transaction).await?;
        }
        for (record, _) in &group.records {
            update_record(&mut transaction, record).await?;
        }
        fail::point("log.amid");
        transaction.commit().await
    }
}

impl Group {
    /// How many changes there are.
    fn count(&self) -> usize {
        let journal = usize::from(!self.journal.is_empty()) + usize::from(self.empty);
        self.rows.len() + self.messages.len() + self.records.len() + journal
    }

    fn changes(&self) -> bool {
        self.count() > 0
    }

    fn is_one(&self) -> bool {
        self.count() == 1
    }
}

/// Does the checkpoints that are wanted.
async fn checkpoints(pool: SqlitePool, mut wanted: mpsc::Receiver<()>, overdue: Arc<AtomicBool>) {
    while wanted.recv().await.is_some() {
        let Ok(mut connection) = pool.acquire().await else { return };
        match checkpoint(&mut connection).await {
            Ok((_, pages, done)) => overdue.store(pages > OVERDUE && done < pages, Ordering::Relaxed),
            Err(error) => {
                tracing::warn!(%error, "a checkpoint of the database failed; it is tried again later")
            }
        }
    }
}

/// Whether it was blocked, the pages of the write-ahead file, and how many of them are in the database.
async fn checkpoint(connection: &mut SqliteConnection) -> sqlx::Result<(i64, i64, i64)> {
    sqlx::query_as("pragma wal_checkpoint(passive)").fetch_one(connection).await
}

/// A message and its conversation; all statements go to the database together. `alone`: as a transaction.
async fn insert_message(
    connection: &mut SqliteConnection,
    row: &MessageRow,
    alone: bool,
) -> sqlx::Result<()> {
    macro_rules! statements {
        ($before:literal, $after:literal) => {
            concat!(
                $before,
                "insert or ignore into conversations (id, owner, created) values (?, ?, ?); ",
                "insert into messages (id, conversation_id, request_id, owner, created, status, request) ",
                "values (?, ?, ?, ?, ?, ?, ?)",
                $after
            )
        };
    }
    let query =
        sqlx::query(if alone { statements!("begin immediate; ", "; commit") } else { statements!("", "") });
    let written = query
        .bind(&row.conversation_id)
        .bind(&row.owner)
        .bind(&row.created)
        .bind(&row.id)
        .bind(&row.conversation_id)
        .bind(&row.request_id)
        .bind(&row.owner)
        .bind(&row.created)
        .bind(&row.status)
        .bind(&row.request)
        .execute(&mut *connection)
        .await
        .map(|_| ());
    if alone && written.is_err() {
        // There may be none, if it did not begin.
        let _ = sqlx::query("rollback").execute(connection).await;
    }
    written
}

async fn update_record(connection: &mut SqliteConnection, record: &Record) -> sqlx::Result<()> {
    let query = sqlx::query("update messages set status = ?, record = ? where id = ? and status = 'running'");
    let query = query.bind(&record.status).bind(&record.json).bind(&record.message);
    query.execute(connection).await.map(|_| ())
}

/// Inserts rows of logs, many with one statement where there are many. One that is there already is not written twice.
pub(super) async fn insert_rows(connection: &mut SqliteConnection, rows: &[Row]) -> sqlx::Result<()> {
    const ONE: &str = "insert or ignore into log (message_id, first, last, body) values (?, ?, ?, ?)";
    const MORE: &str = "insert or ignore into log (message_id, first, last, body) values (?,?,?,?),(?,?,?,?),\
        (?,?,?,?),(?,?,?,?),(?,?,?,?),(?,?,?,?),(?,?,?,?),(?,?,?,?),(?,?,?,?),(?,?,?,?),(?,?,?,?),(?,?,?,?),\
        (?,?,?,?),(?,?,?,?),(?,?,?,?),(?,?,?,?)";
    let mut insert = async |statement: &'static str, rows: &[Row]| {
        let mut query = sqlx::query(statement);
        for row in rows {
            let (first, last) = (row.first.cast_signed(), row.last.cast_signed());
            query = query.bind(&row.message).bind(first).bind(last).bind(&row.body);
        }
        query.execute(&mut *connection).await.map(|_| ())
    };
    let (groups, rest) = rows.as_chunks::<TOGETHER>();
    for group in groups {
        insert(MORE, group).await?;
        fail::point("log.amid");
    }
    for row in rest {
        insert(ONE, std::slice::from_ref(row)).await?;
        fail::point("log.amid");
    }
    Ok(())
}
