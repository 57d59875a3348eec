//! Turns of a dialogue: listing, forks and coverage; also script tests, which are built from turns and
//! replayed.

use std::ops::ControlFlow;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use tambour_prompt::dialogue::script_test::{ScriptTest, TestEnv};
use tambour_prompt::dialogue::{Coverage, Dialogue};
use tambour_prompt::script::load;

use super::dialogues::{dialogue_json, find_owned};
use super::keys::Caller;
use super::page::{self, QueryParams};
use super::versions::{check_length, find_owned as find_document, load_version};
use crate::base::ids;
use crate::base::problem::{Problem, parse_body};
use crate::http::app::App;
use crate::run::dialogues::{self, DialogueOrigin, ForkOrigin, OwnerTemplates, TurnRecord};
use crate::run::skeins;
use crate::store::DocumentKind::Script;
use crate::store::{DialogueRow, RowPage};

/// Maximum number of turns of a test that the server runs, since each turn renders a prompt.
const MAX_TEST_TURNS: usize = 500;
/// Maximum length in bytes of a script's name within a file name; a longer name is cut.
const MAX_FILE_NAME_BYTES: usize = 200;

/// Body of `POST /api/v1/dialogues/{id}/forks`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewFork {
    /// Id of the turn to answer differently; everything before it is shared.
    turn: String,
}

/// Body of `POST /api/v1/scripts/{id}/replay`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewReplay {
    /// Test, as YAML or JSON.
    test: String,
    /// Version of the script; when absent the published one, or the latest if none is published.
    #[serde(default)]
    version: Option<u32>,
}

