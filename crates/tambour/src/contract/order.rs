//! Checks of the order of contract events (J-015 to J-024).
//!
//! ```text
//! serp_summary?  thinking_start  ( phase_start  phase_delta* )+  thinking_end  final_delta+  serp_queries?
//! final_end
//! ```
//!
//! Each rule looks at the events seen so far, not at a position in the grammar: one misplaced event gives one
//! finding and does not affect the rules for the events around it.

use std::collections::HashSet;

use super::rules;
use crate::finding::{FindingReport, Rule};
use crate::span::Extent;

/// A contract event, without its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContractEvent {
    SerpSummary,
    ThinkingStart,
    PhaseStart(PhaseId),
    PhaseDelta(PhaseId),
    ThinkingEnd,
    FinalDelta,
    SerpQueries,
    FinalEnd,
}

/// Id of a phase event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PhaseId {
    /// A positive integer.
    Known(u64),
    /// Missing, not a positive integer, or in fields that could not be parsed.
    Unreadable,
}

/// Checker of the order of events: the events seen so far.
#[derive(Debug, Default)]
pub(super) struct OrderChecker {
    /// True if a stream may have no thinking at all.
    allow_missing_thinking: bool,
    /// True if any contract event other than `serp_summary` was seen.
    has_body: bool,
    has_summary: bool,
    has_thinking_start: bool,
    /// First event that needs a `thinking_start` before it and has none.
    first_orphan: Option<Extent>,
    /// Extension events before any `thinking_start`, until it is known whether one follows.
    early_extensions: Vec<(Extent, String)>,
    /// Number of `phase_start` events.
    phase_count: usize,
    /// First `phase_start`.
    first_phase: Option<Extent>,
    /// Id of the last `phase_start`.
    current_phase: Option<PhaseId>,
    /// Readable ids of all `phase_start` events.
    started_phases: HashSet<u64>,
    has_thinking_end: bool,
    has_final_delta: bool,
    queries: QueriesStage,
    /// First `final_end`.
    final_end: Option<Extent>,
}

/// Position relative to `serp_queries`.
#[derive(Clone, Copy, Debug, Default)]
enum QueriesStage {
    /// No `serp_queries` so far.
    #[default]
    Absent,
    /// Directly after this `serp_queries`: only `final_end` may follow.
    Open(Extent),
    /// Another event followed `serp_queries`, or it came after `final_end`.
    Past,
}

impl OrderChecker {
    pub(super) fn new(allow_missing_thinking: bool) -> OrderChecker {
        OrderChecker { allow_missing_thinking, ..OrderChecker::default() }
    }

    /// Checks the next contract event.
    pub(super) fn check_contract_event(
        &mut self,
        event: ContractEvent,
        at: Extent,
        out: &mut Vec<FindingReport>,
    ) {
        if !matches!(event, ContractEvent::SerpQueries | ContractEvent::FinalEnd)
            && let QueriesStage::Open(queries) = self.queries
        {
            self.queries = QueriesStage::Past;
            out.push(misplaced_queries(queries, "serp_queries is followed by an event other than final_end"));
        }
        // The checks below get this flag, so that they report no second fault of order.
        let is_after_final = self.final_end.is_some() && event != ContractEvent::FinalEnd;
        if is_after_final {
            let message = format!("{} after final_end", event.name());
            out.push(fault_report(rules::EVENT_AFTER_FINAL_END, at, message));
        }
        match event {
            ContractEvent::SerpSummary => self.check_serp_summary(at, is_after_final, out),
            ContractEvent::ThinkingStart => self.check_thinking_start(at, is_after_final, out),
            ContractEvent::PhaseStart(id) => self.check_phase_start(id, at, is_after_final, out),
            ContractEvent::PhaseDelta(id) => self.check_phase_delta(id, at, is_after_final, out),
            ContractEvent::ThinkingEnd => self.check_thinking_end(at, out),
            ContractEvent::FinalDelta => self.check_final_delta(at, is_after_final, out),
            ContractEvent::SerpQueries => self.check_serp_queries(at, is_after_final, out),
            ContractEvent::FinalEnd => {
                if self.final_end.is_some() {
                    out.push(fault_report(rules::FINAL_END_DUPLICATE, at, "a second final_end"));
                } else {
                    self.final_end = Some(at);
                }
                if let QueriesStage::Open(_) = self.queries {
                    self.queries = QueriesStage::Past;
                }
            }
        }
        self.has_body |= event != ContractEvent::SerpSummary;
    }

