//! Rows as both databases return them.

use futures_util::{Stream, TryStreamExt};
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row};

use super::{
    Batch, ConversationRow, DialogueRow, Document, DocumentVersion, FirstTextTimes, ImportRow, KeyRow,
    MessageOutcome, MessageRow, ReplyCounts, RunKind, StateUpdateRow, StepFigures, StoredResponse, ToolRow,
    TurnHistory, UsageRow,
};

/// Implements `FromRow` of a type for rows of both databases.
macro_rules! map_rows {
    ($($type:ty, $row:ident => $map:expr;)+) => {$(
        impl FromRow<'_, SqliteRow> for $type {
            fn from_row($row: &SqliteRow) -> sqlx::Result<$type> {
                $map
            }
        }

        impl FromRow<'_, PgRow> for $type {
            fn from_row($row: &PgRow) -> sqlx::Result<$type> {
                $map
            }
        }
    )+};
}

/// Name of [`RunKind::Turn`] in the database.
const TURN_KIND: &str = "turn";

/// Returns the name of a kind in the database; `None` (null) for a message.
pub(crate) fn kind_name(kind: RunKind) -> Option<&'static str> {
    (kind == RunKind::Turn).then_some(TURN_KIND)
}

/// Parses the name of a kind in the database.
fn parse_kind(text: Option<&str>) -> RunKind {
    if text == Some(TURN_KIND) { RunKind::Turn } else { RunKind::Message }
}

/// Converts a stored number to a smaller type.
fn narrow<T: TryFrom<i64>>(number: i64) -> sqlx::Result<T>
where
    T::Error: std::error::Error + Send + Sync + 'static,
{
    T::try_from(number).map_err(|error| sqlx::Error::Decode(error.into()))
}

/// Reads rows of a log, their first and last number and body, until they have about `bytes` bytes.
pub(crate) async fn read_entries(
    mut rows: impl Stream<Item = sqlx::Result<(i64, i64, Vec<u8>)>> + Unpin,
    bytes: usize,
) -> sqlx::Result<Vec<Batch>> {
    let (mut batches, mut bytes_read) = (Vec::new(), 0);
    while let Some((first, last, body)) = rows.try_next().await? {
        bytes_read += body.len();
        batches.push(Batch::from_stored(first.cast_unsigned(), last.cast_unsigned(), body));
        if bytes_read >= bytes {
            break;
        }
    }
    Ok(batches)
}

