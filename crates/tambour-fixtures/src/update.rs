//! Rewrites the recorded expectations of fixtures, with `UPDATE_FIXTURES=1`.
//!
//! Recorded keys are `events` (if the fixture has it, or no other key about events), the lists of findings,
//! and metadata of `completed`. All other keys are written by people and stay. A fixture that does not list
//! its findings yet, or that an independent author wrote, is first compared with its expectations; a
//! difference is a complaint.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use tambour::Profile;

use crate::finding_lines::finding_lines;
use crate::fixture::{Fixture, expectations_path};
use crate::reading::is_judged_only;
use crate::run::{ProfileReadings, compare, completed_event, contract_events, join_deltas};

/// Limits of a reply in a `.jsonl` file: at most this many bytes, and fewer than this many line breaks. A
/// longer reply gets separate files.
const SHORT_REPLY: (usize, usize) = (400, 12);

/// Changed lines of a file, by number from 0; `None` removes a line.
type LineChanges = BTreeMap<usize, Option<Map<String, Value>>>;

/// Rewrites recorded expectations and moves long replies to separate files. Returns complaints, a line each.
pub fn update_fixtures(fixtures: &[Fixture]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut changes: BTreeMap<&Path, LineChanges> = BTreeMap::new();
    for fixture in fixtures {
        let result = renew_fixture(fixture).and_then(|fields| {
            let Some(line) = fixture.line else {
                return replace_file(&expectations_path(&fixture.path), print_fixture(&fields).as_bytes());
            };
            let reply_file = reply_path(fixture);
            if let Some(path) = &reply_file {
                write_files(path, &fixture.input, &fields)?;
            }
            changes.entry(&fixture.path).or_default().insert(line, reply_file.is_none().then_some(fields));
            Ok(())
        });
        complaints.extend(result.err());
    }
    for (path, lines) in &changes {
        complaints.extend(rewrite_lines(path, lines).err());
    }
    complaints
}

/// Returns the keys of a fixture, with the recorded ones renewed.
fn renew_fixture(fixture: &Fixture) -> Result<Map<String, Value>, String> {
    let readings = ProfileReadings::read(fixture)?;
    let has_expectations = fixture.expectation.has_any();
    if has_expectations && (fixture.is_independent() || !fixture.accounts_for_findings()) {
        let mut without_findings = fixture.clone();
        without_findings.expectation.findings = None;
        without_findings.unlisted = None;
        compare(&without_findings, &readings)?;
    }
    let mut fields = fixture.keys.clone();
    for (key, value) in [("dialect", json!(fixture.dialect)), ("spec", json!([]))] {
        if !fields.contains_key(key) {
            fields.shift_insert(0, key.to_owned(), value);
        }
    }
    if !is_judged_only(&fixture.dialect) {
        let found = contract_events(&readings.lenient, fixture.extensions);
        let is_same_events =
            fixture.expectation.events.as_ref().is_some_and(|events| join_deltas(events) == found);
        if !fixture.expectation.has_events() || (fixture.expectation.events.is_some() && !is_same_events) {
            fields.insert("events".to_owned(), found.into());
        }
    }
    record_findings(fixture, &readings, &mut fields);
    record_metadata(&readings, &mut fields);
    // Expectations that were not recorded must still fit.
    let mut handwritten = fixture.clone();
    handwritten.expectation.events = None;
    handwritten.expectation.findings = None;
    (handwritten.expectation.strict, handwritten.expectation.lenient, handwritten.expectation.info) =
        (None, None, None);
    (
        handwritten.expectation.truncated,
        handwritten.expectation.fallback_reason,
        handwritten.expectation.unused_reason,
    ) = (None, None, None);
    handwritten.unlisted = None;
    compare(&handwritten, &readings)?;
    Ok(fields)
}

/// Records the lists of findings and removes the sets of codes that repeat them.
fn record_findings(fixture: &Fixture, readings: &ProfileReadings, fields: &mut Map<String, Value>) {
    if fixture.unlisted.is_some() {
        return;
    }
    if !fixture.is_independent() {
        for key in ["strict", "lenient", "info"] {
            fields.shift_remove(key);
        }
    }
    let lenient = finding_lines(&fixture.dialect, &readings.lenient, Profile::Lenient);
    let strict = finding_lines(&fixture.dialect, &readings.strict, Profile::Strict);
    set_key(fields, "findings", Some(json!(lenient)), &["events_ws", "events_any_of", "events"]);
    set_key(fields, "findings_strict", (strict != lenient).then(|| json!(strict)), &["findings"]);
}

