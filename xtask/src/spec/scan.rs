//! Rows named in tests that run and in fixtures that are read.

use std::collections::BTreeMap;
use std::path::Path;

use tambour_fixtures::Fixture;
use tambour_fixtures::reading::is_judged_only;

use super::table::{SpecRow, is_id};
use super::{studio, targets};

/// Rows with the places that name them.
pub(super) type RowPlaces = BTreeMap<String, Vec<String>>;

/// Reads the test sources and the fixtures below `root`. A fixture counts for those of `rows` that it asserts
/// something of.
pub(super) fn read_places(root: &Path, rows: &[SpecRow]) -> anyhow::Result<RowPlaces> {
    let mut row_places = RowPlaces::new();
    for (file, source) in targets::read_sources(root)? {
        let file = file.strip_prefix(root).unwrap_or(&file).display();
        for (line, comment) in &source.comments {
            for id in find_ids(comment) {
                add_place(&mut row_places, id, format!("{file}:{line}"));
            }
        }
    }
    for test in studio::find_tests(root)? {
        for id in find_ids(&test.title) {
            add_place(&mut row_places, id, test.place.clone());
        }
    }
    for fixture in load_fixtures(root)? {
        for id in &fixture.spec {
            let row = rows.iter().find(|row| row.id == *id);
            if row.is_none_or(|row| asserts_row(&fixture, row)) {
                add_place(&mut row_places, id, fixture.name.clone());
            }
        }
    }
    Ok(row_places)
}

/// Loads the fixtures of dialects that the library reads.
pub(super) fn load_fixtures(root: &Path) -> anyhow::Result<Vec<Fixture>> {
    let mut fixtures = tambour_fixtures::load_fixtures(&root.join("fixtures")).map_err(anyhow::Error::msg)?;
    fixtures.retain(|fixture| fixture.expectation.has_any() && is_readable(&fixture.dialect));
    Ok(fixtures)
}

/// Returns whether a fixture asserts something of a row: for output it must compare events or their content,
/// or metadata where the row is about that; for findings, findings.
pub(super) fn asserts_row(fixture: &Fixture, row: &SpecRow) -> bool {
    let expect = &fixture.expectation;
    // A transcript has findings only.
    if row.describes_output && !is_judged_only(&fixture.dialect) {
        return expect.has_events() || (row.is_metadata && expect.has_metadata());
    }
    row.codes.is_empty() || expect.has_findings()
}

fn is_readable(dialect: &str) -> bool {
    is_judged_only(dialect) || tambour::dialect::find_dialect(dialect).is_ok()
}

/// Adds a place of a row. Resolutions (R) are reasons for rows, not rows.
fn add_place(row_places: &mut RowPlaces, row: &str, place: String) {
    if !row.starts_with("R-") {
        row_places.entry(row.to_owned()).or_default().push(place);
    }
}

/// Finds the ids in a text.
fn find_ids(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words.filter(|word| is_id(word))
}
