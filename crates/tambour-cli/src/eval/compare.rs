//! Comparison of a run with an earlier one.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::figures::{REPORT_VERSION, Report, ReportRow, percent};
use super::folder;
use super::plan::first_difference;
use super::stats::{Drop, Share};
use crate::output;

/// Report of an earlier run: the parts that a comparison needs.
#[derive(Deserialize)]
pub(super) struct Baseline {
    version: u32,
    basis: Value,
    rows: Vec<BaselineRow>,
}

#[derive(Deserialize)]
struct BaselineRow {
    source: String,
    model: String,
    dialect: String,
    replies: u64,
    valid: Share,
    repaired: Share,
    usable: Share,
    structured: Share,
}

/// Result of a comparison.
#[derive(Serialize)]
pub(super) struct Comparison {
    /// Largest drop that is accepted, as a share.
    pub(super) max_drop: f64,
    pub(super) shares: Vec<ShareComparison>,
    /// Rows of the earlier run that this one lacks, and rows without a reply.
    pub(super) missing: Vec<String>,
    /// First field of the contract, the prompts or the parameters that differs, such as `prompts.sha256`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) difference: Option<String>,
}

/// Comparison of one share of a row.
#[derive(Serialize)]
pub(super) struct ShareComparison {
    pub(super) row: String,
    /// `valid`, `repaired`, `usable` or `structured`.
    pub(super) figure: &'static str,
    pub(super) before: f64,
    pub(super) after: f64,
    #[serde(flatten)]
    pub(super) drop: Drop,
    /// True if the whole interval of the drop lies above the bound.
    pub(super) is_regression: bool,
}

impl Baseline {
    /// Reads the report of a run, given as its folder or as the file.
    ///
    /// # Errors
    /// There is no report: the run is not finished. Or the file is none.
    pub(super) fn read(run: &Path) -> Result<Baseline> {
        let path = folder::report_path(run);
        if run.is_dir() && !path.exists() {
            bail!("--compare: {} has no report: the run is not finished", run.display());
        }
        let baseline: Baseline = folder::read_json(&path).context("--compare: not the report of a run")?;
        if baseline.version != REPORT_VERSION {
            bail!(
                "--compare: {} is a report of version {}, not {REPORT_VERSION}",
                path.display(),
                baseline.version
            );
        }
        if baseline.rows.iter().any(|row| !row.is_consistent()) {
            bail!("--compare: {} counts more replies than there are", path.display());
        }
        Ok(baseline)
    }

    /// Compares a report with this one. `max_drop` is a share.
    pub(super) fn compare(&self, report: &Report, max_drop: f64) -> Comparison {
        let difference = first_difference(&self.basis, &report.basis);
        let mut comparison = Comparison { max_drop, shares: Vec::new(), missing: Vec::new(), difference };
        for old in self.rows.iter().filter(|row| row.replies > 0) {
            let is_same = |row: &&ReportRow| {
                row.source == old.source && row.model == old.model && row.dialect == old.dialect
            };
            let Some(new) = report.rows.iter().find(is_same).filter(|row| row.replies > 0) else {
                comparison.missing.push(format!("{} · {} · {}", old.source, old.model, old.dialect));
                continue;
            };
            let figures = [
                ("valid", old.valid, new.valid),
                ("repaired", old.repaired, new.repaired),
                ("usable", old.usable, new.usable),
                ("structured", old.structured, new.structured),
            ];
            for (figure, before, after) in figures {
                let drop = Drop::new((before.count, old.replies), (after.count, new.replies));
                comparison.shares.push(ShareComparison {
                    row: new.label(),
                    figure,
                    before: before.share,
                    after: after.share,
                    drop,
                    is_regression: drop.low > max_drop,
                });
            }
        }
        comparison
    }
}

impl BaselineRow {
    fn is_consistent(&self) -> bool {
        [self.valid, self.repaired, self.usable, self.structured]
            .iter()
            .all(|share| share.count <= self.replies)
    }
}

impl Comparison {
    /// Returns `true` if a share dropped beyond the bound, or a row is missing.
    pub(super) fn is_failed(&self) -> bool {
        !self.missing.is_empty() || self.shares.iter().any(|share| share.is_regression)
    }

    /// Returns a line for each share that changed or dropped beyond the bound, for each missing row, and for a
    /// difference of what was measured.
    pub(super) fn lines(&self) -> Vec<String> {
        let note = self.difference.iter().map(|field| format!("note: the earlier run has another `{field}`"));
        let missing = self.missing.iter().map(|row| format!("missing: {row} has no reply in this run"));
        let shares = self.shares.iter().filter(|share| share.is_regression || share.before != share.after);
        let lines = note.chain(missing).chain(shares.map(ShareComparison::line));
        lines.map(|line| line.chars().map(output::visible_char).collect()).collect()
    }
}

impl ShareComparison {
    /// Formats the comparison in one line.
    pub(super) fn line(&self) -> String {
        let verdict = if self.is_regression { "regression" } else { "changed" };
        let ShareComparison { row, figure, before, after, .. } = self;
        format!("{verdict}: {row}: {figure} {} → {}, {}", percent(*before), percent(*after), self.drop_text())
    }

    /// Formats the drop with its interval, in percentage points.
    pub(super) fn drop_text(&self) -> String {
        let Drop { drop, low, high } = self.drop;
        format!("drop {:.1} (95 %: {:.1} to {:.1}) points", drop * 100.0, low * 100.0, high * 100.0)
    }
}
