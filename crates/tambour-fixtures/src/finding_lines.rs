//! Findings as lines: `LINE:COLUMN CODE ROW`, then ` repaired` where a repair was made.
//!
//! The severity follows from the level of the rule, the repair and the profile; a line ends with it where it
//! differs.

use tambour::finding::{Rule, RuleLevel};
use tambour::{Event, Finding, Profile, Severity};
use tambour_prompt::catalogue::{self, CatalogueEntry};

use crate::reading::{FixtureReading, TRANSCRIPT};

/// Formats the findings of a reading, a line each.
#[must_use]
pub fn finding_lines(dialect: &str, reading: &FixtureReading, profile: Profile) -> Vec<String> {
    let dialect = read_dialect(dialect, reading);
    reading.findings.iter().map(|finding| finding_line(dialect, finding, profile)).collect()
}

fn finding_line(dialect: &str, finding: &Finding, profile: Profile) -> String {
    let Finding { line, column, code, rule, repair, severity, .. } = finding;
    let repaired = if repair.is_some() { " repaired" } else { "" };
    let usual = catalogue_entry(dialect, code, rule)
        .map(|listed| default_severity(listed.rule, repair.is_some(), profile));
    let other = match severity {
        _ if usual == Some(*severity) => "",
        Severity::Info => " info",
        Severity::Warning => " warning",
        Severity::Error => " error",
    };
    format!("{line}:{column} {code} {rule}{repaired}{other}")
}

/// Severity that a finding of `rule` has by default.
fn default_severity(rule: &Rule, repaired: bool, profile: Profile) -> Severity {
    match (rule.level, profile) {
        (RuleLevel::Info, _) => Severity::Info,
        (RuleLevel::Should, _) => Severity::Warning,
        (RuleLevel::Must, Profile::Lenient) if repaired => Severity::Warning,
        (RuleLevel::Must, _) => Severity::Error,
    }
}

/// Finds the catalogue entry for a code and row of a reply in `dialect`: the dialect's own, or else that of a
/// stage around it.
#[must_use]
pub fn catalogue_entry(dialect: &str, code: &str, row: &str) -> Option<CatalogueEntry> {
    let stages = [rule_owner(dialect), "json", "events", "pipeline", "html", "state"];
    let place = |listed: &CatalogueEntry| stages.iter().position(|stage| *stage == listed.owner);
    catalogue::all()
        .filter(|listed| listed.rule.code == code && listed.rule.rows.contains(&row))
        .filter(|listed| place(listed).is_some())
        .min_by_key(place)
}

fn rule_owner(dialect: &str) -> &str {
    if dialect == TRANSCRIPT { "events" } else { dialect }
}

/// Dialect that a reply was read as when `dialect` was requested.
#[must_use]
pub fn read_dialect<'a>(dialect: &'a str, reading: &'a FixtureReading) -> &'a str {
    let completed = reading.events.iter().find_map(|event| match event {
        Event::Completed(completed) => Some(completed.metadata.dialect.as_str()),
        _ => None,
    });
    completed.unwrap_or(dialect)
}
