//! Conditions of actions: an expression over variables, never code.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::prompt::jinja;

/// Functions that every expression has.
const FUNCTIONS: [&str; 3] = ["dict", "namespace", "range"];

/// Whether a condition holds.
///
/// # Errors
/// Why it cannot be said: it is no expression, or a variable is undefined.
pub(super) fn holds(condition: &str, variables: &Map<String, Value>) -> Result<bool, String> {
    let holds = jinja::condition(condition, variables).map_err(|error| error.to_string())?;
    // Comparing what is not there is no error to the engine, but mostly a misspelt name.
    let missing = uses(condition)?.into_iter().find(|name| !variables.contains_key(name));
    match (holds, missing) {
        (_, Some(name)) if !asks_for_existence(condition) => Err(format!("there is no variable `{name}`")),
        (None, _) => Err("it uses something that is not there".to_owned()),
        (Some(holds), _) => Ok(holds),
    }
}

/// The variables that a condition uses.
///
/// # Errors
/// It is no expression.
pub(super) fn uses(condition: &str) -> Result<BTreeSet<String>, String> {
    // Read with limits first.
    if let Err(error) = jinja::condition(condition, &Map::new())
        && error.code() == Some("limit_exceeded")
    {
        return Err(error.to_string());
    }
    let names = jinja::variables(condition).map_err(|error| error.to_string())?;
    Ok(names.into_iter().filter(|name| !FUNCTIONS.contains(&name.as_str())).collect())
}

/// Whether a condition itself looks whether variables are there.
pub(super) fn asks_for_existence(condition: &str) -> bool {
    condition.contains("defined") || condition.contains("default")
}
