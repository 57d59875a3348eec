//! Listings: `limit` and `after`, answered with `data` and `has_more`, from all rows or from a page of the store.

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::base::problem::Problem;
use crate::store::RowPage;

/// Default rows of a page.
const DEFAULT_LIMIT: u32 = 50;
/// Most rows of a page.
const MAX_LIMIT: u32 = 200;

/// Query of a listing.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PageQuery {
    limit: Option<u32>,
    after: Option<String>,
}

impl PageQuery {
    /// Returns the number of rows to list.
    pub(super) fn limit(&self) -> Result<u32, Problem> {
        check_limit(self.limit)
    }

    /// Returns the id after which the page begins.
    pub(super) fn after(&self) -> Option<&str> {
        self.after.as_deref()
    }

    /// Returns a page of `rows`, each with its id.
    pub(super) fn page_of(&self, rows: Vec<(String, Value)>) -> Result<Value, Problem> {
        let from = match self.after() {
            Some(after) => {
                rows.iter().position(|(id, _)| id == after).ok_or_else(|| unknown_cursor(after))? + 1
            }
            None => 0,
        };
        let rows = rows.into_iter().skip(from).map(|(_, row)| row).collect();
        Ok(page_json(RowPage::from_rows(rows, self.limit()?), |row| row))
    }
}

/// Problem: no row has the id in `after`, so the start of the page is unknown.
pub(super) fn unknown_cursor(after: &str) -> Problem {
    let detail = format!(
        "no row of the list has the id `{}`; list from the beginning",
        after.chars().take(64).collect::<String>()
    );
    Problem::new(StatusCode::BAD_REQUEST, "unknown_cursor", detail).with("field", "after")
}

/// Query of a request. Unknown fields are refused by name, like those of a body.
pub(super) struct QueryParams<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryParams<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<QueryParams<T>, Problem> {
        match axum::extract::Query::try_from_uri(&parts.uri) {
            Ok(axum::extract::Query(query)) => Ok(QueryParams(query)),
            Err(error) => {
                let error_text = error.body_text();
                let error_text =
                    error_text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&error_text);
                Err(query_problem(error_text))
            }
        }
    }
}

/// Converts a query error to a problem, which names the field where the value is wrong.
fn query_problem(error_text: &str) -> Problem {
    if let Some((_, rest)) = error_text.split_once("unknown field `") {
        let field = rest.split('`').next().unwrap_or_default().to_owned();
        return Problem::invalid("unknown_field", format!("unknown field `{rest}")).with("field", field);
    }
    match error_text.split_once(": ") {
        Some((field, reason)) if !field.contains(' ') => {
            let number = ["digit", "too large", "too small"].iter().any(|marker| reason.contains(marker));
            let reason = if number { "must be a whole number from 0 to 4294967295" } else { reason };
            Problem::invalid("invalid_field", format!("`{field}`: {reason}")).with("field", field)
        }
        _ => Problem::invalid("invalid_field", error_text),
    }
}

/// Checks the number of rows to list.
pub(super) fn check_limit(limit: Option<u32>) -> Result<u32, Problem> {
    match limit.unwrap_or(DEFAULT_LIMIT) {
        limit @ 1..=MAX_LIMIT => Ok(limit),
        limit => {
            let detail = format!("`limit` must be 1 to {MAX_LIMIT}, not {limit}");
            Err(Problem::invalid("invalid_field", detail).with("field", "limit"))
        }
    }
}

/// Returns the body of a page.
pub(super) fn page_json<T>(page: RowPage<T>, row_json: impl FnMut(T) -> Value) -> Value {
    let data: Vec<Value> = page.rows.into_iter().map(row_json).collect();
    json!({"data": data, "has_more": page.has_more})
}

#[cfg(test)]
mod tests {
    use super::{DEFAULT_LIMIT, MAX_LIMIT};

    #[test]
    fn the_description_has_the_limits_of_pages() {
        let description = crate::http::openapi::description();
        let limits = format!(", 1 to {MAX_LIMIT}; {DEFAULT_LIMIT} if absent");
        let paths = description["paths"].as_object().expect("paths").iter();
        let own_paths = paths.filter(|(path, _)| path.starts_with("/api/v1/"));
        let parameters = own_paths.flat_map(|(_, methods)| methods["get"]["parameters"].as_array());
        let mut described = 0;
        for parameter in parameters.flatten().filter(|parameter| parameter["name"] == "limit") {
            let text = parameter["description"].as_str().unwrap_or_default();
            assert!(text.ends_with(&limits), "{text}");
            described += 1;
        }
        assert!(described > 5, "{described}");
    }
}