    /// Checks an extension event. Only its position matters; it does not affect contract events (X-010).
    pub(super) fn check_extension(&mut self, name: &str, at: Extent, out: &mut Vec<FindingReport>) {
        if self.final_end.is_some() {
            let message = format!("{name} after final_end");
            out.push(fault_report(rules::EVENT_AFTER_FINAL_END, at, message).with_row("X-010"));
        } else if !self.has_thinking_start && !matches!(name, "draft_delta" | "notice" | "finding") {
            self.early_extensions.push((at, name.to_owned()));
        }
    }

    /// Checks the end of the stream at `end`. `is_failed` is true if the terminal event was `error`.
    pub(super) fn finish(&mut self, is_failed: bool, end: Extent, out: &mut Vec<FindingReport>) {
        if !self.has_events() && is_failed {
            return; // X-001: failed before its first contract event.
        }
        // A missing event that belongs before `final_end` is reported at `final_end`, if there is one.
        let missing_at = self.final_end.unwrap_or(end);
        if !self.is_thinking_omitted() {
            if !self.has_thinking_start {
                out.push(fault_report(
                    rules::THINKING_START_MISSING,
                    self.first_orphan.unwrap_or(missing_at),
                    "no thinking_start",
                ));
            }
            // With a `thinking_end` the missing phase was reported there.
            if self.phase_count == 0 && !self.has_thinking_end {
                out.push(fault_report(rules::PHASE_MISSING, missing_at, "thinking without a phase"));
            }
            if !self.has_thinking_end {
                out.push(fault_report(rules::THINKING_END_MISSING, missing_at, "no thinking_end"));
            }
        }
        if !self.has_final_delta {
            out.push(fault_report(rules::FINAL_DELTA_MISSING, missing_at, "no final_delta"));
        }
        if self.final_end.is_none() {
            out.push(fault_report(rules::FINAL_END_MISSING, end, "no final_end"));
        }
        if let (1, Some(phase)) = (self.phase_count, self.first_phase) {
            out.push(fault_report(rules::SINGLE_PHASE, phase, "only one phase"));
        }
    }

    /// Returns whether any contract event was seen.
    fn has_events(&self) -> bool {
        self.has_summary || self.has_body
    }

    /// Returns whether the stream has no thinking so far, and is allowed to have none.
    fn is_thinking_omitted(&self) -> bool {
        self.allow_missing_thinking && !self.has_thinking_start && self.first_orphan.is_none()
    }

    fn check_serp_summary(&mut self, at: Extent, is_after_final: bool, out: &mut Vec<FindingReport>) {
        if self.has_summary {
            out.push(fault_report(rules::SERP_SUMMARY_DUPLICATE, at, "a second serp_summary"));
        }
        if self.has_body && !is_after_final {
            out.push(fault_report(
                rules::SERP_SUMMARY_LATE,
                at,
                "serp_summary after the thinking or the answer began",
            ));
        }
        self.has_summary = true;
    }

    fn check_thinking_start(&mut self, at: Extent, is_after_final: bool, out: &mut Vec<FindingReport>) {
        if self.has_thinking_start {
            out.push(fault_report(rules::THINKING_START_DUPLICATE, at, "a second thinking_start"));
            return;
        }
        self.has_thinking_start = true;
        for (extent, name) in std::mem::take(&mut self.early_extensions) {
            out.push(fault_report(
                rules::EXTENSION_MISPLACED,
                extent,
                format!("{name} before thinking_start"),
            ));
        }
        if !is_after_final && (self.first_orphan.is_some() || self.has_final_delta) {
            out.push(fault_report(
                rules::ORDER_INVALID,
                at,
                "thinking_start after events that it should precede",
            ));
        }
    }

    /// Records the first event that needs a `thinking_start` before it and has none.
    fn record_orphan(&mut self, at: Extent) {
        if !self.has_thinking_start && self.first_orphan.is_none() {
            self.first_orphan = Some(at);
        }
    }

    fn check_phase_start(
        &mut self,
        id: PhaseId,
        at: Extent,
        is_after_final: bool,
        out: &mut Vec<FindingReport>,
    ) {
        self.record_orphan(at);
        if self.has_thinking_end && !is_after_final {
            out.push(fault_report(rules::PHASE_AFTER_THINKING_END, at, "phase_start after thinking_end"));
        }
        if let PhaseId::Known(id) = id {
            match self.current_phase {
                Some(PhaseId::Known(previous)) if id <= previous => {
                    let message = format!("phase id {id} after {previous}");
                    out.push(fault_report(rules::PHASE_ID_NOT_INCREASING, at, message));
                }
                Some(PhaseId::Known(previous)) if id - previous > 1 => {
                    let message = format!("phase id {id} after {previous}");
                    out.push(fault_report(rules::PHASE_ID_NOT_CONSECUTIVE, at, message));
                }
                None if id != 1 => {
                    let message = format!("the first phase has id {id}");
                    out.push(fault_report(rules::PHASE_ID_NOT_CONSECUTIVE, at, message));
                }
                _ => {}
            }
            self.started_phases.insert(id);
        }
        self.current_phase = Some(id);
        self.phase_count += 1;
        self.first_phase.get_or_insert(at);
    }

