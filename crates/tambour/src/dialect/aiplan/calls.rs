//! Checks of a plan's calls: form, tools, arguments, and permission of the caller (P-014 to P-016, P-028,
//! P-031, P-033).

use std::fmt::Arguments;

use serde_json::{Map, Value};

use super::args::{DecodedArgs, decode_args, holds_misplaced_args, is_args_name, rename_args};
use super::check::{MAX_MISMATCHES, PlanCheck};
use super::modes::{CallRequirement, PlanMode};
use super::options::{self, PlanOptions};
use super::rules;
use crate::dialect::call_check::find_contradiction;
use crate::finding::{Doubt, FindingReport, clip};
use crate::schema::type_name;
use crate::span::Extent;
use crate::tool::{RegisteredTool, ToolRegistry};

impl PlanCheck<'_> {
    /// Checks the calls and returns the number of valid ones, or `None` if the list of calls is missing or
    /// unreadable. A valid call has `name` and `args`.
    pub(super) fn check_calls(&mut self, mode: Option<&PlanMode>) -> Option<usize> {
        if !self.require_field("tool_calls") {
            return None;
        }
        let Extent { place, end } = self.places.member_extent("tool_calls");
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
            let report_count = self.reports.len();
            // While a call is checked, `is_valid` is about that call alone.
            let was_valid = std::mem::replace(&mut self.is_valid, true);
            self.check_call(index, call, mode);
            valid_count += usize::from(self.is_valid);
            if drops_invalid && !self.is_valid {
                self.drop_call(index, report_count);
                self.is_valid = was_valid;
                return false;
            }
            self.is_valid &= was_valid;
            true
        });
        let is_empty = calls.is_empty();
        self.fields.insert("tool_calls".to_owned(), Value::Array(calls));
        if let Some(mode) = mode {
            if is_forbidden {
                let message = format!("`/tool_calls` is not empty in a {} plan", mode.name);
                let report = FindingReport::new(rules::CALLS_UNEXPECTED, place, end, message);
                self.report_fault(report.with_row(mode.spec_rows.1));
            } else if mode.calls == CallRequirement::Required && is_empty {
                let message = format!("`/tool_calls` is empty in a {} plan", mode.name);
                self.report_fault(FindingReport::new(rules::CALLS_EMPTY, place, end, message));
            }
        }
        Some(valid_count)
    }

    /// Reports that a call is left out, and turns its faults, the findings from `first_report` on, into
    /// repaired ones.
    fn drop_call(&mut self, index: usize, first_report: usize) {
        for report in &mut self.reports[first_report..] {
            report.repair = Some("the call is left out".to_owned());
        }
        let Extent { place, end } = self.places.call_extent(index);
        let message = format!("`/tool_calls/{index}` is not valid");
        let report = FindingReport::new(rules::CALL_DROPPED, place, end, message);
        self.reports.push(report.with_repair("left out; the other calls are kept"));
    }

    /// Checks one call. A fault makes the plan invalid (P-028), unless invalid calls are left out.
    fn check_call(&mut self, index: usize, call: &mut Value, mode: Option<&PlanMode>) {
        let extent = self.places.call_extent(index);
        let Extent { place, end } = extent;
        // JSON Pointer of the call in the plan.
        let at = format_args!("/tool_calls/{index}");
        let fault = |message: String| FindingReport::new(rules::CALL_INVALID, place, end, message);
        let Value::Object(fields) = call else {
            return self.report_fault(fault(format!("`{at}` is {}, not an object", type_name(call))));
        };
        let doubts = self.doubts;
        if let Some(doubt) = doubts.find_in_call(index) {
            let message = format!("`{at}`: {}", doubt.message);
            return self.report_fault(doubt_report(doubt.doubt, extent, message));
        }
        if let Some(contradiction) = find_contradiction(fields) {
            return self.report_fault(fault(format!("`{at}` {contradiction}")).with_row("R-95"));
        }
        let unknown_message = describe_unknown_fields(fields, at);
        if let Some(rename_message) = rename_args(fields) {
            let report =
                FindingReport::new(rules::FIELD_RENAMED, place, end, format!("`{at}`: {rename_message}"));
            self.reports.push(report.with_repair("read as the expected fields"));
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
            self.unknown_tool_count += 1;
            let similar_names = if self.unknown_tool_count <= MAX_MISMATCHES {
                tools.similar_names(name)
            } else {
                Vec::new()
            };
            let hint = match similar_names.is_empty() {
                true => String::new(),
                false => format!("; close names: {}", similar_names.join(", ")),
            };
            let message = format!("`{at}/name`: there is no tool `{}`{hint}", clip(name, 60));
            return self.report_fault(FindingReport::new(rules::TOOL_UNKNOWN, place, end, message));
        };
        if !self.check_args(fields, tool, extent, at) {
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
        // Unknown fields are reported only here, because a call that cannot run has a finding already.
        if let Some(message) = unknown_message {
            self.reports.push(FindingReport::new(rules::FIELD_UNKNOWN, place, end, message));
        }
    }

    /// Reads the arguments of a call as P-031 defines and checks them against the tool's schema. `at` is the
    /// JSON Pointer of the call. Returns true if the arguments satisfy the schema.
    fn check_args(
        &mut self,
        fields: &mut Map<String, Value>,
        tool: &RegisteredTool,
        extent: Extent,
        at: Arguments<'_>,
    ) -> bool {
        let Some(args) = fields.get_mut("args") else {
            return self.default_args(fields, tool, extent, at);
        };
        let Extent { place, end } = extent;
        if let Value::String(text) = args {
            match decode_args(text, &self.options.limits, &mut self.budget) {
                DecodedArgs::Object(value, duplicates) => {
                    let has_duplicates = !duplicates.is_empty();
                    for duplicate in duplicates {
                        // Places in the string are not places in the reply.
                        let mut report = duplicate.report(duplicate.first);
                        report.message =
                            format!("`{at}/args` is a string, and inside it: {}", report.message);
                        (report.place, report.end) = (place, end);
                        self.report_fault(report);
                    }
                    if has_duplicates {
                        return false;
                    }
                    let message = format!("`{at}/args` is a string");
                    let report = FindingReport::new(rules::ARGS_AS_TEXT, place, end, message);
                    self.reports.push(report.with_repair("read as the object it holds"));
                    *args = value;
                }
                DecodedArgs::Doubtful(doubt, fault) => {
                    let message = format!("`{at}/args` is a string, and inside it: {fault}");
                    self.report_fault(doubt_report(doubt, extent, message));
                    return false;
                }
                DecodedArgs::Unusable(fault) => {
                    let message = format!("`{at}/args` is a string, and inside it: {fault}");
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
            // P-021 is about the arguments of the tools that the specification defines.
            let is_sample_tool =
                || ToolRegistry::sample().get(&tool.name).is_some_and(|sample_tool| sample_tool == tool);
            let is_sample_argument = !mismatch.pointer.is_empty() && is_sample_tool();
            self.report_fault(if is_sample_argument { report.with_row("P-021") } else { report });
        }
        mismatches.is_empty()
    }

    /// Handles a call without arguments, which is valid for a tool that needs none (P-031). If the call is
    /// valid, gives it empty arguments and returns true.
    fn default_args(
        &mut self,
        fields: &mut Map<String, Value>,
        tool: &RegisteredTool,
        Extent { place, end }: Extent,
        at: Arguments<'_>,
    ) -> bool {
        let other_field = fields.iter().find(|(_, value)| holds_misplaced_args(value));
        if other_field.is_some() || !tool.accepts_no_arguments() {
            let hint = other_field.map(|(key, _)| format!("; `{}` may be meant instead", clip(key, 60)));
            let message = format!("`{at}/args` is missing{}", hint.unwrap_or_default());
            self.report_fault(FindingReport::new(rules::CALL_INVALID, place, end, message).with_row("P-031"));
            return false;
        }
        let message = format!("`{at}/args` is missing");
        let report = FindingReport::new(rules::ARGS_MISSING, place, end, message);
        self.reports.push(report.with_repair("read as `{}`"));
        fields.insert("args".to_owned(), Value::Object(Map::new()));
        true
    }
}

/// Builds the finding on a call with a value that may differ from the intended one.
fn doubt_report(doubt: Doubt, Extent { place, end }: Extent, message: String) -> FindingReport {
    let rule = match doubt {
        Doubt::Guess => rules::VALUE_GUESSED,
        Doubt::InexactNumber => rules::NUMBER_OUT_OF_RANGE,
        Doubt::DuplicateKey => rules::CALL_INVALID,
    };
    FindingReport::new(rule, place, end, message)
}

/// Describes the unknown fields of a call, which is at the JSON Pointer `at`; `None` if there are none. They
/// stay in the plan and have no effect (P-029).
fn describe_unknown_fields(call: &Map<String, Value>, at: Arguments<'_>) -> Option<String> {
    let is_renamed = |key: &str| is_args_name(key) && !call.contains_key("args");
    let is_openai_key = |key: &str| key == "function" || key == "type" && call[key] == "function";
    let is_known = |key: &str| matches!(key, "name" | "args") || is_renamed(key) || is_openai_key(key);
    let function_keys = call.get("function").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let unknown_inner =
        function_keys.filter(|key| !matches!(key.as_str(), "name" | "args") && !is_args_name(key));
    let mut unknown = call.keys().filter(|key| !is_known(key)).chain(unknown_inner);
    let first = clip(unknown.next()?, 60);
    Some(match unknown.count() {
        0 => format!("`{at}/{first}` is not a field of calls"),
        count => format!("`{at}/{first}` and {count} more are not fields of calls"),
    })
}
