//! `cargo xtask spec`: lists rows of the specification without a test, and checks that tests prove the
//! others.

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

use scan::Named;
use table::{Level, Row};

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let root = crate::root();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => report(&root, false),
        ["--all"] => report(&root, true),
        ["--prove"] => prove::run(&root),
        _ => anyhow::bail!("usage: cargo xtask spec [--all | --prove]"),
    }
}

/// Prints the rows without a test; with `all` also those out of scope.
fn report(root: &Path, all: bool) -> anyhow::Result<()> {
    let (rows, scope) = (table::read(root)?, Scope::read(root)?);
    let named = scan::read(root, &rows)?;
    let unknown: Vec<&String> = named.keys().filter(|id| !rows.iter().any(|row| row.id == **id)).collect();
    anyhow::ensure!(unknown.is_empty(), "tests name rows that do not exist: {unknown:?}");
    let shown: Vec<Row> = rows.iter().filter(|row| all || scope.holds(&row.id)).cloned().collect();
    for level in [Level::Must, Level::Should, Level::Later] {
        let of_level: Vec<Row> = shown.iter().filter(|row| row.level == level).cloned().collect();
        let without: Vec<&Row> = of_level.iter().filter(|row| !named.contains_key(&row.id)).collect();
        if of_level.is_empty() {
            continue;
        }
        println!("{}: {} rows, {} without a test", level.name(), of_level.len(), without.len());
        for row in &without {
            println!("  {}  {}", row.id, shortened(&row.rule));
        }
    }
    println!("out of scope: {} rows", rows.iter().filter(|row| !scope.holds(&row.id)).count());
    let required: Vec<Row> = rows.into_iter().filter(|row| scope.holds(&row.id)).collect();
    let missing = gaps(&required, &named).len();
    anyhow::ensure!(missing == 0, "{missing} must rows in scope have no test");
    Ok(())
}

/// Finds the must rows that no test names.
fn gaps<'a>(rows: &'a [Row], named: &Named) -> Vec<&'a Row> {
    rows.iter().filter(|row| row.level == Level::Must && !named.contains_key(&row.id)).collect()
}

fn shortened(rule: &str) -> String {
    let short: String = rule.chars().take(90).collect();
    if short.len() < rule.len() { short + "..." } else { short }
}

/// Rows that must have a test at present.
struct Scope {
    patterns: BTreeMap<String, bool>,
}

impl Scope {
    fn read(root: &Path) -> anyhow::Result<Scope> {
        let path = root.join("docs/spec/scope.txt");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let pattern = |line: &str| match line.strip_prefix('!') {
            Some(line) => (line.to_owned(), false),
            None => (line.to_owned(), true),
        };
        Ok(Scope { patterns: lines.map(pattern).collect() })
    }

    /// Returns whether a row is in scope; the longest matching pattern decides.
    fn holds(&self, id: &str) -> bool {
        let fits = |pattern: &str| match pattern.strip_suffix('*') {
            Some(prefix) => id.starts_with(prefix),
            None => id == pattern,
        };
        let fitting = self.patterns.iter().filter(|(pattern, _)| fits(pattern));
        fitting.max_by_key(|(pattern, _)| pattern.len()).is_some_and(|(_, &holds)| holds)
    }
}