/// Records the metadata of `completed` that is not the default.
fn record_metadata(readings: &ProfileReadings, fields: &mut Map<String, Value>) {
    let Some(completed) = completed_event(&readings.lenient) else { return };
    let metadata = &completed.metadata;
    // An explicit `false` stays in the fixture.
    if metadata.truncated || fields.get("truncated") != Some(&json!(false)) {
        let truncated = metadata.truncated.then_some(json!(true));
        set_key(fields, "truncated", truncated, &["findings_strict", "findings"]);
    }
    for (key, reason) in
        [("fallback_reason", &metadata.fallback_reason), ("unused_reason", &metadata.unused_reason)]
    {
        let reason = reason.as_deref().map(Value::from);
        set_key(fields, key, reason, &["truncated", "findings_strict", "findings"]);
    }
}

/// Sets a key in its place, or after the first of `predecessors` that exists, else at the end; `None`
/// removes it.
fn set_key(fields: &mut Map<String, Value>, key: &str, value: Option<Value>, predecessors: &[&str]) {
    let Some(value) = value else {
        fields.shift_remove(key);
        return;
    };
    if fields.contains_key(key) {
        fields.insert(key.to_owned(), value);
        return;
    }
    let position = predecessors.iter().find_map(|key| fields.keys().position(|existing| existing == key));
    fields.shift_insert(position.map_or(fields.len(), |position| position + 1), key.to_owned(), value);
}

/// Path that the reply of a line moves to; `None` if the reply is short, or if the line has no id that can be
/// a file name.
fn reply_path(fixture: &Fixture) -> Option<PathBuf> {
    let (max_bytes, max_line_breaks) = SHORT_REPLY;
    let input = &fixture.input;
    let id = fixture.keys.get("id")?.as_str()?;
    let is_file_name =
        !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    let line_breaks = input.iter().filter(|byte| **byte == b'\n').count();
    let is_long = input.len() > max_bytes || line_breaks >= max_line_breaks;
    (is_file_name && is_long).then(|| fixture.path.with_extension("").join(format!("{id}.in")))
}

/// Writes the reply and the keys of a line to separate files, named after its id.
fn write_files(path: &Path, input: &[u8], fields: &Map<String, Value>) -> Result<(), String> {
    if path.exists() {
        return Err(format!("{}: the file is there already", path.display()));
    }
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut expectation_fields = fields.clone();
    for key in ["id", "input", "chunks"] {
        expectation_fields.shift_remove(key);
    }
    // Expectations are written first: a reply without them counts as new.
    replace_file(&expectations_path(path), print_fixture(&expectation_fields).as_bytes())?;
    replace_file(path, input)
}

/// Rewrites lines of a `.jsonl` file.
fn rewrite_lines(path: &Path, changes: &LineChanges) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut out = String::new();
    for (number, line) in text.lines().enumerate() {
        match changes.get(&number) {
            None => out += &format!("{line}\n"),
            Some(None) => {}
            Some(Some(fields)) => {
                // The spacing of the old line is kept. A line without spaces may have `": ` in a text, but
                // begins with an id.
                let is_spaced = line.contains("\": ") && !line.starts_with("{\"id\":\"");
                let mut line_text = String::new();
                print_compact(&Value::Object(fields.clone()), is_spaced, &mut line_text);
                out += &format!("{line_text}\n");
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
    if std::fs::read(path).is_ok_and(|old_content| old_content == content) {
        return Ok(());
    }
    let temporary_path = path.with_extension("new");
    let result =
        std::fs::write(&temporary_path, content).and_then(|()| std::fs::rename(&temporary_path, path));
    result.map_err(|error| format!("{}: {error}", path.display()))
}

/// Prints a value on one line, with or without a blank after commas and colons.
fn print_compact(value: &Value, is_spaced: bool, out: &mut String) {
    let (comma, colon) = if is_spaced { (", ", ": ") } else { (",", ":") };
    match value {
        Value::Array(items) => {
            out.push('[');
            for (number, item) in items.iter().enumerate() {
                out.push_str(if number == 0 { "" } else { comma });
                print_compact(item, is_spaced, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (number, (key, value)) in fields.iter().enumerate() {
                out.push_str(if number == 0 { "" } else { comma });
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push_str(colon);
                print_compact(value, is_spaced, out);
            }
            out.push('}');
        }
        _ => out.push_str(&value.to_string()),
    }
}

/// Lists that are printed with a line for each item.
const LISTS_BY_LINE: &[&str] =
    &["events", "events_any_of", "events_ws", "findings", "findings_strict", "calls", "plan_any_of"];

/// Prints each key, event and finding on its own line, for easy review.
fn print_fixture(fields: &Map<String, Value>) -> String {
    let line = |(key, value): (&String, &Value)| match value {
        Value::Array(items) if LISTS_BY_LINE.contains(&key.as_str()) && !items.is_empty() => {
            let items: Vec<String> = items.iter().map(|item| format!("    {}", print_item(item))).collect();
            format!("  \"{key}\": [\n{}\n  ]", items.join(",\n"))
        }
        _ => format!("  \"{key}\": {value}"),
    };
    format!("{{\n{}\n}}\n", fields.iter().map(line).collect::<Vec<_>>().join(",\n"))
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
