//! All rules in one place: those of [`tambour`], of scripts and of dialogues.

use std::collections::HashSet;

use tambour::catalogue::{self, list};
use tambour::finding::Rule;
use tambour::texts;

use crate::{dialogue, script};

pub use tambour::catalogue::CatalogueEntry;

/// All rules, grouped by [`CatalogueEntry::owner`]: those of [`tambour`], then `script` for dialogue scripts,
/// `dialogue` for scripts together with their templates, `ai_ask` and `ai_think` for answers of a model to
/// those actions.
///
/// ```
/// assert!(tambour_prompt::catalogue::all().any(|entry| entry.rule.code == "final_missing"));
/// ```
pub fn all() -> impl Iterator<Item = CatalogueEntry> {
    catalogue::all()
        .chain(list("script", script::rules::RULES))
        .chain(list("dialogue", dialogue::rules::script::RULES))
        .chain(list("ai_ask", dialogue::rules::ask::RULES))
        .chain(list("ai_think", dialogue::rules::think::RULES))
}

/// Rules that `id` names: the row of a specification such as `T-032` (in any letter case), or a code.
pub fn find(id: &str) -> impl Iterator<Item = CatalogueEntry> {
    all().filter(move |CatalogueEntry { rule, .. }| {
        rule.code == id || rule.rows.iter().any(|row| row.eq_ignore_ascii_case(id))
    })
}

/// Codes and rows that look like `id`, the closest first.
#[doc(hidden)]
#[must_use]
pub fn similar_ids(id: &str) -> Vec<&'static str> {
    let mut seen = HashSet::new();
    let ids = all().flat_map(|CatalogueEntry { rule, .. }| rule.rows.iter().copied().chain([rule.code]));
    texts::closest_names(id, ids.filter(|id| seen.insert(*id)))
}

/// Finds the rule with this row and code, as a finding names them.
#[must_use]
pub fn rule(row: &str, code: &str) -> Option<&'static Rule> {
    all().map(|entry| entry.rule).find(|rule| rule.code == code && rule.rows.contains(&row))
}
