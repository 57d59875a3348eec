//! Rewrites recorded expectations of fixtures: `UPDATE_FIXTURES=1`.
//!
//! Recorded keys are `events` (where compared, or where no other content is), the lists of findings, and
//! metadata of `completed`. All other keys are written by people and stay. A fixture that was never recorded,
//! or one of an independent author, is first compared with its expectations; a person must look at
//! differences.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use tambour::Profile;

use crate::finding_lines::finding_lines;
use crate::fixture::{Fixture, expectations_path};
use crate::reading::is_judged_only;
use crate::run::{ProfileReadings, compare, completed_event, contract_events, join_deltas};

/// Most bytes and lines of a reply within a `.jsonl` file; a longer one gets files of its own.
const SHORT_REPLY: (usize, usize) = (400, 12);

/// Changed lines of a file; `None` removes one.
type LineChanges = BTreeMap<usize, Option<Map<String, Value>>>;

/// Rewrites recorded expectations and moves long replies to files of their own. Returns complaints, a line
/// each.
pub fn update_fixtures(fixtures: &[Fixture]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut changes: BTreeMap<&Path, LineChanges> = BTreeMap::new();
    for fixture in fixtures {
        let done = renew_fixture(fixture).and_then(|written| {
            let Some(line) = fixture.line else {
                return replace_file(&expectations_path(&fixture.path), print_fixture(&written).as_bytes());
            };
            let moved = reply_path(fixture);
            if let Some(path) = &moved {
                write_files(path, &fixture.input, &written)?;
            }
            changes.entry(&fixture.path).or_default().insert(line, moved.is_none().then_some(written));
            Ok(())
        });
        complaints.extend(done.err());
    }
    for (path, lines) in &changes {
        complaints.extend(rewrite_lines(path, lines).err());
    }
    complaints
}

/// Returns the keys of a fixture with new recordings.
fn renew_fixture(fixture: &Fixture) -> Result<Map<String, Value>, String> {
    let readings = ProfileReadings::read(fixture)?;
    let fresh = !fixture.expect.has_any();
    let authored = fixture.is_independent();
    if !fresh && (authored || !fixture.lists_findings()) {
        let mut said = fixture.clone();
        said.expect.findings = None;
        said.unlisted = None;
        compare(&said, &readings)?;
    }
    let mut written = fixture.keys.clone();
    for (key, value) in [("dialect", json!(fixture.dialect)), ("spec", json!([]))] {
        if !written.contains_key(key) {
            written.shift_insert(0, key.to_owned(), value);
        }
    }
    if !is_judged_only(&fixture.dialect) {
        let found = contract_events(&readings.lenient, fixture.extensions);
        let same = fixture.expect.events.as_ref().is_some_and(|events| join_deltas(events) == found);
        if !fixture.expect.has_events() || (fixture.expect.events.is_some() && !same) {
            written.insert("events".to_owned(), found.into());
        }
    }
    record_findings(fixture, &readings, &mut written);
    record_metadata(&readings, &mut written);
    let mut renewed = fixture.clone();
    renewed.expect.events = None;
    renewed.expect.findings = None;
    (renewed.expect.strict, renewed.expect.lenient, renewed.expect.info) = (None, None, None);
    (renewed.expect.truncated, renewed.expect.fallback_reason, renewed.expect.unused_reason) =
        (None, None, None);
    renewed.unlisted = None;
    compare(&renewed, &readings)?;
    Ok(written)
}

/// Records the lists of findings and removes the sets of codes that repeat them.
fn record_findings(fixture: &Fixture, readings: &ProfileReadings, written: &mut Map<String, Value>) {
    if fixture.unlisted.is_some() {
        return;
    }
    if !fixture.is_independent() {
        for key in ["strict", "lenient", "info"] {
            written.shift_remove(key);
        }
    }
    let lenient = finding_lines(&fixture.dialect, &readings.lenient, Profile::Lenient);
    let strict = finding_lines(&fixture.dialect, &readings.strict, Profile::Strict);
    set_key(written, "findings", Some(json!(lenient)), &["events_ws", "events_any_of", "events"]);
    set_key(written, "findings_strict", (strict != lenient).then(|| json!(strict)), &["findings"]);
}

/// Records the metadata of `completed` where it says something.
fn record_metadata(readings: &ProfileReadings, written: &mut Map<String, Value>) {
    let Some(completed) = completed_event(&readings.lenient) else { return };
    let metadata = &completed.metadata;
    if metadata.truncated || written.get("truncated") != Some(&json!(false)) {
        let truncated = metadata.truncated.then_some(json!(true));
        set_key(written, "truncated", truncated, &["findings_strict", "findings"]);
    }
    for (key, reason) in
        [("fallback_reason", &metadata.fallback_reason), ("unused_reason", &metadata.unused_reason)]
    {
        let reason = reason.as_deref().map(Value::from);
        set_key(written, key, reason, &["truncated", "findings_strict", "findings"]);
    }
}

