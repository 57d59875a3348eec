//! Moves all data of a SQLite database to an empty PostgreSQL database, table by table in pages. A page and
//! the key of its last row are stored in one transaction, so that a move that was killed continues after that
//! row. At the end every row of both databases is compared.

use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, PgConnection, PgPool, Row, SqlitePool};

use super::postgres::partitions::create_partitions_of;
use super::{PostgresStore, SqliteStore, StoreError};
use table::{ColumnKind, TABLES, Table};

mod table;

/// Maximum number of rows in a page.
const PAGE_ROWS: usize = 1000;
/// Approximate maximum number of bytes in a page.
const PAGE_BYTES: usize = 4 << 20;

/// Value of `last_key` in the row of a finished move.
const FINISHED: &str = "finished";

/// Error of a move.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// One of the databases failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The target has data that did not come from this source.
    #[error("the target database has data of its own; move to an empty one")]
    TargetInUse,
    /// Rows differ after all were moved.
    #[error("table {table}: {detail}; the source is unchanged")]
    Different {
        /// Name of the table.
        table: &'static str,
        /// First difference found.
        detail: String,
    },
}

impl From<sqlx::Error> for MoveError {
    fn from(error: sqlx::Error) -> MoveError {
        MoveError::Store(error.into())
    }
}

/// Progress of a move, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveProgress {
    /// Name of the table.
    pub table: &'static str,
    /// True while rows are compared, false while they are copied.
    pub is_comparison: bool,
    /// Rows of the table that are done.
    pub done_rows: u64,
    /// Rows of the table.
    pub total_rows: u64,
}

/// Value of a column.
#[derive(Clone, Debug, PartialEq)]
enum Cell {
    Null,
    Text(String),
    Integer(i64),
    Flag(bool),
    Bytes(Vec<u8>),
}

/// Row in the order of the columns of its table.
type CellRow = Vec<Cell>;

/// Moves everything from `source` to `target`, and compares all rows. Calls `report` after each page. Returns
/// the number of rows. The source must not be written meanwhile: this process holds its lock.
///
/// # Errors
/// See [`MoveError`]. A move that failed may be started again.
pub async fn move_data(
    source: &SqliteStore,
    target: &PostgresStore,
    mut report: impl FnMut(MoveProgress),
) -> Result<u64, MoveError> {
    let (source_pool, target_pool) = (source.move_pool(), target.move_pool());
    claim_target(source_pool, target_pool).await?;
    let query = "select distinct substr(created, 1, 10) from messages";
    let days: Vec<String> = sqlx::query_scalar(query).fetch_all(source_pool).await?;
    create_partitions_of(target, &days).await?;
    let mut rows_moved = 0;
    for table in TABLES {
        let total_rows = count_rows(source_pool, table).await?;
        copy_table(source_pool, target_pool, table, total_rows, &mut report).await?;
        rows_moved += total_rows;
    }
    create_runs(target_pool).await?;
    for table in TABLES {
        let total_rows = count_rows(source_pool, table).await?;
        compare_table(source_pool, target_pool, table, total_rows, &mut report).await?;
    }
    advance_numbers(target_pool).await?;
    let query = sqlx::query("update moves set last_key = $1 where table_name = ''").bind(FINISHED);
    query.execute(target_pool).await?;
    Ok(rows_moved)
}

/// Checks that the target is empty, or has what an earlier attempt with the same source has moved. Records
/// the source in an empty target.
async fn claim_target(source: &SqlitePool, target: &PgPool) -> Result<(), MoveError> {
    let source_id: String = sqlx::query_scalar("select id from server limit 1").fetch_one(source).await?;
    let query = sqlx::query_as("select source, last_key from moves where table_name = ''");
    let earlier_source: Option<(String, String)> = query.fetch_optional(target).await?;
    match earlier_source {
        // After a move that was finished the target has data of its own.
        Some((earlier, key)) if earlier == source_id && key != FINISHED => return Ok(()),
        Some(_) => return Err(MoveError::TargetInUse),
        None => {}
    }
    for table in TABLES {
        let statement = format!("select exists (select 1 from {})", table.name);
        if sqlx::query_scalar(AssertSqlSafe(statement)).fetch_one(target).await? {
            return Err(MoveError::TargetInUse);
        }
    }
    let query = sqlx::query("insert into moves (source, table_name, last_key, rows) values ($1, '', '', 0)");
    query.bind(source_id).execute(target).await?;
    Ok(())
}

