//! Findings on their way to the output. Text before the first event is dropped only if an event follows, so
//! findings are held back until then. A reply without events is the answer as written, and its held-back
//! findings are never emitted.

use crate::dialect::IntentSink;
use crate::finding::{FindingReport, Rule};
use crate::span::{Extent, Place};

/// Findings held back until the first event, then passed on at once.
#[derive(Debug)]
pub(super) struct PendingReports {
    /// `None` once an event has been seen.
    held: Option<Vec<FindingReport>>,
    /// Maximum number of findings held back.
    max_held: usize,
}

impl PendingReports {
    pub(super) fn new(max_held: usize) -> PendingReports {
        PendingReports { held: Some(Vec::new()), max_held }
    }

    /// Emits a finding, or holds it back until the first event.
    pub(super) fn add(&mut self, report: FindingReport, out: &mut dyn IntentSink) {
        match &mut self.held {
            None => out.report(report),
            Some(held_reports) if held_reports.len() < self.max_held => held_reports.push(report),
            Some(held_reports) => {
                // The last finding is extended over all further ones.
                if let Some(last) = held_reports.last_mut() {
                    last.end = last.end.max(report.end);
                }
            }
        }
    }

    /// Discards held-back findings: the text they are about is not part of the reply.
    pub(super) fn discard(&mut self) {
        if let Some(held_reports) = &mut self.held {
            held_reports.clear();
        }
    }

    /// Returns true once an event has been seen.
    pub(super) fn has_begun(&self) -> bool {
        self.held.is_none()
    }

    /// Marks the first event and emits the held-back findings.
    #[inline]
    pub(super) fn release(&mut self, out: &mut dyn IntentSink) {
        if let Some(held_reports) = self.held.take() {
            held_reports.into_iter().for_each(|report| out.report(report));
        }
    }
}

/// Findings on the current event, kept until its end is known.
#[derive(Debug, Default)]
pub(super) struct EventReports(Vec<FindingReport>);

impl EventReports {
    /// Adds a finding on the event that starts at `at`, on the first row of the rule.
    pub(super) fn add(&mut self, rule: &'static Rule, at: Place, message: impl Into<String>, repair: &str) {
        self.add_on_row(rule, rule.rows[0], at, message, repair);
    }

    /// Adds a finding on the event that starts at `at`, on this row of the rule.
    pub(super) fn add_on_row(
        &mut self,
        rule: &'static Rule,
        row: &'static str,
        at: Place,
        message: impl Into<String>,
        repair: &str,
    ) {
        self.add_at(rule, row, Extent::empty(at), message, repair);
    }

    /// Adds a finding on a part of the event; an empty extent means from its place to the end of the event.
    pub(super) fn add_at(
        &mut self,
        rule: &'static Rule,
        row: &'static str,
        Extent { place, end }: Extent,
        message: impl Into<String>,
        repair: &str,
    ) {
        self.0.push(FindingReport::new(rule, place, end, message).with_row(row).with_repair(repair));
    }

    /// Emits the findings, or holds them back, now that the event is known to end at the offset `end`.
    pub(super) fn flush(&mut self, end: usize, pending: &mut PendingReports, out: &mut dyn IntentSink) {
        for mut report in self.0.drain(..) {
            if report.end == report.place.offset {
                report.end = end;
            }
            pending.add(report, out);
        }
    }
}
