//! The fixtures: golden replies with what must come out of them.
//!
//! Two forms, one model. `<case>.in` is a reply as it is, with its expectations in `<case>.expect.json`; a line of a
//! `.jsonl` file holds both. Keys are described in `fixtures/README.md`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use tambour::event::{Failure, FinishReason};
use tambour::{End, Options};

use crate::keys::{KEYS, Keys};

/// One reply and what must come out of it.
#[derive(Clone, Debug)]
pub struct Fixture {
    /// Path below the fixtures folder, with line and id for a `.jsonl` file.
    pub name: String,
    /// The reply's file (first form) or the file of the line.
    pub path: PathBuf,
    /// Its line in that file, from 0; `None` for the first form.
    pub line: Option<usize>,
    /// Rows of the specification it shows.
    pub spec: Vec<String>,
    /// Dialect it is read as.
    pub dialect: String,
    /// Options by their public names.
    pub options: Options,
    /// Reasoning that comes beside the reply.
    pub reasoning: Option<String>,
    /// The reply.
    pub input: Vec<u8>,
    /// How the reply ends.
    pub end: End,
    /// Whether extension events are compared too.
    pub extensions: bool,
    /// What must come out.
    pub expect: Expect,
    /// Why its findings are not listed, if they are not.
    pub unlisted: Option<String>,
    /// The expectations as written.
    pub written: Map<String, Value>,
}

/// Whether each fixture must list its findings, or say in `unlisted` why it does not.
pub const LISTED: bool = true;

/// What must come out of a reply; what is `None` is not compared.
#[derive(Clone, Debug, Default)]
pub struct Expect {
    /// Contract events, neighbouring deltas joined.
    pub events: Option<Vec<Value>>,
    /// Alternatives of which one must fit.
    pub events_any_of: Option<Vec<Vec<Value>>>,
    /// As `events`, compared without any white space.
    pub events_ws: Option<Vec<Value>>,
    /// All findings of the lenient reading, as [lines](crate::listed).
    pub findings: Option<Vec<String>>,
    /// Those of the strict reading, where they are others.
    pub findings_strict: Option<Vec<String>>,
    /// Codes of severity warning or error in `strict`.
    pub strict: Option<BTreeSet<String>>,
    /// Codes that must be among them.
    pub strict_at_least: Option<BTreeSet<String>>,
    /// Codes of which one must be among them.
    pub strict_any_of: Option<BTreeSet<String>>,
    /// Whether there must be any.
    pub strict_nonempty: bool,
    /// Codes of severity info in `strict`.
    pub info: Option<BTreeSet<String>>,
    /// Codes of severity warning or error in `lenient`.
    pub lenient: Option<BTreeSet<String>>,
    /// `completed.metadata.truncated`; with `findings`, absent means that it is false.
    pub truncated: Option<bool>,
    /// `completed.metadata.fallback_reason`; with `findings`, absent means that there is none.
    pub fallback_reason: Option<String>,
    /// `completed.metadata.unused_reason`; the same.
    pub unused_reason: Option<String>,
    /// `completed.metadata.dialect`.
    pub dialect_found: Option<String>,
    /// Fields that `completed.metadata.exit_decision` must have; in objects within it too.
    pub exit_decision: Option<Value>,
    /// The `plan` event; of it only the keys that are given, of its plan only the four fields.
    pub plan: Option<Value>,
    /// Alternatives, each as `plan`.
    pub plan_any_of: Option<Vec<Value>>,
    /// The `tool_call` events in order, without their ids.
    pub calls: Option<Vec<Value>>,
    /// Codes that must not be among those of `strict`.
    pub strict_none_of: Option<BTreeSet<String>>,
}

impl Fixture {
    /// Whether its findings are listed, or said not to be: what is not given beside them is not so.
    #[must_use]
    pub fn listed(&self) -> bool {
        self.expect.findings.is_some() || self.unlisted.is_some()
    }

