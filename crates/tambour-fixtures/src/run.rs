//! Runs a fixture and compares the results with its expectations.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Value, json};
use tambour::event::{Completed, EventKind, Extension, push_joined};
use tambour::{Event, Options, Profile, Severity};

use crate::finding_lines::finding_lines;
use crate::fixture::{Fixture, FixtureExpectation, REQUIRES_LISTED_FINDINGS};
use crate::reading::{ChunkCuts, FixtureReading, ReadingCase, first_difference};

/// Reads a fixture in one chunk, in both profiles, and compares the readings with its expectations.
///
/// # Errors
/// The fixture lists no findings, cannot be read, or differs from its expectations.
pub fn run_fixture(fixture: &Fixture) -> Result<(), String> {
    if REQUIRES_LISTED_FINDINGS && !fixture.accounts_for_findings() {
        let hint = "UPDATE_FIXTURES=1 writes them, or `unlisted` says why they are not listed";
        return Err(format!("{}: no `findings`: {hint}", fixture.name));
    }
    compare(fixture, &ProfileReadings::read(fixture)?)
}

/// Readings of a fixture in both profiles.
#[derive(Clone, Debug)]
pub struct ProfileReadings {
    /// Reading in the lenient profile.
    pub lenient: FixtureReading,
    /// Reading in the strict profile.
    pub strict: FixtureReading,
}

impl ProfileReadings {
    /// Reads a fixture in one chunk.
    ///
    /// # Errors
    /// The dialect is unknown, or an input that is read whole is not UTF-8.
    pub fn read(fixture: &Fixture) -> Result<ProfileReadings, String> {
        let read = |profile| {
            let options = options_for(fixture, profile);
            reading_case(fixture, &options)
                .read(ChunkCuts::Single)
                .map_err(|error| format!("{}: {error}", fixture.name))
        };
        Ok(ProfileReadings { lenient: read(Profile::Lenient)?, strict: read(Profile::Strict)? })
    }

    /// Returns the readings without the findings of this code and row. A fixture that proves the rule must
    /// then fail.
    #[must_use]
    pub fn without_finding(&self, code: &str, row: &str) -> ProfileReadings {
        let mut copy = self.clone();
        for reading in [&mut copy.lenient, &mut copy.strict] {
            reading.findings.retain(|finding| finding.code != code || finding.rule != row);
        }
        copy
    }
}

/// Options of a fixture under `profile`.
#[must_use]
pub fn options_for(fixture: &Fixture, profile: Profile) -> Options {
    let mut options = fixture.options.clone();
    options.profile = profile;
    options
}

/// Reading case of a fixture under `options`, which replace its own.
#[must_use]
pub fn reading_case<'a>(fixture: &'a Fixture, options: &'a Options) -> ReadingCase<'a> {
    ReadingCase {
        dialect: &fixture.dialect,
        options,
        reasoning: fixture.reasoning.as_deref(),
        input: &fixture.input,
        end: &fixture.end,
    }
}

/// Compares readings of a fixture with its expectations.
///
/// # Errors
/// A reading differs from the expectations; the text shows the first difference.
pub fn compare(fixture: &Fixture, readings: &ProfileReadings) -> Result<(), String> {
    let ProfileReadings { lenient, strict } = readings;
    let compare_all = || {
        compare_events(fixture, lenient)?;
        compare_findings(fixture, lenient, strict)?;
        compare_codes(&fixture.expectation, lenient, strict)?;
        compare_plan(&fixture.expectation, lenient)?;
        compare_metadata(fixture, lenient)
    };
    compare_all().map_err(|error| format!("{}: {error}", fixture.name))
}

/// Compares the events.
fn compare_events(fixture: &Fixture, lenient: &FixtureReading) -> Result<(), String> {
    let expectation = &fixture.expectation;
    let found = contract_events(lenient, fixture.extensions);
    if let Some(events) = &expectation.events
        && let Some(difference) = first_difference(&join_deltas(events), &found)
    {
        return Err(format!("events, {difference}"));
    }
    if let Some(events) = &expectation.events_ws {
        let without_space = |events: Vec<Value>| events.into_iter().map(strip_space).collect::<Vec<_>>();
        if let Some(difference) =
            first_difference(&without_space(join_deltas(events)), &without_space(found.clone()))
        {
            return Err(format!("events without white space, {difference}"));
        }
    }
    if let Some(alternatives) = &expectation.events_any_of
        && !alternatives.iter().any(|events| join_deltas(events) == found)
    {
        let nearest = alternatives.first().and_then(|events| first_difference(&join_deltas(events), &found));
        return Err(format!("events, none of the alternatives; the first: {}", nearest.unwrap_or_default()));
    }
    Ok(())
}

