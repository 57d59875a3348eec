//! One object held against the contract of plans (P-002 to P-016, P-028 to P-033).

use serde_json::{Map, Value};

use super::modes::{Calls, Mode, Text, mode, modes};
use super::rules;
use crate::event::ToolCall;
use crate::finding::Report;
use crate::options::Options;
use crate::span::Place;

/// The fields every plan has.
pub(super) const FIELDS: [&str; 4] = ["thought", "response_mode", "direct_response", "tool_calls"];

/// Wrong places of one call's arguments that are reported.
pub(super) const MISMATCHES: usize = 8;

/// Where the parts of an object stand.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    pub(super) start: Place,
    /// Keys of the object, each time one stands there.
    pub(super) keys: Vec<(String, Place)>,
    /// The first key of each item of `tool_calls`, where it has one.
    pub(super) calls: Vec<Option<Place>>,
}

impl Places {
    pub(super) fn key(&self, name: &str) -> Place {
        self.keys.iter().rev().find(|(key, _)| key == name).map_or(self.start, |(_, place)| *place)
    }

    pub(super) fn call(&self, index: usize) -> Place {
        self.calls.get(index).copied().flatten().unwrap_or_else(|| self.key("tool_calls"))
    }
}

/// A plan, and what was wrong with it.
#[derive(Clone, Debug, Default)]
pub(super) struct Checked {
    /// The object with what was repaired; the four fields first.
    pub(super) plan: Value,
    pub(super) calls: Vec<ToolCall>,
    pub(super) reports: Vec<Report>,
    /// Whether nothing forbids to use it.
    pub(super) valid: bool,
    /// Whether it calls tools, or means to.
    pub(super) acts: bool,
}

/// Holds `value` against the contract.
pub(super) fn check(value: Value, places: &Places, options: &Options) -> Checked {
    let Value::Object(fields) = value else {
        let found = Report::new(rules::PLAN_MISSING, places.start, places.start.offset, "this is no object");
        return Checked { plan: value, calls: Vec::new(), reports: vec![found], valid: false, acts: false };
    };
    let mut check = Check { fields, places, options, reports: Vec::new(), unknown: 0, valid: true };
    check.thought();
    let mode = check.mode();
    let calls = check.calls(mode);
    check.text(mode, calls.as_ref().is_some_and(|calls| !calls.is_empty()));
    check.others(mode);
    let written = check.fields.get("tool_calls");
    let acts = mode.is_some_and(|mode| mode.calls == Calls::Some)
        || written.is_some_and(|calls| calls.as_array().is_none_or(|calls| !calls.is_empty()));
    let Check { mut fields, reports, valid, .. } = check;
    let mut plan = Map::new();
    for name in FIELDS {
        plan.insert(name.to_owned(), fields.shift_remove(name).unwrap_or(Value::Null));
    }
    plan.extend(fields);
    Checked { plan: Value::Object(plan), calls: calls.unwrap_or_default(), reports, valid, acts }
}

pub(super) struct Check<'a> {
    pub(super) fields: Map<String, Value>,
    pub(super) places: &'a Places,
    pub(super) options: &'a Options,
    pub(super) reports: Vec<Report>,
    /// Calls of tools that there are not.
    pub(super) unknown: usize,
    pub(super) valid: bool,
}

