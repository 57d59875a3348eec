//! Turns of a dialogue: their list, forks that begin from one, coverage, and tests of scripts made of them.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use tambour::dialogue::script_test::{ScriptTest, TestEnv};
use tambour::dialogue::{Coverage, CoveredCall, Dialogue, Turn};
use tambour::script::load;

use super::dialogues::{listed, owned};
use super::keys::Caller;
use super::page::{self, Params};
use super::problem::{Problem, body};
use super::versions::{fits, owned as document, text};
use crate::app::App;
use crate::dialogues::{self, Fork, Origin, Prompts, TurnRecord};
use crate::ids;
use crate::store::DocumentKind::Script;
use crate::store::{CallRecord, DialogueRow};

/// Body of `POST /api/v1/dialogues/{id}/forks`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewFork {
    /// The turn to answer differently; what was said before it is shared.
    turn: String,
}

/// Body of `POST /api/v1/scripts/{id}/replay`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewReplay {
    /// The test, YAML or JSON.
    test: String,
    /// A version of the script; the published one when absent.
    #[serde(default)]
    version: Option<u32>,
}

/// `GET /api/v1/dialogues/{id}/turns`: inputs and what they came to, oldest first.
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Params(query): Params<page::Query>,
) -> Result<Json<Value>, Problem> {
    owned(&app, &caller, &id).await?;
    let turns = dialogues::turns(&app, &id).await?;
    let rows = turns.iter().map(|turn| (turn.turn.clone(), turn.shown()));
    query.of(rows.collect()).map(Json)
}

/// `POST /api/v1/dialogues/{id}/forks`: another dialogue that stands where this one stood before a turn.
pub(super) async fn fork(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    bytes: Bytes,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let new: NewFork = body(&bytes)?;
    let row = owned(&app, &caller, &id).await?;
    let turns = dialogues::turns(&app, &id).await?;
    let at = turns.iter().position(|turn| turn.turn == new.turn).ok_or_else(|| {
        Problem::not_found(format!("the dialogue `{id}` has no turn `{}`", new.turn)).with("field", "turn")
    })?;
    let state = turns[at].before.state(&row.state);
    let dialogue: Dialogue = serde_json::from_value(state.clone()).map_err(|_| Problem::internal())?;
    let origin: Origin = serde_json::from_str(&row.origin).unwrap_or_default();
    let forked_from = Some(Fork { dialogue_id: id.clone(), turn: new.turn });
    let now = ids::now();
    let fork = DialogueRow {
        id: ids::new("dlg"),
        created: now.clone(),
        changed: now,
        status: json!(dialogue.status()).as_str().unwrap_or_default().to_owned(),
        state: state.to_string(),
        origin: json!(Origin { forked_from, ..origin }).to_string(),
        ..row
    };
    let shared = &turns[..at];
    let is_shared = |call: &&Value| shared.iter().any(|turn| call["turn"] == turn.turn.as_str());
    let calls = dialogues::calls(&app, &id).await?;
    let mut records: Vec<CallRecord> =
        shared.iter().map(|turn| CallRecord::Turn(json!(turn).to_string())).collect();
    records.extend(calls.iter().filter(is_shared).map(|call| CallRecord::New(call.to_string())));
    app.store.insert_dialogue(&fork).await?;
    app.store.step_dialogue(&fork, &records).await?;
    let (script, _) = dialogues::machine(&app, &fork)?;
    let mut made = listed(&fork);
    made["position"] = json!(dialogue.position(&script));
    Ok((StatusCode::CREATED, Json(made)))
}

/// `GET /api/v1/dialogues/{id}/coverage`: which actions, branches, exits and rounds of its session it has reached.
pub(super) async fn coverage(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let row = owned(&app, &caller, &id).await?;
    covered(&app, &row).await.map(Json)
}

/// Coverage of the session of a dialogue.
pub(super) async fn covered(app: &App, row: &DialogueRow) -> Result<Value, Problem> {
    let (script, _) = dialogues::machine(app, row)?;
    let origin: Origin = serde_json::from_str(&row.origin).unwrap_or_default();
    let mut coverage = Coverage::new(&script, &row.session).ok_or_else(Problem::internal)?;
    let calls = dialogues::calls(app, &row.id).await?;
    let calls: Vec<CoveredCall> = calls.iter().filter_map(dialogues::covered).collect();
    let turns = dialogues::turns(app, &row.id).await?;
    let turns: Vec<Turn> = turns.into_iter().filter_map(|turn: TurnRecord| turn.result).collect();
    coverage.add(origin.start.as_deref(), &calls, &turns);
    Ok(json!(coverage))
}

/// `GET /api/v1/dialogues/{id}/test`: the run as a test of its script, for `tambour run --test`.
pub(super) async fn test(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let row = owned(&app, &caller, &id).await?;
    let origin: Origin = serde_json::from_str(&row.origin).unwrap_or_default();
    let turns = dialogues::turns(&app, &id).await?;
    let calls = dialogues::calls(&app, &id).await?;
    let mut test = dialogues::test(&origin, &row.session, &turns, &calls);
    test.script = Some("script.yaml".to_owned());
    test.language = Some(app.settings().texts().language);
    let kind = [(header::CONTENT_TYPE, "application/yaml")];
    Ok((kind, test.print()).into_response())
}

/// `POST /api/v1/scripts/{id}/replay`: runs a test against a version of the script, without a model.
pub(super) async fn replay(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    bytes: Bytes,
) -> Result<Json<Value>, Problem> {
    let new: NewReplay = body(&bytes)?;
    let script = document(&app, &caller.owner, Script, &id).await?;
    let version = text(&app, &caller.owner, Script, &script, new.version).await?;
    fits(&new.test, "test")?;
    let test = ScriptTest::parse("the test", &new.test)
        .map_err(|error| Problem::invalid("invalid_test", error.to_string()).with("field", "test"))?;
    let prompts = Prompts::of(&app, &caller.owner).await?;
    let (limits, language) = (app.loaded().config.limits.clone(), app.settings().texts().language);
    let (turns, number) = (test.turns.len(), version.version);
    let run = move || {
        let script = load(&version.text, &limits).script?;
        Some(test.run(&script, TestEnv { templates: &prompts, language }))
    };
    let differences = app.aside.run(&caller.owner, run).await?;
    let differences = differences.ok_or_else(|| {
        Problem::invalid("invalid_script", "the script cannot run any more").with("field", "version")
    })?;
    let differences = differences
        .map_err(|error| Problem::invalid("invalid_test", error.to_string()).with("field", "test"))?;
    let passed = differences.is_empty();
    Ok(Json(json!({ "version": number, "turns": turns, "passed": passed, "differences": differences })))
}
