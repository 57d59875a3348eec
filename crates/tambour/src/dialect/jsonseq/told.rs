//! Findings of the lines on their way out. What stands before the first event is left out only if one comes: until then
//! its findings wait, and a reply without events, which is the answer as it stands, has none of them.

use crate::dialect::Output;
use crate::finding::{Report, Rule};
use crate::repair::json::Stand;
use crate::span::Place;

/// Findings that wait for the first event, or go straight on.
#[derive(Debug)]
pub(super) struct Told {
    waiting: Option<Vec<Report>>,
    /// Most findings that wait.
    most: usize,
}

impl Told {
    pub(super) fn new(most: usize) -> Told {
        Told { waiting: Some(Vec::new()), most }
    }

    pub(super) fn add(&mut self, report: Report, out: &mut dyn Output) {
        match &mut self.waiting {
            None => out.report(report),
            Some(waiting) if waiting.len() < self.most => waiting.push(report),
            Some(waiting) => {
                // The last one stands for all that follow.
                if let Some(last) = waiting.last_mut() {
                    last.end = last.end.max(report.end);
                }
            }
        }
    }

    /// What came so far is no part of the reply: findings that wait are about nothing.
    pub(super) fn forget(&mut self) {
        if let Some(waiting) = &mut self.waiting {
            waiting.clear();
        }
    }

    /// Whether an event has come.
    pub(super) fn begun(&self) -> bool {
        self.waiting.is_none()
    }

    /// An event has come.
    #[inline]
    pub(super) fn begin(&mut self, out: &mut dyn Output) {
        if let Some(waiting) = self.waiting.take() {
            waiting.into_iter().for_each(|report| out.report(report));
        }
    }
}

/// Findings on the event under way, whose end is not known yet.
#[derive(Debug, Default)]
pub(super) struct Reports(Vec<Report>);

impl Reports {
    /// A finding on the event, and on the first row of the rule.
    pub(super) fn found(&mut self, rule: &'static Rule, at: Place, message: impl Into<String>, repair: &str) {
        self.found_on(rule, rule.rows[0], at, message, repair);
    }

    /// As `found`, on another row of the rule.
    pub(super) fn found_on(
        &mut self,
        rule: &'static Rule,
        row: &'static str,
        at: Place,
        message: impl Into<String>,
        repair: &str,
    ) {
        self.found_in(rule, row, (at, at.offset), message, repair);
    }

    /// As `found_on`, about a part of the event; an empty one is the event.
    pub(super) fn found_in(
        &mut self,
        rule: &'static Rule,
        row: &'static str,
        (at, end): Stand,
        message: impl Into<String>,
        repair: &str,
    ) {
        self.0.push(Report::new(rule, at, end, message).row(row).repaired(repair));
    }

    /// Hands them on, now that the end of the event is known.
    pub(super) fn flush(&mut self, end: usize, told: &mut Told, out: &mut dyn Output) {
        for mut report in self.0.drain(..) {
            if report.end == report.place.offset {
                report.end = end;
            }
            told.add(report, out);
        }
    }
}
