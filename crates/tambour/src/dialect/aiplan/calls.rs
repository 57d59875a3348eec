//! Checks of a plan's calls: form, tools, arguments, and permission of the caller (P-014 to P-016, P-028,
//! P-031, P-033).

use std::fmt::Arguments;

use serde_json::{Map, Value};

use super::args::{DecodedArgs, decode_args, holds_misplaced_args, is_args_name, rename_args};
use super::check::{Extent, MAX_MISMATCHES, PlanCheck};
use super::modes::{CallRequirement, PlanMode};
use super::options::{self, PlanOptions};
use super::rules;
use crate::dialect::call_check::find_contradiction;
use crate::finding::{Doubt, FindingReport, clip};
use crate::schema::type_name;
use crate::tool::{RegisteredTool, ToolRegistry};

impl PlanCheck<'_> {
    /// Checks the calls and returns the number of valid ones, or `None` if they are unreadable. A valid call
    /// has `name` and `args`.
    pub(super) fn check_calls(&mut self, mode: Option<&PlanMode>) -> Option<usize> {
        if !self.require_field("tool_calls") {
            return None;
        }
        let (place, end) = self.places.member_extent("tool_calls");
        if !self.fields["tool_calls"].is_array() {
            self.report_type("tool_calls", "a list", "P-014");
            return None;
        }
        let Some(Value::Array(mut calls)) = self.fields.get_mut("tool_calls").map(Value::take) else {
            return None;
        };
        let is_forbidden =
            mode.is_some_and(|mode| mode.calls == CallRequirement::Forbidden) && !calls.is_empty();
        let drops_invalid = self.options.section::<PlanOptions>().drop_invalid_calls;
        let mut valid_count = 0;
        let mut indices = 0..;
        calls.retain_mut(|call| {
            let index = indices.next().unwrap_or_default();
            let before = self.reports.len();
            let valid = std::mem::replace(&mut self.is_valid, true);
            self.check_call(index, call, mode);
            valid_count += usize::from(self.is_valid);
            if drops_invalid && !self.is_valid {
                self.drop_call(index, before);
                self.is_valid = valid;
                return false;
            }
            self.is_valid &= valid;
            true
        });
        let is_empty = calls.is_empty();
        self.fields.insert("tool_calls".to_owned(), Value::Array(calls));
        if let Some(mode) = mode {
            if is_forbidden {
                let message = format!("`/tool_calls` is not empty in a {} plan", mode.name);
                let found = FindingReport::new(rules::CALLS_UNEXPECTED, place, end, message);
                self.report_fault(found.with_row(mode.spec_rows.1));
            } else if mode.calls == CallRequirement::Required && is_empty {
                let message = format!("`/tool_calls` is empty in a {} plan", mode.name);
                self.report_fault(FindingReport::new(rules::CALLS_EMPTY, place, end, message));
            }
        }
        Some(valid_count)
    }

    /// Turns the faults of a call into a finding that it was left out.
    fn drop_call(&mut self, index: usize, before: usize) {
        for report in &mut self.reports[before..] {
            report.repair = Some("the call is left out".to_owned());
        }
        let (place, end) = self.places.call_extent(index);
        let message = format!("`/tool_calls/{index}` is not valid");
        let found = FindingReport::new(rules::CALL_DROPPED, place, end, message);
        self.reports.push(found.with_repair("left out; the other calls are kept"));
    }

    /// Checks one call; any fault makes the plan invalid (P-028).
    fn check_call(&mut self, index: usize, call: &mut Value, mode: Option<&PlanMode>) {
        let (place, end) = self.places.call_extent(index);
        let at = format_args!("/tool_calls/{index}");
        let fault = |message: String| FindingReport::new(rules::CALL_INVALID, place, end, message);
        let Value::Object(fields) = call else {
            return self.report_fault(fault(format!("`{at}` is {}, not an object", type_name(call))));
        };
        let doubts = self.doubts;
        if let Some(doubt) = doubts.find_in_call(index) {
            let message = format!("`{at}`: {}", doubt.message);
            return self.report_fault(doubt_report(doubt.doubt, (place, end), message));
        }
        if let Some(why) = find_contradiction(fields) {
            return self.report_fault(fault(format!("`{at}` {why}")).with_row("R-95"));
        }
        let unknown_message = describe_unknown_fields(fields, at);
        if let Some(rename_message) = rename_args(fields) {
            let found =
                FindingReport::new(rules::FIELD_RENAMED, place, end, format!("`{at}`: {rename_message}"));
            self.reports.push(found.with_repair("read as the expected fields"));
        }
        let name = match fields.get("name") {
            Some(Value::String(name)) if !name.trim().is_empty() => name,
            Some(Value::String(_)) => return self.report_fault(fault(format!("`{at}/name` is blank"))),
            Some(other) => {
                return self
                    .report_fault(fault(format!("`{at}/name` is {}, not a string", type_name(other))));
            }
            None => return self.report_fault(fault(format!("`{at}/name` is missing"))),
        };
        let options = self.options;
        let tools = options::plan_tools(options);
        let Some(tool) = tools.get(name) else {
            // Finding close names is slow and there may be thousands of calls.
            self.unknown_tools += 1;
            let close =
                if self.unknown_tools <= MAX_MISMATCHES { tools.similar_names(name) } else { Vec::new() };
            let hint = match close.is_empty() {
                true => String::new(),
                false => format!("; close names: {}", close.join(", ")),
            };
            let message = format!("`{at}/name`: there is no tool `{}`{hint}", clip(name, 60));
            return self.report_fault(FindingReport::new(rules::TOOL_UNKNOWN, place, end, message));
        };
        if !self.check_args(fields, tool, (place, end), at) {
            return;
        }
        if !tool.allows_caller(options.caller.as_deref()) {
            let caller = options.caller.as_deref().unwrap_or("a caller without a name");
            let message = format!("`{at}`: `{}` may not be called by {caller}", tool.name);
            return self.report_fault(FindingReport::new(rules::TOOL_FORBIDDEN, place, end, message));
        }
        if let Some(mode) = mode
            && mode.calls == CallRequirement::ReadOnly
            && !tool.read_only
        {
            let message =
                format!("`{at}`: `{}` is not read-only, as a {} plan requires", tool.name, mode.name);
            return self.report_fault(
                FindingReport::new(rules::CALLS_UNEXPECTED, place, end, message).with_row("R-30"),
            );
        }
        // For a call that cannot run, everything has been reported already.
        if let Some(message) = unknown_message {
            self.reports.push(FindingReport::new(rules::FIELD_UNKNOWN, place, end, message));
        }
    }

    /// Reads the arguments of a call as P-031 defines and checks them against the tool's schema. Returns true
    /// if they satisfy it.
    fn check_args(
        &mut self,
        fields: &mut Map<String, Value>,
        tool: &RegisteredTool,
        (place, end): Extent,
        at: Arguments<'_>,
    ) -> bool {
        let Some(args) = fields.get_mut("args") else {
            return self.default_args(fields, tool, (place, end), at);
        };
        if let Value::String(text) = args {
            match decode_args(text, &self.options.limits, &mut self.budget) {
                DecodedArgs::Object(value, duplicates) => {
                    let has_duplicates = !duplicates.is_empty();
                    for duplicate in duplicates {
                        // Places in the string are not places in the reply.
                        let mut found = duplicate.report(duplicate.first);
                        found.message = format!("`{at}/args` is a string, and inside it: {}", found.message);
                        (found.place, found.end) = (place, end);
                        self.report_fault(found);
                    }
                    if has_duplicates {
                        return false;
                    }
                    let message = format!("`{at}/args` is a string");
                    let found = FindingReport::new(rules::ARGS_AS_TEXT, place, end, message);
                    self.reports.push(found.with_repair("read as the object it holds"));
                    *args = value;
                }
                DecodedArgs::Doubtful(doubt, why) => {
                    let message = format!("`{at}/args` is a string, and inside it: {why}");
                    self.report_fault(doubt_report(doubt, (place, end), message));
                    return false;
                }
                DecodedArgs::Unusable(why) => {
                    let message = format!("`{at}/args` is a string, and inside it: {why}");
                    self.report_fault(FindingReport::new(rules::CALL_INVALID, place, end, message));
                    return false;
                }
                DecodedArgs::NoObject => {}
            }
        }
        let mismatches = tool.check_within(args, MAX_MISMATCHES, &mut self.steps_left);
        for mismatch in &mismatches {
            let message = format!("`{at}/args{}`: {}", mismatch.pointer, mismatch.message);
            let report = FindingReport::new(rules::ARGS_INVALID, place, end, message);
            // P-021: an argument of a tool defined in the specification.
            let standard = || ToolRegistry::sample().get(&tool.name).is_some_and(|standard| standard == tool);
            let argument = !mismatch.pointer.is_empty() && standard();
            self.report_fault(if argument { report.with_row("P-021") } else { report });
        }
        mismatches.is_empty()
    }

    /// Handles a call without arguments, which is valid for a tool that needs none (P-031).
    fn default_args(
        &mut self,
        fields: &mut Map<String, Value>,
        tool: &RegisteredTool,
        (place, end): Extent,
        at: Arguments<'_>,
    ) -> bool {
        let other = fields.iter().find(|(_, value)| holds_misplaced_args(value));
        if other.is_some() || !tool.accepts_no_arguments() {
            let hint = other.map(|(key, _)| format!("; `{}` may be meant instead", clip(key, 60)));
            let message = format!("`{at}/args` is missing{}", hint.unwrap_or_default());
            self.report_fault(FindingReport::new(rules::CALL_INVALID, place, end, message).with_row("P-031"));
            return false;
        }
        let message = format!("`{at}/args` is missing");
        let found = FindingReport::new(rules::ARGS_MISSING, place, end, message);
        self.reports.push(found.with_repair("read as `{}`"));
        fields.insert("args".to_owned(), Value::Object(Map::new()));
        true
    }
}