async fn count_rows(source: &SqlitePool, table: &Table) -> Result<u64, MoveError> {
    let statement = format!("select count(*) from {}", table.name);
    let count: i64 = sqlx::query_scalar(AssertSqlSafe(statement)).fetch_one(source).await?;
    Ok(count.unsigned_abs())
}

/// Copies the rows of a table that follow the last page of an earlier attempt.
async fn copy_table(
    source: &SqlitePool,
    target: &PgPool,
    table: &'static Table,
    total_rows: u64,
    report: &mut impl FnMut(MoveProgress),
) -> Result<(), MoveError> {
    let query = sqlx::query_as("select last_key, rows from moves where table_name = $1").bind(table.name);
    let earlier_progress: Option<(String, i64)> = query.fetch_optional(target).await?;
    let (mut last_key, mut done_rows) = match earlier_progress {
        Some((key, rows)) => (table.parse_key(&key), rows.unsigned_abs()),
        None => (None, 0),
    };
    loop {
        let page = read_source_page(source, table, last_key.as_deref()).await?;
        let Some(last) = page.last() else { return Ok(()) };
        let key = table.key_of(last);
        done_rows += page.len() as u64;
        let mut transaction = target.begin().await?;
        insert_page(&mut transaction, table, &page).await?;
        let query = sqlx::query(
            "insert into moves (source, table_name, last_key, rows) values ('', $1, $2, $3) \
             on conflict (table_name) do update set last_key = excluded.last_key, rows = excluded.rows",
        );
        let query = query.bind(table.name).bind(Table::format_key(&key)).bind(done_rows.cast_signed());
        query.execute(&mut *transaction).await?;
        transaction.commit().await?;
        last_key = Some(key);
        report(MoveProgress { table: table.name, is_comparison: false, done_rows, total_rows });
    }
}

/// Compares all rows of a table.
async fn compare_table(
    source: &SqlitePool,
    target: &PgPool,
    table: &'static Table,
    total_rows: u64,
    report: &mut impl FnMut(MoveProgress),
) -> Result<(), MoveError> {
    let difference = |detail: String| MoveError::Different { table: table.name, detail };
    let (mut last_key, mut done_rows) = (None::<CellRow>, 0);
    loop {
        let page = read_source_page(source, table, last_key.as_deref()).await?;
        let target_page = read_target_page(target, table, last_key.as_deref(), page.len() + 1).await?;
        for (row, moved_row) in page.iter().zip(&target_page) {
            if row != moved_row {
                return Err(difference(format!("the row {} differs", Table::format_key(&table.key_of(row)))));
            }
        }
        if target_page.len() < page.len() {
            return Err(difference("rows are missing".to_owned()));
        }
        let Some(last) = page.last() else {
            return if target_page.is_empty() {
                Ok(())
            } else {
                Err(difference("there are other rows".to_owned()))
            };
        };
        done_rows += page.len() as u64;
        last_key = Some(table.key_of(last));
        report(MoveProgress { table: table.name, is_comparison: true, done_rows, total_rows });
    }
}

