//! Comparison with an earlier report: findings that are new, and findings that are gone.
//!
//! Findings are compared by text, rule, code and severity, and counted. Places are ignored, because they move
//! when a text is edited.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use tambour::{Finding, Severity};

use super::{CheckedText, TextPart};
use crate::input;
use crate::output::{severity_name, visible_char};

/// Findings of an earlier report, and the changes seen so far.
pub(super) struct Baseline {
    /// Findings of the earlier report, each with the number of occurrences not yet found again.
    unmatched_findings: BTreeMap<TextIdentity, HashMap<FindingKey, usize>>,
    /// Texts of the earlier report that this run has checked too.
    checked_texts: std::collections::BTreeSet<TextIdentity>,
    /// Findings of this run that the earlier report lacks.
    new_findings: Vec<FindingChange>,
}

/// Identity of a text: its file and its part of the file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct TextIdentity {
    path: String,
    /// Line of a record that has no id.
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Number of a fenced example, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    example: Option<usize>,
}

/// Key under which two findings of a text are the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
struct FindingKey {
    rule: String,
    code: String,
    severity: Severity,
}

/// Difference between two reports in the number of equal findings in one text.
#[derive(Clone, Serialize)]
pub(super) struct FindingChange {
    #[serde(flatten)]
    text: TextIdentity,
    #[serde(flatten)]
    finding: FindingKey,
    /// Number of equal findings by which one report exceeds the other.
    count: usize,
}

/// Result of the comparison.
#[derive(Serialize)]
pub(super) struct BaselineComparison {
    /// Number of new findings of severity error; they decide the exit code.
    pub(super) new_errors: usize,
    /// Findings that the earlier report lacks.
    new: Vec<FindingChange>,
    /// Findings that only the earlier report has.
    gone: Vec<FindingChange>,
    /// Number of texts of the earlier report that this run did not check.
    not_checked: usize,
}

/// Fields of a `--format json` line that the comparison reads.
#[derive(Deserialize)]
struct BaselineLine {
    #[serde(flatten)]
    text: TextIdentity,
    findings: Vec<FindingKey>,
}

impl Baseline {
    /// Reads a report of `--format json`.
    pub(super) fn read(path: &Path) -> Result<Baseline> {
        let bytes = input::read_without_bom(Some(path))?;
        let mut unmatched_findings: BTreeMap<TextIdentity, HashMap<FindingKey, usize>> = BTreeMap::new();
        for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
            if line.trim_ascii().is_empty() || is_end_line(line) {
                continue;
            }
            let BaselineLine { mut text, findings } = serde_json::from_slice(line).map_err(|error| {
                anyhow!("{}:{number}: not a line of a `check --format json` report: {error}", path.display())
            })?;
            text.normalize();
            let counts = unmatched_findings.entry(text).or_default();
            for finding in findings {
                *counts.entry(finding).or_default() += 1;
            }
        }
        if unmatched_findings.is_empty() {
            bail!("{}: the report lists no texts; write it with `check --format json`", path.display());
        }
        Ok(Baseline {
            unmatched_findings,
            checked_texts: std::collections::BTreeSet::new(),
            new_findings: Vec::new(),
        })
    }

    /// Compares a text with the earlier report. Returns a flag for each finding, true if it is new.
    pub(super) fn compare(&mut self, checked_text: &CheckedText<'_>) -> Vec<bool> {
        let text = TextIdentity::from_checked(checked_text);
        let mut new_counts: BTreeMap<FindingKey, usize> = BTreeMap::new();
        let mut unmatched = self.unmatched_findings.get_mut(&text);
        let new_flags = checked_text.verdict.findings.iter().map(|finding| {
            let key = FindingKey::from_finding(finding);
            match unmatched.as_mut().and_then(|counts| counts.get_mut(&key)) {
                Some(count_left @ 1..) => {
                    *count_left -= 1;
                    false
                }
                _ => {
                    *new_counts.entry(key).or_default() += 1;
                    true
                }
            }
        });
        let new_flags = new_flags.collect();
        let new_findings = new_counts.into_iter().map(|(finding, count)| FindingChange {
            text: text.clone(),
            finding,
            count,
        });
        self.new_findings.extend(new_findings);
        self.checked_texts.insert(text);
        new_flags
    }

    /// Ends the comparison. Findings of the earlier report that were not found again are gone, including
    /// those of texts that were not checked.
    pub(super) fn into_comparison(self) -> BaselineComparison {
        let Baseline { unmatched_findings, checked_texts, new_findings } = self;
        let not_checked = unmatched_findings.keys().filter(|text| !checked_texts.contains(text)).count();
        let mut gone = Vec::new();
        for (text, counts) in unmatched_findings {
            let mut remaining: Vec<(FindingKey, usize)> =
                counts.into_iter().filter(|(_, count)| *count > 0).collect();
            remaining.sort();
            gone.extend(remaining.into_iter().map(|(finding, count)| FindingChange {
                text: text.clone(),
                finding,
                count,
            }));
        }
        let errors = new_findings.iter().filter(|change| change.finding.severity == Severity::Error);
        BaselineComparison {
            new_errors: errors.map(|change| change.count).sum(),
            new: new_findings,
            gone,
            not_checked,
        }
    }
}

