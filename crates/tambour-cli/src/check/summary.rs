//! Counts of broken rules over all texts.

use std::collections::BTreeMap;

use serde::Serialize;
use tambour::Severity;
use tambour::texts::counted;
use tambour::verdict::Verdict;

use crate::output::word;

/// Counts by severity, row and code.
#[derive(Default)]
pub(super) struct Summary(BTreeMap<(Severity, String, String), Broken>);

#[derive(Clone, Copy, Default, Serialize)]
struct Broken {
    /// Number of findings in all texts.
    findings: usize,
    /// Number of texts with at least one finding.
    texts: usize,
}

/// Row of the summary.
#[derive(Serialize)]
pub(super) struct Row<'a> {
    rule: &'a str,
    code: &'a str,
    severity: Severity,
    #[serde(flatten)]
    broken: Broken,
}

impl Summary {
    /// Adds the findings of a text.
    pub(super) fn add(&mut self, verdict: &Verdict) {
        let mut own: BTreeMap<(Severity, &str, &str), usize> = BTreeMap::new();
        for finding in &verdict.findings {
            *own.entry((finding.severity, &finding.rule, &finding.code)).or_default() += 1;
        }
        for ((severity, rule, code), findings) in own {
            let broken = self.0.entry((severity, rule.to_owned(), code.to_owned())).or_default();
            broken.findings += findings;
            broken.texts += 1;
        }
    }

    /// Rows sorted by severity, errors first, then by frequency.
    pub(super) fn rows(&self) -> Vec<Row<'_>> {
        let mut rows: Vec<Row<'_>> = self
            .0
            .iter()
            .map(|((severity, rule, code), broken)| Row { rule, code, severity: *severity, broken: *broken })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.severity, row.broken.findings, row.broken.texts)));
        rows
    }

    /// Formats the rows for people, one a line.
    pub(super) fn lines(&self) -> String {
        let rows = self.rows();
        if rows.is_empty() {
            return "no rule was broken\n".to_owned();
        }
        let name = |row: &Row<'_>| format!("{} {}", row.rule, row.code);
        let width = rows.iter().map(|row| name(row).len()).max().unwrap_or_default();
        rows.iter()
            .map(|row| {
                let Broken { findings, texts } = row.broken;
                let (findings, texts) = (counted(findings, "finding"), counted(texts, "text"));
                format!("{:7}  {:width$}  {findings} in {texts}\n", word(row.severity), name(row))
            })
            .collect()
    }
}