/// Sets a key in place, or after the first of `after` that exists; `None` removes it.
fn set_key(written: &mut Map<String, Value>, key: &str, value: Option<Value>, after: &[&str]) {
    let Some(value) = value else {
        written.shift_remove(key);
        return;
    };
    if written.contains_key(key) {
        written.insert(key.to_owned(), value);
        return;
    }
    let place = after.iter().find_map(|key| written.keys().position(|other| other == key));
    written.shift_insert(place.map_or(written.len(), |place| place + 1), key.to_owned(), value);
}

/// Path that the reply of a line moves to, if it is long.
fn reply_path(fixture: &Fixture) -> Option<PathBuf> {
    let (bytes, lines) = SHORT_REPLY;
    let input = &fixture.input;
    let id = fixture.keys.get("id")?.as_str()?;
    let named =
        !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    let long = input.len() > bytes || input.iter().filter(|byte| **byte == b'\n').count() >= lines;
    (named && long).then(|| fixture.path.with_extension("").join(format!("{id}.in")))
}

/// Writes the reply and the keys of a line to files of their own, named after its id.
fn write_files(path: &Path, input: &[u8], written: &Map<String, Value>) -> Result<(), String> {
    if path.exists() {
        return Err(format!("{}: the file is there already", path.display()));
    }
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut beside = written.clone();
    for key in ["id", "input", "chunks"] {
        beside.shift_remove(key);
    }
    // Expectations are written first: a reply without them counts as new.
    replace_file(&expectations_path(path), print_fixture(&beside).as_bytes())?;
    replace_file(path, input)
}

/// Rewrites lines of a `.jsonl` file.
fn rewrite_lines(path: &Path, changed: &LineChanges) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut out = String::new();
    for (number, line) in text.lines().enumerate() {
        match changed.get(&number) {
            None => out += &format!("{line}\n"),
            Some(None) => {}
            Some(Some(written)) => {
                let spaced = line.contains("\": ") && !line.starts_with("{\"id\":\"");
                let mut renewed = String::new();
                print_compact(&Value::Object(written.clone()), spaced, &mut renewed);
                out += &format!("{renewed}\n");
            }
        }
    }
    if out.is_empty() {
        return std::fs::remove_file(path).map_err(|error| format!("{}: {error}", path.display()));
    }
    replace_file(path, out.as_bytes())
}

/// Replaces a changed file atomically, since other tests may be reading it.
fn replace_file(path: &Path, content: &[u8]) -> Result<(), String> {
    if std::fs::read(path).is_ok_and(|before| before == content) {
        return Ok(());
    }
    let new = path.with_extension("new");
    let written = std::fs::write(&new, content).and_then(|()| std::fs::rename(&new, path));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// Prints a value on one line, with or without a blank after commas and colons.
fn print_compact(value: &Value, spaced: bool, out: &mut String) {
    let (comma, colon) = if spaced { (", ", ": ") } else { (",", ":") };
    match value {
        Value::Array(items) => {
            out.push('[');
            for (number, item) in items.iter().enumerate() {
                out.push_str(if number == 0 { "" } else { comma });
                print_compact(item, spaced, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (number, (key, value)) in fields.iter().enumerate() {
                out.push_str(if number == 0 { "" } else { comma });
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push_str(colon);
                print_compact(value, spaced, out);
            }
            out.push('}');
        }
        _ => out.push_str(&value.to_string()),
    }
}

/// Lists that are printed with a line for each item.
const LISTS_BY_LINE: &[&str] =
    &["events", "events_any_of", "events_ws", "findings", "findings_strict", "calls", "plan_any_of"];

/// Prints one key, one event and one finding a line, for easy review.
fn print_fixture(written: &Map<String, Value>) -> String {
    let line = |(key, value): (&String, &Value)| match value {
        Value::Array(items) if LISTS_BY_LINE.contains(&key.as_str()) && !items.is_empty() => {
            let items: Vec<String> = items.iter().map(|item| format!("    {}", print_item(item))).collect();
            format!("  \"{key}\": [\n{}\n  ]", items.join(",\n"))
        }
        _ => format!("  \"{key}\": {value}"),
    };
    format!("{{\n{}\n}}\n", written.iter().map(line).collect::<Vec<_>>().join(",\n"))
}

/// Prints an item of a list; an alternative of several events has a line for each.
fn print_item(item: &Value) -> String {
    match item {
        Value::Array(events) if !events.is_empty() => {
            let events: Vec<String> = events.iter().map(|event| format!("      {event}")).collect();
            format!("[\n{}\n    ]", events.join(",\n"))
        }
        _ => item.to_string(),
    }
}
