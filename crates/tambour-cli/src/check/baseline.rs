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

use super::{Checked, Part};
use crate::input;
use crate::output::{visible, word};

/// Findings of an earlier report, and the changes seen so far.
pub(super) struct Baseline {
    known: BTreeMap<Text, HashMap<Fault, usize>>,
    /// Texts of the earlier report that this run has checked too.
    seen: std::collections::BTreeSet<Text>,
    new: Vec<Change>,
}

/// Identity of a text: its file and its part of the file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Text {
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
struct Fault {
    rule: String,
    code: String,
    severity: Severity,
}

/// Surplus or lack of equal findings in one text.
#[derive(Clone, Serialize)]
pub(super) struct Change {
    #[serde(flatten)]
    text: Text,
    #[serde(flatten)]
    fault: Fault,
    count: usize,
}

/// Result of the comparison.
#[derive(Serialize)]
pub(super) struct Comparison {
    /// Number of new findings of severity error; they decide the exit code.
    pub(super) new_errors: usize,
    /// Findings that the earlier report lacks.
    new: Vec<Change>,
    /// Findings that only the earlier report has.
    gone: Vec<Change>,
    /// Number of texts of the earlier report that this run did not check.
    not_checked: usize,
}

/// Fields of a `--format json` line that the comparison reads.
#[derive(Deserialize)]
struct Line {
    #[serde(flatten)]
    text: Text,
    findings: Vec<Fault>,
}

impl Baseline {
    /// Reads a report of `--format json`.
    pub(super) fn read(path: &Path) -> Result<Baseline> {
        let bytes = input::read(Some(path))?;
        let mut known: BTreeMap<Text, HashMap<Fault, usize>> = BTreeMap::new();
        for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
            if line.trim_ascii().is_empty() || is_end(line) {
                continue;
            }
            let Line { mut text, findings } = serde_json::from_slice(line).map_err(|error| {
                anyhow!("{}:{number}: no line of a report of `check --format json`: {error}", path.display())
            })?;
            text.settle();
            let faults = known.entry(text).or_default();
            for fault in findings {
                *faults.entry(fault).or_default() += 1;
            }
        }
        if known.is_empty() {
            bail!("{}: the report has no text; `check --format json` writes one", path.display());
        }
        Ok(Baseline { known, seen: std::collections::BTreeSet::new(), new: Vec::new() })
    }

    /// Returns for each finding of a text whether it is new.
    pub(super) fn compare(&mut self, checked: &Checked<'_>) -> Vec<bool> {
        let text = Text::of(checked);
        let mut new: BTreeMap<Fault, usize> = BTreeMap::new();
        let mut faults = self.known.get_mut(&text);
        let told = checked.verdict.findings.iter().map(|finding| {
            let fault = Fault::of(finding);
            match faults.as_mut().and_then(|faults| faults.get_mut(&fault)) {
                Some(left @ 1..) => {
                    *left -= 1;
                    false
                }
                _ => {
                    *new.entry(fault).or_default() += 1;
                    true
                }
            }
        });
        let told = told.collect();
        let new = new.into_iter().map(|(fault, count)| Change { text: text.clone(), fault, count });
        self.new.extend(new);
        self.seen.insert(text);
        told
    }

    /// Finishes the comparison of all texts.
    pub(super) fn comparison(self) -> Comparison {
        let Baseline { known, seen, new } = self;
        let not_checked = known.keys().filter(|text| !seen.contains(text)).count();
        let mut gone = Vec::new();
        for (text, faults) in known {
            let mut left: Vec<(Fault, usize)> = faults.into_iter().filter(|(_, count)| *count > 0).collect();
            left.sort();
            gone.extend(left.into_iter().map(|(fault, count)| Change { text: text.clone(), fault, count }));
        }
        let errors = new.iter().filter(|change| change.fault.severity == Severity::Error);
        Comparison { new_errors: errors.map(|change| change.count).sum(), new, gone, not_checked }
    }
}

/// Returns whether a line is the last one of a report, which describes no text.
fn is_end(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct End {
        #[serde(default)]
        summary: Option<serde::de::IgnoredAny>,
        #[serde(default)]
        baseline: Option<serde::de::IgnoredAny>,
    }
    serde_json::from_slice::<End>(line).is_ok_and(|end| end.summary.is_some() || end.baseline.is_some())
}

impl Text {
    fn of(checked: &Checked<'_>) -> Text {
        let mut text = Text { path: checked.path.to_owned(), record: None, id: None, example: None };
        match &checked.part {
            Part::Whole => {}
            Part::Record { line, id } => (text.record, text.id) = (Some(*line), id.clone()),
            Part::Example { number, .. } => text.example = Some(*number),
        }
        text.settle();
        text
    }

    /// Drops details that may differ between two runs over the same text.
    fn settle(&mut self) {
        while let Some(rest) = self.path.strip_prefix("./") {
            self.path = rest.to_owned();
        }
        if self.id.is_some() {
            self.record = None;
        }
    }
}

impl Fault {
    fn of(finding: &Finding) -> Fault {
        Fault {
            rule: finding.rule.clone().into_owned(),
            code: finding.code.clone().into_owned(),
            severity: finding.severity,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Change { text: Text { path, record, id, example }, fault, count } = self;
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
        let name: String = name.chars().map(visible).collect();
        write!(f, "{name}: {}: {} {}", word(fault.severity), fault.rule, fault.code)?;
        if *count > 1 { write!(f, ", {count} times") } else { Ok(()) }
    }
}

/// Most changes of each kind that the printed comparison lists.
const SHOWN: usize = 50;

impl Comparison {
    /// Formats the comparison for people.
    pub(super) fn lines(&self) -> String {
        let mut out = String::new();
        for (kind, changes) in [("new", &self.new), ("gone", &self.gone)] {
            for change in changes.iter().take(SHOWN) {
                out += &format!("{kind}: {change}\n");
            }
            if changes.len() > SHOWN {
                out += &format!("{kind}: {} more\n", changes.len() - SHOWN);
            }
        }
        let sum = |changes: &[Change]| changes.iter().map(|change| change.count).sum::<usize>();
        let (new, gone) = (sum(&self.new), sum(&self.gone));
        out += &format!("compared with the baseline: {new} new (errors: {}), {gone} gone", self.new_errors);
        if self.not_checked > 0 {
            let texts = tambour::texts::counted(self.not_checked, "text");
            out += &format!("; {texts} of the baseline not checked now");
        }
        out + "\n"
    }
}
