//! Rows named in tests that run and in fixtures that are read.

use std::collections::BTreeMap;
use std::path::Path;

use tambour_fixtures::Fixture;
use tambour_fixtures::reading::is_judged_only;

use super::table::{Row, is_id};
use super::{studio, targets};

/// Rows with the places that name them.
pub(super) type Named = BTreeMap<String, Vec<String>>;

/// Reads the test sources and the fixtures below `root`. A fixture counts for those of `rows` that it asserts
/// something of.
pub(super) fn read(root: &Path, rows: &[Row]) -> anyhow::Result<Named> {
    let mut named = Named::new();
    for (file, source) in targets::sources(root)? {
        let file = file.strip_prefix(root).unwrap_or(&file).display();
        for (line, comment) in &source.comments {
            for id in ids(comment) {
                name(&mut named, id, format!("{file}:{line}"));
            }
        }
    }
    for test in studio::tests(root)? {
        for id in ids(&test.title) {
            name(&mut named, id, test.place.clone());
        }
    }
    for fixture in fixtures(root)? {
        for id in &fixture.spec {
            let row = rows.iter().find(|row| row.id == *id);
            if row.is_none_or(|row| speaks(&fixture, row)) {
                name(&mut named, id, fixture.name.clone());
            }
        }
    }
    Ok(named)
}

/// Loads the fixtures of dialects that the library reads.
pub(super) fn fixtures(root: &Path) -> anyhow::Result<Vec<Fixture>> {
    let mut fixtures = tambour_fixtures::load(&root.join("fixtures")).map_err(anyhow::Error::msg)?;
    fixtures.retain(|fixture| fixture.expect.says_something() && readable(&fixture.dialect));
    Ok(fixtures)
}

/// Returns whether a fixture asserts something of a row: for output it must compare events or their content,
/// or metadata where the row is about that; for findings, findings.
pub(super) fn speaks(fixture: &Fixture, row: &Row) -> bool {
    let expect = &fixture.expect;
    // A transcript has findings only.
    if row.maps && !is_judged_only(&fixture.dialect) {
        return expect.says_events() || (row.metadata && expect.says_metadata());
    }
    row.codes.is_empty() || expect.says_findings()
}

fn readable(dialect: &str) -> bool {
    is_judged_only(dialect) || tambour::dialect::entry(dialect).is_ok()
}

/// Adds a place of a row. Resolutions (R) are reasons for rows, not rows.
fn name(named: &mut Named, row: &str, place: String) {
    if !row.starts_with("R-") {
        named.entry(row.to_owned()).or_default().push(place);
    }
}

/// Finds the ids in a text.
fn ids(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words.filter(|word| is_id(word))
}
