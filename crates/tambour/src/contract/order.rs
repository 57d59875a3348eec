//! Checks of the order of contract events (J-015 to J-024), by counting.
//!
//! ```text
//! serp_summary?  thinking_start  ( phase_start  phase_delta* )+  thinking_end  final_delta+  serp_queries?  final_end
//! ```
//!
//! Each rule looks at the events seen so far instead of a state: one misplaced event gives one finding and
//! does not affect the rules for the events around it.

use std::collections::HashSet;

use super::Extent;
use super::rules;
use crate::finding::{Report, Rule};

/// A contract event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    SerpSummary,
    ThinkingStart,
    PhaseStart(Id),
    PhaseDelta(Id),
    ThinkingEnd,
    FinalDelta,
    SerpQueries,
    FinalEnd,
}

/// Id of a phase event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Id {
    /// A positive integer.
    Known(u64),
    /// Unreadable; reported separately, with no further findings.
    Unreadable,
}

/// Events seen so far.
#[derive(Debug, Default)]
pub(super) struct Order {
    allow_missing_thinking: bool,
    /// True if any contract event was seen.
    any: bool,
    /// True if any contract event other than `serp_summary` was seen.
    body: bool,
    summary: bool,
    thinking_start: bool,
    /// First event that lacks the `thinking_start` it needs before it.
    orphan: Option<Extent>,
    /// Extension events before any `thinking_start`, until it is known whether one follows.
    early_extensions: Vec<(Extent, String)>,
    phases: usize,
    first_phase: Option<Extent>,
    current: Option<Id>,
    started: HashSet<u64>,
    thinking_end: bool,
    final_delta: bool,
    queries: bool,
    /// A `serp_queries` that only `final_end` may follow.
    open_queries: Option<Extent>,
    final_end: Option<Extent>,
}

impl Order {
    pub(super) fn new(allow_missing_thinking: bool) -> Order {
        Order { allow_missing_thinking, ..Order::default() }
    }

    /// Checks the next contract event.
    pub(super) fn contract(&mut self, part: Part, at: Extent, out: &mut Vec<Report>) {
        if !matches!(part, Part::SerpQueries | Part::FinalEnd)
            && let Some(queries) = self.open_queries.take()
        {
            out.push(misplaced(queries, "serp_queries is followed by another event than final_end"));
        }
        let late = self.final_end.is_some() && part != Part::FinalEnd;
        if late {
            let message = format!("{} after final_end", part.name());
            out.push(fault(rules::EVENT_AFTER_FINAL_END, at, message));
        }
        match part {
            Part::SerpSummary => self.serp_summary(at, late, out),
            Part::ThinkingStart => self.thinking_start(at, late, out),
            Part::PhaseStart(id) => self.phase_start(id, at, late, out),
            Part::PhaseDelta(id) => self.phase_delta(id, at, late, out),
            Part::ThinkingEnd => self.thinking_end(at, out),
            Part::FinalDelta => self.final_delta(at, late, out),
            Part::SerpQueries => self.serp_queries(at, late, out),
            Part::FinalEnd => {
                if self.final_end.is_some() {
                    out.push(fault(rules::FINAL_END_DUPLICATE, at, "a second final_end"));
                } else {
                    self.final_end = Some(at);
                }
                self.open_queries = None;
            }
        }
        self.any = true;
        self.body |= part != Part::SerpSummary;
    }

    /// Checks an extension event. Only its position matters; it does not affect contract events (X-010).
    pub(super) fn extension(&mut self, name: &str, at: Extent, out: &mut Vec<Report>) {
        if self.final_end.is_some() {
            let message = format!("{name} after final_end");
            out.push(fault(rules::EVENT_AFTER_FINAL_END, at, message).row("X-010"));
        } else if !self.thinking_start && !matches!(name, "draft_delta" | "notice" | "finding") {
            self.early_extensions.push((at, name.to_owned()));
        }
    }

    /// Checks the end of the stream; `failed` is whether its terminal event was `error`.
    pub(super) fn finish(&mut self, failed: bool, end: Extent, out: &mut Vec<Report>) {
        if !self.any && failed {
            return; // X-001: failed before its first contract event.
        }
        let close = self.final_end.unwrap_or(end);
        let no_thinking = !self.thinking_start && self.orphan.is_none();
        if !(self.allow_missing_thinking && no_thinking) {
            if !self.thinking_start {
                out.push(fault(
                    rules::THINKING_START_MISSING,
                    self.orphan.unwrap_or(close),
                    "no thinking_start",
                ));
            }
            if self.phases == 0 && !self.thinking_end {
                out.push(fault(rules::PHASE_MISSING, close, "thinking without a phase"));
            }
            if !self.thinking_end {
                out.push(fault(rules::THINKING_END_MISSING, close, "no thinking_end"));
            }
        }
        if !self.final_delta {
            out.push(fault(rules::FINAL_DELTA_MISSING, close, "no final_delta"));
        }
        if self.final_end.is_none() {
            out.push(fault(rules::FINAL_END_MISSING, end, "no final_end"));
        }
        if let (1, Some(phase)) = (self.phases, self.first_phase) {
            out.push(fault(rules::SINGLE_PHASE, phase, "only one phase"));
        }
    }

