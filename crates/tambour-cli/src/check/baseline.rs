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
    known_faults: BTreeMap<TextIdentity, HashMap<FaultKey, usize>>,
    /// Texts of the earlier report that this run has checked too.
    checked_texts: std::collections::BTreeSet<TextIdentity>,
    new_changes: Vec<FindingChange>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    example: Option<usize>,
}

/// Key under which two findings of a text are the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
struct FaultKey {
    rule: String,
    code: String,
    severity: Severity,
}

/// Surplus or lack of equal findings in one text.
#[derive(Clone, Serialize)]
pub(super) struct FindingChange {
    #[serde(flatten)]
    text: TextIdentity,
    #[serde(flatten)]
    fault: FaultKey,
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
    findings: Vec<FaultKey>,
}

impl Baseline {
    /// Reads a report of `--format json`.
    pub(super) fn read(path: &Path) -> Result<Baseline> {
        let bytes = input::read_text(Some(path))?;
        let mut known_faults: BTreeMap<TextIdentity, HashMap<FaultKey, usize>> = BTreeMap::new();
        for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
            if line.trim_ascii().is_empty() || is_end_line(line) {
                continue;
            }
            let BaselineLine { mut text, findings } = serde_json::from_slice(line).map_err(|error| {
                anyhow!("{}:{number}: not a line of a `check --format json` report: {error}", path.display())
            })?;
            text.normalize();
            let faults = known_faults.entry(text).or_default();
            for fault in findings {
                *faults.entry(fault).or_default() += 1;
            }
        }
        if known_faults.is_empty() {
            bail!("{}: the report has no text; `check --format json` writes one", path.display());
        }
        Ok(Baseline {
            known_faults,
            checked_texts: std::collections::BTreeSet::new(),
            new_changes: Vec::new(),
        })
    }

    /// Returns for each finding of a text whether it is new.
    pub(super) fn compare(&mut self, checked_text: &CheckedText<'_>) -> Vec<bool> {
        let text = TextIdentity::from_checked(checked_text);
        let mut new: BTreeMap<FaultKey, usize> = BTreeMap::new();
        let mut faults = self.known_faults.get_mut(&text);
        let new_faults = checked_text.verdict.findings.iter().map(|finding| {
            let fault = FaultKey::from_finding(finding);
            match faults.as_mut().and_then(|faults| faults.get_mut(&fault)) {
                Some(count_left @ 1..) => {
                    *count_left -= 1;
                    false
                }
                _ => {
                    *new.entry(fault).or_default() += 1;
                    true
                }
            }
        });
        let new_faults = new_faults.collect();
        let new = new.into_iter().map(|(fault, count)| FindingChange { text: text.clone(), fault, count });
        self.new_changes.extend(new);
        self.checked_texts.insert(text);
        new_faults
    }

    /// Finishes the comparison of all texts.
    pub(super) fn into_comparison(self) -> BaselineComparison {
        let Baseline { known_faults, checked_texts, new_changes } = self;
        let not_checked = known_faults.keys().filter(|text| !checked_texts.contains(text)).count();
        let mut gone = Vec::new();
        for (text, faults) in known_faults {
            let mut remaining: Vec<(FaultKey, usize)> =
                faults.into_iter().filter(|(_, count)| *count > 0).collect();
            remaining.sort();
            gone.extend(remaining.into_iter().map(|(fault, count)| FindingChange {
                text: text.clone(),
                fault,
                count,
            }));
        }
        let errors = new_changes.iter().filter(|change| change.fault.severity == Severity::Error);
        BaselineComparison {
            new_errors: errors.map(|change| change.count).sum(),
            new: new_changes,
            gone,
            not_checked,
        }
    }
}

/// Returns whether a line is the last one of a report, which describes no text.
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
        while let Some(rest) = self.path.strip_prefix("./") {
            self.path = rest.to_owned();
        }
        if self.id.is_some() {
            self.record = None;
        }
    }
}

impl FaultKey {
    fn from_finding(finding: &Finding) -> FaultKey {
        FaultKey {
            rule: finding.rule.clone().into_owned(),
            code: finding.code.clone().into_owned(),
            severity: finding.severity,
        }
    }
}

impl fmt::Display for FindingChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FindingChange { text: TextIdentity { path, record, id, example }, fault, count } = self;
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
        write!(f, "{name}: {}: {} {}", severity_name(fault.severity), fault.rule, fault.code)?;
        if *count > 1 { write!(f, ", {count} times") } else { Ok(()) }
    }
}

/// Most changes of each kind that the printed comparison lists.
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
        let (new, fixed_count) = (sum(&self.new), sum(&self.gone));
        out += &format!(
            "compared with the baseline: {new} new (errors: {}), {fixed_count} gone",
            self.new_errors
        );
        if self.not_checked > 0 {
            let texts = tambour::texts::format_count(self.not_checked, "text");
            out += &format!("; {texts} of the baseline not checked now");
        }
        out + "\n"
    }
}
