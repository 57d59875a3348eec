//! State of a conversation: reading, history, changes by clients, schema and rollback. The operations in a
//! reply make one update of the state, named by its message; a request to `POST .../state/operations` makes a
//! route update.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::{Extension, Json};
use serde::de::{Error as _, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tambour::lex::weight::weigh;
use tambour::limits::StateLimits;
use tambour::state::{self, AppliedBlock, Operation, RefusalReason};

use super::conversations::find_owned;
use super::if_match::{self, ETagHeader, etag};
use super::keys::Caller;
use super::page;
use super::page::QueryParams;
use crate::base::cpu_pool::run_in_place;
use crate::base::problem::{Problem, parse_body};
use crate::http::app::App;
use crate::run::states::{self, ChangedState, lock_conversation};
use crate::store::{RowPage, StatePoint, StateRollback, StateUpdateRow, StateUpdates, is_route_update};

/// Maximum number of mismatches between state and schema that are reported.
const MAX_MISMATCHES: usize = 16;
/// Maximum length in bytes of the analysis, a note that explains the operations.
const MAX_ANALYSIS_BYTES: usize = 16 << 10;
/// Code of the notice about refused operations. Its text comes from the library's texts.
const REFUSED_NOTICE: &str = "state_update_partial_failure";

/// Body of `PUT /api/v1/conversations/{id}/state/schema`.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewStateSchema {
    /// JSON Schema that the state must satisfy after each operation; `null` removes it.
    #[schema(value_type = Option<Object>, required = true)]
    schema: Value,
}

/// Body of `POST /api/v1/conversations/{id}/state/operations`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewOperations {
    /// Operations in order, each `[OP, path, value]`; at most 10000 are applied.
    #[schema(value_type = Vec<Vec<Value>>)]
    operations: BoundedOperations,
    /// Reason, for the history; at most 16 KiB.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    analysis: String,
    /// Applies all operations or none.
    #[serde(default)]
    atomic: bool,
    /// Results included in the response.
    #[serde(default)]
    results: ShownResults,
}

/// Selection of the results in a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ShownResults {
    /// The first 50 and the last 50.
    #[default]
    Ends,
    /// All results.
    All,
}

/// Number of results shown at either end of a long list.
const SHOWN_ENDS: usize = 50;

/// Operations of a request. Holds those within the limit and one more, which is refused; all others are only
/// counted.
#[derive(Debug)]
struct BoundedOperations {
    operations: Vec<Operation>,
    /// Number of all operations of the request.
    count: usize,
}

impl<'de> Deserialize<'de> for BoundedOperations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<BoundedOperations, D::Error> {
        deserializer.deserialize_seq(OperationsVisitor)
    }
}

/// Suffix of the path of `POST .../state/operations`, whose operations are parsed one by one.
pub(super) const OPERATIONS_SUFFIX: &str = "/state/operations";
/// Maximum memory in bytes for the operations of a request, as `weigh` estimates it.
const MAX_OPERATION_MEMORY: usize = 16 << 20;

/// Parses one operation. A number that exceeds the range of a double makes only its operation invalid, not
/// the request.
fn parse_operation(text: &str) -> serde_json::Result<Operation> {
    let value = serde_json::from_str::<Value>(text).or_else(|error| match state::bound_numbers(text) {
        Cow::Owned(text) => serde_json::from_str(&text).map_err(|_| error),
        Cow::Borrowed(_) => Err(error),
    })?;
    Ok(Operation::from_value(&value))
}

struct OperationsVisitor;

impl<'de> Visitor<'de> for OperationsVisitor {
    type Value = BoundedOperations;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<BoundedOperations, A::Error> {
        let max_operations = StateLimits::default().operations + 1;
        let (mut operations, mut count) = (Vec::new(), 0);
        let mut weight = 0;
        while operations.len() < max_operations
            && let Some(text) = list.next_element::<&RawValue>()?
        {
            // Each operation is weighed before it is parsed: values take many times the bytes of their text.
            weight += weigh(text.get().as_bytes()).bytes;
            if weight > MAX_OPERATION_MEMORY {
                let refusal = format!(
                    "with operation {count} the list needs more than {MAX_OPERATION_MEMORY} bytes of memory; send fewer or smaller values at a time"
                );
                return Err(A::Error::custom(refusal));
            }
            operations.push(parse_operation(text.get()).map_err(A::Error::custom)?);
            count += 1;
        }
        while list.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        operations.shrink_to_fit();
        Ok(BoundedOperations { operations, count })
    }
}

