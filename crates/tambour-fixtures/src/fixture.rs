//! Fixtures: golden replies with their expected results.
//!
//! A fixture is stored in one of two forms: `<case>.in` is a raw reply, with its expectations in
//! `<case>.expect.json`; a line of a `.jsonl` file holds both. Keys are described in `fixtures/README.md`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use tambour::event::{Failure, FinishReason};
use tambour::{InputEnd, Options};

use crate::keys::{FixtureKeys, KEYS};

/// Reply with its expected results.
#[derive(Clone, Debug)]
pub struct Fixture {
    /// Path below the fixtures folder, with line and id for a `.jsonl` file.
    pub name: String,
    /// File of the reply (first form) or of the line.
    pub path: PathBuf,
    /// Line in that file, from 0; `None` for the first form.
    pub line: Option<usize>,
    /// Rows of the specification that the fixture covers.
    pub spec: Vec<String>,
    /// Dialect that the reply is read in.
    pub dialect: String,
    /// Options by their public names.
    pub options: Options,
    /// Reasoning received separately from the reply.
    pub reasoning: Option<String>,
    /// Raw reply.
    pub input: Vec<u8>,
    /// End of the reply.
    pub end: InputEnd,
    /// True if extension events are compared too.
    pub extensions: bool,
    /// Expected results.
    pub expectation: FixtureExpectation,
    /// Reason why the fixture does not list its findings.
    pub unlisted: Option<String>,
    /// Keys of the fixture as written.
    pub keys: Map<String, Value>,
}

/// True if each fixture must list its findings, or give the reason in `unlisted`.
pub const REQUIRES_LISTED_FINDINGS: bool = true;

/// Expected results of a reply. A `None` is not compared, unless the field says otherwise. "Strict" and
/// "lenient" are the profiles of the reading.
#[derive(Clone, Debug, Default)]
pub struct FixtureExpectation {
    /// Contract events, neighbouring deltas joined.
    pub events: Option<Vec<Value>>,
    /// Alternatives of which one must fit.
    pub events_any_of: Option<Vec<Vec<Value>>>,
    /// Like `events`, but compared without white space.
    pub events_ws: Option<Vec<Value>>,
    /// All findings of the lenient profile, as [lines](crate::finding_lines).
    pub findings: Option<Vec<String>>,
    /// All findings of the strict profile, if they differ from `findings`.
    pub findings_strict: Option<Vec<String>>,
    /// Codes of the findings of severity warning or error in the strict profile.
    pub strict: Option<BTreeSet<String>>,
    /// Codes that must be among those of the strict profile.
    pub strict_at_least: Option<BTreeSet<String>>,
    /// Codes of which at least one must be among those of the strict profile.
    pub strict_any_of: Option<BTreeSet<String>>,
    /// True if there must be at least one code in the strict profile.
    pub strict_nonempty: bool,
    /// Codes of the findings of severity info in the strict profile.
    pub info: Option<BTreeSet<String>>,
    /// Codes of the findings of severity warning or error in the lenient profile.
    pub lenient: Option<BTreeSet<String>>,
    /// `completed.metadata.truncated`; absent means false for a fixture that accounts for its findings.
    pub truncated: Option<bool>,
    /// `completed.metadata.fallback_reason`; absent means none for a fixture that accounts for its findings.
    pub fallback_reason: Option<String>,
    /// `completed.metadata.unused_reason`; absent means none for a fixture that accounts for its findings.
    pub unused_reason: Option<String>,
    /// `completed.metadata.dialect`.
    pub dialect_found: Option<String>,
    /// Fields that `completed.metadata.exit_decision` must have, nested objects included.
    pub exit_decision: Option<Value>,
    /// Keys that the `plan` event must have, and fields that its `plan` must have; others are not compared.
    pub plan: Option<Value>,
    /// Alternatives, each like `plan`.
    pub plan_any_of: Option<Vec<Value>>,
    /// `tool_call` events in order, without their ids.
    pub calls: Option<Vec<Value>>,
    /// Codes that must not be among those of the strict profile.
    pub strict_none_of: Option<BTreeSet<String>>,
}

impl Fixture {
    /// Returns `true` if the findings are listed, or `unlisted` says why not. Absent expectations of metadata
    /// then mean "none".
    #[must_use]
    pub fn accounts_for_findings(&self) -> bool {
        self.expectation.findings.is_some() || self.unlisted.is_some()
    }

    /// Returns `true` if the author wrote the expectations without seeing what the library reads. An update
    /// fails unless they are met, and keeps their sets of codes.
    #[must_use]
    pub fn is_independent(&self) -> bool {
        self.name.starts_with("independent/")
    }
}