    fn check_phase_delta(
        &mut self,
        id: PhaseId,
        at: Extent,
        is_after_final: bool,
        out: &mut Vec<FindingReport>,
    ) {
        self.record_orphan(at);
        if self.has_thinking_end && !is_after_final {
            out.push(fault_report(rules::PHASE_AFTER_THINKING_END, at, "phase_delta after thinking_end"));
        }
        match (self.current_phase, id) {
            (None, _) => {
                let report =
                    fault_report(rules::PHASE_DELTA_UNKNOWN, at, "phase_delta before any phase_start");
                out.push(report.with_row("J-017"));
            }
            (Some(PhaseId::Unreadable), _) => {}
            (Some(_), PhaseId::Unreadable) => {
                out.push(fault_report(rules::PHASE_DELTA_UNKNOWN, at, "phase_delta without a readable id"));
            }
            (Some(PhaseId::Known(current)), PhaseId::Known(id)) if id != current => {
                let (rule, message) = if self.started_phases.contains(&id) {
                    (rules::PHASE_DELTA_NOT_CURRENT, format!("phase_delta for phase {id} in phase {current}"))
                } else {
                    (
                        rules::PHASE_DELTA_UNKNOWN,
                        format!("phase_delta for phase {id}, which was never started"),
                    )
                };
                out.push(fault_report(rule, at, message));
            }
            _ => {}
        }
    }

    fn check_thinking_end(&mut self, at: Extent, out: &mut Vec<FindingReport>) {
        if self.has_thinking_end {
            out.push(fault_report(rules::THINKING_END_DUPLICATE, at, "a second thinking_end"));
            return;
        }
        self.record_orphan(at);
        self.has_thinking_end = true;
        if self.phase_count == 0 {
            out.push(fault_report(rules::PHASE_MISSING, at, "thinking_end without a phase before it"));
        }
    }

    fn check_final_delta(&mut self, at: Extent, is_after_final: bool, out: &mut Vec<FindingReport>) {
        // One finding for the answer, not one for each delta.
        let is_first_delta = !self.has_final_delta;
        if is_first_delta && !self.has_thinking_end && !self.is_thinking_omitted() && !is_after_final {
            out.push(fault_report(rules::FINAL_BEFORE_THINKING_END, at, "final_delta before thinking_end"));
        }
        self.has_final_delta = true;
    }

    fn check_serp_queries(&mut self, at: Extent, is_after_final: bool, out: &mut Vec<FindingReport>) {
        if !matches!(self.queries, QueriesStage::Absent) {
            out.push(fault_report(rules::SERP_QUERIES_DUPLICATE_EVENT, at, "a second serp_queries"));
        }
        if is_after_final {
            out.push(misplaced_queries(at, "serp_queries after final_end"));
        }
        // Of several `serp_queries` in a row, only the first can be reported as followed by another event.
        self.queries = match self.queries {
            QueriesStage::Open(first) => QueriesStage::Open(first),
            QueriesStage::Absent | QueriesStage::Past if is_after_final => QueriesStage::Past,
            QueriesStage::Absent | QueriesStage::Past => QueriesStage::Open(at),
        };
    }
}

impl ContractEvent {
    /// Name of the event in the stream.
    fn name(self) -> &'static str {
        match self {
            ContractEvent::SerpSummary => "serp_summary",
            ContractEvent::ThinkingStart => "thinking_start",
            ContractEvent::PhaseStart(_) => "phase_start",
            ContractEvent::PhaseDelta(_) => "phase_delta",
            ContractEvent::ThinkingEnd => "thinking_end",
            ContractEvent::FinalDelta => "final_delta",
            ContractEvent::SerpQueries => "serp_queries",
            ContractEvent::FinalEnd => "final_end",
        }
    }
}

/// Report of a fault against `rule`, citing the rule's first row of the specification.
pub(super) fn fault_report(rule: &'static Rule, at: Extent, message: impl Into<String>) -> FindingReport {
    FindingReport::new(rule, at.place, at.end, message)
}

fn misplaced_queries(at: Extent, message: &str) -> FindingReport {
    fault_report(rules::SERP_QUERIES_MISPLACED, at, message)
}
