//! `GET /api/v1/rules`: rules of findings, with examples.

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

/// `GET /api/v1/rules/{name}`: rules of a code or of a row of the specification (T-009), with examples.
pub(super) async fn show(Path(name): Path<String>) -> Result<Json<Value>, Problem> {
    let rows: Vec<Value> = catalogue::find(&name).map(explained_json).collect();
    if rows.is_empty() {
        let similar_names = catalogue::similar_ids(&name);
        let hint = match similar_names.as_slice() {
            [] => "`GET /api/v1/rules` lists all".to_owned(),
            names => format!("similar: {}", names.join(", ")),
        };
        let problem = Problem::not_found(format!("there is no rule `{name}`; {hint}"));
        return Err(problem.with("close", similar_names));
    }
    Ok(Json(json!({ "data": rows })))
}

/// Describes a rule without its examples.
fn rule_json(CatalogueEntry { owner, rule, .. }: CatalogueEntry) -> Value {
    json!({ "code": rule.code, "rows": rule.rows, "level": rule.level, "owner": owner, "title": rule.title })
}

/// Describes a rule with its examples.
fn explained_json(entry: CatalogueEntry) -> Value {
    let mut row = rule_json(entry);
    row["with"] = json!(entry.rule.with);
    row["broken"] = entry.rule.broken.into();
    row["correct"] = entry.rule.correct.into();
    row
}