/// Builds the finding on a call with a value that may not be the one meant.
fn doubt_report(doubt: Doubt, (place, end): Extent, message: String) -> FindingReport {
    let rule = match doubt {
        Doubt::Guess => rules::VALUE_GUESSED,
        Doubt::InexactNumber => rules::NUMBER_OUT_OF_RANGE,
        Doubt::DuplicateKey => rules::CALL_INVALID,
    };
    FindingReport::new(rule, place, end, message)
}

/// Describes the unknown fields of a call: they stay in the plan and have no effect (P-029).
fn describe_unknown_fields(call: &Map<String, Value>, at: Arguments<'_>) -> Option<String> {
    let is_renamed = |key: &str| is_args_name(key) && !call.contains_key("args");
    let openai = |key: &str| key == "function" || key == "type" && call[key] == "function";
    let is_known = |key: &str| matches!(key, "name" | "args") || is_renamed(key) || openai(key);
    let inner = call.get("function").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let inner = inner.filter(|key| !matches!(key.as_str(), "name" | "args") && !is_args_name(key));
    let mut unknown = call.keys().filter(|key| !is_known(key)).chain(inner);
    let first = clip(unknown.next()?, 60);
    Some(match unknown.count() {
        0 => format!("`{at}/{first}` is not a field of calls"),
        count => format!("`{at}/{first}` and {count} more are not fields of calls"),
    })
}
