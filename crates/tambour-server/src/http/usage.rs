//! Usage of each key on each day: `GET /api/v1/usage`.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};

use super::keys::Caller;
use super::page;
use super::page::QueryParams;
use crate::base::problem::Problem;
use crate::http::app::App;
use crate::store::{RowPage, UsageRow};

/// Query of `GET /api/v1/usage`: a range of days, and the page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UsageQuery {
    /// First day; from the beginning when absent.
    from: Option<String>,
    /// Last day; up to now when absent.
    to: Option<String>,
    limit: Option<u32>,
    /// Id of the last row of the previous page, `DAY/KEY`.
    after: Option<String>,
}

/// `GET /api/v1/usage`: usage of all keys for an admin, otherwise of the keys of the caller's owner.
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    QueryParams(query): QueryParams<UsageQuery>,
) -> Result<Json<Value>, Problem> {
    for (name, day) in [("from", &query.from), ("to", &query.to)] {
        // Ten characters: `jiff` reads other notations too.
        if day.as_ref().is_some_and(|day| day.parse::<jiff::civil::Date>().is_err() || day.len() != 10) {
            let detail = format!("`{name}` must be a day such as 2026-01-31");
            return Err(Problem::invalid("invalid_field", detail).with("field", name));
        }
    }
    let after = match query.after.as_deref() {
        None => None,
        Some(after) => Some(after.split_once('/').ok_or_else(|| {
            Problem::invalid("invalid_field", "`after` must be the `id` of a row").with("field", "after")
        })?),
    };
    let limit = page::check_limit(query.limit)?;
    let owner = (!caller.is_admin).then_some(caller.owner.as_str());
    // Days are compared as texts: the defaults are before and after every day.
    let days = (query.from.as_deref().unwrap_or(""), query.to.as_deref().unwrap_or("9999-99-99"));
    let page = RowPage::from_rows(app.store.usage(owner, days, after, limit + 1).await?, limit);
    let usage_json = |row: UsageRow| {
        json!({
            "id": format!("{}/{}", row.day, row.key), "day": row.day, "key_id": row.key, "name": row.name,
            "owner": row.owner, "requests": row.requests, "input_tokens": row.input_tokens,
            "output_tokens": row.output_tokens, "total_tokens": row.input_tokens.saturating_add(row.output_tokens),
        })
    };
    Ok(Json(page::page_json(page, usage_json)))
}