    fn serp_summary(&mut self, at: Extent, late: bool, out: &mut Vec<Report>) {
        if self.summary {
            out.push(fault(rules::SERP_SUMMARY_DUPLICATE, at, "a second serp_summary"));
        }
        if self.body && !late {
            out.push(fault(
                rules::SERP_SUMMARY_LATE,
                at,
                "serp_summary after the thinking or the answer began",
            ));
        }
        self.summary = true;
    }

    fn thinking_start(&mut self, at: Extent, late: bool, out: &mut Vec<Report>) {
        if self.thinking_start {
            out.push(fault(rules::THINKING_START_DUPLICATE, at, "a second thinking_start"));
            return;
        }
        self.thinking_start = true;
        for (early, name) in std::mem::take(&mut self.early_extensions) {
            out.push(fault(rules::EXTENSION_MISPLACED, early, format!("{name} before thinking_start")));
        }
        if !late && (self.orphan.is_some() || self.final_delta) {
            out.push(fault(rules::ORDER_INVALID, at, "thinking_start after events that it should precede"));
        }
    }

    /// Records the first event of a thinking that was not started.
    fn needs_start(&mut self, at: Extent) {
        if !self.thinking_start && self.orphan.is_none() {
            self.orphan = Some(at);
        }
    }

    fn phase_start(&mut self, id: Id, at: Extent, late: bool, out: &mut Vec<Report>) {
        self.needs_start(at);
        if self.thinking_end && !late {
            out.push(fault(rules::PHASE_AFTER_THINKING_END, at, "phase_start after thinking_end"));
        }
        if let Id::Known(id) = id {
            match self.current {
                Some(Id::Known(before)) if id <= before => {
                    let message = format!("phase id {id} after {before}");
                    out.push(fault(rules::PHASE_ID_NOT_INCREASING, at, message));
                }
                Some(Id::Known(before)) if id - before > 1 => {
                    let message = format!("phase id {id} after {before}");
                    out.push(fault(rules::PHASE_ID_NOT_CONSECUTIVE, at, message));
                }
                None if id != 1 => {
                    let message = format!("the first phase has id {id}");
                    out.push(fault(rules::PHASE_ID_NOT_CONSECUTIVE, at, message));
                }
                _ => {}
            }
            self.started.insert(id);
        }
        self.current = Some(id);
        self.phases += 1;
        self.first_phase.get_or_insert(at);
    }

    fn phase_delta(&mut self, id: Id, at: Extent, late: bool, out: &mut Vec<Report>) {
        self.needs_start(at);
        if self.thinking_end && !late {
            out.push(fault(rules::PHASE_AFTER_THINKING_END, at, "phase_delta after thinking_end"));
        }
        match (self.current, id) {
            (None, _) => {
                let report = fault(rules::PHASE_DELTA_UNKNOWN, at, "phase_delta before any phase_start");
                out.push(report.row("J-017"));
            }
            (Some(Id::Unreadable), _) => {}
            (Some(_), Id::Unreadable) => {
                out.push(fault(rules::PHASE_DELTA_UNKNOWN, at, "phase_delta without a readable id"));
            }
            (Some(Id::Known(current)), Id::Known(id)) if id != current => {
                let (code, message) = if self.started.contains(&id) {
                    (rules::PHASE_DELTA_NOT_CURRENT, format!("phase_delta for phase {id} in phase {current}"))
                } else {
                    (
                        rules::PHASE_DELTA_UNKNOWN,
                        format!("phase_delta for phase {id}, which was never started"),
                    )
                };
                out.push(fault(code, at, message));
            }
            _ => {}
        }
    }

    fn thinking_end(&mut self, at: Extent, out: &mut Vec<Report>) {
        if self.thinking_end {
            out.push(fault(rules::THINKING_END_DUPLICATE, at, "a second thinking_end"));
            return;
        }
        self.needs_start(at);
        self.thinking_end = true;
        if self.phases == 0 {
            out.push(fault(rules::PHASE_MISSING, at, "thinking_end without a phase before it"));
        }
    }

    fn final_delta(&mut self, at: Extent, late: bool, out: &mut Vec<Report>) {
        // One finding for the answer, not one for each delta.
        let skipped = self.allow_missing_thinking && !self.thinking_start && self.orphan.is_none();
        if !self.thinking_end && !self.final_delta && !skipped && !late {
            out.push(fault(rules::FINAL_BEFORE_THINKING_END, at, "final_delta before thinking_end"));
        }
        self.final_delta = true;
    }

    fn serp_queries(&mut self, at: Extent, late: bool, out: &mut Vec<Report>) {
        if self.queries {
            out.push(fault(rules::SERP_QUERIES_DUPLICATE_EVENT, at, "a second serp_queries"));
        }
        if late {
            out.push(misplaced(at, "serp_queries after final_end"));
        } else {
            self.open_queries.get_or_insert(at);
        }
        self.queries = true;
    }
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::SerpSummary => "serp_summary",
            Part::ThinkingStart => "thinking_start",
            Part::PhaseStart(_) => "phase_start",
            Part::PhaseDelta(_) => "phase_delta",
            Part::ThinkingEnd => "thinking_end",
            Part::FinalDelta => "final_delta",
            Part::SerpQueries => "serp_queries",
            Part::FinalEnd => "final_end",
        }
    }
}

/// Report on the main row of `rule`.
pub(super) fn fault(rule: &'static Rule, at: Extent, message: impl Into<String>) -> Report {
    Report::new(rule, at.place, at.end, message)
}

fn misplaced(at: Extent, message: &str) -> Report {
    fault(rules::SERP_QUERIES_MISPLACED, at, message)
}
