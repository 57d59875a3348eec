//! The state of a conversation: what it is, what was applied to it, changes by clients, its schema, and the way back.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tambour::state::{self, Applied, Operation};

use super::conversations::owned;
use super::keys::Caller;
use super::page;
use super::page::Params;
use super::problem::{Problem, body};
use crate::app::App;
use crate::states::{self, Changed, settled, turn};
use crate::store::{Back, StateChange, StateUpdates, UpdateRow, is_own_update};

/// Ways in which a state does not fit its schema that are told.
const MISMATCHES: usize = 16;
/// Bytes of the words that go with operations.
const ANALYSIS: usize = 16 << 10;
/// Notices are texts of the library.
const REFUSED: &str = "state_update_partial_failure";

/// What is asked of `PUT /api/v1/conversations/{id}/state/schema`.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewStateSchema {
    /// JSON Schema that the state must satisfy after each operation; `null` takes it away.
    #[schema(value_type = Option<Object>, required = true)]
    schema: Value,
}

/// What is asked of `POST /api/v1/conversations/{id}/state/operations`.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewOperations {
    /// Operations in order, each `[OP, path, value]`.
    #[schema(value_type = Vec<Vec<Value>>)]
    operations: Vec<Value>,
    /// Why, for the history; at most 16 KiB.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    analysis: String,
    /// All of them or none.
    #[serde(default)]
    atomic: bool,
}

/// What is asked of `POST /api/v1/conversations/{id}/state/rollback`.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rollback {
    /// The message after which the state is as it will be, or the update that came by the route; `null` for the beginning.
    #[schema(value_type = Option<String>, required = true)]
    to: Value,
}

/// Query of `GET .../state`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct At {
    at: Option<String>,
}

/// Query of `GET .../state/history`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Between {
    limit: Option<u32>,
    after: Option<String>,
    from: Option<String>,
    to: Option<String>,
}

/// `GET /api/v1/conversations/{id}/state`
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Params(query): Params<At>,
) -> Result<Json<Value>, Problem> {
    owned(&app, &caller, &id).await?;
    settled(&app, &id).await?;
    let row = app.store.state(&id).await?.unwrap_or_default();
    let state = match &query.at {
        None => row.state,
        Some(at) => {
            let point = point(&app, &id, "at", at).await?;
            let updates = app.store.state_updates(&id).await?;
            told(app.aside.run(move || updates.at(point.back())).await?, "at")?.0
        }
    };
    let schema: Option<Value> = row.schema.as_deref().and_then(|text| serde_json::from_str(text).ok());
    Ok(Json(json!({"conversation_id": id, "state": state, "schema": schema})))
}

/// `GET /api/v1/conversations/{id}/state/history`
pub(super) async fn history(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Params(query): Params<Between>,
) -> Result<Json<Value>, Problem> {
    owned(&app, &caller, &id).await?;
    settled(&app, &id).await?;
    let Between { limit, after, from, to } = query;
    let limit = usize::try_from(page::checked(limit)?).unwrap_or(usize::MAX);
    let after: i64 = match after.as_deref().map(str::parse) {
        None => 0,
        Some(Ok(after)) => after,
        Some(Err(_)) => {
            let detail = "`after` is the `position` of an update";
            return Err(Problem::invalid("invalid_field", detail).with("field", "after"));
        }
    };
    let updates = app.store.state_updates(&id).await?;
    let mut later = updates.rows.iter().filter(|row| row.position > after);
    let data: Vec<Value> = later.by_ref().take(limit).map(listed).collect();
    let mut answer = page::answer(&data, later.next().is_some());
    if from.is_some() || to.is_some() {
        let from = match &from {
            Some(from) => point(&app, &id, "from", from).await?,
            None => Point::Start,
        };
        let to = match &to {
            Some(to) => Some(point(&app, &id, "to", to).await?),
            None => None,
        };
        answer["diff"] = app.aside.run(move || differences(&updates, &from, to.as_ref())).await??;
    }
    Ok(Json(answer))
}

fn differences(updates: &StateUpdates, from: &Point, to: Option<&Point>) -> Result<Value, Problem> {
    let before = told(updates.at(from.back()), "from")?.0;
    let after = match to {
        Some(to) => told(updates.at(to.back()), "to")?.0,
        None => updates.now(),
    };
    Ok(json!(state::diff(&before, &after)))
}

fn listed(row: &UpdateRow) -> Value {
    let Applied { analysis, operations, results, .. } = &row.applied;
    let own = is_own_update(&row.id);
    let mut shown = json!({
        "position": row.position,
        "message_id": if own { Value::Null } else { row.id.as_str().into() },
        "created": row.created,
        "operations": operations,
        "results": results,
        "reversible": !row.passed,
    });
    if own {
        shown["update_id"] = row.id.as_str().into();
    }
    if let Some(analysis) = analysis {
        shown["analysis"] = analysis.as_str().into();
    }
    shown
}

