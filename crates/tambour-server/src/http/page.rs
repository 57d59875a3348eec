//! Listings: `limit` and `after`, answered by `data` and `has_more`.

use serde::Deserialize;
use serde_json::{Value, json};

use super::problem::Problem;

/// Rows of a page when the client does not say.
const USUAL: u32 = 50;
/// Rows of a page at most.
const MOST: u32 = 200;

/// Query of a listing.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Query {
    limit: Option<u32>,
    after: Option<String>,
}

impl Query {
    /// How many rows are asked for.
    pub(super) fn limit(&self) -> Result<u32, Problem> {
        checked(self.limit)
    }

    /// Id of the row that the page follows.
    pub(super) fn after(&self) -> Option<&str> {
        self.after.as_deref()
    }

    /// A page of rows that are all there, each with its id.
    pub(super) fn of(&self, rows: Vec<(String, Value)>) -> Result<Value, Problem> {
        let from = match self.after() {
            Some(after) => rows.iter().position(|(id, _)| id == after).map_or(rows.len(), |at| at + 1),
            None => 0,
        };
        let limit = self.limit()? as usize;
        let more = rows.len() > from + limit;
        let data: Vec<Value> = rows.into_iter().skip(from).take(limit).map(|(_, row)| row).collect();
        Ok(answer(&data, more))
    }
}

/// How many rows are asked for, if that is said.
pub(super) fn checked(limit: Option<u32>) -> Result<u32, Problem> {
    match limit.unwrap_or(USUAL) {
        limit @ 1..=MOST => Ok(limit),
        limit => {
            let detail = format!("`limit` is 1 to {MOST}, not {limit}");
            Err(Problem::invalid("invalid_field", detail).with("field", "limit"))
        }
    }
}

/// The body of a page.
pub(super) fn answer(data: &[Value], more: bool) -> Value {
    json!({"data": data, "has_more": more})
}