/// Body of `POST /api/v1/conversations/{id}/state/rollback`.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rollback {
    /// Id of a message, or of an update made over HTTP; the state becomes the one after it. `null` for the
    /// initial state.
    #[schema(value_type = Option<String>, required = true)]
    to: Value,
}

/// Query of `GET .../state`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StateQuery {
    /// Id of a message or update: the state after it instead of the current one.
    at: Option<String>,
}

/// Query of `GET .../state/history`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryQuery {
    limit: Option<u32>,
    /// Position of the last update of the previous page.
    after: Option<String>,
    /// Id of a message or update: the difference begins with the state after it; with the initial state when
    /// absent.
    from: Option<String>,
    /// Id of a message or update: the difference ends with the state after it; with the current state when
    /// absent.
    to: Option<String>,
}

/// `GET /api/v1/conversations/{id}/state`: the state and its schema; the `ETag` is that of the current state.
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    QueryParams(query): QueryParams<StateQuery>,
) -> Result<(ETagHeader, Json<Value>), Problem> {
    find_owned(&app, &caller, &id).await?;
    let row = app.store.state(&id).await?.unwrap_or_default();
    let version = run_in_place(|| states::state_version(&row.state.to_string(), row.schema.as_deref()));
    let state = match &query.at {
        None => row.state,
        Some(at) => {
            let point = find_point(&app, &id, "at", at).await?;
            let updates = app.store.state_updates(&id).await?;
            rollback_result(
                app.cpu_pool.run(&caller.owner, move || updates.state_at(point.to_state_point())).await?,
                "at",
            )?
            .0
        }
    };
    let schema: Option<Value> = row.schema.as_deref().and_then(|text| serde_json::from_str(text).ok());
    Ok((etag(version), Json(json!({"conversation_id": id, "state": state, "schema": schema}))))
}

/// `GET /api/v1/conversations/{id}/state/history`: updates, oldest first; with `from` or `to` also a
/// difference.
pub(super) async fn history(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    QueryParams(query): QueryParams<HistoryQuery>,
) -> Result<Json<Value>, Problem> {
    find_owned(&app, &caller, &id).await?;
    let HistoryQuery { limit, after, from, to } = query;
    let limit = page::check_limit(limit)?;
    let after: i64 = match after.as_deref().map(str::parse) {
        None => 0,
        Some(Ok(after)) => after,
        Some(Err(_)) => {
            let detail = "`after` must be the `position` of an update";
            return Err(Problem::invalid("invalid_field", detail).with("field", "after"));
        }
    };
    let updates = app.store.state_updates(&id).await?;
    let later_updates = updates.rows.iter().filter(|row| row.position > after).collect();
    let mut answer = page::page_json(RowPage::from_rows(later_updates, limit), update_json);
    if from.is_some() || to.is_some() {
        let from = match &from {
            Some(from) => find_point(&app, &id, "from", from).await?,
            None => NamedPoint::Start,
        };
        let to = match &to {
            Some(to) => Some(find_point(&app, &id, "to", to).await?),
            None => None,
        };
        answer["diff"] =
            app.cpu_pool.run(&caller.owner, move || state_diff(&updates, &from, to.as_ref())).await??;
    }
    Ok(Json(answer))
}

/// Returns the difference between the states at two points.
fn state_diff(updates: &StateUpdates, from: &NamedPoint, to: Option<&NamedPoint>) -> Result<Value, Problem> {
    let before = rollback_result(updates.state_at(from.to_state_point()), "from")?.0;
    let after = match to {
        Some(to) => rollback_result(updates.state_at(to.to_state_point()), "to")?.0,
        None => updates.current_state(),
    };
    Ok(json!(state::diff(&before, &after)))
}

