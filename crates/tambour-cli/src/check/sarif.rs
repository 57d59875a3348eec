//! Report format `sarif`, SARIF 2.1.0: one log with one run; rules are named by specification row and code,
//! `ROW/code`.

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::{Value, json};
use tambour::finding::Rule;
use tambour::span::Place;
use tambour::{Finding, Severity};
use tambour_prompt::catalogue;

use super::{CheckTotals, CheckedText, ReportEnding, ReportWriter, TextPart};

/// Report format `sarif`; the log is written at the end.
#[derive(Default)]
pub(super) struct SarifReport {
    rules: Vec<Value>,
    /// Index of each rule in `rules`.
    rule_indices: HashMap<String, usize>,
    results: Vec<Value>,
    /// Messages about files and records that could not be checked.
    notifications: Vec<Value>,
}

impl ReportWriter for SarifReport {
    fn write_text(&mut self, checked_text: &CheckedText<'_>) -> io::Result<()> {
        for (finding_index, finding) in checked_text.verdict.findings.iter().enumerate() {
            let id = format!("{}/{}", finding.rule, finding.code);
            let rule_index = match self.rule_indices.get(&id) {
                Some(rule_index) => *rule_index,
                None => {
                    self.rules.push(rule_json(&id, finding));
                    self.rule_indices.insert(id.clone(), self.rules.len() - 1);
                    self.rules.len() - 1
                }
            };
            let mut result = result_json(&id, rule_index, checked_text, finding);
            if let Some(state) = checked_text.baseline_state(finding_index) {
                result["baselineState"] = state.into();
            }
            self.results.push(result);
        }
        Ok(())
    }

    fn write_unreadable(&mut self, path: &str, line: Option<u64>, message: &str) -> io::Result<()> {
        let mut location = json!({ "artifactLocation": { "uri": to_uri(path) } });
        if let Some(line) = line {
            location["region"] = json!({ "startLine": line });
        }
        self.notifications.push(json!({
            "level": "error",
            "message": { "text": message },
            "locations": [{ "physicalLocation": location }],
        }));
        Ok(())
    }

    fn write_end(mut self: Box<Self>, totals: &CheckTotals, _end: &ReportEnding) -> io::Result<()> {
        let mixed_message = totals.mixed_kinds_message();
        if let Some(message) = &mixed_message {
            self.notifications.push(json!({ "level": "error", "message": { "text": message } }));
        }
        let log = json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": { "driver": {
                    "name": "tambour",
                    "version": env!("CARGO_PKG_VERSION"),
                    "rules": self.rules,
                } },
                "columnKind": "unicodeCodePoints",
                "invocations": [{
                    "executionSuccessful": totals.unreadable == 0 && mixed_message.is_none(),
                    "toolExecutionNotifications": self.notifications,
                }],
                "results": self.results,
            }],
        });
        let mut stdout = io::stdout();
        serde_json::to_writer_pretty(&mut stdout, &log)?;
        stdout.write_all(b"\n")?;
        stdout.flush()
    }
}

/// Describes the rule of `finding`; the title and examples come from the catalogue.
fn rule_json(id: &str, finding: &Finding) -> Value {
    let mut rule =
        json!({ "id": id, "name": finding.code, "defaultConfiguration": { "level": sarif_level(finding) } });
    if let Some(Rule { title, with: settings, broken, correct, .. }) =
        catalogue::rule(&finding.rule, &finding.code)
    {
        rule["shortDescription"] = json!({ "text": title });
        rule["help"] = json!({
            "text": format!("{}Broken:\n{broken}\n\nCorrect:\n{correct}", settings_note(settings, str::to_owned)),
            "markdown": format!(
                "{}Broken:\n\n{}\n\nCorrect:\n\n{}",
                settings_note(settings, format_code_block),
                format_code_block(broken),
                format_code_block(correct)
            ),
        });
    }
    rule
}

/// Describes the settings under which the examples of a rule are read; empty for the defaults. `format_list`
/// formats the settings, one a line.
fn settings_note(settings: &[&str], format_list: fn(&str) -> String) -> String {
    match settings {
        [] => String::new(),
        _ => format!("Read with:\n\n{}\n\n", format_list(&settings.join("\n"))),
    }
}

/// Formats an indented code block, which a fence in its text cannot end.
fn format_code_block(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

fn result_json(rule_id: &str, rule_index: usize, checked_text: &CheckedText<'_>, finding: &Finding) -> Value {
    let mut location = json!({
        "physicalLocation": { "artifactLocation": { "uri": to_uri(checked_text.path) }, "region": region_json(checked_text, finding) },
    });
    let mut message = finding.message.clone();
    match &checked_text.part {
        TextPart::Document => {}
        TextPart::Record { line, .. } => {
            // Lines of a record's text are not lines of the file, so the message names them.
            message = format!("{message} (line {}, column {} of the text)", finding.line, finding.column);
            location["logicalLocations"] =
                json!([{ "name": line.to_string(), "fullyQualifiedName": checked_text.part.to_string() }]);
        }
        TextPart::Example { number, .. } => {
            location["logicalLocations"] =
                json!([{ "name": number.to_string(), "fullyQualifiedName": checked_text.part.to_string() }]);
        }
    }
    json!({
        "ruleId": rule_id,
        "ruleIndex": rule_index,
        "level": sarif_level(finding),
        "message": { "text": message },
        "locations": [location],
        "properties": { "contract": checked_text.verdict.contract, "span": finding.span, "repair": finding.repair },
    })
}

/// Region of a finding in the file: the whole line of the file for a record.
fn region_json(checked_text: &CheckedText<'_>, finding: &Finding) -> Value {
    if let TextPart::Record { line, .. } = checked_text.part {
        return json!({ "startLine": line });
    }
    let text = checked_text.text;
    let start = finding.span.start.min(text.len());
    let end = finding.span.end.clamp(start, text.len());
    let mut end_place = Place { offset: start, line: finding.line, column: finding.column };
    end_place.advance(&String::from_utf8_lossy(&text[start..end]));
    json!({
        "startLine": finding.line,
        "startColumn": finding.column,
        "endLine": end_place.line,
        "endColumn": end_place.column,
    })
}

fn sarif_level(finding: &Finding) -> &'static str {
    match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

/// Converts a path to a URI reference, escaping all bytes but letters, digits and `/-._~`.
fn to_uri(path: &str) -> String {
    let mut out = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
