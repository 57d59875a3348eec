//! Phase numbering: reads the model's phase ids and assigns deltas to phases (J-007, J-008, J-010, J-017).

use std::collections::HashSet;

use serde_json::Value;

use super::reports::EventReports;
use super::rules;
use crate::dialect::{Intent, IntentSink};
use crate::finding::clip;
use crate::span::Place;

/// The phases seen so far.
#[derive(Default)]
pub(super) struct PhaseNumbering {
    /// Ids of the phases the model itself began.
    ids: HashSet<u64>,
    /// Number of phases the model itself began, late ones included.
    real_count: u32,
    /// Id of the current phase, as it was read.
    current_id: Option<u64>,
    /// Id of the current phase, as it was written.
    written_id: Option<Value>,
    /// Id that the next one must exceed; 0 before the first.
    last_id: u64,
    /// Set if `last_id` comes only from a delta, whose phase may still begin.
    is_last_from_delta: bool,
}

impl PhaseNumbering {
    /// Returns the number of phases the model itself began.
    pub(super) fn count(&self) -> u32 {
        self.real_count
    }

    /// Returns true if a phase has begun.
    pub(super) fn is_open(&self) -> bool {
        self.current_id.is_some()
    }

    /// Begins a phase with this id.
    pub(super) fn start(&mut self, id: Option<&Value>, at: Place, reports: &mut EventReports) {
        self.real_count += 1;
        let number = self.read_number(id, at, reports);
        (self.last_id, self.is_last_from_delta) = (number, false);
        self.ids.insert(number);
        self.current_id = Some(number);
        self.written_id = id.cloned();
    }

    /// Counts a phase that begins where none may; its text is discarded.
    pub(super) fn start_late(&mut self) {
        self.real_count += 1;
        self.current_id = None;
    }

    /// Reads the id of a phase that begins, and reports its faults; an unusable id counts as the next number.
    fn read_number(&mut self, value: Option<&Value>, at: Place, reports: &mut EventReports) -> u64 {
        let expected_id = self.last_id.saturating_add(1);
        let Some(id) = value.and_then(Value::as_u64).filter(|&id| id > 0) else {
            let excerpt = value.map_or_else(|| "nothing".to_owned(), Value::to_string);
            let excerpt = clip(&excerpt, 40);
            let message = format!("the id of a phase must be a positive integer, not {excerpt}");
            reports.add(rules::PHASE_ID_INVALID, at, message, "numbered in order");
            return parse_lenient_id(value).filter(|&id| id > self.last_id).unwrap_or(expected_id);
        };
        if id == self.last_id && self.is_last_from_delta {
            return id;
        }
        if id <= self.last_id {
            let message = format!("phase {id} comes after phase {}", self.last_id);
            reports.add(rules::PHASE_ID_NOT_INCREASING, at, message, "numbered in order");
        } else if id != expected_id {
            let message = format!("phase {id} where phase {expected_id} is expected");
            reports.add(rules::PHASE_ID_NOT_CONSECUTIVE, at, message, "numbered in order");
        }
        id
    }

    /// Begins a delta for the phase with this id. If no phase has begun, one is started.
    pub(super) fn begin_delta(
        &mut self,
        value: &Value,
        at: Place,
        reports: &mut EventReports,
        out: &mut dyn IntentSink,
    ) {
        // Even an unusable id means the current phase, if that was written with the same one.
        let current_id = self.current_id.filter(|_| self.written_id.as_ref() == Some(value));
        let id = current_id.or_else(|| parse_lenient_id(Some(value))).unwrap_or(0);
        match self.current_id {
            None => {
                let message = format!("phase {id} has not started");
                let repair = "a phase with the fallback title";
                reports.add_on_row(rules::DELTA_UNKNOWN, "J-017", at, message, repair);
                self.current_id = Some(id);
                self.written_id = Some(value.clone());
                self.is_last_from_delta = id > self.last_id;
                self.last_id = self.last_id.max(id);
                out.emit_intent(Intent::Phase("".into(), at));
            }
            Some(current) if current == id && self.ids.contains(&id) => {}
            Some(current) => {
                let has_started = self.ids.contains(&id);
                let rule = if has_started { rules::DELTA_NOT_CURRENT } else { rules::DELTA_UNKNOWN };
                let message = format!("a delta for phase {id} while phase {current} is the last one");
                reports.add(rule, at, message, "text of the last phase");
            }
        }
    }
}

/// Reads a positive integer, also one written as a string or as `1.0`; `None` for anything else.
pub(super) fn parse_lenient_id(value: Option<&Value>) -> Option<u64> {
    let id = match value? {
        Value::Number(number) => {
            number.as_u64().or_else(|| number.as_f64().filter(|id| id.fract() == 0.0).map(|id| id as u64))
        }
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    id.filter(|&id| id > 0)
}