map_rows! {
    MessageRow, row => {
        let summary: Option<String> = row.try_get("summary")?;
        let outcome = match summary {
            Some(summary) => Some(MessageOutcome {
                size: row.try_get::<i64, _>("size")?.cast_unsigned(),
                turn: row.try_get("turn")?,
                summary,
                details: row.try_get("details")?,
                ..MessageOutcome::default()
            }),
            None => None,
        };
        Ok(MessageRow {
            number: row.try_get("number")?,
            id: row.try_get("id")?,
            conversation_id: row.try_get("conversation_id")?,
            request_id: row.try_get("request_id")?,
            owner: row.try_get("owner")?,
            created: row.try_get("created")?,
            status: row.try_get("status")?,
            request: row.try_get("request")?,
            kind: parse_kind(row.try_get("kind")?),
            repeat: row.try_get("repeat")?,
            server: row.try_get("server")?,
            epoch: row.try_get("epoch")?,
            outcome,
        })
    };
    TurnHistory, row => {
        let (request, summary): (Option<String>, _) = (row.try_get("request")?, row.try_get("summary")?);
        Ok(TurnHistory {
            id: row.try_get("id")?,
            status: row.try_get("status")?,
            history: row.try_get("turn")?,
            source: request.map(|request| (request, summary)),
        })
    };
    ConversationRow, row => Ok(ConversationRow {
        id: row.try_get("id")?,
        owner: row.try_get("owner")?,
        created: row.try_get("created")?,
        title: row.try_get("title")?,
        metadata: row.try_get("metadata")?,
    });
    DialogueRow, row => Ok(DialogueRow {
        id: row.try_get("id")?,
        owner: row.try_get("owner")?,
        created: row.try_get("created")?,
        changed: row.try_get("changed")?,
        script_id: row.try_get("script_id")?,
        version: narrow(row.try_get("version")?)?,
        session: row.try_get::<Option<String>, _>("session")?.unwrap_or_default(),
        script: row.try_get("script")?,
        status: row.try_get("status")?,
        state: row.try_get("state")?,
        origin: row.try_get::<Option<String>, _>("origin")?.unwrap_or_else(|| "{}".to_owned()),
    });
    Document, row => Ok(Document {
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        created: row.try_get("created")?,
        changed: row.try_get("changed")?,
        published: row.try_get::<Option<i64>, _>("published")?.map(narrow).transpose()?,
        latest: narrow(row.try_get("latest")?)?,
    });
    DocumentVersion, row => Ok(DocumentVersion {
        version: narrow(row.try_get("version")?)?,
        created: row.try_get("created")?,
        hash: row.try_get("hash")?,
        text: row.try_get("text")?,
    });
    StepFigures, row => {
        let count = |name: &str| row.try_get(name);
        Ok(StepFigures {
            time: row.try_get("time")?,
            upstream: row.try_get("upstream")?,
            counts: ReplyCounts {
                completed: count("completed")?,
                failed: count("failed")?,
                cancelled: count("cancelled")?,
                repaired: count("repaired")?,
                replaced: count("replaced")?,
                input_tokens: count("input_tokens")?,
                output_tokens: count("output_tokens")?,
                unpriced_tokens: count("unpriced_tokens")?,
                cost: count("cost")?,
            },
            first_text_times: FirstTextTimes::default(),
        })
    };
    ImportRow, row => {
        let size: i64 = row.try_get("size")?;
        Ok(ImportRow {
            id: row.try_get("id")?,
            name: row.try_get("name")?,
            file: row.try_get("file")?,
            version: row.try_get("version")?,
            entries: narrow(row.try_get("entries")?)?,
            created: row.try_get("created")?,
            size: u64::try_from(size).unwrap_or(0),
        })
    };
    KeyRow, row => Ok(KeyRow {
        id: row.try_get("id")?,
        owner: row.try_get("owner")?,
        name: row.try_get("name")?,
        hash: row.try_get("hash")?,
        is_admin: row.try_get("admin")?,
        created: row.try_get("created")?,
        limits: row.try_get("limits")?,
    });
    UsageRow, row => Ok(UsageRow {
        day: row.try_get("day")?,
        key: row.try_get("key")?,
        name: row.try_get("name")?,
        owner: row.try_get("owner")?,
        requests: row.try_get("requests")?,
        input_tokens: row.try_get("input_tokens")?,
        output_tokens: row.try_get("output_tokens")?,
    });
    ToolRow, row => Ok(ToolRow {
        owner: row.try_get("owner")?,
        name: row.try_get("name")?,
        created: row.try_get("created")?,
        changed: row.try_get("changed")?,
        definition: row.try_get("definition")?,
        secret: row.try_get("secret")?,
    });
    StoredResponse, row => Ok(StoredResponse {
        digest: row.try_get("digest")?,
        status: narrow(row.try_get("status")?)?,
        location: row.try_get("location")?,
        body: row.try_get("body")?,
        named_ids: Vec::new(),
    });
    StateUpdateRow, row => {
        let applied_json: String = row.try_get("applied")?;
        Ok(StateUpdateRow {
            position: row.try_get("position")?,
            id: row.try_get("id")?,
            message_number: row.try_get("place")?,
            is_in_base: row.try_get("passed")?,
            created: row.try_get("created")?,
            applied: serde_json::from_str(&applied_json).map_err(|error| sqlx::Error::Decode(error.into()))?,
        })
    };
}
