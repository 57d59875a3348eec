//! Checks an object against the contract of plans (P-002 to P-016, P-028 to P-033).

use serde_json::{Map, Value};

use super::doubts::PlanDoubts;
use super::modes::{Calls, Mode, Text, mode, modes};
use super::options;
use super::outside::join;
use super::rules;
use crate::dialect::said::{is_whole, text_in};
use crate::finding::Report;
use crate::finding::clip;
use crate::options::Options;
use crate::schema::type_name;
use crate::span::Place;
use crate::tool::CHECKS;

/// Fields that every plan has.
pub(super) const FIELDS: [&str; 4] = ["thought", "response_mode", "direct_response", "tool_calls"];

/// Most faults reported for one call's arguments.
pub(super) const MISMATCHES: usize = 8;

/// Extent of a part of the reply: its first place, and the offset after it.
pub(super) type Stand = (Place, usize);

/// Places of the parts of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    pub(super) start: Place,
    pub(super) end: usize,
    /// Members of the object, each from its key to the next one. A duplicate field has its last place.
    members: Vec<(String, Stand)>,
    /// Extent of the members whose places are not recorded.
    more: Option<Stand>,
    /// Index of the last member in `members`, or `None` if it is beyond them.
    last: Option<usize>,
    /// Items of `tool_calls`, each from its first key to that of the next item; `None` for an item without a
    /// key.
    calls: Vec<Option<Stand>>,
    /// Index of the current call.
    call: Option<usize>,
    /// Number of `tool_calls` keys seen.
    pub(super) lists: usize,
}

/// Most members whose places are recorded.
const MEMBERS: usize = 64;

impl Places {
    pub(super) fn starting_at(start: Place) -> Places {
        Places { start, end: start.offset, ..Places::default() }
    }

    /// Handles a key of the object.
    pub(super) fn key(&mut self, key: &str, place: Place) {
        self.ends(place.offset);
        let known = FIELDS.contains(&key);
        let found = self.members.iter().rposition(|(name, _)| known && name == key);
        self.last = match found {
            Some(at) => {
                self.members[at].1 = (place, place.offset);
                Some(at)
            }
            None if known || self.members.len() < MEMBERS => {
                self.members.push((key.to_owned(), (place, place.offset)));
                Some(self.members.len() - 1)
            }
            None => {
                self.more.get_or_insert((place, place.offset));
                None
            }
        };
        if key == "tool_calls" {
            self.lists += 1;
            self.calls.clear();
        }
    }

    /// Ends the current member.
    pub(super) fn ends(&mut self, end: usize) {
        self.end = end;
        match self.last {
            Some(last) => self.members[last].1.1 = end,
            None => {
                if let Some((_, last)) = &mut self.more {
                    *last = end;
                }
            }
        }
        self.call_ends(end);
    }

    /// Begins an item of `tool_calls`.
    pub(super) fn item(&mut self) {
        self.calls.push(None);
    }

    /// Handles a key of such an item.
    pub(super) fn item_key(&mut self, place: impl Fn() -> Place) {
        if let Some(None) = self.calls.last() {
            let place = place();
            self.call_ends(place.offset);
            self.call = Some(self.calls.len() - 1);
            self.calls.pop();
            self.calls.push(Some((place, place.offset)));
        }
    }

    fn call_ends(&mut self, end: usize) {
        if let Some(Some((_, last))) = self.call.take().and_then(|call| self.calls.get_mut(call)) {
            *last = end;
        }
    }

    /// Returns true if the current member is the list of calls.
    pub(super) fn in_calls(&self) -> bool {
        self.last.is_some_and(|last| self.members[last].0 == "tool_calls")
    }

    /// Returns true if the object has at most part of a first key that may become a field of plans.
    pub(super) fn may_begin(&self) -> bool {
        let half = |key: &str| FIELDS.iter().any(|field| field.starts_with(key));
        self.members.len() < 2 && self.members.iter().all(|(key, _)| half(key))
    }

    /// Returns the number of plan fields in the object.
    pub(super) fn fields(&self) -> usize {
        self.members.iter().filter(|(name, _)| FIELDS.contains(&name.as_str())).count()
    }

    /// Returns the extent of a member, or that of the object if there is no such member.
    pub(super) fn member(&self, name: &str) -> Stand {
        let found = self.members.iter().rev().find(|(key, _)| key == name);
        found.map_or((self.start, self.end), |(_, stand)| *stand)
    }

    /// Returns the number of items in the list of calls.
    pub(super) fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Returns the extent of a call, or that of the list if the call is not an object.
    pub(super) fn call(&self, index: usize) -> Stand {
        self.calls.get(index).copied().flatten().unwrap_or_else(|| self.member("tool_calls"))
    }
}