/// Returns `true` if a line is the end of a report, which describes no text.
fn is_end_line(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct BaselineEnd {
        #[serde(default)]
        summary: Option<serde::de::IgnoredAny>,
        #[serde(default)]
        baseline: Option<serde::de::IgnoredAny>,
    }
    serde_json::from_slice::<BaselineEnd>(line)
        .is_ok_and(|end| end.summary.is_some() || end.baseline.is_some())
}

impl TextIdentity {
    fn from_checked(checked_text: &CheckedText<'_>) -> TextIdentity {
        let mut text =
            TextIdentity { path: checked_text.path.to_owned(), record: None, id: None, example: None };
        match &checked_text.part {
            TextPart::Document => {}
            TextPart::Record { line, id } => (text.record, text.id) = (Some(*line), id.clone()),
            TextPart::Example { number, .. } => text.example = Some(*number),
        }
        text.normalize();
        text
    }

    /// Drops details that may differ between two runs over the same text.
    fn normalize(&mut self) {
        while let Some(path) = self.path.strip_prefix("./") {
            self.path = path.to_owned();
        }
        if self.id.is_some() {
            self.record = None;
        }
    }
}

impl FindingKey {
    fn from_finding(finding: &Finding) -> FindingKey {
        FindingKey {
            rule: finding.rule.clone().into_owned(),
            code: finding.code.clone().into_owned(),
            severity: finding.severity,
        }
    }
}

impl fmt::Display for FindingChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FindingChange { text: TextIdentity { path, record, id, example }, finding, count } = self;
        let mut name = path.clone();
        if let Some(line) = record {
            name += &format!(" (record {line})");
        }
        if let Some(id) = id {
            name += &format!(" (record {id})");
        }
        if let Some(number) = example {
            name += &format!(" (example {number})");
        }
        let name: String = name.chars().map(visible_char).collect();
        write!(f, "{name}: {}: {} {}", severity_name(finding.severity), finding.rule, finding.code)?;
        if *count > 1 { write!(f, ", {count} times") } else { Ok(()) }
    }
}

/// Maximum number of changes of each kind that the printed comparison lists.
const MAX_SHOWN_CHANGES: usize = 50;

impl BaselineComparison {
    /// Formats the comparison for people.
    pub(super) fn format(&self) -> String {
        let mut out = String::new();
        for (kind, changes) in [("new", &self.new), ("gone", &self.gone)] {
            for change in changes.iter().take(MAX_SHOWN_CHANGES) {
                out += &format!("{kind}: {change}\n");
            }
            if changes.len() > MAX_SHOWN_CHANGES {
                out += &format!("{kind}: {} more\n", changes.len() - MAX_SHOWN_CHANGES);
            }
        }
        let sum = |changes: &[FindingChange]| changes.iter().map(|change| change.count).sum::<usize>();
        let (new_count, gone_count) = (sum(&self.new), sum(&self.gone));
        out += &format!(
            "compared with the baseline: {new_count} new (errors: {}), {gone_count} gone",
            self.new_errors
        );
        if self.not_checked > 0 {
            let texts = tambour::texts::format_count(self.not_checked, "text");
            out += &format!("; {texts} of the baseline not checked now");
        }
        out + "\n"
    }
}
