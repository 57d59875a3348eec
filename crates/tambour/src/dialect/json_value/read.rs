//! Finds the value of a reply: complete, unique, and valid under the schema.

use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use super::{JsonValueOptions, rules};
use crate::finding::{FindingReport, Rule, clip};
use crate::options::Options;
use crate::repair::json::{self, find_displayed, find_text};
use crate::repair::rules as json_rules;
use crate::schema::Schema;
use crate::span::Place;

/// A value found in a text.
pub(super) type FoundText = json::FoundValue<String>;

/// Most values of a reply that are examined.
const MAX_VALUES: usize = 8;

/// Most mismatches that are reported.
const MAX_MISMATCHES: usize = 8;

/// Finds and checks the value of a reply.
pub(super) struct ValueChecker {
    pub(super) options: Arc<Options>,
    /// Schema of the value; `None` accepts any object.
    schema: Option<Arc<Schema>>,
}

/// Reason why a reply has no valid value.
pub(super) struct ValueFault {
    pub(super) rule: &'static Rule,
    pub(super) message: String,
}

impl ValueFault {
    pub(super) fn new(rule: &'static Rule, message: impl Into<String>) -> ValueFault {
        ValueFault { rule, message: message.into() }
    }

    pub(super) fn missing_value(message: &str) -> ValueFault {
        ValueFault::new(rules::JSON_MISSING, message)
    }
}

impl ValueChecker {
    pub(super) fn new(options: &Arc<Options>) -> ValueChecker {
        ValueChecker { schema: options.section::<JsonValueOptions>().schema, options: Arc::clone(options) }
    }

    pub(super) fn find_value(&self, text: &str) -> FoundText {
        find_displayed(text, &self.options.limits)
    }

    /// Selects the complete, valid value among those in the text from `from` on; before it is reasoning.
    /// Returns findings on repairs of the value and on the text around it. `is_truncated` means that the reply was
    /// truncated.
    pub(super) fn select_value(
        &self,
        text: &str,
        from: usize,
        first: FoundText,
        is_truncated: bool,
    ) -> (Vec<FindingReport>, Result<String, ValueFault>) {
        let (all, list) = match self.split_values(text, &first) {
            Some(lines) => (lines, Some(first)),
            None => (self.find_values(text, from, first), None),
        };
        let (reports, value) = self.choose_value(text, from, &all, is_truncated);
        // A list of all values, if that is what the schema requires.
        match list {
            Some(list) if value.is_err() => {
                let (reports_of_list, list_value) = self.choose_value(text, from, &[list], is_truncated);
                if list_value.is_ok() { (reports_of_list, list_value) } else { (reports, value) }
            }
            _ => (reports, value),
        }
    }

    /// Selects the complete, valid value of `all`.
    fn choose_value(
        &self,
        text: &str,
        from: usize,
        all: &[FoundText],
        is_truncated: bool,
    ) -> (Vec<FindingReport>, Result<String, ValueFault>) {
        let mut valid: Option<usize> = None;
        let mut first_fault: Option<ValueFault> = None;
        for (at, found) in all.iter().enumerate() {
            let Some(value) = found.value.as_ref() else { continue };
            let check_surroundings = || {
                if is_part(&text[from.min(found.span.start)..found.span.start], &text[found.span.end..]) {
                    Err(ValueFault::new(
                        rules::JSON_INCOMPLETE,
                        "the only value that can be read is a part of another",
                    ))
                } else {
                    Ok(())
                }
            };
            match self
                .check_complete(found, is_truncated)
                .and_then(|()| check_surroundings())
                .and_then(|()| self.check_schema(value))
            {
                Err(fault) => first_fault = first_fault.or(Some(fault)),
                Ok(()) if valid.is_some_and(|valid| all[valid].value != found.value) => {
                    let message = "the reply has several values, any of which could be the answer";
                    first_fault = Some(ValueFault::new(rules::JSON_MISMATCH, message));
                    valid = None;
                    break;
                }
                Ok(()) => valid = valid.or(Some(at)),
            }
        }
        let bracket = |found: &FoundText| found.value.as_ref().map(|value| value.as_bytes()[0]);
        if let Some(at) = valid
            && all.iter().any(|found| found.is_auto_closed && bracket(found) == bracket(&all[at]))
        {
            // An unclosed value may have been the answer, and the closed one an example or a part of it.
            first_fault = Some(ValueFault::new(rules::JSON_INCOMPLETE, "a value in the reply is not closed"));
            valid = None;
        }
        let chosen_value = &all[valid.unwrap_or(0)];
        let is_surrounding = |report: &&FindingReport| report.rule.code == json_rules::TEXT_AROUND.code;
        let mut reports: Vec<FindingReport> =
            chosen_value.reports.iter().filter(|report| !is_surrounding(report)).cloned().collect();
        for (range, position) in
            [(from..chosen_value.span.start, "before"), (chosen_value.span.end..text.len(), "behind")]
        {
            let Some(words) = word_range(&text[range.clone()]) else { continue };
            let place = Place::START.end_of(&text[..range.start + words.start]);
            let message = format!("text {position} the value");
            let report =
                FindingReport::new(&json_rules::TEXT_AROUND, place, range.start + words.end, message);
            reports.push(report.with_repair("left it out"));
        }
        let value = valid.and_then(|at| all[at].value.clone());
        (
            reports,
            value.ok_or_else(|| {
                first_fault.unwrap_or_else(|| ValueFault::missing_value("the reply holds no JSON value"))
            }),
        )
    }

