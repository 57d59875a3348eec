//! Findings as lines: `LINE:COLUMN CODE ROW`, then ` repaired` if the finding has a repair.
//!
//! The usual severity follows from the level of the rule, the repair and the profile; a line ends with the
//! severity only if it differs from the usual one.

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
    let repair_text = if repair.is_some() { " repaired" } else { "" };
    let expected_severity = catalogue_entry(dialect, code, rule)
        .map(|entry| default_severity(entry.rule, repair.is_some(), profile));
    let severity_text = match severity {
        _ if expected_severity == Some(*severity) => "",
        Severity::Info => " info",
        Severity::Warning => " warning",
        Severity::Error => " error",
    };
    format!("{line}:{column} {code} {rule}{repair_text}{severity_text}")
}

/// Severity that a finding of `rule` has by default.
fn default_severity(rule: &Rule, is_repaired: bool, profile: Profile) -> Severity {
    match (rule.level, profile) {
        (RuleLevel::Info, _) => Severity::Info,
        (RuleLevel::Should, _) => Severity::Warning,
        (RuleLevel::Must, Profile::Lenient) if is_repaired => Severity::Warning,
        (RuleLevel::Must, _) => Severity::Error,
    }
}

/// Finds the catalogue entry for the code and row of a finding on a reply in `dialect`: in the rule table of
/// the dialect, or else in the table of another stage of the reading.
#[must_use]
pub fn catalogue_entry(dialect: &str, code: &str, row: &str) -> Option<CatalogueEntry> {
    let stages = [rule_owner(dialect), "json", "events", "pipeline", "html", "state"];
    let stage_index = |entry: &CatalogueEntry| stages.iter().position(|stage| *stage == entry.owner);
    catalogue::all()
        .filter(|entry| entry.rule.code == code && entry.rule.rows.contains(&row))
        .filter(|entry| stage_index(entry).is_some())
        .min_by_key(stage_index)
}

/// Owner of the rules of a dialect in the catalogue.
fn rule_owner(dialect: &str) -> &str {
    if dialect == TRANSCRIPT { "events" } else { dialect }
}

/// Dialect that a reply was read as when `dialect` was requested; `dialect` itself for a failed stream.
#[must_use]
pub fn read_dialect<'a>(dialect: &'a str, reading: &'a FixtureReading) -> &'a str {
    let completed = reading.events.iter().find_map(|event| match event {
        Event::Completed(completed) => Some(completed.metadata.dialect.as_str()),
        _ => None,
    });
    completed.unwrap_or(dialect)
}
