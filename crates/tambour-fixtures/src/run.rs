//! Running one fixture and comparing what comes out with what must.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use tambour::event::{Completed, EventKind};
use tambour::{Event, Options, Profile, Severity};

use crate::fixture::{Expect, Fixture, expectations};
use crate::reading::{Case, Cuts, Reading, first_difference};

/// Runs a fixture in one chunk, in both profiles. `mute` is a finding code that is never reported: a fixture that
/// proves the rule behind it fails then.
///
/// # Errors
/// What differs from the expectations.
pub fn run(fixture: &Fixture, mute: Option<&str>) -> Result<(), String> {
    let lenient = read(fixture, &profile(fixture, Profile::Lenient, mute))?;
    let strict = read(fixture, &profile(fixture, Profile::Strict, mute))?;
    compare(fixture, &lenient, &strict).map_err(|error| format!("{}: {error}", fixture.name))
}

/// The options of a fixture under `profile`.
#[must_use]
pub fn profile(fixture: &Fixture, profile: Profile, mute: Option<&str>) -> Options {
    let mut options = fixture.options.clone();
    options.profile = profile;
    options.mute = mute.map(str::to_owned);
    options
}

/// The fixture as a case under `options`.
#[must_use]
pub fn case<'a>(fixture: &'a Fixture, options: &'a Options) -> Case<'a> {
    Case {
        dialect: &fixture.dialect,
        options,
        reasoning: fixture.reasoning.as_deref(),
        input: &fixture.input,
        end: &fixture.end,
    }
}

fn read(fixture: &Fixture, options: &Options) -> Result<Reading, String> {
    case(fixture, options).read(Cuts::Whole).map_err(|error| format!("{}: {error}", fixture.name))
}

fn compare(fixture: &Fixture, lenient: &Reading, strict: &Reading) -> Result<(), String> {
    let expect = &fixture.expect;
    let found = events(lenient, fixture.extensions);
    if let Some(events) = &expect.events
        && let Some(difference) = first_difference(&joined(events), &found)
    {
        return Err(format!("events, {difference}"));
    }
    if let Some(events) = &expect.events_ws {
        let bare = |events: Vec<Value>| events.into_iter().map(without_space).collect::<Vec<_>>();
        if let Some(difference) = first_difference(&bare(joined(events)), &bare(found.clone())) {
            return Err(format!("events without white space, {difference}"));
        }
    }
    if let Some(alternatives) = &expect.events_any_of
        && !alternatives.iter().any(|events| joined(events) == found)
    {
        let nearest = alternatives.first().and_then(|events| first_difference(&joined(events), &found));
        return Err(format!("events, none of the alternatives; the first: {}", nearest.unwrap_or_default()));
    }
    let codes = codes(strict, false);
    if let Some(expected) = &expect.strict
        && *expected != codes
    {
        return Err(format!("strict findings: expected {expected:?}, found {codes:?}"));
    }
    if let Some(expected) = &expect.strict_at_least
        && !expected.is_subset(&codes)
    {
        return Err(format!("strict findings: expected at least {expected:?}, found {codes:?}"));
    }
    if let Some(expected) = &expect.strict_any_of
        && expected.is_disjoint(&codes)
    {
        return Err(format!("strict findings: expected one of {expected:?}, found {codes:?}"));
    }
    if expect.strict_nonempty && codes.is_empty() {
        return Err("strict findings: expected some, found none".to_owned());
    }
    let info = self::codes(strict, true);
    if let Some(expected) = &expect.info
        && *expected != info
    {
        return Err(format!("information: expected {expected:?}, found {info:?}"));
    }
    let codes = self::codes(lenient, false);
    if let Some(expected) = &expect.lenient
        && *expected != codes
    {
        return Err(format!("lenient findings: expected {expected:?}, found {codes:?}"));
    }
    if let Some(unwanted) = &expect.strict_none_of
        && !unwanted.is_disjoint(&self::codes(strict, false))
    {
        let codes = self::codes(strict, false);
        return Err(format!("strict findings: expected none of {unwanted:?}, found {codes:?}"));
    }
    compare_plan(expect, lenient)?;
    compare_metadata(fixture, lenient)
}