/// Compares lists of findings.
fn compare_findings(
    fixture: &Fixture,
    lenient: &FixtureReading,
    strict: &FixtureReading,
) -> Result<(), String> {
    let expectation = &fixture.expectation;
    let Some(expected) = &expectation.findings else { return Ok(()) };
    let found = finding_lines(&fixture.dialect, lenient, Profile::Lenient);
    if let Some(difference) = first_difference(expected, &found) {
        return Err(format!("findings, {difference}"));
    }
    let expected = expectation.findings_strict.as_ref().unwrap_or(expected);
    let found = finding_lines(&fixture.dialect, strict, Profile::Strict);
    if let Some(difference) = first_difference(expected, &found) {
        return Err(format!("findings of the strict reading, {difference}"));
    }
    Ok(())
}

/// Compares the sets of codes that a fixture expects in each profile.
fn compare_codes(
    expectation: &FixtureExpectation,
    lenient: &FixtureReading,
    strict: &FixtureReading,
) -> Result<(), String> {
    let strict_codes = finding_codes(strict);
    if let Some(expected) = &expectation.strict
        && *expected != strict_codes
    {
        return Err(format!("strict findings: expected {expected:?}, found {strict_codes:?}"));
    }
    if let Some(expected) = &expectation.strict_at_least
        && !expected.is_subset(&strict_codes)
    {
        return Err(format!("strict findings: expected at least {expected:?}, found {strict_codes:?}"));
    }
    if let Some(expected) = &expectation.strict_any_of
        && expected.is_disjoint(&strict_codes)
    {
        return Err(format!("strict findings: expected one of {expected:?}, found {strict_codes:?}"));
    }
    if expectation.strict_nonempty && strict_codes.is_empty() {
        return Err("strict findings: expected some, found none".to_owned());
    }
    let strict_info_codes = info_codes(strict);
    if let Some(expected) = &expectation.info
        && *expected != strict_info_codes
    {
        return Err(format!("information: expected {expected:?}, found {strict_info_codes:?}"));
    }
    let lenient_codes = finding_codes(lenient);
    if let Some(expected) = &expectation.lenient
        && *expected != lenient_codes
    {
        return Err(format!("lenient findings: expected {expected:?}, found {lenient_codes:?}"));
    }
    if let Some(forbidden) = &expectation.strict_none_of
        && !forbidden.is_disjoint(&strict_codes)
    {
        return Err(format!("strict findings: expected none of {forbidden:?}, found {strict_codes:?}"));
    }
    Ok(())
}

/// Compares the `plan` event and the calls.
fn compare_plan(expectation: &FixtureExpectation, lenient: &FixtureReading) -> Result<(), String> {
    let found = lenient.events.iter().rev().find_map(|event| match event {
        Event::Extension(extension) if matches!(**extension, Extension::Plan(_)) => Some(event.data()),
        _ => None,
    });
    let found = found.unwrap_or_default();
    if let Some(expected) = &expectation.plan
        && !is_plan_match(expected, &found)
    {
        return Err(format!("plan: expected {expected}\n           found    {found}"));
    }
    if let Some(alternatives) = &expectation.plan_any_of
        && !alternatives.iter().any(|expected| is_plan_match(expected, &found))
    {
        return Err(format!("plan: expected one of {}\nfound    {found}", Value::from(alternatives.clone())));
    }
    let to_call = |event: &Event<'_>| match event.extension()? {
        Extension::ToolCall(call) => Some(json!({"name": call.name, "args": call.args})),
        _ => None,
    };
    let calls: Vec<Value> = lenient.events.iter().filter_map(to_call).collect();
    match &expectation.calls {
        Some(expected) if *expected != calls => {
            Err(format!("calls: expected {}, found {}", Value::from(expected.clone()), Value::from(calls)))
        }
        _ => Ok(()),
    }
}

/// Returns `true` if a `plan` event has the expected fields.
fn is_plan_match(expected: &Value, found: &Value) -> bool {
    let Some(expected) = expected.as_object() else { return false };
    expected.iter().all(|(key, value)| match (key.as_str(), value.as_object()) {
        ("plan", Some(fields)) => fields.iter().all(|(field, value)| found["plan"][field] == *value),
        _ => found[key] == *value,
    })
}

