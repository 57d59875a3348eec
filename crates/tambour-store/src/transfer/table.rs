//! Tables that are moved, with their columns in both databases.

use super::{Cell, CellRow};

/// Table that both databases have.
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: &'static [Column],
    /// Number of leading columns that identify a row, in whose order rows are read.
    pub(super) key_columns: usize,
}

/// Column of a table.
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) kind: ColumnKind,
    /// Expression that gives the value in SQLite, if the column does not exist there.
    source: Option<&'static str>,
}

/// Kind of the values of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnKind {
    Text,
    Integer,
    /// Boolean; 0 or 1 in SQLite.
    Flag,
    Bytes,
    /// Date; text in SQLite.
    Day,
}

const fn text(name: &'static str) -> Column {
    Column { name, kind: ColumnKind::Text, source: None }
}

const fn integer(name: &'static str) -> Column {
    Column { name, kind: ColumnKind::Integer, source: None }
}

const fn flag(name: &'static str) -> Column {
    Column { name, kind: ColumnKind::Flag, source: None }
}

const fn bytes(name: &'static str) -> Column {
    Column { name, kind: ColumnKind::Bytes, source: None }
}

/// Day of a message's log, which only PostgreSQL stores.
const LOG_DAY: Column = Column {
    name: "day",
    kind: ColumnKind::Day,
    source: Some(
        "coalesce((select substr(created, 1, 10) from messages where id = message_id), '0001-01-01')",
    ),
};

/// Epoch of the lease that has written entries, which only PostgreSQL stores.
const LOG_EPOCH: Column = Column { name: "epoch", kind: ColumnKind::Integer, source: Some("0") };

const fn table(name: &'static str, key_columns: usize, columns: &'static [Column]) -> Table {
    Table { name, columns, key_columns }
}

/// Tables to move, in order. Messages come before their logs.
pub(super) const TABLES: &[Table] = &[
    table("settings", 1, &[text("name"), text("value")]),
    table(
        "keys",
        1,
        &[
            text("id"),
            text("owner"),
            text("name"),
            bytes("hash"),
            flag("admin"),
            text("created"),
            text("limits"),
        ],
    ),
    table(
        "usage",
        2,
        &[
            text("day"),
            text("key"),
            text("owner"),
            text("name"),
            integer("requests"),
            integer("input_tokens"),
            integer("output_tokens"),
        ],
    ),
    table(
        "tools",
        2,
        &[text("owner"), text("name"), text("created"), text("changed"), text("definition"), text("secret")],
    ),
    table(
        "documents",
        3,
        &[
            text("owner"),
            text("kind"),
            text("id"),
            text("name"),
            text("created"),
            text("changed"),
            integer("published"),
        ],
    ),
    table(
        "versions",
        4,
        &[
            text("owner"),
            text("kind"),
            text("id"),
            integer("version"),
            text("created"),
            text("hash"),
            text("text"),
            flag("autosave"),
        ],
    ),
    table(
        "conversations",
        1,
        &[integer("number"), text("id"), text("owner"), text("created"), text("title"), text("metadata")],
    ),
    table(
        "messages",
        1,
        &[
            integer("number"),
            text("id"),
            text("conversation_id"),
            text("request_id"),
            text("owner"),
            text("created"),
            text("status"),
            text("request"),
            text("kind"),
            text("repeat"),
            text("server"),
            integer("epoch"),
        ],
    ),
    table(
        "entries",
        2,
        &[text("message_id"), integer("first"), integer("last"), LOG_EPOCH, LOG_DAY, bytes("body")],
    ),
    table(
        "records",
        1,
        &[
            text("message_id"),
            integer("version"),
            integer("size"),
            text("turn"),
            text("summary"),
            text("details"),
        ],
    ),
    table(
        "kept",
        1,
        &[
            integer("number"),
            text("owner"),
            text("route"),
            text("word"),
            bytes("digest"),
            integer("status"),
            text("location"),
            bytes("body"),
            text("created"),
        ],
    ),
    table("kept_names", 2, &[text("name"), integer("kept")]),
    table(
        "dialogues",
        1,
        &[
            integer("number"),
            text("id"),
            text("owner"),
            text("created"),
            text("changed"),
            text("script_id"),
            integer("version"),
            text("script"),
            text("status"),
            text("state"),
            text("session"),
            text("origin"),
        ],
    ),
    table("rounds", 1, &[integer("number"), text("dialogue_id"), text("record")]),
    table("dialogue_turns", 1, &[integer("number"), text("dialogue_id"), text("record")]),
    table(
        "repeats",
        2,
        &[
            text("owner"),
            text("repeat"),
            text("created"),
            text("request"),
            integer("status"),
            text("answer"),
            text("turn"),
        ],
    ),
    table(
        "states",
        1,
        &[
            integer("number"),
            text("conversation_id"),
            text("schema"),
            text("base"),
            integer("floor"),
            text("present"),
            integer("upto"),
        ],
    ),
    table(
        "state_updates",
        2,
        &[
            text("id"),
            integer("number"),
            text("conversation_id"),
            integer("position"),
            integer("place"),
            flag("passed"),
            text("created"),
            text("applied"),
        ],
    ),
    table(
        "imports",
        1,
        &[
            integer("number"),
            text("id"),
            text("owner"),
            text("kind"),
            text("name"),
            text("file"),
            text("version"),
            integer("entries"),
            text("created"),
            integer("size"),
            bytes("bytes"),
        ],
    ),
    table("lore", 1, &[integer("number"), text("conversation_id"), text("timed")]),
    table(
        "figures",
        3,
        &[
            text("hour"),
            text("owner"),
            text("upstream"),
            integer("completed"),
            integer("failed"),
            integer("cancelled"),
            integer("repaired"),
            integer("replaced"),
            integer("input_tokens"),
            integer("output_tokens"),
            integer("unpriced_tokens"),
            integer("cost"),
        ],
    ),
    table(
        "first_texts",
        4,
        &[text("hour"), text("owner"), text("upstream"), integer("bucket"), integer("count")],
    ),
    table("repairs", 4, &[text("hour"), text("owner"), text("rule"), text("code"), integer("count")]),
];