    /// Whether its expectations are an author's who did not see a reading; they are never rewritten.
    #[must_use]
    pub fn independent(&self) -> bool {
        self.name.starts_with("independent/")
    }
}

impl Expect {
    /// Whether anything is compared.
    #[must_use]
    pub fn says_something(&self) -> bool {
        self.says_events() || self.says_metadata() || self.says_findings()
    }

    /// Whether events are compared, or what they hold: a plan, its calls, an exit decision.
    #[must_use]
    pub fn says_events(&self) -> bool {
        self.events.is_some()
            || self.events_any_of.is_some()
            || self.events_ws.is_some()
            || self.plan.is_some()
            || self.plan_any_of.is_some()
            || self.calls.is_some()
            || self.exit_decision.is_some()
    }

    /// Whether metadata is compared.
    #[must_use]
    pub fn says_metadata(&self) -> bool {
        self.truncated.is_some()
            || self.fallback_reason.is_some()
            || self.unused_reason.is_some()
            || self.dialect_found.is_some()
    }

    /// Whether findings are compared.
    #[must_use]
    pub fn says_findings(&self) -> bool {
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

/// All fixtures below `folder`, sorted by name. Lines of raw corpora (without `dialect`, or with neither `spec` nor
/// `events`) are left out.
///
/// # Errors
/// A file that cannot be read or is not of the form, with its name.
pub fn load(folder: &Path) -> Result<Vec<Fixture>, String> {
    let mut fixtures = Vec::new();
    for path in crate::files(folder, "in")? {
        fixtures.push(own_file(folder, &path)?);
    }
    for path in crate::files(folder, "jsonl")? {
        lines(folder, &path, &mut fixtures)?;
    }
    Ok(fixtures)
}

/// The file with the expectations of a `.in` file.
#[must_use]
pub fn expectations(path: &Path) -> PathBuf {
    path.with_extension("expect.json")
}

fn own_file(folder: &Path, path: &Path) -> Result<Fixture, String> {
    let name = name_of(folder, path);
    let input = std::fs::read(path).map_err(|error| format!("{name}: {error}"))?;
    let expect = expectations(path);
    let written = match std::fs::read_to_string(&expect) {
        Ok(text) => object(&text).map_err(|error| format!("{}: {error}", name_of(folder, &expect)))?,
        Err(_) if updating() => Map::new(),
        Err(error) => {
            let expect = name_of(folder, &expect);
            return Err(format!("{expect}: {error} (UPDATE_FIXTURES=1 cargo test writes it)"));
        }
    };
    let dialect = name.split('/').next().unwrap_or_default().to_owned();
    model(name.clone(), path, None, input, Some(dialect), written).map_err(|error| format!("{name}: {error}"))
}

fn lines(folder: &Path, path: &Path, fixtures: &mut Vec<Fixture>) -> Result<(), String> {
    let name = name_of(folder, path);
    let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
    for (number, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let name = format!("{name}:{}", number + 1);
        let fixture = of_line(&name, path, number, line).map_err(|error| format!("{name}: {error}"))?;
        fixtures.extend(fixture);
    }
    Ok(())
}

/// The fixture in a line of a `.jsonl` file; `None` for a line of a raw corpus.
///
/// # Errors
/// The line is not of the form.
pub fn of_line(name: &str, path: &Path, number: usize, line: &str) -> Result<Option<Fixture>, String> {
    let written = object(line)?;
    let raw = !written.contains_key("spec") && !written.contains_key("events");
    if raw || !written.contains_key("dialect") {
        return Ok(None);
    }
    let input = match (written.get("input"), written.get("chunks")) {
        (Some(Value::String(input)), _) => input.clone(),
        (None, Some(Value::Array(chunks))) => chunks.iter().filter_map(Value::as_str).collect(),
        _ => return Err("neither `input` nor `chunks`".to_owned()),
    };
    let id = written.get("id").and_then(Value::as_str).unwrap_or_default();
    let full = if id.is_empty() { name.to_owned() } else { format!("{name} ({id})") };
    model(full, path, Some(number), input.into_bytes(), None, written).map(Some)
}

/// Whether expectations are to be rewritten.
#[must_use]
pub fn updating() -> bool {
    std::env::var_os("UPDATE_FIXTURES").is_some_and(|value| value == "1")
}

fn name_of(folder: &Path, path: &Path) -> String {
    let path = path.strip_prefix(folder).unwrap_or(path);
    path.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn model(
    name: String,
    path: &Path,
    line: Option<usize>,
    input: Vec<u8>,
    folder: Option<String>,
    written: Map<String, Value>,
) -> Result<Fixture, String> {
    if let Some(key) = written.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(format!("unknown key `{key}`; known: {}", KEYS.join(", ")));
    }
    let keys = Keys(&written);
    let mut options = Options::default();
    if let Some(given) = keys.given("options") {
        let given = given.as_object().ok_or("`options` is no object")?;
        for (name, value) in given {
            options.set(name, value.clone()).map_err(|error| error.to_string())?;
        }
    }
    options.round = keys.round()?;
    if let Some(registry) = keys.given("tools") {
        options.set("tools", registry.clone()).map_err(|error| error.to_string())?;
    }
    let expect = Expect {
        events: keys.list("events")?,
        events_any_of: keys.list("events_any_of")?.map(lists).transpose()?,
        events_ws: keys.list("events_ws")?,
        findings: keys.lines("findings")?,
        findings_strict: keys.lines("findings_strict")?,
        strict: keys.words("strict")?,
        strict_at_least: keys.words("strict_at_least")?,
        strict_any_of: keys.words("strict_any_of")?,
        strict_nonempty: keys.flag("strict_nonempty")?.unwrap_or(false),
        info: keys.words("info")?,
        lenient: keys.words("lenient")?,
        truncated: keys.flag("truncated")?,
        fallback_reason: keys.word("fallback_reason")?,
        unused_reason: keys.word("unused_reason")?,
        dialect_found: keys.word("dialect_found")?,
        exit_decision: keys.given("exit_decision").cloned(),
        plan: keys.given("plan").cloned(),
        plan_any_of: keys.list("plan_any_of")?,
        calls: keys.list("calls")?,
        strict_none_of: keys.words("strict_none_of")?,
    };
    Ok(Fixture {
        path: path.to_path_buf(),
        line,
        spec: keys.words("spec")?.unwrap_or_default().into_iter().collect(),
        dialect: keys.word("dialect")?.or(folder).ok_or("no `dialect`")?,
        options,
        reasoning: keys.word("reasoning")?,
        input,
        end: end(keys.word("finish")?.as_deref().unwrap_or("stop"))?,
        extensions: keys.flag("extensions")?.unwrap_or(false),
        unlisted: keys.word("unlisted")?,
        expect,
        name,
        written,
    })
}

fn lists(alternatives: Vec<Value>) -> Result<Vec<Vec<Value>>, String> {
    let list = |value| match value {
        Value::Array(list) => Ok(list),
        _ => Err("`events_any_of` is no list of lists".to_owned()),
    };
    alternatives.into_iter().map(list).collect()
}

/// The end that `finish` names: a finish reason, `unknown` (a clean end without one) or `failed` (the connection
/// broke).
///
/// # Errors
/// Another word.
pub fn end(finish: &str) -> Result<End, String> {
    Ok(match finish {
        "stop" => End::stop(),
        "length" => End::Finished(FinishReason::Length),
        "content_filter" => End::Finished(FinishReason::ContentFilter),
        "tool_calls" => End::Finished(FinishReason::ToolCalls),
        "cancelled" => End::Finished(FinishReason::Cancelled),
        "unknown" => End::Unknown,
        "incomplete" => End::Incomplete(FinishReason::Stop),
        "failed" => End::Failed(Failure::new("upstream_failed", "the connection broke", true)),
        _ => return Err(format!("unknown `finish` `{finish}`")),
    })
}
