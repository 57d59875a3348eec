//! Catalogue of all rules: those of the dialects and of the stages around them.

use std::collections::HashSet;

use crate::dialect::DIALECTS;
use crate::finding::Rule;
use crate::{contract, dialogue, html, pipeline, policy, repair, script, state, texts};

/// A rule with the part of the product it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listed {
    /// A dialect; `json`, `events` or `pipeline` for rules that hold in all of them; `html` for inline HTML,
    /// `state` for operations on the state, `script` for dialogue scripts, `dialogue` for scripts and their
    /// templates together, `ai_ask` and `ai_think` for the answers of those actions.
    pub owner: &'static str,
    /// The rule.
    pub rule: &'static Rule,
}

/// All rules: dialects in the order of their table, then the stages.
///
/// ```
/// assert!(tambour::catalogue::all().any(|listed| listed.rule.code == "final_missing"));
/// ```
pub fn all() -> impl Iterator<Item = Listed> {
    let dialects = DIALECTS.iter().flat_map(|entry| list(entry.name, entry.rules.iter().copied()));
    dialects
        .chain(list("json", repair::rules::ALL.iter().copied()))
        .chain(list("events", contract::RULES.iter().copied()))
        .chain(list("events", policy::rules::RULES.iter().copied()))
        .chain(list("pipeline", pipeline::RULES.iter().copied()))
        .chain(list("html", html::rules::RULES.iter().copied()))
        .chain(list("state", state::rules::RULES.iter().copied()))
        .chain(list("script", script::rules::RULES.iter().copied()))
        .chain(list("dialogue", dialogue::rules::script::RULES.iter().copied()))
        .chain(list("ai_ask", dialogue::rules::ask::RULES.iter().copied()))
        .chain(list("ai_think", dialogue::rules::think::RULES.iter().copied()))
}

/// Rules with this `id`: a row of the specification such as `T-032` (in any letter case), or a code.
pub fn find(id: &str) -> impl Iterator<Item = Listed> {
    all().filter(move |Listed { rule, .. }| {
        rule.code == id || rule.rows.iter().any(|row| row.eq_ignore_ascii_case(id))
    })
}

/// Codes and rows that resemble `id`, the closest first.
#[must_use]
pub fn close(id: &str) -> Vec<&'static str> {
    let mut seen = HashSet::new();
    let names = all().flat_map(|Listed { rule, .. }| rule.rows.iter().copied().chain([rule.code]));
    texts::close(id, names.filter(|name| seen.insert(*name)))
}

/// Rule that a finding with this row and code refers to.
#[must_use]
pub fn rule(row: &str, code: &str) -> Option<&'static Rule> {
    all().map(|listed| listed.rule).find(|rule| rule.code == code && rule.rows.contains(&row))
}

fn list(owner: &'static str, rules: impl IntoIterator<Item = &'static Rule>) -> impl Iterator<Item = Listed> {
    rules.into_iter().map(move |rule| Listed { owner, rule })
}