impl FixtureExpectation {
    /// Returns `true` if anything is compared.
    #[must_use]
    pub fn has_any(&self) -> bool {
        self.has_events() || self.has_metadata() || self.has_findings()
    }

    /// Returns `true` if events are compared, or their content: a plan, its calls, an exit decision.
    #[must_use]
    pub fn has_events(&self) -> bool {
        self.events.is_some()
            || self.events_any_of.is_some()
            || self.events_ws.is_some()
            || self.plan.is_some()
            || self.plan_any_of.is_some()
            || self.calls.is_some()
            || self.exit_decision.is_some()
    }

    /// Returns `true` if metadata is compared.
    #[must_use]
    pub fn has_metadata(&self) -> bool {
        self.truncated.is_some()
            || self.fallback_reason.is_some()
            || self.unused_reason.is_some()
            || self.dialect_found.is_some()
    }

    /// Returns `true` if findings are compared.
    #[must_use]
    pub fn has_findings(&self) -> bool {
        self.findings.is_some()
            || self.strict.is_some()
            || self.strict_at_least.is_some()
            || self.strict_any_of.is_some()
            || self.strict_none_of.is_some()
            || self.strict_nonempty
            || self.info.is_some()
            || self.lenient.is_some()
    }
}

/// Loads all fixtures below `folder`: first `.in` files, then lines of `.jsonl` files, both sorted by path.
/// Lines of raw corpora (without `dialect`, or with neither `spec` nor `events`) are skipped.
///
/// # Errors
/// A file cannot be read or is malformed; the message names it.
pub fn load_fixtures(folder: &Path) -> Result<Vec<Fixture>, String> {
    let mut fixtures = Vec::new();
    for path in crate::list_files(folder, "in")? {
        fixtures.push(load_file(folder, &path)?);
    }
    for path in crate::list_files(folder, "jsonl")? {
        load_lines(folder, &path, &mut fixtures)?;
    }
    Ok(fixtures)
}

/// Path of the expectations of a `.in` file.
#[must_use]
pub fn expectations_path(path: &Path) -> PathBuf {
    path.with_extension("expect.json")
}

fn load_file(folder: &Path, path: &Path) -> Result<Fixture, String> {
    let name = fixture_name(folder, path);
    let input = std::fs::read(path).map_err(|error| format!("{name}: {error}"))?;
    let expectations_file = expectations_path(path);
    let fields = match std::fs::read_to_string(&expectations_file) {
        Ok(text) => parse_object(&text)
            .map_err(|error| format!("{}: {error}", fixture_name(folder, &expectations_file)))?,
        Err(_) if is_updating() => Map::new(),
        Err(error) => {
            let expectations_name = fixture_name(folder, &expectations_file);
            return Err(format!("{expectations_name}: {error} (UPDATE_FIXTURES=1 cargo test writes it)"));
        }
    };
    // The first folder names the dialect, if no key does.
    let folder_dialect = name.split('/').next().unwrap_or_default().to_owned();
    build_fixture(name.clone(), path, None, input, Some(folder_dialect), fields)
        .map_err(|error| format!("{name}: {error}"))
}

fn load_lines(folder: &Path, path: &Path, fixtures: &mut Vec<Fixture>) -> Result<(), String> {
    let name = fixture_name(folder, path);
    let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
    for (number, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let name = format!("{name}:{}", number + 1);
        let fixture = parse_line(&name, path, number, line).map_err(|error| format!("{name}: {error}"))?;
        fixtures.extend(fixture);
    }
    Ok(())
}

/// Parses a line of a `.jsonl` file, whose `number` counts from 0; `None` for a line of a raw corpus.
///
/// # Errors
/// The line is malformed.
pub fn parse_line(name: &str, path: &Path, number: usize, line: &str) -> Result<Option<Fixture>, String> {
    let fields = parse_object(line)?;
    let is_raw = !fields.contains_key("spec") && !fields.contains_key("events");
    if is_raw || !fields.contains_key("dialect") {
        return Ok(None);
    }
    let input = match (fields.get("input"), fields.get("chunks")) {
        (Some(Value::String(input)), _) => input.clone(),
        (None, Some(Value::Array(chunks))) => chunks.iter().filter_map(Value::as_str).collect(),
        _ => return Err("neither `input` nor `chunks`".to_owned()),
    };
    let id = fields.get("id").and_then(Value::as_str).unwrap_or_default();
    let full_name = if id.is_empty() { name.to_owned() } else { format!("{name} ({id})") };
    build_fixture(full_name, path, Some(number), input.into_bytes(), None, fields).map(Some)
}