impl Check<'_> {
    /// A fault that makes the plan invalid.
    pub(super) fn fault(&mut self, report: Report) {
        self.valid = false;
        self.reports.push(report);
    }

    /// Whether a field is there. `null` counts only where it means something (P-002).
    pub(super) fn present(&mut self, name: &'static str) -> bool {
        let there = self
            .fields
            .get(name)
            .is_some_and(|value| !value.is_null() || matches!(name, "direct_response" | "tool_calls"));
        if !there {
            let place = self.places.key(name);
            let what = if self.fields.contains_key(name) { "is null" } else { "is missing" };
            self.fault(Report::new(rules::FIELD_MISSING, place, place.offset, format!("`/{name}` {what}")));
        }
        there
    }

    pub(super) fn type_fault(&mut self, name: &str, wanted: &str, row: &'static str) {
        let place = self.places.key(name);
        let message = format!("`/{name}` is {}, not {wanted}", kind(&self.fields[name]));
        self.fault(Report::new(rules::FIELD_TYPE, place, place.offset, message).row(row));
    }

    fn thought(&mut self) {
        if !self.present("thought") {
            return;
        }
        match &self.fields["thought"] {
            Value::String(text) if text.trim().is_empty() => {
                let place = self.places.key("thought");
                self.fault(Report::new(rules::THOUGHT_EMPTY, place, place.offset, "`/thought` is blank"));
            }
            Value::String(_) => {}
            _ => self.type_fault("thought", "a string", "P-003"),
        }
    }

    fn mode(&mut self) -> Option<&'static Mode> {
        if !self.present("response_mode") {
            return None;
        }
        let Value::String(word) = &self.fields["response_mode"] else {
            self.type_fault("response_mode", "a string", "P-006");
            return None;
        };
        let place = self.places.key("response_mode");
        let Some(mode) = mode(self.options.plan_variant, word) else {
            let names: Vec<&str> = modes(self.options.plan_variant).iter().map(|mode| mode.name).collect();
            let message = format!("`/response_mode` is `{}`; it is one of {}", clip(word), names.join(", "));
            self.fault(Report::new(rules::MODE_INVALID, place, place.offset, message));
            return None;
        };
        if mode.name != word {
            let message = format!("`/response_mode` is written `{}`", clip(word));
            let found = Report::new(rules::MODE_INVALID, place, place.offset, message);
            self.reports.push(found.repaired(format!("read as {}", mode.name)));
            self.fields.insert("response_mode".to_owned(), Value::from(mode.name));
        }
        Some(mode)
    }

    fn text(&mut self, mode: Option<&Mode>, calls: bool) {
        if !self.present("direct_response") {
            return;
        }
        let text = match &self.fields["direct_response"] {
            Value::String(text) => Some(text),
            Value::Null => None,
            _ => return self.type_fault("direct_response", "a string or null", "P-013"),
        };
        let Some(mode) = mode else { return };
        let filled = text.is_some_and(|text| !text.trim().is_empty());
        let place = self.places.key("direct_response");
        match mode.text {
            Text::None if text.is_some() => {
                let message = format!("`/direct_response` is a text in a {} plan", mode.name);
                self.fault(Report::new(rules::DIRECT_NOT_NULL, place, place.offset, message));
            }
            Text::Some if !filled => self.no_text(mode, text.is_none(), place),
            Text::Any if !filled && (text.is_some() || !(calls || mode.field.is_some())) => {
                self.no_text(mode, text.is_none(), place);
            }
            _ => {}
        }
    }

    fn no_text(&mut self, mode: &Mode, null: bool, place: Place) {
        let what = if null { "null" } else { "blank" };
        let message = format!("`/direct_response` is {what} in a {} plan", mode.name);
        self.fault(Report::new(rules::DIRECT_EMPTY, place, place.offset, message).row(mode.rows.0));
    }

    /// Fields beyond the four.
    fn others(&mut self, mode: Option<&Mode>) {
        if let Some(name) = mode.and_then(|mode| mode.field) {
            match self.fields.get(name) {
                Some(Value::Object(_)) => {}
                Some(_) => self.type_fault(name, "an object", "R-30"),
                None => {
                    let place = self.places.start;
                    let message = format!("`/{name}` is missing");
                    self.fault(Report::new(rules::FIELD_MISSING, place, place.offset, message).row("R-30"));
                }
            }
        }
        let known = |name: &str| FIELDS.contains(&name) || mode.is_some_and(|mode| mode.field == Some(name));
        for name in self.fields.keys().filter(|name| !known(name)).take(MISMATCHES) {
            let place = self.places.key(name);
            let message = format!("`/{}` is not a field of plans", clip(name));
            self.reports.push(Report::new(rules::FIELD_UNKNOWN, place, place.offset, message));
        }
    }
}

pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// What a model wrote, short enough for a message.
pub(super) fn clip(text: &str) -> String {
    match text.char_indices().nth(60) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}