/// The `plan` event and the calls.
fn compare_plan(expect: &Expect, lenient: &Reading) -> Result<(), String> {
    let found = lenient.events.iter().rev().find_map(|event| match event {
        Event::Plan(_) => Some(event.data()),
        _ => None,
    });
    let found = found.unwrap_or_default();
    if let Some(expected) = &expect.plan
        && !fits(expected, &found)
    {
        return Err(format!("plan: expected {expected}\n           found    {found}"));
    }
    if let Some(alternatives) = &expect.plan_any_of
        && !alternatives.iter().any(|expected| fits(expected, &found))
    {
        return Err(format!("plan: expected one of {}\nfound    {found}", Value::from(alternatives.clone())));
    }
    let call = |event: &Event<'_>| match event {
        Event::ToolCall(call) => Some(json!({"name": call.name, "args": call.args})),
        _ => None,
    };
    let calls: Vec<Value> = lenient.events.iter().filter_map(call).collect();
    match &expect.calls {
        Some(expected) if *expected != calls => {
            Err(format!("calls: expected {}, found {}", Value::from(expected.clone()), Value::from(calls)))
        }
        _ => Ok(()),
    }
}

/// Whether a `plan` event has what is expected of it.
fn fits(expected: &Value, found: &Value) -> bool {
    let Some(expected) = expected.as_object() else { return false };
    expected.iter().all(|(key, value)| match (key.as_str(), value.as_object()) {
        ("plan", Some(fields)) => fields.iter().all(|(field, value)| found["plan"][field] == *value),
        _ => found[key] == *value,
    })
}

fn compare_metadata(fixture: &Fixture, lenient: &Reading) -> Result<(), String> {
    let expect = &fixture.expect;
    let metadata = completed(lenient).map(|completed| &completed.metadata);
    let truncated = metadata.map(|metadata| metadata.truncated);
    if expect.truncated.is_some() && expect.truncated != truncated {
        return Err(format!("truncated: expected {:?}, found {truncated:?}", expect.truncated));
    }
    let reason = metadata.and_then(|metadata| metadata.fallback_reason.as_deref());
    if expect.fallback_reason.is_some() && expect.fallback_reason.as_deref() != reason {
        return Err(format!("fallback_reason: expected {:?}, found {reason:?}", expect.fallback_reason));
    }
    let unused = metadata.and_then(|metadata| metadata.unused_reason.as_deref());
    if expect.unused_reason.is_some() && expect.unused_reason.as_deref() != unused {
        return Err(format!("unused_reason: expected {:?}, found {unused:?}", expect.unused_reason));
    }
    let dialect = metadata.map(|metadata| metadata.dialect.as_str());
    if expect.dialect_found.is_some() && expect.dialect_found.as_deref() != dialect {
        return Err(format!("dialect: expected {:?}, found {dialect:?}", expect.dialect_found));
    }
    if let Some(expected) = &expect.exit_decision {
        let found = json!(metadata.and_then(|metadata| metadata.exit_decision.as_ref()));
        if !holds(&found, expected) {
            return Err(format!("exit_decision: expected {expected}, found {found}"));
        }
    }
    Ok(())
}

/// Whether `found` is `expected`; an object may have further fields. `unmet_empty` is about the list `unmet`.
fn holds(found: &Value, expected: &Value) -> bool {
    let field = |name: &str, value: &Value| match name {
        "unmet_empty" => found["unmet"].as_array().map(Vec::is_empty) == value.as_bool(),
        _ => holds(&found[name], value),
    };
    match expected {
        Value::Object(fields) => fields.iter().all(|(name, value)| field(name, value)),
        _ => found == expected,
    }
}

/// The `completed` event of a reading.
#[must_use]
pub fn completed(reading: &Reading) -> Option<&Completed> {
    reading.events.iter().find_map(|event| match event {
        Event::Completed(completed) => Some(&**completed),
        _ => None,
    })
}

/// Contract events of a reading as JSON, with the `error` that ends it, if one does; extension events on request.
#[must_use]
pub fn events(reading: &Reading, extensions: bool) -> Vec<Value> {
    let wanted = |event: &&Event<'_>| match event.kind() {
        EventKind::Contract => true,
        EventKind::Extension => extensions,
        EventKind::System => matches!(event, Event::Error(_)),
    };
    let events = reading.events.iter().filter(wanted);
    // Deltas between which an event was left out are neighbours now.
    joined(&events.map(|event| json!({ "event": event.name(), "data": event.data() })).collect::<Vec<_>>())
}