/// Returns `true` if expectations are to be rewritten.
#[must_use]
pub fn is_updating() -> bool {
    std::env::var_os("UPDATE_FIXTURES").is_some_and(|value| value == "1")
}

/// Path of a file below `folder`, with `/` on every system.
fn fixture_name(folder: &Path, path: &Path) -> String {
    let path = path.strip_prefix(folder).unwrap_or(path);
    path.components().map(|component| component.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

fn parse_object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Builds a fixture from its keys. `line` counts from 0; `default_dialect` is used without the key `dialect`.
fn build_fixture(
    name: String,
    path: &Path,
    line: Option<usize>,
    input: Vec<u8>,
    default_dialect: Option<String>,
    fields: Map<String, Value>,
) -> Result<Fixture, String> {
    if let Some(key) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(format!("unknown key `{key}`; known: {}", KEYS.join(", ")));
    }
    let keys = FixtureKeys(&fields);
    let mut options = Options::default();
    if let Some(option_values) = keys.value("options") {
        let option_values = option_values.as_object().ok_or("`options` is not an object")?;
        for (name, value) in option_values {
            options.set(name, value.clone()).map_err(|error| error.to_string())?;
        }
    }
    options.round = keys.round()?;
    if let Some(registry) = keys.value("tools") {
        options.set("tools", registry.clone()).map_err(|error| error.to_string())?;
    }
    let expectation = FixtureExpectation {
        events: keys.list("events")?,
        events_any_of: keys.list("events_any_of")?.map(nested_lists).transpose()?,
        events_ws: keys.list("events_ws")?,
        findings: keys.string_list("findings")?,
        findings_strict: keys.string_list("findings_strict")?,
        strict: keys.string_set("strict")?,
        strict_at_least: keys.string_set("strict_at_least")?,
        strict_any_of: keys.string_set("strict_any_of")?,
        strict_nonempty: keys.flag("strict_nonempty")?.unwrap_or(false),
        info: keys.string_set("info")?,
        lenient: keys.string_set("lenient")?,
        truncated: keys.flag("truncated")?,
        fallback_reason: keys.string("fallback_reason")?,
        unused_reason: keys.string("unused_reason")?,
        dialect_found: keys.string("dialect_found")?,
        exit_decision: keys.value("exit_decision").cloned(),
        plan: keys.value("plan").cloned(),
        plan_any_of: keys.list("plan_any_of")?,
        calls: keys.list("calls")?,
        strict_none_of: keys.string_set("strict_none_of")?,
    };
    Ok(Fixture {
        path: path.to_path_buf(),
        line,
        spec: keys.string_set("spec")?.unwrap_or_default().into_iter().collect(),
        dialect: keys.string("dialect")?.or(default_dialect).ok_or("no `dialect`")?,
        options,
        reasoning: keys.string("reasoning")?,
        input,
        end: parse_end(keys.string("finish")?.as_deref().unwrap_or("stop"))?,
        extensions: keys.flag("extensions")?.unwrap_or(false),
        unlisted: keys.string("unlisted")?,
        expectation,
        name,
        keys: fields,
    })
}

/// Converts each alternative to a list of events.
fn nested_lists(alternatives: Vec<Value>) -> Result<Vec<Vec<Value>>, String> {
    let to_list = |value| match value {
        Value::Array(list) => Ok(list),
        _ => Err("`events_any_of` is not a list of lists".to_owned()),
    };
    alternatives.into_iter().map(to_list).collect()
}

/// Parses `finish`: a finish reason, `unknown` (a clean end without a reason), `incomplete` (a part was lost
/// in transit) or `failed` (the connection broke).
///
/// # Errors
/// `finish` is none of these words.
pub fn parse_end(finish: &str) -> Result<InputEnd, String> {
    Ok(match finish {
        "stop" => InputEnd::stop(),
        "length" => InputEnd::Finished(FinishReason::Length),
        "content_filter" => InputEnd::Finished(FinishReason::ContentFilter),
        "tool_calls" => InputEnd::Finished(FinishReason::ToolCalls),
        "cancelled" => InputEnd::Finished(FinishReason::Cancelled),
        "unknown" => InputEnd::WithoutReason,
        "incomplete" => InputEnd::Incomplete(FinishReason::Stop),
        "failed" => InputEnd::Failed(Failure::new("upstream_failed", "the connection broke", true)),
        _ => return Err(format!("unknown `finish` `{finish}`")),
    })
}