/// Reads the rows after a key, at most a page of them.
async fn read_source_page(
    source: &SqlitePool,
    table: &Table,
    after: Option<&[Cell]>,
) -> Result<Vec<CellRow>, MoveError> {
    use futures_util::TryStreamExt;
    let statement = table.select_statement(after.is_some(), true);
    let mut query = sqlx::query(AssertSqlSafe(statement));
    for cell in after.unwrap_or_default() {
        query = match cell {
            Cell::Integer(number) => query.bind(*number),
            Cell::Text(text) => query.bind(text),
            _ => query,
        };
    }
    let mut rows = query.bind(PAGE_ROWS.cast_signed() as i64).fetch(source);
    let (mut page, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.try_next().await? {
        let cells = source_cells(&row, table)?;
        bytes += cells.iter().map(Cell::size).sum::<usize>();
        page.push(cells);
        if bytes >= PAGE_BYTES {
            break;
        }
    }
    Ok(page)
}

/// Reads the rows after a key, at most `count`.
async fn read_target_page(
    target: &PgPool,
    table: &Table,
    after: Option<&[Cell]>,
    count: usize,
) -> Result<Vec<CellRow>, MoveError> {
    let statement = table.select_statement(after.is_some(), false);
    let mut query = sqlx::query(AssertSqlSafe(statement));
    for cell in after.unwrap_or_default() {
        query = match cell {
            Cell::Integer(number) => query.bind(*number),
            Cell::Text(text) => query.bind(text),
            _ => query,
        };
    }
    let rows = query.bind(i64::try_from(count).unwrap_or(i64::MAX)).fetch_all(target).await?;
    Ok(rows.iter().map(|row| target_cells(row, table)).collect::<sqlx::Result<_>>()?)
}

/// Inserts the rows of a page.
async fn insert_page(connection: &mut PgConnection, table: &Table, page: &[CellRow]) -> sqlx::Result<()> {
    let mut query = sqlx::query(AssertSqlSafe(table.insert_statement()));
    for (index, column) in table.columns.iter().enumerate() {
        let cells = page.iter().map(|row| &row[index]);
        query = match column.kind {
            ColumnKind::Text | ColumnKind::Day => query.bind(cells.map(Cell::text).collect::<Vec<_>>()),
            ColumnKind::Integer => query.bind(cells.map(Cell::integer).collect::<Vec<_>>()),
            ColumnKind::Flag => query.bind(cells.map(Cell::flag).collect::<Vec<_>>()),
            ColumnKind::Bytes => query.bind(cells.map(Cell::bytes).collect::<Vec<_>>()),
        };
    }
    query.execute(connection).await.map(|_| ())
}

impl Cell {
    /// Returns the approximate bytes of the value.
    fn size(&self) -> usize {
        match self {
            Cell::Text(text) => text.len(),
            Cell::Bytes(bytes) => bytes.len(),
            _ => 8,
        }
    }

    fn text(&self) -> Option<&str> {
        if let Cell::Text(text) = self { Some(text) } else { None }
    }

    fn integer(&self) -> Option<i64> {
        if let Cell::Integer(number) = self { Some(*number) } else { None }
    }

    fn flag(&self) -> Option<bool> {
        if let Cell::Flag(flag) = self { Some(*flag) } else { None }
    }

    fn bytes(&self) -> Option<&[u8]> {
        if let Cell::Bytes(bytes) = self { Some(bytes) } else { None }
    }
}

/// Reads the values of a row of either database.
macro_rules! read_cells {
    ($row:ident, $table:ident) => {
        $table
            .columns
            .iter()
            .enumerate()
            .map(|(index, column)| {
                let cell = match column.kind {
                    ColumnKind::Text | ColumnKind::Day => {
                        $row.try_get::<Option<String>, _>(index)?.map(Cell::Text)
                    }
                    ColumnKind::Integer => $row.try_get::<Option<i64>, _>(index)?.map(Cell::Integer),
                    ColumnKind::Flag => $row.try_get::<Option<bool>, _>(index)?.map(Cell::Flag),
                    ColumnKind::Bytes => $row.try_get::<Option<Vec<u8>>, _>(index)?.map(Cell::Bytes),
                };
                Ok(cell.unwrap_or(Cell::Null))
            })
            .collect()
    };
}

fn source_cells(row: &SqliteRow, table: &Table) -> sqlx::Result<CellRow> {
    read_cells!(row, table)
}

fn target_cells(row: &PgRow, table: &Table) -> sqlx::Result<CellRow> {
    read_cells!(row, table)
}

/// Creates runs for the messages that were running: the next server to start closes them.
async fn create_runs(target: &PgPool) -> Result<(), MoveError> {
    let query = sqlx::query(
        "insert into runs (id, number, conversation_id, server, epoch, next, day) \
         select id, number, conversation_id, null, coalesce(epoch, 0), \
         coalesce((select max(last) from entries where message_id = messages.id), 0) + 1, \
         cast(substr(created, 1, 10) as date) from messages where status = 'running' on conflict do nothing",
    );
    query.execute(target).await?;
    Ok(())
}

/// Sets the sequences so that new rows get numbers after those of the moved rows.
async fn advance_numbers(target: &PgPool) -> Result<(), MoveError> {
    for table in TABLES.iter().filter(|table| table.is_numbered()) {
        let name = table.name;
        let statement = format!(
            "select setval(pg_get_serial_sequence('{name}', 'number'), \
             coalesce((select max(number) from {name}), 0) + 1, false)"
        );
        sqlx::query(AssertSqlSafe(statement)).execute(target).await?;
    }
    Ok(())
}