/// A checked plan with its findings.
#[derive(Clone, Debug, Default)]
pub(super) struct Checked {
    /// The repaired object; the four plan fields come first.
    pub(super) plan: Value,
    /// Number of valid calls.
    pub(super) calls: usize,
    pub(super) reports: Vec<Report>,
    /// Set if the plan may be used.
    pub(super) valid: bool,
    /// Set if the plan calls tools or intends to.
    pub(super) acts: bool,
    /// Set if the plan is in a list or under a key.
    pub(super) wrapped: bool,
    /// Set if the answer was not a string and was read as one.
    pub(super) from_value: bool,
    /// Set if the plan is invalid and its answer is lost without a finding.
    pub(super) lost: bool,
    /// Set if the plan is invalid and its calls are lost without a finding.
    pub(super) lost_calls: bool,
}

impl Checked {
    /// Returns the text of an unusable plan without calls, which is the answer all the same.
    pub(super) fn answer(&self) -> String {
        let Some(value) = self.plan.get("direct_response").filter(|_| !self.acts) else {
            return String::new();
        };
        let under = |key: &&str| text_in(value.get(key)?);
        text_in(value).or_else(|| ["text", "content"].iter().find_map(under)).unwrap_or_default()
    }
}

/// Checks `value` against the contract.
pub(super) fn check(value: Value, places: &Places, doubts: &PlanDoubts, options: &Options) -> Checked {
    let Value::Object(fields) = value else {
        let found = Report::new(rules::PLAN_MISSING, places.start, places.end, "this is no object");
        return Checked { plan: value, reports: vec![found], ..Checked::default() };
    };
    let room = (options.limits.value, options.limits.items);
    let mut check = Check {
        fields,
        places,
        doubts,
        options,
        reports: Vec::new(),
        unknown: 0,
        room,
        checks: CHECKS,
        from_value: false,
        valid: true,
    };
    check.thought();
    let mode = check.mode();
    let calls = check.calls(mode);
    check.text(mode, calls.is_some_and(|calls| calls > 0));
    check.others(mode);
    let written = check.fields.get("tool_calls");
    let acts = mode.is_some_and(|mode| mode.calls == Calls::Some)
        || written.is_some_and(|calls| calls.as_array().is_none_or(|calls| !calls.is_empty()));
    let Check { mut fields, reports, valid, from_value, .. } = check;
    let mut plan = Map::new();
    for name in FIELDS {
        plan.insert(name.to_owned(), fields.shift_remove(name).unwrap_or(Value::Null));
    }
    plan.extend(fields);
    let calls = calls.unwrap_or_default();
    Checked { plan: Value::Object(plan), calls, reports, valid, acts, from_value, ..Checked::default() }
}

/// Check of one object against the contract.
pub(super) struct Check<'a> {
    pub(super) fields: Map<String, Value>,
    pub(super) places: &'a Places,
    pub(super) doubts: &'a PlanDoubts,
    pub(super) options: &'a Options,
    pub(super) reports: Vec<Report>,
    /// Number of calls of unknown tools.
    pub(super) unknown: usize,
    /// Bytes and items that arguments written as strings may still use.
    pub(super) room: (usize, usize),
    /// Steps left for checks of arguments.
    pub(super) checks: u64,
    /// Set if the answer was not a string and was read as one.
    from_value: bool,
    pub(super) valid: bool,
}

