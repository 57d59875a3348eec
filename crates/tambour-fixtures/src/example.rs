//! Readings of the examples of rules; the table of a rule decides how its examples are read.

use serde_json::{Map, Value, json};
use tambour::finding::FindingReport;
use tambour::html::{HtmlMode, sanitize};
use tambour::options::SensitivePolicy;
use tambour::policy::queries::{QueryCleaner, QuerySource};
use tambour::privacy::DetectorSet;
use tambour::repair::json::{find, parse_strict};
use tambour::span::Place;
use tambour::state::Operation;
use tambour::{Finding, Profile};
use tambour_prompt::catalogue::CatalogueEntry;

use crate::fixture::{Fixture, parse_line};
use crate::reading::{ASK, DIALOGUE, SCRIPT, THINK, TRANSCRIPT, judge};
use crate::run::ProfileReadings;

/// Reads an example of a rule in the strict profile and returns the findings. The table of the rule decides
/// what the example is: a reply, a script, HTML, state operations, a stream of events, search queries in
/// JSON, or any JSON.
///
/// # Errors
/// The settings `with` of the rule are malformed, or do not apply to its examples.
pub fn example_findings(entry: CatalogueEntry, example: &str) -> Result<Vec<Finding>, String> {
    match entry.owner {
        "state" => return operation_findings(example),
        SCRIPT | DIALOGUE | ASK | THINK => {
            let mut options = fixture_from_example(entry, example)?.options;
            options.profile = Profile::Strict;
            return judge(entry.owner, example, &options);
        }
        "html" => {
            let (_, reports) = sanitize(example, HtmlMode::Escape);
            return Ok(reports.into_iter().map(|report| report.judge(Profile::Strict)).collect());
        }
        _ => {}
    }
    let fixture = fixture_from_example(entry, example)?;
    let reports: Vec<FindingReport> = match entry.owner {
        "json" => {
            let mut reports = find(example, &fixture.options.limits).reports;
            // The reader of chatty text does not report everything that RFC 8259 forbids.
            reports.extend(parse_strict(example, &fixture.options.limits).err());
            reports
        }
        // Search queries without an event around them.
        "events" if entry.rule.code.starts_with("serp_quer") && !example.contains("event") => {
            let privacy = DetectorSet::default();
            let cleaner = QueryCleaner {
                sensitive: SensitivePolicy::Drop,
                privacy: &privacy,
                source: QuerySource::Block,
            };
            cleaner.clean_json(example, Place::START, example.len()).1
        }
        _ => return Ok(ProfileReadings::read(&fixture)?.strict.findings),
    };
    Ok(reports.into_iter().map(|report| report.judge(Profile::Strict)).collect())
}

/// Reads a list of operations and returns the findings.
fn operation_findings(example: &str) -> Result<Vec<Finding>, String> {
    let list = serde_json::from_str(example).map_err(|error| error.to_string())?;
    let operations = Operation::parse_list(&list).map_err(|error| error.to_string())?;
    let reports = operations.iter().filter_map(|operation| operation.report(Place::START, example.len()));
    Ok(reports.map(|report| report.judge(Profile::Strict)).collect())
}

/// Builds a fixture without expectations from an example.
fn fixture_from_example(entry: CatalogueEntry, example: &str) -> Result<Fixture, String> {
    let dialect = match entry.owner {
        "events" => TRANSCRIPT,
        "pipeline" | "json" => "plain",
        dialect => dialect,
    };
    let mut line = json!({ "spec": [], "dialect": dialect, "input": example });
    let mut options = Map::new();
    // Bytes of an example in an encoding other than UTF-8.
    let mut encoded_input = None;
    for pair in entry.rule.with {
        let (name, value) = pair.split_once('=').ok_or_else(|| format!("`{pair}` is not `name=value`"))?;
        match name {
            "dialect" | "finish" | "reasoning" => line[name] = value.into(),
            "tools" => line[name] = serde_json::from_str(value).map_err(|error| format!("tools: {error}"))?,
            "encoding" if value == "latin1" => {
                let bytes: Result<Vec<u8>, _> = example.chars().map(u8::try_from).collect();
                encoded_input = Some(bytes.map_err(|_| "a character that Latin-1 does not have".to_owned())?);
            }
            _ => {
                options.insert(name.to_owned(), Value::from(value));
            }
        }
    }
    line["options"] = options.into();
    let fixture = parse_line(entry.rule.code, entry.rule.code.as_ref(), 0, &line.to_string())?;
    let mut fixture = fixture.ok_or("no fixture")?;
    fixture.input = encoded_input.unwrap_or(fixture.input);
    Ok(fixture)
}
