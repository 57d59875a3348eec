//! Checks an object against the contract of plans (P-002 to P-016, P-028 to P-033).

use serde_json::{Map, Value};

use super::judge::PlanDoubts;
use super::modes::{AnswerRequirement, CallRequirement, PlanMode, find_mode, plan_modes};
use super::options;
use super::rules;
use crate::dialect::value_text::{is_lossless, text_in};
use crate::finding::FindingReport;
use crate::finding::clip;
use crate::options::Options;
use crate::schema::type_name;
use crate::span::{Extent, Place};
use crate::tool::MAX_REPLY_CHECK_STEPS;

/// Fields that every plan has.
pub(super) const PLAN_FIELDS: [&str; 4] = ["thought", "response_mode", "direct_response", "tool_calls"];

/// Minimum number of plan fields for an object to count as a plan if it is nested in another value or follows
/// prose.
pub(super) const MIN_NESTED_FIELDS: usize = 2;

/// Maximum number of faults of one kind that are reported in full: mismatches of one call's arguments,
/// unknown fields, and unknown tools with similar names.
pub(super) const MAX_MISMATCHES: usize = 8;

/// Places of the parts of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct PlanPlaces {
    /// Start of the object.
    pub(super) start: Place,
    /// Offset after the object; while the object is being read, the offset of its last key.
    pub(super) end: usize,
    /// Members of the object, each from its key to the next key. A duplicate field has the place of its last
    /// occurrence.
    members: Vec<(String, Extent)>,
    /// Extent of the members whose places are not recorded.
    extra_members: Option<Extent>,
    /// Index of the last member in `members`; `None` if its place is not recorded.
    last_member: Option<usize>,
    /// Items of `tool_calls`, each from its first key to that of the next item; `None` for an item without a
    /// key.
    calls: Vec<Option<Extent>>,
    /// Index in `calls` of the call being read; `None` before its first key.
    current_call: Option<usize>,
    /// Number of `tool_calls` keys seen.
    pub(super) list_count: usize,
}

/// Maximum number of members whose places are recorded.
const MAX_MEMBERS: usize = 64;

impl PlanPlaces {
    pub(super) fn new(start: Place) -> PlanPlaces {
        PlanPlaces { start, end: start.offset, ..PlanPlaces::default() }
    }

    /// Handles a key of the object.
    pub(super) fn push_key(&mut self, key: &str, place: Place) {
        self.end_member(place.offset);
        let is_known = PLAN_FIELDS.contains(&key);
        let earlier_index = self.members.iter().rposition(|(name, _)| is_known && name == key);
        self.last_member = match earlier_index {
            Some(index) => {
                self.members[index].1 = Extent::empty(place);
                Some(index)
            }
            None if is_known || self.members.len() < MAX_MEMBERS => {
                self.members.push((key.to_owned(), Extent::empty(place)));
                Some(self.members.len() - 1)
            }
            None => {
                self.extra_members.get_or_insert(Extent::empty(place));
                None
            }
        };
        if key == "tool_calls" {
            self.list_count += 1;
            self.calls.clear();
        }
    }

    /// Ends the current member, and its last call, at the offset `end`.
    pub(super) fn end_member(&mut self, end: usize) {
        self.end = end;
        match self.last_member {
            Some(last) => self.members[last].1.end = end,
            None => {
                if let Some(extra_members) = &mut self.extra_members {
                    extra_members.end = end;
                }
            }
        }
        self.end_call(end);
    }

    /// Begins an item of `tool_calls`.
    pub(super) fn begin_call(&mut self) {
        self.calls.push(None);
    }

    /// Handles a key of the last item of `tool_calls`; `place` is needed only for the first key.
    pub(super) fn push_call_key(&mut self, place: impl Fn() -> Place) {
        if let Some(None) = self.calls.last() {
            let place = place();
            self.end_call(place.offset);
            self.current_call = Some(self.calls.len() - 1);
            self.calls.pop();
            self.calls.push(Some(Extent::empty(place)));
        }
    }

    /// Ends the current call at the offset `end`.
    fn end_call(&mut self, end: usize) {
        if let Some(Some(extent)) = self.current_call.take().and_then(|call| self.calls.get_mut(call)) {
            extent.end = end;
        }
    }

    /// Returns true if the current member is the list of calls.
    pub(super) fn is_in_calls(&self) -> bool {
        self.last_member.is_some_and(|last| self.members[last].0 == "tool_calls")
    }

