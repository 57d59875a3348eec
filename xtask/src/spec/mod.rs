//! `cargo xtask spec`: lists rows of the specification (the tables in `docs/spec`) without a test, and checks
//! that tests prove the others.

#[cfg(test)]
mod planted;
mod prove;
mod rust;
mod scan;
mod studio;
mod table;
mod targets;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;

use scan::RowPlaces;
use table::{RequirementLevel, SpecRow};

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let root = crate::repository_root();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] | ["--all"] => {
            let shows_all = !arguments.is_empty();
            print_report(&root, shows_all)
        }
        ["--prove"] => prove::run(&root),
        _ => anyhow::bail!("usage: cargo xtask spec [--all | --prove]"),
    }
}

/// Prints the rows in scope without a test, and if `shows_all` is true those out of scope too.
///
/// # Errors
/// A row of level must in scope has no test, or a test names a row that does not exist.
fn print_report(root: &Path, shows_all: bool) -> anyhow::Result<()> {
    let (rows, scope) = (table::read_rows(root)?, SpecScope::read(root)?);
    let row_places = scan::read_places(root, &rows)?;
    let unknown_ids: Vec<&String> =
        row_places.keys().filter(|id| !rows.iter().any(|row| row.id == **id)).collect();
    anyhow::ensure!(unknown_ids.is_empty(), "tests name rows that do not exist: {unknown_ids:?}");
    let shown_rows: Vec<SpecRow> =
        rows.iter().filter(|row| shows_all || scope.contains(&row.id)).cloned().collect();
    for level in [RequirementLevel::Must, RequirementLevel::Should, RequirementLevel::Later] {
        let level_rows: Vec<SpecRow> = shown_rows.iter().filter(|row| row.level == level).cloned().collect();
        let untested_rows: Vec<&SpecRow> =
            level_rows.iter().filter(|row| !row_places.contains_key(&row.id)).collect();
        if level_rows.is_empty() {
            continue;
        }
        println!("{}: {} rows, {} without a test", level.name(), level_rows.len(), untested_rows.len());
        for row in &untested_rows {
            println!("  {}  {}", row.id, shorten_rule(&row.rule));
        }
    }
    println!("out of scope: {} rows", rows.iter().filter(|row| !scope.contains(&row.id)).count());
    let rows_in_scope: Vec<SpecRow> = rows.into_iter().filter(|row| scope.contains(&row.id)).collect();
    let gap_count = find_gaps(&rows_in_scope, &row_places).len();
    anyhow::ensure!(gap_count == 0, "{gap_count} must rows in scope have no test");
    Ok(())
}

/// Finds the rows of level must that no test names.
fn find_gaps<'a>(rows: &'a [SpecRow], row_places: &RowPlaces) -> Vec<&'a SpecRow> {
    rows.iter()
        .filter(|row| row.level == RequirementLevel::Must && !row_places.contains_key(&row.id))
        .collect()
}

/// Beginning of a rule, for one line.
fn shorten_rule(rule: &str) -> String {
    let short: String = rule.chars().take(90).collect();
    if short.len() < rule.len() { short + "..." } else { short }
}

/// Rows that must have a test at present.
struct SpecScope {
    /// Ids, or their beginnings followed by `*`; true if these rows are in scope.
    patterns: BTreeMap<String, bool>,
}

impl SpecScope {
    /// Reads `docs/spec/scope.txt`: a pattern a line, `!` before one that is out of scope.
    fn read(root: &Path) -> anyhow::Result<SpecScope> {
        let path = root.join("docs/spec/scope.txt");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let parse_line = |line: &str| match line.strip_prefix('!') {
            Some(pattern) => (pattern.to_owned(), false),
            None => (line.to_owned(), true),
        };
        Ok(SpecScope { patterns: lines.map(parse_line).collect() })
    }

    /// Returns `true` if a row is in scope; the longest matching pattern decides.
    fn contains(&self, id: &str) -> bool {
        let is_match = |pattern: &str| match pattern.strip_suffix('*') {
            Some(prefix) => id.starts_with(prefix),
            None => id == pattern,
        };
        let matching_patterns = self.patterns.iter().filter(|(pattern, _)| is_match(pattern));
        matching_patterns
            .max_by_key(|(pattern, _)| pattern.len())
            .is_some_and(|(_, &is_in_scope)| is_in_scope)
    }
}