    /// Splits consecutive values that were read as one list. Returns `None` if there is no such list, or it
    /// has more values than are examined.
    fn split_values(&self, text: &str, list: &FoundText) -> Option<Vec<FoundText>> {
        let (mut all, mut from, mut second) = (Vec::new(), list.span.start, Some(second_value_start(list)?));
        while let Some(next) = second {
            if all.len() + 2 > MAX_VALUES {
                return None;
            }
            all.push(self.find_in_range(text, from..next));
            from = next;
            let rest = self.find_in_range(text, from..list.span.end);
            second = second_value_start(&rest);
            if second.is_none() {
                all.push(rest);
            }
        }
        Some(all)
    }

    /// Reads the value of a part of a text, with places in the entire text.
    fn find_in_range(&self, text: &str, range: Range<usize>) -> FoundText {
        let mut found = find_text(&text[range.clone()], &self.options.limits);
        let place = Place::START.end_of(&text[..range.start]);
        found.reports = found.reports.into_iter().map(|report| relocate_report(report, place)).collect();
        (found.span.start, found.span.end) = (found.span.start + range.start, found.span.end + range.start);
        found
    }

    /// Returns values of a text, most likely first, up to a limit.
    fn find_values(&self, text: &str, from: usize, first: FoundText) -> Vec<FoundText> {
        let mut regions = vec![from..first.span.start.max(from), first.span.end..text.len()];
        let mut all = vec![first];
        while let Some(region) =
            regions.pop().filter(|_| all.len() < MAX_VALUES && all[0].candidate_count > 1)
        {
            let found = self.find_in_range(text, region.clone());
            // A word between values is not a value.
            if found.value.as_ref().is_none_or(|value| !value.starts_with(['{', '['])) {
                continue;
            }
            regions.extend([region.start..found.span.start, found.span.end..region.end]);
            all.push(found);
        }
        all
    }

    /// Checks that a value is complete.
    fn check_complete(&self, found: &FoundText, is_truncated: bool) -> Result<(), ValueFault> {
        let scalar = found.value.as_ref().is_some_and(|value| !value.starts_with(['{', '[']));
        let why = if found.is_auto_closed || is_truncated && scalar {
            if is_truncated { "the reply was cut off within the value" } else { "the value is not closed" }
        } else if found.reports.iter().any(|report| report.rule.code == json_rules::ELLIPSIS.code) {
            "the model left out a part of the value: `...`"
        } else {
            return Ok(());
        };
        Err(ValueFault::new(rules::JSON_INCOMPLETE, why))
    }

    /// Checks that a value satisfies the schema.
    fn check_schema(&self, text: &str) -> Result<(), ValueFault> {
        let mismatch = |message: String| ValueFault::new(rules::JSON_MISMATCH, message);
        let value =
            json::parse_strict(text, &self.options.limits).map_err(|report| mismatch(report.message))?;
        let Some(schema) = &self.schema else {
            return match value {
                Value::Object(_) => Ok(()),
                other => {
                    Err(mismatch(format!("the value is {}, not an object", crate::schema::type_name(&other))))
                }
            };
        };
        let mismatches = schema.check(&value, MAX_MISMATCHES);
        if mismatches.is_empty() {
            return Ok(());
        }
        if let Some(too_complex) = mismatches.iter().find(|entry| entry.is_too_complex) {
            return Err(ValueFault::new(rules::SCHEMA_TOO_COMPLEX, too_complex.message.as_str()));
        }
        let mismatches = mismatches.iter().map(|entry| match &*entry.pointer {
            "" => entry.message.clone(),
            pointer => format!("at `{}`: {}", clip(pointer, 80), entry.message),
        });
        Err(mismatch(format!("the value breaks its schema: {}", mismatches.collect::<Vec<_>>().join("; "))))
    }
}

/// Returns the start of the second value in a list that was made of several values.
fn second_value_start(list: &FoundText) -> Option<usize> {
    let is_several_values = |report: &&FindingReport| report.rule.code == json_rules::SEVERAL_VALUES.code;
    list.reports.iter().find(is_several_values).map(|report| report.place.offset)
}

/// Returns true if the text between these two is a part of a larger value that is unreadable.
fn is_part(before: &str, after: &str) -> bool {
    let next = after.trim_start().strip_prefix(',').map(str::trim_start);
    ["\":", "':", "[", "{"].iter().any(|end| before.trim_end().ends_with(end))
        || next.is_some_and(|next| next.starts_with(['"', '{', '[']))
}

/// Returns the range of a text's words, without the white space and fence marks around them.
fn word_range(text: &str) -> Option<Range<usize>> {
    let mark = |c: char| c.is_whitespace() || matches!(c, '`' | '~');
    let start = text.len() - text.trim_start_matches(mark).len();
    let end = text.trim_end_matches(mark).len();
    let is_language = matches!(text.get(start..end)?, "" | "json" | "JSON" | "jsonc" | "json5");
    (!is_language).then_some(start..end)
}

/// Translates a finding on a text that begins at `from` to the place in the reply.
pub(super) fn relocate_report(mut report: FindingReport, from: Place) -> FindingReport {
    if report.place.line == 1 {
        report.place.column += from.column - 1;
    }
    report.place.line += from.line - 1;
    report.place.offset += from.offset;
    report.end += from.offset;
    report
}