/// `GET /api/v1/dialogues/{id}/turns`: inputs and results, oldest first.
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    QueryParams(query): QueryParams<page::PageQuery>,
) -> Result<Json<Value>, Problem> {
    find_owned(&app, &caller, &id).await?;
    let (limit, after) = (query.limit()?, query.after());
    let (mut is_after_cursor, mut rows) = (after.is_none(), Vec::new());
    let collect = |_, turn: TurnRecord| {
        if is_after_cursor {
            rows.push(turn.to_client_json());
        } else {
            is_after_cursor = after == Some(turn.turn.as_str());
        }
        // One row is read beyond the page, to learn whether more rows follow.
        if rows.len() > limit as usize { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    dialogues::for_each_turn(&app, &id, collect).await?;
    if let Some(after) = after.filter(|_| !is_after_cursor) {
        return Err(page::unknown_cursor(after));
    }
    Ok(Json(page::page_json(RowPage::from_rows(rows, limit), |row| row)))
}

/// `POST /api/v1/dialogues/{id}/forks`: creates another dialogue in the state before a turn of this one.
pub(super) async fn fork(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    bytes: Bytes,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let new_fork: NewFork = parse_body(&bytes)?;
    let row = find_owned(&app, &caller, &id).await?;
    let mut found_turn = None;
    let find_turn = |number, turn: TurnRecord| {
        if turn.turn != new_fork.turn {
            return ControlFlow::Continue(());
        }
        // `before` is the dialogue as it was before the turn.
        found_turn = Some((number, turn.before));
        ControlFlow::Break(())
    };
    dialogues::for_each_turn(&app, &id, find_turn).await?;
    let (number, snapshot_before) = found_turn.ok_or_else(|| {
        Problem::not_found(format!("the dialogue `{id}` has no turn `{}`", new_fork.turn))
            .with("field", "turn")
    })?;
    let state = snapshot_before.restore(&row.state);
    let dialogue: Dialogue = serde_json::from_value(state.clone()).map_err(|_| Problem::internal())?;
    let origin = DialogueOrigin::from_row(&row);
    let forked_from = Some(ForkOrigin { dialogue_id: id.clone(), turn: new_fork.turn });
    let now = ids::now();
    let fork = DialogueRow {
        id: ids::new_id("dlg"),
        created: now.clone(),
        changed: now,
        status: json!(dialogue.status()).as_str().unwrap_or_default().to_owned(),
        state: state.to_string(),
        origin: json!(DialogueOrigin { forked_from, ..origin }).to_string(),
        ..row
    };
    app.store.fork_dialogue(&fork, &id, number).await?;
    let (script, _) = dialogues::load_machine(&app, &fork)?;
    let mut response = dialogue_json(&fork);
    response["position"] = json!(dialogue.position(&script));
    Ok((StatusCode::CREATED, Json(response)))
}

/// `GET /api/v1/dialogues/{id}/coverage`: actions, branches, exits and rounds that the dialogue has reached.
pub(super) async fn coverage(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let row = find_owned(&app, &caller, &id).await?;
    coverage_of(&app, &row).await.map(Json)
}

/// Returns the coverage of a dialogue's session: the actions, branches, exits and rounds that it has reached.
pub(super) async fn coverage_of(app: &App, row: &DialogueRow) -> Result<Value, Problem> {
    let (script, _) = dialogues::load_machine(app, row)?;
    let mut coverage = Coverage::new(&script, &row.session).ok_or_else(Problem::internal)?;
    dialogues::add_coverage(app, row, &mut coverage).await?;
    Ok(json!(coverage))
}

/// `GET /api/v1/dialogues/{id}/test`: the dialogue as a test of its script, for `tambour run --test`.
pub(super) async fn test(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let row = find_owned(&app, &caller, &id).await?;
    let mut test = dialogues::build_script_test(&app, &row).await?;
    if test.turns.is_empty() {
        let detail = "the dialogue has no turn yet, and a test without a turn cannot fail";
        return Err(Problem::conflict("no_turns", detail));
    }
    let script = app.store.document((&row.owner, Script), &row.script_id).await?;
    test.script = Some(file_name(script.as_ref().map_or("", |script| script.name.as_str())));
    test.language = Some(app.settings().texts().language);
    let headers = [(header::CONTENT_TYPE, "application/yaml")];
    Ok((headers, test.print()).into_response())
}

/// Converts the name of a script to a file name that every file system accepts.
fn file_name(name: &str) -> String {
    let is_forbidden = |c: char| c.is_control() || "/\\:*?\"<>|".contains(c);
    let name = name.trim().replace(is_forbidden, "-");
    let name = &name[..name.floor_char_boundary(MAX_FILE_NAME_BYTES)];
    match name.trim_matches('.') {
        // An empty text, `.` and `..` are not allowed as names of files.
        "" => "script.yaml".to_owned(),
        _ if name.ends_with(".yaml") || name.ends_with(".yml") => name.to_owned(),
        _ => format!("{name}.yaml"),
    }
}

/// `POST /api/v1/scripts/{id}/replay`: runs a test against a version of the script, without a model.
pub(super) async fn replay(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    bytes: Bytes,
) -> Result<Json<Value>, Problem> {
    let new_replay: NewReplay = parse_body(&bytes)?;
    let script = find_document(&app, &caller.owner, Script, &id).await?;
    let version = load_version(&app, &caller.owner, Script, &script, new_replay.version).await?;
    check_length(&new_replay.test, "test")?;
    let test = ScriptTest::parse("the test", &new_replay.test)
        .map_err(|error| skeins::input_problem("invalid_test", &error).with("field", "test"))?;
    if test.turns.len() > MAX_TEST_TURNS {
        let detail = format!(
            "a test may have at most {MAX_TEST_TURNS} turns over HTTP; `tambour run --test` takes more"
        );
        return Err(Problem::invalid("invalid_test", detail).with("field", "test"));
    }
    let templates = OwnerTemplates::load(&app, &caller.owner).await?;
    let (limits, language) = (app.loaded_config().config.limits.clone(), app.settings().texts().language);
    let (turn_count, version_number) = (test.turns.len(), version.version);
    let run_test = move || {
        let script = load(&version.text, &limits).script?;
        Some(test.run(&script, TestEnv { templates: &templates, language }))
    };
    let differences = app.cpu_pool.run(&caller.owner, run_test).await?;
    let differences = differences.ok_or_else(|| {
        Problem::invalid("invalid_script", "the script can no longer run").with("field", "version")
    })?;
    let differences = differences
        .map_err(|error| Problem::invalid("invalid_test", error.to_string()).with("field", "test"))?;
    let has_passed = differences.is_empty();
    Ok(Json(json!({
        "version": version_number, "turns": turn_count, "passed": has_passed, "differences": differences,
    })))
}
