//! `cargo xtask spec --prove`: without its finding code, a row's fixture must fail.

use std::collections::BTreeMap;
use std::path::Path;

use tambour_fixtures::Fixture;

use super::table::Level;
use super::{Scope, scan, table};

pub(super) fn run(root: &Path) -> anyhow::Result<()> {
    let scope = Scope::read(root)?;
    let mut rows = table::read(root)?;
    rows.retain(|row| scope.holds(&row.id) && !row.codes.is_empty());
    let fixtures = scan::fixtures(root)?;
    let mut fixtures_of: BTreeMap<&str, Vec<&Fixture>> = BTreeMap::new();
    let mut broken = 0;
    for fixture in &fixtures {
        if let Err(error) = tambour_fixtures::run(fixture, None) {
            println!("fails as it is: {error}");
            broken += 1;
            continue;
        }
        for row in &fixture.spec {
            fixtures_of.entry(row).or_default().push(fixture);
        }
    }
    let (mut proven, mut missing) = (0, 0);
    for row in &rows {
        let named = fixtures_of.get(row.id.as_str()).map_or(&[][..], Vec::as_slice);
        for code in &row.codes {
            match doubt(code, named) {
                None => proven += 1,
                Some(doubt) => {
                    println!("{} {:<6} `{code}`: {doubt}", row.id, row.level.name());
                    missing += usize::from(row.level == Level::Must);
                }
            }
        }
    }
    println!("{proven} codes of {} rows proven with {} fixtures", rows.len(), fixtures.len());
    anyhow::ensure!(broken == 0, "{broken} fixtures fail");
    anyhow::ensure!(missing == 0, "{missing} codes of must rows are not proven");
    Ok(())
}

/// Why `code` is not proven by any of the fixtures; `None` when it is.
fn doubt(code: &str, fixtures: &[&Fixture]) -> Option<String> {
    if !known(code) {
        return Some("no rule table has the code".to_owned());
    }
    if fixtures.is_empty() {
        return Some("no fixture names the row".to_owned());
    }
    let fails = fixtures.iter().any(|fixture| tambour_fixtures::run(fixture, Some(code)).is_err());
    (!fails).then(|| format!("{} fixtures name the row, none needs the code", fixtures.len()))
}

fn known(code: &str) -> bool {
    tambour::catalogue::all().any(|listed| listed.rule.code == code)
}

#[cfg(test)]
mod tests {
    use super::doubt;

    #[test]
    fn doubts_what_no_fixture_shows() {
        assert!(doubt("title_empty", &[]).is_some_and(|doubt| doubt.contains("no fixture")));
        assert!(doubt("no_such_code", &[]).is_some_and(|doubt| doubt.contains("rule table")));
    }
}
