//! Findings on their way to the output. Text before the first event is dropped only if an event follows, so
//! findings are held back until then; a reply without events is the answer as written and has none of them.

use crate::dialect::Output;
use crate::finding::{Report, Rule};
use crate::repair::json::Stand;
use crate::span::Place;

/// Findings held back until the first event, then passed on at once.
#[derive(Debug)]
pub(super) struct Told {
    waiting: Option<Vec<Report>>,
    /// Most findings held back.
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
                // The last finding is extended to cover all that follow.
                if let Some(last) = waiting.last_mut() {
                    last.end = last.end.max(report.end);
                }
            }
        }
    }

    /// Discards held-back findings: the text they are about is not part of the reply.
    pub(super) fn forget(&mut self) {
        if let Some(waiting) = &mut self.waiting {
            waiting.clear();
        }
    }

    /// Returns true once an event has been seen.
    pub(super) fn begun(&self) -> bool {
        self.waiting.is_none()
    }

    /// Marks the first event and emits the held-back findings.
    #[inline]
    pub(super) fn begin(&mut self, out: &mut dyn Output) {
        if let Some(waiting) = self.waiting.take() {
            waiting.into_iter().for_each(|report| out.report(report));
        }
    }
}

/// Findings on the current event, kept until its end is known.
#[derive(Debug, Default)]
pub(super) struct Reports(Vec<Report>);

impl Reports {
    /// Adds a finding on the event and on the first row of the rule.
    pub(super) fn found(&mut self, rule: &'static Rule, at: Place, message: impl Into<String>, repair: &str) {
        self.found_on(rule, rule.rows[0], at, message, repair);
    }

    /// Adds a finding on the event, on another row of the rule.
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

    /// Adds a finding on a part of the event; an empty extent means the whole event.
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

    /// Emits the findings, now that the end of the event is known.
    pub(super) fn flush(&mut self, end: usize, told: &mut Told, out: &mut dyn Output) {
        for mut report in self.0.drain(..) {
            if report.end == report.place.offset {
                report.end = end;
            }
            told.add(report, out);
        }
    }
}
