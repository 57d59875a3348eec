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
struct Row {
    keys: Vec<Key>,
    codes: BTreeSet<String>,
    /// True if the reason also occurs without any of these findings.
    none: bool,
}

fn documented() -> Vec<Row> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/events.md");
    let text = std::fs::read_to_string(path).expect("the document is readable");
    let words =
        |cell: &str| -> Vec<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let rows = text.lines().skip_while(|line| !line.starts_with("| reason |")).skip(2);
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').collect();
        let (fields, reasons): (Vec<String>, Vec<String>) =
            words(cells[1]).into_iter().partition(|word| word.ends_with("_reason"));
        let mut keys = Vec::new();
        for dialect in words(cells[2]) {
            for field in &fields {
                keys.extend(reasons.iter().map(|reason| (field.clone(), reason.clone(), dialect.clone())));
            }
        }
        let codes: BTreeSet<String> = words(cells[3]).into_iter().collect();
        Row { keys, codes, none: cells[3].contains("; none where") }
    };
    rows.take_while(|line| line.starts_with('|')).map(row).collect()
}

#[test]
fn each_reason_has_the_findings_that_the_document_names() {
    let table = documented();
    for code in table.iter().flat_map(|row| &row.codes) {
        assert!(catalogue::find(code).next().is_some(), "there is no rule `{code}`");
    }
    let mut fixtures = load_fixtures(&fixtures_folder()).expect("the fixtures are readable");
    fixtures.retain(|fixture| DIALECTS.iter().any(|entry| entry.name == fixture.dialect));
    let seen: Mutex<BTreeMap<Key, BTreeSet<String>>> = Mutex::default();
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
            let Row { codes, none, .. } = row.ok_or_else(|| format!("{key:?} is in no line of the table"))?;
            if !none && codes.is_disjoint(&found) {
                return Err(format!("{key:?}: none of {codes:?} among {found:?}"));
            }
            let mut seen = seen.lock().expect("nothing panics with it");
            seen.entry(key).or_default().extend(found.intersection(codes).cloned());
        }
        Ok(())
    });
    let seen = seen.into_inner().expect("nothing panics with it");
    for Row { keys, codes, .. } in &table {
        let shown: Vec<_> = keys.iter().filter_map(|key| seen.get(key)).collect();
        assert_eq!(shown.len(), keys.len(), "each of {keys:?} is shown by a fixture");
        let shown: BTreeSet<String> = shown.into_iter().flatten().cloned().collect();
        assert_eq!(&shown, codes, "{keys:?}: what the document names is shown by a fixture");
    }
}
