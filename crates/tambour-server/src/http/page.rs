//! Pages of listings (`limit` and `after` in the query, `data` and `has_more` in the response), and the
//! extractor of query parameters.

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::base::problem::Problem;
use crate::store::RowPage;

/// Maximum number of rows of a page when the query sets none.
const DEFAULT_LIMIT: u32 = 50;
/// Highest `limit` that a query may set.
const MAX_LIMIT: u32 = 200;

/// Query of a listing.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PageQuery {
    /// Maximum number of rows of the page.
    limit: Option<u32>,
    /// Id of the last row of the previous page.
    after: Option<String>,
}

impl PageQuery {
    /// Returns the maximum number of rows of the page.
    pub(super) fn limit(&self) -> Result<u32, Problem> {
        check_limit(self.limit)
    }

    /// Returns the id after which the page begins.
    pub(super) fn after(&self) -> Option<&str> {
        self.after.as_deref()
    }

    /// Returns the page that the query asks for. `rows` are all rows of the listing, each with its id.
    pub(super) fn page_of(&self, rows: Vec<(String, Value)>) -> Result<Value, Problem> {
        let first_index = match self.after() {
            Some(after) => {
                rows.iter().position(|(id, _)| id == after).ok_or_else(|| unknown_cursor(after))? + 1
            }
            None => 0,
        };
        let rows = rows.into_iter().skip(first_index).map(|(_, row)| row).collect();
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

/// Extractor of a request's query. If `T` denies unknown fields, they are refused by name, like those of a
/// body.
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

/// Converts the text of a query error to a problem, which names the field if the text does.
fn query_problem(error_text: &str) -> Problem {
    if let Some((_, text_from_name)) = error_text.split_once("unknown field `") {
        let field = text_from_name.split('`').next().unwrap_or_default().to_owned();
        let detail = format!("unknown field `{text_from_name}");
        return Problem::invalid("unknown_field", detail).with("field", field);
    }
    match error_text.split_once(": ") {
        Some((field, reason)) if !field.contains(' ') => {
            // Words of the standard library's errors about numbers.
            let is_number_error =
                ["digit", "too large", "too small"].iter().any(|marker| reason.contains(marker));
            let reason = if is_number_error { "must be a whole number from 0 to 4294967295" } else { reason };
            Problem::invalid("invalid_field", format!("`{field}`: {reason}")).with("field", field)
        }
        _ => Problem::invalid("invalid_field", error_text),
    }
}

/// Returns the maximum number of rows of a page: `limit` if it is present and allowed, or the default.
pub(super) fn check_limit(limit: Option<u32>) -> Result<u32, Problem> {
    match limit.unwrap_or(DEFAULT_LIMIT) {
        limit @ 1..=MAX_LIMIT => Ok(limit),
        limit => {
            let detail = format!("`limit` must be 1 to {MAX_LIMIT}, not {limit}");
            Err(Problem::invalid("invalid_field", detail).with("field", "limit"))
        }
    }
}

/// Returns a page as JSON.
pub(super) fn page_json<T>(page: RowPage<T>, row_json: impl FnMut(T) -> Value) -> Value {
    let rows: Vec<Value> = page.rows.into_iter().map(row_json).collect();
    json!({"data": rows, "has_more": page.has_more})
}

#[cfg(test)]
mod tests {
    use super::{DEFAULT_LIMIT, MAX_LIMIT};

    #[test]
    fn the_openapi_description_states_the_limits_of_pages() {
        let description = crate::http::openapi::description();
        let limits = format!(", 1 to {MAX_LIMIT}; {DEFAULT_LIMIT} if absent");
        let paths = description["paths"].as_object().expect("paths").iter();
        let own_paths = paths.filter(|(path, _)| path.starts_with("/api/v1/"));
        let parameters = own_paths.flat_map(|(_, methods)| methods["get"]["parameters"].as_array());
        let mut described_count = 0;
        for parameter in parameters.flatten().filter(|parameter| parameter["name"] == "limit") {
            let text = parameter["description"].as_str().unwrap_or_default();
            assert!(text.ends_with(&limits), "{text}");
            described_count += 1;
        }
        assert!(described_count > 5, "{described_count}");
    }
}
