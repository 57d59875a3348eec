//! Counts of broken rules over all texts.

use std::collections::BTreeMap;

use serde::Serialize;
use tambour::Severity;
use tambour::texts::format_count;
use tambour::verdict::Verdict;

use crate::output::severity_name;

/// Counts by severity, row of the specification and code.
#[derive(Default)]
pub(crate) struct RuleSummary(BTreeMap<(Severity, String, String), RuleViolations>);

/// Counts of one broken rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct RuleViolations {
    /// Number of findings in all texts.
    pub(crate) findings: usize,
    /// Number of texts with at least one finding.
    pub(crate) texts: usize,
}

/// Row of the summary.
#[derive(Serialize)]
pub(crate) struct RuleSummaryRow<'a> {
    pub(crate) rule: &'a str,
    pub(crate) code: &'a str,
    pub(crate) severity: Severity,
    #[serde(flatten)]
    pub(crate) violations: RuleViolations,
}

impl RuleSummary {
    /// Adds the findings of a text.
    pub(crate) fn add(&mut self, verdict: &Verdict) {
        let mut text_counts: BTreeMap<(Severity, &str, &str), usize> = BTreeMap::new();
        for finding in &verdict.findings {
            *text_counts.entry((finding.severity, &finding.rule, &finding.code)).or_default() += 1;
        }
        for ((severity, rule, code), findings) in text_counts {
            let violations = self.0.entry((severity, rule.to_owned(), code.to_owned())).or_default();
            violations.findings += findings;
            violations.texts += 1;
        }
    }

    /// Rows sorted by severity, errors first, then by number of findings and of texts, largest first.
    pub(crate) fn rows(&self) -> Vec<RuleSummaryRow<'_>> {
        let mut rows: Vec<RuleSummaryRow<'_>> = self
            .0
            .iter()
            .map(|((severity, rule, code), violations)| RuleSummaryRow {
                rule,
                code,
                severity: *severity,
                violations: *violations,
            })
            .collect();
        rows.sort_by_key(|row| {
            let RuleViolations { findings, texts } = row.violations;
            std::cmp::Reverse((row.severity, findings, texts))
        });
        rows
    }

    /// Formats the rows for people, one a line.
    pub(super) fn format(&self) -> String {
        let rows = self.rows();
        if rows.is_empty() {
            return "no rule was broken\n".to_owned();
        }
        let name = |row: &RuleSummaryRow<'_>| format!("{} {}", row.rule, row.code);
        let width = rows.iter().map(|row| name(row).len()).max().unwrap_or_default();
        rows.iter()
            .map(|row| {
                let RuleViolations { findings, texts } = row.violations;
                let (findings, texts) = (format_count(findings, "finding"), format_count(texts, "text"));
                format!("{:7}  {:width$}  {findings} in {texts}\n", severity_name(row.severity), name(row))
            })
            .collect()
    }
}