    /// Returns true if the object has no key yet, or only one that may be the beginning of a plan field.
    pub(super) fn may_become_plan(&self) -> bool {
        let is_name_prefix = |key: &str| PLAN_FIELDS.iter().any(|field| field.starts_with(key));
        self.members.len() < 2 && self.members.iter().all(|(key, _)| is_name_prefix(key))
    }

    /// Returns the number of plan fields in the object.
    pub(super) fn field_count(&self) -> usize {
        self.members.iter().filter(|(name, _)| PLAN_FIELDS.contains(&name.as_str())).count()
    }

    /// Returns the extent of a member, or that of the object if there is no such member.
    pub(super) fn member_extent(&self, name: &str) -> Extent {
        let member = self.members.iter().rev().find(|(key, _)| key == name);
        member.map_or(Extent { place: self.start, end: self.end }, |(_, extent)| *extent)
    }

    /// Returns the number of items in the list of calls.
    pub(super) fn call_count(&self) -> usize {
        self.calls.len()
    }

    /// Returns the extent of a call, or that of the list if the call is not an object.
    pub(super) fn call_extent(&self, index: usize) -> Extent {
        self.calls.get(index).copied().flatten().unwrap_or_else(|| self.member_extent("tool_calls"))
    }
}

/// A checked plan with its findings.
#[derive(Clone, Debug, Default)]
pub(super) struct CheckedPlan {
    /// The repaired object; the four plan fields come first.
    pub(super) plan: Value,
    /// Number of valid calls.
    pub(super) valid_call_count: usize,
    /// Findings on the plan.
    pub(super) reports: Vec<FindingReport>,
    /// Set if the plan may be used.
    pub(super) is_valid: bool,
    /// Set if the plan calls tools or intends to.
    pub(super) is_acting: bool,
    /// Set if the plan is in a list or under a key.
    pub(super) is_wrapped: bool,
    /// Set if the answer was not a string and was read as one.
    pub(super) is_converted_answer: bool,
    /// Set if the plan is invalid and its answer is lost without a finding.
    pub(super) has_lost_answer: bool,
    /// Set if the plan is invalid and its calls are lost without a finding.
    pub(super) has_lost_calls: bool,
}

impl CheckedPlan {
    /// Returns the answer text of an unusable plan that does not act; empty if it has none.
    pub(super) fn answer(&self) -> String {
        let Some(value) = self.plan.get("direct_response").filter(|_| !self.is_acting) else {
            return String::new();
        };
        let text_of = |key: &&str| text_in(value.get(key)?);
        text_in(value).or_else(|| ["text", "content"].iter().find_map(text_of)).unwrap_or_default()
    }
}

/// Checks an object against the contract. `places` are the places of its parts, `doubts` the doubts about its
/// values.
pub(super) fn check_plan(
    value: Value,
    places: &PlanPlaces,
    doubts: &PlanDoubts,
    options: &Options,
) -> CheckedPlan {
    let Value::Object(fields) = value else {
        let report =
            FindingReport::new(rules::PLAN_MISSING, places.start, places.end, "the plan is not an object");
        return CheckedPlan { plan: value, reports: vec![report], ..CheckedPlan::default() };
    };
    let budget = (options.limits.value, options.limits.items);
    let mut check = PlanCheck {
        fields,
        places,
        doubts,
        options,
        reports: Vec::new(),
        unknown_tool_count: 0,
        budget,
        steps_left: MAX_REPLY_CHECK_STEPS,
        is_converted_answer: false,
        is_valid: true,
    };
    check.check_thought();
    let mode = check.check_mode();
    let valid_call_count = check.check_calls(mode);
    check.check_answer(mode, valid_call_count.is_some_and(|count| count > 0));
    check.check_other_fields(mode);
    let tool_calls = check.fields.get("tool_calls");
    let is_acting = mode.is_some_and(|mode| mode.calls == CallRequirement::Required)
        || tool_calls.is_some_and(|calls| calls.as_array().is_none_or(|calls| !calls.is_empty()));
    let PlanCheck { mut fields, reports, is_valid, is_converted_answer, .. } = check;
    let mut plan = Map::new();
    for name in PLAN_FIELDS {
        plan.insert(name.to_owned(), fields.shift_remove(name).unwrap_or(Value::Null));
    }
    plan.extend(fields);
    CheckedPlan {
        plan: Value::Object(plan),
        valid_call_count: valid_call_count.unwrap_or_default(),
        reports,
        is_valid,
        is_acting,
        is_converted_answer,
        ..CheckedPlan::default()
    }
}

