//! Reporting of the findings of one stream.

use super::FINDINGS_LIMIT;
use super::offsets::OffsetMap;
use crate::event::{Event, Sink};
use crate::finding::{Finding, FindingReport, Profile, Severity};
use crate::options::Options;
use crate::span::Place;

/// Judges findings, counts them and limits how many are listed.
pub(super) struct FindingReporter {
    /// Translates the offsets of findings to the reply as received.
    pub(super) offsets: OffsetMap,
    profile: Profile,
    /// Set if only the first finding of the stream is listed.
    is_first_only: bool,
    /// Maximum number of findings that are listed.
    limit: usize,
    /// Number of findings so far, listed or not.
    count: usize,
    /// Number of findings that were not listed.
    unlisted: usize,
    /// Set once an error was reported.
    has_error: bool,
    /// Number of findings with a repair.
    pub(super) repairs: u32,
    /// Number of findings of severity warning or error.
    pub(super) warnings: u32,
    /// Place of the last finding, listed or not.
    last_place: Place,
}

impl FindingReporter {
    pub(super) fn new(options: &Options) -> FindingReporter {
        FindingReporter {
            offsets: OffsetMap::default(),
            profile: options.profile,
            is_first_only: options.first_only,
            limit: if options.first_only { 1 } else { options.limits.findings },
            count: 0,
            unlisted: 0,
            has_error: false,
            repairs: 0,
            warnings: 0,
            last_place: Place::START,
        }
    }

    /// Takes over the counts of the previous reply of the same stream. Its last place is not taken over,
    /// since places count from the start of each reply.
    pub(super) fn carry_over(&mut self, previous_reporter: &FindingReporter) {
        self.count = previous_reporter.count;
        self.unlisted = previous_reporter.unlisted;
        self.has_error = previous_reporter.has_error;
        self.repairs = previous_reporter.repairs;
        self.warnings = previous_reporter.warnings;
    }

    /// Judges and counts a finding, and lists it within the limit; with `sends_event` it is also sent as an
    /// event.
    pub(super) fn add(&mut self, report: FindingReport, sends_event: bool, sink: &mut dyn Sink) {
        self.last_place = report.place;
        let finding = report.judge(self.profile);
        self.repairs += u32::from(finding.repair.is_some());
        self.warnings += u32::from(finding.severity >= Severity::Warning);
        self.count += 1;
        // The first error decides a verdict, so it is listed no matter how many lesser findings came before
        // it.
        let is_first_error =
            finding.severity == Severity::Error && !std::mem::replace(&mut self.has_error, true);
        if self.count <= self.limit || (is_first_error && !self.is_first_only) {
            self.emit(finding, sends_event, sink);
        } else {
            self.unlisted += 1;
        }
    }

    /// Reports the number of findings that were not listed; with `sends_event` this report is also sent as an
    /// event.
    pub(super) fn finish(&mut self, sink: &mut dyn Sink, sends_event: bool) {
        if self.unlisted > 0 && !self.is_first_only {
            let message = format!("{} more findings are not listed", self.unlisted);
            let report = FindingReport::new(FINDINGS_LIMIT, self.last_place, self.last_place.offset, message);
            self.emit(report.judge(self.profile), sends_event, sink);
        }
    }

    fn emit(&self, finding: Finding, sends_event: bool, sink: &mut dyn Sink) {
        let finding = self.offsets.locate(finding);
        if sends_event {
            sink.event(Event::Finding(Box::new(finding.clone())));
        }
        sink.finding(finding);
    }
}
