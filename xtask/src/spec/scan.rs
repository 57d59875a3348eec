//! Places that name a row of the specification: tests that run, and fixtures that are read.

use std::collections::BTreeMap;
use std::path::Path;

use tambour_fixtures::Fixture;
use tambour_fixtures::reading::is_judged_only;

use super::table::{SpecRow, is_id};
use super::{studio, targets};

/// Places that name a row, by its id.
pub(super) type RowPlaces = BTreeMap<String, Vec<String>>;

/// Reads the test sources and the fixtures below `root`. A fixture counts for a row that it names only if it
/// asserts something about the row.
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

/// Returns `true` if a fixture asserts something about a row. For a row about output it must compare events,
/// their content, or metadata if the row is about that; for a row about findings it must compare findings.
pub(super) fn asserts_row(fixture: &Fixture, row: &SpecRow) -> bool {
    let expectation = &fixture.expectation;
    // Readings of transcripts and scripts have findings only.
    if row.describes_output && !is_judged_only(&fixture.dialect) {
        return expectation.has_events() || (row.mentions_metadata && expectation.has_metadata());
    }
    row.codes.is_empty() || expectation.has_findings()
}

fn is_readable(dialect: &str) -> bool {
    is_judged_only(dialect) || tambour::dialect::find_dialect(dialect).is_ok()
}

/// Adds a place of a row, unless the id is that of a resolution (`R-…`), which gives reasons for rows.
fn add_place(row_places: &mut RowPlaces, row: &str, place: String) {
    if !row.starts_with("R-") {
        row_places.entry(row.to_owned()).or_default().push(place);
    }
}

/// Finds the ids of rows in a text.
fn find_ids(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words.filter(|word| is_id(word))
}