/// Check of one object against the contract.
pub(super) struct PlanCheck<'a> {
    /// Fields of the object, repaired as they are checked.
    pub(super) fields: Map<String, Value>,
    pub(super) places: &'a PlanPlaces,
    pub(super) doubts: &'a PlanDoubts,
    pub(super) options: &'a Options,
    pub(super) reports: Vec<FindingReport>,
    /// Number of calls of unknown tools.
    pub(super) unknown_tool_count: usize,
    /// Bytes and items that arguments written as strings may still use.
    pub(super) budget: (usize, usize),
    /// Steps left for checks of arguments.
    pub(super) steps_left: u64,
    /// Set if the answer was not a string and was read as one.
    is_converted_answer: bool,
    /// Set while no fault makes the plan invalid; while a call is checked, set until that call has a fault.
    pub(super) is_valid: bool,
}

impl PlanCheck<'_> {
    /// Adds a fault that makes the plan invalid.
    pub(super) fn report_fault(&mut self, report: FindingReport) {
        self.is_valid = false;
        self.reports.push(report);
    }

    /// Returns true if a field is present, else reports its absence. `null` counts as present only where it
    /// has a meaning (P-002).
    pub(super) fn require_field(&mut self, name: &'static str) -> bool {
        let is_present = self
            .fields
            .get(name)
            .is_some_and(|value| !value.is_null() || matches!(name, "direct_response" | "tool_calls"));
        if !is_present {
            let Extent { place, end } = self.places.member_extent(name);
            let fault = if self.fields.contains_key(name) { "is null" } else { "is missing" };
            self.report_fault(FindingReport::new(
                rules::FIELD_MISSING,
                place,
                end,
                format!("`/{name}` {fault}"),
            ));
        }
        is_present
    }

    /// Reports that the type of the field `name` is not the one that `expected` describes. `row` is the
    /// specification row of the finding.
    pub(super) fn report_type(&mut self, name: &str, expected: &str, row: &'static str) {
        let Extent { place, end } = self.places.member_extent(name);
        let message = format!("`/{name}` is {}, not {expected}", type_name(&self.fields[name]));
        self.report_fault(FindingReport::new(rules::FIELD_TYPE, place, end, message).with_row(row));
    }

    fn check_thought(&mut self) {
        if !self.require_field("thought") {
            return;
        }
        match &self.fields["thought"] {
            Value::String(text) if text.trim().is_empty() => {
                let Extent { place, end } = self.places.member_extent("thought");
                self.report_fault(FindingReport::new(
                    rules::THOUGHT_EMPTY,
                    place,
                    end,
                    "`/thought` is blank",
                ));
            }
            Value::String(_) => {}
            _ => self.report_type("thought", "a string", "P-003"),
        }
    }

    /// Checks the mode, corrects its spelling and returns it; `None` if there is no such mode.
    fn check_mode(&mut self) -> Option<&'static PlanMode> {
        if !self.require_field("response_mode") {
            return None;
        }
        let Value::String(word) = self.fields["response_mode"].clone() else {
            self.report_type("response_mode", "a string", "P-006");
            return None;
        };
        let Extent { place, end } = self.places.member_extent("response_mode");
        let Some(mode) = find_mode(options::plan_variant(self.options), &word) else {
            let names: Vec<&str> =
                plan_modes(options::plan_variant(self.options)).iter().map(|mode| mode.name).collect();
            let message =
                format!("`/response_mode` is `{}`; expected one of {}", clip(&word, 60), names.join(", "));
            self.report_fault(FindingReport::new(rules::MODE_INVALID, place, end, message));
            return None;
        };
        if let Some(other_key) = self.find_conflicting_mode(mode) {
            let message = format!("`/{}` names a different mode than `/response_mode`", clip(&other_key, 60));
            self.report_fault(FindingReport::new(rules::MODE_INVALID, place, end, message).with_row("R-95"));
        }
        if mode.name != word {
            let message = format!("`/response_mode` is written `{}`", clip(&word, 60));
            let report = FindingReport::new(rules::MODE_INVALID, place, end, message);
            self.reports.push(report.with_repair(format!("read as {}", mode.name)));
            self.fields.insert("response_mode".to_owned(), Value::from(mode.name));
        }
        Some(mode)
    }

    /// Returns a key that resembles `response_mode` and whose value is not `current_mode`.
    fn find_conflicting_mode(&self, current_mode: &PlanMode) -> Option<String> {
        let resembles_mode_key = |key: &str| {
            let is_alphanumeric = |c: &char| c.is_ascii_alphanumeric();
            let letters: String =
                key.chars().filter(is_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
            key != "response_mode" && matches!(&*letters, "responsemode" | "mode")
        };
        let is_other_mode = |value: &Value| {
            let word = value.as_str().unwrap_or_default();
            find_mode(options::plan_variant(self.options), word).is_none_or(|mode| mode != current_mode)
        };
        let mut members = self.fields.iter().take(MAX_MEMBERS);
        let conflicting = members.find(|(key, value)| resembles_mode_key(key) && is_other_mode(value));
        conflicting.map(|(key, _)| key.clone())
    }

    /// Checks the answer against the mode; `has_calls` is set if the plan has a valid call.
    fn check_answer(&mut self, mode: Option<&PlanMode>, has_calls: bool) {
        if !self.require_field("direct_response") {
            return;
        }
        let text = match &self.fields["direct_response"] {
            Value::String(text) => Some(text),
            Value::Null => None,
            _ => return self.convert_answer(mode),
        };
        let Some(mode) = mode else { return };
        let is_filled = text.is_some_and(|text| !text.trim().is_empty());
        let extent = self.places.member_extent("direct_response");
        match mode.answer {
            AnswerRequirement::Null if text.is_some() => {
                let message = format!("`/direct_response` is a string in a {} plan", mode.name);
                self.report_fault(FindingReport::new(
                    rules::DIRECT_NOT_NULL,
                    extent.place,
                    extent.end,
                    message,
                ));
            }
            AnswerRequirement::Required if !is_filled => self.report_no_answer(mode, text.is_none(), extent),
            AnswerRequirement::Optional
                if !is_filled && (text.is_some() || !(has_calls || mode.extra_field.is_some())) =>
            {
                self.report_no_answer(mode, text.is_none(), extent);
            }
            _ => {}
        }
    }

    /// Reads the text of an answer that is not a string, in a mode that allows an answer.
    fn convert_answer(&mut self, mode: Option<&PlanMode>) {
        let value = &self.fields["direct_response"];
        let text = mode.filter(|mode| mode.answer != AnswerRequirement::Null).and_then(|_| text_in(value));
        let Some(text) = text.filter(|_| is_lossless(value)) else {
            return self.report_type("direct_response", "a string or null", "P-013");
        };
        let Extent { place, end } = self.places.member_extent("direct_response");
        let message = format!("`/direct_response` is {}, not a string", type_name(value));
        let report = FindingReport::new(rules::FIELD_TYPE, place, end, message).with_row("R-87");
        self.reports.push(report.with_repair("its text is the answer"));
        self.fields.insert("direct_response".to_owned(), Value::from(text));
        self.is_converted_answer = true;
    }

    /// Reports an answer that is null or blank, where the mode requires one.
    fn report_no_answer(&mut self, mode: &PlanMode, is_null: bool, extent: Extent) {
        let state = if is_null { "null" } else { "blank" };
        let message = format!("`/direct_response` is {state} in a {} plan", mode.name);
        let report = FindingReport::new(rules::DIRECT_EMPTY, extent.place, extent.end, message);
        self.report_fault(report.with_row(mode.spec_rows.0));
    }

    /// Checks the additional field of the mode, and reports fields that plans do not have.
    fn check_other_fields(&mut self, mode: Option<&PlanMode>) {
        if let Some(name) = mode.and_then(|mode| mode.extra_field) {
            match self.fields.get(name) {
                Some(Value::Object(_)) => {}
                Some(_) => self.report_type(name, "an object", "R-30"),
                None => {
                    let (place, end) = (self.places.start, self.places.end);
                    let message = format!("`/{name}` is missing");
                    self.report_fault(
                        FindingReport::new(rules::FIELD_MISSING, place, end, message).with_row("R-30"),
                    );
                }
            }
        }
        let is_known = |name: &str| {
            PLAN_FIELDS.contains(&name) || mode.is_some_and(|mode| mode.extra_field == Some(name))
        };
        let other_fields: Vec<&String> = self.fields.keys().filter(|name| !is_known(name)).collect();
        let surplus_count = other_fields.len().saturating_sub(MAX_MISMATCHES);
        let mut surplus_extent = self.places.extra_members;
        for (index, name) in other_fields.into_iter().enumerate() {
            let extent = self.places.member_extent(name);
            if index < MAX_MISMATCHES {
                let message = format!("`/{}` is not a field of plans", clip(name, 60));
                let report = FindingReport::new(rules::FIELD_UNKNOWN, extent.place, extent.end, message);
                self.reports.push(report);
            } else {
                surplus_extent = Extent::join_present([surplus_extent, Some(extent)]);
            }
        }
        if let Some(Extent { place, end }) = surplus_extent.filter(|_| surplus_count > 0) {
            let message = format!("{surplus_count} more fields are not fields of plans");
            self.reports.push(FindingReport::new(rules::FIELD_UNKNOWN, place, end, message));
        }
    }
}
