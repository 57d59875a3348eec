//! `GET /rules`: rules of findings, with examples.

use axum::Json;
use axum::extract::Path;
use serde_json::{Value, json};
use tambour_prompt::catalogue::{self, CatalogueEntry};

use crate::base::problem::Problem;

/// `GET /api/v1/rules`: all rules without examples.
pub(super) async fn list() -> Json<Value> {
    let rows: Vec<Value> = catalogue::all().map(rule_json).collect();
    Json(json!({ "data": rows }))
}

/// `GET /api/v1/rules/{name}`: rules of a code or a row of the specification, with examples.
pub(super) async fn show(Path(name): Path<String>) -> Result<Json<Value>, Problem> {
    let rows: Vec<Value> = catalogue::find(&name).map(explained_json).collect();
    if rows.is_empty() {
        let close = catalogue::close(&name);
        let hint = match close.as_slice() {
            [] => "`GET /api/v1/rules` lists all".to_owned(),
            close => format!("similar: {}", close.join(", ")),
        };
        let problem = Problem::not_found(format!("there is no rule `{name}`; {hint}"));
        return Err(problem.with("close", close));
    }
    Ok(Json(json!({ "data": rows })))
}

fn rule_json(CatalogueEntry { owner, rule, .. }: CatalogueEntry) -> Value {
    json!({ "code": rule.code, "rows": rule.rows, "level": rule.level, "owner": owner, "title": rule.title })
}

fn explained_json(rule: CatalogueEntry) -> Value {
    let mut row = rule_json(rule);
    row["with"] = json!(rule.rule.with);
    row["broken"] = rule.rule.broken.into();
    row["correct"] = rule.rule.correct.into();
    row
}