/// Compares the metadata of `completed`.
fn compare_metadata(fixture: &Fixture, lenient: &FixtureReading) -> Result<(), String> {
    let expectation = &fixture.expectation;
    let metadata = completed_event(lenient).map(|completed| &completed.metadata);
    // With listed findings, absent expectations mean "none"; a failed stream has no metadata.
    let is_exact = fixture.accounts_for_findings() && metadata.is_some();
    let truncated = metadata.map(|metadata| metadata.truncated);
    let expected = expectation.truncated.or(is_exact.then_some(false));
    if expected.is_some() && expected != truncated {
        return Err(format!("truncated: expected {expected:?}, found {truncated:?}"));
    }
    let reasons = [
        (
            "fallback_reason",
            &expectation.fallback_reason,
            metadata.and_then(|found| found.fallback_reason.as_deref()),
        ),
        (
            "unused_reason",
            &expectation.unused_reason,
            metadata.and_then(|found| found.unused_reason.as_deref()),
        ),
    ];
    for (key, expected, found) in reasons {
        if (expected.is_some() || is_exact) && expected.as_deref() != found {
            return Err(format!("{key}: expected {expected:?}, found {found:?}"));
        }
    }
    let dialect = metadata.map(|metadata| metadata.dialect.as_str());
    if expectation.dialect_found.is_some() && expectation.dialect_found.as_deref() != dialect {
        return Err(format!("dialect: expected {:?}, found {dialect:?}", expectation.dialect_found));
    }
    if let Some(expected) = &expectation.exit_decision {
        let found = json!(metadata.and_then(|metadata| metadata.exit_decision.as_ref()));
        if !is_match(&found, expected) {
            return Err(format!("exit_decision: expected {expected}, found {found}"));
        }
    }
    Ok(())
}

/// Returns `true` if `found` matches `expected`; an object may have further fields. The expected field
/// `unmet_empty` says whether the list `unmet` is empty.
fn is_match(found: &Value, expected: &Value) -> bool {
    let is_field_match = |name: &str, value: &Value| match name {
        "unmet_empty" => found["unmet"].as_array().map(Vec::is_empty) == value.as_bool(),
        _ => is_match(&found[name], value),
    };
    match expected {
        Value::Object(fields) => fields.iter().all(|(name, value)| is_field_match(name, value)),
        _ => found == expected,
    }
}

/// Returns the `completed` event of a reading; `None` for a failed stream.
#[must_use]
pub fn completed_event(reading: &FixtureReading) -> Option<&Completed> {
    reading.events.iter().find_map(|event| match event {
        Event::Completed(completed) => Some(&**completed),
        _ => None,
    })
}

/// Converts the contract events of a reading to JSON, including the final `error` of a failed stream, and
/// the extension events if `has_extensions` is true.
#[must_use]
pub fn contract_events(reading: &FixtureReading, has_extensions: bool) -> Vec<Value> {
    let is_contract = |event: &&Event<'_>| match event.kind() {
        EventKind::Contract => true,
        EventKind::Extension => has_extensions,
        EventKind::System => matches!(event, Event::Error(_)),
    };
    // Deltas on both sides of a removed event are now adjacent.
    let mut events = Vec::new();
    reading.events.iter().filter(is_contract).for_each(|event| push_joined(&mut events, event));
    events.iter().map(|event| json!({ "event": event.name(), "data": event.data() })).collect()
}

/// Returns the codes of the findings of severity warning or error.
fn finding_codes(reading: &FixtureReading) -> BTreeSet<String> {
    let findings = reading.findings.iter().filter(|finding| finding.severity != Severity::Info);
    findings.map(|finding| finding.code.to_string()).collect()
}

/// Returns the codes of the findings of severity info.
fn info_codes(reading: &FixtureReading) -> BTreeSet<String> {
    let findings = reading.findings.iter().filter(|finding| finding.severity == Severity::Info);
    findings.map(|finding| finding.code.to_string()).collect()
}

/// Joins adjacent deltas of the same text in events as a fixture lists them.
#[must_use]
pub fn join_deltas(events: &[Value]) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    // Adjacent deltas at the end of `out`; the next event may extend the last of them.
    let mut delta_run: Vec<Event<'static>> = Vec::new();
    for event in events {
        let Some(delta) = parse_delta(event) else {
            delta_run.clear();
            out.push(event.clone());
            continue;
        };
        let count_before = delta_run.len();
        push_joined(&mut delta_run, &delta);
        let has_joined = delta_run.len() == count_before;
        match out.last_mut() {
            Some(last) if has_joined => last["data"] = delta_run[count_before - 1].data(),
            _ => out.push(event.clone()),
        }
    }
    out
}

/// Parses an event of a fixture; `None` unless it is a delta.
fn parse_delta(event: &Value) -> Option<Event<'static>> {
    let (name, data) = (event["event"].as_str()?, &event["data"]);
    let text = || Some(Cow::Owned(data["text"].as_str()?.to_owned()));
    match name {
        "phase_delta" | "final_delta" => Event::parse(name, data),
        "draft_delta" => Some(Event::DraftDelta { text: text()? }),
        "aside" => {
            let kind = serde_json::from_value(data["kind"].clone()).ok()?;
            Some(Event::Aside { kind, text: text()? })
        }
        _ => None,
    }
}

/// Removes white space from the texts that are fields of an event's data.
fn strip_space(mut event: Value) -> Value {
    if let Some(data) = event["data"].as_object_mut() {
        for value in data.values_mut() {
            if let Value::String(text) = value {
                text.retain(|c| !c.is_whitespace());
            }
        }
    }
    event
}