/// `PUT /api/v1/conversations/{id}/state/schema`
pub(super) async fn schema(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    bytes: Bytes,
) -> Result<Json<Value>, Problem> {
    let NewStateSchema { schema } = body(&bytes)?;
    owned(&app, &caller, &id).await?;
    let compiled = match &schema {
        Value::Null => None,
        schema => Some(app.schemas.get(&app.aside, schema, &app.loaded().config.tools).await?),
    };
    let _turn = turn(&app, &id).await?;
    let text = (!schema.is_null()).then(|| schema.to_string());
    if !app.store.put_state_schema(&id, text.as_deref()).await? {
        return Err(no_conversation(&id));
    }
    let mut mismatches = Vec::new();
    if let Some(compiled) = compiled {
        let state = app.store.state(&id).await?.unwrap_or_default().state;
        mismatches = app.aside.run(move || compiled.check(&state, MISMATCHES)).await?;
    }
    let mismatches: Vec<Value> = mismatches
        .into_iter()
        .map(|mismatch| json!({"pointer": mismatch.pointer, "message": mismatch.message}))
        .collect();
    Ok(Json(json!({"schema": schema, "mismatches": mismatches})))
}

/// `POST /api/v1/conversations/{id}/state/operations`
pub(super) async fn operations(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    bytes: Bytes,
) -> Result<Json<Value>, Problem> {
    let NewOperations { operations, analysis, atomic } = body(&bytes)?;
    owned(&app, &caller, &id).await?;
    if analysis.len() > ANALYSIS {
        let detail = "`analysis` has at most 16 KiB";
        return Err(Problem::invalid("invalid_field", detail).with("field", "analysis"));
    }
    let operations = operations.iter().map(Operation::from_value).collect();
    let Changed { update, applied, state } = states::change(&app, &id, operations, analysis, atomic).await?;
    // F-113
    let refused = state::refused(&applied.operations, Some(&applied.results));
    let message = app.settings().texts().notice(REFUSED).to_owned();
    let notices: Vec<Value> =
        refused.into_iter().map(|about| json!({"code": REFUSED, "message": message, "ref": about})).collect();
    Ok(Json(json!({"update_id": update, "results": applied.results, "notices": notices, "state": state})))
}

/// `POST /api/v1/conversations/{id}/state/rollback`
pub(super) async fn rollback(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    bytes: Bytes,
) -> Result<Json<Value>, Problem> {
    let Rollback { to } = body(&bytes)?;
    owned(&app, &caller, &id).await?;
    let work = app.clone();
    app.undisturbed(async move {
        let _turn = turn(&work, &id).await?;
        let point = match &to {
            Value::Null => Point::Start,
            Value::String(to) => point(&work, &id, "to", to).await?,
            _ => {
                let detail = "`to` is the id of a message or of an update, or null";
                return Err(Problem::invalid("invalid_field", detail).with("field", "to"));
            }
        };
        let (state, taken_back) = told(work.store.roll_state_back(&id, point.back()).await?, "to")?;
        Ok(Json(json!({"taken_back": taken_back, "state": state})))
    })
    .await
}

/// A point in the history, as a client names it.
enum Point {
    Start,
    Update(String),
    After(String, i64),
}

impl Point {
    fn back(&self) -> Back<'_> {
        match self {
            Point::Start => Back::Start,
            Point::Update(id) => Back::Update(id),
            Point::After(id, number) => Back::After(id, *number),
        }
    }
}

/// The point of that id: a message of the conversation, or an update that came by the route.
async fn point(app: &App, conversation: &str, field: &'static str, id: &str) -> Result<Point, Problem> {
    if is_own_update(id) {
        return Ok(Point::Update(id.to_owned()));
    }
    match app.store.message_number(conversation, id).await? {
        Some(number) => Ok(Point::After(id.to_owned(), number)),
        None => Err(unknown(field)),
    }
}

fn unknown(field: &'static str) -> Problem {
    let detail = format!("`{field}` names no message of the conversation, and no update of its state");
    Problem::not_found(detail).with("field", field)
}

/// The state at a point, and how many updates were taken back.
fn told(change: StateChange, field: &'static str) -> Result<(Value, usize), Problem> {
    match change {
        StateChange::Done(state, count) => Ok((state, count)),
        StateChange::Unknown => Err(unknown(field)),
        StateChange::Gone => {
            let detail =
                "the state of that time is gone, since a message was deleted or too much came after it";
            Err(Problem::conflict("state_gone", detail).with("field", field))
        }
    }
}

fn no_conversation(id: &str) -> Problem {
    Problem::not_found(format!("there is no conversation `{id}`"))
}
