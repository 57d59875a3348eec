//! Rules of the library in one place: those of the dialects and of the stages around them.

use crate::dialect::DIALECTS;
use crate::finding::Rule;
use crate::{contract, html, pipeline, policy, repair, state};

/// A rule with the part of the product it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CatalogueEntry {
    /// A dialect; `json`, `events` or `pipeline` for rules that hold in all dialects; `html` for inline HTML;
    /// `state` for operations on the state. The catalogue of `tambour-prompt` adds `script` for dialogue
    /// scripts, `dialogue` for scripts and their templates together, and `ai_ask` and `ai_think` for the
    /// answers of those actions.
    pub owner: &'static str,
    /// The rule.
    pub rule: &'static Rule,
}

/// Rules of the library: dialects in the order of their table, then the stages.
///
/// ```
/// assert!(tambour::catalogue::all().any(|entry| entry.rule.code == "final_missing"));
/// ```
pub fn all() -> impl Iterator<Item = CatalogueEntry> {
    let dialects = DIALECTS.iter().flat_map(|entry| list(entry.name, entry.rules));
    dialects
        .chain(list("json", repair::rules::ALL))
        .chain(list("events", contract::RULES))
        .chain(list("events", policy::rules::RULES))
        .chain(list("pipeline", pipeline::RULES))
        .chain(list("html", html::rules::RULES))
        .chain(list("state", state::rules::RULES))
}

/// Entries for `rules`, which all belong to `owner`, in the same order.
pub fn list(owner: &'static str, rules: &'static [&'static Rule]) -> impl Iterator<Item = CatalogueEntry> {
    rules.iter().map(move |rule| CatalogueEntry { owner, rule })
}
