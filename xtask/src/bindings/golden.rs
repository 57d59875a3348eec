//! Replies with the events and findings that the library gives, a JSON object a line.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use tambour::dialect::DIALECTS;
use tambour::verdict::Contract;
use tambour::{Event, Finding, Profile};
use tambour_bindings::input_end::parse_end;
use tambour_bindings::json::{FoundJson, find_json};
use tambour_bindings::options::build_options;
use tambour_bindings::replies;
use tambour_fixtures::reading::{TRANSCRIPT, is_judged_only};
use tambour_fixtures::words::{ReplyPool, WordTrial, make_trial, word_kinds};
use tambour_fixtures::{ChunkCuts, Fixture, ReadingCase, fixtures_folder, load_fixtures};

/// Damaged replies with marker words, of each dialect.
const WORD_TRIALS: u64 = 60;

/// Writes the file.
pub(super) fn write(path: &Path) -> anyhow::Result<()> {
    let file = std::fs::File::create(path).with_context(|| path.display().to_string())?;
    let mut out = std::io::BufWriter::new(file);
    let fixtures = load_fixtures(&fixtures_folder()).map_err(anyhow::Error::msg)?;
    for fixture in &fixtures {
        if let Some(line) = describe_fixture(fixture)? {
            writeln!(out, "{line}")?;
        }
    }
    let replies = ReplyPool::load().map_err(anyhow::Error::msg)?;
    for entry in DIALECTS.iter().filter(|entry| word_kinds(entry.name).is_some()) {
        for seed in 0..WORD_TRIALS {
            writeln!(out, "{}", describe_trial(entry.name, seed, &replies)?)?;
        }
    }
    Ok(out.flush()?)
}

/// Describes a fixture; `None` if it is no reply and no stream.
fn describe_fixture(fixture: &Fixture) -> anyhow::Result<Option<Value>> {
    let is_transcript = fixture.dialect == TRANSCRIPT;
    if is_judged_only(&fixture.dialect) && !is_transcript {
        return Ok(None);
    }
    let option_values = option_values(fixture);
    let mut options =
        build_options(&option_values, Profile::Lenient).with_context(|| fixture.name.clone())?;
    let finish = fixture.keys.get("finish").and_then(Value::as_str).unwrap_or("stop");
    let mut line = json!({
        "name": fixture.name,
        "dialect": fixture.dialect,
        "options": option_values,
        "reasoning": fixture.reasoning,
        "finish": finish,
        "input": STANDARD.encode(&fixture.input),
    });
    if !is_transcript {
        let case = ReadingCase {
            dialect: &fixture.dialect,
            options: &options,
            reasoning: fixture.reasoning.as_deref(),
            input: &fixture.input,
            end: &fixture.end,
        };
        add_reading(&mut line, &case)?;
        if let Ok(end) = parse_end(Some(finish), false) {
            let repair = replies::repair(&fixture.dialect, &fixture.input, &options, &end);
            line["repair"] = repair.map(|repair| repair.text).ok().into();
        }
    }
    if let Ok(text) = std::str::from_utf8(&fixture.input) {
        let (value, findings) = find_json(text, false);
        let value = value.map(|value| match value {
            FoundJson::Value(value) => value.to_string(),
            FoundJson::Text(text) => text,
        });
        line["json"] = json!({ "value": value, "findings": findings });
    }
    options.profile = Profile::Strict;
    let verdict = Contract::from_name(&fixture.dialect)?.check(&fixture.input, &options);
    line["verdict"] = json!({ "contract": verdict.contract, "findings": verdict.findings });
    Ok(Some(line))
}

/// Options of a fixture by name, with its tools and its round.
fn option_values(fixture: &Fixture) -> Map<String, Value> {
    let key = |name: &str| fixture.keys.get(name).filter(|value| !value.is_null()).cloned();
    let mut values = key("options").and_then(|values| values.as_object().cloned()).unwrap_or_default();
    if let Some(tools) = key("tools") {
        values.insert("tools".to_owned(), tools);
    }
    if let Some(round) = key("round") {
        let mut fields = Map::from_iter([("round".to_owned(), round)]);
        fields.extend(key("max_rounds").map(|value| ("max_rounds".to_owned(), value)));
        fields.extend(key("criteria").map(|value| ("exit_criteria".to_owned(), value)));
        values.insert("round".to_owned(), Value::Object(fields));
    }
    values
}

/// Describes a damaged reply whose marker words are all accounted for.
fn describe_trial(dialect: &str, seed: u64, replies: &ReplyPool) -> anyhow::Result<Value> {
    let input = make_trial(dialect, seed, replies).input;
    let trial = WordTrial::new(dialect, 0, seed, input);
    trial.check_words().map_err(|complaints| anyhow::anyhow!("{dialect}, {seed}: {}", complaints[0]))?;
    let mut values = json!({ "round": { "round": 2, "max_rounds": 5 } });
    if matches!(dialect, "toolcall" | "filament") {
        values["tools"] = json!({ "note": { "type": "object" } });
    }
    let options = build_options(values.as_object().context("options are an object")?, Profile::Lenient)?;
    let mut line = json!({
        "name": format!("words, {dialect}, seed {seed}"),
        "dialect": dialect,
        "options": values,
        "reasoning": null,
        "finish": "stop",
        "input": STANDARD.encode(&trial.input),
        "has_words": true,
    });
    let end = tambour::InputEnd::stop();
    let case = ReadingCase { dialect, options: &options, reasoning: None, input: &trial.input, end: &end };
    add_reading(&mut line, &case)?;
    let uncut = trial.read();
    let (events, findings) = (&line["events"], &line["findings"]);
    anyhow::ensure!(
        *events == to_json(&uncut.events) && *findings == findings_json(&uncut.findings),
        "{dialect}, {seed}: the options of the line are not those of the trial"
    );
    Ok(line)
}

/// Adds events and findings of a reading to a line.
fn add_reading(line: &mut Value, case: &ReadingCase<'_>) -> anyhow::Result<()> {
    let reading = case.read(ChunkCuts::Single).map_err(anyhow::Error::msg)?;
    line["events"] = to_json(&reading.events);
    line["findings"] = findings_json(&reading.findings);
    Ok(())
}

fn to_json(events: &[Event<'_>]) -> Value {
    events.iter().map(|event| json!({ "event": event.name(), "data": event.data() })).collect()
}

fn findings_json(findings: &[Finding]) -> Value {
    findings.iter().map(|finding| json!(finding)).collect()
}