impl Table {
    fn key(&self) -> &'static [Column] {
        &self.columns[..self.key_columns]
    }

    /// Returns `true` if the database numbers the rows.
    pub(super) fn is_numbered(&self) -> bool {
        self.key().iter().map(|column| column.name).eq(["number"])
    }

    /// Returns the key of a row.
    pub(super) fn key_of(&self, row: &CellRow) -> CellRow {
        row[..self.key_columns].to_vec()
    }

    /// Formats a key as JSON, to store where an interrupted move continues.
    pub(super) fn format_key(key: &[Cell]) -> String {
        let values = key.iter().map(|cell| match cell {
            Cell::Integer(number) => serde_json::json!(number),
            Cell::Text(text) => serde_json::json!(text),
            _ => serde_json::Value::Null,
        });
        serde_json::Value::from_iter(values).to_string()
    }

    /// Parses a key of [`Table::format_key`].
    pub(super) fn parse_key(&self, text: &str) -> Option<CellRow> {
        let values: Vec<serde_json::Value> = serde_json::from_str(text).ok()?;
        let cells = values.into_iter().map(|value| match value {
            serde_json::Value::Number(number) => number.as_i64().map(Cell::Integer),
            serde_json::Value::String(text) => Some(Cell::Text(text)),
            _ => None,
        });
        cells.collect::<Option<CellRow>>().filter(|key| key.len() == self.key_columns)
    }

    /// Returns the statement that reads rows in the order of the key, after a key if `has_start` is set. Its
    /// last parameter is the number of rows.
    pub(super) fn select_statement(&self, has_start: bool, is_sqlite: bool) -> String {
        let columns: Vec<String> =
            self.columns.iter().map(|column| column.select_expression(is_sqlite)).collect();
        // Sorts by bytes, whatever the collation of the database is.
        let ordered = |column: &Column| match column.kind {
            ColumnKind::Text if !is_sqlite => format!("{} collate \"C\"", column.name),
            _ => column.name.to_owned(),
        };
        let key = self.key().iter().map(ordered).collect::<Vec<_>>().join(", ");
        let start = if has_start {
            let parameters: Vec<String> = (1..=self.key_columns).map(|number| format!("${number}")).collect();
            format!("where ({key}) > ({}) ", parameters.join(", "))
        } else {
            String::new()
        };
        let limit = if has_start { self.key_columns + 1 } else { 1 };
        format!("select {} from {} {start}order by {key} limit ${limit}", columns.join(", "), self.name)
    }

    /// Returns the statement that inserts rows from arrays, one for each column. Existing rows are kept.
    pub(super) fn insert_statement(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|column| column.name).collect();
        let (mut arrays, mut values) = (Vec::new(), Vec::new());
        for (index, column) in self.columns.iter().enumerate() {
            let (array_type, value) = match column.kind {
                ColumnKind::Text => ("text[]", format!("row.c{index}")),
                ColumnKind::Integer => ("bigint[]", format!("row.c{index}")),
                ColumnKind::Flag => ("boolean[]", format!("row.c{index}")),
                ColumnKind::Bytes => ("bytea[]", format!("row.c{index}")),
                ColumnKind::Day => ("text[]", format!("cast(row.c{index} as date)")),
            };
            arrays.push(format!("${}::{array_type}", index + 1));
            values.push(value);
        }
        let columns: Vec<String> = (0..self.columns.len()).map(|index| format!("c{index}")).collect();
        format!(
            "insert into {} ({}) select {} from unnest({}) as row ({}) on conflict do nothing",
            self.name,
            names.join(", "),
            values.join(", "),
            arrays.join(", "),
            columns.join(", ")
        )
    }
}

impl Column {
    /// Returns the expression that reads the value.
    fn select_expression(&self, is_sqlite: bool) -> String {
        match (self.source, self.kind) {
            (Some(source), _) if is_sqlite => source.to_owned(),
            (_, ColumnKind::Day) => format!("cast({} as text)", self.name),
            _ => self.name.to_owned(),
        }
    }
}
