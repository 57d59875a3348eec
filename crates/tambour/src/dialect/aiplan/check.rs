//! One object held against the contract of plans (P-002 to P-016, P-028 to P-033).

use serde_json::{Map, Value};

use super::modes::{Calls, Mode, Text, mode, modes};
use super::rules;
use crate::event::ToolCall;
use crate::finding::Report;
use crate::options::Options;
use crate::repair::json;
use crate::repair::rules as json_rules;
use crate::span::Place;
use crate::tool::Tool;

/// The fields every plan has.
pub(super) const FIELDS: [&str; 4] = ["thought", "response_mode", "direct_response", "tool_calls"];

/// Wrong places of one call's arguments that are reported.
const MISMATCHES: usize = 8;

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

    fn call(&self, index: usize) -> Place {
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

struct Check<'a> {
    fields: Map<String, Value>,
    places: &'a Places,
    options: &'a Options,
    reports: Vec<Report>,
    /// Calls of tools that there are not.
    unknown: usize,
    valid: bool,
}

impl Check<'_> {
    /// A fault that makes the plan invalid.
    fn fault(&mut self, report: Report) {
        self.valid = false;
        self.reports.push(report);
    }

    /// Whether a field is there. `null` counts only where it means something (P-002).
    fn present(&mut self, name: &'static str) -> bool {
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

    fn type_fault(&mut self, name: &str, wanted: &str, row: &'static str) {
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

    /// The calls; `None` when they cannot be read as such.
    fn calls(&mut self, mode: Option<&Mode>) -> Option<Vec<ToolCall>> {
        if !self.present("tool_calls") {
            return None;
        }
        let place = self.places.key("tool_calls");
        if !self.fields["tool_calls"].is_array() {
            self.type_fault("tool_calls", "a list", "P-014");
            return None;
        }
        let Some(Value::Array(mut written)) = self.fields.get_mut("tool_calls").map(Value::take) else {
            return None;
        };
        let forbidden = mode.is_some_and(|mode| mode.calls == Calls::None) && !written.is_empty();
        let mut calls = Vec::new();
        let mut kept = Vec::new();
        for (index, call) in written.iter_mut().enumerate() {
            let before = self.reports.len();
            let valid = std::mem::replace(&mut self.valid, true);
            let found = self.call(index, call, mode);
            if self.options.drop_invalid_calls && !self.valid {
                self.drop_call(index, before);
                self.valid = valid;
                continue;
            }
            self.valid &= valid;
            calls.extend(found);
            kept.push(call.take());
        }
        let none = kept.is_empty();
        self.fields.insert("tool_calls".to_owned(), Value::Array(kept));
        if let Some(mode) = mode {
            if forbidden {
                let message = format!("`/tool_calls` is not empty in a {} plan", mode.name);
                let found = Report::new(rules::CALLS_UNEXPECTED, place, place.offset, message);
                self.fault(found.row(mode.rows.1));
            } else if mode.calls == Calls::Some && none {
                let message = format!("`/tool_calls` is empty in a {} plan", mode.name);
                self.fault(Report::new(rules::CALLS_EMPTY, place, place.offset, message));
            }
        }
        Some(calls)
    }

    /// Turns the faults of a call into the word that it was left out.
    fn drop_call(&mut self, index: usize, before: usize) {
        for report in &mut self.reports[before..] {
            report.repair = Some("the call is left out".to_owned());
        }
        let place = self.places.call(index);
        let message = format!("`/tool_calls/{index}` is not valid");
        let found = Report::new(rules::CALL_DROPPED, place, place.offset, message);
        self.reports.push(found.repaired("left out; the other calls are kept"));
    }

    /// One call; what is wrong with it makes the plan invalid (P-028).
    fn call(&mut self, index: usize, call: &mut Value, mode: Option<&Mode>) -> Option<ToolCall> {
        let place = self.places.call(index);
        let at = format!("/tool_calls/{index}");
        let fault = |message: String| Report::new(rules::CALL_INVALID, place, place.offset, message);
        let Value::Object(fields) = call else {
            self.fault(fault(format!("`{at}` is {}, not an object", kind(call))));
            return None;
        };
        let name = match fields.get("name") {
            Some(Value::String(name)) if !name.trim().is_empty() => name.clone(),
            Some(Value::String(_)) => {
                self.fault(fault(format!("`{at}/name` is blank")));
                return None;
            }
            Some(other) => {
                self.fault(fault(format!("`{at}/name` is {}, not a string", kind(other))));
                return None;
            }
            None => {
                self.fault(fault(format!("`{at}/name` is missing")));
                return None;
            }
        };
        let options = self.options;
        let Some(tool) = options.tools.get(&name) else {
            // Looking for close names takes time: there may be thousands of calls.
            self.unknown += 1;
            let close = if self.unknown <= MISMATCHES { options.tools.close(&name) } else { Vec::new() };
            let hint = match close.is_empty() {
                true => String::new(),
                false => format!("; close names: {}", close.join(", ")),
            };
            let message = format!("`{at}/name`: there is no tool `{}`{hint}", clip(&name));
            self.fault(Report::new(rules::TOOL_UNKNOWN, place, place.offset, message));
            return None;
        };
        let args = self.args(fields, tool, place, &at)?;
        if !tool.allows(options.caller.as_deref()) {
            let caller = options.caller.as_deref().unwrap_or("a caller without a name");
            let message = format!("`{at}`: `{name}` is not open to {caller}");
            self.fault(Report::new(rules::TOOL_FORBIDDEN, place, place.offset, message));
            return None;
        }
        if let Some(mode) = mode
            && mode.calls == Calls::ReadOnly
            && !tool.read_only
        {
            let message = format!("`{at}`: `{name}` does more than read, in a {} plan", mode.name);
            self.fault(Report::new(rules::CALLS_UNEXPECTED, place, place.offset, message).row("R-30"));
            return None;
        }
        Some(ToolCall { call_id: String::new(), name, args })
    }

    /// The arguments of a call, read as P-031 says and held against the schema of the tool.
    fn args(
        &mut self,
        fields: &mut Map<String, Value>,
        tool: &Tool,
        place: Place,
        at: &str,
    ) -> Option<Value> {
        let other = fields.iter().find(|(_, value)| holds_args(value));
        let args = match fields.get("args") {
            Some(Value::String(text)) => match serde_json::from_str(text) {
                Ok(value @ Value::Object(_)) => {
                    let mut inner = Inner::default();
                    let mut reader = json::Reader::document(&self.options.limits);
                    reader.push(text, &mut inner);
                    reader.finish(&mut inner);
                    if inner.rounded {
                        let message = format!(
                            "`{at}/args` is a text, and in it: a number with more digits than are kept"
                        );
                        self.fault(Report::new(rules::CALL_INVALID, place, place.offset, message));
                        return None;
                    }
                    for odd in inner.values.reports.into_iter().take(MISMATCHES) {
                        let message = format!("`{at}/args` is a text, and in it: {}", odd.message);
                        if odd.rule.code != json_rules::DUPLICATE_KEY.code {
                            self.fault(Report::new(rules::CALL_INVALID, place, place.offset, message));
                            return None;
                        }
                        let found = Report::new(&json_rules::DUPLICATE_KEY, place, place.offset, message);
                        self.reports.push(found.repaired("kept the last value"));
                    }
                    let found = Report::new(
                        rules::ARGS_AS_TEXT,
                        place,
                        place.offset,
                        format!("`{at}/args` is a text"),
                    );
                    self.reports.push(found.repaired("read as the object it holds"));
                    value
                }
                _ => Value::String(text.clone()),
            },
            Some(args) => args.clone(),
            None if tool.takes_nothing() && other.is_none() => {
                let message = format!("`{at}/args` is missing");
                let found = Report::new(rules::ARGS_MISSING, place, place.offset, message);
                self.reports.push(found.repaired("read as `{}`"));
                Value::Object(Map::new())
            }
            None => {
                let message = match other {
                    Some((key, _)) => {
                        format!("`{at}/args` is missing, and `{}` may be meant for it", clip(key))
                    }
                    None => format!("`{at}/args` is missing"),
                };
                self.fault(Report::new(rules::CALL_INVALID, place, place.offset, message));
                return None;
            }
        };
        let mismatches = tool.check(&args, MISMATCHES);
        for mismatch in &mismatches {
            let message = format!("`{at}/args{}`: {}", mismatch.pointer, mismatch.message);
            self.fault(Report::new(rules::ARGS_INVALID, place, place.offset, message));
        }
        fields.insert("args".to_owned(), args.clone());
        mismatches.is_empty().then_some(args)
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

/// What is odd about arguments that were written as a text.
#[derive(Default)]
struct Inner {
    values: json::Values,
    rounded: bool,
}

impl json::JsonSink for Inner {
    fn event(&mut self, event: json::JsonEvent<'_>) {
        self.values.event(event);
    }

    fn report(&mut self, report: Report) {
        self.values.report(report);
    }

    fn rounded(&mut self) {
        self.rounded = true;
    }
}

/// Whether a value may be arguments that stand under another key than `args`.
fn holds_args(value: &Value) -> bool {
    match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) => text.trim_start().starts_with('{') && text.trim() != "{}",
        _ => false,
    }
}

fn kind(value: &Value) -> &'static str {
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
fn clip(text: &str) -> String {
    match text.char_indices().nth(60) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}