impl Check<'_> {
    /// Adds a fault that makes the plan invalid.
    pub(super) fn fault(&mut self, report: Report) {
        self.valid = false;
        self.reports.push(report);
    }

    /// Returns true if a field is present, else reports it. `null` counts only where it has a meaning
    /// (P-002).
    pub(super) fn present(&mut self, name: &'static str) -> bool {
        let there = self
            .fields
            .get(name)
            .is_some_and(|value| !value.is_null() || matches!(name, "direct_response" | "tool_calls"));
        if !there {
            let (place, end) = self.places.member(name);
            let what = if self.fields.contains_key(name) { "is null" } else { "is missing" };
            self.fault(Report::new(rules::FIELD_MISSING, place, end, format!("`/{name}` {what}")));
        }
        there
    }

    pub(super) fn type_fault(&mut self, name: &str, wanted: &str, row: &'static str) {
        let (place, end) = self.places.member(name);
        let message = format!("`/{name}` is {}, not {wanted}", type_name(&self.fields[name]));
        self.fault(Report::new(rules::FIELD_TYPE, place, end, message).row(row));
    }

    fn thought(&mut self) {
        if !self.present("thought") {
            return;
        }
        match &self.fields["thought"] {
            Value::String(text) if text.trim().is_empty() => {
                let (place, end) = self.places.member("thought");
                self.fault(Report::new(rules::THOUGHT_EMPTY, place, end, "`/thought` is blank"));
            }
            Value::String(_) => {}
            _ => self.type_fault("thought", "a string", "P-003"),
        }
    }

    fn mode(&mut self) -> Option<&'static Mode> {
        if !self.present("response_mode") {
            return None;
        }
        let Value::String(word) = self.fields["response_mode"].clone() else {
            self.type_fault("response_mode", "a string", "P-006");
            return None;
        };
        let (place, end) = self.places.member("response_mode");
        let Some(mode) = mode(options::variant(self.options), &word) else {
            let names: Vec<&str> =
                modes(options::variant(self.options)).iter().map(|mode| mode.name).collect();
            let message =
                format!("`/response_mode` is `{}`; it is one of {}", clip(&word, 60), names.join(", "));
            self.fault(Report::new(rules::MODE_INVALID, place, end, message));
            return None;
        };
        if let Some(other) = self.other_mode(mode) {
            let message = format!("`/{}` says another mode than `/response_mode`", clip(&other, 60));
            self.fault(Report::new(rules::MODE_INVALID, place, end, message).row("R-95"));
        }
        if mode.name != word {
            let message = format!("`/response_mode` is written `{}`", clip(&word, 60));
            let found = Report::new(rules::MODE_INVALID, place, end, message);
            self.reports.push(found.repaired(format!("read as {}", mode.name)));
            self.fields.insert("response_mode".to_owned(), Value::from(mode.name));
        }
        Some(mode)
    }

    /// Returns a key that resembles that of the mode and holds another mode.
    fn other_mode(&self, known: &Mode) -> Option<String> {
        let named = |key: &str| {
            let plain = |c: &char| c.is_ascii_alphanumeric();
            let letters: String = key.chars().filter(plain).map(|c| c.to_ascii_lowercase()).collect();
            key != "response_mode" && matches!(&*letters, "responsemode" | "mode")
        };
        let other = |value: &Value| {
            let word = value.as_str().unwrap_or_default();
            mode(options::variant(self.options), word).is_none_or(|mode| mode != known)
        };
        let found = self.fields.iter().take(MEMBERS).find(|(key, value)| named(key) && other(value));
        found.map(|(key, _)| key.clone())
    }

    fn text(&mut self, mode: Option<&Mode>, calls: bool) {
        if !self.present("direct_response") {
            return;
        }
        let text = match &self.fields["direct_response"] {
            Value::String(text) => Some(text),
            Value::Null => None,
            _ => return self.other_text(mode),
        };
        let Some(mode) = mode else { return };
        let filled = text.is_some_and(|text| !text.trim().is_empty());
        let (place, end) = self.places.member("direct_response");
        match mode.text {
            Text::None if text.is_some() => {
                let message = format!("`/direct_response` is a text in a {} plan", mode.name);
                self.fault(Report::new(rules::DIRECT_NOT_NULL, place, end, message));
            }
            Text::Some if !filled => self.no_text(mode, text.is_none(), (place, end)),
            Text::Any if !filled && (text.is_some() || !(calls || mode.field.is_some())) => {
                self.no_text(mode, text.is_none(), (place, end));
            }
            _ => {}
        }
    }

    /// Reads the text of an answer that is not a string, in a mode that needs one.
    fn other_text(&mut self, mode: Option<&Mode>) {
        let value = &self.fields["direct_response"];
        let text = mode.filter(|mode| mode.text != Text::None).and_then(|_| text_in(value));
        let Some(text) = text.filter(|_| is_whole(value)) else {
            return self.type_fault("direct_response", "a string or null", "P-013");
        };
        let (place, end) = self.places.member("direct_response");
        let message = format!("`/direct_response` is {}, not a string", type_name(value));
        let found = Report::new(rules::FIELD_TYPE, place, end, message).row("R-87");
        self.reports.push(found.repaired("its text is the answer"));
        self.fields.insert("direct_response".to_owned(), Value::from(text));
        self.from_value = true;
    }

    fn no_text(&mut self, mode: &Mode, null: bool, (place, end): Stand) {
        let what = if null { "null" } else { "blank" };
        let message = format!("`/direct_response` is {what} in a {} plan", mode.name);
        self.fault(Report::new(rules::DIRECT_EMPTY, place, end, message).row(mode.rows.0));
    }

    /// Reports fields beyond the four.
    fn others(&mut self, mode: Option<&Mode>) {
        if let Some(name) = mode.and_then(|mode| mode.field) {
            match self.fields.get(name) {
                Some(Value::Object(_)) => {}
                Some(_) => self.type_fault(name, "an object", "R-30"),
                None => {
                    let (place, end) = (self.places.start, self.places.end);
                    let message = format!("`/{name}` is missing");
                    self.fault(Report::new(rules::FIELD_MISSING, place, end, message).row("R-30"));
                }
            }
        }
        let known = |name: &str| FIELDS.contains(&name) || mode.is_some_and(|mode| mode.field == Some(name));
        let others: Vec<&String> = self.fields.keys().filter(|name| !known(name)).collect();
        let more = others.len().saturating_sub(MISMATCHES);
        let mut rest = self.places.more;
        for (at, name) in others.into_iter().enumerate() {
            let (place, end) = self.places.member(name);
            if at < MISMATCHES {
                let message = format!("`/{}` is not a field of plans", clip(name, 60));
                self.reports.push(Report::new(rules::FIELD_UNKNOWN, place, end, message));
            } else {
                rest = join(rest, Some((place, end)));
            }
        }
        if let Some((place, end)) = rest.filter(|_| more > 0) {
            let message = format!("{more} more fields are not fields of plans");
            self.reports.push(Report::new(rules::FIELD_UNKNOWN, place, end, message));
        }
    }
}
