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

/// A value found in a text, as strict JSON.
pub(super) type FoundJson = json::FoundValue<String>;

/// Maximum number of values examined in one reply.
const MAX_VALUES: usize = 8;

/// Maximum number of mismatches listed in one message.
const MAX_MISMATCHES: usize = 8;

/// Finds the value of a reply and checks it against the schema.
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

    /// Creates the fault of a reply without a value.
    pub(super) fn missing_value(message: &str) -> ValueFault {
        ValueFault::new(rules::JSON_MISSING, message)
    }
}

impl ValueChecker {
    pub(super) fn new(options: &Arc<Options>) -> ValueChecker {
        ValueChecker { schema: options.section::<JsonValueOptions>().schema, options: Arc::clone(options) }
    }

    /// Finds the most likely value of a text.
    pub(super) fn find_value(&self, text: &str) -> FoundJson {
        find_displayed(text, &self.options.limits)
    }

    /// Selects the only complete and valid value of a text; equal values count as one. The text before the
    /// offset `from` is reasoning, and `first` is the value found first. Returns findings on repairs of the
    /// value and on the text around it, and the value, or the reason why there is none. `is_truncated` is set
    /// if the reply was truncated.
    pub(super) fn select_value(
        &self,
        text: &str,
        from: usize,
        first: FoundJson,
        is_truncated: bool,
    ) -> (Vec<FindingReport>, Result<String, ValueFault>) {
        let (candidates, list) = match self.split_values(text, &first) {
            Some(values) => (values, Some(first)),
            None => (self.find_values(text, from, first), None),
        };
        let (reports, value) = self.choose_value(text, from, &candidates, is_truncated);
        // The list of several consecutive values may be valid if none of them is.
        match list {
            Some(list) if value.is_err() => {
                let (reports_of_list, list_value) = self.choose_value(text, from, &[list], is_truncated);
                if list_value.is_ok() { (reports_of_list, list_value) } else { (reports, value) }
            }
            _ => (reports, value),
        }
    }