/// Codes of severity warning or error, or those of severity info.
#[must_use]
pub fn codes(reading: &Reading, info: bool) -> BTreeSet<String> {
    let wanted = reading.findings.iter().filter(|finding| (finding.severity == Severity::Info) == info);
    wanted.map(|finding| finding.code.to_string()).collect()
}

/// The same events with neighbouring deltas of one section joined.
#[must_use]
pub fn joined(events: &[Value]) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    for event in events {
        let delta = matches!(event["event"].as_str(), Some("phase_delta" | "final_delta" | "draft_delta"));
        match out.last_mut() {
            Some(last)
                if delta && last["event"] == event["event"] && last["data"]["id"] == event["data"]["id"] =>
            {
                let text = [&*last, event].map(|event| event["data"]["text"].as_str().unwrap_or_default());
                last["data"]["text"] = Value::from(text.concat());
            }
            _ => out.push(event.clone()),
        }
    }
    out
}

fn without_space(mut event: Value) -> Value {
    if let Some(data) = event["data"].as_object_mut() {
        for value in data.values_mut() {
            if let Value::String(text) = value {
                text.retain(|c| !c.is_whitespace());
            }
        }
    }
    event
}

/// Rewrites the expectations of a fixture that has its own file from what is read now. Returns whether they changed.
///
/// # Errors
/// A file that cannot be written.
pub fn update(fixture: &Fixture) -> Result<bool, String> {
    let lenient = read(fixture, &profile(fixture, Profile::Lenient, None))?;
    let strict = read(fixture, &profile(fixture, Profile::Strict, None))?;
    let mut expect = Map::new();
    let mut keep = |key: &str, default: Value| {
        let value = fixture.written.get(key).cloned().unwrap_or(default);
        expect.insert(key.to_owned(), value);
    };
    keep("spec", json!([]));
    keep("dialect", json!(fixture.dialect));
    keep("options", json!({}));
    keep("finish", json!("stop"));
    for key in [
        "note",
        "reasoning",
        "extensions",
        "dialect_found",
        "round",
        "max_rounds",
        "criteria",
        "exit_decision",
    ] {
        if let Some(value) = fixture.written.get(key) {
            expect.insert(key.to_owned(), value.clone());
        }
    }
    expect.insert("events".to_owned(), events(&lenient, fixture.extensions).into());
    let list = |codes: BTreeSet<String>| Value::from(codes.into_iter().collect::<Vec<_>>());
    expect.insert("strict".to_owned(), list(codes(&strict, false)));
    expect.insert("lenient".to_owned(), list(codes(&lenient, false)));
    let info = codes(&strict, true);
    if !info.is_empty() {
        expect.insert("info".to_owned(), list(info));
    }
    if let Some(completed) = completed(&lenient) {
        if completed.metadata.truncated || fixture.written.contains_key("truncated") {
            expect.insert("truncated".to_owned(), completed.metadata.truncated.into());
        }
        if let Some(reason) = &completed.metadata.fallback_reason {
            expect.insert("fallback_reason".to_owned(), reason.as_ref().into());
        }
        if let Some(reason) = &completed.metadata.unused_reason {
            expect.insert("unused_reason".to_owned(), reason.as_ref().into());
        }
    }
    let path = expectations(&fixture.path);
    let text = pretty(&expect);
    if std::fs::read_to_string(&path).is_ok_and(|before| before == text) {
        return Ok(false);
    }
    std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(true)
}

/// One key a line, one event a line: differences are easy to review.
fn pretty(expect: &Map<String, Value>) -> String {
    let line = |(key, value): (&String, &Value)| match (key.as_str(), value) {
        ("events", Value::Array(events)) if !events.is_empty() => {
            let events: Vec<String> = events.iter().map(|event| format!("    {event}")).collect();
            format!("  \"{key}\": [\n{}\n  ]", events.join(",\n"))
        }
        _ => format!("  \"{key}\": {value}"),
    };
    format!("{{\n{}\n}}\n", expect.iter().map(line).collect::<Vec<_>>().join(",\n"))
}
