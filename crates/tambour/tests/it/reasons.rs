//! The table in `docs/events.md` of the findings that go with each `fallback_reason` and `unused_reason`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use tambour::Profile;
use tambour::dialect::DIALECTS;
use tambour_fixtures::run::{completed_event, options_for, reading_case};
use tambour_fixtures::{ChunkCuts, fixtures_folder, load_fixtures, queue};
use tambour_prompt::catalogue;

/// A field of the metadata, its reason, and the dialect that the reply was read as.
type Key = (String, String, String);

/// A line of the document's table.
struct ReasonRow {
    keys: Vec<Key>,
    codes: BTreeSet<String>,
    /// True if the reason also occurs without any of these findings.
    is_optional: bool,
}

fn documented_rows() -> Vec<ReasonRow> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/events.md");
    let text = std::fs::read_to_string(path).expect("the document is readable");
    let quoted_words =
        |cell: &str| -> Vec<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let rows = text.lines().skip_while(|line| !line.starts_with("| reason |")).skip(2);
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').collect();
        let (fields, reasons): (Vec<String>, Vec<String>) =
            quoted_words(cells[1]).into_iter().partition(|word| word.ends_with("_reason"));
        let mut keys = Vec::new();
        for dialect in quoted_words(cells[2]) {
            for field in &fields {
                keys.extend(reasons.iter().map(|reason| (field.clone(), reason.clone(), dialect.clone())));
            }
        }
        let codes: BTreeSet<String> = quoted_words(cells[3]).into_iter().collect();
        ReasonRow { keys, codes, is_optional: cells[3].contains("; none where") }
    };
    rows.take_while(|line| line.starts_with('|')).map(row).collect()
}

#[test]
fn each_reason_has_the_findings_that_the_document_names() {
    let table = documented_rows();
    for code in table.iter().flat_map(|row| &row.codes) {
        assert!(catalogue::find(code).next().is_some(), "there is no rule `{code}`");
    }
    let mut fixtures = load_fixtures(&fixtures_folder()).expect("the fixtures are readable");
    fixtures.retain(|fixture| DIALECTS.iter().any(|entry| entry.name == fixture.dialect));
    let codes_by_key: Mutex<BTreeMap<Key, BTreeSet<String>>> = Mutex::default();
    queue::check_all(&fixtures, |fixture| {
        let options = options_for(fixture, Profile::Lenient);
        let reading = reading_case(fixture, &options).read(ChunkCuts::Single)?;
        let Some(end) = completed_event(&reading) else { return Ok(()) };
        let metadata = &end.metadata;
        let reasons =
            [("fallback_reason", &metadata.fallback_reason), ("unused_reason", &metadata.unused_reason)];
        for (field, reason) in reasons {
            let Some(reason) = reason else { continue };
            let key = (field.to_owned(), reason.to_string(), metadata.dialect.clone());
            let found: BTreeSet<String> =
                reading.findings.iter().map(|finding| finding.code.to_string()).collect();
            let row = table.iter().find(|row| row.keys.contains(&key));
            let ReasonRow { codes, is_optional, .. } =
                row.ok_or_else(|| format!("{key:?} is in no line of the table"))?;
            if !is_optional && codes.is_disjoint(&found) {
                return Err(format!("{key:?}: none of {codes:?} among {found:?}"));
            }
            let mut codes_by_key = codes_by_key.lock().expect("nothing panics with it");
            codes_by_key.entry(key).or_default().extend(found.intersection(codes).cloned());
        }
        Ok(())
    });
    let codes_by_key = codes_by_key.into_inner().expect("nothing panics with it");
    for ReasonRow { keys, codes, .. } in &table {
        let fixture_codes: Vec<_> = keys.iter().filter_map(|key| codes_by_key.get(key)).collect();
        assert_eq!(fixture_codes.len(), keys.len(), "each of {keys:?} is shown by a fixture");
        let fixture_codes: BTreeSet<String> = fixture_codes.into_iter().flatten().cloned().collect();
        assert_eq!(&fixture_codes, codes, "{keys:?}: what the document names is shown by a fixture");
    }
}