    /// Selects the only complete and valid value among the candidates, of which there is at least one.
    fn choose_value(
        &self,
        text: &str,
        from: usize,
        candidates: &[FoundJson],
        is_truncated: bool,
    ) -> (Vec<FindingReport>, Result<String, ValueFault>) {
        let mut valid_index: Option<usize> = None;
        let mut first_fault: Option<ValueFault> = None;
        for (index, found) in candidates.iter().enumerate() {
            let Some(value) = found.value.as_ref() else { continue };
            let check_surroundings = || {
                let before = &text[from.min(found.span.start)..found.span.start];
                if is_within_larger_value(before, &text[found.span.end..]) {
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
                Ok(()) if valid_index.is_some_and(|first| candidates[first].value != found.value) => {
                    let message = "the reply has several values, any of which could be the answer";
                    first_fault = Some(ValueFault::new(rules::JSON_MISMATCH, message));
                    valid_index = None;
                    break;
                }
                Ok(()) => valid_index = valid_index.or(Some(index)),
            }
        }
        // Tells objects, lists and scalars apart. JSON is never empty.
        let first_byte = |found: &FoundJson| found.value.as_ref().map(|value| value.as_bytes()[0]);
        if let Some(index) = valid_index
            && candidates
                .iter()
                .any(|found| found.is_auto_closed && first_byte(found) == first_byte(&candidates[index]))
        {
            // An unclosed value of the same kind may have been the answer, and the closed one only an example
            // or a part of it.
            first_fault = Some(ValueFault::new(rules::JSON_INCOMPLETE, "a value in the reply is not closed"));
            valid_index = None;
        }
        let chosen_value = &candidates[valid_index.unwrap_or(0)];
        let is_surrounding = |report: &&FindingReport| report.rule.code == json_rules::TEXT_AROUND.code;
        let mut reports: Vec<FindingReport> =
            chosen_value.reports.iter().filter(|report| !is_surrounding(report)).cloned().collect();
        for (range, position) in
            [(from..chosen_value.span.start, "before"), (chosen_value.span.end..text.len(), "behind")]
        {
            reports.extend(report_surrounding(text, range, position));
        }
        let value = valid_index.and_then(|index| candidates[index].value.clone());
        (
            reports,
            value.ok_or_else(|| {
                first_fault.unwrap_or_else(|| ValueFault::missing_value("the reply holds no JSON value"))
            }),
        )
    }

    /// Splits consecutive values that were read as one list. Returns `None` if there is no such list, or it
    /// has more values than are examined.
    fn split_values(&self, text: &str, list: &FoundJson) -> Option<Vec<FoundJson>> {
        let (mut values, mut from) = (Vec::new(), list.span.start);
        let mut second_start = Some(second_value_start(list)?);
        while let Some(next) = second_start {
            // Each iteration adds one or two values.
            if values.len() + 2 > MAX_VALUES {
                return None;
            }
            values.push(self.find_in_range(text, from..next));
            from = next;
            let remaining_list = self.find_in_range(text, from..list.span.end);
            second_start = second_value_start(&remaining_list);
            if second_start.is_none() {
                values.push(remaining_list);
            }
        }
        Some(values)
    }

    /// Finds the value in a range of a text; its places are those in the entire text.
    fn find_in_range(&self, text: &str, range: Range<usize>) -> FoundJson {
        let mut found = find_text(&text[range.clone()], &self.options.limits);
        let place = Place::START.end_of(&text[..range.start]);
        found.reports = found.reports.into_iter().map(|report| relocate_report(report, place)).collect();
        (found.span.start, found.span.end) = (found.span.start + range.start, found.span.end + range.start);
        found
    }

    /// Returns `first` and further values of the text after `from`, at most [`MAX_VALUES`]. The regions
    /// before and after each value that was found are searched for their most likely values in turn.
    fn find_values(&self, text: &str, from: usize, first: FoundJson) -> Vec<FoundJson> {
        let mut regions = vec![from..first.span.start.max(from), first.span.end..text.len()];
        let mut values = vec![first];
        while let Some(region) =
            regions.pop().filter(|_| values.len() < MAX_VALUES && values[0].candidate_count > 1)
        {
            let found = self.find_in_range(text, region.clone());
            // A bare word, number or string between values is not a candidate.
            if found.value.as_ref().is_none_or(|value| !value.starts_with(['{', '['])) {
                continue;
            }
            regions.extend([region.start..found.span.start, found.span.end..region.end]);
            values.push(found);
        }
        values
    }

    /// Checks that a value is complete.
    fn check_complete(&self, found: &FoundJson, is_truncated: bool) -> Result<(), ValueFault> {
        let is_scalar = found.value.as_ref().is_some_and(|value| !value.starts_with(['{', '[']));
        let message = if found.is_auto_closed || is_truncated && is_scalar {
            if is_truncated { "the reply was cut off within the value" } else { "the value is not closed" }
        } else if found.reports.iter().any(|report| report.rule.code == json_rules::ELLIPSIS.code) {
            "the model left out a part of the value: `...`"
        } else {
            return Ok(());
        };
        Err(ValueFault::new(rules::JSON_INCOMPLETE, message))
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

/// Returns the offset of the second value if the list was made of several consecutive values.
fn second_value_start(list: &FoundJson) -> Option<usize> {
    let is_several_values = |report: &&FindingReport| report.rule.code == json_rules::SEVERAL_VALUES.code;
    list.reports.iter().find(is_several_values).map(|report| report.place.offset)
}

/// Returns true if the value between these texts seems to be part of a larger value that cannot be read.
fn is_within_larger_value(before: &str, after: &str) -> bool {
    let next_item = after.trim_start().strip_prefix(',').map(str::trim_start);
    ["\":", "':", "[", "{"].iter().any(|end| before.trim_end().ends_with(end))
        || next_item.is_some_and(|item| item.starts_with(['"', '{', '[']))
}

/// Returns the report on the text in `range`, which is left out; `None` if there are no words in it.
/// `position` says where the text is relative to the value: `before` or `behind`.
pub(super) fn report_surrounding(text: &str, range: Range<usize>, position: &str) -> Option<FindingReport> {
    let words = word_range(&text[range.clone()])?;
    let place = Place::START.end_of(&text[..range.start + words.start]);
    let message = format!("text {position} the value");
    let report = FindingReport::new(&json_rules::TEXT_AROUND, place, range.start + words.end, message);
    Some(report.with_repair("left it out"))
}

/// Returns the range of a text without the white space and fence marks around it; `None` if at most the
/// language name of a fence remains.
fn word_range(text: &str) -> Option<Range<usize>> {
    let is_blank_or_mark = |c: char| c.is_whitespace() || matches!(c, '`' | '~');
    let start = text.len() - text.trim_start_matches(is_blank_or_mark).len();
    let end = text.trim_end_matches(is_blank_or_mark).len();
    let is_language_or_empty = matches!(text.get(start..end)?, "" | "json" | "JSON" | "jsonc" | "json5");
    (!is_language_or_empty).then_some(start..end)
}

/// Translates a finding on a text that begins at `start` to its place in the reply.
pub(super) fn relocate_report(mut report: FindingReport, start: Place) -> FindingReport {
    // Only the first line of the text shares its line with what precedes it.
    if report.place.line == 1 {
        report.place.column += start.column - 1;
    }
    report.place.line += start.line - 1;
    report.place.offset += start.offset;
    report.end += start.offset;
    report
}
