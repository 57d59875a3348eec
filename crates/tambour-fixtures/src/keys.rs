//! Keys of a fixture, read from JSON.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use tambour::exit::{ExitCriteria, ExitRound};

/// All keys; described in `fixtures/README.md`.
pub(crate) const KEYS: &[&str] = &[
    "id",
    "spec",
    "note",
    "dialect",
    "options",
    "reasoning",
    "round",
    "max_rounds",
    "criteria",
    "input",
    "chunks",
    "finish",
    "extensions",
    "events",
    "events_any_of",
    "events_ws",
    "findings",
    "findings_strict",
    "unlisted",
    "strict",
    "strict_at_least",
    "strict_any_of",
    "strict_nonempty",
    "info",
    "lenient",
    "truncated",
    "fallback_reason",
    "unused_reason",
    "dialect_found",
    "exit_decision",
    "tools",
    "plan",
    "plan_any_of",
    "calls",
    "strict_none_of",
];

/// Reader of the keys of a fixture. `null` counts as absent, and absent keys are `None`; an error names a key
/// with a value of another type.
pub(crate) struct FixtureKeys<'a>(pub(crate) &'a Map<String, Value>);

impl FixtureKeys<'_> {
    pub(crate) fn value(&self, key: &str) -> Option<&Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    pub(crate) fn list(&self, key: &str) -> Result<Option<Vec<Value>>, String> {
        let to_list =
            |value: &Value| value.as_array().cloned().ok_or_else(|| format!("`{key}` is not a list"));
        self.value(key).map(to_list).transpose()
    }

    pub(crate) fn string_list(&self, key: &str) -> Result<Option<Vec<String>>, String> {
        let Some(list) = self.list(key)? else { return Ok(None) };
        let to_string = |value: Value| value.as_str().map(str::to_owned);
        let strings: Option<Vec<String>> = list.into_iter().map(to_string).collect();
        strings.map(Some).ok_or_else(|| format!("`{key}` is not a list of strings"))
    }

    pub(crate) fn string_set(&self, key: &str) -> Result<Option<BTreeSet<String>>, String> {
        Ok(self.string_list(key)?.map(BTreeSet::from_iter))
    }

    pub(crate) fn string(&self, key: &str) -> Result<Option<String>, String> {
        let to_string = |value: &Value| {
            value.as_str().map(str::to_owned).ok_or_else(|| format!("`{key}` is not a string"))
        };
        self.value(key).map(to_string).transpose()
    }

    /// Round of the reply; 5 rounds and the default criteria when only the number is given.
    pub(crate) fn round(&self) -> Result<Option<ExitRound>, String> {
        let read_u32 = |key: &str| -> Result<Option<u32>, String> {
            let to_u32 = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
            let type_error = || format!("`{key}` is not a 32-bit unsigned integer");
            self.value(key).map(|value| to_u32(value).ok_or_else(type_error)).transpose()
        };
        let Some(round) = read_u32("round")? else { return Ok(None) };
        let criteria = self.value("criteria").map(ExitCriteria::from_value).transpose();
        let criteria = criteria.map_err(|error| error.to_string())?.unwrap_or_default();
        Ok(Some(ExitRound { round, max_rounds: read_u32("max_rounds")?.unwrap_or(5), criteria }))
    }

    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>, String> {
        let to_flag =
            |value: &Value| value.as_bool().ok_or_else(|| format!("`{key}` is neither true nor false"));
        self.value(key).map(to_flag).transpose()
    }
}