/// Describes an update. If a client made it through `POST .../state/operations`, it has an `update_id`; if a
/// message made it, a `message_id`.
fn update_json(row: &StateUpdateRow) -> Value {
    let AppliedBlock { analysis, operations, results, .. } = &row.applied;
    let is_route_change = is_route_update(&row.id);
    let mut json = json!({
        "position": row.position,
        "message_id": if is_route_change { Value::Null } else { row.id.as_str().into() },
        "created": row.created,
        "operations": operations,
        "results": results,
        "reversible": !row.is_in_base,
    });
    if is_route_change {
        json["update_id"] = row.id.as_str().into();
    }
    if let Some(analysis) = analysis {
        json["analysis"] = analysis.as_str().into();
    }
    json
}

/// `PUT /api/v1/conversations/{id}/state/schema`: sets or removes the schema. The current state need not
/// satisfy it; mismatches are reported.
pub(super) async fn put_schema(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Result<(ETagHeader, Json<Value>), Problem> {
    let NewStateSchema { schema } = parse_body(&bytes)?;
    let based_on = if_match::base_version(&headers)?;
    find_owned(&app, &caller, &id).await?;
    let compiled_schema = match &schema {
        Value::Null => None,
        schema => Some(
            app.schemas
                .get((&app.cpu_pool, &caller.owner), schema, &app.loaded_config().config.tools)
                .await?,
        ),
    };
    let _guard = lock_conversation(&app, &id).await?;
    let text = (!schema.is_null()).then(|| schema.to_string());
    let row = app.store.state(&id).await?.unwrap_or_default();
    states::check_version(&row, based_on)?;
    if !app.store.put_state_schema(&id, text.as_deref()).await? {
        return Err(missing_conversation(&id));
    }
    let version = run_in_place(|| states::state_version(&row.state.to_string(), text.as_deref()));
    let mut mismatches = Vec::new();
    if let Some(compiled_schema) = compiled_schema {
        mismatches = app
            .cpu_pool
            .run(&caller.owner, move || compiled_schema.check(&row.state, MAX_MISMATCHES))
            .await?;
    }
    let mismatches: Vec<Value> = mismatches
        .into_iter()
        .map(|mismatch| json!({"pointer": mismatch.pointer, "message": mismatch.message}))
        .collect();
    Ok((etag(version), Json(json!({"schema": schema, "mismatches": mismatches}))))
}

/// `POST /api/v1/conversations/{id}/state/operations`: applies operations of the client to the state.
pub(super) async fn apply_operations(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Result<(ETagHeader, Json<Value>), Problem> {
    let based_on = if_match::base_version(&headers)?;
    let NewOperations { operations, analysis, atomic, results: shown_results } = parse_body(&bytes)?;
    let BoundedOperations { operations: bounded_operations, count } = operations;
    // Frees the body, which may be long and is no longer needed.
    drop(bytes);
    find_owned(&app, &caller, &id).await?;
    if analysis.len() > MAX_ANALYSIS_BYTES {
        let detail = "`analysis` must have at most 16 KiB";
        return Err(Problem::invalid("invalid_field", detail).with("field", "analysis"));
    }
    let change =
        states::change_state(&app, (&caller.owner, &id), bounded_operations, analysis, atomic, based_on);
    let ChangedState { update, applied, state, version } = change.await?;
    // A notice for each refused operation (F-113), and one for all that were only counted.
    let refused_operations = state::describe_refusals(&applied.operations, Some(&applied.results));
    let message = app.settings().texts().notice_text(REFUSED_NOTICE).to_owned();
    let result_count = applied.results.len();
    let limit_refusal = (count > result_count)
        .then(|| format!("{result_count} to {}: {}", count - 1, RefusalReason::LimitExceeded));
    let refusals = refused_operations.into_iter().chain(limit_refusal);
    let notices: Vec<Value> =
        refusals.map(|refusal| json!({"code": REFUSED_NOTICE, "message": message, "ref": refusal})).collect();
    let mut results = applied.results;
    let applied_count = results.iter().filter(|result| result.ok).count();
    if shown_results == ShownResults::Ends && result_count > 2 * SHOWN_ENDS {
        results.drain(SHOWN_ENDS..result_count - SHOWN_ENDS);
    }
    let counts = json!({
        "operations": count,
        "applied": applied_count,
        "refused": count - applied_count,
        "left_out": count - results.len(),
    });
    let mut answer =
        json!({"update_id": update, "results": results, "counts": counts, "notices": notices, "state": null});
    // Moved instead of copied, since it may be large.
    answer["state"] = state;
    Ok((etag(version), Json(answer)))
}

/// `POST /api/v1/conversations/{id}/state/rollback`: undoes the updates after a point.
pub(super) async fn rollback(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Result<(ETagHeader, Json<Value>), Problem> {
    let based_on = if_match::base_version(&headers)?.map(str::to_owned);
    let Rollback { to } = parse_body(&bytes)?;
    find_owned(&app, &caller, &id).await?;
    let task_app = app.clone();
    app.run_to_completion(async move {
        let _guard = lock_conversation(&task_app, &id).await?;
        let row = task_app.store.state(&id).await?.unwrap_or_default();
        states::check_version(&row, based_on.as_deref())?;
        let point = match &to {
            Value::Null => NamedPoint::Start,
            Value::String(to) => find_point(&task_app, &id, "to", to).await?,
            _ => {
                let detail = "`to` must be the id of a message or of an update, or null";
                return Err(Problem::invalid("invalid_field", detail).with("field", "to"));
            }
        };
        let (state, undone) =
            rollback_result(task_app.store.roll_state_back(&id, point.to_state_point()).await?, "to")?;
        let version = run_in_place(|| states::state_version(&state.to_string(), row.schema.as_deref()));
        Ok((etag(version), Json(json!({"taken_back": undone, "state": state}))))
    })
    .await
}

/// Point in the history, as named by a client.
enum NamedPoint {
    /// Before the first update.
    Start,
    /// After the route update with this id.
    Update(String),
    /// After the message with this id and number.
    Message(String, i64),
}

impl NamedPoint {
    fn to_state_point(&self) -> StatePoint<'_> {
        match self {
            NamedPoint::Start => StatePoint::Start,
            NamedPoint::Update(id) => StatePoint::Update(id),
            NamedPoint::Message(id, number) => StatePoint::After(id, *number),
        }
    }
}

/// Returns the point after the message or update with this id. The id was in the field `field` of the
/// request.
async fn find_point(
    app: &App,
    conversation: &str,
    field: &'static str,
    id: &str,
) -> Result<NamedPoint, Problem> {
    if is_route_update(id) {
        return Ok(NamedPoint::Update(id.to_owned()));
    }
    match app.store.message_number(conversation, id).await? {
        Some(number) => Ok(NamedPoint::Message(id.to_owned(), number)),
        None => Err(unknown_point(field)),
    }
}

/// Problem: the id in `field` names no point of the history.
fn unknown_point(field: &'static str) -> Problem {
    let detail = format!("`{field}` names neither a message of the conversation nor an update of its state");
    Problem::not_found(detail).with("field", field)
}

/// Converts the result of a rollback, or of computing an earlier state, to that state and the number of
/// updates undone. The field `field` of the request named the point.
fn rollback_result(rollback: StateRollback, field: &'static str) -> Result<(Value, usize), Problem> {
    match rollback {
        StateRollback::Done(state, count) => Ok((state, count)),
        StateRollback::Unknown => Err(unknown_point(field)),
        StateRollback::Gone => {
            let detail =
                "the state at that point is gone, because a message was deleted or too many changes followed";
            Err(Problem::conflict("state_gone", detail).with("field", field))
        }
    }
}

/// Problem: the conversation was deleted meanwhile.
fn missing_conversation(id: &str) -> Problem {
    Problem::not_found(format!("there is no conversation `{id}`"))
}
